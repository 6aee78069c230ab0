"""whence.roar on texts whose deciding word is known, with real training."""

from __future__ import annotations

from pathlib import Path

import jaxtyping
import numpy as np
import pytest
import torch

import whence
from tests.families import FAMILIES
from tests.retraining.grammar import BAD, GOOD, decisive, sentences
from whence.core.roar import Roar, estimate
from whence.games.game import remover_of
from whence.models.load import load
from whence.retraining.labelled import Labelled, labelled
from whence.retraining.removing import pattern_of, placeholder, without
from whence.retraining.small import small_start

QUICK = whence.Training(epochs=8, batch=16, rate=1e-2)
TRAIN, TEST = sentences(96, 0), sentences(48, 1)
SHARES = (0.0, 0.25, 1.0)


@pytest.fixture(scope="module")
def result() -> Roar:
    return whence.roar(
        TRAIN,
        TEST,
        ["gradient-l2"],
        rankings={"the deciding word": decisive},
        shares=SHARES,
        training=QUICK,
        seeds=2,
    )


def test_nothing_removed_is_the_original_model(result: Roar) -> None:
    model = whence.train_small(TRAIN, training=QUICK, seed=0)
    predicted = [p.label for p in model.predict([text for text, _ in TEST])]
    accuracy = np.mean([p == label for p, (_, label) in zip(predicted, TEST, strict=True)])
    for values in result.accuracies.values():
        assert values[0, 0] == accuracy > 0.9


def test_everything_removed_is_the_prior(result: Roar) -> None:
    """All texts have four words, so all are the same four masks; a leak of any kind would show."""
    assert result.prior == 0.5
    for values in result.accuracies.values():
        assert (values[:, -1] == 0.5).all()


def test_without_the_deciding_word_nothing_is_left_and_random_keeps_some(result: Roar) -> None:
    assert result.at("the deciding word", 0.25).mean < 0.65
    # of one word in four, random removal takes the deciding one from a quarter of the texts
    assert result.at("random", 0.25).mean > 0.75
    assert result.area("the deciding word").mean < result.area("random").mean
    assert list(result.accuracies) == ["gradient-l2", "random", "the deciding word"]


def test_keeping_the_deciding_word_keeps_the_accuracy() -> None:
    r = whence.roar(
        TRAIN,
        TEST,
        [],
        rankings={"the deciding word": decisive},
        shares=(0.75,),
        keep=True,
        training=QUICK,
        seeds=1,
    )
    assert r.at("the deciding word", 0.75).mean > 0.9
    assert r.at("random", 0.75).mean < 0.8
    assert r.against_random("the deciding word").mean > 0


def test_deletion_and_recursion_run_through_the_same_texts() -> None:
    r = whence.roar(
        TRAIN[:48],
        TEST[:24],
        ["gradient-x-input"],
        shares=(0.0, 0.25, 0.9, 1.0),  # 0.9 of four words are all of them: nothing to explain
        removal="delete",
        recursive=True,
        training=QUICK,
        seeds=1,
    )
    assert r.removal == "delete"
    assert r.accuracies["gradient-x-input"][0, -1] == 0.5
    assert r.accuracies["gradient-x-input"][0, 0] == r.accuracies["random"][0, 0]


def test_a_pattern_that_tells_the_label_is_found() -> None:
    """The ranking takes from the front what the model calls good, from the end the rest."""

    def by_label(model: whence.Model, passage: whence.Passage) -> np.ndarray:
        order = np.arange(len(passage.unit_spans), dtype=float)
        return -order if model.predict([passage])[0].label == "good" else order

    r = whence.roar(
        TRAIN,
        TEST,
        [],
        rankings={"by label": by_label},
        shares=(0.5,),
        patterns=True,
        training=QUICK,
        seeds=1,
    )
    assert r.patterns["by label"][0, 0] > 0.9
    assert r.leak("by label").mean > 0.4
    assert r.patterns["random"][0, 0] < 0.75
    # without the control, the leak would pass for words that matter and were left
    assert r.accuracies["by label"][0, 0] > r.accuracies["random"][0, 0]


def test_the_same_seed_gives_the_same_numbers_and_torchs_generator_is_left_alone() -> None:
    def once() -> np.ndarray:
        r = whence.roar(TRAIN[:24], TEST, [], shares=(0.5,), training=QUICK, seeds=1)
        return r.accuracies["random"]

    before = torch.random.get_rng_state()
    np.testing.assert_array_equal(once(), once())
    assert torch.equal(before, torch.random.get_rng_state())


def test_a_model_of_the_callers_own_is_trained(tmp_path: Path) -> None:
    rows = [Labelled(text, label) for text, label in TRAIN]
    started = []

    def start(seed: int) -> whence.Model:
        started.append(seed)
        return small_start(rows, "single-layer")(seed)

    file = tmp_path / "test.csv"
    lines = [f"{text},{label}" for text, label in TEST]
    file.write_text("\n".join(["text,label", *lines]), encoding="utf-8")
    r = whence.roar(
        TRAIN, str(file), [], shares=(0.0, 1.0), start=start, training=QUICK, seeds=2, seed=4
    )
    assert started == [4, 4, 4, 5, 5]  # once to read texts, then for both shares of both seeds
    assert r.test_texts == len(TEST)
    assert r.at("random", 1.0).mean == 0.5


def test_the_reading_of_curves() -> None:
    """Areas by trapezoids over unequal steps: a plain mean of the heights would give 0.7."""
    r = Roar(
        shares=np.array([0.0, 0.2, 1.0]),
        accuracies={
            "random": np.array([[1.0, 0.8, 0.5], [1.0, 0.6, 0.5]]),
            "good": np.array([[1.0, 0.5, 0.5], [1.0, 0.5, 0.5]]),
        },
        prior=0.5,
        removal="mask",
    )
    assert r.area("good").mean == pytest.approx(0.2 * 0.75 + 0.8 * 0.5)
    by_hand = [0.2 * 0.9 + 0.8 * 0.65 - 0.55, 0.2 * 0.8 + 0.8 * 0.55 - 0.55]
    difference = r.against_random("good")
    assert difference.mean == pytest.approx(np.mean(by_hand))
    half = 12.7062 * np.std(by_hand, ddof=1) / np.sqrt(2)  # Student's t with one degree
    assert difference.high - difference.mean == pytest.approx(half, rel=1e-4)
    assert [row["removed"] for row in r.rows()] == [0.0, 0.2, 1.0] * 2
    assert np.isnan(estimate(np.array([0.7])).low)
    assert r.to_dict()["accuracies"]["good"] == [[1.0, 0.5, 0.5]] * 2
    assert "good: 1.000 0.500 0.500" in str(r)


def test_the_figure_has_a_line_a_band_and_a_name_for_each(result: Roar) -> None:
    from matplotlib import pyplot

    ax = result.plot()
    named = [text.get_text() for text in ax.get_legend().get_texts()]
    assert named == ["gradient-l2", "the deciding word", "random", "most frequent label"]
    assert len(ax.collections) == 3
    line = next(line for line in ax.lines if line.get_label() == "random")
    np.testing.assert_allclose(line.get_ydata(), result.accuracies["random"].mean(0))
    pyplot.close(ax.figure)


@pytest.mark.parametrize(
    ("family", "removal"),
    [
        ("bert", "mask"),
        ("bert", "delete"),
        ("gpt2-classifier", "delete"),  # without special tokens: a start token for the empty text
        ("bart-classifier", "mask"),
        ("bart-classifier", "delete"),
    ],
)
def test_passages_without_units_are_what_a_game_gives_the_model(family: str, removal: str) -> None:
    made = FAMILIES[family]
    assert made.tokenizer is not None
    torch.manual_seed(0)
    model = load(made.build(), tokenizer=made.tokenizer())
    passage = model.encode("the food isn't great but the menu is fine")
    rng = np.random.default_rng(0)
    masks = rng.random((6, len(passage.unit_spans))) < 0.5
    masks[0], masks[1] = True, False
    remover = remover_of(model, passage, removal)
    for kept in masks:
        batch = remover.batch(remover.kept_tokens(kept[None]), np.zeros((1, 1), dtype=np.int64))
        own = model.batch([without(model, passage, ~kept, removal)])
        for name, tensor in batch.inputs.items():
            assert torch.equal(own.inputs[name], tensor), name


def test_the_units_that_are_left_keep_their_names() -> None:
    model = whence.load("sentiment")
    passage = model.encode("an unwatchable but likeable film")
    removed = np.array([False, True, False, True, False])
    left = without(model, passage, removed, "delete")
    assert left.names == ("an", "but", "film")
    assert left.unit_of[left.unit_of >= 0].tolist() == [0, 1, 2]
    assert without(model, passage, np.zeros(5, dtype=bool), "delete") is passage
    pattern = pattern_of(model, passage, removed, "mask")
    texts = set(pattern.ids[pattern.unit_of >= 0].tolist())
    assert texts == {model.tokenizer.mask_token_id, placeholder(model)}
    # where the unknown token is the mask, some other word stands for words
    theory = whence.load("single-layer")
    assert placeholder(theory) != theory.tokenizer.unk_token_id


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"shares": (0.5, 0.1)}, "rise from 0 to 1"),
        ({"seeds": 0}, "one seed at least"),
        ({"removal": "zero"}, "by mask or delete"),
        ({"rank_by": "sign"}, "'size' or by 'score'"),
        ({"start": "gpt"}, "'bert' or 'single-layer'"),
        ({"rankings": {"random": decisive}}, "is a method's name"),
        ({"rankings": {"short": lambda _m, _p: [1.0]}}, "one finite score for each"),
    ],
)
def test_mistakes_are_told(change: dict, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # where types are checked, a wrong word would not reach the code that tells what is right
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(whence.WhenceError, match=says):
        whence.roar(TRAIN[:8], TEST[:4], [], training=whence.Training(epochs=1), **change)


def test_texts_without_labels_and_labels_of_one_kind_are_refused() -> None:
    with pytest.raises(whence.InputError, match="has no label"):
        labelled(["not bad", "dull"])
    with pytest.raises(whence.InputError, match="two labels at least"):
        whence.train_small([("fine", "good"), ("great", "good")])
    with pytest.raises(whence.InputError, match="no label of this model"):
        whence.roar([("fine", "a"), ("dull", "b")], [("fine", "c")], [])


def test_the_tokenizer_is_the_same_each_time() -> None:
    first = small_start([Labelled(text, label) for text, label in TRAIN])(0).tokenizer
    again = small_start([Labelled(text, label) for text, label in TRAIN])(0).tokenizer
    assert first.get_vocab() == again.get_vocab()
    assert set(GOOD + BAD) <= set(first.get_vocab())
