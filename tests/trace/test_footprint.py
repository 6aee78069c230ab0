"""What a run holds, measured on short texts: the same as counted on long ones."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import transformers as tf

import whence
from tests import tokenizers
from tests.families import build
from whence.core.errors import OurMistake
from whence.core.passage import Passage, truncate
from whence.core.registry import Needs, find_method, settings_of
from whence.core.request import Ask
from whence.core.target import Target
from whence.explaining.doctor import sample
from whence.explaining.room import forecast_games
from whence.models.model import Model
from whence.models.writing import written_after
from whence.trace import footprint
from whence.trace.footprint import (
    LENGTHS,
    Counting,
    Course,
    Footprint,
    Run,
    footprint_of,
)
from whence.trace.forecast import HOLES, OVERHEAD, forecast_run, forecast_trace, forward_bytes
from whence.trace.memory import AS_IT_COMES, HELD, MAPPED, NEVER_IN_A_HEAP, Forecast
from whence.trace.trace import trace

TOKENS = 300


@pytest.fixture(scope="module")
def bert() -> Model:
    torch.manual_seed(0)
    config = tf.BertConfig(
        vocab_size=3000,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=128,
        max_position_embeddings=512,
        pad_token_id=0,
    )
    hf = tf.BertForSequenceClassification(config).eval()
    return whence.load(hf, tokenizer=tokenizers.wordpiece())


@pytest.fixture(scope="module")
def writer() -> Model:
    """Its logits, 2,000 for each place that is read, are more than the rest of such a place."""
    torch.manual_seed(0)
    config = tf.GPT2Config(
        vocab_size=2000,
        n_embd=32,
        n_layer=2,
        n_head=2,
        n_positions=512,
        bos_token_id=0,
        eos_token_id=0,
    )
    hf = tf.GPT2LMHeadModel(config).eval()
    return whence.load(hf, tokenizer=tokenizers.byte_level())


def text_of(model: Model, tokens: int) -> Passage:
    whole = model.encode("the food " * tokens, units="token", overflow="truncate")
    return truncate(whole, tokens)


def of_tensors(forecast: Forecast) -> float:
    """Without what is added for libraries and the heap."""
    return (forecast.total - OVERHEAD) / (1 + HOLES)


def counted(model: Model, passage: Passage, needs: Needs) -> int:
    with Counting() as counting:
        kept = trace(model, [passage], needs=needs)
        assert kept is not None
    return max(counting.moments)


@pytest.mark.parametrize(
    "needs",
    [
        Needs.NOTHING,
        Needs.EMBEDDING_GRADIENTS,
        Needs.ATTENTION,
        Needs.ATTENTION_GRADIENTS,
        Needs.ATTENTION | Needs.EMBEDDING_GRADIENTS,
    ],
    ids=str,
)
@pytest.mark.parametrize("which", ["bert", "writer"])
def test_a_long_text_is_as_three_short_ones_say(
    which: str, needs: Needs, request: pytest.FixtureRequest
) -> None:
    """Continued from the peaks alone (they are at other moments) it would be a tenth off."""
    model = request.getfixturevalue(which)
    own = footprint_of(model, Run(needs))
    assert isinstance(own, Footprint)
    true = counted(model, text_of(model, TOKENS), needs)
    assert own.of_trace(TOKENS) == pytest.approx(true, rel=0.02)


def test_a_heap_that_is_left_alone_has_holes_and_keeps_what_it_took() -> None:
    """The wrong versions: all times 1.6, or only what is alive at the end.

    Of three blocks, two are small enough for a heap. One of these has gone when the third comes.
    """
    huge, first, second = 2 * NEVER_IN_A_HEAP, 8 * 2**20, 2 * 2**20
    own = Footprint(
        np.array([[huge, first, second]], dtype=float),
        births=np.array([2, 0, 2]),
        deaths=np.array([3, 1, 3]),
        moments=3,
        traced=1,
    )
    assert own.held(1, heap=HELD) == huge + second
    assert own.held(1, heap=AS_IT_COMES) == huge + round(AS_IT_COMES.taken * first)
    # a trace in blocks took less than the rehearsal of a short text says
    assert own.held(1, heap=AS_IT_COMES, while_traced=second) == huge + round(
        AS_IT_COMES.taken * second
    )


def test_a_rerun_begins_on_the_heap_as_it_is() -> None:
    """The wrong version counts its small tensors without their holes, or those before it."""
    before = Course(np.zeros(1), np.array([10.0]), taken=1.6)
    rerun = Course(np.array([5.0]), np.array([20.0]), taken=1.6)
    assert before.with_rerun(0, rerun) == pytest.approx(5 + 1.6 * (10 + 20))


def test_a_peak_is_not_where_a_short_text_has_its_own(writer: Model) -> None:
    """The wrong version: one polynomial through the peaks of short texts forecasts half of it.

    With few tokens its activations and logits are the most, with many its maps and their gradients.
    """
    own = footprint_of(writer, Run(Needs.ATTENTION_GRADIENTS))
    assert isinstance(own, Footprint)
    peaks = [own.of_trace(tokens) for tokens in LENGTHS]
    through_peaks = np.polyval(np.polyfit(LENGTHS, peaks, 2), 2000)
    assert through_peaks < 0.7 * own.of_trace(2000)


def test_activations_are_forecast_not_only_maps(bert: Model) -> None:
    """The forecast of issue 12 was of the attention maps of a gradient method: none at all."""
    passage = text_of(bert, TOKENS)
    gradients = of_tensors(forecast_trace(bert, passage, Needs.EMBEDDING_GRADIENTS))
    hidden = TOKENS * 64 * 4
    assert gradients > 2 * 8 * hidden  # two layers, each with more than eight of its inputs
    assert gradients > 2 * forward_bytes(bert, passage)


@pytest.mark.parametrize("name", ["integrated-gradients", "smooth-grad"])
def test_methods_of_many_passes_hold_points_and_a_batch(bert: Model, name: str) -> None:
    info = find_method(name)
    run = Run(info.needs, methods=(settings_of(info, {}, 0),))
    passage = text_of(bert, TOKENS)
    usual = of_tensors(forecast_run(bert, passage, run))
    one_by_one = of_tensors(forecast_run(bert, passage, run, rerun_tokens=1))
    row = of_tensors(forecast_trace(bert, passage, Needs.EMBEDDING_GRADIENTS))
    at_once = 2048 // TOKENS
    assert usual - one_by_one == pytest.approx((at_once - 1) * row, rel=0.05)
    points = 16 * TOKENS * 64 * 4
    # the points; of a cloud their gradients, too, and of a path what they are along it
    held = 2 * points if name == "smooth-grad" else points
    assert one_by_one > row + held
    # and what is really held
    settings = settings_of(info, {"max_nodes": 16} if name.startswith("int") else {}, 0)
    with Counting() as counting:
        settings(trace(bert, [passage], needs=info.needs))
    assert usual == pytest.approx(max(counting.moments), rel=0.05)


def test_a_rehearsal_is_done_once_and_leaves_nothing(bert: Model) -> None:
    torch.manual_seed(3)
    state = torch.random.get_rng_state()
    lengths: list[int] = []
    hook = bert.input_embeddings.register_forward_hook(
        lambda _module, args, _output: lengths.append(args[0].shape[1])
    )
    try:
        run = Run(Needs.HIDDEN_STATES)
        first, again = footprint_of(bert, run), footprint_of(bert, run)
    finally:
        hook.remove()
    assert first is again
    assert lengths == list(LENGTHS)
    assert torch.equal(torch.random.get_rng_state(), state)


def test_what_cannot_be_rehearsed_falls_back_on_the_configuration(
    bert: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(footprint, "_known", type(footprint._known)())

    def broken(*_: object) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr(footprint, "_rehearse", broken)
    passage = text_of(bert, TOKENS)
    rough = forecast_trace(bert, passage, Needs.EMBEDDING_GRADIENTS)
    assert rough.is_known
    assert "which is rough, as a short text could not be tried" in str(rough)
    assert str(rough).endswith("BertForSequenceClassification: RuntimeError: no)")
    games = forecast_games(bert, passage, 10, 1024, ())
    assert games.rough == rough.rough
    monkeypatch.setattr(footprint, "_known", type(footprint._known)())
    monkeypatch.delattr(type(bert.config), "num_hidden_layers", raising=False)
    monkeypatch.delitem(bert.config.__dict__, "num_hidden_layers")
    unknown = forecast_trace(bert, passage, Needs.EMBEDDING_GRADIENTS)
    assert not unknown.is_known
    assert "not known" in str(unknown)


def test_a_mistake_of_ours_is_no_rough_forecast(
    bert: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was: any exception at all made the forecast rough, without a word."""
    monkeypatch.setattr(footprint, "_known", type(footprint._known)())
    monkeypatch.setattr(footprint, "LENGTHS", (48, None, 96))  # breaks our own code
    with pytest.raises(OurMistake, match="mistake of whence"):
        footprint_of(bert, Run(Needs.EMBEDDING_GRADIENTS))


def test_a_method_that_fails_is_named_and_the_others_are_forecast(
    bert: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(footprint, "_known", type(footprint._known)())
    gradient = settings_of(find_method("gradient-l2"), {}, 0)

    def broken(_: object) -> None:
        raise RuntimeError("not with me")

    passage = text_of(bert, TOKENS)
    both = forecast_run(bert, passage, Run(Needs.EMBEDDING_GRADIENTS, methods=(broken, gradient)))
    alone = forecast_run(bert, passage, Run(Needs.EMBEDDING_GRADIENTS, methods=(gradient,)))
    assert both.total == alone.total
    assert "not with me" in both.rough
    assert not alone.rough


def test_a_model_that_branches_is_fitted_by_its_peaks() -> None:
    lengths = (10, 20, 30)
    rows = []
    for tokens in lengths:
        moments = np.array([0.0, 5.0 * tokens, 2.0 * tokens, 3.0 * tokens] + [0.0] * tokens)
        nothing = np.zeros(0)
        none = np.zeros(0, dtype=np.int64)
        rows.append(footprint.Rehearsal(moments, nothing, none, none, 2))
    fitted = footprint._continued(lengths, rows)
    assert fitted.of_trace(100) == pytest.approx(500)
    assert fitted.kept(100) == pytest.approx(200)
    assert fitted.course(100).alive[1:].max() == pytest.approx(300)


def test_small_tensors_leave_a_heap_behind_and_large_ones_do_not() -> None:
    """The wrong version, the sum of what is alive, is half of what the process holds."""
    large, small = float(8 * MAPPED), float(MAPPED // 2)
    course = Course(
        large=np.array([0.0, 0.0, large, 0.0]), small=np.array([small, 2 * small, small, small])
    )
    assert course.alive.tolist() == [small, 2 * small, large + small, small]
    assert course.held.tolist() == [small, 2 * small, large + 2 * small, 2 * small]
    # a rerun fills the holes before the heap grows
    rerun = Course(large=np.array([0.0]), small=np.array([3 * small]))
    assert course.with_rerun(3, rerun) == 4 * small


def test_a_tensor_is_small_or_large_by_its_size_in_the_long_text(bert: Model) -> None:
    """In the short ones all are small: split there, a long text would leave everything behind."""
    own = footprint_of(bert, Run(Needs.ATTENTION))
    assert isinstance(own, Footprint)
    assert own.course(48).large.max() == 0
    assert own.course(3000).small.max() < own.course(3000).large.max() / 10
    # and eight texts in one batch are as large as eight times one
    assert own.course(300, rows=8).large.max() > own.course(300).large.max()
    np.testing.assert_allclose(own.course(300, rows=8).alive, 8 * own.course(300).alive)


@pytest.mark.parametrize("family", ["bert", "gpt2", "t5", "vit"])
def test_every_kind_of_model_has_a_forecast(family: str) -> None:
    model = build(family)
    passage = sample(model)
    assert forecast_trace(model, passage, Needs.EMBEDDING_GRADIENTS).total > OVERHEAD


@pytest.mark.parametrize("family", ["writer", "t5"])
def test_outputs_that_share_a_trace_are_counted(
    family: str, request: pytest.FixtureRequest
) -> None:
    """Ten outputs of one text; the forecast of one alone is far below, and was given for all."""
    model = request.getfixturevalue("writer") if family == "writer" else build(family)
    tokens = 250 if family == "writer" else 40
    prompt = text_of(model, tokens)
    passage = written_after(model, prompt, np.resize(prompt.ids[1:9], 10))
    asks = [Ask(passage, Target(at=n, read="log-probability")) for n in range(10)]
    needs = Needs.EMBEDDING_GRADIENTS
    with Counting() as counting:
        kept = trace(model, asks, needs=needs)
        assert kept.gradients is not None
    true = max(counting.moments)
    # more than tensors: small ones share a heap, which keeps what it took
    assert true <= of_tensors(forecast_run(model, passage, Run(needs, asks=10))) < 1.1 * true
    assert of_tensors(forecast_run(model, passage, Run(needs, asks=1))) < 0.9 * true


def test_a_row_of_a_game_has_logits_for_every_output(writer: Model) -> None:
    """The wrong version counts those of one place, as of a text whose next token is asked."""
    prompt = text_of(writer, 20)
    passage = written_after(writer, prompt, np.resize(prompt.ids, 200))
    plain = text_of(writer, len(passage))
    logits = 200 * len(writer.labels) * writer.dtype.itemsize
    assert forward_bytes(writer, passage) > logits > 1.5 * forward_bytes(writer, plain)
