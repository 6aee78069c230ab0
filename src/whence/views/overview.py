"""The page of a run: the answer first, then counts, verdicts and words, then every text.

Without scripts everything but the texts is there; the script unpacks these, searches them, and
opens each on its own comparison.
"""

from __future__ import annotations

from collections.abc import Sequence

from whence.core import percent as percents
from whence.core.answer import CONTROL
from whence.core.attribution import NO_LABEL
from whence.core.confusion import FEWEST_TEXTS
from whence.core.counting import texts_done_and_failed
from whence.core.many import Tally
from whence.core.overview import (
    CarryingWord,
    Overview,
    ReadText,
    strongest_of,
    to_be_named,
    told_for_sure,
)
from whence.views import verdicts, wording
from whence.views.answering_of_many import asked_of_many, many_sentences
from whence.views.confusion import confusion_section
from whence.views.data_labels import reading_sentences, undecided_sentences, unknown_sentences
from whence.views.document import document, script, static
from whence.views.html import UNSIGNED_RAMP, ramp, signed_legend, words_explained
from whence.views.many import NONE, beaten, chance, notes, strongest_first
from whence.views.markup import (
    element,
    elements,
    kind,
    named,
    opening,
    paragraphs,
    scrolling,
    soft,
    table,
    text,
)
from whence.views.overview_data import STEPS, packed
from whence.views.sides import sides

MOST_NAMED = 3  # words of each label, in the answer
MOST_LABELS = 6  # with a column of words; and in the answer, two
MOST_FAILURES = 200
# Said of the number that is explained.
READ = {
    "logit": "the score (logit)",
    "margin": "the margin",
    "probability": "the probability",
    "log-probability": "the logarithm of the probability",
    "cross-entropy": "the cross-entropy",
    "perplexity": "the perplexity",
}
# Said of the number that is explained, where it is of no label.
READ_OF_NO_LABEL = {
    "entropy": "the entropy of all labels",
    "kl": "the divergence of what is said from what the whole input gets",
}
# Said above the words, where they carry no label.
TITLES = {
    "entropy": "The words that make the model less sure, or more",
    "kl": "The words that move the model away from what it says, or keep it there",
}
# Said where methods hold, and none of them has signs.
SILENT = "for from against, so no words are named here."
# Said after the words of an answer.
ABOUT_SHARES = "In brackets stands the word's mean part of all scores of a text that has it."
# Said below the words of a page.
HOW_WORDS_ARE_COUNTED = (
    "A bar is the word's mean part of all scores of a text that has it, with its 95 % interval "
    "over these texts; beside it stands the number of texts. Words come by what they do. First "
    f"are those that are supported: they stand in {FEWEST_TEXTS} texts at least, their interval "
    "leaves zero out, and they do a tenth of what the largest one does. The others are faint. A "
    "bold one's interval would leave zero out even if every word that was looked at had to be paid "
    "for. Choose a word to see its texts."
)


def overview_page(overview: Overview) -> str:
    """The whole page of a run."""
    content = [
        _top(overview),
        confusion_section(overview),
        _methods(overview),
        _words(overview),
        _texts(overview),
        _failures(overview),
        words_explained(),
        packed(overview),
        script("\n".join(map(static, ("percent.js", "overview.js")))),
    ]
    body = element("section", "\n".join(filter(None, content)), class_="whence run", id="whence")
    return document(
        f"whence: {wording.counted(overview.done, 'text')} of {wording.file_name(overview.source)}",
        element("main", body, class_="whence-many"),
        styles=[static("report.css"), static("overview.css")],
    )


# ---------------------------------------------------------------------- the answer


def overview_sentences(overview: Overview) -> list[str]:
    """The answer in plain sentences; the first ones, up to the empty one, are its lead.

    How many texts, and how often the model is right; which methods hold; which words carry.
    """
    said = many_sentences(overview.answer)
    lead = [said[0], *_accuracy(overview)]
    if not overview.answer.tried:
        return [*lead, *said[1:2], *_carried(overview), "", *_read(overview)]
    copies = _copies(overview)
    return [
        *lead,
        *copies,
        *said[2:3],
        *_carried(overview),
        "",
        said[1],
        *said[3:],
        *_read(overview),
    ]


def _copies(overview: Overview) -> list[str]:
    """Said where a text stands in the data more than once: what follows counts it once."""
    if not overview.repeated:
        return []
    if overview.repeated == 1:
        return ["1 text is a copy of another, and is not counted again in what follows."]
    are = f"{overview.repeated:,} texts are copies of others"
    return [f"{are}, and are not counted again in what follows."]


def _read(overview: Overview) -> list[str]:
    """How labels of the data are read, where that is not plain from their names."""
    return [] if overview.labels is None else reading_sentences(overview.labels)


def _accuracy(overview: Overview) -> list[str]:
    """How often it is right, and on which texts nobody can say so.

    Said where the data have labels of the model, two of them at least; else why it is not.
    """
    labels, accuracy = overview.labels, overview.accuracy
    unknown = [] if labels is None else unknown_sentences(labels)
    if accuracy is None and overview.unjudged:
        of = wording.counted(overview.unjudged, "text")
        return [
            f"It may say several labels of a text, or none, so how often it is right on the {of} "
            "with a label in the data is not told."
        ]
    if accuracy is None:
        return [*unknown, *([] if labels is None else undecided_sentences(labels))]
    is_of_some = labels is not None and bool(labels.unknown)
    of_which = "whose label it has" if is_of_some else "that have a label"
    right = wording.percent(accuracy.right / accuracy.texts)
    always = wording.percent(accuracy.commonest_texts / accuracy.texts)
    interval = wording.between(accuracy.interval)
    return [
        f"It is right on {accuracy.right:,} of the {accuracy.texts:,} {of_which}: {right} "
        f"({interval}); always saying {wording.label(accuracy.commonest)} would be {always}.",
        *unknown,
    ]


def _carried(overview: Overview) -> list[str]:
    """Said where a method may speak: the words that carry each label, by what they do."""
    if overview.speaker is None:
        if overview.answer.holding:
            first, *others = overview.answer.holding
            who = f"{wording.visible(first.method)} does not tell"
            return [f"{'None of these tells' if others else who} {SILENT}"]
        return []
    if overview.read not in READ:
        return []
    sign = sides(overview.read).sign_of_support
    carried = []
    for label in _labels(overview)[:2]:
        words = overview.words_by(overview.speaker, label)
        named_words = to_be_named(words, sign)
        if named_words:
            told = [_with_effect(word) for word in named_words[:MOST_NAMED]]
            if len(named_words) > MOST_NAMED:  # how many is not known: few of a run are kept
                told.append("more")
            carried.append(f"{wording.label(label)} is carried by {_and(told)}")
            continue
        strongest = strongest_of(words, sign)
        if strongest is not None and not strongest.is_supported:
            of_which = f"for {wording.label(label)}, of the words that stand in several texts,"
            carried.append(f"{of_which} {_with_effect(strongest)} does most, which is not sure")
    if not carried:
        return []
    speaker = wording.visible(overview.speaker)
    return [f"By {speaker}, {'; '.join(carried)}. {ABOUT_SHARES}"]


def _with_effect(word: CarryingWord) -> str:
    """A word with what it does and in how many texts; that these are few is said."""
    few = "only " if word.has_few_texts else ""
    share = wording.effect(word.share)
    return f"{wording.quoted(word.word)} ({share}, in {few}{wording.counted(word.texts, 'text')})"


def _and(parts: Sequence[str]) -> str:
    if len(parts) == 1:
        return parts[0]
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def _top(overview: Overview) -> str:
    said = overview_sentences(overview)
    cut = said.index("")
    lead = [text(sentence).replace(" %", "&nbsp;%") for sentence in said[:cut]]
    more = [text(sentence).replace(" %", "&nbsp;%") for sentence in said[cut + 1 :]]
    about = [
        element("h2", "Answer"),
        element("p", " ".join(lead), class_="answer"),
        elements("p", more, class_="trust"),
        *(soft(text(line)) for line in asked_of_many(overview.answer)),
        soft(text(_facts(overview))),
    ]
    return element("div", element("div", "".join(about)) + _counts(overview), class_="top")


def _facts(overview: Overview) -> str:
    done = texts_done_and_failed(overview.done, overview.rows, overview.failed)
    return (
        f"Explained: {_explained(overview)}. Model: {wording.model_name(overview.model)}. "
        f"Data: {wording.file_name(overview.source)}; {done}. "
        f"Kept in {wording.file_name(overview.place)}."
    )


def _explained(overview: Overview) -> str:
    """Which number was explained of each text. Said of every run."""
    if overview.read in READ_OF_NO_LABEL:
        return READ_OF_NO_LABEL[overview.read]
    return f"{READ.get(overview.read, overview.read)} of a label"


def _counts(overview: Overview) -> str:
    """A bar for each label that the model says, and one for how often it is right."""
    every = overview.answer.texts  # of which several labels may hold
    rows = []
    for name, count in overview.answer.predictions[:MOST_LABELS]:
        rows.append(_count_bar(f"says {wording.label(name)}", count, every))
    accuracy = overview.accuracy
    if accuracy is not None:
        is_of_some = accuracy.texts < every
        of = f" of {accuracy.texts:,}" if is_of_some else ""
        rows.append(_count_bar("is right", accuracy.right, accuracy.texts, of))
    if not rows:
        return ""
    return element("dl", "".join(rows), class_="bars", aria_label="predictions")


def _count_bar(name: str, count: int, every: int, of: str = "") -> str:
    share = count / max(every, 1)
    return (
        element("dt", text(name))
        + element("dd", element("i", style=f"width:{share:.1%}"), class_="bar")
        + element("dd", f"{count:,}{of}")
    )


# ---------------------------------------------------------------------- methods


def _methods(overview: Overview) -> str:
    """How often each method is better than random, with an interval, beside chance.

    Said below the answer; that nothing was tested where nothing was.
    """
    title = element("h3", "Which methods can be believed, over all texts?")
    if not any(tally.judged for tally in overview.tallies):
        untold = "No method was held against random rankings: run it with --evidence."
        return title + soft(untold)
    better, same, worse = (verdicts.MARKS[verdict] for verdict in verdicts.BEST_FIRST)
    intervals = dict(
        zip((t.method for t in overview.tallies), overview.better_intervals, strict=True)
    )
    heads = [
        element("th", "method", scope="col", class_="left"),
        element("th", "share of texts", scope="col", class_="left wide"),
        elements("th", [better, same, worse, f"{better} by chance", "p", "beats"], scope="col"),
    ]
    rows = []
    for tally in strongest_first(overview.tallies):
        rows.append(_method_row(tally, intervals[tally.method]))
    shown = table(element("tr", "".join(heads)), rows, class_="costs")
    told = [
        f"The bar is the share of texts with a {better}, the whisker its 95 % interval, and the "
        "grey strip what chance would give.",
        *notes(overview.tallies, overview.repeated),
    ]
    return title + scrolling("counts for each method", shown, whole=True) + paragraphs(told)


def _method_row(tally: Tally, interval: tuple[float, float] | None) -> str:
    p = NONE if tally.p is None else verdicts.short_p(tally.p)
    share = f" ({wording.between(interval)})" if interval is not None else ""
    cells = [
        f"{tally.better} of {tally.judged}{share}",
        str(tally.same),
        str(tally.worse),
        chance(tally),
        p,
        beaten(tally),
    ]
    name = text(tally.method)
    if tally.method == CONTROL:
        name += " " + element("span", "(the control)", class_="soft")
    head = element("th", name, scope="row", class_="left")
    bar = element("td", _share_bar(tally, interval), class_="track often wide", aria_hidden="true")
    return element("tr", head + bar + elements("td", [text(cell) for cell in cells]))


def _share_bar(tally: Tally, interval: tuple[float, float] | None) -> str:
    if interval is None:
        return ""
    low, high = (end / tally.judged for end in tally.chance_range)
    share = tally.better / tally.judged
    return element(
        "div",
        element("b", style=_stretch(low, high))
        + element("i", style=_stretch(0.0, share))
        + element("span", style=_stretch(*interval)),
    )


def _stretch(start: float, end: float) -> str:
    return f"left:{100 * start:.2f}%;width:{100 * (end - start):.2f}%"


# ---------------------------------------------------------------------- words


def _labels(overview: Overview) -> list[str]:
    """The labels that words are told for, those of most texts first."""
    predicted = [name for name, _ in overview.answer.predictions]
    told = {word.label for word in overview.words}
    rest = sorted(told - set(predicted))
    return [name for name in [*predicted, *rest] if name in told]


def _words(overview: Overview) -> str:
    """For each method and label the words that carry most; a menu chooses the method.

    Said where words stand in several texts; which way bars point where a method has signs.
    """
    if not overview.words:
        return ""
    labels = _labels(overview)
    shown = labels[:MOST_LABELS]
    first = overview.speaker or overview.methods[0]
    order = [first, *(name for name in overview.methods if name != first)]
    blocks = []
    for place, method in enumerate(order):
        signed = overview.signed[overview.methods.index(method)]
        reach = _reach(overview, method, shown)
        columns = [_column(overview, method, label, signed, reach) for label in shown]
        name = element("p", f"by {text(method)}", class_="by")
        columns_shown = element("div", "".join(columns), class_="columns")
        blocks.append(element("div", name + columns_shown, class_="block", hidden=place > 0))
    options = [element("option", text(name), value=i) for i, name in enumerate(order)]
    menu = element("select", "".join(options), id="words-by")
    choice = element("label", f"By {menu}", class_="choice", hidden=True)
    told = [HOW_WORDS_ARE_COUNTED]
    said = sides(overview.read)
    if any(overview.signed):
        told.append(
            f"A bar to the right: {said.above.does('the label')}; to the left: "
            f"{said.below.does_too()}."
        )
    if len(labels) > len(shown):
        more = len(labels) - len(shown)
        have = "1 more label has" if more == 1 else f"{more:,} more labels have"
        told.append(f"{have} words: whence query --words lists them.")
    title = element("h3", TITLES.get(overview.read, "The words that carry each label"))
    return title + choice + element("div", "".join(blocks), class_="carrying") + paragraphs(told)


def _reach(overview: Overview, method: str, labels: Sequence[str]) -> float:
    """What the whole of a track stands for: one scale for all labels, which stand side by side."""
    ends = [1e-9]
    for label in labels:
        ends += [
            max(abs(w.share), abs(w.low), abs(w.high)) for w in overview.words_by(method, label)
        ]
    return min(max(ends), 1.0)


def _column(overview: Overview, method: str, label: str, signed: bool, reach: float) -> str:
    """Said of a label of which no word stands in two texts."""
    words = overview.words_by(method, label)
    title = element("h4", text(wording.label(label)))
    if not words:
        return element("div", title + soft("no word stands in two texts"))
    told = told_for_sure(words)
    rows = [_word_row(word, reach, signed, word in told) for word in words]
    return element("div", title + table("", rows, class_="scores"))


def _word_row(word: CarryingWord, reach: float, signed: bool, is_told: bool) -> str:
    zero, unit = (50.0, 50.0) if signed else (0.0, 100.0)
    at = [zero + unit * max(-1.0, min(1.0, x / reach)) for x in (word.share, word.low, word.high)]
    share, low, high = (max(0.0, place) for place in at)
    left, right = sorted((zero, share))
    bar = element(
        "i", class_=kind(word.share, signed), style=_stretch(left / 100, right / 100)
    ) + element("span", style=_stretch(low / 100, high / 100))
    surety = "find" if is_told else "find faint"
    if word.is_sure:
        surety += " sure"
    find = element(
        "button",
        named(word.word),
        class_=surety,
        type="button",
        data_word=word.word,
        disabled=True,
    )
    number = percents.digits(word.share)
    if signed and number[0].isdigit() and word.share > 0:
        number = f"+{number}"
    interval = percents.between(word.low, word.high)
    texts = f"{word.texts:,} texts"
    cells = [
        element("th", find, scope="row"),
        element("td", f"{number}&nbsp;%".replace("-", "−"), title=f"95 % interval: {interval}"),
        element("td", element("div", bar), class_="track both" if signed else "track"),
        element("td", texts, class_="soft"),
    ]
    return element("tr", "".join(cells))


# ---------------------------------------------------------------------- texts


def _texts(overview: Overview) -> str:
    """What the script fills: a search, and the texts below it.

    Said where texts are shown; of agreement, conflicts and what is left out where there is any.
    """
    if not overview.texts:
        return ""
    some_disagree = any(read.agreement is not None for read in overview.texts)
    title = "The texts, those on which methods disagree most first"
    if not some_disagree:
        title = "The texts"
    about = []
    if some_disagree:
        about.append(
            "Agreement is the mean rank correlation of every two methods but the control: 1 where "
            "they rank the words alike, 0 where as by chance. Texts of fewer than 8 words have "
            "no such number: there, chance decides."
        )
    if any(read.conflict is not None for read in overview.texts):
        about.append(
            "Most in dispute is the word on which methods are furthest apart. In brackets stands "
            "its score as a share of the largest one of the method on that text."
        )
    about.append(
        f"Scores on this page are in steps of 1/{STEPS} of the largest of a method on a text; "
        "the run has all digits."
    )
    if overview.left_out:
        about.append(
            f"Left out here: {wording.counted(overview.left_out, 'text')}, those first for which "
            "there is no such number, then those on which methods agree best; counted above, and "
            "whence query shows them."
            if some_disagree
            else f"Left out here: {wording.counted(overview.left_out, 'text')}; counted above, and "
            "whence query shows them."
        )
    form = element("form", _form(overview), class_="search", role="search", hidden=True)
    without = element("noscript", soft("The texts are unpacked by a script, which is off here."))
    rows = element("div", "", class_="texts", aria_live="polite")
    more = element("button", "Show more", class_="more", type="button", hidden=True)
    return (
        element("h3", title, id="texts")
        + form
        + element("p", "", class_="count soft", role="status")
        + _legend(overview)
        + without
        + rows
        + more
        + paragraphs(about)
    )


def _form(overview: Overview) -> str:
    """A word, the label that the model says, the one that the data give, and the order.

    Said as choices, where there are several.
    """
    says = {name for read in overview.texts for name in _said_of(read)}
    given = {read.label for read in overview.texts if read.label is not None}
    parts = [_field("Words", opening("input", type="search", name="words", placeholder="any word"))]
    if len(says) > 1:
        parts.append(_field("Model says", _choice("says", sorted(says))))
    if len(given) > 1:
        parts.append(_field("Data say", _choice("label", sorted(given))))
    if overview.accuracy is not None:
        right = [("", "right or wrong"), ("right", "right"), ("wrong", "wrong")]
        parts.append(_field("The model is", _options("right", right)))
    orders = [("row", "as in the data"), ("sure", "least sure first")]
    if any(read.agreement is not None for read in overview.texts):
        orders.insert(0, ("agree", "disputed first"))
    parts.append(_field("Order", _options("order", orders)))
    return "".join(parts)


def _said_of(read: ReadText) -> list[str]:
    """The labels that the model says of a text; where it may say none, that it does."""
    if read.predicted is None:
        return []
    if read.holding is None:
        return [read.predicted]
    return [name for name, _ in read.holding] or [NO_LABEL]


def _field(name: str, control: str) -> str:
    return element("label", element("span", text(name)) + control)


def _choice(name: str, labels: Sequence[str]) -> str:
    told = [(wording.label(label), wording.label(label)) for label in labels]
    return _options(name, [("", "anything"), *told])


def _options(name: str, options: Sequence[tuple[str, str]]) -> str:
    every = [element("option", text(shown), value=value) for value, shown in options]
    return element("select", "".join(every), name=name)


def _legend(overview: Overview) -> str:
    """Said where a method has no signs."""
    parts = []
    if any(overview.signed):
        parts.append(signed_legend(sides(overview.read), "the label"))
    if not all(overview.signed):
        parts.append(f"matters little{ramp(UNSIGNED_RAMP)}much (a method without signs)")
    return element("p", elements("span", parts), class_="legend")


# ---------------------------------------------------------------------- what is missing


def _failures(overview: Overview) -> str:
    """Every text, and every method on a text, of which nothing came.

    Said where more has failed than is listed.
    """
    if not overview.failures:
        return ""
    rows = []
    for failure in overview.failures[:MOST_FAILURES]:
        where = element("th", text(failure.where), scope="row", class_="left")
        rows.append(element("tr", where + element("td", text(failure.reason), class_="left")))
    listed = scrolling("what failed", table("", rows, class_="costs failed"))
    more = len(overview.failures) - MOST_FAILURES
    if more > 0:
        listed += soft(f"{more:,} more: whence query lists them in the table failures.")
    return element("h3", f"What failed ({len(overview.failures):,})") + listed
