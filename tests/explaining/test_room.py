"""A budget of memory: kept by smaller batches, or refused before anything runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
import transformers as tf

import whence
from bench.forecast import EXACT
from tests import tokenizers
from whence.core.errors import TooLarge
from whence.core.many import Many
from whence.core.passage import Passage, truncate
from whence.core.registry import methods
from whence.core.request import Request, targets_of, wishes_for
from whence.core.target import Target
from whence.explaining import outside
from whence.explaining.job import Job, Room, job_of
from whence.explaining.room import (
    forecast_games,
    forecast_memory,
    forecast_process,
    room_for,
)
from whence.models.model import Model
from whence.models.writing import written_after
from whence.trace.footprint import LENGTHS
from whence.trace.forecast import OVERHEAD
from whence.trace.memory import AT_MOST_TAKEN, can_be_held

TOKENS = 120


@pytest.fixture(scope="module")
def model() -> Model:
    torch.manual_seed(0)
    config = tf.BertConfig(
        vocab_size=3000,
        hidden_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=1024,
        max_position_embeddings=512,
        pad_token_id=0,
    )
    hf = tf.BertForSequenceClassification(config).eval()
    return whence.load(hf, tokenizer=tokenizers.wordpiece())


@pytest.fixture(scope="module")
def passage(model: Model) -> Passage:
    sentences = ("the food is great " * 5 + ". ") * 8
    whole = model.encode(sentences, units="sentence", overflow="truncate")
    return truncate(whole, TOKENS)


def job(model: Model, *methods: str, memory: str | int | None = None) -> Job:
    request = Request(
        wishes=wishes_for(methods), targets=targets_of(None), memory=memory, evidence=False
    )
    return job_of(model, request)


def lengths_run(model: Model) -> list[int]:
    """Grows by the length of each batch that the model embeds, until the list is dropped."""
    lengths: list[int] = []
    model.input_embeddings.register_forward_hook(
        lambda _module, args, _output: lengths.append(args[0].shape[-1])
    )
    return lengths


def test_a_budget_far_above_measures_nothing(model: Model, passage: Passage) -> None:
    asked = job(model, "integrated-gradients", memory="100GB")
    asked.model.pads  # noqa: B018 (the guard's own passes come before)
    lengths = lengths_run(model)
    assert room_for(asked, [passage]) == Room()
    assert lengths == []


@pytest.mark.skipif(not can_be_held(), reason="another C library")
@pytest.mark.parametrize("method", ["gradient-l2", "occlusion"])
def test_what_the_process_will_take_depends_on_the_budget(
    model: Model, passage: Passage, method: str
) -> None:
    """Told was what the run holds, of which an unheld process takes up to three times as much."""
    held = forecast_memory(job(model, method), passage).total
    near = forecast_process(job(model, method, memory=2 * held), passage).total
    far = forecast_process(job(model, method, memory="100GB"), passage).total
    assert near == held
    assert 1.3 * (held - OVERHEAD) < far - OVERHEAD < AT_MOST_TAKEN * held


def test_batches_shrink_to_the_budget_and_the_scores_stay(model: Model, passage: Passage) -> None:
    usual = forecast_memory(job(model, "integrated-gradients", "lime"), passage).total
    budget = usual // 2
    room = room_for(job(model, "integrated-gradients", "lime", memory=budget), [passage])
    assert TOKENS <= room.rerun_tokens < Room().rerun_tokens
    smaller = forecast_memory(job(model, "integrated-gradients"), passage, room)
    assert smaller.total <= budget

    kept, small = (
        whence.explain(
            model,
            passage,
            "integrated-gradients",
            units="sentence",
            max_nodes=16,
            evidence=False,
            memory=memory,
        )
        for memory in (None, budget)
    )
    np.testing.assert_allclose(small.scores, kept.scores, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("method", ["gradient-l2", "attn-lrp", "occlusion", "integrated-gradients"])
def test_a_run_over_the_budget_is_refused_before_it_begins(
    model: Model, passage: Passage, method: str
) -> None:
    """Gradients held nothing by the old forecast, and ran under any budget."""
    lengths = lengths_run(model)
    with pytest.raises(TooLarge, match=r"the budget is 1 kB"):
        whence.explain(model, passage, method, units="sentence", memory="1kB", evidence=False)
    assert max(lengths, default=0) <= max(LENGTHS)  # short texts only


def test_the_refusal_names_what_really_fits(model: Model, passage: Passage) -> None:
    lrp = forecast_memory(job(model, "transformer-attribution"), passage).total
    budget = lrp // 2
    with pytest.raises(TooLarge, match="other methods that fit: occlusion") as refused:
        whence.explain(
            model, passage, "transformer-attribution", units="sentence", memory=budget,
            evidence=False,
        )  # fmt: skip
    whence.explain(model, passage, "occlusion", units="sentence", memory=budget, evidence=False)
    assert "a text of at most about" in str(refused.value)


def test_the_environment_sets_the_budget(
    model: Model, passage: Passage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WHENCE_MEMORY", "2kB")
    with pytest.raises(TooLarge, match="2 kB"):
        whence.compare(model, passage, ["gradient-l2"], units="sentence", evidence=False)


def scored(model: Model, passage: Passage) -> whence.Attribution:
    """Scores from elsewhere, so that nothing is run for them."""
    scores = np.arange(len(passage.unit_spans), dtype=float)
    return whence.Attribution.from_scores(model, passage, scores, method="mine", target=0)


def test_a_game_over_the_budget_is_refused_before_it_begins(model: Model, passage: Passage) -> None:
    """A game had no budget at all, and ran under any."""
    lengths = lengths_run(model)
    with pytest.raises(TooLarge, match=r"a game over 106 tokens .* budget is 1 kB\. Options:"):
        whence.game(model, passage, memory="1kB")
    assert max(lengths, default=0) <= max(LENGTHS)


def test_the_batches_of_a_game_shrink_to_its_budget(model: Model, passage: Passage) -> None:
    usual = whence.game(model, passage)
    one_row = forecast_games(model, passage, 1, TOKENS, ()).total
    small = whence.game(model, passage, memory=2 * one_row)
    assert TOKENS <= small.tokens_at_once < usual.tokens_at_once
    masks = ~np.eye(small.size, dtype=bool)
    np.testing.assert_allclose(small(masks), usual(masks), atol=1e-5)


def test_judge_is_refused_before_it_begins(model: Model, passage: Passage) -> None:
    mine = scored(model, passage)
    lengths = lengths_run(model)
    with pytest.raises(TooLarge, match=r"the evidence over 106 tokens .* budget is 1 kB"):
        whence.judge(model, mine, memory="1kB")
    with pytest.raises(TooLarge, match=r"the evidence over 106 tokens .* budget is 1 kB"):
        whence.judge(model, Many((mine, mine)), memory="1kB")
    assert max(lengths, default=0) <= max(LENGTHS)


def test_judge_says_the_same_in_smaller_batches(
    model: Model, passage: Passage, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = scored(model, passage)
    sizes: list[int] = []
    original = outside.game_on

    def noted(*given: Any) -> Any:
        sizes.append(given[3])
        return original(*given)

    monkeypatch.setattr(outside, "game_on", noted)
    usual = whence.judge(model, mine, rankings=39, steps=2)
    one_row = forecast_games(model, passage, 1000, TOKENS, ("delete",)).total
    small = whence.judge(model, mine, rankings=39, steps=2, memory=2 * one_row)
    assert min(sizes) < max(sizes) == Room().game_tokens
    assert small.evidence is not None
    assert usual.evidence is not None
    for one, other in zip(small.evidence.trials, usual.evidence.trials, strict=True):
        assert one.statistic == pytest.approx(other.statistic, abs=1e-5)


def test_what_is_only_added_is_judged_within_the_budget(model: Model, passage: Passage) -> None:
    mine = scored(model, passage)
    lengths = lengths_run(model)
    with pytest.raises(TooLarge, match="the budget is 1 kB"):
        whence.compare(model, passage, [mine], units="sentence", memory="1kB")
    assert max(lengths, default=0) <= max(LENGTHS)


def test_looks_arbiters_and_closed_forms_keep_it_too(model: Model, passage: Passage) -> None:
    lengths = lengths_run(model)
    text = passage.text
    with pytest.raises(TooLarge, match="the budget is 1 kB"):
        whence.attend(model, passage, memory="1kB")
    with pytest.raises(TooLarge, match=r"maps of two texts .* the budget is 1 kB"):
        whence.probe(model, text, text.replace("food", "film"), memory="1kB")
    with pytest.raises(TooLarge, match="the budget is 1 kB"):
        whence.arbitrate(model, [passage], memory="1kB")
    # an arbiter's rehearsal embeds the vocabulary, for its mean: the text itself is what counts
    assert len(passage) not in lengths
    single = whence.load("single-layer")
    with pytest.raises(TooLarge, match="the budget is 1 kB"):
        whence.closed_forms(single, "a fine film", evidence=False, memory="1kB")


def test_rows_that_are_shortened_fill_a_batch(model: Model, passage: Passage) -> None:
    """Counted in whole texts, a batch of 1,024 tokens holds one text of 600, and no more."""
    masks, game_tokens = 100, 2 * len(passage) - 2
    kept = forecast_games(model, passage, masks, game_tokens, ()).total
    shortened = forecast_games(model, passage, masks, game_tokens, ("delete",)).total
    assert shortened - OVERHEAD > 1.3 * (kept - OVERHEAD)


def test_no_more_rows_are_forecast_than_there_are_masks(model: Model, passage: Passage) -> None:
    few = forecast_games(model, passage, 2, Room().game_tokens, ())
    many = forecast_games(model, passage, 1000, Room().game_tokens, ())
    assert few.working < many.working / 2


needs_a_high_water_mark = pytest.mark.skipif(
    not os.access("/proc/self/clear_refs", os.W_OK), reason="no high-water mark"
)


def measured_apart(*arguments: str) -> str:
    """A bench, which ends with 1 where one of its lines is not as it should be."""
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


# every method on the quickest family; one of each kind at other lengths, and where a vocabulary
# comes out
KINDS = ("gradient-l2", "attention-mean", "rollout", "attn-lrp", "integrated-gradients")
MEASURED = [
    ("bert", (512,), ()),
    ("gpt2", (256, 1024), KINDS),
    ("single-layer", (256, 1024), EXACT),
]


@pytest.mark.slow  # processes that measure
@needs_a_high_water_mark
@pytest.mark.parametrize(("family", "lengths", "names"), MEASURED)
def test_every_forecast_is_within_a_third_of_what_is_measured(
    family: str, lengths: tuple[int, ...], names: tuple[str, ...]
) -> None:
    """Every registered method and the evidence, and one of each kind at three lengths.

    The wrong version, without the activations that a backward pass needs, is a fiftieth of it.
    docs/benchmarks.md has more families, longer texts and wider models, which take minutes.
    """
    only = ["--methods", ",".join(names)] if names else []
    tokens = ",".join(map(str, lengths))
    lines = measured_apart("-m", "bench.forecast", family, "256", tokens, *only)
    expected = names or [name for name in methods() if name not in EXACT]
    for name in expected:
        assert len(re.findall(rf"tokens  {name} ", lines)) == len(lengths)


@pytest.mark.slow
@needs_a_high_water_mark
@pytest.mark.parametrize(
    ("family", "only"),
    [
        ("bert", ("--methods", "gradient-l2,rollout,smooth-grad,evidence")),
        ("gpt2", ("--methods", "attention-mean,attn-lrp,occlusion")),
    ],
    ids=["bert", "gpt2"],
)
def test_a_budget_is_refused_before_and_not_exceeded_after(
    family: str, only: tuple[str, ...]
) -> None:
    """One per cent below the least that a run can need, and one per cent above.

    In a process as it comes, whose heap has holes: all were exceeded while runs could fill them.
    """
    measured_apart("-m", "bench.budget", family, "256", "1024", *only)


@pytest.fixture(scope="module")
def writer() -> Model:
    torch.manual_seed(0)
    config = tf.GPT2Config(
        vocab_size=len(tokenizers.byte_level()),
        n_embd=256,
        n_layer=2,
        n_head=4,
        n_positions=512,
        pad_token_id=0,
        bos_token_id=0,
        eos_token_id=0,
    )
    return whence.load(tf.GPT2LMHeadModel(config).eval(), tokenizer=tokenizers.byte_level())


def test_fewer_outputs_share_a_trace_where_memory_is_short(writer: Model) -> None:
    """The wrong version takes all or one, as a forecast of one output says nothing of the rest."""
    prompt = truncate(writer.encode("the food is great " * 99, overflow="truncate"), 300)
    continuation = [int(i) for i in prompt.ids[:16]]
    passage = written_after(writer, prompt, continuation)

    def asked(memory: int | None = None) -> Job:
        request = Request(
            wishes=wishes_for(["gradient-l2"]),
            targets=tuple(Target(at=n, read="log-probability") for n in range(16)),
            memory=memory,
            evidence=False,
        )
        return job_of(writer, request)

    all_at_once = forecast_memory(asked(), passage).total
    one = forecast_memory(asked(), passage, Room(outputs=1)).total
    budget = (all_at_once + one) // 2
    room = room_for(asked(budget), [passage])
    assert 1 < room.outputs < 16
    assert one < forecast_memory(asked(), passage, room).total <= budget
    with pytest.raises(TooLarge, match="budget"):
        room_for(asked(one - 10), [passage])

    at_once, in_parts = (
        whence.generate(
            writer,
            prompt,
            "gradient-l2",
            continuation=continuation,
            evidence=False,
            memory=memory,
        )
        for memory in (None, budget)
    )
    assert in_parts.cost.forwards > at_once.cost.forwards
    np.testing.assert_allclose(
        in_parts.matrix("gradient-l2"), at_once.matrix("gradient-l2"), rtol=1e-4, atol=1e-6
    )
