"""How far an output depends on context: what is measured, what is selected, and how well.

A model gives the same output twice, once with a context and once without. PECoRe (Sarti et al.
2024) asks of each place of the output how far the two runs differ there (a *measure*), and takes
the places that stand out (*selection*) as those that depend on the context. Where people marked
these places, both can be scored (*gold*).

Everything here is a function of log-probabilities in nats. ``without`` and ``with`` always come in
this order. In inseq's words the run without context is the "original" and the one with context the
"contrast", as both are forced to the same output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import log
from typing import Literal, get_args

import numpy as np
from jaxtyping import Bool, Float, Int

from whence.core.bootstrap import ROUNDING, Mean, means, within
from whence.core.errors import InputError, SettingsError, unknown_name
from whence.core.heads import entropies

Measure = Literal[
    "kl-divergence", "p-cxmi", "in-context-pvi", "probability-difference", "likelihood-ratio"
]
MEASURES: tuple[Measure, ...] = get_args(Measure)
# what each measure says of an output that does not depend on the context
NEUTRAL: dict[Measure, float] = {
    "kl-divergence": 0.0,
    "p-cxmi": 0.0,
    "in-context-pvi": 0.0,
    "probability-difference": 0.0,
    "likelihood-ratio": 0.5,
}

# "tool": inseq's `attribute-context`; "paper": the evaluation of Sarti et al. 2024
Rule = Literal["tool", "paper"]
RULES: tuple[Rule, ...] = get_args(Rule)

# Of fewer written tokens than these, four can stand out at the most: where half of a short answer
# comes from the context, the mean and the deviation are those of the answer itself.
SHORT = 10
# A change of the written token's own probability, up or down, that no reader would call none. A
# divergence does not see it where the token was unlikely: from 0.03 % to 15 % is 0.16 nats.
LARGE_CHANGE = 4.0

SUMS_TO_ONE = 1e-2  # half precision rounds each of many probabilities; logits are far beyond it
ABOVE_ZERO = 1e-3  # what rounding may add to the logarithm of a probability of one
NOTHING_GOLD = 0.5  # the area between recall 1 at precision 0, and recall 0 at precision 1

OfTokens = Float[np.ndarray, "*place"]


# -------------------------------------------------------------------------- readings of one run


def cross_entropy(log_p: Float[np.ndarray, "*place"]) -> Float[np.ndarray, "*place"]:
    """−log P(token), in nats: how surprised the model is of each token.

    >>> cross_entropy(np.log(np.array([0.25, 1.0]))).round(4).tolist()
    [1.3863, 0.0]
    """
    return np.asarray(0.0 - _checked("log_p", log_p))


def perplexity(cross_entropy: Float[np.ndarray, "*place"]) -> Float[np.ndarray, "*place"]:
    """exp(cross-entropy in nats): among how many equally likely tokens the model hesitates.

    For a whole text, give the mean of its cross-entropies. inseq raises 2 to the nats, which is
    2.61 where 4 is right.

    >>> perplexity(np.array([np.log(4.0)])).round(9).tolist()
    [4.0]
    """
    return np.asarray(np.exp(cross_entropy, dtype=np.float64))


def entropy(log_p: Float[np.ndarray, "*place vocabulary"]) -> Float[np.ndarray, "*place"]:
    """−Σ P log P over the vocabulary, in nats: how undecided the model is.

    >>> entropy(np.log(np.array([[0.25, 0.25, 0.25, 0.25]]))).round(4).tolist()
    [1.3863]
    """
    p = np.exp(_distributions("log_p", log_p))
    return np.asarray(entropies(p[None])[0])  # of a single place too, it takes rows


# ------------------------------------------------------- measures of one place of the output


def kl_divergence(
    log_p_without: Float[np.ndarray, "*place vocabulary"],
    log_p_with: Float[np.ndarray, "*place vocabulary"],
) -> Float[np.ndarray, "*place"]:
    """KL(P_without ‖ P_with) = Σ P_without · log(P_without / P_with), in nats.

    It sees every token that the model could have written, not only the one that it wrote. The
    direction is that of PECoRe; the other one is another number. It is infinite where the context
    makes a token impossible that was possible without it.

    >>> without, with_context = np.array([[0.5, 0.5]]), np.array([[0.9, 0.1]])
    >>> kl_divergence(np.log(without), np.log(with_context)).round(4).tolist()
    [0.5108]
    """
    before = _distributions("log_p_without", log_p_without)
    after = _distributions("log_p_with", log_p_with)
    _check_alike(before, after)
    p = np.exp(before)
    # a token that is impossible without context adds nothing: 0 · log 0 is 0
    loss = np.subtract(before, after, out=np.zeros_like(p), where=p > 0)
    divergence = (p * loss).sum(-1)
    return np.asarray(np.maximum(divergence, 0.0))  # of equals, rounding may fall below


def in_context_pvi(log_p_without: OfTokens, log_p_with: OfTokens) -> OfTokens:
    """−log P_without(token) + log P_with(token), in nats: what the context says about the token.

    Pointwise usable information (Lu et al. 2023). Positive where the context makes the token more
    likely; 0 for a token that is impossible in both runs. It is ``p_cxmi`` in other units.

    >>> in_context_pvi(np.log(np.array([0.5])), np.log(np.array([0.9]))).round(4).tolist()
    [0.5878]
    """
    before = _checked("log_p_without", log_p_without)
    after = _checked("log_p_with", log_p_with)
    _check_alike(before, after)
    # equal ones are left at 0: of two that are −inf, the difference would be no number
    return np.subtract(after, before, out=np.zeros_like(after), where=after != before)


def p_cxmi(log_p_without: OfTokens, log_p_with: OfTokens) -> OfTokens:
    """log2(P_with(token) / P_without(token)), in bits (Fernandes et al. 2023).

    Pointwise conditional cross-mutual information: positive where the context makes the token more
    likely; 0 for a token that is impossible in both runs.

    >>> p_cxmi(np.log(np.array([0.5])), np.log(np.array([0.9]))).round(4).tolist()
    [0.848]
    """
    return np.asarray(in_context_pvi(log_p_without, log_p_with) / log(2))


def probability_difference(log_p_without: OfTokens, log_p_with: OfTokens) -> OfTokens:
    """P_with(token) − P_without(token), from −1 to 1: positive where the context helps.

    inseq's ``contrast_prob_diff`` is P_without − P_with here: it has the other sign.

    >>> probability_difference(np.log(np.array([0.5])), np.log(np.array([0.9]))).round(4).tolist()
    [0.4]
    """
    before = _checked("log_p_without", log_p_without)
    after = _checked("log_p_with", log_p_with)
    _check_alike(before, after)
    return np.asarray(np.exp(after) - np.exp(before))


def likelihood_ratio(log_p_without: OfTokens, log_p_with: OfTokens) -> OfTokens:
    """P_with(token) / (P_with(token) + P_without(token)), from 0 to 1.

    An output that does not depend on the context has 1/2, not 0. It rises with P-CXMI, so it ranks
    outputs alike, and a threshold may still select others.

    >>> likelihood_ratio(np.log(np.array([0.5])), np.log(np.array([0.9]))).round(4).tolist()
    [0.6429]
    """
    gained = in_context_pvi(log_p_without, log_p_with)
    return np.asarray(np.exp(-np.logaddexp(0.0, -gained)))


OF_TOKENS: dict[Measure, Callable[[OfTokens, OfTokens], OfTokens]] = {
    "p-cxmi": p_cxmi,
    "in-context-pvi": in_context_pvi,
    "probability-difference": probability_difference,
    "likelihood-ratio": likelihood_ratio,
}


def measured(
    measure: Measure,
    log_p_without: Float[np.ndarray, "*place vocabulary"],
    log_p_with: Float[np.ndarray, "*place vocabulary"],
    tokens: Int[np.ndarray, "*place"],
) -> Float[np.ndarray, "*place"]:
    """One score for each place of an output, from what both runs say of the whole vocabulary.

    ``tokens`` are the ids that stand in the output; the divergence does not look at them.

    >>> without, with_context = np.array([[0.5, 0.5]]), np.array([[0.9, 0.1]])
    >>> measured("p-cxmi", np.log(without), np.log(with_context), np.array([0])).round(4).tolist()
    [0.848]
    """
    if measure == "kl-divergence":
        return kl_divergence(log_p_without, log_p_with)
    if measure not in OF_TOKENS:
        raise unknown_name("measure", measure, MEASURES)
    before = _distributions("log_p_without", log_p_without)
    after = _distributions("log_p_with", log_p_with)
    _check_alike(before, after)
    return OF_TOKENS[measure](_at_tokens(before, tokens), _at_tokens(after, tokens))


def _at_tokens(
    log_p: Float[np.ndarray, "*place vocabulary"], tokens: Int[np.ndarray, "*place"]
) -> OfTokens:
    vocabulary = log_p.shape[-1]
    if tokens.size and not (tokens.min() >= 0 and tokens.max() < vocabulary):
        wrong = tokens[(tokens < 0) | (tokens >= vocabulary)].flat[0]
        raise InputError(
            f"token {int(wrong)} is outside the vocabulary of {vocabulary}: "
            "give the ids of the output, one for each place."
        )
    return np.take_along_axis(log_p, tokens[..., None], axis=-1)[..., 0]


# ------------------------------------------------------------------------------------- selection


def threshold_of(
    scores: Float[np.ndarray, " place"], rule: Rule = "tool", deviations: float = 1.0
) -> float:
    """The mean of the scores and ``deviations`` standard deviations above it.

    The deviation of "tool" is unbiased (n − 1), as torch's; that of "paper" is biased (n), as
    numpy's. A single score has none, and is its own threshold.

    >>> scores = np.array([0.0, 0.0, 3.0])
    >>> round(threshold_of(scores), 4), round(threshold_of(scores, "paper"), 4)
    (2.7321, 2.4142)
    """
    _check_rule(rule)
    known = _finite(scores)
    if not len(known):
        raise InputError("there are no scores, so there is no threshold: give at least one output.")
    freedom = len(known) - 1 if rule == "tool" else len(known)
    squares = ((known - known.mean()) ** 2).sum()
    return float(known.mean() + deviations * np.sqrt(squares / max(freedom, 1)))


def selected(
    scores: Float[np.ndarray, " place"],
    rule: Rule = "tool",
    deviations: float | None = 1.0,
    most: int | None = None,
    least: float | None = None,
    also: Bool[np.ndarray, " place"] | None = None,
) -> Bool[np.ndarray, " place"]:
    """Which outputs depend on the context: those whose scores stand out.

    The threshold is mean + ``deviations`` · std of all scores (``None``: no threshold). With "tool"
    the size of a score, without its sign, must be at least that, so that tokens which the context
    made unlikely count too; with "paper" the score itself must be above it. ``least`` is a floor
    that does not depend on the other scores: the size (or the score) must be above it. Where there
    is no threshold, it is 0 unless given. ``also`` marks places that are chosen whatever their
    scores, as by ``large_changes``. ``most`` keeps that many of the largest, and of equal ones the
    first.

    Equal scores, such as those of two equal contexts, or the score of a single output, do not
    stand out: none is selected. Only a floor without a threshold can judge them.

    >>> scores = np.array([0.1, 2.0, 0.0, 0.1])
    >>> selected(scores).tolist()
    [False, True, False, False]
    >>> selected(scores, deviations=None, most=2).tolist()
    [True, True, False, False]
    >>> selected(np.zeros(4)).any(), selected(np.array([2.0]), deviations=None, least=1.0).any()
    (np.False_, np.True_)
    """
    _check_rule(rule)
    if deviations is None and most is None and least is None:
        raise SettingsError(
            "nothing says which outputs to select: "
            "give deviations (1.0 is usual), most (how many), or least (a floor)."
        )
    if most is not None and most < 1:
        raise SettingsError(f"most is {most}: give at least 1 output, or None for all that fit.")
    known = _finite(scores)
    sizes = np.abs(known) if rule == "tool" else known
    has_own_floor = deviations is None and least is not None
    if not has_own_floor and not _differ(known):
        return np.zeros(known.shape, dtype=bool)

    chosen = np.ones(known.shape, dtype=bool)
    if deviations is not None:
        threshold = threshold_of(known, rule, deviations)
        chosen &= sizes >= threshold if rule == "tool" else sizes > threshold
    if least is not None:
        chosen &= sizes > least
    elif deviations is None:
        chosen &= sizes > 0
    if also is not None:
        chosen |= also
    if most is not None:
        chosen = _largest(sizes, chosen, most)
    return chosen


def usual_floor(measure: Measure) -> float:
    """What a measure says where the context settles a choice: two tokens, even without it, 9 to 1.

    A place below it did not depend on the context in any sense that a reader would notice, however
    far it stands out of an output that depends on nothing.

    >>> round(usual_floor("kl-divergence"), 3), round(usual_floor("probability-difference"), 3)
    (0.511, 0.4)
    """
    without, with_context = np.log(np.array([[0.5, 0.5]])), np.log(np.array([[0.9, 0.1]]))
    return float(measured(measure, without, with_context, np.array([0]))[0])


def large_changes(
    without: OfTokens, with_context: OfTokens, factor: float = LARGE_CHANGE
) -> Bool[np.ndarray, "*place"]:
    """Where a token's own probability is ``factor`` times as large, or as small, with the context.

    These are probabilities, not their logarithms. A token that is impossible in both runs has not
    changed.

    >>> large_changes(np.array([0.0003, 0.14, 0.9]), np.array([0.15, 0.15, 0.1])).tolist()
    [True, False, True]
    """
    low, high = np.minimum(without, with_context), np.maximum(without, with_context)
    return (high > 0) & (high >= factor * low)


def _largest(
    sizes: Float[np.ndarray, " place"], chosen: Bool[np.ndarray, " place"], most: int
) -> Bool[np.ndarray, " place"]:
    """The largest of those that are chosen; of equal ones the first."""
    order = np.argsort(np.where(chosen, -sizes, np.inf), kind="stable")
    kept = np.zeros(chosen.shape, dtype=bool)
    kept[order[:most]] = True
    return kept & chosen


def _differ(scores: Float[np.ndarray, " place"]) -> bool:
    """Whether some scores are apart by more than the last digits."""
    if not len(scores):
        return False
    return bool(np.ptp(scores) > ROUNDING * np.abs(scores).max())


# ------------------------------------------------------------------------------- beside gold marks


@dataclass(frozen=True)
class GoldScore:
    """How well the scores of one example find its marked places: both from 0 to 1."""

    f1: float
    auprc: float


@dataclass(frozen=True)
class GoldScores:
    """The means over examples, with 95 % bootstrap intervals."""

    f1: Mean
    auprc: Mean


def macro_f1(found: Bool[np.ndarray, " place"], gold: Bool[np.ndarray, " place"]) -> float:
    """The mean F1 of the two classes, marked and not marked.

    A class that is neither in ``found`` nor in ``gold`` is left out, as in scikit-learn: where
    nothing is marked and nothing found, that is 1.

    >>> gold = np.array([True, False, False, False])
    >>> nothing = np.zeros(4, dtype=bool)
    >>> macro_f1(gold, gold), round(macro_f1(nothing, gold), 4), macro_f1(nothing, nothing)
    (1.0, 0.4286, 1.0)
    """
    _check_marks(found, gold)
    of_classes = []
    for is_marked in (True, False):
        in_found, in_gold = found == is_marked, gold == is_marked
        named = int(in_found.sum() + in_gold.sum())
        if named:
            of_classes.append(2 * int((in_found & in_gold).sum()) / named)
    return sum(of_classes) / len(of_classes)


def auprc(scores: Float[np.ndarray, " place"], gold: Bool[np.ndarray, " place"]) -> float:
    """The area under precision over recall, by trapezoids from precision 1 at recall 0.

    It is the published evaluation's, not average precision, which is a sum of steps and larger (the
    metric ``auprc`` of whence). Equal scores enter together. An example without a marked place has
    recall 1 at precision 0 throughout, as in scikit-learn, and so an area of 1/2.

    >>> auprc(np.array([3.0, 2.0, 1.0]), np.array([False, True, False]))
    0.25
    >>> auprc(np.array([3.0, 2.0, 1.0]), np.zeros(3, dtype=bool))
    0.5
    """
    known = _finite(scores)
    _check_marks(known, gold)
    if not gold.any():
        return NOTHING_GOLD
    order = np.argsort(-known, kind="stable")
    descending = known[order]
    hits = gold[order].cumsum()
    is_last_of_equals = np.append(descending[1:] < descending[:-1], True)
    named = np.flatnonzero(is_last_of_equals) + 1
    precision = np.append(1.0, hits[is_last_of_equals] / named)
    recall = np.append(0.0, hits[is_last_of_equals] / hits[-1])
    heights = (precision[1:] + precision[:-1]) / 2
    return float((np.diff(recall) * heights).sum())


def gold_score(
    scores: Float[np.ndarray, " place"],
    gold: Bool[np.ndarray, " place"],
    rule: Rule = "paper",
    deviations: float = 1.0,
) -> GoldScore:
    """Macro-F1 of the outputs that are selected, and AUPRC of the scores, of one example.

    >>> gold_score(np.array([0.1, 2.0, 0.0, 0.1]), np.array([False, True, False, False]))
    GoldScore(f1=1.0, auprc=1.0)
    """
    return GoldScore(
        f1=macro_f1(selected(scores, rule, deviations), gold), auprc=auprc(scores, gold)
    )


def gold_scores(
    examples: Iterable[tuple[Float[np.ndarray, " _"], Bool[np.ndarray, " _"]]],
    rule: Rule = "paper",
    deviations: float = 1.0,
    blocks: Int[np.ndarray, " example"] | None = None,
    seed: int = 0,
) -> GoldScores:
    """The same of many examples, each (scores, gold): the means, every example counting alike.

    ``blocks`` says which examples belong together, such as variants of one sentence. The bootstrap
    then draws whole blocks, as examples that resemble each other say less than as many others.

    >>> example = np.array([0.1, 2.0, 0.0, 0.1]), np.array([False, True, False, False])
    >>> gold_scores([example] * 5).f1
    Mean(mean=1.0, interval=(1.0, 1.0), texts=5)
    """
    values = []
    for scores, gold in examples:
        one = gold_score(scores, gold, rule, deviations)
        values.append((one.f1, one.auprc))
    if not values:
        raise InputError("there are no examples to score: give at least one (scores, gold).")
    f1, area = means_of_examples(np.array(values), blocks, seed)
    return GoldScores(_of_share(f1), _of_share(area))


def means_of_examples(
    values: Float[np.ndarray, "example column"],
    blocks: Int[np.ndarray, " example"] | None = None,
    seed: int = 0,
) -> list[Mean]:
    """The mean of each column over examples; its interval is of blocks of them, where given.

    >>> values = np.repeat(np.array([[1.0], [2.0], [3.0], [2.0], [2.0], [1.5]]), 4, axis=0)
    >>> alone, = means_of_examples(values)
    >>> together, = means_of_examples(values, np.arange(24) // 4)
    >>> together.mean == alone.mean, [round(x, 2) for x in together.interval]
    (True, [1.38, 2.59])
    """
    if blocks is None:
        return means(values, seed)
    if len(blocks) != len(values):
        raise InputError(
            f"{len(blocks)} blocks stand beside {len(values)} examples: "
            "give the number of its block for each example."
        )
    _, block_of = np.unique(blocks, return_inverse=True)
    sums = np.zeros((int(block_of.max()) + 1, values.shape[1]))
    np.add.at(sums, block_of, values)
    # scaled, so that the mean over blocks is the mean over examples, also where sizes differ
    of_blocks = means(sums * len(sums) / len(values), seed)
    return [Mean(one.mean, one.interval, len(values)) for one in of_blocks]


def _of_share(mean: Mean) -> Mean:
    return Mean(mean.mean, within(mean.interval, (0.0, 1.0)), mean.texts)


# ---------------------------------------------------------------------------- what is refused


def _checked(name: str, log_p: Float[np.ndarray, "*place"]) -> OfTokens:
    """Log-probabilities as float64: none is above 0, nor no number."""
    known = np.asarray(log_p, dtype=np.float64)
    if np.isnan(known).any():
        raise InputError(
            f"{name}: {int(np.isnan(known).sum())} of {known.size} values are NaN. "
            "Look for what the model returned there before it is measured."
        )
    if known.size and known.max() > ABOVE_ZERO:
        raise InputError(
            f"{name} goes up to {known.max():.4g}, and the logarithm of a probability is at most "
            "0: give log-probabilities (log_softmax of the logits), not logits or probabilities."
        )
    return np.minimum(known, 0.0)


def _distributions(
    name: str, log_p: Float[np.ndarray, "*place vocabulary"]
) -> Float[np.ndarray, "*place vocabulary"]:
    """Log-probabilities that are whole distributions: those of each place sum to one."""
    known = _checked(name, log_p)
    sums = np.exp(known).sum(-1)
    farthest = float(sums.flat[np.abs(sums - 1).argmax()]) if sums.size else 1.0
    if abs(farthest - 1) > SUMS_TO_ONE:
        raise InputError(
            f"{name}: the probabilities of a place sum to {farthest:.4g}, not to 1: give the "
            "log-probabilities of the whole vocabulary (log_softmax of the logits)."
        )
    return known


def _check_alike(before: np.ndarray, after: np.ndarray) -> None:
    if before.shape != after.shape:
        raise InputError(
            f"the run without context has the shape {before.shape}, and the one with context "
            f"{after.shape}: force both to the same output, and compare its places only."
        )


def _finite(scores: Float[np.ndarray, " place"]) -> Float[np.ndarray, " place"]:
    known = np.asarray(scores, dtype=np.float64)
    wrong = np.flatnonzero(~np.isfinite(known))
    if len(wrong):
        place = int(wrong[0])
        raise InputError(
            f"the score of place {place} is {known[place]}, so no threshold or order can be had "
            f"({len(wrong)} of {len(known)} scores are not finite). Leave such places out, or "
            "choose a measure that is finite there, such as probability-difference."
        )
    return known


def _check_marks(found: np.ndarray, gold: np.ndarray) -> None:
    if found.shape != gold.shape or not len(gold):
        raise InputError(
            f"{found.size} outputs stand beside {gold.size} marks: "
            "give one mark for each output, and at least one."
        )


def _check_rule(rule: str) -> None:
    if rule not in RULES:
        raise unknown_name("rule", rule, RULES)
