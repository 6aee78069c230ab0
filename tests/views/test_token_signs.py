"""The sign by which a vocabulary writes a blank is no part of what a reader sees."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import whence
from whence.core.showing import token_name
from whence.views.heads import heads_view, maps_view
from whence.views.terminal import to_text

SIGNS = re.compile("[▁ĠĊ]")


@pytest.mark.parametrize("units", ["token", "word"])
def test_no_view_of_attention_shows_the_sign_of_a_blank(units: str) -> None:
    """Would catch: “It looks mostly at the token “Ġpeople” (78 % of its attention)”."""
    model = whence.load("writer")
    maps = whence.attend(model, "The people\nof this", units=units, neurons=True)
    assert any(SIGNS.search(token) for token in maps.passage.tokens)
    shown = to_text(lambda _: maps_view(maps)) + to_text(lambda _: heads_view(maps.heads()))
    page = maps.to_html()
    assert "people" in shown
    assert not SIGNS.search(shown)
    data = json.loads(re.search(r'application/json">(.*?)</script>', page)[1])
    kind = data["kinds"][0]
    for labels in (kind["from"]["labels"], kind["to"]["names"], kind["neurons"]["from"]):
        assert "people" in labels
        assert not SIGNS.search(" ".join(labels))
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.close("all")  # what other tests left open is counted by matplotlib
    axes = maps.plot(0).figure.axes
    drawn = [t.get_text() for ax in axes for t in (*ax.get_xticklabels(), *ax.get_yticklabels())]
    assert not SIGNS.search(" ".join(drawn))


def test_two_texts_by_tokens_are_told_without_signs() -> None:
    model = whence.load("writer")
    p = whence.probe(model, "The people said", "The country said", units="token", control=())
    shown = str(p) + " ".join(p.answer()) + " ".join(p.labels)
    assert "people → country" in shown
    assert not SIGNS.search(shown)
    assert not SIGNS.search(re.sub(r"<script.*?</script>", "", p.to_html(), flags=re.DOTALL))


@pytest.mark.parametrize("name", ["writer", "sentiment", "translator"])
def test_a_token_keeps_its_letters(name: str) -> None:
    """Only the sign goes: what is left is what the token stands for, white space told by signs."""
    model = whence.load(name)
    rng = np.random.default_rng(0)
    vocabulary = model.tokenizer.convert_ids_to_tokens(range(len(model.tokenizer)))
    for i in rng.choice(len(vocabulary), min(400, len(vocabulary)), replace=False):
        token = vocabulary[i]
        shown = token_name(token)
        assert shown
        assert token.endswith(shown) or set(shown) <= set("␣⏎⇥")
        assert not shown.startswith(("Ġ", "▁"))
