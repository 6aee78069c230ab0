"""The verdicts on models whose truth is known: of 20 of each kind, at most one may be wrong."""

from __future__ import annotations

from collections.abc import Callable
from math import log

import pytest

from tests.audits.planted import Planted, irrelevant, second_layer_only, selects
from whence.audits.adversary import Adversary
from whence.audits.permutation import Permutation
from whence.audits.uniform import Uniform
from whence.core.audit import Observation, Place, effects_of
from whence.core.audited import FEWEST_TO_RULE_OUT, Audit, May, Why

SEEDS = range(20)
FEW = range(2)
TEXTS = 12
TESTS = {  # on how many texts, of those that there are: the search is dear
    Permutation(permutations=3, of_heads=1): FEWEST_TO_RULE_OUT,
    Uniform(): FEWEST_TO_RULE_OUT,
    Adversary(): TEXTS,
}


def audit_of(planted: Planted) -> Audit:
    observed: list[list[Observation]] = [[] for _ in planted.cases]
    for test, texts in TESTS.items():
        for seen, found in zip(observed, test(planted.model, planted.cases[:texts]), strict=False):
            seen += found
    return Audit("planted", "made up", len(observed), 0, 0, effects_of(observed))


def verdict_on(audit: Audit, place: Place) -> May:
    return next(verdict.may for verdict in audit.places if verdict.place == place)


def is_right_where_it_selects(seed: int) -> bool:
    return verdict_on(audit_of(selects(seed, TEXTS)), Place()) is May.YES


def is_right_where_it_is_irrelevant(seed: int) -> bool:
    audit = audit_of(irrelevant(seed, FEWEST_TO_RULE_OUT))
    jsd = audit.effect("adversary", "jsd")
    change = audit.effect("permutation", "change")
    assert jsd is not None
    assert change is not None
    assert jsd.mean > 0.95 * log(2)
    assert change.mean < 1e-6
    everywhere = audit.of_all
    assert everywhere is not None
    return (everywhere.may, everywhere.why) == (May.NO, Why.IDLE)


def is_right_on_layers(seed: int) -> bool:
    audit = audit_of(second_layer_only(seed, FEWEST_TO_RULE_OUT))
    return (verdict_on(audit, Place(0)), verdict_on(audit, Place(1))) == (May.NO, May.YES)


KINDS = [is_right_where_it_selects, is_right_where_it_is_irrelevant, is_right_on_layers]


@pytest.mark.parametrize("is_right", KINDS)
def test_the_verdict_is_right(is_right: Callable[[int], bool]) -> None:
    assert all(is_right(seed) for seed in FEW)


@pytest.mark.slow  # sixty audits
@pytest.mark.parametrize("is_right", KINDS)
def test_at_most_one_verdict_of_twenty_is_wrong(is_right: Callable[[int], bool]) -> None:
    assert sum(not is_right(seed) for seed in SEEDS) <= 1


def test_a_search_that_never_came_back_does_not_clear_attention() -> None:
    """Counted as a divergence of 0, it would say that no other attention gives the output."""
    planted = selects(seed=0, texts=TEXTS)
    hasty = Adversary(steps=1, restarts=1)  # from a far start
    observed = [Permutation(permutations=5, of_heads=1), Uniform(), hasty]
    seen: list[list[Observation]] = [[] for _ in planted.cases]
    for test in observed:
        for own, found in zip(seen, test(planted.model, planted.cases), strict=True):
            own += found
    jsds = [
        one.value for own in seen for one in own if (one.test, one.quantity) == ("adversary", "jsd")
    ]
    assert all(jsd > 0 for jsd in jsds)
    assert len(jsds) < 2 * len(seen)  # one layer, and all of them
    audit = Audit("planted", "made up", len(seen), 0, 0, effects_of(seen))
    assert verdict_on(audit, Place()) is not May.YES
