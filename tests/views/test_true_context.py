"""What is said of a context's use is read back, and is true of the record that it speaks of."""

from __future__ import annotations

import re
from math import inf, prod

import numpy as np
import pytest

from tests.occasions.context import context_use
from tests.views.parsing import (
    NAME,
    NAMES,
    NUMBER,
    PERCENT,
    Reader,
    as_quoted,
    as_read,
    is_number,
    is_percent,
    lists,
)
from whence.core.contextual import ContextUse
from whence.views.context import answer, context_text, remarks

UNITS = {"kl-divergence": "nat", "p-cxmi": "bit", "in-context-pvi": "nat"}
SCORE = rf"{NUMBER}(?: nats?| bits?)?"
CHANCES = rf"(?P<name>{NAME}): (?P<after>{PERCENT}) with the context, (?P<before>{PERCENT}) without"
PLACE = r"(?:(?:word|token|sentence) \d+ of )?.+"
RATIO = 1.25 * 1.001
# of scores alike but for rounding, another may be called the strongest
ALIKE = 1e-9


# ---------------------------------------------------------------------- the record, read anew


def words(use: ContextUse) -> list[list[int]]:
    """The written tokens by words; a special token by itself."""
    groups: list[list[int]] = []
    for number, output in enumerate(use.outputs):
        goes_on = number and output.word is not None
        if goes_on and output.word == use.outputs[number - 1].word:
            groups[-1].append(number)
        else:
            groups.append([number])
    return groups


def real(use: ContextUse) -> list[list[int]]:
    return [word for word in words(use) if use.outputs[word[0]].word is not None]


def is_chosen(use: ContextUse, word: list[int]) -> bool:
    return any(number in use.selected for number in word)


def name_of(use: ContextUse, word: list[int]) -> str:
    """A word as it is read; of several that are alike it says which of them it is."""
    names = [as_read("".join(use.outputs[i].name for i in one)) for one in words(use)]
    at = words(use).index(word)
    count = names[: at + 1].count(names[at])
    while count > 1 and f"{names[at]} ({count})" in names:  # the name of another
        count += 1
    return names[at] if count == 1 else f"{names[at]} ({count})"


def both(use: ContextUse, word: list[int]) -> tuple[float, float]:
    tokens = [use.outputs[number] for number in word]
    return prod(t.probability for t in tokens), prod(t.without for t in tokens)


def times(use: ContextUse, word: list[int]) -> float:
    low, high = sorted(both(use, word))
    if low == high:
        return 1.0
    return high / low if low else inf


def size(use: ContextUse, word: list[int]) -> float:
    chosen = [number for number in word if number in use.selected]
    return max(abs(use.outputs[number].score) for number in chosen)


def others(use: ContextUse) -> list[list[int]]:
    return [word for word in real(use) if not is_chosen(use, word)]


def place(use: ContextUse, unit: int) -> str:
    start = use.passage.unit_spans[unit][1]
    section = next(s for s in use.passage.sections if s.start <= start < s.end)
    if use.passage.kind == "section":
        return as_read(section.name)
    before = sum(section.start <= s < start for _, s, _ in use.passage.unit_spans)
    owner = "the context" if section.name == "context" else section.name
    return as_read(f"{use.passage.kind} {before + 1} of {owner}")


def standing_out(use: ContextUse, scores: np.ndarray, sign: int) -> list[int]:
    """The units that speak for, or against, by the rule of ``ContextUse.sources``."""
    sizes = np.maximum(sign * scores, 0)
    if not sizes.any():
        return []
    deviations = 1.0 if use.selection.deviations is None else use.selection.deviations
    spread = sizes.std(ddof=1) if len(sizes) > 1 else 0.0
    differs = np.ptp(sizes) > 1e-12 * sizes.max()
    reaches = sizes >= sizes.mean() + deviations * spread
    chosen = np.flatnonzero(reaches & (sizes > 0)) if differs else []
    if not len(chosen):
        chosen = [int(sizes.argmax())]
    kept = [unit for unit in chosen if sizes[unit] >= np.abs(scores).max() / 10]
    return sorted(kept, key=lambda unit: -sizes[unit])


def scores_of(use: ContextUse, numbers: list[int]) -> np.ndarray:
    rows = use.rows[use.methods[0]]
    total = np.zeros(len(use.passage.unit_spans))
    for number in numbers:
        total += rows[use.selected.index(number)].scores
    return total


def reads_all(use: ContextUse) -> bool:
    """Whether it is not a token that is explained, but all that could stand in its place."""
    return use.rows[use.methods[0]][0].target.read == "kl"


def whole(use: ContextUse) -> str:
    return "given" if "given" in use.decoding else "written"


# ---------------------------------------------------------------------- what sentences say


def question(use: ContextUse, how: str, text: str, asked: str) -> bool:
    is_given = how == "The text goes on with"
    written = use.text.strip(" ")
    if not written.strip():
        written = " ".join(as_read(output.name) for output in use.outputs)
    return (
        is_given == ("given" in use.decoding)
        and text == as_quoted(written, 120)
        and asked == as_quoted(use.input, 120)
    )


def is_relative(use: ContextUse) -> bool:
    return use.selection.deviations is not None or use.selection.most is not None


def counted(use: ContextUse, found, of, kind, word, depend, most, names, so=None) -> bool:
    chosen = [one for one in real(use) if is_chosen(use, one)]
    every = len(real(use))
    return (
        int(found) == len(chosen)
        and int(of) == every
        and (word == "word") == (every == 1)
        and (depend == "depends") == (len(chosen) == 1)
        and (most is not None) == (is_relative(use) and len(chosen) < every)
        and kind == whole(use)
        and lists(names, [name_of(use, one) for one in chosen], 6)
        and (so is not None or not specials(use))
        and (so is None or are_special(use, so))
    )


def specials(use: ContextUse) -> list[str]:
    chosen = [one for one in words(use) if is_chosen(use, one)]
    return [name_of(use, one) for one in chosen if use.outputs[one[0]].word is None]


def are_special(use: ContextUse, said: str) -> bool:
    verb, token, names = re.fullmatch(rf"(do|does) the special (tokens?) ({NAMES})", said).groups()
    is_one = len(specials(use)) == 1
    return (verb == "does") == is_one == (token == "token") and lists(names, specials(use), 6)


def no_word(use: ContextUse, kind, depends, token, names, verb) -> bool:
    return (
        kind == whole(use)
        and not any(is_chosen(use, one) for one in real(use))
        and (depends == "depends") == (not is_relative(use))
        and are_special(use, f"{verb} the special {token} {names}")
    )


def nothing(use: ContextUse, depends, measure, far, score, floor=None) -> bool:
    every = [output.score for output in use.outputs]
    by_size = use.selection.rule == "tool"
    largest = max(every, key=abs) if by_size else max(every)
    reach = abs(largest) if by_size else largest
    is_below = use.selection.least is not None and reach <= use.selection.least
    is_still = all(times(use, word) < 4 for word in words(use))
    return (
        not use.selected
        and measure == use.selection.measure
        and (depends == "depends") == (is_below and is_still)
        and is_score(use, score, largest)
        and (far == "farthest from zero") == (largest < 0 and by_size)
        and (floor is None) == (use.selection.least is None)
        and (floor is None or is_score(use, floor, use.selection.least))
    )


def is_score(use: ContextUse, shown: str, score: float) -> bool:
    number, _, unit = shown.partition(" ")
    wanted = UNITS.get(use.selection.measure, "")
    if wanted and number not in ("1", "−1"):
        wanted += "s"
    return is_number(number, score) and unit == wanted


def answer_rests(use: ContextUse, method, what, unit, text) -> bool:
    return (
        len(use.sentences) == 1
        and method == as_read(use.methods[0])
        and (what == "this answer rests most on") == (not reads_all(use))
        and is_quoted_unit(use, list(use.selected), unit, text)
    )


def sentence_rests(use: ContextUse, method, what, number, kind, end, unit, text) -> bool:
    outputs = use.sentences[int(number) - 1]
    return (
        len(use.sentences) > 1
        and method == as_read(use.methods[0])
        and (kind == "what was written") == (whole(use) == "written")
        and (end == "rests most on" and not what) == (not reads_all(use))
        and is_quoted_unit(use, [n for n in use.selected if n in outputs], unit, text)
    )


def is_quoted_unit(use: ContextUse, numbers: list[int], unit: str, text: str) -> bool:
    strongest = standing_out(use, scores_of(use, numbers), 1)[0]
    content = use.passage.units.texts[strongest]
    ends = content.strip().endswith((".", "!", "?", "…"))
    quote = f"“{as_quoted(content, 160)}”{'' if ends else '.'}"
    return unit == place(use, strongest) and text == quote


def first_sentence(use: ContextUse, kind) -> bool:
    inside = [number for number in use.selected if number in use.sentences[0]]
    return (kind == "what was written") == (whole(use) == "written") and not inside


def further(use: ContextUse, count, verb) -> bool:
    resting = 0
    for outputs in use.sentences:
        numbers = [n for n in use.selected if n in outputs]
        resting += bool(numbers and standing_out(use, scores_of(use, numbers), 1))
    return int(count) == resting - 4 and (verb == "rests") == (int(count) == 1)


def named(use: ContextUse, name: str, after: str, before: str) -> list[list[int]]:
    """The words that are called so, and have these probabilities."""
    told = name.strip("“”")
    return [
        word
        for word in words(use)
        if name_of(use, word) == told
        and is_percent(after, both(use, word)[0])
        and is_percent(before, both(use, word)[1])
        and (after != before or times(use, word) < RATIO)
    ]


def about(use: ContextUse, name, after, before, rests, without, ruling=None) -> bool:
    """At least one of the words called so is as it is said; several may have one name."""
    strongest = sorted((w for w in words(use) if is_chosen(use, w)), key=lambda w: -size(use, w))
    return any(
        about_word(use, word, rests.replace(name, "X", 1), without, ruling, after != before)
        for word in named(use, name, after, before)
        if is_chosen(use, word) and size(use, word) >= size(use, strongest[:3][-1])
    )


def about_word(use, word, rests, without, ruling, differ) -> bool:
    first = next(number for number in word if number in use.selected)
    row = use.rows[use.methods[0]][use.selected.index(first)]
    return (
        is_right_rest(use, row.scores, rests)
        and is_right_without(use, word, without, differ)
        and (ruling is None) == (row.evidence is None)
        and (ruling is None or ruling == str(row.evidence.verdict or "no verdict"))
    )


def is_right_rest(use: ContextUse, scores: np.ndarray, rests: str) -> bool:
    """What is said of a word's sources, with X for the word itself."""
    for_it, against = standing_out(use, scores, 1), standing_out(use, scores, -1)
    if not -scores.min(initial=0.0) > scores.max(initial=0.0):
        against = []
    if reads_all(use):
        place_of_it = "What could stand in place of X"
        if not for_it and not against:
            return rests == f"{place_of_it} is moved by no part of the context in particular"
        parts = [f"is moved most by {units(use, for_it)}"] if for_it else []
        if against:
            parts.append(f"is kept as it is without context by {units(use, against)}")
        return rests == f"{place_of_it} {', and '.join(parts)}"
    if not for_it and not against:
        return rests == "X rests on no part of the context in particular"
    if not for_it:
        return rests == f"The context speaks against X, most of all {units(use, against)}"
    more = f", and more speaks against it: {units(use, against)}" if against else ""
    return rests == f"X rests most on {units(use, for_it)}{more}"


def units(use: ContextUse, which: list[int]) -> str:
    if use.passage.kind in ("sentence", "section"):
        return place(use, which[0])
    told = ", ".join(f"“{as_read(use.passage.units.names[unit])}”" for unit in which[:4])
    if len(which) > 4:
        told += f" and {len(which) - 4} more"
    return f"{told} ({place(use, which[0])})" if len(which) == 1 else told


def is_right_without(use: ContextUse, word: list[int], said: str, differ: bool) -> bool:
    tokens = [use.outputs[number] for number in word]
    apart = [t for t in tokens if t.id != t.instead_id and as_read(t.name) != as_read(t.instead)]
    after, before = both(use, word)
    greedy = "given" not in use.decoding and not use.decoding.get("do_sample")
    is_likeliest = (greedy and use.decoding.get("num_beams", 1) == 1) or after > 0.5
    if apart and is_likeliest:
        return said == f"without context “{as_read(apart[0].instead)}” would be likelier"
    if apart:
        return said == f"the likeliest without context is “{as_read(apart[0].instead)}”"
    if not is_likeliest:
        return said == "without context it would be the likeliest"
    likelier = ", and be likelier" if before > after and differ else ""
    return said == f"without context it would stand there too{likelier}"


# ---------------------------------------------------------------------- words not selected


def is_whom(use: ContextUse, whom: str) -> bool:
    kind = "word" if len(others(use)) == 1 else "words"
    return whom == (kind if len(others(use)) == len(real(use)) else f"other {kind}")


def alike(use: ContextUse, whom, verb) -> bool:
    return (
        is_whom(use, whom)
        and (verb == "is") == (len(others(use)) == 1)
        and all(times(use, word) < RATIO for word in others(use))
    )


def changes_most(use: ContextUse, name, after, before) -> bool:
    largest = max(times(use, word) for word in others(use))
    hits = [word for word in named(use, name, after, before) if word in others(use)]
    return any(times(use, word) >= largest * (1 - ALIKE) for word in hits)


def far_out(use: ContextUse, which, name, after, before, more=None) -> bool:
    far = [word for word in others(use) if times(use, word) >= 4]
    sizes = [abs(use.outputs[number].score) for word in far for number in word]
    least = min((abs(use.outputs[number].score) for number in use.selected), default=0)
    nearer = max(sizes) <= least
    wanted = "By the largest factor changes"
    if use.selected and len(far) == 1:
        wanted = "Less far out stands" if nearer else "Not selected was"
    elif use.selected:
        wanted = "Less far out stand" if nearer else "Not selected were"
    return (
        which == wanted
        and int(more or 0) == len(far) - 1
        and changes_most(use, name, after, before)
    )


def changes_hardly(use: ContextUse, word: list[int]) -> bool:
    after, before = both(use, word)
    return times(use, word) < 1.25 and abs(after - before) < 0.1


def one_other(use: ContextUse, whom, name, after, before, hardly=None) -> bool:
    (word,) = others(use)
    return (
        times(use, word) < 4
        and is_whom(use, whom)
        and bool(hardly) == changes_hardly(use, word)
        and changes_most(use, name, after, before)
    )


def hardly(use: ContextUse, whom, name, after, before) -> bool:
    return (
        is_whom(use, whom)
        and len(others(use)) > 1
        and changes_most(use, name, after, before)
        and all(changes_hardly(use, word) for word in others(use))
    )


def most(use: ContextUse, whom, name, after, before) -> bool:
    largest = max(times(use, word) for word in others(use))
    return (
        is_whom(use, whom)
        and largest < 4
        and not all(changes_hardly(use, word) for word in others(use))
        and changes_most(use, name, after, before)
    )


# ---------------------------------------------------------------------- how it was done


def selection(
    use: ContextUse, size, at=None, mean=None, sd=None, floor=None, factor=None, most=None
):
    asked = use.selection
    if (at is None) != (asked.threshold is None) or (
        sd is not None and float(sd) != asked.deviations
    ):
        return False
    if at is not None:
        how, number = re.fullmatch(rf"is (at least|above) ({SCORE})", at).groups()
        scores = np.array([output.score for output in use.outputs])
        spread = scores.std(ddof=1 if asked.rule == "tool" else 0) if len(scores) > 1 else 0.0
        if not is_score(use, number, scores.mean() + asked.deviations * spread):
            return False
        if (how == "at least") != (asked.rule == "tool"):
            return False
    has_signs = asked.rule == "tool" and any(output.score < 0 for output in use.outputs)
    strongest = None if most is None else (1 if most.startswith("only") else int(most.split()[1]))
    return (
        (size == "size") == has_signs
        and (floor is None) == (asked.least is None)
        and (floor is None or is_score(use, floor, asked.least))
        and (None if factor is None else float(factor)) == asked.factor
        and strongest == asked.most
        and mean == asked.measure
    )


def decoding(use: ContextUse, tokens) -> bool:
    return "given" not in use.decoding and int(tokens) == use.decoding["max_new_tokens"]


REST = rf"(?:{NAME} \([^()]*\) rests on no part of the context in particular|.+?)"
READER = Reader(
    {
        r"(?P<how>The model wrote|The text goes on with) “(?P<text>[^”]*)” after "
        r"“(?P<asked>[^”]*)”"
        r": which words of it depend on the context\?": question,
        rf"(?P<found>\d+) of (?P<of>\d+) (?P<kind>written|given) (?P<word>words?) "
        rf"(?P<depend>depends?)(?P<most> most)? on the context: (?P<names>{NAMES})"
        rf"(?:; so (?P<so>(?:do|does) the special .+))?\.": counted,
        rf"No (?P<kind>written|given) word (?P<depends>depends|stands out as depending) on the "
        rf"context, but the special (?P<token>tokens?) (?P<names>{NAMES}) "
        r"(?P<verb>do|does)\.": no_word,
        rf"No word of the output (?P<depends>depends|stands out as depending) on the context: the "
        rf"(?:largest )?(?P<measure>[a-z-]+?)(?P<far> farthest from zero)? is (?P<score>{SCORE})"
        rf"(?:, where (?P<floor>{SCORE}) is the floor)?\.": lambda use, far, **more: nothing(
            use, far=(far or "").strip(), **more
        ),
        rf"By (?P<method>[a-z-]+), (?P<what>this answer rests most on|what could stand in place of "
        rf"this answer is moved most by) (?P<unit>{PLACE}?): (?P<text>“[^”]*”\.?)": answer_rests,
        rf"By (?P<method>[a-z-]+), (?P<what>what could stand in place of )?sentence "
        rf"(?P<number>\d+) of (?P<kind>what was written|the given continuation) (?P<end>rests most "
        rf"on|is moved most by) (?P<unit>{PLACE}?): (?P<text>“[^”]*”\.?)": sentence_rests,
        r"No word of the first sentence of (?P<kind>what was written|the given continuation) "
        r"stands out as depending on the context\.": first_sentence,
        r"(?P<count>\d+) further sentences? (?P<verb>rests?) on the context, too\.": further,
        rf"(?P<rests>(?:The context speaks against |What could stand in place of )?"
        rf"(?P<name>{NAME}) \((?P<after>{PERCENT}) with the context, (?P<before>{PERCENT}) "
        r"without\).*?); (?P<without>(?:the likeliest )?without context .+?)"
        r"(?:; its sources beside random ones: (?P<ruling>[a-z ]+))?\.": lambda use, **m: about(
            use,
            **{
                **m,
                "rests": re.sub(r" \([^()]* with the context, [^()]* without\)", "", m["rests"]),
            },
        ),
        r"The (?P<whom>(?:other )?words?) (?P<verb>is|are) about as likely without it\.": alike,
        rf"(?P<which>Less far out stands|Not selected was|By the largest factor changes) {CHANCES}"
        r"\.": far_out,
        rf"(?P<which>Less far out stand|Not selected were) (?P<name>{NAME}) \((?P<after>{PERCENT}) "
        rf"with the context, (?P<before>{PERCENT}) without\) and (?P<more>\d+) more "
        r"words?\.": far_out,
        rf"(?P<which>By the largest factor changes) {CHANCES}; (?P<more>\d+) more changes? "
        r"far\.": far_out,
        rf"The (?P<whom>(?:other )?word)(?:, (?P<name>{NAME}), (?P<hardly>hardly changes)): "
        rf"(?P<after>{PERCENT}) with the context, (?P<before>{PERCENT}) without\.": one_other,
        rf"The (?P<whom>(?:other )?word) is (?P<name>{NAME}): (?P<after>{PERCENT}) with the "
        rf"context, (?P<before>{PERCENT}) without\.": one_other,
        rf"The (?P<whom>(?:other )?words) hardly change, by the largest factor {CHANCES}"
        r"\.": hardly,
        rf"Of the (?P<whom>(?:other )?words) (?P<name>{NAME}) changes by the largest factor: "
        rf"(?P<after>{PERCENT}) with the context, (?P<before>{PERCENT}) without\.": most,
    }
)
HOW = Reader(
    {
        rf"Tokens depend on the context whose (?P<size>size|score) (?:(?P<at>is (?:at least|above) "
        rf"{SCORE}) \(mean \+ (?P<sd>[\d.]+) × standard deviation of this output\))?(?: and )?"
        rf"(?:(?:is )?above the floor of (?P<floor>{SCORE}))?(?:is not zero|is above zero)?"
        r"(?:, or which it makes at least (?P<factor>\d+) times as likely or as unlikely)?"
        r"(?:; (?P<most>only the strongest of them|the \d+ strongest of them at most))?\. "
        r"Measure: (?P<mean>[a-z-]+)\.": selection,
        r"What follows the prompt was given, as (?P<how>text|tokens)\.": lambda use, how: (
            use.decoding.get("given") == how
        ),
        r"Decoding: the likeliest token each time, at most (?P<tokens>\d+) tokens?\.": decoding,
        r"No sentence of this\.": lambda use: use.notes == ("no sentence of this",),
        r"lime was left out: it does not fit": lambda use: "lime" in use.skipped,
    }
)


def check(use: ContextUse) -> None:
    """Every sentence is recognised and true, and none is missing."""
    said = answer(use)
    for sentence in said:
        READER.read(sentence, use)
    for sentence in remarks(use):
        HOW.read(sentence, use)
    assert bool(others(use)) == bool(
        re.match(r"The (other )?words?\b|Of the |Less far|Not selected|By the largest", said[-1])
    ), said
    chosen = [word for word in words(use) if is_chosen(use, word)]
    abouts = [s for s in said if re.search("; (the likeliest )?without context ", s)]
    assert len(abouts) == min(3, len(chosen)), said


def hunt(results: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(results):
        check(context_use(rng))


def test_what_is_said_of_a_context_is_true_of_its_numbers():
    hunt(400, 0)


def test_the_rows_in_the_terminal_are_those_of_the_words(monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    rng = np.random.default_rng(2)
    for _ in range(60):
        use = context_use(rng)
        shown = context_text(use)
        rows = re.findall(
            rf"^(●?) .*?({PERCENT})  +({PERCENT})  +(−?\d+\.\d{{3}})", shown, re.MULTILINE
        )
        assert len(rows) == min(len(words(use)), 40), shown
        for word, (mark, after, before, score) in zip(words(use), rows, strict=False):
            assert bool(mark) == is_chosen(use, word)
            assert is_percent(after, both(use, word)[0])
            assert is_percent(before, both(use, word)[1])
            largest = max((use.outputs[number].score for number in word), key=abs)
            assert is_number(score, largest)


@pytest.mark.slow
def test_what_is_said_of_many_contexts_is_true_of_their_numbers():
    hunt(9000, 1)
    assert READER.never_met == []
    assert HOW.never_met == []
