"""The Game beside plain runs of one row at a time, for every family and removal."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import whence
from tests import families
from whence.core.errors import InputError, ModelError, SettingsError, TargetError, Unsupported
from whence.core.passage import Passage
from whence.core.target import Target
from whence.games import game as games
from whence.games.game import Game, game_of
from whence.games.masks import keys_of
from whence.games.removals import mask_id, second_removal
from whence.models.batches import Batch
from whence.models.model import Model
from whence.models.writing import written_after
from whence.trace.removals import drops
from whence.trace.trace import trace

TEXTS = [name for name in families.FAMILIES if name != "vit"]
SENTENCE = "the food is great but the service is not"


@pytest.fixture(scope="module")
def sentiment() -> Model:
    return whence.load("sentiment")


def some_masks(d: int, n: int = 6, seed: int = 0) -> np.ndarray:
    masks = np.random.default_rng(seed).random((n, d)) < 0.5
    masks[0], masks[1] = True, False
    return masks


def kept_only(passage: Passage, mask: np.ndarray) -> Passage:
    """The passage without the tokens of removed units, written the slow way."""
    keep = [
        i
        for i in range(len(passage))
        if passage.unit_of[i] < 0 or mask[passage.unit_of[i]] or i == passage.readout
    ]
    return replace(
        passage,
        ids=passage.ids[keep],
        tokens=tuple(passage.tokens[i] for i in keep),
        spans=passage.spans[keep],
        parts=passage.parts[keep],
        unit_of=passage.unit_of[keep],
        types=None if passage.types is None else passage.types[keep],
        readout=None if passage.readout is None else keep.index(passage.readout),
    )


def hidden(model: Model, passage: Passage, mask: np.ndarray) -> Passage:
    ids = passage.ids.copy()
    for i, u in enumerate(passage.unit_of):
        if u >= 0 and not mask[u] and i != passage.readout:
            ids[i] = mask_id(model)
    return replace(passage, ids=ids)


def value(model: Model, passage: Passage, target: Target) -> float:
    return float(model.value(torch.from_numpy(model.logits([passage])), [target])[0])


@pytest.mark.parametrize("family", TEXTS)
@pytest.mark.parametrize("removal", ["mask", "delete"])
def test_batches_equal_one_row_at_a_time(family: str, removal: str) -> None:
    model, tolerance = families.precise(family)
    passage = families.inputs(model, 1)[0]
    if removal == "mask" and mask_id(model) is None:
        pytest.skip("this tokenizer has neither a mask nor an unknown token that is not padding")
    v = game_of(model, passage, Target(), removal)
    masks = some_masks(v.size)
    if removal == "delete":
        rows = [kept_only(passage, m) for m in masks]
        masks = masks[[len(r) > 0 for r in rows]]  # an empty row is a start token: below
        rows = [r for r in rows if len(r)]
    else:
        rows = [hidden(model, passage, m) for m in masks]
    expected = [value(model, row, v.target) for row in rows]
    np.testing.assert_allclose(
        v(masks), expected, rtol=max(tolerance, 1e-9), atol=max(tolerance, 1e-9)
    )


@pytest.mark.parametrize("family", [*TEXTS, "vit"])
def test_mean_embeddings_equal_the_traces(family: str) -> None:
    model, tolerance = families.precise(family)
    passage = families.inputs(model, 1)[0]
    v = game_of(model, passage, Target(), "mean")
    masks = some_masks(v.size)
    if (
        passage.readout is not None
    ):  # the game keeps the token that is read; the trace's removal does not
        masks[:, passage.unit_of[passage.readout]] = True
    t = trace(model, [passage], v.target)
    expected = v.full - drops(t, 0, ~masks, "mean")
    np.testing.assert_allclose(
        v(masks), expected, rtol=max(tolerance, 1e-9), atol=max(tolerance, 1e-9)
    )


@pytest.mark.parametrize(
    "family",
    [n for n in TEXTS if n in families.DOUBLE and n not in ("roberta", "bart", "bart-classifier")],
)
def test_padding_is_unseen(family: str) -> None:
    """What stands under padding has no say: other ids there, same value.

    RoBERTa and BART count or find tokens by the padding id.
    """
    model, _ = families.precise(family)
    passage = families.inputs(model, 1)[0]
    first = int(np.flatnonzero(passage.unit_of == 1)[0])
    masks = np.ones((1, len(passage.unit_spans)), dtype=bool)
    masks[0, passage.unit_of[first]] = False
    if passage.readout is not None:
        masks[0, passage.unit_of[passage.readout]] = True
        masks[0, 0] = False
    v = game_of(model, passage, Target(5 if len(model.labels) > 5 else 1), "pad")
    other = replace(
        passage, ids=np.where((passage.unit_of >= 0) & ~masks[0][passage.unit_of], 7, passage.ids)
    )
    w = game_of(model, other, v.target, "pad")
    np.testing.assert_allclose(v(masks), w(masks), rtol=1e-9)
    assert abs(v(masks)[0] - v.full) > 1e-9


def test_padding_keeps_positions_and_deletion_does_not(sentiment: Model) -> None:
    """One word at the end kept.

    By ``pad`` it stands where it stood, by ``delete`` it is the first word.
    """
    passage = sentiment.encode("a b c great")
    last = np.array([[False, False, False, True]])
    pad, delete = (
        game_of(sentiment, passage, Target("positive"), "pad"),
        game_of(sentiment, passage, Target("positive"), "delete"),
    )
    alone = sentiment.encode("great")
    np.testing.assert_allclose(delete(last)[0], value(sentiment, alone, delete.target), atol=1e-5)
    row = sentiment.batch([passage]).inputs
    seen = torch.from_numpy(((passage.unit_of < 0) | (passage.unit_of == 3)).astype(np.int64))[None]
    ids = torch.where(seen == 1, row["input_ids"], sentiment.pad_id)
    with torch.no_grad():
        plain = sentiment.hf(**{**row, "input_ids": ids, "attention_mask": seen}).logits
    np.testing.assert_allclose(pad(last)[0], float(plain[0, 1]), atol=1e-5)
    assert abs(pad(last)[0] - delete(last)[0]) > 1e-3


@pytest.mark.parametrize("family", ["gpt2", "llama", "gpt2-classifier"])
@pytest.mark.parametrize("removal", ["delete", "pad"])
def test_an_empty_text_is_one_start_token(family: str, removal: str) -> None:
    model, _ = families.precise(family)
    v = game_of(model, families.inputs(model, 1)[0], Target(), removal)
    start = model.tokenizer.bos_token_id
    with torch.no_grad():
        alone = model.hf(
            input_ids=torch.tensor([[model.pad_id if start is None else start]])
        ).logits
    logits = alone if model.task == "classification" else alone[:, -1]
    np.testing.assert_allclose(v.empty, float(model.value(logits, [v.target])[0]), atol=2e-5)


@pytest.mark.parametrize("family", ["gpt2", "llama", "qwen3"])
def test_a_decoder_is_read_at_its_last_token_that_is_left(family: str) -> None:
    model, _ = families.precise(family)
    passage = families.inputs(model, 1)[0]
    v = game_of(model, passage, Target(), "pad")
    mask = np.ones((1, v.size), dtype=bool)
    mask[0, -3:] = False
    np.testing.assert_allclose(
        v(mask), [value(model, kept_only(passage, mask[0]), v.target)], atol=2e-5
    )


@pytest.mark.parametrize("removal", ["mask", "delete", "pad", "mean", "zero"])
@pytest.mark.parametrize("reading", ["logit", "probability", "log-probability", "margin"])
def test_the_whole_text_is_the_plain_prediction_to_the_bit(
    sentiment: Model, removal: str, reading: str
) -> None:
    v = whence.game(sentiment, SENTENCE, target="negative", read=reading, removal=removal)
    v(some_masks(v.size, 40))
    plain = sentiment.logits([sentiment.encode(SENTENCE)])
    assert v.full == float(sentiment.value(torch.from_numpy(plain), [v.target])[0])
    assert v.label == int(plain[0].argmax())


def test_pairs_are_removed_by_unit_of_either_text() -> None:
    model, tolerance = families.precise("bert")
    passage = model.encode("the food is great", "not bad prices")
    v = game_of(model, passage, Target(), "delete")
    masks = some_masks(v.size, 12)
    expected = [value(model, kept_only(passage, m), v.target) for m in masks]
    np.testing.assert_allclose(v(masks), expected, rtol=max(tolerance, 1e-9))


def test_every_mask_is_paid_for_once(sentiment: Model) -> None:
    v = whence.game(sentiment, SENTENCE)
    masks = some_masks(v.size, 50)
    before = v.cost.forwards
    assert before == 1
    first = v(np.concatenate([masks, masks]))
    distinct = len({m.tobytes() for m in masks} | {np.ones(v.size, dtype=bool).tobytes()})
    assert v.cost.forwards == distinct
    assert v.cost.saved == 2 * len(masks) - (distinct - 1)
    again = v(masks)
    v.labels(masks)
    assert v.cost.forwards == distinct
    np.testing.assert_array_equal(first[:50], again)
    np.testing.assert_array_equal(first[50:], again)


def test_the_model_is_called_as_often_as_counted(sentiment: Model) -> None:
    seen = []
    hook = sentiment.hf.register_forward_pre_hook(
        lambda _m, _a, k: seen.append(len(k["input_ids"])), with_kwargs=True
    )
    v = whence.game(sentiment, SENTENCE, removal="delete")
    v(some_masks(v.size, 200))
    hook.remove()
    assert sum(seen) == v.cost.forwards
    assert len(seen) < 20


def test_a_hundred_thousand_masks_stay_small(
    sentiment: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No row of tokens is laid out for all at once.

    What is asked of the remover at a time is bounded.
    """
    v = whence.game(sentiment, SENTENCE)
    asked = []
    monkeypatch.setattr(
        Game,
        "_run_batch",
        lambda self, masks, kept: self.memory.remember(keys_of(masks), torch.zeros(len(masks), 2)),
    )
    lay = v.remover.kept_tokens
    monkeypatch.setattr(
        type(v.remover), "kept_tokens", lambda self, m: asked.append(len(m)) or lay(m)
    )
    bits = np.arange(2**v.size)[:, None] >> np.arange(v.size) & 1
    v(np.tile(bits.astype(bool), (200, 1)))
    assert max(asked) <= games.ROWS_AT_ONCE
    assert len(v.memory.row_of_mask) == 2**v.size


def test_an_interrupt_loses_nothing(sentiment: Model) -> None:
    masks = some_masks(9, 400)
    stop = [0]

    def interrupt(done: int, of: int) -> None:
        stop[0] = done
        if done > 100:
            raise KeyboardInterrupt

    v = whence.game(sentiment, SENTENCE, progress=interrupt)
    with pytest.raises(KeyboardInterrupt):
        v(masks)
    assert 100 < v.cost.forwards < len({m.tobytes() for m in masks})
    v = replace(v, tick=lambda _done, _of: None)
    whole = whence.game(sentiment, SENTENCE)(masks)
    np.testing.assert_allclose(v(masks), whole, atol=1e-5)
    assert sentiment.predict([SENTENCE])[0].label


def test_progress_ends_at_the_whole(sentiment: Model) -> None:
    said: list[tuple[int, int]] = []
    v = whence.game(sentiment, SENTENCE, progress=lambda done, of: said.append((done, of)))
    v(some_masks(v.size, 300))
    assert said[-1][0] == said[-1][1] == v.cost.forwards - 1


def test_near_the_limit_and_over_it() -> None:
    model, _ = families.precise("bert")
    long = " ".join(["not bad"] * 40)
    fits = model.encode(long, overflow="truncate")
    assert len(fits) == model.limit
    for removal in ("mask", "delete"):
        assert np.isfinite(
            game_of(model, fits, Target(), removal)(some_masks(len(fits.unit_spans)))
        ).all()
    with pytest.raises(InputError, match=r"64.*truncate"):
        whence.game(model, long)
    with pytest.raises(InputError, match="one run"):
        whence.game(model, long, overflow="window")


def test_bad_input(sentiment: Model) -> None:
    v = whence.game(sentiment, SENTENCE)
    for wrong in (
        np.ones((2, 5), dtype=bool),
        np.ones(9, dtype=bool),
        np.ones((1, 1, 9), dtype=bool),
    ):
        with pytest.raises(InputError, match=r"\(masks, 9\)"):
            v(wrong)
    with pytest.raises(InputError, match="True"):
        v(np.full((1, 9), 0.5))
    assert v(np.zeros((0, 9), dtype=bool)).shape == (0,)
    assert v([[1] * 9])[0] == v.full
    with pytest.raises(SettingsError, match="Did you mean 'delete'"):
        whence.game(sentiment, SENTENCE, removal="delet")
    with pytest.raises(TargetError, match="neutral"):
        whence.game(sentiment, SENTENCE, target="neutral")
    with pytest.raises(InputError):
        whence.game(sentiment, "")


def test_nan_from_the_model_is_an_error() -> None:
    model = families.build("bert")
    v = game_of(model, families.inputs(model, 1)[0], Target(), "mask")
    with torch.no_grad():
        model.hf.classifier.weight.fill_(float("nan"))
    with pytest.raises(ModelError, match="not finite"):
        v(some_masks(v.size))


def test_what_has_no_such_removal() -> None:
    vit = families.build("vit")
    picture = families.inputs(vit, 1)[0]
    with pytest.raises(Unsupported, match="'mean'"):
        game_of(vit, picture, Target(), "mask")
    assert game_of(vit, picture, Target(), "auto").removal == "mean"
    assert second_removal(vit, "mean") == "zero"
    gpt2 = families.build("gpt2-classifier")
    with pytest.raises(Unsupported, match="'delete'"):
        game_of(gpt2, families.inputs(gpt2, 1)[0], Target(), "mask")
    assert (
        game_of(gpt2, families.inputs(gpt2, 1)[0], Target(), "auto").removal,
        second_removal(gpt2, "delete"),
    ) == ("delete", "pad")


def test_the_model_comes_back_as_it_was(sentiment: Model) -> None:
    sentiment.hf.train()
    before = {n: p.clone() for n, p in sentiment.hf.named_parameters()}
    for removal in ("mask", "mean", "zero", "pad", "delete"):
        whence.game(sentiment, SENTENCE, removal=removal)(some_masks(9))
    assert sentiment.hf.training
    assert not sentiment.input_embeddings._forward_hooks
    assert all(
        torch.equal(p, before[n]) and p.requires_grad for n, p in sentiment.hf.named_parameters()
    )
    sentiment.hf.eval()


HOSTILE = "[CLS] </s> [MASK] \u202eabc \x00 é 👩‍👩‍👧 עברית [SEP]"


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.text(min_size=1, max_size=60),
    removal=st.sampled_from(["mask", "delete", "pad", "mean"]),
)
@example(text=HOSTILE, removal="delete")
@example(text="word " * 10_000, removal="mask")
def test_any_text(sentiment: Model, text: str, removal: str) -> None:
    try:
        passage = sentiment.encode(text, overflow="truncate")
    except InputError:
        return
    v = game_of(sentiment, passage, Target("positive"), removal)
    masks = some_masks(v.size, 3)
    found = v(masks)
    assert np.isfinite(found).all()
    assert found[0] == v.full
    if v.size <= 40:
        row = (
            kept_only(passage, masks[2])
            if removal == "delete"
            else hidden(sentiment, passage, masks[2])
        )
        if removal in ("mask", "delete"):
            np.testing.assert_allclose(found[2], value(sentiment, row, v.target), atol=1e-4)


@pytest.mark.parametrize(
    ("target", "read"),
    [
        ("negative", None),
        ("negative", "probability"),
        ("positive", "log-probability"),
        (("negative", "positive"), None),
        (None, "margin"),
    ],
)
def test_another_target_costs_no_pass(sentiment: Model, target: object, read: str | None) -> None:
    v = whence.game(sentiment, SENTENCE, target="positive")
    masks = some_masks(v.size, 40)
    v(masks)
    paid = v.cost.forwards
    other = v.about(target, read)
    values = other(masks)
    # the enemy runs the masks again for each target
    assert v.cost.forwards == other.cost.forwards == paid
    alone = whence.game(sentiment, SENTENCE, target=target, read=read)
    assert other.target == alone.target
    np.testing.assert_allclose(values, alone(masks), atol=1e-6)
    np.testing.assert_array_equal(other.labels(masks), alone.labels(masks))
    # what the other game pays for, the first one knows
    more = some_masks(v.size, 80, seed=1)
    other(more)
    paid = v.cost.forwards
    v(more)
    assert v.cost.forwards == paid


def test_a_vocabulary_remembers_what_the_asked_targets_need() -> None:
    writer = whence.load("writer")
    text = "The old man looked at the"
    v = whence.game(writer, text, target=" sea", also=[" water", (" sea", " water")])
    masks = some_masks(v.size, 12)
    v(masks)
    paid = v.cost.forwards
    named = v.about(" water")
    difference = v.about((" sea", " water"))
    np.testing.assert_allclose(difference(masks), v(masks) - named(masks), atol=1e-5)
    assert v.cost.forwards == paid
    # not named beforehand: right all the same, and paid for
    late = v.about(" world")
    alone = whence.game(writer, text, target=" world")
    np.testing.assert_allclose(late(masks), alone(masks), atol=1e-5)
    assert v.cost.forwards > paid
    assert v.memory.keeps_logits is False


# ---------------------------------------------------------------------- batches of written texts


@pytest.mark.parametrize("removal", ["zero", "delete"])
def test_a_written_text_runs_in_batches_whose_logits_are_few(
    monkeypatch: pytest.MonkeyPatch, removal: str
) -> None:
    # would catch: batches by their tokens alone, whose logits are a vocabulary for each output, and
    # of which there are many where tokens are deleted
    model = whence.load("writer")
    prompt = model.encode("It was a very good movie", units="token")
    passage = written_after(model, prompt, [5, 6, 7])
    labels = len(model.labels)
    monkeypatch.setattr(games, "LOGITS_AT_ONCE", 2 * 3 * labels + 1)

    sizes = []
    said = type(model).said

    def counted(self: Model, batch: Batch) -> torch.Tensor:
        logits = said(self, batch)
        sizes.append(tuple(logits.shape))
        return logits

    monkeypatch.setattr(type(model), "said", counted)
    game = game_of(model, passage, Target(at=2, read="logit"), removal)
    game(np.eye(game.size, dtype=bool)[:5])
    assert sizes == [(1, 3, labels), (2, 3, labels), (2, 3, labels), (1, 3, labels)]
