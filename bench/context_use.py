"""Which measure of context use finds the words that people marked? The table of DiscEval-MT.

    python -m bench.context_use --data FOLDER --csv table.csv
    python -m bench.context_use --data FOLDER --numbers OUT   # the same tables without the words

FOLDER holds the scores that Sarti et al. (2024) stored for each generated token, one gzipped TSV
for each part of DiscEval-MT and model. The tables in tests/data/pecore_cti are the numbers of them.
What came out is in docs/context.md.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import log
from operator import itemgetter
from pathlib import Path

import numpy as np

from whence.core.bootstrap import Mean
from whence.core.context_use import (
    GoldScores,
    Measure,
    gold_score,
    gold_scores,
    likelihood_ratio,
    means_of_examples,
    probability_difference,
)

TABLES = (
    "anaphora-marian-big",
    "anaphora-marian-small",
    "lexical-choice-marian-big",
    "lexical-choice-marian-small",
)
MEASURES: tuple[Measure, ...] = (
    "kl-divergence",
    "p-cxmi",
    "likelihood-ratio",
    "probability-difference",
)
# DiscEval-MT has variants of each sentence, one after the other
VARIANTS = {"anaphora": 4, "lexical-choice": 2}
CHANCE = "by chance"
SHUFFLES = 100
# The columns that are read. `probability` is without context, `contrast_prob` with it.
COLUMNS = (
    "example_idx",
    "probability",
    "contrast_prob",
    "pcxmi",
    "kl_divergence",
    "is_context_sensitive",
    "is_example_correct",
)


@dataclass(frozen=True)
class Published:
    """Mean and standard deviation over examples, as the authors stored them."""

    f1: float
    f1_std: float
    auprc: float
    auprc_std: float


# outputs/metrics_evals/disc_eval_mt/*/*-scat-cti-avg-eval.tsv of github.com/gsarti/pecore, the rows
# disc_eval_mt_all or scat_all (the same examples); they have no row for the other two measures
PUBLISHED: dict[tuple[str, Measure], Published] = {
    ("anaphora-marian-big", "kl-divergence"): Published(0.8091, 0.2261, 0.7427, 0.3603),
    ("anaphora-marian-big", "p-cxmi"): Published(0.7428, 0.2410, 0.6006, 0.3982),
    ("anaphora-marian-small", "kl-divergence"): Published(0.7762, 0.2440, 0.6809, 0.3901),
    ("anaphora-marian-small", "p-cxmi"): Published(0.7496, 0.2566, 0.6206, 0.4060),
    ("lexical-choice-marian-big", "kl-divergence"): Published(0.5967, 0.2307, 0.4529, 0.3442),
    ("lexical-choice-marian-big", "p-cxmi"): Published(0.5446, 0.2085, 0.3795, 0.3233),
    ("lexical-choice-marian-small", "kl-divergence"): Published(0.5880, 0.2314, 0.4433, 0.3390),
    ("lexical-choice-marian-small", "p-cxmi"): Published(0.5049, 0.1965, 0.3304, 0.3012),
}


@dataclass(frozen=True, eq=False)
class Example:
    """One translation: a number for each of its tokens, and which ones need the context."""

    number: int
    probability_without: np.ndarray
    probability_with: np.ndarray
    p_cxmi: np.ndarray
    kl_divergence: np.ndarray
    gold: np.ndarray
    is_correct: bool

    def scores(self, measure: Measure) -> np.ndarray:
        """By one measure. What was stored is taken, as probabilities were rounded to 4 digits."""
        if measure == "kl-divergence":
            return self.kl_divergence
        if measure == "p-cxmi":
            return self.p_cxmi
        if measure == "likelihood-ratio":
            # of two probabilities with this ratio, the larger of which is 1
            gained = self.p_cxmi * log(2)
            return likelihood_ratio(np.minimum(-gained, 0.0), np.minimum(gained, 0.0))
        if measure == "probability-difference":
            with np.errstate(divide="ignore"):  # some are 0 when rounded
                without = np.log(self.probability_without)
                with_context = np.log(self.probability_with)
            return probability_difference(without, with_context)
        raise ValueError(f"the stored tables do not hold {measure}")


def read(path: Path) -> list[Example]:
    """The examples of one table, in order."""
    return [_example(list(tokens)) for _, tokens in groupby(_raw(path), itemgetter("example_idx"))]


def _raw(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def _example(tokens: Sequence[dict[str, str]]) -> Example:
    def column(name: str) -> np.ndarray:
        return np.array([float(token[name]) for token in tokens])

    return Example(
        number=int(tokens[0]["example_idx"]),
        probability_without=column("probability"),
        probability_with=column("contrast_prob"),
        p_cxmi=column("pcxmi"),
        kl_divergence=column("kl_divergence"),
        gold=column("is_context_sensitive") == 1,
        is_correct=tokens[0]["is_example_correct"] == "1",
    )


def blocks_of(name: str, examples: Iterable[Example]) -> np.ndarray:
    """Which examples are variants of one sentence."""
    part = name.partition("-marian")[0]
    return np.array([example.number // VARIANTS[part] for example in examples])


def scored(name: str, examples: Sequence[Example], measure: Measure) -> GoldScores:
    """As the paper scores: threshold, macro-F1 and area of each example, then the means."""
    pairs = ((example.scores(measure), example.gold) for example in examples)
    return gold_scores(pairs, blocks=blocks_of(name, examples))


def by_chance(examples: Sequence[Example], seed: int = 0) -> tuple[float, float]:
    """F1 and AUPRC of the divergences, given to the tokens of each example by lot."""
    rng = np.random.default_rng(seed)
    values = []
    for example in examples:
        for _ in range(SHUFFLES):
            one = gold_score(rng.permutation(example.kl_divergence), example.gold)
            values.append((one.f1, one.auprc))
    f1, area = np.mean(values, axis=0).tolist()
    return f1, area


def gain_of_divergence(name: str, examples: Sequence[Example]) -> tuple[Mean, Mean]:
    """F1 and AUPRC of the divergence less those of P-CXMI, example by example."""
    differences = []
    for example in examples:
        kl = gold_score(example.kl_divergence, example.gold)
        p_cxmi = gold_score(example.p_cxmi, example.gold)
        differences.append((kl.f1 - p_cxmi.f1, kl.auprc - p_cxmi.auprc))
    f1, area = means_of_examples(np.array(differences), blocks_of(name, examples))
    return f1, area


def equal_beginnings(data: Path, part: str) -> tuple[int, int] | None:
    """The tokens with which both models begin alike, and those with the same probabilities.

    Two models agree to four digits by accident only. None where the tables have no tokens.
    """
    big, small = (_raw(data / f"{part}-marian-{size}.tsv.gz") for size in ("big", "small"))
    if "token" not in big[0]:
        return None
    others: dict[str, list[dict[str, str]]] = {}
    for row in small:
        others.setdefault(row["example_idx"], []).append(row)
    shared = equal = 0
    for number, tokens in groupby(big, itemgetter("example_idx")):
        for one, other in zip(tokens, others.get(number, []), strict=False):
            if one["token"] != other["token"]:
                break
            shared += 1
            equal += all(one[name] == other[name] for name in ("probability", "contrast_prob"))
    return shared, equal


# --------------------------------------------------------------------------------------- the table

HEADER = (
    "table",
    "measure",
    "examples",
    "f1",
    "f1_low",
    "f1_high",
    "f1_published",
    "auprc",
    "auprc_low",
    "auprc_high",
    "auprc_published",
)


def rows_of(name: str, examples: Sequence[Example]) -> list[list[object]]:
    """The rows of one table: every measure, and what chance gets."""
    rows: list[list[object]] = []
    for measure in MEASURES:
        ours = scored(name, examples, measure)
        theirs = PUBLISHED.get((name, measure))
        row: list[object] = [name, measure, len(examples)]
        row += [*_numbers(ours.f1), theirs.f1 if theirs else ""]
        row += [*_numbers(ours.auprc), theirs.auprc if theirs else ""]
        rows.append(row)
    f1, area = by_chance(examples)
    rows.append([name, CHANCE, len(examples), round(f1, 4), "", "", "", round(area, 4), "", "", ""])
    return rows


def _numbers(mean: Mean) -> list[object]:
    low, high = mean.interval or ("", "")
    return [x if x == "" else round(float(x), 4) for x in (mean.mean, low, high)]


def markdown(rows: Sequence[Sequence[object]]) -> str:
    """The table as docs/context.md shows it."""
    lines = [
        "| | measure | F1 | published | AUPRC | published |",
        "|---|---|---|---|---|---|",
    ]
    before = None
    for row in rows:
        name, measure, _, f1, f1_low, f1_high, f1_theirs, area, low, high, theirs = row
        title = "" if name == before else str(name)
        before = name
        cells = [title, str(measure), _cell(f1, f1_low, f1_high), _cell(f1_theirs)]
        cells += [_cell(area, low, high), _cell(theirs)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(value: object, low: object = "", high: object = "") -> str:
    if value == "":
        return "–"
    return f"{value:.3f}" + (f" ({low:.3f} to {high:.3f})" if low != "" else "")


def write_numbers(data: Path, out: Path) -> None:
    """The columns that are read here, which hold no words of DiscEval-MT."""
    out.mkdir(parents=True, exist_ok=True)
    for name in TABLES:
        rows = _raw(data / f"{name}.tsv.gz")
        text = io.StringIO()
        writer = csv.writer(text, delimiter="\t", lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows([row[column] for column in COLUMNS] for row in rows)
        packed = gzip.compress(text.getvalue().encode(), mtime=0)  # the same bytes every time
        (out / f"{name}.tsv.gz").write_bytes(packed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="the folder of the four tables")
    parser.add_argument("--csv", type=Path, help="write the table here, too")
    parser.add_argument("--numbers", type=Path, help="write the tables without words, and stop")
    asked = parser.parse_args()
    if asked.numbers:
        write_numbers(asked.data, asked.numbers)
        return
    rows = []
    gains = []
    for name in TABLES:
        examples = read(asked.data / f"{name}.tsv.gz")
        rows += rows_of(name, examples)
        f1, area = gain_of_divergence(name, examples)
        without_gold = sum(not example.gold.any() for example in examples)
        gains.append(
            f"{name}: F1 {_signed(f1)}, AUPRC {_signed(area)}; "
            f"{len(examples)} examples, {without_gold} without a marked token"
        )
    print(markdown(rows))
    print("\nkl-divergence less p-cxmi, example by example:")
    print("\n".join(gains))
    for part in VARIANTS:
        counts = equal_beginnings(asked.data, part)
        if counts is not None:
            shared, equal = counts
            print(f"{part}: equal probabilities at {equal} of {shared} tokens of equal beginnings")
    if asked.csv:
        with asked.csv.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([HEADER, *rows])


def _signed(mean: Mean) -> str:
    low, high = mean.interval or (float("nan"), float("nan"))
    return f"{mean.mean:+.3f} ({low:+.3f} to {high:+.3f})"


if __name__ == "__main__":
    main()
