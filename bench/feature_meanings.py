"""Do features mean something? Written rules, tested on text that neither model nor rule has seen.

A rule is a small predicate over tokens: "a comma", "the token after a comma", "a speaker's name in
capitals". For each rule the feature and the threshold that fit it best are looked for on documents
of the training data; precision and recall are then measured on held-out documents, with intervals
over documents. The same search runs on the features of a model whose weights were shuffled: what
those pass too says nothing about what the model learned.

    python -m bench.feature_meanings --features writer --data ../shared/data --control FOLDER
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Float

import whence
from whence.features.autoencoder import Autoencoder
from whence.features.effects import head_of
from whence.features.saving import load
from whence.features.steering import Change, along, clamping, value_of
from whence.features.token_texts import token_texts
from whence.generation.continuing import written_by
from whence.models.changes import Randomised
from whence.models.model import Model
from whence.trace.hidden import editing, hidden_at

ROOT = Path(__file__).resolve().parent.parent
SHARES = (0.0, 0.1, 0.25, 0.5)  # of the largest activation: the thresholds that are tried
LENGTH = 128  # tokens of a passage
RESAMPLES = 1000
GOOD_PRECISION, GOOD_RECALL = 0.8, 0.5  # the lower ends of both intervals, for "holds"
FEWEST = 30  # tokens that a rule must mark on held-out text

Rule = Callable[[Sequence[str]], list[bool]]


# ---------------------------------------------------------------------- rules


def is_word(*words: str) -> Rule:
    """The token is one of these words, whatever its case."""
    wanted = {word.lower() for word in words}
    return lambda pieces: [piece.strip().lower() in wanted for piece in pieces]


def matches(pattern: str) -> Rule:
    """All of the token, without the space before it, matches."""
    compiled = re.compile(pattern)
    return lambda pieces: [bool(compiled.fullmatch(piece.strip(" "))) for piece in pieces]


def after(rule: Rule) -> Rule:
    """The token that follows one that the rule marks."""
    return lambda pieces: [False, *rule(pieces)[:-1]]


def within(pattern: str) -> Rule:
    """Any token that overlaps a match in the running text."""
    compiled = re.compile(pattern, re.MULTILINE)

    def rule(pieces: Sequence[str]) -> list[bool]:
        marked = [False] * len(pieces)
        text, owner = "", []
        for place, piece in enumerate(pieces):
            text += piece
            owner += [place] * len(piece)
        for match in compiled.finditer(text):
            for place in owner[match.start() : match.end()]:
                # white space alone does not make a token part of a match
                shown = str(pieces[place]).strip()
                marked[place] = marked[place] or bool(shown)
        return marked

    return rule


def inside_word(pieces: Sequence[str]) -> list[bool]:
    """A letter goes on a word that an earlier token began."""
    marked = [False]
    for before, piece in pairwise(pieces):
        marked.append(piece[:1].isalpha() and before[-1:].isalpha())
    return marked


def first_token(pieces: Sequence[str]) -> list[bool]:
    """The first token of a passage."""
    return [place == 0 for place in range(len(pieces))]


BREAK = matches(r"\n+")
RULES: dict[str, Rule] = {
    # what the token itself is: any model that keeps its input apart can have such features
    "a comma": is_word(","),
    "a full stop": is_word("."),
    "a colon": is_word(":"),
    "a semicolon": is_word(";"),
    "a question mark": is_word("?"),
    "an exclamation mark": is_word("!"),
    "a quotation mark": matches(r'"'),
    "a line break": BREAK,
    "digits": matches(r"\d+"),
    "“the”": is_word("the"),
    "“of”": is_word("of"),
    "“to”": is_word("to"),
    "“and”": is_word("and"),
    "“not”": is_word("not"),
    "“is”": is_word("is"),
    "“was” or “were”": is_word("was", "were"),
    "“I”": is_word("I"),
    "“you”": is_word("you"),
    "“we”": is_word("we"),
    "“our”": is_word("our"),
    "“his” or “her”": is_word("his", "her"),
    "“he” or “she”": is_word("he", "she"),
    "“thou”, “thee” or “thy”": is_word("thou", "thee", "thy"),
    "“film” or “movie”": is_word("film", "movie", "films", "movies"),
    "“will”, “shall”, “must” or “can”": is_word("will", "shall", "must", "can"),
    "“world”, “nation” or “country”": is_word("world", "nation", "nations", "country"),
    # what stands before it, or around it: more than the token is needed
    "the token after a comma": after(is_word(",")),
    "the first token of a sentence": after(matches(r"[.?!]")),
    "the first token of a line": after(BREAK),
    "the token after “the”": after(is_word("the")),
    "the token after “of”": after(is_word("of")),
    "the token after “to”": after(is_word("to")),
    "the token after “I”": after(is_word("I")),
    "the token after “my”": after(is_word("my")),
    "the token after “of the”": within(r"(?<=\bof the) \w+"),
    "the token after a number": after(matches(r"\d+")),
    "a word's later part (not its first token)": inside_word,
    "a speaker's name (a line that ends in a colon)": within(r"^[A-Z][A-Za-z ]{2,24}(?=:\n)"),
    "the colon after a speaker's name": within(r"(?<=[a-zA-Z]):(?=\n)"),
    "a word all in capitals": within(r"\b[A-Z]{3,}\b"),
    "a year (1000 to 2099)": within(r"\b[12][09]\d\d\b|\b1\d{3}\b"),
    "inside parentheses": within(r"(?<=\()[^()\n]{1,80}(?=\))"),
    "inside quotation marks": within(r'(?<=")[^"\n]{1,80}(?=")'),
    "an amount of money": within(r"\$ ?[\d.,]+"),
    "a per cent": within(r"[\d.]+ (?:percent|per cent)"),
    "a contraction's end ('s, n't, 'll …)": within(r"(?<=\w)'(?:s|t|ll|re|ve|d|m)\b"),
    "the first token of a passage": first_token,
}
NEEDS_MORE = list(RULES).index("the token after a comma")


# ---------------------------------------------------------------------- texts and activations


@dataclass(frozen=True, eq=False)
class Table:
    """Activations of tokens in a row, what each rule says of them, and their documents."""

    values: Float[np.ndarray, "token feature"]
    marks: Bool[np.ndarray, "token rule"]
    documents: np.ndarray


def documents(folder: Path) -> tuple[list[str], list[str]]:
    """Texts that the writer learned from, and texts that it did not, mixed over the sources."""
    sys.path.insert(0, str(ROOT / "training"))
    from writer import load_texts  # type: ignore[import-not-found]

    learned: list[str] = []
    held_out: list[str] = []
    for of_source, of_held_out in load_texts(folder, None).values():
        learned += of_source
        held_out += of_held_out
    rng = np.random.default_rng(0)
    return (
        [learned[i] for i in rng.permutation(len(learned))],
        [held_out[i] for i in rng.permutation(len(held_out))],
    )


def table(model: Model, autoencoder: Autoencoder, texts: Sequence[str], tokens: int) -> Table:
    """The first passages of each text, until there are so many tokens."""
    values, marks, owners = [], [], []
    count = 0
    for number, text in enumerate(texts):
        if count >= tokens:
            break
        passages = whence_windows(model, text)[:6]
        states = hidden_at(model, passages, autoencoder.about.layer)
        for passage, rows in zip(passages, states, strict=True):
            ordinary = passage.parts >= 0
            pieces = [p for p, keep in zip(token_texts(passage), ordinary, strict=True) if keep]
            with torch.inference_mode():
                own = autoencoder.encode(rows.float()) * autoencoder.norms
            values.append(own.numpy()[ordinary].astype(np.float32))
            marks.append(np.array([rule(pieces) for rule in RULES.values()]).T)
            owners += [number] * len(pieces)
            count += len(pieces)
    return Table(np.concatenate(values), np.concatenate(marks), np.array(owners))


def whence_windows(model: Model, text: str) -> list[whence.Passage]:
    """A text in passages of at most ``LENGTH`` tokens."""
    from whence.core.passage import windows
    from whence.models.texts import tokenize

    return windows(tokenize(model, text, None, "word"), LENGTH)


# ---------------------------------------------------------------------- search, and the test


@dataclass(frozen=True)
class Found:
    """The feature that fits a rule best, and how well on held-out text."""

    rule: str
    feature: int
    threshold: float
    marked: int
    precision: float
    precision_low: float
    precision_high: float
    recall: float
    recall_low: float
    recall_high: float

    @property
    def holds(self) -> bool:
        """Whether both intervals lie high enough."""
        return self.precision_low >= GOOD_PRECISION and self.recall_low >= GOOD_RECALL


def best_fits(search: Table, peak: Float[np.ndarray, " feature"]) -> list[tuple[int, float]]:
    """The feature and the threshold with the largest F1 for each rule, on the search text."""
    marks = search.marks.astype(np.float32)
    wanted = marks.sum(0)[:, None]
    best = np.full(len(RULES), -1.0)
    chosen = [(0, 0.0)] * len(RULES)
    for share in SHARES:
        fires = (search.values > share * peak).astype(np.float32)
        both = marks.T @ fires
        scores = 2 * both / np.maximum(wanted + fires.sum(0), 1)
        for rule in range(len(RULES)):
            feature = int(scores[rule].argmax())
            if scores[rule, feature] > best[rule]:
                best[rule] = scores[rule, feature]
                chosen[rule] = (feature, float(share * peak[feature]))
    return chosen


def tested(held_out: Table, fits: Sequence[tuple[int, float]]) -> list[Found]:
    """Precision and recall on held-out text, with bootstrap intervals over documents."""
    rng = np.random.default_rng(0)
    count = int(held_out.documents.max()) + 1
    draws = rng.multinomial(count, np.full(count, 1 / count), size=RESAMPLES)
    found = []
    for number, (name, (feature, threshold)) in enumerate(zip(RULES, fits, strict=True)):
        marks = held_out.marks[:, number]
        fires = held_out.values[:, feature] > threshold
        per_document = [
            np.bincount(held_out.documents, weights=which, minlength=count)
            for which in (marks & fires, fires, marks)
        ]
        both, fired, marked = (draws @ each for each in per_document)
        precision = np.divide(both, fired, out=np.zeros_like(both), where=fired > 0)
        recall = np.divide(both, marked, out=np.zeros_like(both), where=marked > 0)
        found.append(
            Found(
                rule=name,
                feature=feature,
                threshold=threshold,
                marked=int(marks.sum()),
                precision=float((marks & fires).sum() / max(1, fires.sum())),
                precision_low=float(np.quantile(precision, 0.025)),
                precision_high=float(np.quantile(precision, 0.975)),
                recall=float((marks & fires).sum() / max(1, marks.sum())),
                recall_low=float(np.quantile(recall, 0.025)),
                recall_high=float(np.quantile(recall, 0.975)),
            )
        )
    return found


def meanings(
    model: Model, autoencoder: Autoencoder, texts: tuple[list[str], list[str]], tokens: int
) -> list[Found]:
    """Every rule with its best feature, tested on held-out text."""
    learned, held_out = texts
    search = table(model, autoencoder, learned, tokens)
    fits = best_fits(search, search.values.max(0))
    del search
    return tested(table(model, autoencoder, held_out, tokens), fits)


# ---------------------------------------------------------------------- what clamping writes

PROMPTS = ("The", "I have", "In the", "And so")
DOSES = (2.0, 4.0)
WRITTEN = 30  # tokens after each prompt
PROMOTED = 10


@dataclass(frozen=True)
class Steered:
    """How often what a feature promotes is written, before and after clamping it.

    Shares are of written tokens, over all prompts: plain, with the feature, and with a random
    direction that moves the state as far.
    """

    rule: str
    feature: int
    dose: float
    promotes: tuple[str, ...]
    before: float
    after: float
    random: float
    examples: tuple[tuple[str, str], ...]  # the plain text, and the steered one


def steered(model: Model, autoencoder: Autoencoder, found: Sequence[Found]) -> list[Steered]:
    """Every feature of a rule that holds, clamped while the model writes."""
    head = head_of(model)
    generator = torch.Generator().manual_seed(0)
    drawn = torch.randn(autoencoder.dim, generator=generator)
    unit = torch.nn.functional.normalize(drawn, dim=0)
    plain = written(model, None, autoencoder)
    rows = []
    by_feature = {one.feature: one for one in found if one.holds}
    for feature, one in by_feature.items():
        raised = head.logits(autoencoder.decoder[feature][None])[0]
        ids = raised[: len(model.labels)].topk(PROMOTED).indices.tolist()
        for dose in DOSES:
            value = value_of(autoencoder, feature, f"{dose:g}x")
            own = written(model, clamping(autoencoder, feature, value), autoencoder)
            other = written(model, along(autoencoder, feature, value, unit), autoencoder)
            read = model.tokenizer.decode
            texts = [(read(before), read(after)) for before, after in zip(plain, own, strict=True)]
            rows.append(
                Steered(
                    rule=one.rule,
                    feature=feature,
                    dose=dose,
                    promotes=tuple(model.labels[i] for i in ids),
                    before=share_of(plain, ids),
                    after=share_of(own, ids),
                    random=share_of(other, ids),
                    examples=tuple(texts),
                )
            )
    return sorted(rows, key=lambda row: row.before - row.after)


def written(model: Model, change: Change | None, autoencoder: Autoencoder) -> list[list[int]]:
    """What is written after each prompt: drawn, from the same seed each time."""
    texts = []
    for prompt in PROMPTS:
        passage = model.encode(prompt)
        block = nullcontext()
        if change is not None:
            block = editing(model, autoencoder.about.layer, change)
        with block:
            options = {"do_sample": True, "top_p": 0.9}
            texts.append(written_by(model, passage, WRITTEN, 0, options).ids.tolist())
    return texts


def share_of(texts: Sequence[Sequence[int]], ids: Sequence[int]) -> float:
    """Of all written tokens, the share that are among ``ids``."""
    every = [token for text in texts for token in text]
    return sum(token in ids for token in every) / max(1, len(every))


def about_steering(rows: Sequence[Steered]) -> str:
    """The features that change most what is written, and one of them in full."""
    if not rows:
        return "No rule holds, so no feature was clamped."
    lines = [
        "| feature of the rule | feature | dose | promotes | plain | clamped | random direction |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows[:8]:
        names = ", ".join(f"`{name.strip()}`" for name in row.promotes[:4])
        lines.append(
            f"| {row.rule} | {row.feature} | {row.dose:g}x | {names} | {100 * row.before:.1f} % | "
            f"{100 * row.after:.1f} % | {100 * row.random:.1f} % |"
        )
    # the smallest dose: what is still text is worth more than what is loudest
    best = next(row for row in rows if row.dose == min(DOSES))
    lines += ["", f"Feature {best.feature} at {best.dose:g}x, the same seeds:", ""]
    for prompt, (before, after) in zip(PROMPTS, best.examples, strict=True):
        lines += [f"- plain: {prompt}{before}".replace("\n", " ⏎ ")]
        lines += [f"  clamped: {prompt}{after}".replace("\n", " ⏎ ")]
    return "\n".join(lines)


# ---------------------------------------------------------------------- what is printed


def as_markdown(own: list[Found], control: list[Found] | None) -> str:
    """A row for each rule; features of the shuffled model on the right."""
    lines = [
        "| rule | marked | feature | precision | recall | shuffled: precision | recall |",
        "|---|---|---|---|---|---|---|",
    ]
    for number, found in enumerate(own):
        if number == NEEDS_MORE:
            lines.append("| *what stands before or around it* | | | | | | |")
        if found.marked < FEWEST:
            continue
        name = f"**{found.rule}**" if found.holds else found.rule
        cells = [name, f"{found.marked:,}", str(found.feature), *shares(found)]
        cells += ["–", "–"] if control is None else shares(control[number])
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def shares(found: Found) -> list[str]:
    """Precision and recall with their intervals."""
    mark = " ✓" if found.holds else ""
    return [
        f"{found.precision:.2f} ({found.precision_low:.2f}–{found.precision_high:.2f})",
        f"{found.recall:.2f} ({found.recall_low:.2f}–{found.recall_high:.2f}){mark}",
    ]


def summary(own: list[Found], control: list[Found] | None) -> str:
    """How many rules hold, for how many features, beside the shuffled model."""
    told = []
    parts = {"the token itself": range(NEEDS_MORE), "more": range(NEEDS_MORE, len(own))}
    for name, numbers in parts.items():
        kept = [i for i in numbers if own[i].marked >= FEWEST]
        holding = [i for i in kept if own[i].holds]
        beside = ""
        if control is not None:
            also = sum(control[i].holds for i in kept)
            alone = sum(own[i].holds and not control[i].holds for i in kept)
            beside = f"; of the shuffled model {also} hold, and {alone} hold for the writer alone"
        told.append(f"about {name}: {len(holding)} of {len(kept)} rules hold{beside}")
    features = {found.feature for found in own if found.holds and found.marked >= FEWEST}
    return f"{'. '.join(told)}. They are {len(features)} different features."


PAGE = Path(__file__).with_suffix(".md")  # with places for numbers


def main() -> None:
    """See the docstring above."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--features", default="writer", help="an autoencoder of the writer")
    parser.add_argument("--control", help="one of the writer with shuffled weights (seed 0)")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--tokens", type=int, default=30_000, help="to search, and to test on")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--page", type=Path, help="write the page of the documentation")
    given = parser.parse_args()
    torch.set_num_threads(1)
    texts = documents(given.data)
    model = whence.load("writer")
    autoencoder = load(given.features)
    own = meanings(model, autoencoder, texts, given.tokens)
    control = None
    if given.control is not None:
        control = meanings(Randomised(seed=0)(model), load(given.control), texts, given.tokens)
    about = autoencoder.about
    told = {
        "about": f"The autoencoder is of the bundled writer after block {about.layer}: "
        f"{about.variant}, {about.size:,} features, trained on "
        f"{about.data.get('tokens', 0):,} tokens.",
        "tokens": given.tokens,
        "precision": GOOD_PRECISION,
        "recall": GOOD_RECALL,
        "fewest": FEWEST,
        "summary": summary(own, control),
        "table": as_markdown(own, control),
        "written": WRITTEN,
        "prompts": len(PROMPTS),
        "steering": about_steering(steered(model, autoencoder, own)),
    }
    page = PAGE.read_text(encoding="utf-8").format(**told)
    print(page)
    if given.page is not None:
        given.page.write_text(page, encoding="utf-8")
    if given.json is not None:
        rows = {"own": own, "control": control or []}
        kept = {
            name: [found.__dict__ | {"holds": found.holds} for found in several]
            for name, several in rows.items()
        }
        given.json.write_text(json.dumps(kept, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
