"""What features do to the output: the lens beside a finite difference, classes beside a hook."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import whence
from whence.features.effects import class_effects, head_of, nearest, promoted
from whence.features.mirrors import mirror
from whence.models.sample import sample
from whence.trace.hidden import editing, hidden_at


@pytest.fixture(scope="module")
def writer():
    return whence.load("writer")


def test_the_lens_is_the_slope_of_the_logits_at_the_last_block(writer):
    """At the last block nothing is skipped: a small step along the direction says the same."""
    autoencoder = mirror(writer, layer=3)
    passage, step, feature = sample(writer), 1e-2, 200

    def logits(size: float) -> torch.Tensor:
        along = size * autoencoder.decoder[feature]
        batch = writer.batch([passage])
        with editing(writer, 3, lambda h: h + along), torch.inference_mode():
            return writer.run(batch.inputs).logits[0].double()

    slope = ((logits(step) - logits(-step)) / (2 * step)).mean(0)
    slope -= slope.mean()
    head = head_of(writer)
    raised = head.logits(autoencoder.decoder[feature][None])[0].double()
    # would catch: a norm that is left out, a transposed derivative, a mean that is kept
    assert raised.numpy() == pytest.approx(slope.numpy(), abs=2e-3 * float(slope.abs().max()))
    up, down = promoted(writer, autoencoder, [feature], count=3)[feature]
    order = raised.argsort(descending=True)
    assert [one.name for one in up] == [writer.labels[int(i)] for i in order[:3]]
    assert [one.name for one in down] == [writer.labels[int(i)] for i in order.flip(0)[:3]]


def test_classes_lose_what_a_hook_takes_from_them():
    model = whence.load("sentiment")
    autoencoder = mirror(model, layer=0)
    texts = ["not bad at all", "a dull film, I thought"]
    feature = 31
    told = class_effects(model, autoencoder, [(feature, model.encode(text)) for text in texts])
    rows = []
    for text in texts:
        passage = model.encode(text)
        (states,) = hidden_at(model, [passage], 0)
        size = states[:, feature].clamp_min(0)  # feature 31 of [I; −I]

        def hook(_module, _args, output, size=size):
            changed = (output[0] if isinstance(output, tuple) else output).clone()
            changed[0, :, feature] -= size
            return (changed, *output[1:]) if isinstance(output, tuple) else changed

        before = model.logits([passage])[0]
        from whence.models.blocks import blocks_of

        handle = blocks_of(model)[0].register_forward_hook(hook)
        try:
            after = model.logits([passage])[0]
        finally:
            handle.remove()
        rows.append(before - after)
    wanted = np.mean(rows, axis=0)
    wanted -= wanted.mean()
    # would catch: the sign the wrong way round, one passage's feature in another's row
    assert told[feature] == pytest.approx(wanted, abs=1e-5)


def test_the_nearest_directions_are_those_with_the_largest_cosines(writer):
    from dataclasses import replace

    autoencoder = mirror(writer, layer=1)
    generator = torch.Generator().manual_seed(0)
    decoder = torch.randn(autoencoder.decoder.shape, generator=generator)
    decoder[7] = 3 * decoder[5] + 0.1 * decoder[6]  # longer, but nearly the same direction
    near = nearest(replace(autoencoder, decoder=decoder), [5], count=2)[5]
    assert near[0].number == 7
    assert near[0].cosine > 0.99 > near[1].cosine  # would catch: a product that is no cosine
