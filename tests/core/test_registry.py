"""Authors get errors too: each mistake in a method or a metric is said in one line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import jaxtyping
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import whence
from whence.core.errors import AuthorError, SettingsError, UnknownName
from whence.core.registry import (
    METHODS,
    METRICS,
    Needs,
    as_scores,
    as_unit_scores,
    as_values,
    find_method,
    find_metric,
    method,
    methods,
    metric,
    metrics,
    sentence_of,
    setting,
    settings_of,
)
from whence.core.registry.declared import check_method
from whence.core.registry.names import bare
from whence.core.scores import Scores
from whence.explaining.listing import one_method, one_metric
from whence.models.model import Model
from whence.views.catalogue import method_view
from whence.views.terminal import to_text


@pytest.fixture(autouse=True)
def _unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """As an author meets it: outside tests nothing checks annotations but our own refusals."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@pytest.fixture(autouse=True)
def _catalogues_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(METHODS, "entries", dict(methods()))
    monkeypatch.setattr(METRICS, "entries", dict(metrics()))


def method_with(**changes: Any) -> type:
    """A class that is a good method of a trace, but for the changes; None takes a name away."""

    def call(self: Any, trace: Any) -> Any:
        return trace.embeddings.norm(dim=-1)

    body: dict[str, Any] = {
        "__doc__": "The norm of each embedding.",
        "__annotations__": {"scale": float},
        "scale": 1.0,
        "needs": Needs.EMBEDDINGS,
        "signed": False,
        "__call__": call,
    }
    return _class(body, changes)


def metric_with(**changes: Any) -> type:
    """A class that is a good metric, but for the changes; None takes a name away."""
    body: dict[str, Any] = {
        "__doc__": "The same number for every ranking.",
        "needs": Needs.GAME | Needs.RANKINGS,
        "better": "higher",
        "range": (0.0, 1.0),
        "chance": 0.5,
        "passes": lambda self, units: 0,
        "__call__": lambda self, game, rankings: np.full(len(rankings), 0.5),
    }
    return _class(body, changes)


def _class(body: dict[str, Any], changes: dict[str, Any]) -> type:
    changed = body | changes
    changed = {name: value for name, value in changed.items() if value is not None}
    return type("Mine", (), {"__module__": __name__, **changed})


def frozen(settings: type) -> type:
    return dataclass(frozen=True)(settings)


def register_method(
    settings: Any, name: Any = "mine", version: Any = 1, cites: Any = "", aliases: Any = ()
) -> None:
    method(name, version=version, cites=cites, aliases=aliases)(settings)


def register_metric(settings: Any, name: Any = "mine", version: Any = 1, cites: Any = "") -> None:
    metric(name, version=version, cites=cites)(settings)


def test_the_good_ones_are_taken() -> None:
    register_method(frozen(method_with()))
    register_metric(frozen(metric_with()))
    assert find_method("mine").summary == "The norm of each embedding."
    assert find_metric("mine").settings().better == "higher"


def _refuse(self: Any) -> None:
    raise ValueError("scale is 2")


MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "no class": (
        lambda: register_method(lambda trace: trace),
        "it decorates a class of settings, not a function.",
    ),
    "no dataclass": (
        lambda: register_method(method_with()),
        "it is no dataclass. Put @dataclass(frozen=True, slots=True) between @method and the class",
    ),
    "not frozen": (
        lambda: register_method(dataclass(method_with())),
        "its settings can change. Write @dataclass(frozen=True, slots=True).",
    ),
    "a field without type": (
        lambda: register_method(frozen(method_with(samples=10))),
        "samples has no type, so it is no setting. Write samples: int = 10.",
    ),
    "a field without default": (
        lambda: register_method(frozen(method_with(scale=None))),
        "the setting scale has no default.",
    ),
    "a type that nobody knows": (
        lambda: register_method(frozen(method_with(__annotations__={"scale": "Unheard"}))),
        "the types of its settings cannot be read: name 'Unheard' is not defined.",
    ),
    "no needs": (
        lambda: register_method(frozen(method_with(needs=None))),
        "it declares no needs: say what it wants, e.g. needs: ClassVar = Needs.EMBEDDINGS.",
    ),
    "needs that are no Needs": (
        lambda: register_method(frozen(method_with(needs="attention"))),
        "needs is one or more of Needs of a method, not 'attention'.",
    ),
    "needs as a setting": (
        lambda: register_method(
            frozen(method_with(__annotations__={"scale": float, "needs": Needs}))
        ),
        "needs would be a setting. Write needs: ClassVar[…] = …",
    ),
    "no signed": (
        lambda: register_method(frozen(method_with(signed=None))),
        "it declares no signed: may a score speak against the target? signed: ClassVar = True.",
    ),
    "signed that is no bool": (
        lambda: register_method(frozen(method_with(signed="yes"))),
        "signed is True or False, not 'yes'.",
    ),
    "no merge rule": (
        lambda: register_method(frozen(method_with(merge="median"))),
        "merge is one of sum, mean, max, norm, not 'median'.",
    ),
    "no docstring": (
        lambda: register_method(frozen(method_with(__doc__=None))),
        "it has no docstring, and the first line is what lists show of it.",
    ),
    "no full stop": (
        lambda: register_method(frozen(method_with(__doc__="The norm"))),
        "the first line of its docstring is a sentence, and ends with a full stop: 'The norm'.",
    ),
    "a taken name": (
        lambda: register_method(frozen(method_with()), name="lime"),
        "the name is taken by whence.methods.lime.Lime. Take another name.",
    ),
    "a bad name": (
        lambda: register_method(frozen(method_with()), name="My_Method"),
        "a name is lower-case words with hyphens, e.g. 'gradient-x-input'.",
    ),
    "no version": (
        lambda: check_method("mine", "1.0", "", frozen(method_with())),
        "version is a whole number from 1 on, not '1.0'.",
    ),
    "version nought": (
        lambda: register_method(frozen(method_with()), version=0),
        "version is a whole number from 1 on, not 0.",
    ),
    "no key of a paper": (
        lambda: check_method("mine", 1, None, frozen(method_with())),
        "cites is the key of a paper, or '', not None.",
    ),
    "aliases that are no names": (
        lambda: register_method(frozen(method_with()), aliases=("My Method",)),
        "aliases are lower-case words with hyphens, e.g. aliases=('ig',), not ('My Method',).",
    ),
    "one alias without a comma": (
        lambda: register_method(frozen(method_with()), aliases="ours"),
        "aliases are lower-case words with hyphens, e.g. aliases=('ig',), not 'ours'.",
    ),
    "an alias of another method": (
        lambda: register_method(frozen(method_with()), aliases=("saliency",)),
        "the alias 'saliency' leads to 'gradient-l2' already. Leave it out.",
    ),
    "an alias that is a name": (
        lambda: register_method(frozen(method_with()), aliases=("smoothgrad",)),
        "the alias 'smoothgrad' leads to 'smooth-grad' already. Leave it out.",
    ),
    "an empty sentence": (
        lambda: register_method(frozen(method_with(scale=setting(1.0, "")))),
        "the setting scale has no sentence that ends with a full stop. "
        'Write scale: … = setting(1.0, "What it does.").',
    ),
    "a sentence without a full stop": (
        lambda: register_method(frozen(method_with(scale=setting(1.0, "how large")))),
        "the setting scale has no sentence that ends with a full stop.",
    ),
    "a method of ours without a sentence": (
        lambda: register_method(frozen(method_with(__module__="whence.methods.mine"))),
        "the setting scale has no sentence that ends with a full stop.",
    ),
    "a game without removal": (
        lambda: register_method(frozen(method_with(needs=Needs.GAME))),
        'a method of a game has the setting removal first: removal: str = "auto".',
    ),
    "a game and a trace": (
        lambda: register_method(frozen(method_with(needs=Needs.GAME | Needs.ATTENTION))),
        "a method of a game has no trace: needs is Needs.GAME alone.",
    ),
    "no call": (
        lambda: register_method(frozen(method_with(__call__=None))),
        "it cannot be called: it has no __call__.",
    ),
    "a call of two": (
        lambda: register_method(frozen(method_with(__call__=lambda self, trace, game: 0))),
        "__call__ takes self and the trace or the game, and no more; this one takes trace, game.",
    ),
    "defaults that it refuses": (
        lambda: register_method(frozen(method_with(__post_init__=_refuse))),
        "its own defaults are refused: scale is 2.",
    ),
    "metric: not frozen": (
        lambda: register_metric(dataclass(metric_with())),
        "its settings can change.",
    ),
    "metric: a taken name": (
        lambda: register_metric(frozen(metric_with()), name="deletion"),
        "the name is taken by whence.metrics.deletion.Deletion.",
    ),
    "metric: no needs": (
        lambda: register_metric(frozen(metric_with(needs=Needs.GAME))),
        "needs is Needs.GAME or Needs.GOLD with Needs.RANKINGS or Needs.SCORES, or ",
    ),
    "metric: a call that does not fit its needs": (
        lambda: register_metric(frozen(metric_with(needs=Needs.SCORES))),
        "__call__ takes self and the scores, and no more; this one takes game, rankings.",
    ),
    "metric: nothing is made again": (
        lambda: register_metric(frozen(metric_with(needs=Needs.AGAIN))),
        "it has no again(self): a tuple of Again",
    ),
    "metric: no better": (
        lambda: register_metric(frozen(metric_with(better=None))),
        'it declares no better: which values are good? better: ClassVar = "higher" or "lower".',
    ),
    "metric: better than what": (
        lambda: register_metric(frozen(metric_with(better="more"))),
        'better is "higher" or "lower", not \'more\'.',
    ),
    "metric: no range": (
        lambda: register_metric(frozen(metric_with(range=None))),
        "it declares no range: between what do values lie? range: ClassVar = (0.0, 1.0).",
    ),
    "metric: a range upside down": (
        lambda: register_metric(frozen(metric_with(range=(1.0, 0.0)))),
        "range is the lowest and the highest value, not (1.0, 0.0).",
    ),
    "metric: no chance": (
        lambda: register_metric(frozen(metric_with(chance=None))),
        "it declares no chance: what do random rankings get? chance: ClassVar = 0.5.",
    ),
    "metric: chance out of range": (
        lambda: register_metric(frozen(metric_with(chance=2.0))),
        "chance is a number within range (0.0 to 1.0), not 2.0.",
    ),
    "metric: no passes": (
        lambda: register_metric(frozen(metric_with(passes=None))),
        "it has no passes(self, units): the most masks that one ranking of so many units asks.",
    ),
    "metric: a call of one": (
        lambda: register_metric(frozen(metric_with(__call__=lambda self, game: 0))),
        "__call__ takes self and the game and the rankings, and no more; this one takes game.",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_said_in_one_line(mistake: str) -> None:
    make, line = MISTAKES[mistake]
    known = set(methods()), set(metrics())
    with pytest.raises(AuthorError) as raised:
        make()
    message = str(raised.value)
    assert line in message
    assert message.startswith(("@method(", "@metric("))
    assert "\n" not in message
    assert isinstance(raised.value, TypeError)
    assert (set(methods()), set(metrics())) == known


def test_the_same_definition_again_replaces_itself() -> None:
    """A cell of a notebook that is run twice; another class of that name is refused."""
    register_method(frozen(method_with()))
    register_method(frozen(method_with(__doc__="The norm, explained better.")))
    assert find_method("mine").summary == "The norm, explained better."
    elsewhere = frozen(method_with(__module__="elsewhere"))
    with pytest.raises(AuthorError, match=r"taken by tests\.core\.test_registry\.Mine"):
        register_method(elsewhere)


def test_names_are_found_however_they_are_written() -> None:
    written = {
        "LIME": "lime",
        "integrated_gradients": "integrated-gradients",
        "IntegratedGradients": "integrated-gradients",
        "Gradient x Input": "gradient-x-input",
        "SmoothGrad": "smooth-grad",
        "IG": "integrated-gradients",
        "saliency": "gradient-l2",
        "SHAP": "shapley",
        "lrp": "attn-lrp",
        "attention": "attention-mean",
        "leave_one_out": "occlusion",
    }
    assert {name: find_method(name).name for name in written} == written
    assert find_metric("Deletion_Curve").name == "deletion"


def test_every_alias_leads_to_its_method_and_no_two_names_are_alike() -> None:
    for catalogue in (METHODS, METRICS):
        answers = []
        for info in catalogue.all().values():
            names = (info.name, *info.aliases)
            assert {catalogue.find(name).name for name in names} == {info.name}
            answers += [bare(name) for name in names]
        assert len(answers) == len(set(answers))


def test_a_name_comes_before_an_alias_of_that_name() -> None:
    register_method(frozen(method_with()), name="saliency")
    assert find_method("saliency").name == "saliency"
    assert find_method("vanilla-gradient").name == "gradient-l2"


@given(st.sampled_from(sorted(methods())), st.data())
def test_a_slip_of_one_letter_is_guessed(name: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(name) - 1))
    mistyped = name[:place] + "q" + name[place:]
    with pytest.raises(UnknownName, match="Did you mean") as raised:
        find_method(mistyped)
    assert f"Did you mean {name!r}" in str(raised.value)


def test_a_mistyped_alias_is_guessed_with_its_method() -> None:
    with pytest.raises(UnknownName, match=r"Did you mean 'gradient-l2' \(also called 'saliency'\)"):
        find_method("salience")


def test_a_method_of_others_needs_no_sentences() -> None:
    register_method(frozen(method_with()))
    assert [sentence_of(field) for field in fields(find_method("mine").settings)] == [""]
    assert settings_of(find_method("mine"), {}).scale == 1.0
    listed = one_method("mine").to_dict()
    assert (listed["price"], listed["misleads"], listed["page"]) == ("", "", "")
    assert "Its author has not said what it does." in to_text(lambda _: method_view(listed))


def test_ours_say_all_that_a_reader_asks() -> None:
    for info in methods().values():
        listed = one_method(info.name)
        assert all((listed.price, listed.misleads, listed.group, listed.page)), info.name
        assert all(setting.about for setting in listed.settings), info.name
    for info in metrics().values():
        listed_metric = one_metric(info.name)
        assert all((listed_metric.misleads, listed_metric.page)), info.name
        assert all(setting.about for setting in listed_metric.settings), info.name


def test_a_property_may_declare() -> None:
    signed = property(lambda self: self.scale > 1)
    register_method(frozen(method_with(signed=signed, merge=property(lambda self: "max"))))
    assert settings_of(find_method("mine"), {}).signed is False
    with pytest.raises(AuthorError, match="merge is one of"):
        register_method(frozen(method_with(merge=property(lambda self: "median"))), name="other")


def test_a_type_that_no_text_can_be_read_as() -> None:
    register_method(frozen(method_with(__annotations__={"scale": np.ndarray})))
    with pytest.raises(AuthorError, match="a setting has a type that no text can be read as"):
        settings_of(find_method("mine"), {})


def test_settings_of_a_metric_are_checked_like_those_of_a_method() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'deletion'"):
        find_metric("deletions")
    with pytest.raises(SettingsError, match="metric 'deletion': no setting named 'step'"):
        settings_of(find_metric("deletion"), {"step": 3})
    with pytest.raises(SettingsError, match="metric 'deletion': steps is at least 1, not 0"):
        settings_of(find_metric("deletion"), {"steps": "0"})


# What is returned


@pytest.fixture(scope="module")
def sentiment() -> Model:
    return whence.load("sentiment")


RETURNED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "nothing": (
        lambda trace: None,
        "method 'mine' returned None, not an array of the shape (asks, tokens) or a list of Scores",
    ),
    "a list of floats": (
        lambda trace: [0.5] * 6,
        "method 'mine' returned a list of float, not an array of the shape (asks, tokens)",
    ),
    "one score for each dimension": (
        lambda trace: trace.embeddings.norm(dim=1),
        "not (1, 6): (asks, tokens), one score for each token of each ask.",
    ),
    "one row too many": (
        lambda trace: torch.zeros(2, 6),
        "method 'mine' returned the shape (2, 6), not (1, 6)",
    ),
    "one passage too many": (
        lambda trace: [Scores(units=np.zeros(4))] * 2,
        "method 'mine' returned 2 Scores for 1 asks",
    ),
    "tokens for units": (
        lambda trace: [Scores(units=np.zeros(6))],
        "method 'mine' returned units of the shape (6,) for 4 units: (4,) is wanted.",
    ),
    "units for tokens": (
        lambda trace: [Scores(tokens=np.zeros(4))],
        "returned token scores of the shape (4,) for a text of 6 tokens: (6,) is wanted.",
    ),
    "an error too few": (
        lambda trace: [Scores(units=np.zeros(4), standard_error=np.zeros(3))],
        "method 'mine' returned standard_error of the shape (3,) for 4 units",
    ),
    "not a number": (
        lambda trace: torch.full((1, 6), float("nan")),
        "method 'mine' returned a score that is not finite",
    ),
    "infinite": (
        lambda trace: [Scores(units=np.array([0.0, np.inf, 0.0, 0.0]))],
        "method 'mine' returned a score that is not finite: inf for 'bad'.",
    ),
}


@pytest.mark.parametrize("mistake", RETURNED)
def test_a_wrong_answer_of_a_trace(sentiment: Model, mistake: str) -> None:
    answer, line = RETURNED[mistake]
    register_method(frozen(method_with(__call__=lambda self, trace: answer(trace))))
    with pytest.raises(AuthorError) as raised:
        whence.explain(sentiment, "not bad at all", "mine")
    assert line in str(raised.value)


def test_nan_on_special_tokens_is_no_score(sentiment: Model) -> None:
    passage = sentiment.encode("not bad at all")
    tokens = np.where(passage.unit_of >= 0, 1.0, np.nan)
    (scores,) = as_scores(tokens[None], "mine", [passage])
    assert scores.on_units(passage).units == pytest.approx([1, 1, 1, 1])


GAME_ANSWERS: dict[str, tuple[Any, str]] = {
    "nothing": (None, "method 'mine' returned None, not Scores(units=…) with one score for each"),
    "a list of floats": ([0.1, 0.2], "returned a list of float, not Scores(units=…)"),
    "scores of tokens": (
        Scores(tokens=np.zeros(4)),
        "method 'mine' returned scores of tokens, and a game knows units alone",
    ),
    "one unit too few": (
        Scores(units=np.zeros(3)),
        "method 'mine' returned units of the shape (3,) for 4 units: (4,) is wanted.",
    ),
    "not finite": (
        Scores(units=np.array([0, 0, 0, np.nan])),
        "method 'mine' returned a score that is not finite: nan for 'all'.",
    ),
}


@pytest.mark.parametrize("mistake", GAME_ANSWERS)
def test_a_wrong_answer_of_a_game(sentiment: Model, mistake: str) -> None:
    answer, line = GAME_ANSWERS[mistake]
    with pytest.raises(AuthorError) as raised:
        as_unit_scores(answer, "mine", ("not", "bad", "at", "all"))
    assert line in str(raised.value)


def test_the_run_checks_what_a_method_of_a_game_returns(sentiment: Model) -> None:
    @method("mine", version=1, cites="")
    @dataclass(frozen=True)
    class Mine:
        """Nothing at all."""

        removal: str = "auto"
        needs: ClassVar[Needs] = Needs.GAME
        signed: ClassVar[bool] = True

        def __call__(self, game: Any) -> Any:
            return game(np.eye(game.size, dtype=bool))

    with pytest.raises(AuthorError, match=r"returned a ndarray, not Scores\(units=…\)"):
        whence.explain(sentiment, "not bad at all", "mine")


METRIC_ANSWERS: dict[str, tuple[Any, str]] = {
    "a number": (0.5, "metric 'mine' returned a float, not a numpy array of the shape (3,)"),
    "one for each unit": (np.zeros(5), "metric 'mine' returned the shape (5,), not (3,)"),
    "not finite": (np.full(3, np.nan), "metric 'mine' returned a number that is not finite"),
}


@pytest.mark.parametrize("mistake", METRIC_ANSWERS)
def test_a_wrong_answer_of_a_metric(mistake: str) -> None:
    answer, line = METRIC_ANSWERS[mistake]
    with pytest.raises(AuthorError) as raised:
        as_values(answer, "mine", 3)
    assert line in str(raised.value)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"passes": lambda _self, _units: 12}, r"gives Passes\(forwards=…, backwards=…\).*not 12"),
        ({"passes": lambda _self: 12}, r"passes\(self, units\) cannot be called"),
        ({"lean": lambda _self, _units: {"sample": 3}}, r"lean\(self, units\) gives settings"),
    ],
)
def test_what_a_method_says_of_its_cost_is_checked(changes: dict[str, Any], fault: str) -> None:
    with pytest.raises(AuthorError, match=fault):
        method("new", version=1, cites="")(dataclass(frozen=True)(method_with(**changes)))
