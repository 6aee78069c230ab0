"""Ribeiro's experiment: a model whose words are known, and methods that must find them."""

from __future__ import annotations

import numpy as np
import pytest

from whence.core.errors import InputError, Unsupported
from whence.games.protocol import AnyGame
from whence.labs.gold_features import (
    MOST_WORDS,
    SparseModel,
    WordGame,
    recall_of_gold,
    sparse_model,
    words_of,
)

GOOD = [f"good{i}" for i in range(15)]
BAD = [f"bad{i}" for i in range(15)]
IDLE = [f"idle{i}" for i in range(80)]


def reviews(count: int, seed: int = 0) -> tuple[list[str], list[int]]:
    """Texts of about 30 words, of which some speak for the label and most for nothing."""
    rng = np.random.default_rng(seed)
    texts, labels = [], []
    for i in range(count):
        label = i % 2
        telling = list(rng.choice(GOOD if label else BAD, 4, replace=False))
        telling += list(rng.choice(BAD if label else GOOD, 1))
        words = telling + list(rng.choice(IDLE, 25, replace=False))
        texts.append(" ".join(rng.permutation(words)))
        labels.append(label)
    return texts, labels


@pytest.fixture(scope="module")
def trained() -> tuple[SparseModel, list[str]]:
    texts, labels = reviews(400)
    return sparse_model(texts, labels), texts


def test_no_text_has_more_than_ten_words_with_a_weight(
    trained: tuple[SparseModel, list[str]],
) -> None:
    """The limit is for each text; over all of them there are more, or it was read as global."""
    model, texts = trained
    counts = [int(model.gold(text).sum()) for text in texts]
    assert 0 < max(counts) <= MOST_WORDS
    assert len(model.weights) > MOST_WORDS
    assert sum(word.startswith("idle") for word in model.weights) < len(model.weights) / 2


def test_the_game_is_the_model_of_scikit_learn() -> None:
    """Refitted here with the penalty that was chosen, and asked about texts with words left out."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression

    texts, labels = reviews(200, seed=1)
    model = sparse_model(texts, labels)
    counting = CountVectorizer(binary=True, analyzer=str.split)  # pyright: ignore
    present = counting.fit_transform(texts)
    fitted = LogisticRegression(
        l1_ratio=1.0, C=model.penalty, solver="liblinear", random_state=0
    ).fit(present, labels)
    rng = np.random.default_rng(0)
    game = model.game(texts[0])
    masks = rng.random((20, game.size)) < 0.5
    left = [" ".join(np.array(game.words)[mask]) for mask in masks]
    expected = fitted.predict_proba(counting.transform(left))[:, 1]
    np.testing.assert_allclose(game(masks), expected, atol=1e-6)
    assert isinstance(game, AnyGame)
    np.testing.assert_allclose(game.about("negative")(masks), 1 - expected, atol=1e-6)
    assert game.cost.forwards == 40


def test_methods_that_play_find_the_words_and_chance_does_not(
    trained: tuple[SparseModel, list[str]],
) -> None:
    """Ribeiro et al. report more than 90 % for LIME. Occlusion of such a model is exact."""
    model, texts = trained
    few = {"samples": 300, "estimator": "plain"}
    methods = {"occlusion": {}, "lime": few, "banzhaf": few}
    results = {r.method: r for r in recall_of_gold(model, texts[:5], methods)}
    assert results["occlusion"].recall == 1.0
    assert results["lime"].recall > 0.9
    assert results["banzhaf"].recall > 0.9
    assert results["lime"].chance == pytest.approx(10 / 30, abs=0.01)


def test_the_chance_is_what_random_words_get(trained: tuple[SparseModel, list[str]]) -> None:
    model, texts = trained
    (found,) = recall_of_gold(model, texts[:12], {"occlusion": {}})
    rng = np.random.default_rng(0)
    recalls = []
    for text in [text for text in texts[:12] if model.gold(text).any()]:
        gold = np.flatnonzero(model.gold(text))
        for _ in range(300):
            named = rng.permutation(len(words_of(text)))[:10]
            recalls.append(np.isin(gold, named).mean())
    error = np.std(recalls) / np.sqrt(len(recalls))
    assert abs(np.mean(recalls) - found.chance) < 5 * error
    assert error < 0.01


def test_texts_without_gold_words_are_left_out() -> None:
    model = SparseModel({"good": 1.0}, 0.0, 0.1)
    (found,) = recall_of_gold(model, ["good day", "no day"], {"occlusion": {}}, budget=1)
    assert (found.texts, found.recall) == (1, 1.0)
    with pytest.raises(InputError, match="no text has a word with a weight"):
        recall_of_gold(model, ["no day"], {"occlusion": {}})


def test_methods_that_look_inside_are_refused() -> None:
    with pytest.raises(Unsupported, match="rollout looks inside a transformer"):
        recall_of_gold(SparseModel({"good": 1.0}, 0.0, 0.1), ["good"], {"rollout": {}})


def test_a_word_that_stands_twice_is_one_player() -> None:
    game = SparseModel({"good": 1.0}, 0.5, 0.1).game("good so good")
    assert game.words == ("good", "so")
    assert isinstance(game, WordGame)
    assert game.full == pytest.approx(1 / (1 + np.exp(-1.5)))
    assert game.label == 1
