"""What is said of heads is read back, and is true of their weights."""

from __future__ import annotations

import html
import re

import numpy as np
import pytest

from tests.occasions.attention import attention_maps
from tests.views.parsing import PERCENT, Reader, is_percent
from whence.core.heads import is_punctuation
from whence.core.maps import AttentionMaps
from whence.views.attention import maps_fragment
from whence.views.heads import heads_view, maps_view
from whence.views.terminal import to_text

KINDS = ("previous", "next", "self", "repeats", "first", "separators", "punctuation", "one")
NAME = r"(?:“[^”]*”)"
HALF = 0.5


# ---------------------------------------------------------------------- the weights, read anew


class Heads:
    """What the heads of one kind of attention do: slowly, and from the weights alone."""

    def __init__(self, maps: AttentionMaps, kind: str) -> None:
        self.maps, self.kind = maps, kind
        self.weights = maps.weights[kind]
        self.axis = maps.to_axis[kind]
        self.is_own = kind != "cross" and maps.from_axis[kind].labels == self.axis.labels
        rows, columns = self.weights.shape[2:]
        self.is_causal = rows == columns > 1 and not np.triu(self.weights, 1).any()
        self.apart = self.axis.special.copy()
        self.apart[0] |= self.is_causal
        seen = np.maximum((self.weights > 0).any(1).sum(-1), 1)
        self.most = np.log(seen).mean(-1)

    @property
    def count(self) -> int:
        return self.weights.shape[0] * self.weights.shape[1]

    def places(self) -> list[tuple[int, int]]:
        return [(i, j) for i in range(self.weights.shape[0]) for j in range(self.weights.shape[1])]

    def share(self, kind: str, at: tuple[int, int]) -> float:
        w = self.weights[at]
        n = range(len(w))
        labels = [label.strip().lower() for label in self.axis.labels]
        first = np.arange(w.shape[1]) == 0
        if kind in ("previous", "next", "self"):
            step = {"previous": -1, "next": 1, "self": 0}[kind]
            told = [w[i, i + step] for i in n if 0 <= i + step < w.shape[1]]
            return float(np.mean(told)) if self.is_own and told else 0.0
        if kind == "repeats":
            twins = (
                [[j for j, b in enumerate(labels) if b == labels[i] and j != i] for i in n]
                if self.is_own
                else []
            )
            told = [sum(w[i, j] for j in js) for i, js in enumerate(twins) if js]
            return float(np.mean(told)) if told else 0.0
        if kind == "one":
            return float(max((w[:, j].mean() for j in np.flatnonzero(~self.apart)), default=0.0))
        marks = np.array([is_punctuation(label) for label in self.axis.labels])
        here = {
            "first": first,
            "separators": self.axis.special & ~first,
            "punctuation": marks & ~self.axis.special,
        }[kind]
        return float(w[:, here].sum(1).mean())

    def breadth(self, at: tuple[int, int]) -> float:
        w = self.weights[at]
        w = w / np.where(w.sum(1, keepdims=True) > 0, w.sum(1, keepdims=True), 1)
        entropy = -np.where(w > 0, w * np.log(np.where(w > 0, w, 1)), 0).sum(1).mean()
        return float(entropy / self.most[at[0]]) if self.most[at[0]] > 0 else 0.0

    def habit(self, at: tuple[int, int]) -> str:
        shares = [self.share(kind, at) for kind in KINDS]
        if max(shares) >= HALF:
            return KINDS[int(np.argmax(np.round(shares, 9)))]
        return "broad" if self.breadth(at) >= 0.9 else "mixed"

    def is_near_a_border(self) -> bool:
        """Whether rounding may decide which habit it is: such results are left to others."""
        for at in self.places():
            shares = sorted(self.share(kind, at) for kind in KINDS)
            close = abs(shares[-1] - HALF) < 1e-9 or abs(self.breadth(at) - 0.9) < 1e-9
            if close or 1e-10 < shares[-1] - shares[-2] < 1e-8:
                return True
        return False

    def aim(self, habit: str, at: tuple[int, int]) -> str:
        unit, names = self.maps.units, self.axis.names
        if habit == "first":
            is_unit = not self.apart[0]
            return f"the first {unit if is_unit else 'token'} “{as_shown(names[0])}”"
        if habit == "one":
            gets = np.where(self.apart, 0, self.weights[at].mean(0))
            return f"the {unit} “{as_shown(names[int(gets.argmax())])}”"
        return {
            "previous": f"the {unit} before",
            "next": f"the {unit} after",
            "self": f"the {unit} itself",
            "repeats": f"other places of the same {unit}",
            "separators": "special tokens",
            "punctuation": "punctuation",
            "broad": f"all {unit}s about alike",
        }[habit]

    def reach(self, at: tuple[int, int], allowed: np.ndarray) -> float:
        looks = ~self.axis.special if self.is_own and not self.axis.special.all() else None
        largest = np.where(allowed, self.weights[at], 0).max(1)
        return float((largest if looks is None else largest[looks]).mean())

    def far(self) -> np.ndarray:
        rows, columns = self.weights.shape[2:]
        distance = np.full((rows, columns), columns)
        if self.is_own:
            distance = np.abs(np.subtract.outer(np.arange(rows), np.arange(columns)))
        marks = np.array([is_punctuation(label) for label in self.axis.labels])
        return (distance > 1) & ~(marks | self.apart)


def as_shown(name: str) -> str:
    from whence.core.showing import visible

    return visible(name)


# ---------------------------------------------------------------------- what sentences say


def heads_of(maps: AttentionMaps) -> list[Heads]:
    """In the order in which they are told: the kind that is opened on comes first."""
    first = maps.opening().kind
    return [Heads(maps, kind) for kind in sorted(maps.weights, key=lambda kind: kind != first)]


def counted(h: Heads, of, said) -> bool:
    """Each part counts the heads of one habit, and together they are all."""
    total = int(of.split()[0])
    is_mean = h.maps.kept_heads == ("mean",)
    noun = "layer" if is_mean else "head"
    each = ", each by the mean of its heads" if is_mean and total > 1 else ""
    if of != f"{total} {noun}{'' if total == 1 else 's'}{each}" or total != h.count:
        return False
    by_habit: dict[str, int] = {}
    for at in h.places():
        habit = h.habit(at)
        by_habit[habit] = by_habit.get(habit, 0) + 1
    wanted = set()
    for habit, count in by_habit.items():
        look = "looks" if count == 1 else "look"
        at = next(one for one in h.places() if h.habit(one) == habit)
        what = f"{look} mostly at {h.aim(habit, at)}" if habit not in ("mixed", "broad") else ""
        if habit == "one":
            what = f"{look} mostly at one {h.maps.units}"
        if habit == "broad":
            what = f"{look} at {h.aim(habit, at)}"
        if habit == "mixed":
            what = f"{'has' if count == 1 else 'have'} no single habit"
        wanted.add(f"{count} {what}")
    parts = re.split(r", (?:and )?(?=\d+ (?:look|ha))", said)
    return set(parts) == wanted and len(parts) == len(wanted)


def apart(h: Heads, first, names, verb, share) -> bool:
    where = np.flatnonzero(h.apart)
    labels = list(dict.fromkeys(as_shown(h.axis.labels[j]) for j in where))
    told = re.findall(r"“([^”]*)”", names)
    return (
        told == labels[: len(told)]
        and (len(told) == len(labels) or len(labels) > 4)
        and (verb == "takes") == (len(where) == 1)
        and (first is not None) == (h.is_causal and len(where) == 1)
        and is_percent(share, float(h.weights[..., where].sum(-1).mean()))
    )


def worth(h: Heads, kind, layer, head) -> bool:
    opening = h.maps.opening()
    is_told = kind == (f"{h.kind} attention, " if len(h.maps.weights) > 1 else None)
    name = h.maps.head_names(h.kind)[opening.head]
    wanted = f"head {name}" if name.isdigit() else f"the {name} of its heads"
    return is_told and int(layer) == opening.layer and head == wanted


def it_does(h: Heads, does, because=None, of=None) -> bool:
    opening = h.maps.opening()
    at = opening.layer, opening.head
    return is_habit(h, at, does) and is_reason(h, at, because, of)


def is_habit(h: Heads, at: tuple[int, int], said: str) -> bool:
    habit = h.habit(at)
    if habit == "broad":
        return said == f"looks at {h.aim(habit, at)}"
    if habit != "mixed":
        found = re.fullmatch(rf"looks mostly at (.+) \(({PERCENT}) of its attention\)", said)
        return found[1] == h.aim(habit, at) and is_percent(found[2], h.share(habit, at))
    shares = {kind: h.share(kind, at) for kind in KINDS}
    named = [kind for kind in sorted(KINDS, key=lambda k: -shares[k]) if shares[kind] >= 0.1]
    if not named:
        return said == "has no habit that shows in this text"
    first, one = (h.aim(kind, at).partition("“")[2] for kind in ("first", "one"))
    if "first" in named and "one" in named and first == one:
        named.remove("one")  # the one place is the first, and stands there once
    found = re.fullmatch(r"has no single habit: it looks at (.+), among others", said)
    parts = re.split(r" and at ", found[1])
    told = [re.fullmatch(rf"(.+) \(({PERCENT})\)", part).groups() for part in parts]
    return len(told) == len(named[:2]) and all(
        any(aim == h.aim(kind, at) and is_percent(share, shares[kind]) for kind in named)
        for aim, share in told
    )


def is_reason(h: Heads, at: tuple[int, int], because: str | None, of: str | None) -> bool:
    """No other head of this kind has more of what is named; there is none where it is alone."""
    if h.count == 1:
        return because is None
    if (of is not None) != (len(h.maps.weights) > 1) or (of is not None and of != h.kind):
        return False
    effects = h.maps.effects.get(h.kind)
    far = h.far()
    is_far = bool(np.where(far, h.weights, 0).any())
    if effects is not None:
        lost = effects["output_change"]
        return because.startswith("changes the output more") and lost[at] == lost.max()
    if is_far:
        best = max(h.reach(one, far) for one in h.places())
        return because == "links distant words more strongly" and h.reach(at, far) >= best - 1e-12
    return because == "looks more strongly at one place"


READER = Reader(
    {
        r"Of (?P<of>\d+ (?:heads?|layers?)(?:, each by the mean of its heads)?), "
        r"(?P<said>.+)\.": counted,
        rf"(?P<first>The first token )?(?P<names>{NAME}(?:(?:, | and ){NAME})*(?: and \d+ more)?) "
        rf"(?P<verb>takes?) (?P<share>{PERCENT}) of all attention\.": apart,
        r"Worth a look: (?P<kind>[\w-]+ attention, )?layer (?P<layer>\d+), "
        r"(?P<head>head \d+|the mean of its heads)": worth,
        r"It (?P<does>.+?)\.(?: It is shown first because (?:no other head|the mean of no other "
        r"layer)(?: of (?P<of>\w+) attention)? (?P<because>[a-z ]+)\.)?": it_does,
    }
)
SENTENCE = re.compile(
    r"^(Of \d+ .*|.* of all attention\.|Worth a look: .*|It (?:looks|has) .*)$", re.MULTILINE
)
HEADING = re.compile(
    r"^(?P<kind>\w+) attention: what its heads do  (?P<layers>\d+) (?P<word>layers?)"
    r"(?: × (?P<heads>\d+) (?P<of>heads?)|, mean over heads)$",
    re.MULTILINE,
)


def check(maps: AttentionMaps) -> None:
    kinds = heads_of(maps)
    if any(h.is_near_a_border() for h in kinds):
        return
    shown = to_text(lambda _: maps_view(maps), width=2000)
    blocks = re.split(r"(?=^\w+ attention: what)", shown, flags=re.MULTILINE)[1:]
    assert len(blocks) == len(kinds), shown
    for block, h in zip(blocks, kinds, strict=True):
        heading = HEADING.search(block)
        layers, heads = h.weights.shape[:2]
        assert heading["kind"] == h.kind
        assert int(heading["layers"]) == layers
        assert (heading["word"] == "layer") == (layers == 1)
        assert heading["heads"] is None or int(heading["heads"]) == heads
        own = block.split("Worth a look")[0]
        for line in SENTENCE.findall(own):
            READER.read(line.rstrip(), h)
        assert ("of all attention" in own) == h.apart.any()
        check_table(h, own)
    last = "Worth a look" + blocks[-1].split("Worth a look")[1]
    told = [line.rstrip() for line in last.splitlines() if line.strip()]
    READER.read(told[0], kinds[0])
    READER.read(told[1], kinds[0])
    assert told[-1] == "Attention says where a head reads, not what matters for the answer."
    check_links(kinds[0], told[2:-1])


def check_table(h: Heads, block: str) -> None:
    """Each habit with its number of heads, and the head that has most of it."""
    for row in re.findall(
        r"^(.+?) {2,}(\d+) *(?:layer (\d+), (?:head (\d+)|the mean of its heads)"
        rf" *({PERCENT})?)? *$",
        block,
        re.MULTILINE,
    ):
        what, count, layer, head, share = row
        habits = [
            habit for habit in (*KINDS, "broad", "mixed") if is_row(h, habit, what, layer, head)
        ]
        assert habits, (what, block)
        having = [at for at in h.places() if h.habit(at) == habits[0]]
        assert int(count) == len(having)
        if share:
            best = max(h.share(habits[0], at) for at in having)
            assert is_percent(share, best), (row, best)


def is_row(h: Heads, habit: str, what: str, layer: str, head: str) -> bool:
    if habit == "mixed":
        return what == "no single habit"
    if not layer:
        return False
    at = int(layer), int(head or 0)
    return h.habit(at) == habit and h.aim(habit, at) == what


def check_links(h: Heads, lines: list[str]) -> None:
    """The strongest place of each word that looks, of those that are left; strongest first."""
    opening = h.maps.opening()
    weights = np.where(h.apart, 0.0, h.weights[opening.layer, opening.head])
    if h.is_own:
        np.fill_diagonal(weights, 0.0)
    sources, seen = h.maps.from_axis[h.kind], h.axis
    last = 2.0
    for line in lines:
        source, to, share = re.fullmatch(rf"  (.+) → (.+)  ({PERCENT})", line).groups()
        rows = [i for i, name in enumerate(sources.names) if as_shown(name) == source]
        hits = [
            weights[i].max() for i in rows if as_shown(seen.names[int(weights[i].argmax())]) == to
        ]
        assert any(is_percent(share, float(weight)) for weight in hits), line
        assert max(hits) <= last + 1e-12
        last = max(hits)


def check_heads_view(maps: AttentionMaps) -> None:
    h = Heads(maps, next(iter(maps.weights)))
    shown = to_text(lambda _: heads_view(maps.heads()), width=300)
    noun = "layer" if maps.kept_heads == ("mean",) else "head"
    which = "that are most focused"
    if h.kind in maps.effects:
        which = "whose loss changes the output most"
    listed = f"the 12 of {h.count} {noun}s {which}"
    if h.count <= 12:
        listed = f"the {noun}" if h.count == 1 else f"all {h.count} {noun}s, those first {which}"
    assert f"\n{listed}\n" in re.sub(r" +\n", "\n", shown)


def check_page(maps: AttentionMaps) -> None:
    """The page's sentences that no script writes."""
    page = html.unescape(re.sub(r"<[^>]+>", "", maps_fragment(maps).split("<script")[0]))
    h = Heads(maps, maps.opening().kind)
    effects = h.kind in maps.effects
    is_far = bool(np.where(h.far(), h.weights, 0).any())
    assert ("changes the model's output more when it is switched off" in page) == effects
    assert ("No word looks at a word that is neither itself" in page) == (
        not effects and not is_far
    )
    assert ("In no other head" in page) == (not effects and is_far)
    causal = any(Heads(maps, kind).is_causal for kind in maps.weights)
    assert ("and the first token where no word looks ahead" in page) == causal
    dropped = maps.passage.dropped
    cut = "1 character was cut off." if dropped == 1 else f"{dropped:,} characters were cut off."
    assert (f"Only the beginning was read: {cut}" in page) == bool(dropped)


def hunt(results: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for number in range(results):
        maps = attention_maps(rng)
        check(maps)
        if number % 10 == 0:
            check_heads_view(maps)
            check_page(maps)


def test_what_is_said_of_heads_is_true_of_their_weights():
    hunt(60, 0)


@pytest.mark.slow
def test_what_is_said_of_many_heads_is_true_of_their_weights():
    hunt(900, 1)
    assert READER.never_met == []
