"""Attention maps as one self-contained page: head view, model view, neuron view. A layer is unpacked when it is looked at."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from functools import cache
from html import escape
from importlib.resources import files
from uuid import uuid4

from whence.core.maps import AttentionMaps
from whence.views import wording
from whence.views.html import LONGEST_TITLE, POLICY
from whence.views.packing import Packed, pack, rounded_up
from whence.views.payload import PLURAL, blobs, data, packed_neurons
from whence.views.pictures import png

SCRIPTS = (
    "attention-shared.js",
    "attention-head.js",
    "attention-model.js",
    "attention-neuron.js",
    "attention.js",
)
LONGEST_TEXT = 240
GROUND = (
    "<style>body{margin:0;background:#fff}@media (prefers-color-scheme:dark){body{background:#14161a}}"
    'body:has(.whence-maps[data-theme="light"]){background:#fff}body:has(.whence-maps[data-theme="dark"]){background:#14161a}</style>'
)


def maps_page(maps: AttentionMaps) -> str:
    """A whole page for the attention of one passage."""
    text = " ".join(wording.visible(maps.passage.text, keep="\n\t").split()) or wording.visible(
        maps.model
    )
    title = escape(text[:LONGEST_TITLE] + ("…" if len(text) > LONGEST_TITLE else ""))
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<meta name="color-scheme" content="light dark">\n'
        f"<title>whence, attention: {title}</title>\n{GROUND}\n"
        f"</head>\n<body>\n<main>\n{_section(maps, 'whence-maps-0')}\n</main>\n</body>\n</html>\n"
    )


def maps_fragment(maps: AttentionMaps) -> str:
    """What a notebook shows for the attention of one passage; several may stand in one document."""
    return _section(maps, f"whence-maps-{uuid4().hex[:12]}")


@cache
def _static(name: str) -> str:
    return (files("whence.views") / "static" / name).read_text(encoding="utf-8")


def _section(maps: AttentionMaps, name: str) -> str:
    causal = {k: maps.is_causal(k) for k in maps.kinds}
    packed = pack(maps.weights, causal, beside_neurons=bool(maps.neurons))
    image = _image(maps)
    neurons = packed_neurons(maps, packed, len(image), causal)
    program = "\n".join(map(_static, SCRIPTS))
    parts = [
        f"<style>{_static('attention.css')}</style>",
        _header(maps),
        _tabs(name, bool(neurons)),
        _controls(maps),
        image,
        _panels(name, bool(neurons)),
        _notes(maps, packed),
        data(maps, packed, neurons, causal),
        *blobs(packed, neurons),
        # every name of the program stays inside this function, so that several fragments do not meet
        f'<script>(function (root) {{\n"use strict";\n{program}\n}})(document.getElementById("{name}"));</script>',
    ]
    return (
        f'<section class="whence-maps" id="{name}" data-view="head" aria-busy="true">\n'
        + "\n".join(parts)
        + "\n</section>"
    )


def _header(maps: AttentionMaps) -> str:
    kinds = "; ".join(
        f"{k} {w.shape[0]} layers × {w.shape[1]} heads" for k, w in maps.weights.items()
    )
    about = escape(" · ".join(filter(None, (wording.visible(maps.model), kinds))))
    reply = maps.passage.reply.text if maps.passage.reply is not None else None
    texts = [t for t in (maps.passage.text, maps.passage.pair, reply) if t]
    shown = "".join(
        f'<p class="text" dir="auto">{escape(wording.visible(t[:LONGEST_TEXT]))}{"…" if len(t) > LONGEST_TEXT else ""}</p>'
        for t in texts
    )
    cut = (
        f'<p class="soft">Only the beginning was read: {maps.passage.dropped:,} characters were cut off.</p>'
        if maps.passage.dropped
        else ""
    )
    return (
        f'<div class="top"><div><h2>Attention</h2><p class="soft">{about}</p>{shown}{cut}</div>'
        '<button type="button" class="theme" aria-pressed="false">Dark</button></div>'
        "<noscript><p>The maps are drawn by a script inside this page; please allow it.</p></noscript>"
    )


def _views(with_neurons: bool) -> dict[str, str]:
    return {"head": "Head view", "model": "Model view"} | (
        {"neuron": "Neuron view"} if with_neurons else {}
    )


def _tabs(name: str, with_neurons: bool) -> str:
    tabs = "".join(
        f'<button type="button" role="tab" id="{name}-tab-{view}" data-view="{view}" aria-controls="{name}-{view}" '
        f'aria-selected="{"true" if view == "head" else "false"}" tabindex="{0 if view == "head" else -1}">{title}</button>'
        for view, title in _views(with_neurons).items()
    )
    return f'<div class="tabs" role="tablist" aria-label="views">{tabs}</div>'


def _select(name: str, title: str, options: Mapping[str, str]) -> str:
    inner = "".join(
        f'<option value="{escape(value)}">{escape(text)}</option>'
        for value, text in options.items()
    )
    return f'<label class="control {name}"><span>{title}</span><select data-control="{name}">{inner}</select></label>'


def _controls(maps: AttentionMaps) -> str:
    shown = {"shown": "shown", "greyed": "greyed", "hidden": "hidden"}
    scale = {"shown": "the largest weight shown", "one": "1, a whole row"}
    controls = [
        _select("kind", "Attention", {str(i): k for i, k in enumerate(maps.kinds)}),
        _select("layer", "Layer", {}),
        _select("head", "Head", {}),
        _select("filter", "From → to", {}),
        _select("special", "Special tokens", shown),
        _select("scale", "Full colour at", scale),
        '<label class="control threshold"><span>Draw from weight <output>0</output></span>'
        '<input type="range" min="0" max="100" value="0" step="1" data-control="threshold"></label>',
    ]
    buttons = "".join(
        f'<button type="button" data-export="{how}">{text}</button>'
        for how, text in (
            ("copy-svg", "Copy as SVG"),
            ("copy-png", "Copy as PNG"),
            ("save-svg", "Download SVG"),
            ("save-png", "Download PNG"),
        )
    )
    return (
        f'<div class="controls">{"".join(controls)}</div>'
        '<div class="heads" role="group" aria-label="heads; a double click leaves only one on"></div>'
        f'<p class="share"></p><div class="exports" role="group" aria-label="export this view">{buttons}</div>'
        '<p class="status" role="status"></p>'
    )


def _panels(name: str, with_neurons: bool) -> str:
    panels = "".join(
        f'<div class="panel {view}" role="tabpanel" id="{name}-{view}" aria-labelledby="{name}-tab-{view}"'
        f"{'' if view == 'head' else ' hidden'}></div>"
        for view in _views(with_neurons)
    )
    return f'<div class="panels">{panels}</div>'


def _notes(maps: AttentionMaps, packed: Mapping[str, Packed]) -> str:
    units = PLURAL.get(maps.units, maps.units)
    if maps.passage.pixels is not None:
        places = "The places are patches of the image (row, column) and special tokens."
    elif maps.units == "token":
        places = (
            'The places are tokens. <code>attend(…, units="word")</code> merges them into words.'
        )
    else:
        places = (
            f"The places are {escape(units)}: attention to the tokens of one is summed, attention from them averaged. "
            '<code>attend(…, units="token")</code> keeps the tokens.'
        )
    errors = "; ".join(
        f"{escape(k)} {rounded_up(p.error):g} ({_levels(p)})" for k, p in packed.items()
    )
    return (
        '<details class="notes"><summary>About these numbers</summary>'
        f"<p>{places} Hiding special tokens, or showing one text of two, leaves out places; the other weights stay as they are.</p>"
        "<p>A weight is stored in one byte, as a whole number of equal steps between 0 and the largest weight of its head, "
        f"so that it is off by at most half a step. The largest error in this page: {errors}. Shares of special tokens are exact.</p>"
        "<p>Attention says where a head reads, not what matters for the answer.</p>"
        "<p>Keys: arrows move along tabs, places, maps and cells; <kbd>[</kbd> and <kbd>]</kbd> change the layer; "
        "<kbd>Enter</kbd> opens a map, <kbd>Esc</kbd> closes it. "
        "A click on a place keeps it chosen, and a second one lets it go.</p></details>"
    )


def _levels(p: Packed) -> str:
    low, high = min(p.levels), max(p.levels)
    return (
        f"{high} steps"
        if low == high
        else f"{low} to {high} steps, by layer: noise does not fit into more"
    )


def _image(maps: AttentionMaps) -> str:
    """The image, under a canvas for the heat."""
    if maps.passage.pixels is None:
        return ""
    source = base64.b64encode(png(maps.passage.pixels)).decode()
    return (
        f'<figure class="picture"><div class="stack"><img alt="the image" src="data:image/png;base64,{source}">'
        '<canvas aria-hidden="true"></canvas></div><figcaption></figcaption></figure>'
    )
