"""Every output of a written text, beside its slow definition: one prefix at a time, run alone.

A prefix is run by transformers itself, without whence: so these tests would catch an output that is
read one place too early or too late, a later token that leaks in, a removal that moves positions
and forgets where to read, and an encoder-decoder whose two sides are mixed up.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import whence
from tests.families import build
from tests.tolerance import rounding
from whence.core.passage import Passage
from whence.core.target import Target
from whence.explaining.run import run
from whence.games.game import game_of
from whence.games.removals import mask_id, start_id
from whence.games.sampling import draw_pairs, even_law, nested_pairs
from whence.models.embeddings import mean_embedding
from whence.models.model import Model
from whence.models.writing import only_prompt, written_after

FAMILIES = ("gpt2", "llama", "gemma3", "t5", "bart")
PROMPT, CONTINUATION = "the food is good but", " the staff is not"
TINY = 1e-9  # in float64; an output read at another place is off by far more


def double(family: str) -> Model:
    model = build(family)
    model.hf.double()
    model.hf.requires_grad_(False)
    return model


def written(model: Model, units: Any = "token", prompt: str = PROMPT) -> Passage:
    first = model.encode(prompt, units=units)
    ids = model.backend.encode(CONTINUATION, add_special_tokens=False).ids
    return written_after(model, first, ids)


def prefix_logits(model: Model, source: Any, prefix: Any, **embedded: Any) -> torch.Tensor:
    """What comes after a prefix that is run alone; of an encoder-decoder, after both sides."""
    if "embeddings" in embedded:
        x = embedded["embeddings"]
        if not model.is_encoder_decoder:
            return model.hf(inputs_embeds=x[None]).logits[0, -1]
        encoder, decoder = x[: len(source)], x[len(source) :]
        out = model.hf(inputs_embeds=encoder[None], decoder_inputs_embeds=decoder[None])
        return out.logits[0, -1]
    if not model.is_encoder_decoder:
        return model.hf(input_ids=torch.tensor([list(prefix)])).logits[0, -1]
    source_ids, prefix_ids = torch.tensor([list(source)]), torch.tensor([list(prefix)])
    return model.hf(input_ids=source_ids, decoder_input_ids=prefix_ids).logits[0, -1]


def sides(model: Model, passage: Passage, output: int) -> tuple[list[int], list[int]]:
    """The ids of the encoder (none of a causal model), and those before the output."""
    end = passage.output_place(output)
    if not model.is_encoder_decoder:
        return [], passage.ids[:end].tolist()
    start = passage.output_place(0) - 1
    return passage.ids[:start].tolist(), passage.ids[start:end].tolist()


def embeddings_of(model: Model, source: list[int], prefix: list[int]) -> torch.Tensor:
    if not model.is_encoder_decoder:
        return model.input_embeddings(torch.tensor(prefix)).detach()
    assert model.decoder_embeddings is not None
    of_source = model.input_embeddings(torch.tensor(source))
    return torch.cat([of_source, model.decoder_embeddings(torch.tensor(prefix))]).detach()


@pytest.mark.parametrize("family", FAMILIES)
def test_gradients_of_all_outputs_are_those_of_each_prefix_alone(family: str) -> None:
    model = double(family)
    passage = written(model)
    g = whence.generate(
        model,
        model.encode(PROMPT, units="token"),
        ["gradient-x-input", "gradient-l2"],
        continuation=passage.ids[passage.output_place(0) :].tolist(),
        evidence=False,
    )
    assert g.cost.backwards == passage.outputs
    for output in range(passage.outputs):
        source, prefix = sides(model, passage, output)
        x = embeddings_of(model, source, prefix).requires_grad_()
        token = int(passage.ids[passage.output_place(output)])
        value = prefix_logits(model, source, prefix, embeddings=x).log_softmax(-1)[token]
        (slope,) = torch.autograd.grad(value, x)
        tokens = np.flatnonzero(passage.before(output).unit_of >= 0)
        by_input = (slope * x).detach().sum(-1)[tokens]
        by_length = slope.norm(dim=-1)[tokens]
        np.testing.assert_allclose(g.of(output, "gradient-x-input").scores, by_input, atol=TINY)
        np.testing.assert_allclose(g.of(output, "gradient-l2").scores, by_length, atol=TINY)
        assert g.of(output).value == pytest.approx(value.item(), abs=TINY)


def slow_value(
    model: Model, passage: Passage, output: int, kept: np.ndarray, removal: str
) -> float:
    """The log-probability of an output when only some tokens of its prefix are kept."""
    end, token = passage.output_place(output), int(passage.ids[passage.output_place(output)])
    border = passage.output_place(0) - 1 if model.is_encoder_decoder else 0
    kept = kept[:end]
    ids = passage.ids[:end].copy()
    prompt_end = border if model.is_encoder_decoder else passage.output_place(0)
    if removal in ("mean", "zero"):
        x = embeddings_of(model, ids[:border].tolist(), ids[border:].tolist())
        neutral = mean_embedding(model).to(x) if removal == "mean" else torch.zeros_like(x[0])
        x = torch.where(torch.from_numpy(kept)[:, None], x, neutral)
        logits = prefix_logits(model, ids[:border], ids[border:], embeddings=x)
        return float(logits.log_softmax(-1)[token])
    if removal == "mask":
        ids = np.where(kept, ids, mask_id(model))
        source, prefix = ids[:border], ids[border:]
    else:
        source, prefix = ids[:border][kept[:border]], ids[border:][kept[border:]]
        if not kept[:prompt_end].any():
            start = np.array([start_id(model)])
            if model.is_encoder_decoder:
                source = start
            else:
                prefix = np.concatenate([start, prefix])
    return float(prefix_logits(model, source, prefix).log_softmax(-1)[token])


REMOVALS = {
    "gpt2": ("delete", "mean", "zero"),
    "llama": ("delete", "mean", "zero"),
    "gemma3": ("delete", "mean", "zero"),
    "t5": ("mask", "delete", "mean", "zero"),
    "bart": ("mask", "delete", "mean", "zero"),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_game_gives_every_output_of_a_masked_text_from_one_pass(family: str) -> None:
    model = double(family)
    passage = written(model, "word")
    rng = np.random.default_rng(0)
    masks = rng.random((3, len(passage.unit_spans))) < 0.6
    masks[0] = False
    last = passage.outputs - 1
    for removal in REMOVALS[family]:
        game = game_of(model, passage, Target(at=last, read="log-probability"), removal)
        assert game.size <= len(passage.unit_spans)
        for output in range(passage.outputs):
            about = game.about(Target(at=output, read="log-probability"))
            values = about(masks[:, : about.size])
            for mask, value in zip(masks, values, strict=True):
                of_unit = np.concatenate([mask, [True]])  # -1: tokens of no unit are kept
                narrowed = passage.before(output).unit_of
                expected = slow_value(model, passage, output, of_unit[narrowed], removal)
                assert value == pytest.approx(expected, abs=TINY), (removal, output)


@pytest.mark.parametrize("removal", ["mean", "zero"])
def test_one_mask_by_itself_gives_what_it_gives_among_others(removal: str) -> None:
    # would catch: a single row of ids that torch is given without the right to write to it, of
    # which it warns (a warning is an error here)
    model = double("gpt2")
    passage = written(model, "word")
    target = Target(at=passage.outputs - 1, read="log-probability")
    masks = np.eye(3, len(passage.unit_spans), dtype=bool)
    alone = game_of(model, passage, target, removal)
    among_others = game_of(model, passage, target, removal)
    masks = masks[:, : alone.size]
    assert alone(masks[:1])[0] == pytest.approx(among_others(masks)[0], abs=TINY)


def test_later_outputs_answer_for_earlier_ones_without_a_pass() -> None:
    model = build("gpt2")
    passage = written(model, "word")
    last = Target(at=passage.outputs - 1)
    targets = [Target(at=output) for output in range(passage.outputs)]
    game = whence.game(model, passage, target=last, also=targets, removal="delete")
    masks = np.random.default_rng(1).random((20, game.size)) < 0.5
    game(masks)
    paid = game.cost.forwards
    for target in targets:
        about = game.about(target)
        about(masks[:, : about.size])
    assert game.cost.forwards == paid


@pytest.mark.parametrize("method", ["lime", "shapley", "occlusion"])
def test_a_game_of_all_outputs_costs_the_passes_of_the_last_one(method: str) -> None:
    # would catch: masks drawn anew for each output
    model = build("gpt2")
    settings = {} if method == "occlusion" else {"samples": 80, "exact": 0}
    prompt, text = "the food is good but the staff is not so", " the place is not bad"
    all_of_them = whence.generate(
        model, prompt, {method: settings}, continuation=text, evidence=False
    )
    last = len(all_of_them.outputs) - 1
    one = whence.generate(
        model, prompt, {method: settings}, continuation=text, outputs=[last], evidence=False
    )
    assert all_of_them.cost.forwards <= one.cost.forwards + 2 * len(all_of_them.outputs)


@pytest.mark.parametrize("family", FAMILIES)
def test_attention_of_an_output_is_the_last_row_of_its_prefix(family: str) -> None:
    model = double(family)
    passage = written(model)
    ids = passage.ids[passage.output_place(0) :].tolist()
    prompt = model.encode(PROMPT, units="token")
    g = whence.generate(model, prompt, "attention-mean", continuation=ids, evidence=False)
    model.hf.set_attn_implementation("eager")
    for output in range(passage.outputs):
        source, prefix = sides(model, passage, output)
        if model.is_encoder_decoder:
            out = model.hf(
                input_ids=torch.tensor([source]),
                decoder_input_ids=torch.tensor([prefix]),
                output_attentions=True,
            )
            across = out.cross_attentions[-1][0, :, -1].mean(0)
            row = torch.cat([across, out.decoder_attentions[-1][0, :, -1].mean(0)])
        else:
            out = model.hf(input_ids=torch.tensor([prefix]), output_attentions=True)
            row = out.attentions[-1][0, :, -1].mean(0)
        tokens = np.flatnonzero(passage.before(output).unit_of >= 0)
        # most families take the softmax in single precision, whatever the weights are
        tolerance = rounding(len(source) + len(prefix), row.detach())
        scores = g.of(output).scores
        np.testing.assert_allclose(scores, row.detach()[tokens], rtol=0, atol=tolerance)
        if not model.is_encoder_decoder:
            one_too_early = out.attentions[-1][0, :, -2].mean(0).detach()[tokens]
            assert np.abs(scores - one_too_early.numpy()).max() > 100 * tolerance


@pytest.mark.parametrize("family", ["gpt2", "bart"])
def test_integrated_gradients_of_an_output_sum_to_its_prefixs_change(family: str) -> None:
    # would catch: a path that also moves the tokens behind the output, or only one of two sides
    model = double(family)
    passage = written(model)
    ids = passage.ids[passage.output_place(0) :].tolist()
    settings = {"integrated-gradients": {"baseline": "mean", "tolerance": 1e-6}}
    prompt = model.encode(PROMPT, units="token")
    g = whence.generate(model, prompt, settings, continuation=ids, outputs=[0, 2], evidence=False)
    for output in (0, 2):
        kept = passage.before(output).unit_of < 0
        whole = slow_value(model, passage, output, np.ones_like(kept), "mean")
        nothing = slow_value(model, passage, output, kept, "mean")
        assert g.of(output).scores.sum() == pytest.approx(whole - nothing, rel=1e-4)


def test_a_span_adds_up_and_rests_on_what_stands_before_it() -> None:
    model = double("gpt2")
    passage = written(model, "word")
    each = [Target(at=k, read="log-probability") for k in (1, 2)]
    request = whence.Request.of("occlusion", target=[*each, Target(at=1, until=3)], evidence=False)
    (outcomes,) = run(model, [passage], request)
    first, second, both = [outcome.attributions["occlusion"] for outcome in outcomes]
    assert both.value == pytest.approx(first.value + second.value, abs=TINY)
    assert len(both.scores) == len(first.scores)
    shared = len(first.scores)
    np.testing.assert_allclose(both.scores, first.scores + second.scores[:shared], atol=TINY)


def test_prompts_alone_are_scored_where_that_is_asked() -> None:
    model = build("gpt2")
    passage = only_prompt(written(model, "word"))
    g = whence.generate(
        model, PROMPT, "occlusion", continuation=CONTINUATION, scored="prompt", evidence=False
    )
    assert g.matrix("occlusion").shape[1] == len(passage.unit_spans) == 5
    assert not np.isnan(g.matrix("occlusion")).any()


def test_readings_of_an_output_in_nats_and_words() -> None:
    model = double("gpt2")
    passage = written(model)
    logits = torch.from_numpy(model.output_logits(passage))
    token = int(passage.ids[passage.output_place(1)])
    log_p = logits[1].log_softmax(-1)

    def value(read: Any, **more: Any) -> float:
        target = model.resolve(Target(at=1, read=read, **more), logits.numpy(), passage)
        return float(model.value(logits[None], [target])[0])

    assert value("logit") == pytest.approx(float(logits[1, token]))
    assert value("log-probability") == pytest.approx(float(log_p[token]))
    assert value("probability") == pytest.approx(float(log_p[token].exp()))
    assert value("cross-entropy") == pytest.approx(-float(log_p[token]))
    # would catch inseq's 2 ** nats
    assert value("perplexity") == pytest.approx(1 / float(log_p[token].exp()))
    assert value("entropy") == pytest.approx(float(-(log_p.exp() * log_p).sum()))
    of_two = log_p[token] + logits[2].log_softmax(-1)[int(passage.ids[passage.output_place(2)])]
    assert value("perplexity", until=3) == pytest.approx(float((-of_two / 2).exp()))
    assert value("probability", until=3) == pytest.approx(float(of_two.exp()))


def test_a_contrast_is_antisymmetric() -> None:
    model = double("gpt2")
    passage = written(model, "word")
    token = int(passage.ids[passage.output_place(1)])
    other = (token + 7) % 100
    forth = Target(label=token, against=other, at=1)
    back = Target(label=other, against=token, at=1)
    request = whence.Request.of("gradient-x-input", target=[forth, back], evidence=False)
    (outcomes,) = run(model, [passage], request)
    a, b = [outcome.attributions["gradient-x-input"] for outcome in outcomes]
    np.testing.assert_allclose(a.scores, -b.scores, atol=TINY)
    assert a.value == pytest.approx(-b.value)


@given(units=st.integers(2, 12), more=st.integers(1, 9), seed=st.integers(0, 5))
@settings(max_examples=40)
def test_nested_pairs_are_smaller_halves_and_differ(units: int, more: int, seed: int) -> None:
    pairs = nested_pairs(units, units + more, 60, seed)
    own = pairs[:, :units]
    assert pairs.shape[1] == units + more
    assert len(np.unique(own, axis=0)) == len(own)
    assert ((own.sum(1) >= 1) & (2 * own.sum(1) <= units)).all()


def test_nested_pairs_follow_the_even_law() -> None:
    # would catch: only the halves that the larger game calls smaller, which keep too few units
    units, whole = 14, 40
    counts = np.zeros(units // 2 + 1)
    halves_as_drawn = np.zeros(units + 1)
    for seed in range(100):  # of few at a time hardly one comes twice, and no size runs out
        pairs = nested_pairs(units, whole, 40, seed)
        counts += np.bincount(pairs[:, :units].sum(1), minlength=len(counts))
        drawn = draw_pairs(whole, even_law(whole), 40, seed)
        halves_as_drawn += np.bincount(drawn[:, :units].sum(1), minlength=units + 1)
    np.testing.assert_allclose(counts[1:] / counts.sum(), even_law(units), atol=0.03)
    wrong = halves_as_drawn[1 : units // 2 + 1]
    assert abs(wrong / wrong.sum() - even_law(units)).max() > 0.03


def test_lime_of_an_earlier_output_is_that_of_its_own_game() -> None:
    # an additive stand-in of the game would hide it: the model's own values are compared
    model = double("gpt2")
    prompt, text = "the food is good but the staff is not so good", " the place is bad"
    exact = {"lime": {"exact": 16, "budget": 70000}}
    sampled = {"lime": {"samples": 1500, "exact": 0}}
    truth = whence.generate(model, prompt, exact, continuation=text, outputs=[0], evidence=False)
    both = whence.generate(
        model, prompt, sampled, continuation=text, outputs=[0, 8], evidence=False
    )
    error = both.of(0).error
    assert error is not None
    assert error.standard_error is not None
    away = (both.of(0).scores - truth.of(0).scores) / np.maximum(error.standard_error, 1e-12)
    assert np.abs(away).max() < 4.5


def test_attention_of_all_that_was_written_is_the_mean_over_its_outputs() -> None:
    model = build("gpt2")
    g = whence.generate(
        model,
        PROMPT,
        ["attention-mean", "rollout", "occlusion"],
        continuation=CONTINUATION,
        rankings=39,
        steps=3,
    )
    assert g.chosen is not None
    assert set(g.chosen) == {"attention-mean", "rollout", "occlusion"}
    units = len(g.chosen.units)
    assert units == len(model.encode(PROMPT).units)
    rows = g.matrix("rollout")[:, :units]
    np.testing.assert_allclose(g.chosen["rollout"].scores, rows.mean(0))
    assert g.chosen["rollout"].evidence is not None
    assert g.chosen["rollout"].value == pytest.approx(g.chosen["occlusion"].value, rel=1e-5)
