"""Pruning curves: heads removed together, in several orders at once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.audits.removing import PROJECTIONS, cases_of, counted, cross_entropies, cut_out
from tests.families import build, inputs
from tests.tolerance import rounding
from whence.audits.pruning import price_of_curve, pruning_curve
from whence.core.audit import Place
from whence.core.errors import InputError
from whence.core.pruning import random_orders
from whence.core.request import Ask
from whence.trace import edits
from whence.trace.trace import trace

HEADS = [Place(layer, head) for layer in range(2) for head in range(4)]
CLOSE = rounding(40, 5.0)  # the longest sum has 40 terms, and logits are of this size


def orders_of(count: int) -> dict[str, list[Place]]:
    return {
        f"random {i}": [HEADS[j] for j in order]
        for i, order in enumerate(random_orders(len(HEADS), count, seed=1))
    }


@pytest.mark.parametrize("family", PROJECTIONS)
def test_each_point_is_the_model_whose_weights_lack_these_heads(family: str) -> None:
    """For three orders in one batch; the enemies: rows that share one set, heads kept and not
    removed, the last k in place of the first."""
    model = build(family)
    passages = inputs(model, 3)
    labels = [1, 2, 0]
    cases = [replace(c, label=label) for c, label in zip(cases_of(model), labels, strict=True)]
    orders, steps = orders_of(3), [0, 1, 3, 6]
    curves = pruning_curve(model, cases, orders, steps)

    assert curves.orders == tuple(orders)
    assert curves.loss.shape == curves.right.shape == (3, 4, 3)
    for i, order in enumerate(orders.values()):
        for j, step in enumerate(steps):
            logits = cut_out(model, family, order[:step]).logits(passages)
            expected = cross_entropies(logits, labels)
            np.testing.assert_allclose(curves.loss[i, j], expected, atol=CLOSE)
            assert np.array_equal(curves.right[i, j], logits.argmax(1) == labels)
    assert np.ptp(curves.loss[:, 2], axis=0).min() > 10 * CLOSE


def test_all_heads_of_a_layer_are_the_layer() -> None:
    """By the edit that knows no rows: ``ablate``."""
    for family, kind in (("gpt2", "decoder"), ("bart-classifier", "cross")):
        model = build(family)
        cases = [replace(case, label=1) for case in cases_of(model)]
        name = kind if family == "bart-classifier" else ""
        order = [Place(1, head, name) for head in (2, 0, 3, 1)]
        curves = pruning_curve(model, cases, {"layer": order}, [4])
        for text, case in enumerate(cases):
            ask = Ask(case.passage, case.target)
            ablated = trace(model, [ask], edits=[edits.ablate(layer=1, kind=kind)])
            expected = cross_entropies(ablated.logits.double().numpy(), [1])
            assert curves.loss[0, 0, text] == pytest.approx(expected[0], abs=CLOSE)


def test_with_nothing_removed_it_is_the_model() -> None:
    model = build("bert")
    cases = cases_of(model)
    logits = model.logits(inputs(model, 3))
    expected = cross_entropies(logits, logits.argmax(1).tolist())
    with counted(model) as batches:
        curves = pruning_curve(model, cases, {"none": []}, [0])
    np.testing.assert_allclose(curves.loss[0, 0], expected, atol=CLOSE)
    assert (curves.right == 1.0).all()
    assert sum(batches) == 3


def test_a_set_that_several_orders_reach_is_run_once() -> None:
    """Orders of all heads end at the same set; the price counts what is run."""
    model = build("bert")
    cases = cases_of(model)
    orders, steps = orders_of(4), [0, 4, 8]
    price = price_of_curve(orders, steps)
    assert price.forwards == 1 + 4 + 1
    with counted(model) as batches:
        curves = pruning_curve(model, cases, orders, steps)
    assert sum(batches) == price.forwards * len(cases)
    assert len(batches) == 2
    assert np.ptp(curves.loss[:, 2], axis=0).max() == 0.0
    assert np.ptp(curves.loss[:, 1], axis=0).max() > 10 * CLOSE


def test_orders_and_steps_that_make_no_sense_are_refused() -> None:
    model = build("bert")
    cases = cases_of(model)[:1]
    with pytest.raises(InputError, match="layer 2, head 0, which is no head of this model"):
        pruning_curve(model, cases, {"one": [Place(2, 0)]}, [1])
    with pytest.raises(InputError, match="from 0 to 2, not 3"):
        pruning_curve(model, cases, {"one": HEADS[:2]}, [0, 3])
    with pytest.raises(InputError, match="more than once"):
        pruning_curve(model, cases, {"one": [HEADS[0], HEADS[0]]}, [1])
    with pytest.raises(InputError, match="at least one order"):
        pruning_curve(model, cases, {}, [1])
    with pytest.raises(InputError, match="at least one text"):
        pruning_curve(model, [], {"one": HEADS}, [1])
