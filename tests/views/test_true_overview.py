"""What is said of a run over a data set is read back, and held against what was counted."""

from __future__ import annotations

import re
import shlex
from collections import Counter

import numpy as np
import pytest

from tests.occasions import overview as occasion
from tests.views.reading_back import COUNT, PERCENT, is_percent, plain, read, shown, whole
from whence.core.overview import CarryingWord, Overview
from whence.views.answering_of_many import many_sentences
from whence.views.confusion import confusion_sentences, confusion_view, next_commands
from whence.views.data_labels import label_sentences
from whence.views.overview import overview_page, overview_sentences
from whence.views.terminal import to_text

WORD = rf"“(?:.|\n)*?” \({PERCENT}, in (?:only )?{COUNT} texts?\)"
# a share that is told, and how it is told where it is next to 0 or 1
ABOUT = (("> 99 %", 0.995, 1.0), ("< 0.01 %", 0.0, 0.0001))


def is_effect(text: str, share: float) -> bool:
    """A share of scores: two digits below a hundredth, and never a 100 % that is none."""
    sign = -1 if text.startswith("−") else 1
    bare = text.removeprefix("−")
    for words, least, most in ABOUT:
        if bare == words:
            return least <= sign * share < most
    if abs(share) < 0.01 and share:
        return sign * share > 0 and abs(float(bare.split()[0]) / (100 * abs(share)) - 1) <= 0.051
    return is_percent(text, share)


# ---------------------------------------------------------------------- labels of the data


def label_readers(labels, given, mapping, is_needed):
    """Readers of what is said of labels, for what the data gave and what was mapped."""
    from whence.core.data_labels import match

    names = labels.names
    every = Counter(label for label in given if label is not None)
    met = {label: match(label, names, mapping) for label in every}
    unknown = {label: n for label, n in every.items() if met[label] is None}
    known = {label: met[label].name for label in every if met[label] is not None}

    def is_first(told: list[str], more: str | None, of: dict[str, int], most: int = 6) -> None:
        """As many as fit are named, those of most texts first; the others are counted."""
        counts = sorted(of.values(), reverse=True)
        named = {shown(label): n for label, n in of.items()}
        numbers = [re.fullmatch(r"(.+?)(?: \((\d+)\))?", one, re.DOTALL) for one in told]
        assert [named[one[1]] for one in numbers] == counts[: len(told)]
        assert all((one[2] is None) == (len(of) == 1) for one in numbers)
        assert all(one[2] is None or int(one[2]) == named[one[1]] for one in numbers)
        assert len(told) + int(more or 0) == len(of)
        assert len(told) == min(most, len(of))

    def count_of(some, texts, verb):
        if some is None:
            assert len(given) == 1
            return 1
        assert whole(texts) == len(given) > 1
        assert (verb == "has") == (whole(some) == 1)
        return whole(some)

    def has_unknown(some, texts, verb, told, more, consequence, own, example):
        assert count_of(some, texts, verb) == sum(unknown.values())
        is_first(told.split(", "), more, unknown)
        assert (consequence.startswith("nothing comes of such a text")) == is_needed
        assert own.split(", ")[:2] == list(names[:6])[:2]
        typed = shlex.split(example)[0]
        label, _, guess = typed.partition("=")
        top = max(unknown.values())
        assert label in [shown(one) for one, n in unknown.items() if n == top]
        return guess in (*names, "…")

    def has_none(some, texts, verb):
        return count_of(some, texts, verb) == sum(label is None for label in given)

    def are_read(how, told, more):
        right = {
            "as --labels says": lambda g: g in mapping,
            "whatever their capitals": lambda g: g.casefold() == known[g].casefold(),
            "by their numbers": lambda g: g.isdecimal() and names[int(g)] == known[g],
        }[how]
        pairs = [one.rpartition(" as ")[::2] for one in told.split(", ")]
        by_shown = {shown(label): label for label in known}
        for label, name in pairs:
            assert known[by_shown[label]] == name
            assert right(by_shown[label])
        return bool(pairs)

    number = r"(?:The one text has|(\d+) of (\d+) texts (has|have))"
    return (
        [
            (
                rf"{number} a label that the model does not have, (.+?)(?: and (\d+) more)?: "
                r"(the model is neither right nor wrong there, and no accuracy counts that|nothing "
                r"comes of such a text, as its label is needed)\. Its labels are (.+?)(?: and \d+ "
                r"more)?; --labels (.+) says which one is meant\.",
                has_unknown,
            ),
            (rf"{number} no label\.", has_none),
            (
                r"Labels of the data are read (as --labels says|whatever their capitals|by their "
                r"numbers): (.+?)(?: and (\d+) more)?\.",
                are_read,
            ),
        ],
        unknown,
        known,
    )


def check_labels(rng: np.random.Generator) -> list[str]:
    labels, given, mapping = occasion.met(rng)
    is_needed = bool(rng.random() < 0.5)
    readers, unknown, known = label_readers(labels, given, mapping, is_needed)
    said = read(label_sentences(labels, is_needed), readers)
    assert ("has_unknown" in said) == bool(unknown)
    assert ("has_none" in said) == (None in given and len(set(given)) > 1)
    plain_names = all(label == name for label, name in known.items())
    assert ("are_read" in said) == (not plain_names or bool(set(mapping) & set(known)))
    return said


# ---------------------------------------------------------------------- the answer of a run


def words_of(overview: Overview, label: str) -> list[CarryingWord]:
    return [w for w in overview.words if (w.method, w.label) == (overview.speaker, label)]


def is_supported(word: CarryingWord) -> bool:
    return word.texts >= 3 and (word.low > 0 or word.high < 0)


def named(words: list[CarryingWord], sign: int) -> list[CarryingWord]:
    """Words that speak for a label, do a tenth of the largest, and surely something; by size."""
    largest = max((abs(word.share) for word in words), default=0.0)
    may = [
        word
        for word in words
        if sign * word.share > 0
        and is_supported(word)
        and abs(word.share) >= 0.1 * largest
        and any(map(str.isalnum, word.word))
    ]
    return sorted(may, key=lambda word: -abs(word.share))


def is_word(text: str, word: CarryingWord) -> bool:
    told = re.fullmatch(rf"“(.*)” \(({PERCENT}), in (only )?({COUNT}) texts?\)", text, re.DOTALL)
    return (
        told is not None
        and told[1] == (shown(word.word.strip()) or told[1])
        and is_effect(told[2], word.share)
        and bool(told[3]) == (word.texts < 10)
        and whole(told[4]) == word.texts
    )


def check_answer(overview: Overview, given: list[str | None] | None = None) -> list[str]:
    accuracy, labels = overview.accuracy, overview.labels
    others = many_sentences(overview.answer)
    judged = list(overview.confusion.pairs) if overview.confusion else []

    def right_on(right, texts, of_which, share, low, high, label, always):
        by_label = Counter()
        for pair in judged:
            by_label[pair.given] += pair.texts
        every = sum(pair.texts for pair in judged)
        return (
            whole(texts) == every
            and whole(right) == sum(p.texts for p in judged if p.given == p.says)
            and (of_which == "whose label it has") == bool(labels and labels.unknown)
            and is_percent(share, whole(right) / every)
            and is_percent(f"{low} %", accuracy.interval[0])
            and is_percent(f"{high} %", accuracy.interval[1])
            and by_label[label] == max(by_label.values())
            and is_percent(always, by_label[label] / every)
            and len(by_label) > 1
        )

    def is_untold(texts, quantity, label, one):
        known = {pair.given for pair in judged}
        every = sum(pair.texts for pair in judged)
        said = whole(texts) if texts else 1
        return known == {label or one} and said == every and quantity == {
            1: None, 2: "both"}.get(every, "all")  # fmt: skip

    def is_silent(who):
        holding = [shown(t.method) for t in overview.answer.holding]
        signed = dict(zip(map(shown, overview.methods), overview.signed, strict=True))
        is_one = who != "None of these tells"
        return (
            overview.speaker is None
            and not any(signed[name] for name in holding)
            and is_one == (len(holding) == 1)
            and (not is_one or who == f"{holding[0]} does not tell")
        )

    def carried(method, said):
        assert method == shown(overview.speaker)
        sign = -1 if overview.read in ("cross-entropy", "perplexity") else 1
        parts = re.findall(
            rf"(?:; |^)(?:(\S+) is carried by ((?:(?:, | and )?(?:{WORD}|more))+)"
            rf"|for (\S+), of the words that stand in several texts, ({WORD}) does most, which is "
            "not sure)",
            said,
        )
        assert len(parts) == len(re.findall(r" is carried by | does most, which is", said)) > 0
        for label, words, one, word in parts:
            own = words_of(overview, label or one)
            may = named(own, sign)
            if not label:
                assert not may
                speaking = [w for w in own if sign * w.share > 0 and any(map(str.isalnum, w.word))]
                first = max(speaking, key=lambda w: abs(w.share))
                largest = max(abs(w.share) for w in own)
                assert first.texts > 1
                assert abs(first.share) >= max(0.01, 0.1 * largest)
                assert any(is_word(word, w) for w in speaking if abs(w.share) == abs(first.share))
                assert not is_supported(first)
                continue
            told = re.findall(WORD, words)
            assert len(told) == min(3, len(may))
            assert words.endswith(" and more") == (len(may) > 3)
            for text, w in zip(told, may, strict=False):
                same = [o for o in may if abs(o.share) == abs(w.share)]
                assert any(is_word(text, o) for o in same), (text, w)
        return overview.read not in ("entropy", "kl")

    def copies(one, several):
        return overview.repeated == (1 if one else whole(several)) > 0

    def unjudged(count, texts):
        return whole(count) == overview.unjudged > 0 and (texts == "text") == (count == "1")

    readers = [
        (
            rf"(?:(1 text is) a copy of another, and is|({COUNT}) texts are copies of others, and "
            r"are) not counted again in what follows\.",
            copies,
        ),
        (
            rf"It may say several labels of a text, or none, so how often it is right on the "
            rf"({COUNT}) (texts?) with a label in the data is not told\.",
            unjudged,
        ),
        (
            rf"It is right on ({COUNT}) of the ({COUNT}) (whose label it has|that have a label): "
            rf"({PERCENT}) \(([\d.<> ]+) to ([\d.<> ]+) %\); always saying (.+) would be "
            rf"({PERCENT})\.",
            right_on,
        ),
        (
            rf"How often it is right is not told: (?:the ({COUNT}) texts whose label it has are "
            r"(both|all) (.+?)|the one text whose label it has is (.+?)), and one label says "
            r"nothing of how well labels are told apart\.",
            is_untold,
        ),
        (
            r"(None of these tells|.+ does not tell) for from against, so no words are named "
            r"here\.",
            is_silent,
        ),
        (
            r"By (.+?), ((?:\S+ is carried|for \S+, of the words ).+)\. In brackets stands the "
            r"word's mean part of all scores of a text that has it\.",
            carried,
        ),
    ]
    if labels is not None:
        given = [label.given for label in labels.labels for _ in range(label.texts)]
        given += [None] * labels.unlabelled
        mapping = {
            label.given: label.match.name
            for label in labels.labels
            if label.match is not None and label.match.rule == "as given"
        }
        readers += label_readers(labels, given, mapping, is_needed=False)[0]
    own = [said for said in overview_sentences(overview) if said and said not in others]
    names = read(own, readers)
    # the sentences of many texts are all there, but for those that a page has elsewhere
    assert overview_sentences(overview)[0] == others[0]
    assert ("copies" in names) <= (overview.repeated > 0)
    assert ("right_on" in names) == (len({pair.given for pair in judged}) > 1)
    return names


# ---------------------------------------------------------------------- where it is wrong


def check_confusion(overview: Overview) -> list[str]:
    confusion = overview.confusion
    if confusion is None:
        assert confusion_sentences(overview) == []
        return []
    every = sum(pair.texts for pair in confusion.pairs)
    wrong = {(p.given, p.says): p.texts for p in confusion.pairs if p.given != p.says}
    mistakes = confusion.mistakes

    def right(texts):
        return not wrong and every == 1 == int(texts)

    def none(texts):
        return not wrong and every == whole(texts) > 1

    def how_often(count, texts, one, kind, often, no_more, says, given, left):
        assert whole(count or (one and "1")) == sum(wrong.values())
        assert whole(texts or one) == every
        own = wrong[given, says]
        others = [n for pair, n in wrong.items() if pair != (given, says)]
        if kind in ("Each time", "There"):
            assert not others
            assert (own == 1) == (kind == "There")
        elif kind.startswith("Most often"):
            assert own == whole(often) > max(others)
        else:
            assert own == whole(no_more) == max(others)
        return (left is None) == (mistakes.texts == own) and (
            left is None or whole(left) == mistakes.texts
        )

    def has_unknown(count, told, more):
        of = {shown(one.label): one.texts for one in confusion.unknown}
        named_ones = [re.fullmatch(r"(.+) \((\d+)\)", one, re.DOTALL) for one in told.split(", ")]
        assert all(of[one[1]] == int(one[2]) for one in named_ones)
        return whole(count) == sum(of.values()) and len(named_ones) + int(more or 0) == len(of)

    def has_no_label(count):
        return whole(count) == confusion.unlabelled

    def nobody_tells():
        return overview.speaker is None and not overview.answer.tried

    def nobody_holds():
        holding = {t.method for t in overview.answer.holding}
        signed = {
            n for n, is_signed in zip(overview.methods, overview.signed, strict=True) if is_signed
        }
        return overview.speaker is None and not holding & signed

    does = r"(speaks (?:for|against) \S+?)"

    def is_does(said):
        way = {"says": f"for {mistakes.says}", "given": f"against {mistakes.given}"}
        return said == f"speaks {way[mistakes.towards]}"

    def may(word):
        largest = max(w.wrong.share for w in mistakes.words)
        own = word.wrong
        return (
            own.texts >= 3
            and own.interval is not None
            and (own.interval[0] > 0 or own.interval[1] < 0)
            and own.share >= 0.1 * largest
        )

    def no_word(said):
        return is_does(said) and not mistakes.words

    def no_sure_word(few, said, method, first, share, texts):
        (word,) = [w for w in mistakes.words if shown(w.word) == first]
        return (
            is_does(said)
            and not any(map(may, mistakes.words))
            and method == shown(overview.speaker)
            and bool(few) == (mistakes.texts < 10)
            and word.wrong.share == max(w.wrong.share for w in mistakes.words)
            and is_effect(share, word.wrong.share)
            and whole(texts) == word.wrong.texts
        )

    def carries_the_mistake(method, said, words):
        told = re.findall(
            rf"“(.*?)” \(({PERCENT})( of a text's scores)? in (only )?({COUNT}) texts?; "
            rf"(?:(no text that is rightly called so has it)|({PERCENT}) in ({COUNT}) texts? that "
            r"(?:is|are) rightly called so)\)(?:, | and |$)",
            words,
            re.DOTALL,
        )
        those = [word for word in mistakes.words if may(word)]
        assert [one[0] for one in told] == [shown(word.word) for word in those[:3]]
        for place, (one, word) in enumerate(zip(told, those, strict=False)):
            assert is_effect(one[1], word.wrong.share)
            assert bool(one[2]) == (place == 0)
            assert bool(one[3]) == (word.wrong.texts < 10)
            assert whole(one[4]) == word.wrong.texts
            assert bool(one[5]) == (word.right is None)
            if word.right is not None:
                assert is_effect(one[6], word.right.share)
                assert whole(one[7]) == word.right.texts
        return method == shown(overview.speaker) and is_does(said)

    of = "that has a label the model knows"
    names = read(
        confusion_sentences(overview),
        [
            (rf"It is right on the (1) text {of}\.", right),
            (rf"It is wrong on none of the ({COUNT}) texts {of.replace('has', 'have')}\.", none),
            (
                rf"It is wrong on (?:({COUNT}) of the ({COUNT}) texts {of.replace('has', 'have')}"
                rf"|the (1) text {of})\. (Each time|There|Most often, on ({COUNT}) texts?,|On "
                rf"({COUNT}) texts?, and no other mistake is more frequent,) it says (.+) of what "
                r"the data call (.+?)\.(?: A text that stands there twice counts once below, which "
                rf"leaves ({COUNT})\.)?",
                how_often,
            ),
            (
                rf"({COUNT}) texts? ha(?:s|ve) a label that the model does not have: (.+?)(?: and "
                r"(\d+) more)?\. It cannot say it, so it is neither right nor wrong there\.",
                has_unknown,
            ),
            (rf"({COUNT}) texts? ha(?:s|ve) no label\.", has_no_label),
            (
                r"No method here tells for from against, so no words are named\.",
                nobody_tells,
            ),
            (
                r"No method that tells for from against is better than random on more texts than "
                r"chance allows, so no words are named\.",
                nobody_holds,
            ),
            (rf"No word {does} there\.", no_word),
            (
                r"(?:(These are few texts: no)|No) word stands in three of these texts, surely "
                rf"{does}, and does a tenth of what the largest one does\. By (.+), “(.*)” does so "
                rf"most \(({PERCENT}) of a text's scores, in ({COUNT}) texts?\)\.",
                no_sure_word,
            ),
            (rf"By (.+?), what {does} there is (“.+)\.", carries_the_mistake),
        ],
    )
    assert ("how_often" in names) == bool(wrong)
    assert ("has_unknown" in names) == bool(confusion.unknown)
    assert ("has_no_label" in names) == bool(confusion.unlabelled)
    check_commands(overview)
    return names


def check_commands(overview: Overview) -> None:
    """What each is for is what it does; what stands behind "surest" is of the mistake above."""
    commands = next_commands(overview, overview.place)
    mistakes = overview.confusion.mistakes
    assert bool(commands) == (mistakes is not None)
    if mistakes is None:
        return
    (every, all_of_them), (about, one) = commands
    assert every == "all texts it is wrong on"
    assert shlex.split(all_of_them) == ["whence", "query", overview.place, "--wrong"]
    told = re.fullmatch(
        r"(of the mistake above, )?the one where it is surest \(row (\d+)(?:, (.+) sure)?\)", about
    )
    assert told is not None
    wrong = [pair for pair in overview.confusion.pairs if not pair.is_right]
    assert bool(told[1]) == (len(wrong) > 1)
    assert int(told[2]) == mistakes.row
    assert (told[3] is None) == (mistakes.probability is None)
    assert told[3] is None or is_percent(told[3], mistakes.probability)
    typed = shlex.split(one)
    assert typed[1] in ("compare", "query")
    if typed[1] == "compare":
        assert typed[2:] == [mistakes.text, "--model", overview.model]
    else:
        assert f"row = {mistakes.row}" in typed[3]


# ---------------------------------------------------------------------- the page


def check_page(overview: Overview) -> None:
    page = plain(overview_page(overview).replace("&nbsp;", " "))
    for said in (*overview_sentences(overview), *confusion_sentences(overview)):
        assert " ".join(said.split()) in page
    terminal = " ".join(to_text(lambda _: confusion_view(overview), 4000).split())
    for said in confusion_sentences(overview):
        assert " ".join(said.split()) in terminal
    facts = re.search(
        rf"Data: reviews.csv; (?:({COUNT}) of ({COUNT}) texts? (is|are) done|all ({COUNT}) texts "
        rf"are done|(the text) is done)(?:, ({COUNT}) of them failed|, (and it) failed|, (none) "
        r"failed)?\. Kept in ",
        page,
    )
    assert facts is not None
    done, rows, are, both, _, failed, it, none = facts.groups()
    assert whole(done or both or "1") == overview.done
    assert whole(rows or both or "1") == overview.rows
    assert are is None or (are == "is") == (overview.done == 1)
    assert whole(failed or (it and "1") or "0") == overview.failed
    assert none is None or not overview.failed
    left = re.search(rf"Left out here: ({COUNT}) texts?", page)
    assert (left is None) == (not overview.left_out or not overview.texts)
    assert left is None or whole(left[1]) == overview.left_out
    more = re.search(rf"({COUNT}) more labels? (has|have) words:", page)
    labels = {word.label for word in overview.words}
    assert (more is None) == (len(labels) <= 6)
    if more is not None:
        assert whole(more[1]) == len(labels) - 6
        assert (more[2] == "has") == (len(labels) == 7)


# ---------------------------------------------------------------------- tests


def check(rng: np.random.Generator, is_drawn: bool) -> list[str]:
    overview = occasion.draw(rng)
    names = [*check_answer(overview), *check_confusion(overview), *check_labels(rng)]
    if is_drawn:
        check_page(overview)
    return names


def test_every_sentence_of_a_run_is_true_of_it():
    rng = np.random.default_rng(1)
    said: Counter[str] = Counter()
    for number in range(500):
        said.update(check(rng, is_drawn=number % 10 == 0))
    assert min(said.values()) > 1, said
    assert len(said) == 18, said


@pytest.mark.slow
def test_every_sentence_of_many_runs_is_true_of_them():
    rng = np.random.default_rng(2)
    for number in range(12_000):
        check(rng, is_drawn=number % 200 == 0)
