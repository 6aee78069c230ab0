"""An error becomes one line, and the line says whose mistake it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import whence
from tests import misbehaving
from tests.misbehaving import Plain, build
from whence.core.errors import ModelError, OurMistake
from whence.methods.gradient_l2 import GradientL2
from whence.methods.occlusion import Occlusion
from whence.models.passing import IT_IS_OURS, OUR_FOLDER, arose_in_whence, in_one_line

TEXT = "a good film"
OURS = {"OurMistake": OurMistake, "said": f"no luck. {IT_IS_OURS}"}


def of_ours(body: str, name: str = "broken", **names: Any) -> Callable[..., Any]:
    """A function whose code stands in a file of whence."""
    code = compile(
        f"def {name}(*arguments, **more):\n    {body}", OUR_FOLDER / "methods/made_up.py", "exec"
    )
    home: dict[str, Any] = names
    exec(code, home)
    return home[name]


@pytest.mark.parametrize(
    ("method", "kind"), [("gradient-l2", GradientL2), ("occlusion", Occlusion)]
)
def test_an_error_in_our_own_code_is_owned_up_to(
    method: str, kind: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kind, "__call__", of_ours("return {}['no such key']"))
    with pytest.raises(OurMistake, match="mistake of whence") as caught:
        whence.explain(build(Plain), TEXT, method, evidence=False)
    assert "KeyError: 'no such key'." in str(caught.value)
    assert str(caught.value).count("\n") == 0
    assert isinstance(caught.value.__cause__, KeyError)


def test_an_error_in_the_models_code_is_not_ours() -> None:
    with pytest.raises(ModelError) as caught:
        whence.explain(build(misbehaving.Raises), TEXT, "lime", evidence=False)
    assert not isinstance(caught.value, OurMistake)
    assert "mistake of whence" not in str(caught.value)


class MultipliesWrongly(Plain):
    def spoil(self, states: torch.Tensor, inputs: dict[str, Any]) -> torch.Tensor:
        return states @ states.new_ones(3, 3)


@pytest.mark.parametrize("method", ["lime", "gradient-l2"])
def test_what_torch_raises_in_a_pass_that_is_watched_is_the_models(method: str) -> None:
    # the first pass and the first trace run under modes of ours, whose frames are the innermost
    with pytest.raises(ModelError, match="cannot be run in this way") as caught:
        whence.explain(build(MultipliesWrongly), TEXT, method, evidence=False)
    assert not isinstance(caught.value, OurMistake)


def test_an_error_of_torch_is_not_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    # the model has no such layer, and torch says so: no code of ours is at fault
    model = build(Plain)
    monkeypatch.setattr(GradientL2, "__call__", lambda *_: model.hf.get_submodule("no.such"))
    with pytest.raises(ModelError) as caught:
        whence.explain(model, TEXT, "gradient-l2", evidence=False)
    assert not isinstance(caught.value, OurMistake)


def test_a_wrong_call_of_numpy_is_ours() -> None:
    average = of_ours("return np.average([1.0, 2.0], weights=[1.0])", np=np)
    with pytest.raises((TypeError, ValueError)) as caught:
        average()
    assert "numpy" in caught.traceback[-1].path.as_posix()  # or nothing is shown
    assert arose_in_whence(caught.value)


def test_a_mode_that_only_hands_on_what_the_model_calls_is_not_at_fault() -> None:
    matmul = of_ours("return a @ b", "__torch_function__", a=torch.ones(2, 3), b=torch.ones(2, 3))
    with pytest.raises(RuntimeError) as caught:
        matmul()
    assert not arose_in_whence(caught.value)


def test_a_method_of_the_users_own_that_calls_us_wrongly_is_not_our_mistake() -> None:
    class Own:
        pass

    with pytest.raises(ModelError) as caught, in_one_line(build(Plain).hf, "own", Own()):
        of_ours("return {}['no such key']")()
    assert not isinstance(caught.value, OurMistake)


def test_an_error_in_a_hook_of_ours_is_not_said_to_be_the_models() -> None:
    model = build(Plain)
    model.hf.classifier.register_forward_hook(of_ours("raise AttributeError('no such thing')"))
    with pytest.raises(OurMistake, match="Plain cannot be run"):
        model.logits([model.encode(TEXT)])


def test_a_comparison_leaves_the_method_out_and_the_mistake_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(GradientL2, "__call__", of_ours("return {}['no such key']"))
    caplog.set_level("DEBUG", logger="whence")
    compared = whence.compare(build(Plain), TEXT, evidence=False, budget=100)
    assert IT_IS_OURS in compared.skipped["gradient-l2"]
    where, left_out = [one for one in caplog.records if one.name == "whence"]
    assert where.exc_info
    assert where.levelname == "DEBUG"
    assert "gradient-l2 is left out" in left_out.getMessage()
    assert left_out.levelname == "ERROR"


def test_a_mistake_of_ours_in_the_guard_is_no_property_of_the_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for home in ("guard", "first_look"):
        broken = of_ours("raise OurMistake(said)", **OURS)
        monkeypatch.setattr(f"whence.trace.{home}.trace", broken)
    with pytest.raises(OurMistake, match="still work"):
        whence.explain(build(Plain), TEXT, "gradient-l2", evidence=False)
