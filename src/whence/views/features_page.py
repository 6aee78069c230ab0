"""The features of an autoencoder as one page: a list to search and sort, and a card for each.

Without scripts the first features are there as a table.
"""

from __future__ import annotations

from whence.core.dashboard import Dashboard, FeatureCard
from whence.views import wording
from whence.views.document import document, script, static
from whence.views.features import (
    about_effects,
    headline,
    promoted,
    quoted_tokens,
    sentences,
)
from whence.views.features_data import STEPS, packed
from whence.views.markup import element, fold, named, paragraphs, scrolling, soft, table, text

SCRIPTS = (
    "percent.js",
    "attention-shared.js",
    "features-data.js",
    "features-card.js",
    "features.js",
)
IN_TABLE = 60  # features of the table for readers without scripts
ORDERS = {
    "frequency": "most frequent first",
    "rare": "rarest first",
    "peak": "strongest first",
    "number": "by number",
}
WHERE = {
    "any": "anywhere",
    "fires": "the token it fires on",
    "passages": "its passages",
    "promotes": "what it promotes",
}
# Said below the list of features.
KEYS = (
    "Keys: <kbd>↑</kbd> <kbd>↓</kbd> (or <kbd>k</kbd> <kbd>j</kbd>) another feature, "
    "<kbd>/</kbd> search, <kbd>Esc</kbd> end the search, <kbd>r</kbd> a random one."
)


def dashboard_page(board: Dashboard) -> str:
    """A whole page for one autoencoder. Said as the heading of the notes."""
    content = "\n".join(
        [
            _top(board),
            _desk(),
            _table(board),
            fold("How this was made, and how to read it", paragraphs(_notes(board))),
            packed(board),
            script(_program()),
        ]
    )
    main = element("main", f"\n{content}\n", class_="whence features", id="whence")
    return document(
        f"whence: {headline(board)}",
        main,
        styles=[static("report.css"), static("features.css")],
    )


def _program() -> str:
    program = "\n".join(map(static, SCRIPTS))
    return f'(function (root) {{\n"use strict";\n{program}\n}})(document.getElementById("whence"));'


def _top(board: Dashboard) -> str:
    """Said below the picture of all features."""
    about = [
        element("h2", "Features"),
        element("p", text(headline(board)), class_="answer"),
        *(soft(text(line)) for line in sentences(board)),
    ]
    picture = element(
        "canvas", role="img", class_="map", aria_label="every feature by frequency and strength"
    )
    caption = element(
        "figcaption",
        "Each feature on this page: how often it fires, and how strongly. Click one.",
        class_="soft",
    )
    figure = element("figure", picture + caption, hidden=True)
    return element("div", element("div", "".join(about)) + figure, class_="top")


def _desk() -> str:
    """What the script fills: the search and the list, and beside them the card."""
    search = element(
        "input",
        type="search",
        name="words",
        placeholder="a word …",
        autocomplete="off",
        spellcheck="false",
    ).removesuffix("</input>")
    controls = [
        element("label", element("span", "Search") + search, class_="words-label"),
        _select("where", "in", WHERE),
        _select("order", "Order", ORDERS),
    ]
    form = element("form", "".join(controls), class_="find-feature", role="search")
    count = element("p", class_="count soft", role="status")
    rows = element(
        "div",
        element("div", class_="sizer"),
        class_="rows",
        role="listbox",
        tabindex=0,
        aria_label="features",
    )
    side = element(
        "div", form + count + rows + element("p", KEYS, class_="soft keys"), class_="side"
    )
    card = element("section", class_="about-feature", aria_live="polite", tabindex=-1)
    return element("div", side + card, class_="shelf", hidden=True)


def _select(name: str, title: str, options: dict[str, str]) -> str:
    choices = [element("option", text(shown), value=value) for value, shown in options.items()]
    select = element("select", "".join(choices), name=name)
    return element("label", element("span", title) + select)


# ---------------------------------------------------------------------- for readers without scripts


def _table(board: Dashboard) -> str:
    """Said as the heading of the table: of the most frequent features where others are left out."""
    heads = ["feature", "fires on", "of all tokens", "largest", "strongest passage", "promotes"]
    left = {"fires on", "strongest passage", "promotes"}
    head = "".join(
        element("th", name, scope="col", class_="left" if name in left else None) for name in heads
    )
    shown = sorted(board.features, key=lambda card: -card.frequency)[:IN_TABLE]
    rows = [_row(board, card) for card in shown]
    whole = table(element("tr", head), rows, class_="costs")
    title = f"As a table: the {len(rows)} most frequent features"
    if len(rows) == len(board.features):
        title = "As a table"
    return fold(title, scrolling("features", whole))


def _row(board: Dashboard, card: FeatureCard) -> str:
    passage = text(board.text(card.tops[0]), keep="\n\t") if card.tops else ""
    cells = [
        element("th", str(card.number), scope="row"),
        element("td", " ".join(map(named, quoted_tokens(board.fires_on(card)))), class_="left"),
        element("td", text(wording.percent(card.frequency))),
        element("td", f"{card.peak:.3g}"),
        element("td", element("bdi", passage), class_="left"),
        element("td", " ".join(map(named, promoted(board, card.promotes[:5]))), class_="left"),
    ]
    return element("tr", "".join(cells))


def _notes(board: Dashboard) -> list[str]:
    """Said in the notes of a dashboard; of effects where these were found out."""
    lines = [
        "An activation is the number of the encoder times the length of the feature's direction, "
        "so that features can be compared. Colours are by the largest of each feature.",
        f"On this page an activation is in steps of 1/{STEPS} of that, so it is off by at most "
        f"1/{2 * STEPS}; saved as JSON, the dashboard has all digits.",
        "The passages of a feature are distinct: each shows where it is strongest in one passage "
        "of the corpus. Special tokens are left out. The strongest passages are the best case; "
        "what a feature means over its whole range has to be tested on text that was not used "
        "here.",
        "The histogram counts all tokens on which the feature is active, in steps of a factor of "
        "√2.",
    ]
    effects = about_effects(board)
    if effects:
        lines.append(effects)
    return [*lines, *board.notes]
