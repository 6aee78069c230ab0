"""What is said of a written text is read back, and is true of the record that it speaks of."""

from __future__ import annotations

import re
from math import prod

import numpy as np
import pytest

from tests.occasions.generation import generation
from tests.views.generations import END
from tests.views.parsing import (
    NAMES,
    PERCENT,
    Reader,
    as_quoted,
    as_read,
    is_number,
    is_percent,
    lists,
)
from whence.core.generation import Generation
from whence.views.generation import (
    about_wholes,
    contrast_of,
    decoding_line,
    generation_text,
    question,
    remarks,
    scores_line,
    without_evidence,
)

NUMBERS = {
    "score (logit)": "logit",
    "log-probability": "log-probability",
    "probability": "probability",
    "cross-entropy": "cross-entropy",
    "perplexity": "perplexity",
}
ADDED = {
    "log-probabilities": "log-probability",
    "cross-entropies": "cross-entropy",
    "divergences": "kl",
}

# ---------------------------------------------------------------------- what was asked


def is_given(g: Generation) -> bool:
    return "given" in g.decoding


def everything(g: Generation) -> str:
    """All that follows the prompt; its special tokens where it is nothing else."""
    text = g.text.strip(" ")
    return text if text.strip() else " ".join(as_read(output.name) for output in g.outputs)


def target_of(g: Generation):
    return None if g.chosen is None else g.chosen.first.target


def contrasted(g: Generation) -> list:
    rows = [a.target for a in next(iter(g.rows.values()))]
    return [] if rows[0].read == "margin" else [t for t in rows if t.against is not None]


def is_of_texts(g: Generation) -> bool:
    return target_of(g) is not None and target_of(g).against_ids is not None


def asks_all(g: Generation, how, text) -> bool:
    target = target_of(g)
    is_whole = target is None or len(range(target.at, target.until)) == len(g.outputs)
    return (
        (how == "does the text go on with") == is_given(g)
        and text == as_quoted(as_shown(everything(g)), 120)
        and is_whole
        and not contrasted(g)
        and not is_of_texts(g)
    )


def as_shown(text: str) -> str:
    from whence.core.showing import visible

    return visible(text, keep="\n")


def asks_part(g: Generation, how, part, text) -> bool:
    target = target_of(g)
    names = "".join(g.outputs[i].name for i in range(target.at, target.until))
    return (
        (how == "does the text go on with") == is_given(g)
        and text == as_quoted(as_shown(everything(g)), 120)
        and part == as_quoted(names, 120)
        and target.until - target.at < len(g.outputs)
        and not contrasted(g)
    )


def asks_contrast(g: Generation, names, rivals, how, text, stop) -> bool:
    if bool(stop) == text.endswith((".", "!", "?", "…")):  # a sentence ends once
        return False
    if (how == "The text goes on with") != is_given(g):
        return False
    if text != as_quoted(as_shown(everything(g)), 120):
        return False
    if is_of_texts(g):
        sides = target_of(g).label, target_of(g).against
        return (names, rivals) == tuple(f"“{as_quoted(side, 120)}”" for side in sides)
    targets = contrasted(g)
    others = list(dict.fromkeys(as_read(t.against) for t in targets))
    return lists(names, [t.label for t in targets], 4) and lists(rivals, others, 4)


WHY = r"Why (?P<how>did the model write|does the text go on with)"
QUESTION = Reader(
    {
        rf"{WHY} “(?P<text>[^”]*)”\?": asks_all,
        rf"{WHY} “(?P<part>[^”]*)” in “(?P<text>[^”]*)”\?": asks_part,
        rf"Why (?P<names>{NAMES}) rather than (?P<rivals>{NAMES})\? (?P<how>The model wrote|The "
        rf"text goes on with) “(?P<text>[^”]*)”(?P<stop>\.?)": asks_contrast,
    }
)


# ---------------------------------------------------------------------- which number it is


def read_of(g: Generation) -> str:
    return next(iter(g.rows.values()))[0].target.read


def of_each(g: Generation, what, names=None, rivals=None) -> bool:
    every = [a.target for a in next(iter(g.rows.values()))]
    targets = [t for t in every if t.against is not None]
    others = list(dict.fromkeys(as_read(t.against) for t in targets))
    return (
        NUMBERS[what] == read_of(g)
        and (rivals is not None) == bool(targets)
        and (rivals is None or lists(rivals, others, 4))
        and (names is not None) == (0 < len(targets) < len(every))
        and (names is None or lists(names, [t.label for t in targets], 4))
    )


def divergence(g: Generation, where) -> bool:
    reference = next(iter(g.rows.values()))[0].target.reference
    name = "the whole input" if reference is None else reference.name
    return read_of(g) == "kl" and where == name


SCORES = Reader(
    {
        rf"Scores: the (?P<what>score \(logit\)|(?:log-)?probability|cross-entropy|perplexity) "
        rf"of each(?:, (?:of (?P<names>{NAMES}) )?less that of "
        rf"(?P<rivals>{NAMES}))?\.": of_each,
        r"Scores: the entropy of all that could stand in place of each\.": lambda g: (
            read_of(g) == "entropy"
        ),
        r"Scores: the lead of each in score \(logit\) over the strongest other\.": lambda g: (
            read_of(g) == "margin"
        ),
        r"Scores: the divergence \(KL\), from (?P<where>[a-z ]+), in the place of "
        r"each\.": divergence,
    }
)


# ---------------------------------------------------------------------- how it came about


def decoded(g: Generation, how, beams=None, drawn=None, rest=None, options=None, most=None) -> bool:
    asked = dict(g.decoding)
    limit = asked.pop("max_new_tokens", None)
    width = asked.pop("num_beams", None) or 1
    samples = asked.pop("do_sample", False)
    is_plain = asked.get("temperature") == asked.get("top_p") == 1.0 and asked.get("top_k") == 0
    if samples and is_plain:
        asked = {k: v for k, v in asked.items() if k not in ("temperature", "top_p", "top_k")}
    wanted = "the likeliest token each time"
    if width > 1:
        wanted = f"beam search with {width} beams"
    elif samples:
        wanted = "tokens drawn at random"
    named = [] if options is None else re.findall(r"(?:^|, )([a-z_]+) ", options)
    return (
        not is_given(g)
        and how == wanted
        and (drawn is not None) == (samples and width > 1)
        and (rest is not None) == (samples and is_plain)
        and named == list(asked)
        and (None if most is None else int(most.split()[0])) == limit
        and (most is None or most.endswith("tokens") == (limit != 1))
    )


def some_explained(g: Generation, count, every, kind, verb) -> bool:
    return (
        int(count) == len(g.explained) < int(every) == len(g.outputs)
        and (kind == "given") == is_given(g)
        and (verb == "was") == (int(count) == 1)
    )


def gap(g: Generation, method, share) -> bool:
    errors = [a.error for a in g.rows[method] if a.error is not None]
    known = [error.completeness_gap for error in errors if error.completeness_gap is not None]
    return is_percent(share, max(known))


def dropped(g: Generation, count, word, verb) -> bool:
    is_one = g.passage.dropped == 1
    return int(count.replace(",", "")) == g.passage.dropped and (word, verb) == (
        ("character", "was") if is_one else ("characters", "were")
    )


REMARKS = Reader(
    {
        r"What follows the prompt was given, as (?P<how>text|tokens)\.": lambda g, how: (
            g.decoding.get("given") == how
        ),
        r"Decoding: (?P<how>the likeliest token each time|beam search with (?P<beams>\d+) beams|"
        r"tokens drawn at random)(?P<drawn>, drawn at random)?(?P<rest>, each by its probability)?"
        r"(?: \((?P<options>.+?)\))?(?:, at most (?P<most>\d+ tokens?))?\.": decoded,
        r"(?P<count>\d+) of the (?P<every>\d+) (?P<kind>written|given) tokens (?P<verb>was|were) "
        r"explained\.": some_explained,
        rf"(?P<method>[a-z-]+): completeness gap up to (?P<share>{PERCENT})\.": gap,
        r"(?P<method>[a-z-]+): a note": lambda g, method: any(
            a.error is not None and a.error.note == "a note" for a in g.rows[method]
        ),
        r"(?P<count>[\d,]+) (?P<word>characters?) of the prompt (?P<verb>was|were) cut "
        r"off\.": dropped,
        r"lime was left out: it does not fit": lambda g: "lime" in g.skipped,
        r"shapley has no evidence: no room": lambda g: "shapley" in g.chosen.skipped,
        r"What a model's own files change: top_k 50\.": lambda g: bool(g.notes),
        r"There is no evidence for these scores: this model cannot be run again": lambda g: (
            g.chosen is None and "evidence" in g.skipped
        ),
        r"There is no evidence for these scores, as none was asked for: nothing says they hold\.": (
            lambda g: g.chosen is None and "evidence" not in g.skipped
        ),
        r"A word of several tokens has the (?P<how>sum|mean) of their scores, (?:as "
        r"(?P<what>[a-z-]+) "
        r"add up, )?and the product of their probabilities\.": lambda g, how, what: (
            has_wholes(g)
            and (how == "sum") == adds_up(g) == (what is not None)
            and (what is None or ADDED[what] == read_of(g))
        ),
        r"the log-probability of “(?P<name>[^”]*)” less that of “(?P<other>[^”]*)”": (
            lambda g, name, other: (
                is_of_texts(g)
                and name == as_quoted(target_of(g).label, 60)
                and other == as_quoted(target_of(g).against, 60)
            )
        ),
    }
)


def words(g: Generation) -> list[list[int]]:
    """The explained tokens by words; those of a word that was explained in part stand alone."""
    groups: list[list[int]] = []
    for number, output in enumerate(g.outputs):
        starts = output.name != output.name.lstrip() or not groups
        if starts or output.name == END or g.outputs[number - 1].name == END:
            groups.append([number])
        else:
            groups[-1].append(number)
    told: list[list[int]] = []
    for group in groups:
        if set(group) <= set(g.explained):
            told.append(group)
        else:
            told += [[number] for number in group if number in g.explained]
    return told


def has_wholes(g: Generation) -> bool:
    return any(len(word) > 1 for word in words(g))


def adds_up(g: Generation) -> bool:
    rows = next(iter(g.rows.values()))
    return rows[0].signed and read_of(g) in ADDED.values()


# ---------------------------------------------------------------------- the table of a terminal


def check_table(g: Generation) -> None:
    """Each word with its probability, and its strongest sources with their signs."""
    shown = generation_text(g)
    lines = shown.splitlines()
    method = g.methods[0]
    head = next(i for i, line in enumerate(lines) if re.match(r"(written|given) +prob\. ", line))
    assert lines[head].startswith("given" if is_given(g) else "written")
    for word, line in zip(words(g)[:40], lines[head + 1 :], strict=False):
        found = re.match(rf".{{2,}}?  +({PERCENT})  (.*)", line)
        probability = prod(g.outputs[i].probability for i in word)
        assert is_percent(found[1], min(probability, 1.0)), line
        rows = [g.rows[method][g.explained.index(i)].scores for i in word]
        several = [row[: len(rows[0])] for row in rows]
        scores = np.sum(several, axis=0) if adds_up(g) else np.mean(several, axis=0)
        told = re.findall(r" ([+−]?\d+(?:\.\d+)?(?:e[+−]\d+)?)(?=  |$)", f"{found[2]}  ")
        if found[2].strip() == "–":
            assert not scores.any()
            continue
        top = scores[np.argsort(-np.abs(scores), kind="stable")[:3]]
        # three digits of the largest are shown: what is less than half of the last is no source
        last = 10.0 ** (np.floor(np.log10(np.abs(top[0]))) - 2) if top[0] else 0.0
        for score in top[top != 0]:
            if abs(score) > 0.51 * last:
                assert any(is_number(number, float(score)) for number in told), (line, score)
    left = len(words(g)) - 40
    more = re.search(r"^(\d+) more (is|are) in the page", shown, re.MULTILINE)
    assert (more is not None) == (left > 0)
    if more is not None:
        assert (int(more[1]), more[2]) == (left, "is" if left == 1 else "are")


def check(g: Generation) -> None:
    QUESTION.read(question(g), g)
    SCORES.read(scores_line(g, g.methods[0]), g)
    said = [without_evidence(g), decoding_line(g), contrast_of(g), about_wholes(g, g.methods[0])]
    for sentence in (*filter(None, said), *remarks(g)):
        REMARKS.read(sentence, g)
    assert bool(said[0]) == (g.chosen is None)
    assert bool(said[2]) == is_of_texts(g)
    assert bool(said[3]) == has_wholes(g)
    assert any("were explained" in s or "was explained" in s for s in remarks(g)) == (
        len(g.explained) < len(g.outputs)
    )


def hunt(results: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(results):
        check(generation(rng))


def test_what_is_said_of_a_written_text_is_true_of_its_record():
    hunt(300, 0)


def test_the_table_in_a_terminal_has_the_numbers_of_its_words(monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    rng = np.random.default_rng(3)
    for _ in range(60):
        check_table(generation(rng))


@pytest.mark.slow
def test_what_is_said_of_many_written_texts_is_true_of_their_records():
    hunt(6000, 1)
    for reader in (QUESTION, SCORES, REMARKS):
        assert reader.never_met == []
