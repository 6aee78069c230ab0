"""Results as self-contained HTML: a page, or a fragment for a notebook.

Nothing is loaded from elsewhere, and every text is escaped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from whence.core.answer import Answer
from whence.core.attribution import Attribution
from whence.core.comparison import Comparison
from whence.core.glossary import GLOSSARY
from whence.core.percent import percent
from whence.core.plan import Plan
from whence.views import wording
from whence.views.agreeing import agreement_section
from whence.views.answering import LEAD, Sentence, asked, cautions, sentences
from whence.views.document import (
    document,
    embedded_json,
    fresh_id,
    script,
    static,
    style,
    title_of,
)
from whence.views.judgement import badge, cards, costs, score_bars, verdict_table
from whence.views.markup import (
    around,
    element,
    elements,
    fold,
    kind,
    named,
    scrolling,
    soft,
    table,
    text,
)
from whence.views.palette import levels
from whence.views.pictures import patches, pictured, pixels_figure, pixels_of
from whence.views.sides import Sides, sides_of
from whence.views.verdicts import by_evidence, overall

SIGNED_RAMP = (
    *(("n", 1.0), ("n", 0.66), ("n", 0.33)),
    ("p", 0.0),
    *(("p", 0.33), ("p", 0.66), ("p", 1.0)),
)
UNSIGNED_RAMP = (("m", 0.0), ("m", 0.33), ("m", 0.66), ("m", 1.0))


# ---------------------------------------------------------------------- pages and fragments


def attribution_page(a: Attribution) -> str:
    """A whole page for one attribution."""
    return page([a])


def comparison_page(c: Comparison) -> str:
    """A whole page for one comparison."""
    return page([c])


def attribution_fragment(a: Attribution) -> str:
    """What a notebook shows for one attribution."""
    return style(static("report.css")) + body(a, fresh_id())


def comparison_fragment(c: Comparison) -> str:
    """What a notebook shows for one comparison."""
    return style(static("report.css")) + body(c, fresh_id())


def page(results: Sequence[Attribution | Comparison]) -> str:
    """One document with all results, each in its own section."""
    first = _attributions(results[0])[0]
    words = "" if first.passage is None else first.passage.text
    title = title_of(words, first.provenance.model)
    bodies = "\n".join(body(result, f"whence-{i}") for i, result in enumerate(results))
    return document(
        f"whence: {title}",
        element("main", f"\n{bodies}\n", class_="whence-many"),
        styles=[static("report.css")],
    )


def _attributions(result: Attribution | Comparison) -> list[Attribution]:
    if isinstance(result, Attribution):
        return [result]
    return list(result.attributions.values())


def body(result: Attribution | Comparison, name: str, explains_words: bool = True) -> str:
    """One result in a section of its own, which has this name.

    A page of many texts explains its words once, and not below each text.

    Said below every result of a page.
    """
    parts = _compared(result) if isinstance(result, Comparison) else _explained(result)
    parts += [
        words_explained() if explains_words else "",
        fold("Settings and provenance", _settings_and_provenance(_attributions(result))),
        element("button", "Download JSON", class_="download", type="button", hidden=True),
        embedded_json(_data(result)),
        script(static("report.js").replace("ROOT", name)),
    ]
    content = "\n".join(part for part in parts if part)
    return element("section", f"\n{content}\n", class_="whence", id=name)


def _explained(a: Attribution) -> list[str]:
    """One method: the answer, the coloured text, its evidence and its bars.

    Said on the page of one method.
    """
    bars = scrolling("scores of each unit", score_bars(a, range(len(a.scores))))
    evidence = cards([a])
    if evidence:
        evidence = f"<h3>Can it be believed?</h3>\n{evidence}"
    return [
        _top(a, a.answer),
        *_seen([a]),
        evidence,
        f"<h3>Scores</h3>\n{bars}",
        fold("Cost, error and notes", costs([a], a)),
    ]


def _compared(c: Comparison) -> list[str]:
    """Several: the answer, the text by the best of them, and the verdicts; the rest is folded.

    Said on the page of several methods.
    """
    every = by_evidence(_attributions(c))
    answer = c.answer
    best = c.attributions[answer.shown]
    others = [a for a in every if a is not best]
    return [
        _top(c.first, answer, c.plan),
        *_seen([best, *others]),
        *judgement_of(c),
        fold("Scores of every unit by every method", _matrix(every)),
        fold("Costs, errors and notes of every method", costs(every, c)),
    ]


def judgement_of(c: Comparison) -> list[str]:
    """The verdicts; folded are the evidence of each method, and how far they agree.

    Said on the page of several methods, as far as there is evidence or agreement.
    """
    every = by_evidence(_attributions(c))
    parts = []
    if any(a.evidence is not None for a in every):
        parts.append(verdict_table(every))
    judged = cards(every)
    if judged:
        parts.append(fold("Evidence: curves and strongest units of each method", judged))
    agreed = agreement_section(c.agreement())
    if agreed:
        parts.append(fold("Agreement: how far the methods say the same", agreed))
    return parts


# ---------------------------------------------------------------------- what the model said


def _top(a: Attribution, answer: Answer, plan: Plan | None = None) -> str:
    """The answer, and beside it what the model predicted."""
    about = answered(answer)
    explained = f"Explained: {text(wording.value(a))}. Model: {text(wording.model_line(a))}."
    about.append(soft(explained))
    about += [soft(text(line)) for line in wording.remarks(a, plan)]
    sides = element("div", "".join(about)) + _prediction(a)
    return element("div", sides, class_="top")


def answered(answer: Answer) -> list[str]:
    """The answer in sentences, and below it what to be careful about."""
    said = [_marked_up(sentence) for sentence in sentences(answer)]
    about = [element("h2", "Answer"), element("p", " ".join(said[:LEAD]), class_="answer")]
    about.append(elements("p", said[LEAD:], class_="trust"))
    warned = [f"<strong>Caution:</strong> {_marked_up(caution)}" for caution in cautions(answer)]
    if warned:
        about.append(element("ul", elements("li", warned), class_="cautions"))
    if asked(answer):
        about.append(soft(text(asked(answer))))
    return about


def _marked_up(sentence: Sentence) -> str:
    """A sentence of the answer; what it names has the colour that it has in the text."""
    parts = []
    for phrase in sentence:
        content = text(phrase.text).replace(" %", "&nbsp;%")
        if phrase.role:
            content = element("bdi", content, class_=f"said {phrase.role}")
        parts.append(content)
    return "".join(parts)


def _prediction(a: Attribution) -> str:
    """A bar for each of the leading labels."""
    rows = []
    for i, (name, probability) in enumerate(a.prediction.items()):
        first = "first" if i == 0 else None
        bar = element("i", style=f"width:{min(max(probability, 0.0), 1.0):.1%}")
        rows += [
            element("dt", text(wording.label_said(a, name)), class_=first),
            element("dd", bar, class_="bar first" if i == 0 else "bar"),
            element("dd", _share(probability), class_=first),
        ]
    return element("dl", "".join(rows), class_="bars", aria_label="prediction")


def _share(probability: float) -> str:
    """A probability beside its bar; the sign stays on its line."""
    return text(percent(probability, 1)).replace(" %", "&nbsp;%")


# ---------------------------------------------------------------------- what each method sees


def _seen(every: Sequence[Attribution]) -> list[str]:
    """The text or the picture as the first method sees it, and a choice of the others."""
    first = every[0]
    parts = []
    if pixels_of(first) is not None:
        parts.append(_pictures(every))
    if not pictured(first).all():
        parts.append(_strips(every))
    parts.append(_legend(every))
    return parts


def _pictures(every: Sequence[Attribution]) -> str:
    """The picture, as the first method sees it beside it; those of the others are folded.

    Said of an image with several methods.

    ``The image by every other method``
    """
    pixels = pixels_of(every[0])
    assert pixels is not None
    figures = [patches(a, pixels, partial(_unit, a)) for a in every]
    first = element("div", pixels_figure(pixels) + figures[0], class_="pictures")
    if len(figures) == 1:
        return first
    others = element("div", "".join(figures[1:]), class_="pictures")
    return first + fold("The image by every other method", others)


def _strips(every: Sequence[Attribution]) -> str:
    """The text by the first method; a menu, which the script brings to life, has the others."""
    rows = []
    for place, a in enumerate(every):
        name = element("p", f"by {text(a.method)} {badge(a)}", class_="by")
        hidden = place > 0
        rows.append(element("div", name + _coloured(a), class_="strip", hidden=hidden))
    title = element("h3", f"The {wording.explained_things(every[0])}")
    return f"{title}\n{_menu(every)}" + element("div", "\n".join(rows), class_="strips")


def _menu(every: Sequence[Attribution]) -> str:
    """Which method colours the text: the best-supported one, unless another is chosen.

    Said where there are several methods.
    """
    if len(every) == 1:
        return ""
    options = [element("option", text(with_verdict(a)), value=i) for i, a in enumerate(every)]
    options.append(element("option", "every method, one below the other", value="all"))
    menu = element("select", "".join(options), class_="method")
    return element("label", f"Coloured by {menu}", class_="choice", hidden=True)


def with_verdict(a: Attribution) -> str:
    """A method with its verdict, as a menu shows it."""
    ruling = overall(a)
    if ruling is None:
        return a.method
    return f"{ruling.mark} {a.method}: {ruling.few_words}"


def _coloured(a: Attribution) -> str:
    """The text; white space around a unit stays outside its colour.

    Said of the coloured text, to a screen reader; of windows where one ends.
    """
    level = levels(a)
    anchor = set(wording.anchored(a))
    cuts = wording.cuts(a)
    tips = _tips(a, anchor)
    shown_above = pictured(a) & (pixels_of(a) is not None)  # over the image already

    parts, last = [], 0
    for i, unit in enumerate(wording.running_texts(a)):
        if shown_above[i]:
            continue
        if i in cuts:
            parts.append(element("span", wording.CUT, class_="between", title="a window ends here"))
        if a.units.parts[i] != last:
            parts.append(element("span", "‖", class_="between"))
            last = a.units.parts[i]
        before, body, after = around(unit)
        parts.append(text(before, keep="\n\t"))
        if body:
            content = text(body, keep="\n\t")
            parts.append(_unit(a, i, content, tips[i], float(level[i]), i == 0, i in anchor))
        parts.append(text(after, keep="\n\t"))

    things = wording.explained_things(a)
    them = "it" if things == "text" else "them"
    name = f"the {things} as {a.method} sees {them}"
    words = element("div", "".join(parts), class_="text", dir="auto", role="group", aria_label=name)
    rule = wording.anchor(a)
    if not rule:
        return words
    return words + element("p", text(rule), class_="rule")


def _tips(a: Attribution, anchor: set[int]) -> list[str]:
    """What is shown when one points at a unit: its name, its score, its standard error.

    Said when one points at a unit that belongs to an anchor.
    """
    spread = wording.spread(a)
    tips = []
    for i, name in enumerate(a.units.distinct_names):
        tip = f"{wording.visible(name)}: {wording.exact(float(a.scores[i]), a.signed)}"
        if spread is not None:
            tip += f" {spread[i]}"
        if i in anchor:
            tip += ", in the anchor"
        tips.append(tip)
    return tips


def _unit(
    a: Attribution,
    i: int,
    content: str,
    tip: str,
    level: float,
    reachable: bool,
    anchored: bool = False,
) -> str:
    """One coloured unit; ``reachable`` is the one at which the keyboard comes in."""
    classes = ["u", kind(level, a.signed)]
    if anchored:
        classes.append("anchor")
    return element(
        "span",
        content,
        class_=" ".join(classes),
        style=f"--v:{abs(level):.3f}",
        data_i=i,
        data_tip=tip,
        tabindex=0 if reachable else -1,
        aria_label=tip,
    )


def _legend(every: Sequence[Attribution]) -> str:
    """Said below the coloured text."""
    parts = []
    if any(a.signed for a in every):
        parts.append(signed_legend(sides_of(every[0].target), "the target"))
    if any(not a.signed for a in every):
        parts.append(f"matters little{ramp(UNSIGNED_RAMP)}much (a method without signs)")
    parts.append("Full colour is the method's largest score; point at one for its number.")
    return element("p", elements("span", parts), class_="legend")


def signed_legend(said: Sides, label: str) -> str:
    """What the colours of scores with signs mean: below zero on the left, above on the right."""
    return f"{text(said.below.end(label))}{ramp(SIGNED_RAMP)}{text(said.above.other_end())}"


def ramp(cells: Sequence[tuple[str, float]]) -> str:
    """A strip of cells from the faintest colour to the fullest, for a legend."""
    colours = [element("i", class_=side, style=f"--v:{level}") for side, level in cells]
    return element("span", "".join(colours), class_="ramp", aria_hidden="true")


# ---------------------------------------------------------------------- the details


def _matrix(every: Sequence[Attribution]) -> str:
    """Every unit by every method.

    Said of the table of scores, to a screen reader.
    """
    heads = [text(every[0].units.kind)]
    columns = []
    for a in every:
        heads.append(text(a.method).replace("-", "-<wbr>"))
        columns.append(_column(a))

    rows = []
    for i, name in enumerate(every[0].units.distinct_names):
        cells = [element("th", named(name), scope="row")]
        cells += [column[i] for column in columns]
        rows.append(element("tr", "".join(cells)))

    head = element("tr", elements("th", heads, scope="col"))
    matrix = table(head, ["\n", "\n".join(rows), "\n"], class_="matrix")
    return scrolling("scores of each unit by each method", matrix)


def _column(a: Attribution) -> list[str]:
    """The scores of one method as coloured cells."""
    shown = wording.score_format(a.scores, a.signed)
    cells = []
    for score, level in zip(a.scores.tolist(), levels(a).tolist(), strict=True):
        tint = f"--v:{abs(level):.3f}"
        cells.append(element("td", shown(score), class_=kind(level, a.signed), style=tint))
    return cells


def _settings_and_provenance(every: Sequence[Attribution]) -> str:
    first = every[0]
    p = first.provenance
    attention = ", ".join(dict.fromkeys(a.provenance.attention for a in every))
    revision = f", revision {p.revision}" if p.revision else ""
    facts: list[tuple[str, object]] = [(a.method, _settings(a)) for a in every]
    facts += [
        ("seed", first.seed),
        ("units", f"{len(first.scores)}, by {first.units.kind}"),
        ("model", f"{p.model} ({p.architecture}), weights {p.fingerprint}{revision}"),
        ("computed in", f"{wording.precision(p)} on {p.device}; attention: {attention}"),
        ("versions", ", ".join(f"{name} {version}" for name, version in p.versions.items())),
    ]
    return _definitions(facts)


def words_explained(glossary: Mapping[str, str] = GLOSSARY) -> str:
    """What words mean, folded away.

    Said below every page.
    """
    return fold("What the words mean", _definitions(list(glossary.items())))


def _definitions(facts: Sequence[tuple[str, object]]) -> str:
    rows = [element("dt", text(name)) + element("dd", text(fact)) for name, fact in facts]
    return element("dl", "".join(rows))


def _settings(a: Attribution) -> str:
    return f"version {a.version}; {wording.settings(a.settings)}"


def _data(result: Attribution | Comparison) -> dict[str, Any]:
    """The numbers behind the page, without the pixels of a picture.

    These would be a megabyte, and the picture above already shows them.
    """
    content: dict[str, Any] = result.to_dict()
    content.get("passage", {}).pop("pixels", None)
    return content
