"""Two texts that differ in a word or two, and the attention that differs with them.

The texts are aligned place by place. This is a probe for bias.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from math import isnan
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float, Int

from whence.core.attribution import HOLDS
from whence.core.bootstrap import FEWEST_TEXTS
from whence.core.errors import InputError
from whence.core.maps import AttentionMaps
from whence.core.percent import digits, percent
from whence.core.render import render
from whence.core.showing import signs, token_name, visible
from whence.core.templates import Templates
from whence.core.units import distinct
from whence.core.writing import write_text

LAST_DIGITS = 1e-4  # points, or of another number: what is less may be a model's rounding


@dataclass(frozen=True)
class Change:
    """One weight that differs between the two texts: second less first."""

    kind: str
    layer: str
    head: str
    source: str  # the place that looks, "She → He" where the texts differ
    to: str
    first: float
    second: float

    @property
    def change(self) -> float:
        """Second less first."""
        return self.second - self.first


@dataclass(frozen=True)
class Control:
    """What a swap changes that should not matter: neutral words where the two texts differ.

    ``value`` is the change of the target's value, NaN where the model makes no prediction;
    ``largest`` and ``mean`` are of the sizes of all changes of attention.
    """

    first: str
    second: str
    value: float
    largest: float
    mean: float

    @property
    def name(self) -> str:
        """The swap in words."""
        return f"{self.first} → {self.second}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, which knows no NaN: null where nothing is predicted."""
        return vars(self) | {"value": None if isnan(self.value) else self.value}


@dataclass(frozen=True)
class Reading:
    """The number that is compared between texts.

    ``of`` says what it is a number of. Changes of a probability are counted in points: a hundredth
    of 1.
    """

    of: str
    is_probability: bool = True

    @property
    def name(self) -> str:
        """What the number is."""
        return f"probability of {_label(self.of)}" if self.is_probability else self.of

    def worded(self, change: float) -> str:
        """A change, as it is read."""
        return f"{self._number(change)}{self._unit}"

    def between(self, low: float, high: float) -> str:
        """An interval of changes."""
        return f"{self._number(low)} to {self._number(high)}{self._unit}"

    @property
    def _unit(self) -> str:
        return " points" if self.is_probability else ""

    def _number(self, change: float) -> str:
        """Without the sign of a zero; what is not zero is shown, unless a model's rounding is more.

        >>> Reading("good").worded(0.0004), Reading("good").worded(-1e-9)
        ('+0.04 points', '+0.0 points')
        """
        scaled, decimals = (100 * change, 1) if self.is_probability else (change, 3)
        rounded = round(scaled, decimals)
        if rounded or self.is_rounding(change):
            return f"{rounded + 0.0:+.{decimals}f}"
        return f"{scaled:+.1g}"

    def is_rounding(self, change: float) -> bool:
        """Whether a change is no more than the last digits of a model's numbers."""
        return abs(100 * change if self.is_probability else change) < LAST_DIGITS


@dataclass(frozen=True, eq=False)
class Probe:
    """Two maps over the places that both texts have, and how they differ.

    ``difference[kind]`` is "layer head from to", second less first. ``changed`` marks the places
    where the texts say different things.
    """

    first: AttentionMaps
    second: AttentionMaps
    labels: tuple[str, ...]
    changed: tuple[bool, ...]
    # of each aligned place: its index in the first and in the second text
    places: Int[np.ndarray, "place 2"]
    difference: Mapping[str, Float[np.ndarray, "layer head from to"]]
    left_out: tuple[str, ...]  # words that have no counterpart
    # what the model says to each of the two, most likely first; empty where it predicts nothing
    predictions: tuple[Mapping[str, float], ...] = ()
    reading: Reading | None = None
    values: tuple[float, ...] = ()
    controls: tuple[Control, ...] = ()
    several_labels: bool = False  # each label has its own yes or no

    @property
    def largest(self) -> float:
        """The largest change of a weight, without its sign."""
        return max(float(np.abs(d).max(initial=0.0)) for d in self.difference.values())

    @property
    def mean_size(self) -> float:
        """The mean change of a weight, without its sign."""
        sizes = np.concatenate([np.abs(d).ravel() for d in self.difference.values()])
        return float(sizes.mean()) if sizes.size else 0.0

    def answer(self) -> list[str]:
        """What was found, in sentences: what the model says, and whether neutral words do the same.

        A change counts as more than that of neutral words where it is larger than the largest of
        theirs. There are few of them, so this is a caution and no test.

        Said first of any two texts; that both are read alike only where the tokens, the image, the
        attention and the numbers are the same, and that a pair says little where they are not.
        """
        if self.is_same and self._has_the_same_input and len(set(self.values)) < 2:
            return ["The model reads both texts alike."]
        lines = []
        if self.predictions:
            lines.append(self._said())
        if self.reading is not None and len(self.values) == 2:
            change = self.reading.worded(self.values[1] - self.values[0])
            lines.append(f"The {self.reading.name} changes by {change}. {self._beside_values()}")
        lines.append(f"{self._of_attention()} {self._beside_attention()}")
        lines.append("One pair of sentences says little: templates give an interval over many.")
        return [line.strip() for line in lines]

    def _said(self) -> str:
        """What the model says to each text. Said where it predicts."""
        if self.several_labels:
            first, second = map(self._that_hold, self.predictions)
            return f"The model says {first} to the first, and {second} to the second."
        one, two = (next(iter(p.items())) for p in self.predictions)
        first, second = self._number(one[1]), self._number(two[1])
        if one[0] == two[0]:
            return f"The model says {_label(one[0])} to both: {first}, then {second}."
        return (
            f"The model says {_label(one[0])} ({first}) to the first, "
            f"and {_label(two[0])} ({second}) to the second."
        )

    def _that_hold(self, said: Mapping[str, float]) -> str:
        """The labels of one text that hold; of none that does, the nearest to it.

        Said where each label has its own yes or no: which of them hold for a text.
        """
        shown = [f"{_label(name)} ({self._number(p)})" for name, p in said.items() if p >= HOLDS]
        if shown:
            return " and ".join(shown)
        highest = max(said, key=lambda name: said[name])
        nearest = f"{_label(highest)}, {self._number(said[highest])}"
        return f"none of its labels (highest is {nearest})"

    def _number(self, said: float) -> str:
        """A probability, or the one number of a model whose scale is its own."""
        has_labels = all(len(given) > 1 for given in self.predictions)
        is_probability = self.reading is None or self.reading.is_probability or has_labels
        return _percent(said) if is_probability else f"{said:.3f}"

    def _of_attention(self) -> str:
        """Said where texts are not read alike: the largest change of a weight, if there is any."""
        if self.is_same:
            return "No weight of attention differs."
        return f"The largest change of a head's attention is {_points(self.largest)}."

    def _beside_values(self) -> str:
        """Said where neutral words were put in the same places, and the model predicts."""
        if not self.controls or self.reading is None:
            return ""
        most = max(self.controls, key=lambda control: abs(control.value))
        change = self.reading.worded(most.value)
        own = self.reading.worded(self.values[1] - self.values[0])
        is_more = abs(self.values[1] - self.values[0]) > abs(most.value)
        # a difference that is not shown is none to the reader
        verdict = "more than" if is_more and own[1:] != change[1:] else "no more than"
        return f"That is {verdict} neutral words do ({most.name}: {change})."

    def _beside_attention(self) -> str:
        """Said after the largest change: whether neutral words change a weight as far; or, without
        a control, that nothing says so.
        """
        if not self.controls:
            return "There is no control, so nothing says what neutral words do here."
        most = max(self.controls, key=lambda control: control.largest)
        shown = _points(most.largest)
        is_more = self.largest > most.largest and _points(self.largest) != shown
        verdict = "more than" if is_more else "no more than"
        return f"That is {verdict} neutral words do ({most.name}: {shown})."

    def strongest(self, count: int = 10, source: str | None = None) -> list[Change]:
        """The weights that differ most, among all heads.

        ``source`` takes only the weights with which that place looks at others.
        """
        changes = []
        for kind, difference in self.difference.items():
            size = np.abs(difference)
            if source is not None:
                size = np.where(self._is_called(source)[:, None], size, -1)
            order = np.argsort(-size, axis=None, kind="stable")[:count]
            for where in zip(*np.unravel_index(order, size.shape), strict=True):
                layer, head, row, column = map(int, where)
                changes.append(self._change(kind, layer, head, row, column))
        return sorted(changes, key=lambda change: -abs(change.change))[:count]

    def _is_called(self, name: str) -> Bool[np.ndarray, " place"]:
        """The places of that name, in either of the texts; with a number, only the one meant."""
        kind = next(iter(self.difference))
        one, two = self.first.to_axis[kind].labels, self.second.to_axis[kind].labels
        here = []
        for label, (a, b) in zip(self.labels, self.places, strict=True):
            here.append(name in (label, one[a], two[b]))
        if not any(here):
            raise InputError(
                f"no aligned place is called {name!r}; there are: {', '.join(self.labels)}."
            )
        return np.array(here)

    def mean(self, kind: str | None = None) -> Float[np.ndarray, "from to"]:
        """The difference, averaged over layers and heads."""
        return self.difference[kind or next(iter(self.difference))].mean((0, 1))

    def _change(self, kind: str, layer: int, head: int, row: int, column: int) -> Change:
        first, second = self.first.weights[kind], self.second.weights[kind]
        looks, seen = self.places[row], self.places[column]
        return Change(
            kind=kind,
            layer=self.first.layer_names(kind)[layer],
            head=self.first.head_names(kind)[head],
            source=self.labels[row],
            to=self.labels[column],
            first=float(first[layer, head, looks[0], seen[0]]),
            second=float(second[layer, head, looks[1], seen[1]]),
        )

    def to_dict(self, count: int = 50) -> dict[str, Any]:
        """Plain values for JSON: places, mean difference, and the weights that differ most."""
        strongest = [vars(c) | {"change": c.change} for c in self.strongest(count)]
        return {
            "texts": [self.first.passage.text, self.second.passage.text],
            "places": list(self.labels),
            "changed": list(self.changed),
            "left_out": list(self.left_out),
            "answer": self.answer(),
            "predictions": [dict(p) for p in self.predictions],
            "reading": None if self.reading is None else self.reading.name,
            "values": list(self.values),
            "controls": [control.to_dict() for control in self.controls],
            "largest_change": self.largest,
            "mean_size_of_change": self.mean_size,
            "mean_difference": {kind: self.mean(kind).tolist() for kind in self.difference},
            "strongest": strongest,
        }

    def to_html(self, path: str | Path | None = None) -> str:
        """A page with the aligned texts, the mean difference as a heat-map, and what differs most.

        It is written to ``path`` if one is given.
        """
        page = render("probe_page", self)
        if path is not None:
            write_text(path, page)
        return page

    def _repr_html_(self) -> str:
        return render("probe_fragment", self)

    @property
    def is_same(self) -> bool:
        """Whether no weight differs.

        The model then reads the same tokens from both, perhaps because it knows neither word.
        """
        return not any(d.any() for d in self.difference.values())

    @property
    def _has_the_same_ids(self) -> bool:
        return np.array_equal(self.first.passage.ids, self.second.passage.ids)

    @property
    def _has_another_image(self) -> bool:
        one, two = self.first.passage.pixels, self.second.passage.pixels
        return one is not None and two is not None and not np.array_equal(one, two)

    @property
    def _has_the_same_input(self) -> bool:
        return self._has_the_same_ids and not self._has_another_image

    def about(self) -> list[str]:
        """What was aligned, what was not, and which maps were compared, in a line each.

        Said below the answer: where the texts differ, if they do, and which maps were not compared.
        """
        apart = [label for label, changed in zip(self.labels, self.changed, strict=True) if changed]
        if self._has_another_image:
            apart.append("the image")

        count = len(self.labels)
        aligned = "1 place aligned" if count == 1 else f"{count} places aligned"
        if apart:
            aligned += f"; they differ in: {', '.join(apart)}"
        lines = [aligned]

        if self.left_out:
            lines.append(f"without a counterpart: {', '.join(self.left_out)}")

        unseen = [kind for kind in self.first.kinds if kind not in self.difference]
        if unseen:
            compared = ", ".join(self.difference)
            lines.append(f"compared by {compared} attention; not by {', '.join(unseen)}")

        if self.is_same:
            lines.append(self._why_same(bool(apart or self.left_out)))
        return lines

    def _why_same(self, has_other_words: bool) -> str:
        """Said where no weight differs."""
        if not self._has_the_same_ids:
            return "no weight differs, though the model reads other tokens from the second text"
        same = "no weight differs: the model reads the same tokens from both texts"
        return f"{same} (their words may be unknown to its tokenizer)" if has_other_words else same

    def __repr__(self) -> str:
        return visible(f"Probe({'; '.join(self.about())})")


def _label(name: str) -> str:
    """A label; in quotes where white space is part of it, as in some tokens.

    >>> _label("good"), _label(" good")
    ('good', '“good”')
    """
    return name if name and name == name.strip() else f"“{name.strip() or signs(name)}”"


def _percent(share: float) -> str:
    return percent(share, 1)


def _points(change: float) -> str:
    """A change of a weight in hundredths; a small one is never none.

    >>> _points(0.123), _points(0.01), _points(0.004), _points(0.998)
    ('12 points', '1 point', '0.4 points', '99.8 points')
    """
    points = 100 * change
    shown = digits(change) if points >= 1 else f"{points:.1g}"
    return f"{shown} point{'' if shown == '1' else 's'}"


def probed(first: AttentionMaps, second: AttentionMaps) -> Probe:
    """Align the places of two maps of one model and subtract."""
    kinds = _comparable(first, second)
    one, two = first.to_axis[kinds[0]].labels, second.to_axis[kinds[0]].labels
    places, left_out = aligned(one, two)
    if not places:
        raise InputError("the two texts have no word in common, so nothing can be aligned.")

    shown = first.to_axis[kinds[0]].shown, second.to_axis[kinds[0]].shown
    labels = []
    for a, b in places:
        if one[a] == two[b]:
            labels.append(shown[0][a])
        elif shown[0][a] == shown[1][b]:  # with a blank before it in one of them
            labels.append(f"{one[a]} → {two[b]}")
        else:
            labels.append(f"{shown[0][a]} → {shown[1][b]}")

    i, j = np.array(places).T
    difference = {}
    for kind in kinds:
        in_first = first.weights[kind][:, :, i][..., i]
        in_second = second.weights[kind][:, :, j][..., j]
        difference[kind] = in_second - in_first

    return Probe(
        first=first,
        second=second,
        labels=distinct(labels),
        changed=tuple(one[a] != two[b] for a, b in places),
        places=np.array(places),
        difference=difference,
        left_out=tuple(map(token_name, left_out)),
    )


def _comparable(first: AttentionMaps, second: AttentionMaps) -> list[str]:
    """The kinds of map that both have over the same places.

    Places are aligned once, so only such maps are subtracted: of an encoder-decoder, the encoder's.
    """
    in_first = [kind for kind in first.kinds if _is_over_places(first, kind)]
    in_second = [kind for kind in second.kinds if _is_over_places(second, kind)]
    kinds = [kind for kind in in_first if kind in in_second]
    same = [first.weights[k].shape[:2] == second.weights[k].shape[:2] for k in kinds]
    if not kinds or not all(same):
        raise InputError(
            "two texts are compared by self-attention of the same layers and heads of one model; "
            "these maps have none in common."
        )
    return kinds


def _is_over_places(maps: AttentionMaps, kind: str) -> bool:
    """Whether both sides of a kind of map are the places of the first kind."""
    places = maps.to_axis[maps.kinds[0]].labels
    return maps.from_axis[kind].labels == places == maps.to_axis[kind].labels


def aligned(
    one: Sequence[str], two: Sequence[str]
) -> tuple[list[tuple[int, int]], tuple[str, ...]]:
    """Pairs of places, and the words that are left over.

    Paired are equal words, and words between them that stand for one another one to one.

    >>> aligned(["the", "nurse", ".", "She"], ["the", "nurse", ".", "He"])
    ([(0, 0), (1, 1), (2, 2), (3, 3)], ())
    >>> aligned(["a", "b"], ["a", "x", "b"])
    ([(0, 0), (1, 2)], ('x',))
    """
    pairs, left = [], []
    matcher = SequenceMatcher(a=list(one), b=list(two), autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        one_to_one = kind == "replace" and b - a == d - c
        if kind == "equal" or one_to_one:
            pairs += list(zip(range(a, b), range(c, d), strict=True))
        else:
            left += [*one[a:b], *two[c:d]]
    return pairs, tuple(left)


# ---------------------------------------------------------------------- over templates


TemplateVerdict = Literal[
    "one template",
    "too few templates",
    "all the same",
    "not separable",
    "no control",
    "as neutral words",
    "differs",
]
FEWEST_TEMPLATES = FEWEST_TEXTS  # of fewer, an interval holds what it should only by luck
ALIKE = 1e-7  # of the largest change: the last digits of a model's numbers


def all_same(differences: Float[np.ndarray, " template"]) -> bool:
    """Whether all templates give the same change, but for rounding.

    >>> all_same(np.array([0.2, 0.2])), all_same(np.array([0.2, 0.3]))
    (True, False)
    """
    return bool(np.ptp(differences) <= ALIKE * np.abs(differences).max())


@dataclass(frozen=True, eq=False)
class Contrast:
    """How far second texts differ from first ones over templates, with a 95 % interval of the mean.

    The interval is Student's, over templates. It is NaN where there are fewer than five of them,
    and where all give the same.
    """

    name: str
    differences: Float[np.ndarray, " template"]
    low: float
    high: float

    @property
    def mean(self) -> float:
        """Over templates."""
        return float(self.differences.mean())

    @property
    def up(self) -> int:
        """In how many templates the second texts have more."""
        return int((self.differences > 0).sum())

    @property
    def down(self) -> int:
        """In how many templates the first texts have more."""
        return int((self.differences < 0).sum())

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval lies on one side of 0."""
        return self.low > 0 or self.high < 0

    @property
    def has_interval(self) -> bool:
        """Whether there were enough templates for one."""
        return not (isnan(self.low) or isnan(self.high))

    @property
    def reach(self) -> float:
        """How far from 0 the mean may lie, on either side."""
        if not self.has_interval:
            return abs(self.mean)
        return max(abs(self.low), abs(self.high))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "name": self.name,
            "mean": self.mean,
            "interval": [self.low, self.high] if self.has_interval else None,
            "up": self.up,
            "down": self.down,
            "differences": self.differences.tolist(),
        }


@dataclass(frozen=True, eq=False)
class TemplateProbe:
    """Two lists of words in many sentences: how far a prediction differs, beside neutral words."""

    model: str
    templates: Templates
    reading: Reading
    contrast: Contrast
    controls: tuple[Contrast, ...]

    @property
    def verdict(self) -> TemplateVerdict:
        """By the intervals alone.

        "differs": the interval excludes 0, and the mean is further from 0 than every end of a
        control's interval. "as neutral words": it excludes 0, but neutral words may reach as far.
        "no control": it excludes 0, and nothing is there to hold it against. "not separable": it
        holds 0, or the mean is no more than rounding. The others say why there is no interval.
        """
        if len(self.templates) < 2:
            return "one template"
        if len(self.templates) < FEWEST_TEMPLATES:
            return "too few templates"
        if not self.contrast.has_interval:
            return "all the same"
        if not self.contrast.excludes_zero or self.reading.is_rounding(self.contrast.mean):
            return "not separable"
        if not self.controls:
            return "no control"
        reach = max(control.reach for control in self.controls)
        return "differs" if abs(self.contrast.mean) > reach else "as neutral words"

    def answer(self) -> list[str]:
        """What was found, in sentences.

        Said first of templates: the mean change, its interval where there is one, in how many it
        rises and falls, and what that may be taken for.
        """
        c, worded = self.contrast, self.reading.worded
        count = len(self.templates)
        where, mean = f"Over {_templates(count)}", " on average"
        if count == 1:  # which is no mean
            where, mean = "In the only template", ""
        lines = [
            f"{where}, the {self.reading.name} changes by {worded(c.mean)}{mean} "
            f"from {self.templates.first} to {self.templates.second}"
        ]
        if self.verdict not in WITHOUT_INTERVAL:
            lines[0] += f" (95 % interval {self.reading.between(c.low, c.high)})"
        if count > 1:
            same = count - c.up - c.down
            lines[0] += f"; it rises in {c.up}, falls in {c.down} and stays in {same}"
        lines[0] += "."
        lines.append(CONCLUSIONS[self.verdict])
        lines += self._of_neutral_words()
        if self.templates.repeated:
            repeated = _templates(self.templates.repeated)
            lines.append(f"{repeated} that stood there before: not counted again.")
        return lines

    def _of_neutral_words(self) -> list[str]:
        """Said where neutral words were put there too: what the pair does that does most."""
        if not self.controls:
            return []
        most = max(self.controls, key=lambda control: abs(control.mean))
        up_to = "by up to" if len(self.controls) > 1 else "by"
        change = self.reading.worded(most.mean)
        mean = " on average" if len(self.templates) > 1 else ""
        return [f"Neutral words change it {up_to} {change}{mean} ({most.name})."]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        lines = [template.line for template in self.templates.templates]
        return {
            "model": self.model,
            "answer": self.answer(),
            "verdict": self.verdict,
            "reading": self.reading.name,
            "first": self.templates.first,
            "second": self.templates.second,
            "contrast": self.contrast.to_dict(),
            "controls": [control.to_dict() for control in self.controls],
            "templates": lines,
        }

    def to_html(self, path: str | Path | None = None) -> str:
        """A page with the answer, the intervals and every template; also written to ``path``."""
        page = render("templates_page", self)
        if path is not None:
            write_text(path, page)
        return page

    def _repr_html_(self) -> str:
        return render("templates_fragment", self)

    def __repr__(self) -> str:
        return visible(f"TemplateProbe({' '.join(self.answer())})")


def _templates(count: int) -> str:
    return "1 template" if count == 1 else f"{count} templates"


WITHOUT_INTERVAL = ("one template", "too few templates", "all the same")
# Said behind the mean change over templates, by the verdict.
CONCLUSIONS = {
    "one template": "One template says nothing about others: give several.",
    "too few templates": (
        f"That is too few for an interval, and so for a verdict: give at least {FEWEST_TEMPLATES}."
    ),
    "all the same": (
        "All of them change it alike, so nothing says how far it would change in others."
    ),
    "no control": "Nothing says what neutral words do here, so read no bias into it yet.",
    "not separable": "With these templates this cannot be told from no difference at all.",
    "as neutral words": (
        "As far as these templates tell, neutral words may do as much, so read no bias into it."
    ),
    "differs": "This is more than neutral words do.",
}
