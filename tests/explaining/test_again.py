"""Explanations made again: once for all metrics, on the target of the first, every pass counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

import whence
from tests.families import build
from whence.core.errors import AuthorError
from whence.core.registry import methods
from whence.core.request import Request, wishes_for
from whence.explaining import again as making
from whence.explaining.again import made_again, measured_again
from whence.metrics.again import Again, Explanation, Missing
from whence.metrics.consistency import Consistency
from whence.models.changes import NoisyEmbeddings, Randomised
from whence.models.exchanged import OneWordOther

TEXTS = ("the food is great but not the prices", "I didn't like it, it's dull", "not bad prices")


def firsts(model: whence.Model, names: dict[str, Any], **more: Any) -> tuple[list[Any], Request]:
    by_text = []
    for text in TEXTS:
        by_text.append(whence.compare(model, text, names, evidence=False, **more).attributions)
    return by_text, Request(wishes=wishes_for(names), evidence=False, **more)


def test_the_target_is_the_one_of_the_first_time() -> None:
    """A model that has forgotten all predicts something else; the enemy explains that."""
    model = build("bert", seed=1)
    first, request = firsts(model, {"occlusion": {}})
    change = Randomised(1.0, seed=0)
    others, _ = made_again(model, first, Again(model=change), request)
    changed, _ = making.changed_model(model, change)
    labels_differ = []
    for by_method, other in zip(first, others, strict=True):
        one = by_method["occlusion"]
        again = other["occlusion"]
        assert isinstance(again, Explanation)
        logits = changed.logits([one.passage])[0]
        assert again.value == pytest.approx(logits[one.target.index], rel=1e-5)
        labels_differ.append(int(logits.argmax()) != one.target.index)
    assert any(labels_differ)  # or the test would say nothing


def test_the_same_time_again_is_the_same_explanation() -> None:
    """Settings as they were run, and the same seed: on a copy with next to no noise, too."""
    model = build("bert")
    names = {"lime": {"samples": 70}, "shapley": {"samples": 150}, "gradient-x-input": {}}
    first, request = firsts(model, names, seed=5)
    others, _ = made_again(model, first, Again(model=NoisyEmbeddings(1e-9)), request)
    for by_method, other in zip(first, others, strict=True):
        for name in names:
            again = other[name]
            assert isinstance(again, Explanation)
            scale = np.abs(by_method[name].scores).max()
            np.testing.assert_allclose(again.scores, by_method[name].scores, atol=1e-4 * scale)


def test_another_seed_draws_again_and_is_the_run_under_that_seed() -> None:
    model = build("bert")
    names = {"lime": {"samples": 70}, "random": {}}
    first, request = firsts(model, names, seed=5)
    under_seven, _ = firsts(model, names, seed=7)
    others, _ = made_again(model, first, Again(seed=2), request)
    for by_method, expected, other in zip(first, under_seven, others, strict=True):
        for name in names:
            again = other[name]
            assert isinstance(again, Explanation)
            np.testing.assert_allclose(again.scores, expected[name].scores, atol=1e-6)
        assert not np.allclose(other["random"].scores, by_method["random"].scores)  # type: ignore[union-attr]


@pytest.mark.parametrize("name", sorted(methods()))
def test_a_method_without_a_seed_draws_nothing(name: str) -> None:
    """It is not run again under another seed; this is what that rests on."""
    model = whence.load("single-layer") if name == "lime-exact" else build("bert")
    settings = methods()[name].settings
    if "seed" in settings.__dataclass_fields__:
        pytest.skip("it has a seed")
    try:
        one, other = (
            whence.explain(model, TEXTS[2], name, evidence=False, seed=seed) for seed in (1, 2)
        )
    except whence.Unsupported as problem:
        pytest.skip(str(problem))
    assert (one.scores == other.scores).all()


@dataclass(frozen=True)
class Asks:
    """A metric that is nothing but its wishes."""

    wishes: tuple[Again, ...]
    answer: float = 1.0
    needs: ClassVar[Any] = None
    better: ClassVar[Any] = "higher"
    range: ClassVar[Any] = (0.0, 1.0)
    chance: ClassVar[float] = 0.0

    def again(self) -> tuple[Again, ...]:
        return self.wishes

    def __call__(self, first: Explanation, others: Sequence[Any]) -> float:
        assert len(others) == len(self.wishes)
        return self.answer


def test_what_several_metrics_ask_for_is_done_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build("bert")
    first, request = firsts(model, {"occlusion": {}, "random": {}})
    asked = []
    run = making.run

    def counted(model: Any, texts: Any, request: Any) -> Any:
        asked.append((request.targets[0].index, len(texts), len(request.wishes)))
        return run(model, texts, request)

    monkeypatch.setattr(making, "run", counted)
    noise, more = Again(model=NoisyEmbeddings(0.1)), Again(model=NoisyEmbeddings(0.2))
    metrics = {"one": Asks((noise, more)), "other": Asks((more, noise)), "third": Asks((noise,))}
    measured_again(model, first, metrics, request)
    targets = {by_method["occlusion"].target.index for by_method in first}
    assert len(asked) == 2 * len(targets)  # one run for each time and target, of all methods
    assert sum(texts for _, texts, _ in asked) == 2 * len(TEXTS)
    assert {wishes for _, _, wishes in asked} == {2}


def test_every_pass_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted once more at the model itself. Of occlusion: one pass a unit, and the whole text."""
    model = build("bert")
    first, request = firsts(model, {"occlusion": {}})
    seen = 0

    def count(module: Any, args: Any, kwargs: Any) -> None:
        nonlocal seen
        ids = kwargs.get("input_ids", args[0] if args else None)
        seen += len(ids)

    change = NoisyEmbeddings(0.1)
    changed, _ = making.changed_model(model, change)
    hooks = [hf.register_forward_pre_hook(count, with_kwargs=True) for hf in (model.hf, changed.hf)]
    metrics = {"it": Asks((Again(model=change), Again(text=OneWordOther())))}
    cost = measured_again(model, first, metrics, request).cost
    for hook in hooks:
        hook.remove()
    assert cost.forwards == seen
    assert cost.forwards >= sum(len(one["occlusion"].scores) + 1 for one in first) * 2


def test_what_cannot_be_made_again_has_its_reason() -> None:
    """A picture has no table of tokens; scores from elsewhere have no method here."""
    model = build("bert")
    (by_method, *_), request = firsts(model, {"occlusion": {}})
    a = by_method["occlusion"]
    foreign = whence.Attribution.from_scores(
        model, TEXTS[0], a.scores, method="by hand", target=a.target.label
    )
    (others,), _ = made_again(model, [{"by hand": foreign}], Again(seed=1), request)
    assert others["by hand"] == Missing("by hand was not made here, so it cannot be made again.")
    m = measured_again(model, [{"by hand": foreign}], {"it": Consistency()}, request)
    result = m.of_texts[0]["by hand"]["it"]
    assert result.value is None
    assert result.reason == "by hand was not made here, so it cannot be made again."


def test_a_number_that_is_not_finite_is_the_authors_mistake() -> None:
    model = build("bert")
    first, request = firsts(model, {"random": {}})
    with pytest.raises(AuthorError, match="raise NotMeasured with the reason"):
        measured_again(model, first, {"it": Asks((Again(seed=1),), float("nan"))}, request)
