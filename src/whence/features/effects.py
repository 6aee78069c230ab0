"""What a feature does to the output: which tokens or classes it raises, and its nearest features.

Of a language model it is read from the weights (the logit lens): the direction of the feature
through the final norm and the unembedding. That skips the blocks in between, so it is an
approximation. Of a classifier it is measured, by setting the feature to 0 where it fires.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from whence.core.dashboard import Neighbour, Weighed
from whence.core.errors import Unsupported
from whence.core.passage import Passage
from whence.features.autoencoder import Autoencoder
from whence.models.model import Model, finite
from whence.models.sample import sample
from whence.models.unbroken import unbroken
from whence.models.untouched import modules_of, untouched
from whence.trace.hidden import editing

FEATURES_AT_ONCE = 256
TOKENS_AT_ONCE = 2048


@dataclass(frozen=True, eq=False)
class Head:
    """The end of a language model: a norm, by its derivative, and the unembedding.

    ``norm`` is averaged over the tokens of a short text, as the derivative depends on the state.
    """

    norm: Float[Tensor, "dim dim"]
    unembedding: Float[Tensor, "token dim"]

    def logits(self, directions: Float[Tensor, "row dim"]) -> Float[Tensor, "row token"]:
        """By how much each token's logit rises along the directions, above the mean of all tokens.

        The mean is taken off, as what raises all tokens changes no probability.
        """
        raised = directions @ self.norm.T @ self.unembedding.T
        return raised - raised.mean(1, keepdim=True)


def head_of(model: Model) -> Head:
    """The final norm and the unembedding, found by what they do in one pass.

    >>> import whence
    >>> head_of(whence.load("writer")).unembedding.shape
    torch.Size([3072, 192])
    """
    unembedding = model.hf.get_output_embeddings() if model.kind.generates else None
    weight = getattr(unembedding, "weight", None)
    if not isinstance(weight, Tensor):
        raise Unsupported(
            f"{type(model.hf).__name__} has no unembedding by itself, so what its features promote "
            "cannot be read from the weights."
        )
    assert isinstance(unembedding, nn.Module)
    norm, states = _norm_before(model, unembedding)
    return Head(_mean_derivative(norm, states), weight.detach().float())


def _norm_before(model: Model, unembedding: nn.Module) -> tuple[nn.Module, Tensor]:
    """The module whose output the unembedding reads, and what it was given there."""
    seen: list[tuple[nn.Module, Tensor, Tensor]] = []
    read: list[Tensor] = []

    def on_norm(module: nn.Module, args: Any, output: Any) -> None:
        if args and isinstance(args[0], Tensor) and isinstance(output, Tensor):
            seen.append((module, args[0].detach(), output.detach()))

    def on_read(_module: nn.Module, args: Any) -> None:
        read.append(args[0].detach())

    with model.lock, untouched(model.hf), unbroken(torch.inference_mode()):
        handles = [unembedding.register_forward_pre_hook(on_read)]
        try:
            for module in modules_of(model.hf):
                if _scales_each_dimension(module):
                    handles.append(module.register_forward_hook(on_norm))
            model.run(model.batch([sample(model)]).inputs)
        finally:
            for handle in handles:
                handle.remove()
    for module, given, output in reversed(seen):
        if read and output.shape[-1] == read[-1].shape[-1]:
            last = output[..., -1, :], read[-1][..., -1, :]
            if last[0].shape == last[1].shape and torch.equal(*last):
                return module, given.reshape(-1, given.shape[-1])
    raise Unsupported(
        f"the unembedding of {type(model.hf).__name__} does not read what a norm gives, so what "
        "its features promote cannot be read from the weights."
    )


def _scales_each_dimension(module: nn.Module) -> bool:
    """Whether it has a number for each dimension, as every norm has, and nothing below it."""
    weight = getattr(module, "weight", None)
    return isinstance(weight, Tensor) and weight.ndim == 1 and not module._modules


def _mean_derivative(
    norm: nn.Module, states: Float[Tensor, "token dim"]
) -> Float[Tensor, "dim dim"]:
    """The matrix of the norm's derivative, averaged over states; a column for each input."""
    dim = states.shape[-1]
    basis = torch.eye(dim, device=states.device)
    total = torch.zeros(dim, dim, device=states.device)
    with unbroken(torch.inference_mode(False), torch.no_grad()):
        for state in states.float().clone():
            point = state.expand(dim, dim).contiguous()
            # the norm's value comes first, and then its change along each direction
            total += torch.func.jvp(norm, (point,), (basis,))[1].float()
    return total.T / len(states)


def promoted(
    model: Model, autoencoder: Autoencoder, features: Sequence[int], count: int = 10
) -> dict[int, tuple[tuple[Weighed, ...], tuple[Weighed, ...]]]:
    """The tokens whose logits each feature raises most, and those that it lowers most.

    An effect is in logits for an activation (a_j · ‖decoder_j‖) of 1. The feature's direction goes
    through the final norm and the unembedding, as if no block stood in between.

    >>> import whence
    >>> from whence.features.mirrors import mirror
    >>> model = whence.load("writer")
    >>> up, down = promoted(model, mirror(model, layer=3), [5], count=3)[5]
    >>> len(up), up[0].effect > 0 > down[0].effect
    (3, True)
    """
    head = head_of(model)
    names = model.labels
    norms = autoencoder.norms.clamp_min(1e-12)
    units = autoencoder.decoder / norms[:, None]
    told = {}
    with unbroken(torch.inference_mode()):
        for first in range(0, len(features), FEATURES_AT_ONCE):
            part = list(features[first : first + FEATURES_AT_ONCE])
            raised = head.logits(units[part].to(head.norm.device))
            raised = raised[:, : len(names)]
            most, least = raised.topk(count, 1), raised.topk(count, 1, largest=False)
            for row, feature in enumerate(part):
                told[feature] = (
                    _named(names, most.indices[row], most.values[row]),
                    _named(names, least.indices[row], least.values[row]),
                )
    return told


def _named(names: Any, ids: Int[Tensor, " k"], values: Float[Tensor, " k"]) -> tuple[Weighed, ...]:
    pairs = zip(ids.tolist(), values.tolist(), strict=True)
    return tuple(Weighed(names[i], value) for i, value in pairs)


# ---------------------------------------------------------------------- measured, of classifiers


def class_effects(
    model: Model,
    autoencoder: Autoencoder,
    places: Sequence[tuple[int, Passage]],
) -> dict[int, Float[np.ndarray, " label"]]:
    """By how much each feature raises the logit of each class, where it fires.

    ``places`` are features with passages on which they are active. An effect is the logit of the
    plain model less that with the feature set to 0 at all tokens, on average over its passages;
    the mean over the classes is taken off where they exclude each other.
    """
    plain = _logits(model, autoencoder, [(None, passage) for _, passage in places])
    without = _logits(model, autoencoder, list(places))
    raised = plain - without
    if raised.shape[1] > 1 and not model.several_labels:
        raised = raised - raised.mean(1, keepdims=True)
    told: dict[int, list[np.ndarray]] = {}
    for (feature, _), row in zip(places, raised, strict=True):
        told.setdefault(feature, []).append(row)
    return {feature: np.mean(rows, axis=0) for feature, rows in told.items()}


def _logits(
    model: Model, autoencoder: Autoencoder, places: Sequence[tuple[int | None, Passage]]
) -> Float[np.ndarray, "row label"]:
    """The logits of each passage, with its feature set to 0; each row has a feature of its own."""
    about = autoencoder.about
    kind = about.kind if model.is_encoder_decoder else None
    rows: dict[int, np.ndarray] = {}
    group: list[int] = []

    def change(states: Float[Tensor, "row token dim"]) -> Float[Tensor, "row token dim"]:
        changed = states.clone()
        for row, i in enumerate(group):
            feature = places[i][0]
            if feature is not None:
                active = autoencoder.encode(states[row].float())[:, feature]
                changed[row] -= active[:, None] * autoencoder.decoder[feature]
        return changed

    passages = [passage for _, passage in places]
    with editing(model, about.layer, change, kind), unbroken(torch.inference_mode()):
        for group in model.groups(passages, TOKENS_AT_ONCE):
            batch = model.batch([passages[i] for i in group])
            logits = finite(model.read(model.run(batch.inputs), batch))
            rows.update(zip(group, logits.double().cpu().numpy(), strict=True))
    return np.stack([rows[i] for i in range(len(places))])


# ---------------------------------------------------------------------- features beside features


def nearest(
    autoencoder: Autoencoder, features: Sequence[int], count: int = 5
) -> dict[int, tuple[Neighbour, ...]]:
    """The features whose directions are nearest, by the cosine of the angle between both.

    >>> import whence
    >>> from whence.features.mirrors import mirror
    >>> nearest(mirror(whence.load("writer"), layer=1), [0], count=1)[0][0].cosine
    0.0
    """
    units = nn.functional.normalize(autoencoder.decoder.float(), dim=1)
    told = {}
    count = min(count, autoencoder.size - 1)
    for first in range(0, len(features), FEATURES_AT_ONCE):
        part = list(features[first : first + FEATURES_AT_ONCE])
        cosines = units[part] @ units.T
        cosines[torch.arange(len(part)), part] = -torch.inf  # itself
        best = cosines.topk(count, 1)
        for row, feature in enumerate(part):
            pairs = zip(best.indices[row].tolist(), best.values[row].tolist(), strict=True)
            told[feature] = tuple(Neighbour(other, cosine) for other, cosine in pairs)
    return told
