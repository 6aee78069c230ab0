"""One word for another: the units stay, the prediction stays, and only one id is another."""

from __future__ import annotations

import numpy as np
import pytest

import whence
from tests.families import build
from whence.core.errors import Unsupported
from whence.models.exchanged import Neighbour, OneWordOther

TEXTS = (
    "the food is great but the service is not good at all",
    "a truly wonderful and moving little film",
    "dull , slow and far too long",
)


def test_one_id_is_another_and_the_prediction_stays() -> None:
    """The enemy keeps an exchange that changes the label: the explanation may then rightly move."""
    model = whence.load("sentiment")
    passages = [model.encode(text) for text in TEXTS]
    labels = model.logits(passages).argmax(1)
    exchanged = set()
    for number in range(4):
        neighbours = OneWordOther(number)(model, passages)
        assert len(passages) * 2 <= neighbours.forwards <= len(passages) * 6
        for passage, other, label in zip(passages, neighbours.of_texts, labels, strict=True):
            assert isinstance(other, Neighbour)
            (place,) = np.flatnonzero(other.passage.ids != passage.ids)
            assert np.flatnonzero(other.changed).tolist() == [passage.unit_of[place]]
            assert (other.passage.unit_of == passage.unit_of).all()
            assert model.logits([other.passage])[0].argmax() == label
            exchanged.add((int(place), int(other.passage.ids[place])))
    assert len(exchanged) > 4  # another number is another neighbour


def test_the_other_word_is_one_of_the_nearest_that_begins_alike() -> None:
    """Slowly: a cosine with every token of the vocabulary, one by one."""
    model = whence.load("sentiment")
    (passage,) = passages = [model.encode(TEXTS[1])]
    (other,) = OneWordOther(0)(model, passages).of_texts
    assert isinstance(other, Neighbour)
    (place,) = np.flatnonzero(other.passage.ids != passage.ids)
    table = model.input_embeddings.get_parameter("weight").detach().double().numpy()
    old, new = int(passage.ids[place]), int(other.passage.ids[place])
    cosines = {}
    for token, string in enumerate(model.tokenizer.convert_ids_to_tokens(range(len(table)))):
        if token != old and string.isalpha():
            norms = np.linalg.norm(table[token]) * np.linalg.norm(table[old])
            cosines[token] = table[token] @ table[old] / norms
    nearest = sorted(cosines, key=lambda token: -cosines[token])[:10]
    assert new in nearest


def test_a_text_stays_itself_whoever_stands_beside_it() -> None:
    model = whence.load("sentiment")
    passages = [model.encode(text) for text in TEXTS]
    together = OneWordOther(1)(model, passages).of_texts
    for passage, other in zip(passages, together, strict=True):
        (alone,) = OneWordOther(1)(model, [passage]).of_texts
        assert isinstance(alone, Neighbour)
        assert isinstance(other, Neighbour)
        assert (alone.passage.ids == other.passage.ids).all()


def test_a_text_without_a_whole_word_has_no_neighbour() -> None:
    model = build("bert")
    neighbours = OneWordOther()(model, [model.encode("12 , 34 !")])
    assert neighbours.of_texts == ["no word of this text is one token."]
    assert neighbours.forwards == 0


def test_pictures_are_refused() -> None:
    with pytest.raises(Unsupported, match="no table of tokens"):
        OneWordOther()(build("vit"), [])
