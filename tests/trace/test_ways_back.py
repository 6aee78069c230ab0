"""Outputs that share the way back through the head: each gets its own slopes, and no other's."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.families import build
from whence.core.passage import Passage
from whence.core.registry import Needs
from whence.core.request import Ask
from whence.core.target import Target
from whence.models.model import Model
from whence.models.writing import written_after
from whence.trace.trace import Trace, trace

TINY = 1e-9  # in float64


def written(family: str) -> tuple[Model, Passage]:
    model = build(family)
    model.hf.double()
    prompt = model.encode("the food is good but", units="token")
    return model, written_after(model, prompt, model.encode("the staff is").ids[:3])


def gradients(model: Model, passage: Passage, targets: list[Target]) -> Trace:
    asks = [Ask(passage, target) for target in targets]
    return trace(model, asks, needs=Needs.EMBEDDING_GRADIENTS)


@pytest.mark.parametrize("family", ["gpt2", "t5"])
@pytest.mark.parametrize(
    "targets",
    [
        [Target(at=0), Target(at=1), Target(at=2)],
        [Target(at=0, read="log-probability"), Target(at=1, until=3, read="log-probability")],
        # one output is read twice: its slopes cannot be shared
        [Target(at=1), Target(5, at=1), Target(at=2)],
        [Target(at=2, read="probability"), Target(at=0, until=3, read="probability")],
    ],
    ids=["apart", "with a span", "one twice", "within a span"],
)
def test_each_ask_gets_its_own_slopes(family: str, targets: list[Target]) -> None:
    """The wrong version gives outputs that are read twice the slopes of both numbers."""
    model, passage = written(family)
    together = gradients(model, passage, targets)
    points = torch.stack([together.embeddings[0], 0.5 * together.embeddings[0]])
    way = together.embeddings[0]
    along = together.slopes_along(range(len(targets)), points, way)
    for i, target in enumerate(targets):
        alone = gradients(model, passage, [target])
        scale = TINY * float(alone.gradients.abs().max())
        np.testing.assert_allclose(together.gradients[i], alone.gradients[0], atol=scale)
        expected = torch.einsum("ntd,td->nt", alone.gradients_at(0, points), way)
        np.testing.assert_allclose(along[i], expected, atol=TINY * float(expected.abs().max()))


def test_all_outputs_go_back_through_the_head_once() -> None:
    """The wrong version goes through it once for each output."""
    model, passage = written("gpt2")
    model.batch([passage])
    backs = []
    head = model.hf.get_output_embeddings()
    head.register_full_backward_hook(lambda _module, _inputs, _outputs: backs.append(1))
    gradients(model, passage, [Target(at=n) for n in range(passage.outputs)])
    assert len(backs) == 1
