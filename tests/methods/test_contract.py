"""What every method must keep to, over every choice of every Literal setting and several families.

No method is named here: what a test must know of one follows from what the method declares.
"""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, fields
from functools import cache
from itertools import cycle
from typing import Any, get_type_hints

import numpy as np
import pytest
import torch

import whence
from tests.choices import choices, literals, quick
from tests.families import build, inputs, precise
from tests.trace.test_untouched import assert_same, snapshot
from whence.core.errors import InputError, TargetError, Unsupported
from whence.core.registry import GRADIENTS, Needs, methods
from whence.models.model import Model

FAMILIES = [
    "bert",
    "modernbert-mean",
    "gpt2",
    "llama-classifier",
    "t5",
    "bart-classifier",
    "vit",
    "single-layer",
]
# of one model and of logits alone
CLOSED_FORMS = [name for name, info in methods().items() if "single-layer" in info.only_for]


HOME = dict.fromkeys(methods(), "bert") | dict.fromkeys(CLOSED_FORMS, "single-layer")
CASES = [(name, given) for name, info in methods().items() for given in choices(info.settings)]


def each_case(choices_in_short: bool = True) -> Any:
    """Every method with its defaults, and with each choice of each of its settings."""
    cases = []
    for name, given in CASES:
        marks = () if choices_in_short or not given else (pytest.mark.slow,)
        label = "-".join((name, "-".join(map(str, given.values()))))
        cases.append(pytest.param(name, given, marks=marks, id=label))
    return pytest.mark.parametrize(("name", "given"), cases)


every_case = each_case()


def in_families(for_defaults: list[str], for_choices: list[str]) -> Any:
    """A method's defaults on many families, each of its choices on a few.

    What differs between families is rarely a choice. `make test` tries each choice on one family,
    and the defaults on that and on one other, in turns: so it meets every method and every family.
    """
    cases = []
    turns = cycle([family for family in for_defaults if family not in HOME.values()])
    for name, given in CASES:
        families = for_choices if given else for_defaults
        if name in CLOSED_FORMS:
            families = [HOME[name]]
        in_short = {HOME[name]} if given else {HOME[name], next(turns)}
        for family in families:
            marks = () if family in in_short else (pytest.mark.slow,)
            label = "-".join((family, name, "-".join(map(str, given.values()))))
            cases.append(pytest.param(family, name, given, marks=marks, id=label))
    return pytest.mark.parametrize(("family", "name", "given"), cases)


@cache
def model_of(family: str) -> tuple[Model, float]:
    return precise(family)


def explained(model: Model, what: Any, name: str, given: dict[str, Any], **more: Any) -> Any:
    info = methods()[name]
    try:
        return whence.explain(
            model, what, name, **quick(info.settings), **given, **more, evidence=False
        )
    except Unsupported as problem:
        # an image model or a decoder has no mask token; other limits a method declares
        needs_a_token = given.get("baseline") in ("mask", "pad")
        if not needs_a_token and not info.only_for:
            raise
        pytest.skip(f"refused by name: {problem}")


def test_there_is_a_case_for_every_literal() -> None:
    for name, info in methods().items():
        tried = [given for case, given in CASES if case == name]
        assert tried[0] == {}
        hints = get_type_hints(info.settings)
        for field in fields(info.settings):
            of_field = {given[field.name] for given in tried if field.name in given}
            default = getattr(info.settings(), field.name)
            expected = set(literals(hints[field.name])) - {default}
            assert of_field == expected


@in_families(FAMILIES, ["bert", "gpt2", "bart-classifier"])
def test_one_finite_score_per_unit_and_batch_mates_do_not_matter(
    family: str, name: str, given: dict[str, Any]
) -> None:
    model, tolerance = model_of(family)
    # three plain words, which are padded beside more, of which some are several tokens
    passages = inputs(model, 3)[1:]
    together = explained(model, passages, name, given)
    for passage, many in zip(passages, together, strict=True):
        one = explained(model, passage, name, given)
        assert one.scores.shape == (len(passage.units),)
        assert np.isfinite(one.scores).all()
        size = max(np.abs(one.scores).max(), 1e-9)
        np.testing.assert_allclose(many.scores, one.scores, atol=10 * tolerance * size, rtol=0)
        assert many.target == one.target
        assert (one.cost.forwards, one.cost.backwards) == (many.cost.forwards, many.cost.backwards)


@every_case
def test_same_seed_same_numbers(name: str, given: dict[str, Any]) -> None:
    model, _ = model_of(HOME[name])
    text = "the food is great but not the prices"
    a, b, c = (explained(model, text, name, given, seed=s) for s in (1, 1, 2))
    assert np.array_equal(a.scores, b.scores)
    has_seed = "seed" in {f.name for f in fields(methods()[name].settings)}
    alike = np.array_equal(a.scores, c.scores)
    alike = alike and (a.evidence, a.detail) == (c.evidence, c.detail)
    # a search that has what it looked for may come to the same answer from other draws
    is_settled_search = bool((a.detail or {}).get("holds"))
    if not is_settled_search:
        assert alike != has_seed
    assert a.seed == 1


@every_case
def test_settings_are_frozen_and_survive_json(name: str, given: dict[str, Any]) -> None:
    model, _ = model_of(HOME[name])
    a = explained(model, "not bad", name, given)
    info = methods()[name]
    settings = info.settings(**a.settings)
    for field in fields(settings):
        with pytest.raises((FrozenInstanceError, AttributeError)):
            setattr(settings, field.name, None)
    assert json.loads(json.dumps(a.settings)) == a.settings
    assert whence.Attribution.from_dict(json.loads(json.dumps(a.to_dict()))) == a
    assert (a.method, a.version) == (name, info.version)


@cache
def half_in_training(family: str) -> Model:
    """One for all methods: each test sees what it changes itself.

    What the first look at a model leaves is seen by whichever test needs that look first.
    """
    model = build(family)
    next(m for m in model.hf.modules() if isinstance(m, torch.nn.Linear)).train()
    return model


@in_families(["bert", "gpt2", "t5", "vit"], ["bert", "t5"])
def test_the_model_is_left_as_found(family: str, name: str, given: dict[str, Any]) -> None:
    model = half_in_training(family)
    before = snapshot(model.hf)
    explained(model, inputs(model, 1)[0], name, given)
    assert_same(before, snapshot(model.hf))


READINGS = ("logit", "margin", "log-probability", "probability")


def with_readings() -> list[Any]:
    """A method's defaults under every reading, each of its choices under one, in turns.

    The target is resolved before the method runs, so no choice meets a reading on its own.
    """
    cases: list[Any] = []
    turns = cycle(READINGS)
    for name, given in CASES:
        for read in (next(turns),) if given else READINGS:
            is_short = not given and read in ("logit", "margin")
            marks = () if is_short else (pytest.mark.slow,)
            label = "-".join((name, *map(str, given.values()), read))
            cases.append(pytest.param(name, given, read, marks=marks, id=label))
    return cases


@pytest.mark.parametrize(("name", "given", "read"), with_readings())
def test_every_reading_and_every_kind_of_target(
    name: str, given: dict[str, Any], read: Any
) -> None:
    model, _ = model_of(HOME[name])
    if name in CLOSED_FORMS and "probability" in read:
        with pytest.raises(TargetError, match=f"not of the {read}"):
            explained(model, "not bad prices", name, given, read=read)
        return
    for target, label, against in (
        (None, None, None),
        ("fair", "fair", None),
        (0, "bad", None),
        (("good", "bad"), "good", "bad"),
    ):
        a = explained(model, "not bad prices", name, given, target=target, read=read)
        assert a.target.read == read
        assert a.target.index is not None
        assert label is None or a.target.label == label
        if against or read == "margin":
            assert a.target.against is not None
            assert against is None or a.target.against == against
        logits = torch.from_numpy(model.logits([model.encode("not bad prices")])[0])
        readings = {"log-probability": logits.log_softmax(-1), "probability": logits.softmax(-1)}
        values = readings.get(read, logits)
        expected = values[a.target.index]
        if a.target.against_index is not None:
            expected = expected - values[a.target.against_index]
        assert a.value == pytest.approx(float(expected), abs=1e-6)


@each_case(choices_in_short=False)
def test_short_texts_and_texts_at_the_limit(name: str, given: dict[str, Any]) -> None:
    model, _ = model_of(HOME[name])
    assert len(explained(model, "great", name, given).scores) == 1
    full = "the " * (model.limit - 2)
    assert len(explained(model, full, name, given).scores) == model.limit - 2
    with pytest.raises(InputError, match="positions end at 64"):
        explained(model, full + "the", name, given)
    with pytest.raises(InputError, match="empty"):
        explained(model, "", name, given)


@pytest.mark.parametrize("name", methods())
def test_every_method_declares_what_it_is(name: str) -> None:
    info = methods()[name]
    assert info.summary.endswith((".", ")."))
    assert info.version >= 1
    assert isinstance(info.settings().signed, bool)
    assert getattr(info.settings(), "merge", "sum") in ("sum", "mean", "max", "norm")


def test_compare_runs_one_trace_for_all_and_says_the_same() -> None:
    model, _ = model_of("bert")
    comparison = whence.compare(model, "not bad prices", evidence=False)
    assert set(comparison) == set(methods()) - set(CLOSED_FORMS)
    assert all(
        "single-layer attention classifier alone" in comparison.skipped[name]
        for name in CLOSED_FORMS
    )
    outside = {n for n in comparison if methods()[n].needs & Needs.GAME}
    for name in comparison:
        alone = whence.explain(model, "not bad prices", name, evidence=False)
        size = max(np.abs(alone.scores).max(), 1e-9)
        np.testing.assert_allclose(comparison[name].scores, alone.scores, atol=1e-5 * size, rtol=0)
    # one shared forward and backward, and what the methods of further passes add to it
    costs = {name: comparison[name].cost for name in comparison}
    paid = sum(costs[name].forwards for name in outside)
    assert paid == 2**3  # three words: every mask, once, whoever asked first
    further = sum(costs[name].forwards - 1 for name in costs if name not in outside)
    assert comparison.cost.forwards == 1 + further + paid
    shared = {name for name in costs if methods()[name].needs & GRADIENTS}
    further_backwards = sum(costs[name].backwards - (name in shared) for name in costs)
    assert comparison.cost.backwards == 1 + further_backwards
    # whoever asks for no pass of its own pays for the shared one alone
    runs_again = Needs.RERUNS | Needs.ATTENTION_GRAPH | Needs.GAME
    of_one_pass = {name for name in costs if not methods()[name].needs & runs_again}
    assert of_one_pass
    assert {name for name in costs if costs[name].forwards == 1} - outside == of_one_pass
