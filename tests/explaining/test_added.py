"""Results from elsewhere beside our own: the same text, the same target, the same control."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import whence
from tests.families import build
from whence.cli.main import main
from whence.core.attribution import Attribution
from whence.core.attributions import Attributions
from whence.core.comparison import Comparison
from whence.core.errors import InputError, WhenceError
from whence.core.target import Target
from whence.models.model import Model

TEXT = "the food is great but not cheap"
SCORES = [0.0, 0.1, 0.0, 0.9, -0.2, -0.3, -0.1]


@pytest.fixture(scope="module")
def bert() -> Model:
    return build("bert")


@pytest.fixture(scope="module")
def by_hand(bert: Model) -> Attribution:
    return imported(bert)


def imported(model: Model, text: str = TEXT, **more: Any) -> Attribution:
    options = {"method": "by hand", "target": "good", **more}
    return Attribution.from_scores(model, text, SCORES[: len(text.split())], **options)


def test_it_is_judged_as_our_own_scores_would_be(bert: Model) -> None:
    """The same scores, as ours and as another tool's, get the same evidence beside one control."""
    ours = whence.explain(bert, TEXT, "occlusion", target="good")
    theirs = imported(bert, method="theirs")
    theirs = replace(theirs, scores=ours.scores)
    compared = whence.compare(bert, TEXT, ["occlusion", theirs], target="good")
    assert list(compared) == ["occlusion", "theirs"]
    own, other = compared["occlusion"].evidence, compared["theirs"].evidence
    assert own is not None
    assert other is not None
    assert own.p == other.p
    for trial in own.trials:
        twin = other.trial(trial.removal)
        assert twin is not None
        # the enemy draws rankings of its own for what was added
        assert (twin.statistic, twin.random_low) == (trial.statistic, trial.random_low)
        assert twin.forwards == 0  # the curves of these scores were paid for already


def test_its_cost_is_its_own_and_the_evidence_is_counted(bert: Model, by_hand: Attribution) -> None:
    expensive = replace(by_hand, cost=whence.Cost(forwards=10**6, peak_bytes=10**12))
    alone = whence.compare(bert, TEXT, [expensive])
    assert alone["by hand"].cost == expensive.cost
    evidence = alone["by hand"].evidence
    assert evidence is not None
    # one pass finds the target; each of the two games pays one more for the whole text
    assert alone.cost.forwards == evidence.forwards + 3
    assert alone.cost.peak_bytes is None
    silent = whence.compare(bert, TEXT, [expensive], evidence=False)
    assert silent.cost.forwards == 1
    assert silent["by hand"].evidence is None


def test_its_target_is_taken_where_none_is_named(bert: Model) -> None:
    theirs = imported(bert, target=("good", "bad"), read="probability")
    compared = whence.compare(bert, TEXT, ["gradient-l2", theirs], evidence=False)
    assert compared["gradient-l2"].target == theirs.target
    # the enemy takes theirs over what was asked for
    with pytest.raises(InputError, match=r"explains the probability of good rather than bad, and"):
        whence.compare(bert, TEXT, ["gradient-l2", theirs], target="fair", evidence=False)
    with pytest.raises(InputError, match="explains the probability of good rather than bad"):
        whence.compare(bert, TEXT, ["gradient-l2", theirs], read="logit", evidence=False)


def test_names_that_are_taken_get_a_number(bert: Model, by_hand: Attribution) -> None:
    steps = whence.explain(bert, TEXT, "integrated-gradients", target="good", baseline="zero")
    results = [{"integrated-gradients": {"baseline": "mask"}}, steps, steps, by_hand]
    compared = whence.compare(bert, TEXT, results, evidence=False)
    numbered = ["integrated-gradients (2)", "integrated-gradients (3)"]
    assert list(compared) == ["integrated-gradients", *numbered, "by hand"]
    assert [a.method for a in compared.attributions.values()] == list(compared)
    assert compared[numbered[0]].settings["baseline"] == "zero"
    assert compared["integrated-gradients"].settings["baseline"] == "mask"
    everything = whence.compare(bert, TEXT, ["random", compared], evidence=False)
    assert list(everything) == ["random", *compared]


OTHER_TEXT = TEXT.replace("cheap", "bad")
MISTAKES: dict[str, tuple[Callable[[Model], Any], str]] = {
    "text": (lambda m: imported(m, OTHER_TEXT), r"another text. It reads .*not bad.*not cheap"),
    "end of a long text": (
        lambda m: imported(m, TEXT + " " + "so " * 30 + "bad", units=[0, 3, 9, 12, 18, 22, 26]),
        "another text",
    ),
    "units": (
        lambda m: whence.explain(m, TEXT, "gradient-l2", target="good", units="sentence"),
        r"scores 1 units of kind 'sentence', and here are 7 of kind 'word'\. Use the same units=",
    ),
    "target": (
        lambda m: imported(m, target="bad"),
        r"logit of bad, and this comparison explains the logit of good\. Name one target",
    ),
    "reading": (lambda m: imported(m, read="probability"), "explains the probability of good"),
    "model": (
        lambda m: imported(build("bert", seed=1)),
        "of the model .*, whose weights are not those of",
    ),
    "no result": (lambda m: 3.5, "not the float 3.5"),
    "asked for twice": (
        lambda m: {"gradient-l2": {"form": "lecture"}},
        r"asked for twice, with different settings.*whence.explain\(",
    ),
}


@pytest.mark.parametrize(("other", "message"), MISTAKES.values(), ids=list(MISTAKES))
def test_what_differs_is_said(bert: Model, other: Callable[[Model], Any], message: str) -> None:
    with pytest.raises(WhenceError, match=message):
        whence.compare(bert, TEXT, ["gradient-l2", other(bert)], target="good", evidence=False)


def test_nothing_to_compare_is_an_error(bert: Model) -> None:
    with pytest.raises(InputError, match="at least one method"):
        whence.compare(bert, TEXT, [])


def test_another_reply_is_said() -> None:
    model = build("t5")
    first, second = (model.encode("the food is great", reply=r) for r in ("not bad", "great"))
    theirs = whence.explain(model, first, "gradient-l2", target=5)
    with pytest.raises(InputError, match=r"reply 'not bad', and here the reply is 'great'"):
        whence.compare(model, second, ["random", theirs], evidence=False)


def test_another_place_is_said() -> None:
    model = build("bert-mlm")
    theirs = whence.explain(model, TEXT, "gradient-l2", target=Target(9, at=2))
    asked = Target(9, at=2)
    compared = whence.compare(model, TEXT, ["random", theirs], target=asked, evidence=False)
    assert list(compared) == ["random", "gradient-l2"]
    with pytest.raises(InputError, match="about another word"):
        whence.compare(model, TEXT, [theirs], target=Target(9, at=3), evidence=False)


def test_a_long_text_in_windows_takes_them_too_also_alone(bert: Model) -> None:
    text = "the food is great " * 40
    options = {"overflow": "window", "evidence": False}
    whole = whence.explain(bert, text, "gradient-l2", target="good", **options)
    alone = whence.compare(bert, text, [whole], **options)
    assert list(alone) == ["gradient-l2"]
    assert alone.first.windows == whole.windows


# ------------------------------------------------------------------------------ judge


def test_judge_gives_back_what_it_took(bert: Model, by_hand: Attribution) -> None:
    plain = whence.compare(bert, TEXT, ["gradient-l2", by_hand], evidence=False)
    judged = whence.judge(bert, plain)
    assert isinstance(judged, Comparison)
    assert judged.skipped == plain.skipped
    whole = whence.compare(bert, TEXT, ["gradient-l2", by_hand])
    for name, attribution in judged.attributions.items():
        evidence, same = attribution.evidence, whole[name].evidence
        assert evidence is not None
        assert same is not None
        assert evidence.p == same.p
    assert judged.cost.forwards > plain.cost.forwards
    assert judged.cost.backwards == plain.cost.backwards

    targets: Any = ["good", "bad"]
    both = whence.explain(bert, TEXT, "gradient-x-input", target=targets)
    judged_both = whence.judge(bert, both)
    assert isinstance(judged_both, Attributions)
    assert (judged_both.by, list(judged_both)) == ("target", list(both))
    assert all(a.evidence is not None for a in judged_both.values())
    with pytest.raises(InputError, match="judge takes an Attribution, a list"):
        whence.judge(bert, {"mine": by_hand})


# ------------------------------------------------------------------------------ command line


def test_saved_results_are_added(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = whence.load("sentiment")
    texts = ["not bad at all", "a dull film"]
    for number, text in enumerate(texts):
        made = Attribution.from_scores(
            model, text, {text.split()[1]: 1.0}, method="by hand", target="positive"
        )
        made.save(tmp_path / f"{number}.json")
    (tmp_path / "texts.txt").write_text("\n".join([*texts, "fine"]))
    words = ["compare", "--methods", "gradient-l2", "--no-evidence", "--json"]
    add = [f"--add={tmp_path / '0.json'}", f"--add={tmp_path / '1.json'}"]
    assert main([*words, *add, "--file", str(tmp_path / "texts.txt")]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [list(row["attributions"]) for row in rows] == [
        ["gradient-l2", "by hand"],
        ["gradient-l2", "by hand"],
        ["gradient-l2"],
    ]
    for row, word in zip(rows, (1, 1), strict=False):
        assert row["attributions"]["by hand"]["scores"][word] == 1.0
        # the target of what was added, as none was named
        assert row["attributions"]["gradient-l2"]["target"]["label"] == "positive"

    assert main([*words, add[0], "another text"]) == 2
    assert "is of another text" in capsys.readouterr().err
    assert main([*words, "--add", str(tmp_path / "no.json"), "fine"]) == 2
    assert "no file" in capsys.readouterr().err
