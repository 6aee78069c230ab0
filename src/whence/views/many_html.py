"""Many texts as one page: the answer over all, an index with links, counts, each text folded."""

from __future__ import annotations

from whence.core.many import Many, Result, Row, Tally
from whence.views import verdicts, wording
from whence.views.answering import in_short
from whence.views.answering_of_many import asked_of_many, many_sentences
from whence.views.document import document, fresh_id, script, static, style, title_of
from whence.views.html import body, words_explained
from whence.views.many import NONE, beaten, chance, left_out, notes, prediction, strongest_first
from whence.views.markup import (
    element,
    elements,
    named,
    opening,
    paragraphs,
    scrolling,
    soft,
    table,
    text,
)

# Said in place of a text that has no words.
NO_WORDS = "an input without words"
# a link of the index opens the text that it leads to, also where the browser would not
OPENING = """
addEventListener("click", (event) => {
  const link = event.target.closest("a[href^='#']");
  const goal = link && document.getElementById(link.getAttribute("href").slice(1));
  const fold = goal && goal.closest("details");
  if (fold) fold.open = true;
});
"""


def many_page(many: Many) -> str:
    """One document with all texts, each in a fold of its own."""
    first = ""
    if many.results:
        first = f", the first: {title_of(many.rows()[0].text, NO_WORDS)}"
    return document(
        f"whence: {wording.counted(len(many), 'text')}{first}",
        element("main", _content(many, "whence"), class_="whence-many"),
        styles=[static("report.css")],
    )


def many_fragment(many: Many) -> str:
    """What a notebook shows."""
    return style(static("report.css")) + _content(many, fresh_id())


def _content(many: Many, name: str) -> str:
    """Said on every page of many texts."""
    said = [text(sentence).replace(" %", "&nbsp;%") for sentence in many_sentences(many.answer)]
    overview = [
        element("h2", "Answer"),
        element("p", " ".join(said[:2]), class_="answer"),
        elements("p", said[2:], class_="trust"),
        *(soft(text(line)) for line in asked_of_many(many.answer)),
        _index(many, name),
        _counts(many),
        _missing(many),
        words_explained(),
        element("h3", "The texts, one by one"),
    ]
    rows = enumerate(many.rows())
    folds = [_folded(many[place], row, place, f"{name}-{place}") for place, row in rows]
    top = element("section", "\n".join(overview), class_="whence", id=name)
    return "\n".join([top, *folds, script(OPENING)])


def _folded(result: Result, row: Row, place: int, name: str) -> str:
    """One text: its title, and below it the whole report, closed until it is wanted."""
    title = text(f"{place + 1}. {title_of(row.text, NO_WORDS)}")
    brief = element("span", text(f"{prediction(row)}; {in_short(result.answer)}"), class_="soft")
    summary = element("summary", f"{title} {brief}")
    return element(
        "details", summary + body(result, name, explains_words=False), class_="whence one-text"
    )


def _index(many: Many, name: str) -> str:
    """One row for each text, with a link to its report.

    Said in the head of the index.
    """
    heads = [
        element("th", "", scope="col"),
        elements("th", ["text", "prediction", "answer in short"], scope="col", class_="left"),
        element("th", "methods that beat random", scope="col"),
    ]
    rows = [_index_row(row, many, place, name) for place, row in enumerate(many.rows())]
    shown = table(element("tr", "".join(heads)), rows, class_="costs index")
    return element("h3", "Index") + scrolling("all texts", shown, whole=True)


def _index_row(row: Row, many: Many, place: int, name: str) -> str:
    link = opening("a", href=f"#{name}-{place}")
    title = named(title_of(row.text, NO_WORDS))
    judged = row.better + row.same + row.worse
    better = f"{verdicts.MARKS[verdicts.BEST_FIRST[0]]} {row.better} of {judged}"
    cells = [
        element("td", str(place + 1)),
        element("th", f"{link}{title}</a>", scope="row", class_="left"),
        element("td", text(prediction(row)), class_="left"),
        element("td", text(in_short(many[place].answer)), class_="left short"),
        element("td", better if judged else NONE),
    ]
    return element("tr", "".join(cells))


def _missing(many: Many) -> str:
    """The texts that are not in here, each with its reason.

    Said where texts failed, or were never reached.
    """
    lines = left_out(many, most=None)
    if not lines:
        return ""
    listed = elements("li", [text(line) for line in lines[1:]])
    reasons = element("ul", listed, class_="soft") if listed else ""
    return element("h3", "What is missing") + element("p", text(lines[0])) + reasons


def _counts(many: Many) -> str:
    """How often each method was better than random, beside chance.

    Said where some method has a verdict.
    """
    tallies = many.tallies()
    if not any(tally.judged for tally in tallies):
        return ""
    better, same, worse = (verdicts.MARKS[verdict] for verdict in verdicts.BEST_FIRST)
    first = element("th", "method", scope="col", class_="left")
    numbers = [better, same, worse, f"{better} by chance", "p", "beats"]
    rows = [_count_row(tally) for tally in strongest_first(tallies)]
    heads = element("tr", first + elements("th", numbers, scope="col"))
    shown = table(heads, rows, class_="costs")
    title = element("h3", "Which methods can be believed, over all texts?")
    explained = paragraphs(notes(tallies, many.repeated))
    return title + scrolling("counts for each method", shown, whole=True) + explained


def _count_row(tally: Tally) -> str:
    # the column's head says p
    p = NONE if tally.p is None else wording.p_value(tally.p).removeprefix("p").removeprefix(" = ")
    cells = [
        f"{tally.better} of {tally.judged}",
        str(tally.same),
        str(tally.worse),
        chance(tally),
        p,
        beaten(tally),
    ]
    head = element("th", text(tally.method), scope="row", class_="left")
    return element("tr", head + elements("td", [text(cell) for cell in cells]))
