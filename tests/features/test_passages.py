"""The strongest passages in one pass equal what a slow second look at everything finds."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import whence
from whence.core.errors import InputError
from whence.features.mirrors import mirror
from whence.features.passages import AFTER, BEFORE, EDGES, top_passages
from whence.features.showing import dashboard
from whence.features.token_texts import token_texts
from whence.trace.hidden import hidden_at

TEXTS = [
    "The sea was calm, and the captain slept below.",
    "Go home!",
    "We must act now to strengthen our schools; the people of this nation expect it.",
    "What a dull film 🙂",
    "Go home!",
    "The captain of the ship had never seen such a storm in all his years upon the water, and he "
    "said so to the mate, who did not answer but looked at the sails and at the sky.",
]
TOP = 2


@pytest.fixture(scope="module")
def model():
    return whence.load("writer")


@pytest.fixture(scope="module")
def autoencoder(model):
    return mirror(model, layer=2)


@pytest.fixture(scope="module")
def tables(model, autoencoder):
    """The activations of each text, special tokens as NaN."""
    tables = []
    for text in TEXTS:
        passage = model.encode(text)
        (states,) = hidden_at(model, [passage], 2)
        table = (autoencoder.encode(states) * autoencoder.norms).numpy().astype(np.float64)
        table[passage.parts < 0] = np.nan
        tables.append(table)
    return tables


def test_tops_counts_and_histograms_are_those_of_a_slow_look(
    monkeypatch, model, autoencoder, tables
):
    # parts of one passage and of several, so that what is carried over is tried
    monkeypatch.setattr("whence.features.passages.ACTIVATIONS_AT_ONCE", 40 * autoencoder.size)
    monkeypatch.setattr("whence.features.passages.PASSAGES_AT_ONCE", 4)
    seen = top_passages(model, autoencoder, TEXTS, top=TOP)
    everything = np.concatenate(tables)
    everything = everything[~np.isnan(everything[:, 0])]
    assert (seen.tokens, seen.passages) == (len(everything), len(TEXTS))
    # a batch of another size may round otherwise, and so flip what is just above zero
    assert np.abs(seen.active - (everything > 0).sum(0)).max() <= 1
    assert seen.total == pytest.approx(everything.sum(0), abs=1e-3)

    distinct = [i for i, text in enumerate(TEXTS) if text not in TEXTS[:i]]
    for feature in range(0, autoencoder.size, 7):
        largest = {i: np.nanmax(tables[i][:, feature]) for i in distinct}
        best = sorted((i for i in distinct if largest[i] > 1e-3), key=lambda i: -largest[i])[:TOP]
        named = [int(i) for i in seen.passage[feature] if i >= 0]
        # would catch: a passage twice (the second "Go home!"), an order by place
        assert [i for i in named if largest[i] > 1e-3] == best
        for rank, i in enumerate(best):
            place = int(np.nanargmax(tables[i][:, feature]))
            assert seen.place[feature][rank] == place
            padded = np.zeros(BEFORE + len(tables[i]) + AFTER)
            padded[BEFORE : BEFORE + len(tables[i])] = np.nan_to_num(tables[i][:, feature])
            around = padded[place : place + BEFORE + 1 + AFTER]
            # would catch: a window that is one token off
            assert seen.around[feature][rank] == pytest.approx(around, abs=1e-4)
        counts, _ = np.histogram(everything[:, feature], EDGES)
        assert np.abs(seen.histogram[feature] - counts).sum() <= 2
    assert set(seen.texts) == {int(i) for i in np.unique(seen.passage) if i >= 0}
    assert seen.variance_explained == pytest.approx(1, abs=1e-9)


def test_variance_explained_is_that_of_the_errors(model, autoencoder):
    from dataclasses import replace

    # half of every state is missed: of the variance around the mean, and of the mean itself
    half = replace(autoencoder, decoder=autoencoder.decoder / 2)
    rows = torch.cat([h[1:] for h in hidden_at(model, [model.encode(t) for t in TEXTS], 2)])
    starts = model.encode(TEXTS[0]).parts[0] < 0
    rows = rows if starts else torch.cat(hidden_at(model, [model.encode(t) for t in TEXTS], 2))
    rows = rows.double()
    missed = (rows / 2).square().sum()
    wanted = 1 - float(missed / (rows - rows.mean(0)).square().sum())
    assert top_passages(model, half, TEXTS).variance_explained == pytest.approx(wanted, abs=1e-5)


def test_a_dashboard_shows_the_text_around_the_strongest_token(model, autoencoder):
    board = dashboard(model, autoencoder, TEXTS, top=TOP, most=30)
    assert len(board.features) == 30
    assert "live features, which fire less often, were left out" in board.notes[-1]
    for card in board.features:
        assert sum(card.histogram) == round(card.frequency * board.tokens)
        for top in card.tops:
            assert board.text(top) in "".join(TEXTS)
            assert top.values[top.place] == top.values.max() == pytest.approx(top.largest)
    # each text stands there once, however many features show it
    assert len({(e.passage, e.start) for e in board.excerpts}) == len(board.excerpts) <= len(TEXTS)
    assert "🙂" in "".join(token_texts(model.encode(TEXTS[3])))


def test_what_is_left_out_is_counted_all_the_same(model, autoencoder):
    whole = dashboard(model, autoencoder, TEXTS, top=1)
    rarest = min(whole.features, key=lambda card: card.frequency).number
    few = dashboard(model, autoencoder, TEXTS, top=1, most=5, always=[rarest])
    shown = {card.number for card in few.features}
    assert len(shown) == 6
    assert few[rarest].frequency == whole[rarest].frequency
    # would catch: counts of what is shown, told as counts of all
    for of in (whole, few):
        assert (of.live, of.dead, of.l0) == (whole.live, whole.dead, whole.l0)
        assert of.dense == sum(card.frequency > 0.1 for card in whole.features)
    assert whole.dense > 6
    assert whole.live == len(whole.features)
    with pytest.raises(InputError, match="it was left out, or never active"):
        few[next(card.number for card in whole.features if card.number not in shown)]


def test_what_is_wrong_is_said(model, autoencoder):
    with pytest.raises(InputError, match="empty"):
        top_passages(model, autoencoder, [" ", ""])
    with pytest.raises(InputError, match="at least one passage"):
        top_passages(model, autoencoder, TEXTS, top=0)
    with pytest.raises(InputError, match="fingerprint"):
        dashboard(whence.load("sentiment"), autoencoder, TEXTS)


def test_the_first_token_of_a_window_is_not_all_that_stands_before_it(model):
    from whence.core.passage import windows

    text = " ".join(TEXTS)
    parts = windows(model.encode(text), 20)
    assert len(parts) > 2
    pieces = [token_texts(part) for part in parts]
    # would catch: pieces that begin at the beginning of the text
    assert max(len(piece) for part in pieces for piece in part) < 20
    together = "".join("".join(part) for part in pieces)
    assert together.replace(" ", "") == text.replace(" ", "")
