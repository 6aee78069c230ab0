"""How often words are named by chance, and how often where there is something to name.

    python -m bench.naming level            # look-up games: the scores of all methods are shuffled
    python -m bench.naming power            # planted models: some of the methods know something
    python -m bench.naming real             # bundled models, every subset of the words tried

A game is a saturating sum of words and pairs of words, drawn anew for each text. Shuffled: one
permutation of the words for the scores of all methods, so that what they share stays shared. The
rule is the one of ``core/naming.py``; beside it stands the one before (a binomial tail of .001, or
Bonferroni). What came out is in docs/evidence.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from math import factorial
from pathlib import Path

import numpy as np

from whence.core.agreement import rank_correlation
from whence.core.answer import binomial_tail
from whence.core.errors import Unsupported
from whence.core.evidence import LEVEL
from whence.core.naming import places_of, together
from whence.metrics.curves import Curves, curve_masks, steps_of
from whence.metrics.matter import Matter
from whence.metrics.rankings import MOST_LISTED
from whence.metrics.support import Support

LOTS = 25  # permutations of one text's scores
BORDER = 0.001  # of the rule before, for the binomial tail
ROUNDING = 1e-9
METRICS = {True: Support(), False: Matter()}
Game = Callable[[np.ndarray], np.ndarray]


# ------------------------------------------------------------------ games


def planted(
    rng: np.random.Generator,
    words: int,
    steep: float = 3.0,
    pairs: float = 0.5,
    against: bool = False,
) -> Game:
    """A saturating sum of words, a few of them strong, and of some pairs of words.

    With ``against`` each word by itself speaks against the target.
    """
    weights = rng.normal(size=words) * np.exp(0.7 * rng.normal(size=words))
    if against:
        weights = -np.abs(weights)
    are_paired = rng.random((words, words)) < 3 / words
    of_pairs = np.triu(pairs * rng.normal(size=(words, words)) * are_paired, 1)
    size = np.sqrt((weights**2).sum() + (of_pairs**2).sum())
    offset = 0.7 * rng.normal()

    def value(masks: np.ndarray) -> np.ndarray:
        kept = masks.astype(np.float64)
        of_kept = kept @ weights + ((kept @ of_pairs) * kept).sum(1)
        return 1 / (1 + np.exp(-offset - steep * of_kept / size))

    return value


def looked_up(values: np.ndarray, words: int) -> Game:
    """A game of which every value is known, by the number whose bits the mask is."""
    bits = 1 << np.arange(words)
    return lambda masks: values[masks.astype(np.int64) @ bits]


def one_out(game: Game, words: int) -> np.ndarray:
    """What each word's absence changes."""
    every = np.ones((1, words), dtype=bool)
    return game(every) - game(~np.eye(words, dtype=bool))


# ------------------------------------------------------------------ texts


@dataclass(frozen=True)
class Text:
    """A game, and the scores that methods with and without signs give its words."""

    game: Game
    scores: np.ndarray  # method word
    signed: np.ndarray  # method


@dataclass(frozen=True)
class Cell:
    """So many methods on texts of so many words, the good ones and the others."""

    words: int
    methods: int
    good: int = 0
    alike: float = 0.0  # the correlation of the others' scores
    mixed: bool = False  # every second method has no signs
    rankings: int = 100
    steep: float = 3.0
    pairs: float = 0.5
    twins: bool = False  # those without signs are the sizes of others; all words are against

    def text(self, rng: np.random.Generator) -> Text:
        """A new game; the good methods see its words with as much noise."""
        game = planted(rng, self.words, self.steep, self.pairs, self.twins)
        noise = rng.normal(size=(self.methods, self.words))
        shared = rng.normal(size=self.words)
        scores = np.sqrt(self.alike) * shared + np.sqrt(1 - self.alike) * noise
        if self.good:
            effects = one_out(game, self.words)
            scores[: self.good] = effects / effects.std() + noise[: self.good]
        signed = np.ones(self.methods, dtype=bool)
        if self.mixed:
            signed[1::2] = False
        if self.twins:
            scores = -np.abs(scores)
            scores[1::2] = scores[: 2 * (self.methods // 2) : 2]
        return Text(game, np.where(signed[:, None], scores, np.abs(scores)), signed)

    @property
    def name(self) -> str:
        """Its row of the table."""
        kind = "unrelated" if not self.alike else f"alike ({self.alike:g})"
        kind += ", half without signs" if self.mixed else ""
        kind += ", sizes of each other" if self.twins else ""
        kind += ", strong pairs" if self.pairs > 1 else ""
        kind += ", no pairs" if not self.pairs else ""
        kind += f", {self.rankings} rankings" if self.rankings != 100 else ""
        return f"| {self.words} | {self.methods} | {kind} "


def areas(game: Game, orders: np.ndarray) -> dict[bool, np.ndarray]:
    """The area of each order, as methods with signs are judged and as those without are."""
    steps = steps_of(orders.shape[1])
    masks = curve_masks(orders, steps)
    values = game(masks.reshape(-1, orders.shape[1])).reshape(masks.shape[:-1])
    drawn = Curves(steps, *values)
    return {signed: metric.of(drawn) for signed, metric in METRICS.items()}


def random_orders(rng: np.random.Generator, words: int, count: int) -> tuple[np.ndarray, bool]:
    """Random orders, or all where there are no more; and whether it is all."""
    if words <= MOST_LISTED and factorial(words) <= count:
        return np.array(list(permutations(range(words)))), True
    return np.argsort(rng.random((count, words)), axis=1), False


@dataclass(frozen=True)
class Stand:
    """The p of all methods beside the random orders, and how many places there are."""

    p: np.ndarray  # lot method
    count: int


def stand(text: Text, rng: np.random.Generator, rankings: int, lots: int) -> Stand:
    """Where the methods stand; with ``lots``, after that many shuffles of all scores at once."""
    methods, words = text.scores.shape
    orders, is_complete = random_orders(rng, words, rankings)
    random = areas(text.game, orders)
    dealt = np.arange(words)[None]
    if lots:
        dealt = np.argsort(rng.random((lots, words)), axis=1)
    own = np.argsort(-text.scores[:, dealt], axis=-1).reshape(-1, words)
    found = areas(text.game, own)

    more = 0 if is_complete else 1  # the order itself is not among them
    count = len(orders) + more
    p = []
    for method in range(methods):
        signed = bool(text.signed[method])
        value = found[signed].reshape(methods, -1)[method][:, None]
        wins = (random[signed] < value - ROUNDING).sum(1)
        p.append((count - wins) / count)
    return Stand(np.array(p).T, count)


def by_old_rule(p: np.ndarray) -> bool:
    """More methods hold than independent ones would, or the best pays for all."""
    holding = int((p <= LEVEL).sum())
    if not holding:
        return False
    return binomial_tail(len(p), holding, LEVEL) <= BORDER or p.min() * len(p) <= LEVEL


@dataclass
class Count:
    """How often words are named over texts and shuffles, by either rule."""

    old: list[float]
    new: list[float]
    seen: list[float]

    @property
    def row(self) -> str:
        """Rates of both rules, with the standard error over texts of the new one."""
        error = np.std(self.new) / np.sqrt(len(self.new))
        old, new, seen = (np.mean(rates) for rates in (self.old, self.new, self.seen))
        return f"| {len(self.new)} | {seen:.2f} | {old:.3f} | {new:.3f} ± {error:.3f} |"


def counted(texts: Iterator[Text], rng: np.random.Generator, rankings: int, lots: int) -> Count:
    """Go through the texts; each is one observation, whatever its number of shuffles."""
    count = Count([], [], [])
    for text in texts:
        found = stand(text, rng, rankings, lots)
        alike = rank_correlation(text.scores)
        counts = np.full(len(text.scores), found.count)
        joint = [together(places_of(p, counts), counts, alike, text.signed) for p in found.p]
        count.old.append(float(np.mean([by_old_rule(p) for p in found.p])))
        count.new.append(float(np.mean([one.p <= LEVEL for one in joint])))
        count.seen.append(float(joint[0].smallest_p <= LEVEL))
    return count


# ------------------------------------------------------------------ tables


def level_cells() -> list[Cell]:
    """Every kind of text and methods for which the error rate is told."""
    cells = [Cell(words, 1) for words in (5, 12)]
    for words, methods in product((5, 12, 25), (2, 5, 9, 21)):
        cells += [Cell(words, methods, alike=alike) for alike in (0.0, 0.5, 0.95)]
    cells += [Cell(words, 5, alike=0.95) for words in (3, 4, 8, 60)]
    cells += [Cell(60, 21, alike=alike) for alike in (0.0, 0.4, 0.95)]
    cells += [Cell(25, 21, alike=alike, steep=0.7, pairs=0.0) for alike in (0.3, 0.95)]
    for words in (5, 12, 25):
        cells += [Cell(words, 2, mixed=True), Cell(words, 8, alike=0.95, mixed=True)]
        cells += [Cell(words, methods, mixed=True, twins=True) for methods in (2, 8)]
        cells.append(Cell(words, 8, alike=0.9, steep=12.0, pairs=2.0))
        cells.append(Cell(words, 8, alike=0.95, rankings=39))
    return cells


POWER = [(2, 2), (2, 1), (5, 3), (5, 1), (9, 5), (9, 3), (21, 10), (21, 4)]


def power_cells() -> list[Cell]:
    """Short texts on which some of the methods see the words, with noise."""
    return [Cell(words, *of) for words in (5, 6, 7, 8) for of in POWER]


def level(texts: int, seed: int) -> None:
    """Print the table of error rates."""
    print("| words | methods | scores | texts | can see | before | now |")
    print("|---|---|---|---|---|---|---|")
    for place, cell in enumerate(level_cells()):
        rng = np.random.default_rng([seed, place])
        made = (cell.text(rng) for _ in range(texts))
        print(cell.name + counted(made, rng, cell.rankings, LOTS).row, flush=True)


def power(texts: int, seed: int) -> None:
    """Print the table of what is found."""
    print("| words | methods, of these good | texts | can see | before | now |")
    print("|---|---|---|---|---|---|")
    for place, cell in enumerate(power_cells()):
        rng = np.random.default_rng([seed, place])
        made = (cell.text(rng) for _ in range(texts))
        row = counted(made, rng, cell.rankings, lots=0).row
        print(f"| {cell.words} | {cell.methods}, {cell.good} {row}", flush=True)


# ------------------------------------------------------------------ real models

SIX = (
    "gradient-x-input",
    "integrated-gradients",
    "attention-mean",
    "rollout",
    "attn-lrp",
    "lime",
)
FEW = ("integrated-gradients", "lime")
FEWEST_WORDS, MOST_WORDS = 5, 9
MOST_UNITS = 10  # of which all subsets are tried


def sentences(count: int) -> list[str]:
    """The first words of the sentences in this folder, five to nine of them."""
    lines = (Path(__file__).parent / "sentences.tsv").read_text(encoding="utf-8").splitlines()
    known = [line.split("\t")[1] for line in lines if line[:1] in "01"]
    texts = []
    for place, text in enumerate(known[:count]):
        words = FEWEST_WORDS + place % (MOST_WORDS - FEWEST_WORDS + 1)
        texts.append(" ".join(text.split()[:words]))
    return texts


def real_texts(model: str, removal: str, count: int) -> Iterator[Text]:
    """Sentences of which every subset of the words is tried, with the scores of six methods."""
    import whence

    loaded = whence.load(model)
    for sentence in sentences(count):
        game = whence.game(loaded, sentence, removal=removal)
        if not 2 <= game.size <= MOST_UNITS:
            continue
        every = (np.arange(1 << game.size)[:, None] >> np.arange(game.size)) & 1
        values = np.asarray(game(every.astype(bool)))
        attributions = [
            whence.explain(loaded, sentence, name, evidence=False, seed=0) for name in SIX
        ]
        yield Text(
            looked_up(values, game.size),
            np.stack([a.scores for a in attributions]),
            np.array([a.signed for a in attributions]),
        )


def some_of(text: Text, kept: Sequence[int]) -> Text:
    """The text with some of the methods alone."""
    return Text(text.game, text.scores[list(kept)], text.signed[list(kept)])


def real(models: Sequence[str], texts: int, seed: int) -> None:
    """Print both for real models: scores shuffled, and as they are."""
    print("| model, removal | methods | texts | can see | before | now |")
    print("|---|---|---|---|---|---|")
    for model, removal in product(models, ("mask", "delete")):
        try:
            every = list(real_texts(model, removal, texts))
        except Unsupported as error:  # a model that writes has no mask
            print(f"| {model}, {removal} | {error} |", flush=True)
            continue
        for methods in (SIX, FEW):
            kept = [SIX.index(name) for name in methods]
            chosen = [some_of(text, kept) for text in every]
            for lots, words in ((LOTS * 8, "shuffled"), (0, "as they are")):
                rng = np.random.default_rng([seed, lots])
                row = counted(iter(chosen), rng, 100, lots).row
                print(f"| {model}, {removal} | {len(kept)}, {words} {row}", flush=True)


def main() -> None:
    """Do the part that is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("part", choices=("level", "power", "real"))
    parser.add_argument("models", nargs="*", default=["sentiment"])
    parser.add_argument("--texts", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    if asked.part == "level":
        level(asked.texts, asked.seed)
    elif asked.part == "power":
        power(asked.texts, asked.seed)
    else:
        real(asked.models, asked.texts, asked.seed)


if __name__ == "__main__":
    main()
