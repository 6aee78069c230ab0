"""The scalar under explanation: what a target reads from a row of logits."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from whence.core.errors import ModelError, TargetError
from whence.core.target import Target

# In place of the logit of a label that this text does not have, beside one that has more of them.
# It is finite, and far enough below any other that its probability is zero.
NEVER = -1e4


def finite(logits: Tensor) -> Tensor:
    """The logits, or an error where one is NaN or infinite."""
    # a sum is finite only if all are, and takes no room; one that overflows is looked at closely
    looks_wrong = not isfinite(float(logits.detach().sum()))
    if looks_wrong and not bool(torch.isfinite(logits).all()):
        raise ModelError(
            "the model returned logits that are not finite (NaN or infinite); "
            "check its weights and dtype (float16 overflows)."
        )
    return logits


def as_numpy(logits: Float[Tensor, "*row label"]) -> Float[np.ndarray, "*row label"]:
    """The same numbers for numpy, which knows no half precision.

    It is no copy where it need not be: of a vocabulary, there are many logits.
    """
    plain = logits.detach().cpu()
    if plain.dtype not in (torch.float32, torch.float64):
        plain = plain.float()
    return plain.numpy()


def probabilities(
    logits: Float[Tensor, "batch label"], several_labels: bool
) -> Float[Tensor, "batch label"]:
    """Softmax over the labels; where several may hold, each label's own sigmoid."""
    return logits.sigmoid() if several_labels else logits.softmax(-1)


def output_change(
    before: Float[Tensor, "#row label"],
    after: Float[Tensor, "row label"],
    several_labels: bool,
    is_number: bool,
) -> Float[Tensor, " row"]:
    """How far the output has moved: the total variation between the labels' probabilities.

    That is half of the summed changes. Of labels that may all hold it is the largest change of a
    probability, and of a regression, which has none, the largest change of a number.

    >>> even, sure = torch.tensor([[0.0, 0.0]]), torch.tensor([[100.0, 0.0]])
    >>> output_change(even, sure, several_labels=False, is_number=False)
    tensor([0.5000])
    """
    if is_number:
        return (after - before).abs().amax(-1)
    change = probabilities(after, several_labels) - probabilities(before, several_labels)
    if several_labels:
        return change.abs().amax(-1)
    return 0.5 * change.abs().sum(-1)


def target_values(
    logits: Float[Tensor, "batch *output label"], targets: Sequence[Target], several_labels: bool
) -> Float[Tensor, " batch"]:
    """Each row's target, less its contrast if it has one; all are read in the same way.

    Where the model wrote a text there is a row of logits for each output, and a target says which.
    """
    if any(target.until is not None for target in targets):
        return torch.stack([_of_span(row, t) for row, t in zip(logits, targets, strict=True)])
    if logits.ndim == 3:
        logits = rows_at(logits, targets)
    ways = {(t.read, t.against_index is not None) for t in targets}
    if len(ways) > 1:
        raise TargetError(
            "the targets of one batch are read in one way: all as logit, "
            "or all as probability, all with a contrast or none."
        )
    ((read, has_contrast),) = ways
    if read == "entropy":
        return _entropy(logits)
    if read == "kl":
        of_targets = {target: _reference(target, logits) for target in targets}
        if len(of_targets) == 1:  # as in a game: one row for all, which may be a vocabulary long
            return divergence(logits, of_targets[targets[0]])
        return divergence(logits, torch.cat([of_targets[target] for target in targets]))

    scores = _scores(logits, read, several_labels)
    value = _column(scores, [t.index for t in targets])
    if not has_contrast:
        return value
    return value - _column(scores, [t.against_index for t in targets])


def _scores(
    logits: Float[Tensor, "batch label"], read: str, several_labels: bool
) -> Float[Tensor, "batch label"]:
    """The logits, or what is made of them: probabilities, their logarithms, or of these."""
    if read == "probability":
        return probabilities(logits, several_labels)
    if read in ("logit", "margin"):
        return logits
    logarithms = logits.log_softmax(-1)
    if several_labels:
        logarithms = nn.functional.logsigmoid(logits)
    if read == "log-probability":
        return logarithms
    if read == "cross-entropy":
        return -logarithms
    return (-logarithms).exp()


def _entropy(logits: Float[Tensor, "*row label"]) -> Float[Tensor, "*row"]:
    """In nats, of all labels together."""
    logarithms = logits.log_softmax(-1)
    return -(logarithms.exp() * logarithms).sum(-1)


def divergence(
    logits: Float[Tensor, "row label"], reference: Float[Tensor, "#row label"]
) -> Float[Tensor, " row"]:
    """How far each row diverges from the log-probabilities of a reference, in nats.

    It is summed in double precision: tens of thousands of small terms nearly cancel. What is
    impossible in the reference adds nothing: 0 · log 0 is 0.

    >>> now = torch.tensor([[0.9, 0.1]]).log()
    >>> round(float(divergence(now, torch.tensor([[0.5, 0.5]]).log())), 4)
    0.5108
    """
    reference = reference.double()
    is_possible = reference > -torch.inf
    now = logits.double().log_softmax(-1)
    # both are put to zero before they meet: inf - inf would be NaN, and so its slope
    apart = torch.where(is_possible, reference, 0.0) - torch.where(is_possible, now, 0.0)
    return (reference.exp() * apart).sum(-1).to(logits.dtype)


def _reference(target: Target, logits: Tensor) -> Float[Tensor, "output label"]:
    """The log-probabilities that a divergence is measured from."""
    assert target.reference is not None
    rows = target.reference.log_probabilities
    assert rows is not None
    return torch.from_numpy(rows).to(logits.device)


def rows_at(
    logits: Float[Tensor, "batch output label"], targets: Sequence[Target]
) -> Float[Tensor, "batch label"]:
    """Of each text, the logits of the output that its target is about, or begins with."""
    outputs = [target.steps[0] for target in targets]
    if len(set(outputs)) == 1:
        return logits[:, outputs[0]]
    return logits[torch.arange(len(outputs), device=logits.device), outputs]


def _of_span(logits: Float[Tensor, "output label"], target: Target) -> Float[Tensor, ""]:
    """Several written tokens together: their log-probabilities add up."""
    steps = target.steps
    rows = logits[steps.start : steps.stop]
    if target.read == "entropy":
        return _entropy(rows).sum()
    if target.read == "kl":
        return divergence(rows, _reference(target, logits)).sum()

    ids = torch.tensor(target.ids, device=logits.device)
    together = rows.log_softmax(-1).gather(-1, ids[:, None]).sum()
    if target.read == "probability":
        return together.exp()
    if target.read == "cross-entropy":
        return -together
    if target.read == "perplexity":
        return (-together / len(steps)).exp()
    return together


def _column(
    scores: Float[Tensor, "batch label"], labels: Sequence[int | None]
) -> Float[Tensor, " batch"]:
    """Each row's entry; one label for all is a plain column, which is felt on a small model."""
    if len(set(labels)) == 1:
        return scores[:, labels[0]]
    return scores[torch.arange(len(labels), device=scores.device), labels]
