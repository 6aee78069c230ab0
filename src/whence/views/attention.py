"""Attention maps as one self-contained page: head view, model view, neuron view.

A layer is unpacked when it is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from whence.core.maps import AttentionMaps
from whence.views import wording
from whence.views.document import (
    document,
    embedded_json,
    fresh_id,
    script,
    static,
    style,
    title_of,
)
from whence.views.heads import MISREAD
from whence.views.markup import element, elements, opening, soft, text
from whence.views.packing import Packed, pack, rounded_up
from whence.views.payload import blobs, data, packed_neurons
from whence.views.pictures import data_url

SCRIPTS = (
    "percent.js",
    "attention-shared.js",
    "attention-answer.js",
    "attention-head.js",
    "attention-model.js",
    "attention-neuron.js",
    "attention.js",
)
LONGEST_TEXT = 240
VIEWS = {"head": "Head view", "model": "Model view"}
VIEWS_WITH_NEURONS = {**VIEWS, "neuron": "Neuron view"}
APART = {
    "greyed": "grey, left out of the colours",
    "shown": "coloured like words",
    "hidden": "hidden",
}
FULL_COLOUR = {"shown": "the strongest word shown", "one": "100 % of a row, everywhere"}
# Said in the menu of the kinds of attention, where a model has several.
KINDS = {
    "encoder": "encoder: within the text that is read",
    "decoder": "decoder: within the text that is written",
    "cross": "cross: from the text written to the text read",
}
EXPORTS = {
    "copy-svg": "Copy as SVG",
    "copy-png": "Copy as PNG",
    "save-svg": "Download SVG",
    "save-png": "Download PNG",
}
# Said in the notes of what counts as a distant word.
DISTANT = "a word that is neither itself, nor beside it, nor punctuation, nor set apart"
# Said in the notes, by how the head was found that the page opens on.
RULE = {
    "effects": "No other head{} changes the model's output more when it is switched off: every "
    "head was, once. The word is the one that looks most strongly at another place, at a distant "
    "one if it can.",
    "reach": f"In no other head{{}} a word looks, on average, more strongly at {DISTANT}. The word "
    "is the one that does so most.",
    "nearest": f"No word looks at {DISTANT}; so in no other head{{}} a word looks, on average, "
    "more strongly at one place. The word is the one that does so most.",
}
# Said at the end of the notes.
KEYS = (
    "Keys: arrows move along tabs, places, maps and cells; "
    "<kbd>[</kbd> and <kbd>]</kbd> change the layer; "
    "<kbd>Enter</kbd> opens a map, <kbd>Esc</kbd> closes it. "
    "A click on a word keeps it chosen, and a second one lets it go."
)


def maps_page(maps: AttentionMaps) -> str:
    """A whole page for the attention of one passage."""
    title = title_of(maps.passage.text, maps.model)
    section = _section(maps, "whence-maps-0")
    return document(f"whence, attention: {title}", f"<main>\n{section}\n</main>")


def maps_fragment(maps: AttentionMaps) -> str:
    """What a notebook shows for the attention of one passage; several may stand in a document."""
    return _section(maps, fresh_id("whence-maps"))


def _section(maps: AttentionMaps, name: str) -> str:
    causal = {kind: maps.is_causal(kind) for kind in maps.kinds}
    apart = {kind: maps.set_apart(kind) for kind in maps.kinds}
    packed = pack(maps.weights, causal, apart, beside_neurons=bool(maps.neurons))
    image = _image(maps)
    neurons = packed_neurons(maps, packed, len(image), causal)
    views = VIEWS_WITH_NEURONS if neurons else VIEWS
    parts = [
        style(static("attention.css")),
        _header(maps),
        image,
        _answer(maps),
        _tabs(name, views),
        _controls(maps),
        _panels(name, views),
        _exports(),
        _notes(maps, packed),
        embedded_json(data(maps, packed, neurons, causal)),
        *blobs(packed, neurons),
        script(_program(name)),
    ]
    content = "\n" + "\n".join(parts) + "\n"
    return element(
        "section", content, class_="whence-maps", id=name, data_view="head", aria_busy="true"
    )


def _program(name: str) -> str:
    """All scripts in one function, so that the names of several fragments do not meet."""
    program = "\n".join(map(static, SCRIPTS))
    return f'(function (root) {{\n"use strict";\n{program}\n}})(document.getElementById("{name}"));'


# ---------------------------------------------------------------------- the header


def _header(maps: AttentionMaps) -> str:
    """Said on top of a page of maps; how much was cut off where something was."""
    about = element("h2", "Where each head looks") + soft(_about(maps))
    if maps.passage.dropped:
        cut = wording.cut_off(maps.passage.dropped)
        about += soft(f"Only the beginning was read: {cut}.")
    without = "The maps are drawn by a script inside this page; please allow it."
    top = element("div", element("div", about), class_="top")
    return top + element("noscript", element("p", without))


def _about(maps: AttentionMaps) -> str:
    """The model, and how many heads there are of each kind of attention."""
    kinds = []
    for kind, weights in maps.weights.items():
        layers, heads = weights.shape[:2]
        layers, heads = wording.counted(layers, "layer"), wording.counted(heads, "head")
        kinds.append(f"{kind} {layers} × {heads}")
    parts = [wording.visible(maps.model), "; ".join(kinds)]
    return escape(" · ".join(part for part in parts if part))


def _texts(maps: AttentionMaps) -> str:
    """What the model read and wrote: the text, its pair, its reply."""
    passage = maps.passage
    reply = None if passage.reply is None else passage.reply.text
    paragraphs = []
    for content in (passage.text, passage.pair, reply):
        if not content:
            continue
        end = "…" if len(content) > LONGEST_TEXT else ""
        shown = text(content[:LONGEST_TEXT]) + end
        paragraphs.append(element("p", shown, class_="text", dir="auto"))
    return "".join(paragraphs)


def _answer(maps: AttentionMaps) -> str:
    """What the chosen head does, what the chosen word looks at, and the text in these colours.

    The script fills it; without one the text stands there as it is.
    """
    parts = [
        element("p", class_="does"),
        element("p", class_="row", role="status"),
        element("div", _texts(maps), class_="running"),
        element("p", class_="legend"),
    ]
    return element("div", "".join(parts), class_="answer")


# ---------------------------------------------------------------------- tabs, controls, panels


def _tabs(name: str, views: Mapping[str, str]) -> str:
    tabs = [_tab(name, view, title, view == "head") for view, title in views.items()]
    return element("div", "".join(tabs), class_="tabs", role="tablist", aria_label="views")


def _tab(name: str, view: str, title: str, chosen: bool) -> str:
    return element(
        "button",
        title,
        type="button",
        role="tab",
        id=f"{name}-tab-{view}",
        data_view=view,
        aria_controls=f"{name}-{view}",
        aria_selected="true" if chosen else "false",
        tabindex=0 if chosen else -1,
    )


def _select(name: str, title: str, options: Mapping[str, str]) -> str:
    choices = [element("option", escape(shown), value=value) for value, shown in options.items()]
    select = element("select", "".join(choices), data_control=name)
    return element("label", element("span", title) + select, class_=f"control {name}")


def _threshold() -> str:
    title = element("span", "Hide weights below <output>0 %</output>")
    slider = opening(
        "input", type="range", min=0, max=100, value=0, step=1, data_control="threshold"
    )
    return element("label", title + slider, class_="control threshold")


def _controls(maps: AttentionMaps) -> str:
    kinds = {str(i): KINDS.get(kind, kind) for i, kind in enumerate(maps.kinds)}
    # the script fills those that are empty here, as they depend on what is chosen
    controls = [
        _select("kind", "Attention", kinds),
        _select("layer", "Layer", {}),
        _select("head", "Head", {}),
        _select("filter", "Who looks at whom", {}),
        _select("special", "Special tokens", APART),
        _select("scale", "The strongest colour is", FULL_COLOUR),
        _threshold(),
    ]
    heads = "heads; Shift and click adds one or takes it away"
    parts = [
        element("div", "".join(controls), class_="controls"),
        element("div", class_="heads", role="group", aria_label=heads),
        element("p", class_="share"),
        element("p", class_="status", role="status"),
    ]
    return "".join(parts)


def _exports() -> str:
    buttons = [
        element("button", title, type="button", data_export=how) for how, title in EXPORTS.items()
    ]
    name = "export this view"
    return element("div", "".join(buttons), class_="exports", role="group", aria_label=name)


def _panels(name: str, views: Mapping[str, str]) -> str:
    panels = [_panel(name, view) for view in views]
    return element("div", "".join(panels), class_="panels")


def _panel(name: str, view: str) -> str:
    return element(
        "div",
        class_=f"panel {view}",
        role="tabpanel",
        id=f"{name}-{view}",
        aria_labelledby=f"{name}-tab-{view}",
        hidden=view != "head",
    )


def _image(maps: AttentionMaps) -> str:
    """The image, under a canvas for the heat."""
    if maps.passage.pixels is None:
        return ""
    picture = opening("img", alt="the image", src=data_url(maps.passage.pixels))
    canvas = element("canvas", aria_hidden="true")
    stack = element("div", picture + canvas, class_="stack")
    return element("figure", stack + element("figcaption"), class_="picture")


# ---------------------------------------------------------------------- notes


def _notes(maps: AttentionMaps, packed: Mapping[str, Packed]) -> str:
    """Said below the maps: what places are, why the page opens where it does, and how far it
    rounds.
    """
    errors = "; ".join(_error(kind, p) for kind, p in packed.items())
    paragraphs = [
        MISREAD,
        f"{_places(maps)} Hiding special tokens, or showing one text of two, leaves out places; "
        "the other weights stay as they are.",
        "A head is named after what gets at least half of its attention in this text. The page "
        f"opens on one head. {_rule(maps)}",
        f"{_set_apart(maps)} Such places take attention whatever the words are, so they are grey "
        "and left out of the colours. Their share is always given.",
        "The page rounds: a weight is off by at most half a step, and the steps are equal. "
        f"The largest error in this page: {errors}. Shares of special tokens are exact.",
        KEYS,
    ]
    summary = element("summary", "About these numbers")
    return element("details", summary + elements("p", paragraphs), class_="notes")


def _rule(maps: AttentionMaps) -> str:
    """Why the page opens where it does; a head is held against those of its own kind alone."""
    begins = maps.opening()
    of_kind = f" of {begins.kind} attention" if len(maps.kinds) > 1 else ""
    return RULE[begins.by].format(of_kind)


def _set_apart(maps: AttentionMaps) -> str:
    """Said in the notes: of the first token too where some kind of map does not look ahead."""
    if any(maps.is_causal(kind) for kind in maps.kinds):
        return "Set apart are special tokens, and the first token where no word looks ahead."
    return "Set apart are special tokens."


def _places(maps: AttentionMaps) -> str:
    """What a row and a column of a map stand for. Said in the notes, by the units of the maps."""
    if maps.passage.pixels is not None:
        return "The places are patches of the image (row, column) and special tokens."
    if maps.units == "token":
        merged = element("code", 'attend(…, units="word")')
        return f"The places are tokens. {merged} merges them into words."
    units = escape(wording.plural(maps.units))
    single = element("code", 'attend(…, units="token")')
    return (
        f"The places are {units}: attention to the tokens of one is summed, "
        f"attention from them averaged. {single} keeps the tokens."
    )


def _error(kind: str, packed: Packed) -> str:
    """How far a weight of this kind may be off, and in how many steps it is stored.

    Said in the notes of each kind of attention: ``encoder 0.002 (127 to 255 steps, by layer: noise
    does not fit into more)``.
    """
    low, high = min(packed.levels), max(packed.levels)
    steps = f"{high} steps"
    if low != high:
        steps = f"{low} to {high} steps, by layer: noise does not fit into more"
    return f"{escape(kind)} {rounded_up(packed.error):g} ({steps})"
