"""probe: two texts, or two lists of words in many sentences, and what differs between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from math import nan, sqrt
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from whence.core.errors import InputError, TargetError, Unsupported
from whence.core.look import Look
from whence.core.passage import Passage
from whence.core.probe import (
    FEWEST_TEMPLATES,
    Contrast,
    Control,
    Probe,
    Reading,
    TemplateProbe,
    aligned,
    all_same,
    probed,
)
from whence.core.target import Target, as_target
from whence.core.templates import NEUTRAL, Templates, as_templates, swapped
from whence.explaining.attend import OPTIONS, forecast_look, look_at
from whence.models.model import Model
from whence.trace.memory import Forecast, check

Pair = tuple[str, str]


def probe(
    model: Model,
    first: Any,
    second: Any,
    *,
    control: Sequence[Pair] = NEUTRAL,
    forecast: Callable[[Forecast], None] | None = None,
    **options: Any,
) -> Probe:
    """Two texts aligned: both predictions, and the attention that differs between them.

    Options are those of ``attend``. ``control`` are pairs of words that should make no difference.
    They are put where the texts differ, and what they change is measured too; pairs that the model
    does not know are left out.

    >>> import whence
    >>> model = whence.load("sentiment")
    >>> p = whence.probe(model, "the nurse was late. She", "the nurse was late. He")
    >>> [c for c in p.labels if "→" in c]
    ['She → He']
    """
    look = Look(**options)
    need = _forecast(model, first, second, look)
    if forecast is not None:
        forecast(need)
    check(need, look.memory, OPTIONS)
    result = probed(look_at(model, first, look), look_at(model, second, look))
    predicts = model.kind.has_head and not model.kind.fills_a_mask and not look.generate
    target = None
    if predicts:
        logits = model.logits([result.first.passage])[0]
        target = _fixed(model, look.target, logits)
        result = _with_predictions(model, result, target)
    if not (isinstance(first, str) and isinstance(second, str)) or result.is_same:
        return result

    controls = []
    for words in control:
        texts = swapped(first, second, words)
        if texts is not None and _tells_apart(model, words):
            controls.append(_control(model, texts, words, look, target))
    return replace(result, controls=tuple(controls))


def _forecast(model: Model, first: Any, second: Any, look: Look) -> Forecast:
    """What both texts and their difference hold, and what is on the way to the last of them.

    Neutral words are looked at while the result is held.
    """
    each = [forecast_look(model, text, look) for text in (first, second)]
    larger = max(each, key=lambda one: one.total)
    maps = max(one.kept for one in each)
    has_controls = isinstance(first, str) and isinstance(second, str)
    pairs = 2 if has_controls else 1
    # of one pair: two maps and their difference, and two copies while it is made
    kept = pairs * 3 * maps
    on_the_way = max(larger.working - maps, 2 * maps)
    return replace(larger, kept=kept, working=on_the_way, what="the attention maps of two texts")


def _with_predictions(model: Model, p: Probe, target: Target) -> Probe:
    """The probe with what the model says to both texts."""
    logits = model.logits([p.first.passage, p.second.passage])
    values = _read(model, logits, target)
    texts = (p.first.passage, p.second.passage)
    said = [model.prediction(row, own) for row, own in zip(logits, texts, strict=True)]
    return replace(
        p,
        predictions=tuple(dict(s.probabilities or s.logits) for s in said),
        reading=_reading(target),
        values=tuple(values.tolist()),
        several_labels=model.several_labels,
    )


def _control(model: Model, texts: Pair, words: Pair, look: Look, target: Target | None) -> Control:
    """The same with neutral words, for the same target."""
    p = probed(look_at(model, texts[0], look), look_at(model, texts[1], look))
    change = nan
    if target is not None:
        p = _with_predictions(model, p, target)
        change = p.values[1] - p.values[0]
    return Control(*words, value=change, largest=p.largest, mean=p.mean_size)


# ---------------------------------------------------------------------- over templates


def probe_templates(
    model: Model,
    templates: str | Iterable[str] | Templates,
    *,
    words: Sequence[str] = (),
    against: Sequence[str] = (),
    target: Target | str | int | None = None,
    control: Sequence[Pair] = NEUTRAL,
) -> TemplateProbe:
    """Two lists of words in many sentences: the mean change of a prediction, with an interval.

    ``templates`` are lines with a slot ``{}``, the content of a file of any kind that
    ``whence.core.templates`` reads, or Templates. The word of ``against`` goes into the first text
    of a pair, that of ``words`` into the second. Of a classifier, the change is that of a
    probability: of ``target``, or of what the model says to the first text. A masked language model
    is asked for the word itself: its log-probability, less that of the other word. ``control`` are
    pairs of words that should make no difference, measured in the same way; a masked language model
    has none, as it would tell how common they are. A template that stands there twice is counted
    once, and fewer than five have no interval.

    >>> import whence
    >>> lines = ["{} was late again", "we met {} there"]
    >>> p = whence.probe_templates(whence.load("sentiment"), lines, words=["she"], against=["he"])
    >>> len(p.contrast.differences), p.contrast.up + p.contrast.down <= 2
    (2, True)
    """
    templates = as_templates(templates, words, against)
    measure, reading = _measure(model, templates, target)
    differences = _differences(templates, measure)
    name = f"{templates.first} → {templates.second}"

    controls = []
    for neutral in control:
        # a masked model is asked for the words themselves, and how common they are is part of that
        if model.kind.fills_a_mask or not _tells_apart(model, neutral):
            continue
        swaps = _swapped(templates, neutral)
        if swaps is not None:
            swap_name = f"{neutral[0]} → {neutral[1]}"
            controls.append(_contrast(swap_name, _differences(swaps, measure)))
    return TemplateProbe(
        model=model.name,
        templates=templates,
        reading=reading,
        contrast=_contrast(name, differences),
        controls=tuple(controls),
    )


Measure = Callable[[Sequence[Pair]], Float[np.ndarray, " pair"]]


def _measure(
    model: Model, templates: Templates, target: Target | str | int | None
) -> tuple[Measure, Reading]:
    """What is compared within a pair, second less first, and what it is called.

    Said of a masked language model, which is asked for the word itself: ``log-probability of the
    word at its place``.
    """
    if not model.kind.has_head:
        raise Unsupported("templates compare predictions, and this model makes none.")
    if model.kind.fills_a_mask:
        reading = Reading("log-probability of the word at its place", is_probability=False)
        return lambda pairs: _chances_of_words(model, pairs), reading
    if target is None and not model.kind.has_classes:
        raise TargetError(
            "a language model predicts a token: say whose probability is compared, "
            "with target= (--target)."
        )

    first_text = templates.templates[0].pairs[0][0]
    fixed = _fixed(model, target, model.logits([model.encode(first_text)])[0])

    def measure(pairs: Sequence[Pair]) -> Float[np.ndarray, " pair"]:
        passages = [model.encode(text) for pair in pairs for text in pair]
        values = _read(model, model.logits(passages), fixed)
        return values[1::2] - values[::2]

    return measure, _reading(fixed)


def _chances_of_words(model: Model, pairs: Sequence[Pair]) -> Float[np.ndarray, " pair"]:
    """How much likelier the second word is than the first where both texts differ, in logs."""
    masked, targets = [], []
    for first, second in pairs:
        passage, other = model.encode(first), model.encode(second)
        at, word, other_word = _changed_word(passage, other)
        masked.append(model.fill(passage, at))
        targets.append(Target(other_word, against=word))
    logits = model.logits(masked)
    out = []
    for row, target in zip(logits, targets, strict=True):
        out.append(_read(model, row[None], model.resolve(target, row))[0])
    return np.array(out)


def _changed_word(one: Passage, two: Passage) -> tuple[int, str, str]:
    """Where two passages differ, and the words there; in one place only."""
    places, left_out = aligned(one.names, two.names)
    changed = [(a, one.names[a], two.names[b]) for a, b in places if one.names[a] != two.names[b]]
    if left_out or len(changed) != 1:
        raise InputError(
            "a masked language model is asked for one word, and these texts differ in "
            f"{len(changed) + len(left_out)}: {one.text!r} and {two.text!r}."
        )
    return changed[0]


def _swapped(templates: Templates, neutral: Pair) -> Templates | None:
    """The templates with neutral words where their texts differ; None where that cannot be."""
    out = []
    for template in templates.templates:
        pairs = [swapped(first, second, neutral) for first, second in template.pairs]
        # pairs of one template may become alike: he → she and him → her
        kept = tuple(dict.fromkeys(pair for pair in pairs if pair is not None))
        if not kept:
            return None
        out.append(replace(template, pairs=kept))
    return replace(templates, templates=tuple(out))


def _differences(templates: Templates, measure: Measure) -> Float[np.ndarray, " template"]:
    """The mean over each template's pairs: templates, and not words, are counted."""
    pairs = [pair for template in templates.templates for pair in template.pairs]
    changes = measure(pairs)
    means, start = [], 0
    for template in templates.templates:
        end = start + len(template.pairs)
        means.append(changes[start:end].mean())
        start = end
    return np.array(means)


def _contrast(name: str, differences: Float[np.ndarray, " template"]) -> Contrast:
    """With Student's 95 % interval of the mean.

    There is none of few templates, nor of templates that all give the same: nothing says then how
    far others would lie from it.
    """
    from scipy.special import stdtrit

    count, low, high = len(differences), nan, nan
    if count >= FEWEST_TEMPLATES and not all_same(differences):
        half = stdtrit(count - 1, 0.975) * differences.std(ddof=1) / sqrt(count)
        low, high = float(differences.mean() - half), float(differences.mean() + half)
    return Contrast(name, differences, low, high)


# ---------------------------------------------------------------------- what is read


def _fixed(model: Model, target: Any, logits: Float[np.ndarray, " label"]) -> Target:
    """The target of all texts, by what the model says to the first of them."""
    wanted = as_target(target)
    if wanted.read == "logit" and not model.is_regression:
        # a probability is what a reader of a comparison can judge
        wanted = replace(wanted, read="probability")
    return model.resolve(wanted, logits)


def _read(
    model: Model, logits: Float[np.ndarray, "text label"], target: Target
) -> Float[np.ndarray, " text"]:
    rows = torch.from_numpy(np.asarray(logits, dtype=np.float64))
    return model.value(rows, [target] * len(rows)).numpy()


def _reading(target: Target) -> Reading:
    if target.read == "probability" and target.against is None:
        return Reading(str(target.label))
    return Reading(target.describe(), is_probability=False)


def _tells_apart(model: Model, words: Pair) -> bool:
    """Whether the model's tokenizer knows both words, and does not read them alike."""
    unknown = getattr(model.tokenizer, "unk_token_id", None)
    ids = [model.encode(word).ids.tolist() for word in words]
    return ids[0] != ids[1] and not any(unknown is not None and unknown in i for i in ids)
