"""Decoding rules by their definitions and against transformers' own; search, by enumeration."""

from __future__ import annotations

from itertools import pairwise, product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from tests.families import build
from whence.core.errors import SettingsError
from whence.generation.decoding import (
    beam_search,
    beam_steps,
    decode,
    log_probability,
    nucleus,
    repeated,
    scorer,
    temperature,
    top_k,
)

PROMPT = [5, 17, 80]
FEW = settings(max_examples=40)
LOGITS = st.lists(st.floats(-8, 8, width=32), min_size=2, max_size=30).map(
    lambda x: torch.tensor(x, dtype=torch.float32)
)


@pytest.fixture(scope="module")
def gpt2():
    return build("gpt2", seed=3).hf


@pytest.fixture(scope="module")
def score(gpt2):
    return scorer(gpt2)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


# ---------------------------------------------------------------------- rules


@given(LOGITS, st.integers(1, 40))
@FEW
def test_top_k_keeps_exactly_k_and_no_dropped_token_is_better(logits, k):
    """Would catch a threshold at the k-th score, which keeps more than k among equals."""
    kept = top_k(logits, k).isfinite()
    assert int(kept.sum()) == min(k, len(logits))
    assert torch.equal(top_k(logits, k)[kept], logits[kept])
    if not kept.all():
        assert logits[kept].min() >= logits[~kept].max()


@given(LOGITS, st.floats(0.001, 0.999))
@FEW
def test_a_nucleus_reaches_p_and_is_minimal(logits, p):
    """Would catch the cut before the token that crosses p, and the one after it.

    The first leaves too little mass, the second is not minimal.
    """
    probability = logits.double().softmax(-1)
    kept = nucleus(logits, p).isfinite()
    assert probability[kept].sum() >= p - 1e-12
    assert probability[kept].sum() - probability[kept].min() < p + 1e-12
    if not kept.all():
        assert logits[kept].min() >= logits[~kept].max()


@given(LOGITS, st.floats(0.01, 100))
@FEW
def test_temperature_multiplies_log_odds_by_its_inverse(logits, tau):
    """Would catch a multiplication in place of the division."""
    logits = logits.double()
    before, after = logits.log_softmax(-1), temperature(logits, tau).log_softmax(-1)
    torch.testing.assert_close(after - after[0], (before - before[0]) / tau, atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("tau", [1e-4, 1e-30, 1e-60, 5e-324])
def test_a_temperature_near_zero_leaves_the_best_token_alone(tau):
    """Would catch logits / tau, which is inf - inf = NaN in float32."""
    assert temperature(torch.tensor([-3.0, 50.0, 49.0]), tau).softmax(-1).tolist() == [0, 1, 0]


@given(LOGITS)
@FEW
def test_rules_that_exclude_nothing_change_nothing(logits):
    assert torch.equal(top_k(logits, len(logits)), logits)
    assert torch.equal(nucleus(logits, 1.0), logits)
    torch.testing.assert_close(temperature(logits, 1.0).softmax(-1), logits.softmax(-1))


def test_a_nucleus_of_one_keeps_tokens_that_rounding_would_lose():
    """Would catch a running sum that reaches 1 early."""
    logits = torch.tensor([60.0, 0.0, -60.0])
    assert nucleus(logits, 1.0).isfinite().all()


@given(st.integers(0, 10_000), st.sampled_from([0.3, 0.7, 0.95]), st.integers(1, 50))
@FEW
def test_rules_agree_with_transformers(seed, p, k):
    """Independent implementations of all three, on scores without ties."""
    logits = 3 * torch.randn(2, 50, generator=seeded(seed))
    ids = torch.zeros(2, 1, dtype=torch.long)
    assert torch.equal(top_k(logits, k), TopKLogitsWarper(k)(ids, logits.clone()))
    assert torch.equal(
        nucleus(logits, p).isfinite(), TopPLogitsWarper(p)(ids, logits.clone()).isfinite()
    )
    torch.testing.assert_close(
        temperature(logits, p).softmax(-1),
        TemperatureLogitsWarper(p)(ids, logits.clone()).softmax(-1),
    )


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        (temperature, 0.0),
        (temperature, float("inf")),
        (temperature, float("nan")),
        (top_k, 0),
        (nucleus, 0.0),
        (nucleus, 1.5),
    ],
)
def test_values_without_a_meaning_are_refused_by_value(rule, value):
    with pytest.raises(SettingsError, match=str(value).replace(".", r"\.")):
        rule(torch.zeros(3), value)


# ---------------------------------------------------------------------- one path


def test_greedy_is_that_of_transformers(gpt2, score):
    wanted = gpt2.generate(
        torch.tensor([PROMPT]),
        do_sample=False,
        max_new_tokens=15,
        eos_token_id=gpt2.config.vocab_size,
        pad_token_id=0,
    )
    assert decode(score, PROMPT, 15) == wanted[0, len(PROMPT) :].tolist()


def test_limits_of_the_rules_are_greedy_and_pure_sampling(gpt2, score):
    pure = decode(score, PROMPT, 25, generator=seeded(1))
    size = gpt2.config.vocab_size
    assert decode(score, PROMPT, 25, generator=seeded(1), rules=[lambda x: top_k(x, size)]) == pure
    assert decode(score, PROMPT, 25, generator=seeded(1), rules=[lambda x: nucleus(x, 1.0)]) == pure
    greedy = decode(score, PROMPT, 25)
    assert pure != greedy  # otherwise the two lines above and below would say nothing
    assert (
        decode(score, PROMPT, 25, generator=seeded(1), rules=[lambda x: temperature(x, 1e-6)])
        == greedy
    )
    assert decode(score, PROMPT, 25, generator=seeded(1), rules=[lambda x: top_k(x, 1)]) == greedy


def test_draws_have_the_frequencies_of_the_filtered_distribution():
    """Would catch rules that are applied to nothing, or draws without renormalising."""
    odds = torch.tensor([[0.5, 0.3, 0.2]]).log()
    made = decode(lambda ids: odds, [0], 1500, rules=[lambda x: top_k(x, 2)], generator=seeded())
    share = torch.bincount(torch.tensor(made), minlength=3) / 1500
    # four standard errors of a share of 5/8 among 1500
    torch.testing.assert_close(share, torch.tensor([0.625, 0.375, 0.0]), atol=0.05, rtol=0)
    assert share[2] == 0


def test_drawing_leaves_the_global_generator_alone(score):
    before = torch.get_rng_state()
    decode(score, PROMPT, 3, generator=seeded())
    assert torch.equal(torch.get_rng_state(), before)


def test_decoding_stops_after_the_stop_token(score):
    free = decode(score, PROMPT, 20)
    assert decode(score, PROMPT, 20, stop=free[0]) == free[:1]


def test_a_text_longer_than_the_positions_goes_on_from_its_end(gpt2, score):
    """Would catch the index error of a position that the model has not."""
    long = [i % 50 for i in range(gpt2.config.n_positions + 10)]
    assert torch.equal(score(torch.tensor([long])), score(torch.tensor([long[10:]])))


# ---------------------------------------------------------------------- several paths


@pytest.mark.parametrize("width", [2, 3, 5])
def test_beam_is_that_of_transformers(gpt2, score, width):
    wanted = gpt2.generate(
        torch.tensor([PROMPT]),
        do_sample=False,
        num_beams=width,
        max_new_tokens=12,
        eos_token_id=gpt2.config.vocab_size,
        pad_token_id=0,
        num_return_sequences=width,
    )
    assert [list(p.ids) for p in beam_search(score, PROMPT, 12, width)] == wanted[
        :, len(PROMPT) :
    ].tolist()


def test_beam_of_width_one_is_greedy(score):
    assert list(beam_search(score, PROMPT, 20, 1)[0].ids) == decode(score, PROMPT, 20)


@given(st.integers(0, 10_000))
@FEW
def test_a_beam_that_holds_every_path_finds_the_best_one(seed):
    """Enumeration of all 81 texts of a Markov chain.

    Would catch a sum that forgets earlier steps.
    """
    chain = torch.randn(3, 3, generator=seeded(seed)).double().log_softmax(-1)
    found = beam_search(lambda ids: chain[ids[:, -1]], [0], 4, width=81)

    def value(text):
        return sum(float(chain[a, b]) for a, b in zip((0, *text), text, strict=False))

    assert len(found) == 81
    assert value(found[0].ids) == pytest.approx(
        max(value(text) for text in product(range(3), repeat=4))
    )
    assert all(path.log_probability == pytest.approx(value(path.ids)) for path in found)


def test_a_wider_beam_can_end_worse():
    """Why the lab does not promise that beam beats greedy.

    The greedy path is pushed out by two that then fall.
    """
    first = torch.tensor([0.36, 0.34, 0.30]).log()
    then = torch.tensor([[0.30, 0.35, 0.35], [0.50, 0.49, 0.01], [0.51, 0.48, 0.01]]).log()
    last = {(0, 1): [0.9, 0.05, 0.05], (0, 2): [0.9, 0.05, 0.05]}

    def chain(ids):
        rows = [tuple(r[1:].tolist()) for r in ids]
        table = {
            0: lambda r: first,
            1: lambda r: then[r[0]],
            2: lambda r: torch.tensor(last.get(r, [1 / 3] * 3)).log(),
        }
        return torch.stack([table[len(r)](r) for r in rows])

    greedy, beam = beam_search(chain, [0], 3, 1)[0], beam_search(chain, [0], 3, 2)[0]
    assert greedy.ids[:2] == (0, 1)
    assert beam.log_probability < greedy.log_probability


def test_log_probabilities_of_paths_are_those_of_one_pass(gpt2, score):
    """Would catch positions shifted by one."""
    for path in beam_search(score, PROMPT, 6, 3):
        assert log_probability(gpt2, PROMPT, path.ids) == pytest.approx(
            path.log_probability, abs=1e-4
        )


def test_parents_lead_to_the_prefix(score):
    steps = list(beam_steps(score, PROMPT, 5, 3))
    for before, after in pairwise(steps):
        assert all(path.ids[:-1] == before[path.parent].ids for path in after)


def test_ended_paths_stay_and_compete():
    """Token 2 ends: a path that ended keeps its probability while the others fall."""
    odds = torch.tensor([0.3, 0.3, 0.4]).log()
    found = beam_search(lambda ids: odds.expand(len(ids), 3), [0], 5, width=3, stop=2)
    assert found[0].ids == (2,)
    assert found[0].log_probability == pytest.approx(float(odds[2]))


@pytest.mark.parametrize(
    ("ids", "n", "share"),
    [([1, 2, 3], 4, 0.0), ([1, 1, 1, 1], 2, 2 / 3), ([1, 2, 3, 4, 5], 2, 0.0)],
)
def test_repeated_counts_occurrences_after_the_first(ids, n, share):
    assert repeated(ids, n) == pytest.approx(share)


def test_a_prompt_without_tokens_is_refused(score):
    with pytest.raises(SettingsError, match="no tokens"):
        decode(score, [], 3)
    with pytest.raises(SettingsError, match="width is 0"):
        beam_search(score, PROMPT, 3, 0)
