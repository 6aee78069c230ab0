"""How a model conducts itself: what a few short passes show of this model, not of its name.

A check runs once for a model object, when its answer is first needed, and what it found is
remembered here. The checks of this file need plain passes only; those that look inside the model
are in ``trace/guard.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor, nn

from whence.core.errors import ModelError, Unsupported, WhenceError
from whence.core.passage import Passage
from whence.core.percent import percent
from whence.models.embeddings import embedded
from whence.models.sample import samples_of_two_lengths
from whence.models.state import draws, habits_of, look_again
from whence.models.unbroken import unbroken
from whence.models.untouched import untouched
from whence.models.values import NEVER, finite

if TYPE_CHECKING:
    from whence.models.model import Model

# Two ways to compute the same number may differ by so many roundings of the model's dtype, of the
# largest number there is; and never by more than a twentieth, in whatever dtype. A model in float64
# may still have parts in float32.
ROUNDINGS = 1000
SMALLEST_ROUNDING = 1e-5
LARGEST_ROUNDING = 0.05

# what is said where a check finds nothing wrong
HOLDS = {
    "repeats": "asked the same twice it says the same.",
    "padding": "a text is read alike alone and padded to the length of another.",
    "batch-mates": "a text is read alike alone and beside others.",
    "embeddings": "one module gives one vector for each token, and nothing else is read of it.",
}
USE_GAMES = "Methods that play (lime, shapley, occlusion, anchors) still work."


@dataclass(frozen=True)
class Finding:
    """What one check found.

    ``holds`` is None where it could not be tried. ``says`` is a sentence for people: what was seen,
    and what follows from it. ``choice`` is what whence does about it, where there is a choice.
    """

    name: str
    holds: bool | None
    says: str
    difference: float | None = None
    choice: Any = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "name": self.name,
            "holds": self.holds,
            "says": self.says,
            "difference": self.difference,
        }


Check = Callable[["Model"], Finding]

# by model object, then by the check's name and the state that its answer depends on
_findings: WeakKeyDictionary[nn.Module, dict[tuple[Any, ...], Finding]] = WeakKeyDictionary()


def remembered(model: Model, name: str, check: Check) -> Finding:
    """What a check finds; it runs the first time that it is asked of a model object."""
    finding = known(model, name)
    if finding is not None:
        return finding
    with model.lock:
        finding = check(model)
        remember(model, finding)
    return finding


def remember(model: Model, finding: Finding) -> None:
    """Keep what was found of a model object."""
    _findings.setdefault(model.hf, {})[_key(model, finding.name)] = finding


def inherit(model: Model, first: Model) -> None:
    """Take over what was found of another model object: one with the same code, other weights."""
    _findings[model.hf] = dict(_findings.get(first.hf, {}))


def known(model: Model, name: str) -> Finding | None:
    """What a check found before; None where it has not run."""
    return _findings.get(model.hf, {}).get(_key(model, name))


def _key(model: Model, name: str) -> tuple[Any, ...]:
    """Another attention, dtype or device may change the answer."""
    own_attention = getattr(model.config, "_attn_implementation", None)
    return name, own_attention, model.dtype, model.device


def tolerance(dtype: torch.dtype) -> float:
    """By what share of the largest number two ways to compute the same may differ."""
    rounding = ROUNDINGS * torch.finfo(dtype).eps
    return min(LARGEST_ROUNDING, max(SMALLEST_ROUNDING, rounding))


def relative_difference(some: Tensor, others: Tensor) -> float:
    """The largest difference, as a share of the largest number.

    >>> relative_difference(torch.tensor([4.0, 1.0]), torch.tensor([5.0, 1.0]))
    0.2
    """
    some, others = some.detach().double(), others.detach().double()
    told = (some > NEVER / 2) | (others > NEVER / 2)  # places that are no label are left out
    some, others = some[told], others[told]
    if not some.numel():
        return 0.0
    largest = max(float(some.abs().max()), float(others.abs().max()))
    if largest == 0:
        return 0.0
    return float((some - others).abs().max()) / largest


def outputs_differ(some: Tensor, others: Tensor) -> float:
    """The same of what a model gives out, where a few roundings of a state are no difference.

    States have a size of about one. Where they cancel in an output, most of what is left is
    rounding, and a share of it says nothing.

    >>> outputs_differ(torch.tensor([4e-8, 1e-8]), torch.tensor([5e-8, 1e-8]))
    0.0
    """
    if some.shape == others.shape:
        apart = (some.detach().double() - others.detach().double()).abs()
        if float(apart.max()) <= torch.finfo(some.dtype).eps:
            return 0.0
    return relative_difference(some, others)


def answers(model: Model, passages: Sequence[Passage]) -> list[Tensor]:
    """What the model says of passages in one batch: their logits, or else its first output."""
    batch = model.batch(passages)
    with model.lock, untouched(model.hf), unbroken(torch.inference_mode()):
        outputs = model.run(batch.inputs)
        if model.kind.has_head:
            return list(finite(model.read(outputs, batch)))
    states = outputs[0]
    return [state[: len(passage)] for state, passage in zip(states, passages, strict=True)]


# ---------------------------------------------------------------------- from pass to pass


def repeats(model: Model) -> Finding:
    """Whether the model says the same when it is asked the same twice."""
    return remembered(model, "repeats", _check_repeats)


def state(model: Model) -> Finding:
    """Whether a pass leaves the model's buffers and the caller's random state as they were."""
    return remembered(model, "state", _check_state)


def _check_repeats(model: Model) -> Finding:
    passage = samples_of_two_lengths(model)[0]
    look_again(model.hf)
    # a pass without a hook of ours shows whether the model draws; if so, its numbers had no seed
    first = answers(model, [passage])[0]
    if draws(model.hf):
        first = answers(model, [passage])[0]
    second = answers(model, [passage])[0]
    difference = outputs_differ(first, second)
    if difference <= tolerance(model.dtype):
        return Finding("repeats", True, HOLDS["repeats"], difference)
    return Finding(
        "repeats",
        False,
        f"asked the same twice it says something else (by {percent(difference, 1)}), so no change "
        "of its output can be put down to a change of the text.",
        difference,
    )


def _check_state(model: Model) -> Finding:
    repeats(model)  # a pass, if there was none yet
    habits = habits_of(model.hf)
    changed = [] if habits is None else sorted(habits.changes)
    rescales = habits is not None and habits.rescales
    if not changed and not draws(model.hf) and not rescales:
        return Finding("state", True, "a pass changes nothing about the model.")
    seen = []
    if rescales:
        seen.append("a pass changes its weights in place, which is put back")
    if changed:
        more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
        seen.append(f"a pass changes {', '.join(changed[:3])}{more}, which is put back")
    if draws(model.hf):
        seen.append(
            "it draws random numbers, which are fixed by a seed for each pass and not taken from "
            "the caller's"
        )
    return Finding("state", False, f"{'; '.join(seen)}.")


# ---------------------------------------------------------------------- batches


def batch_mates(model: Model) -> Finding:
    """Whether a text is read in the same way when another of its length stands beside it."""
    return remembered(model, "batch-mates", _check_mates)


def padding(model: Model) -> Finding:
    """Whether a text is read in the same way when it is padded to the length of another."""
    return remembered(model, "padding", _check_padding)


def _check_padding(model: Model) -> Finding:
    passages = samples_of_two_lengths(model)
    if len({len(passage) for passage in passages}) < 2:
        return Finding("padding", None, "its inputs have one length, so nothing is padded.")
    return _compared_in_batch(
        model,
        "padding",
        passages,
        HOLDS["padding"],
        "a text that is padded to the length of another is read otherwise",
        "texts of several lengths run one at a time.",
    )


def _check_mates(model: Model) -> Finding:
    padded = padding(model)
    if padded.holds:
        return Finding("batch-mates", True, HOLDS["batch-mates"], padded.difference)

    passages = samples_of_two_lengths(model)
    shortest = min(passages, key=len)
    mates = [passage for passage in passages if len(passage) == len(shortest)]
    if len(mates) < 2:
        mates = [shortest, _reordered(shortest)]
    return _compared_in_batch(
        model,
        "batch-mates",
        mates,
        "a text is read alike alone and beside another of its length.",
        "a text is read otherwise when another of its length stands beside it",
        "every text runs alone.",
    )


def _reordered(passage: Passage) -> Passage:
    """Another text of the same length: the same tokens, the last one first."""
    content = np.flatnonzero(~passage.special)
    ids = passage.ids.copy()
    ids[content] = ids[content[::-1]]
    return replace(passage, ids=ids)


def _compared_in_batch(
    model: Model,
    name: str,
    passages: Sequence[Passage],
    holds: str,
    fails: str,
    follows: str,
) -> Finding:
    """The first passage alone, against the same among others."""
    alone = answers(model, passages[:1])[0]
    try:
        together = answers(model, passages)[0]
    except WhenceError as problem:
        return Finding(name, False, f"{fails} ({problem}); {follows}")

    if alone.ndim == 1:
        # of a question each text has labels of its own, and a batch as many as the longest
        width = min(len(alone), len(together))
        alone, together = alone[:width], together[:width]
    if alone.shape != together.shape:
        says = f"{fails} (another number of outputs comes back); {follows}"
        return Finding(name, False, says)
    difference = outputs_differ(alone, together)
    if difference <= tolerance(model.dtype):
        return Finding(name, True, holds, difference)
    return Finding(name, False, f"{fails} (by {percent(difference, 1)}); {follows}", difference)


# ---------------------------------------------------------------------- embeddings


def embeddings(model: Model) -> Finding:
    """Whether one module gives one vector for each token, and the model knows nothing else of it.

    The embedding of one token is replaced by that of another. If the model reads the ids by a
    second way too (hashes of characters, a table in each layer), it now says something else than
    for the text in which that token is exchanged.
    """
    return remembered(model, "embeddings", _check_embeddings)


def _check_embeddings(model: Model) -> Finding:
    passage = samples_of_two_lengths(model)[-1]
    places = two_different_tokens(model, passage) if model.kind.reads_text else None
    width_of_special = len(passage) - len(passage.names) if not model.kind.reads_text else 0
    lengths = (len(passage), len(passage) - width_of_special)
    seen: list[tuple[int, ...]] = []

    def exchange(vectors: Tensor) -> Tensor:
        seen.append(tuple(vectors.shape))
        if places is None or not is_one_each(seen[0], lengths):
            return vectors
        at, other = places
        changed = vectors.clone()
        changed[:, at] = vectors[:, other]
        return changed

    try:
        by_vector = _answer_with(model, passage, exchange)
    except (Unsupported, ModelError) as problem:
        return Finding("embeddings", False, f"{problem} {USE_GAMES}")

    shape = seen[0]
    if not is_one_each(shape, lengths):
        return Finding(
            "embeddings",
            False,
            f"its embeddings have the shape {shape} where {len(passage)} tokens went in, so there "
            f"is no one vector for each token. {USE_GAMES}",
        )
    if not model.kind.reads_text:
        return Finding("embeddings", True, "one module gives one vector for each patch.")
    if places is None:
        return Finding("embeddings", None, "the sample text has only one kind of token.")
    return _exchanged(model, passage, places, by_vector)


def is_one_each(shape: tuple[int, ...], lengths: Sequence[int]) -> bool:
    """Whether embeddings of this shape are one vector for each token."""
    return len(shape) == 3 and shape[1] in lengths


def _exchanged(
    model: Model, passage: Passage, places: tuple[int, int], by_vector: Tensor
) -> Finding:
    """A token exchanged by its id, against the same by its embedding."""
    at, other = places
    ids = passage.ids.copy()
    ids[at] = ids[other]
    by_id = answers(model, [replace(passage, ids=ids)])[0]
    difference = outputs_differ(by_id, by_vector)
    if difference <= tolerance(model.dtype):
        return Finding("embeddings", True, HOLDS["embeddings"], difference)
    return Finding(
        "embeddings",
        False,
        "it reads its tokens by another way beside their embeddings: with the embedding of one "
        f"token exchanged it differs by {percent(difference, 1)} from the text with that token "
        f"exchanged. Gradients along embeddings would miss that. {USE_GAMES}",
        difference,
    )


def two_different_tokens(model: Model, passage: Passage) -> tuple[int, int] | None:
    """Places of two tokens of the text with different ids.

    Neither is read, and neither has an id that means more than a word: positions and readouts are
    counted by the padding's.
    """
    meaningful = {model.pad_id, *getattr(model.tokenizer, "all_special_ids", ())}
    content = []
    for i in np.flatnonzero(~passage.special).tolist():
        if i != passage.readout and int(passage.ids[i]) not in meaningful:
            content.append(i)
    for at in content:
        for other in content:
            if passage.ids[at] != passage.ids[other]:
                return at, other
    return None


def _answer_with(model: Model, passage: Passage, change: Callable[[Tensor], Tensor]) -> Tensor:
    """What the model says of a passage whose embeddings are changed on their way in."""
    batch = model.batch([passage])
    with (
        model.lock,
        untouched(model.hf),
        unbroken(torch.inference_mode(False), torch.no_grad()),
        embedded(model, batch, change),
    ):
        outputs = model.run(batch.inputs)
        if model.kind.has_head:
            return model.read(outputs, batch)[0]
    return outputs[0][0, : len(passage)]
