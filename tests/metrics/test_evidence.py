"""Evidence: a model that provably uses two words, and the false alarms of random rankings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import BertConfig, BertForSequenceClassification

import whence
from tests import families
from tests.games.made_up import FeatureGame
from whence.core.errors import InputError
from whence.core.evidence import STILL, Evidence, Verdict
from whence.core.target import Target
from whence.games.game import Game, game_of
from whence.metrics.evidence import Control, control, evidence, orders_of, wilson
from whence.metrics.support import Support
from whence.models.model import Model

WORDS = "the food is great but the service is not bad I did"
USED = (3, 8)  # great, not


def planted() -> Model:
    """A real BERT classifier that provably sees two words alone.

    Every other embedding is zero, the first token attends to all alike (queries are zero), and the
    layer norm that follows takes away how many there are. So the head reads the direction of the
    sum of what is left of two orthogonal embeddings.
    """
    tokenizer = whence.load("sentiment").tokenizer
    shape = {
        "hidden_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 4,
        "intermediate_size": 8,
        "num_labels": 2,
    }
    hf = BertForSequenceClassification(
        BertConfig(vocab_size=len(tokenizer), **shape, id2label={0: "bad", 1: "good"})
    )
    one, other = torch.tensor([1.0, -1.0] * 16), torch.tensor([1.0, 1.0, -1.0, -1.0] * 8)
    with torch.no_grad():
        for parameter in hf.parameters():
            parameter.zero_()
        for word, direction in zip(("great", "not"), (one, other), strict=True):
            (known,) = tokenizer(word, add_special_tokens=False)["input_ids"]
            hf.bert.embeddings.word_embeddings.weight[known] = direction
        for norm in [m for m in hf.modules() if isinstance(m, torch.nn.LayerNorm)]:
            norm.weight.fill_(1.0)
        layer = hf.bert.encoder.layer[0]
        for square in (
            layer.attention.self.value,
            layer.attention.output.dense,
            hf.bert.pooler.dense,
        ):
            square.weight.copy_(torch.eye(32))
        hf.classifier.weight[1] = one + other
    return whence.load(hf.eval(), tokenizer=tokenizer)


@pytest.fixture(scope="module")
def model() -> Model:
    return planted()


@pytest.fixture(scope="module")
def controls(model: Model) -> list[Control]:
    passage = model.encode(WORDS)
    return [
        control(game_of(model, passage, Target("good"), removal)) for removal in ("mask", "delete")
    ]


def scores(*first: int) -> np.ndarray:
    out = np.linspace(0.1, 0.2, 12)[::-1].copy()
    for place, unit in enumerate(first):
        out[unit] = 2.0 - place
    return out


def test_the_planted_model_uses_two_words(model: Model) -> None:
    for removal in ("mask", "delete"):
        v = game_of(model, model.encode(WORDS), Target("good"), removal)
        drops = v.full - v(~np.eye(12, dtype=bool))
        assert set(np.flatnonzero(np.abs(drops) > 1e-4)) == set(USED)
        assert (drops[list(USED)] > 1).all()


@pytest.mark.parametrize("signed", [True, False])
def test_the_true_ranking_is_better(controls: list[Control], signed: bool) -> None:
    judged = evidence(scores(*USED), signed, controls)
    assert judged.verdict == Verdict.BETTER
    assert judged.p is not None
    assert judged.p <= 0.05
    assert [trial.removal for trial in judged.trials] == ["mask", "delete"]
    for trial in judged.trials:
        assert trial.interval is not None
        assert trial.beaten is not None
        assert trial.statistic > trial.random_high or trial.beaten > 0.95
        assert trial.interval[0] <= trial.beaten <= trial.interval[1]


@pytest.mark.parametrize("signed", [True, False])
def test_a_ranking_that_misses_both_is_not(controls: list[Control], signed: bool) -> None:
    missing = scores()
    missing[list(USED)] = -1.0
    assert evidence(missing, signed, controls).verdict == Verdict.WORSE
    middle = scores()  # both words in the middle, where chance has them too
    assert evidence(middle, signed, controls).verdict in (Verdict.SAME, Verdict.WORSE)


@pytest.mark.slow
def test_random_rankings_are_seldom_called_better(controls: list[Control]) -> None:
    rng = np.random.default_rng(5)
    trials = [rng.random(12) for _ in range(200)]
    for signed in (True, False):
        verdicts = [evidence(trial, signed, controls).verdict for trial in trials]
        better = verdicts.count(Verdict.BETTER)
        assert better <= 0.05 * len(trials)


@pytest.mark.slow
def test_false_alarms_over_texts_that_are_not_planted() -> None:
    """The same on the bundled model, whose target depends on every word.

    There are many controls, and one random ranking for each.
    """
    v = whence.game(whence.load("sentiment"), "the food is great but the service is not bad")
    rng = np.random.default_rng(0)
    better = 0
    for seed in range(60):
        judged = evidence(rng.random(10), True, [control(v, seed=seed)])
        assert judged.p is not None
        better += judged.p <= 0.05
    assert better <= 8  # 3 expected; P(more than 8) = 0.3 %


def test_the_verdict_is_what_all_removals_say() -> None:
    """One game says better, one not separable, one worse. The enemy is a verdict of any of them."""
    weights = np.arange(1.0, 10.0)
    says_better, says_worse = (
        FeatureGame(9, lambda z: z @ weights),
        FeatureGame(9, lambda z: -z @ weights),
    )
    says_nothing = FeatureGame(9, lambda z: 0 * z[:, 0])
    better, worse, nothing = (control(game) for game in (says_better, says_worse, says_nothing))
    both = (Verdict.BETTER, None, Verdict.WORSE)  # a game that stands still tells nothing
    assert tuple(evidence(weights, True, [c]).verdict for c in (better, nothing, worse)) == both
    for controls in ([better, nothing], [nothing, better], [better, worse], [worse, nothing]):
        judged = evidence(weights, True, controls)
        assert judged.verdict == Verdict.SAME
        assert judged.p == max(trial.p for trial in judged.trials if trial.p is not None)
        assert "it depends on the removal" in judged.note
        # the enemies: what the first removal says alone
        first, second = judged.trials
        assert first.beaten is not None
        assert second.beaten is not None
        assert judged.value == pytest.approx((first.beaten + second.beaten) / 2)
        ends = [end for trial in judged.trials for end in trial.interval or ()]
        assert judged.interval == (min(ends), max(ends))
    assert evidence(weights, True, [better, better]).verdict == Verdict.BETTER
    assert evidence(weights, True, [worse, worse]).verdict == Verdict.WORSE


def test_in_a_constant_game_nothing_is_ranked(model: Model) -> None:
    """No ranking could do better there. Would catch: “beats 50 %, p = 1”, which is not measured."""
    v = game_of(model, model.encode("the the is but is the"), Target("good"), "mask")
    judged = evidence(np.arange(6.0), True, [control(v)])
    assert (judged.verdict, judged.value, judged.p) == (None, None, None)
    assert judged.note == STILL
    assert judged.ranks_nothing


def test_few_units_have_too_few_rankings() -> None:
    v = whence.game(whence.load("sentiment"), "great")
    assert (
        evidence(np.array([1.0]), True, [control(v)]).note
        == "there is only one unit, so there is nothing to rank"
    )
    v = whence.game(whence.load("sentiment"), "a great film")
    judged = evidence(np.array([0.0, 2.0, 1.0]), True, [control(v)])
    assert judged.rankings == 6
    assert "only 6 rankings" in judged.note
    assert judged.verdict == Verdict.SAME


def test_all_orders_give_an_exact_p() -> None:
    v = whence.game(whence.load("sentiment"), "not a great film")
    every = control(v)
    areas = Support().of(every.curves)
    best = every.rankings[areas.argmax()]
    judged = evidence(-np.argsort(best).astype(float), True, [every])
    as_good = (areas >= areas.max() - 1e-9).sum()
    assert judged.p == as_good / 24


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12))
def test_orders_follow_the_scores(values: list[int]) -> None:
    (order,) = orders_of(np.array(values, dtype=float), np.random.default_rng(0))
    assert sorted(order) == list(range(len(values)))
    assert (np.diff(np.array(values)[order]) <= 0).all()


def test_ties_are_broken_by_lot() -> None:
    orders = {tuple(orders_of(np.zeros(8), np.random.default_rng(i))[0]) for i in range(8)}
    assert len(orders) == 8


@given(st.integers(0, 100))
def test_wilson_against_its_definition(wins: int) -> None:
    """The ends solve (share − p)² = z² p (1 − p) / n."""
    for end in wilson(wins / 100, 100):
        if 0 < end < 1:
            assert abs((wins / 100 - end) ** 2 - 1.959964**2 * end * (1 - end) / 100) < 1e-12


def test_the_control_is_shared_and_seeded(model: Model) -> None:
    passage = model.encode(WORDS)
    v = game_of(model, passage, Target("good"), "mask")
    first = control(v)
    paid = v.cost.forwards
    assert len(first.rankings) == 100
    assert (control(v).rankings == first.rankings).all()
    assert v.cost.forwards == paid
    assert not (control(v, seed=1).rankings == first.rankings).all()
    before = v.cost.forwards
    evidence(scores(*USED), True, [first])
    assert v.cost.forwards - before <= 2 * 9


def test_judging_scores_from_anywhere() -> None:
    model = whence.load("sentiment")
    a = whence.explain(
        model,
        "a truly wonderful and moving little film",
        "occlusion",
        target="positive",
        evidence=True,
    )
    assert a.evidence is not None
    assert a.evidence.verdict == Verdict.BETTER
    again = whence.judge(
        model, [replace(a, evidence=None), replace(a, scores=-a.scores, evidence=None)]
    )
    same, reversed_one = (attribution.evidence for attribution in again)
    assert same is not None
    assert reversed_one is not None
    for trial in a.evidence.trials:
        other = same.trial(trial.removal)
        assert other is not None
        assert trial.curves is not None
        assert other.curves is not None
        np.testing.assert_allclose(other.p, trial.p, atol=1e-5)
        np.testing.assert_allclose(other.statistic, trial.statistic, atol=1e-5)
        np.testing.assert_allclose(other.curves.deletion, trial.curves.deletion, atol=1e-5)
        np.testing.assert_allclose(
            other.curves.random_insertion, trial.curves.random_insertion, atol=1e-5
        )
    assert same.verdict == a.evidence.verdict
    assert reversed_one.verdict == Verdict.WORSE
    with pytest.raises(InputError, match="39"):
        whence.judge(model, a, rankings=38)
    few = whence.judge(model, a, rankings=39, steps=5).evidence
    assert (few.rankings, few.steps, len(few.trials[0].curves.steps)) == (39, 5, 6)
    # one of 40 rankings, and Wilson's interval of 39
    for trial in few.trials:
        assert trial.p == pytest.approx(1 - 39 * trial.beaten / 40)
        assert trial.interval == wilson(trial.beaten, 39)
    older = few.to_dict()
    del older["steps"]
    assert Evidence.from_dict(older).steps == 5
    other = families.build("bert")
    with pytest.raises(InputError, match="weights"):
        whence.judge(other, a)


def test_a_game_is_what_the_name_says() -> None:
    assert isinstance(whence.game(whence.load("sentiment"), "fine"), Game)
