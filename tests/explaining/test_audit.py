"""whence.audit: tests of attention over a data set, kept and continued."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jaxtyping
import numpy as np
import pytest

import whence
from tests.audits.removing import counted
from tests.audits.test_heads import bert
from tests.families import build
from whence.audits.case import Case
from whence.audits.pruning import pruning_curve
from whence.core.audit import Observation, Place, effects_of
from whence.core.audited import TOLERANCE, Audit, May, Why
from whence.core.errors import InputError, LoadError, SettingsError, UnknownName, Unsupported
from whence.core.pruning import halves
from whence.core.request import targets_of
from whence.explaining.audit import audit_rows, audited, is_whole
from whence.explaining.audits import MOST, opened, spread
from whence.explaining.stored_audit import CONTRAST, _heads
from whence.runs.data import Choice, open_data
from whence.runs.manner import Manner
from whence.runs.places import place_of
from whence.runs.run import Stop
from whence.views.audit_figures import FIGURES

TEXTS = [
    "the food is great but not the prices",
    "not bad at all and the menu is fine",
    "bad food and bad service",
    "great prices great menu great food",
    "the service is not great",
    "fine food and fine prices but bad menu",
]
QUICK: dict[str, dict[str, Any]] = {
    "permutation": {"permutations": 3, "of_heads": 1},
    "uniform": {},
    "adversary": {"steps": 2, "restarts": 1},
    "heads": {},
}


@pytest.fixture(scope="module")
def model() -> whence.Model:
    return build("bert")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("audit") / "run"


@pytest.fixture(scope="module")
def audit(model: whence.Model, folder: Path) -> Audit:
    rows = [{"text": text, "label": i % 2} for i, text in enumerate(TEXTS)]
    return whence.audit(model, rows, QUICK, out=folder, part=3, text="text", label="label")


def test_every_test_speaks_of_every_place(model: whence.Model, audit: Audit) -> None:
    layers, heads = model.config.num_hidden_layers, model.config.num_attention_heads
    assert (audit.texts, audit.failed, audit.layers) == (len(TEXTS), 0, layers)
    assert len(audit.of_layers) == layers
    assert len(audit.of_heads) == layers * heads
    for place in (Place(), Place(0)):
        for test, quantity in (
            ("permutation", "change"),
            ("uniform", "change"),
            ("adversary", "jsd"),
        ):
            effect = audit.effect(test, quantity, place)
            assert effect is not None
            assert effect.texts == len(TEXTS)
    assert audit.heads is not None
    assert audit.heads.of == layers * heads
    assert {v.reading for v in audit.readings} >= {"attention-mean", "rollout"}
    assert audit.effect("correlation", "tau-gradient-loo") is not None


def test_marks_of_heads_follow_from_the_intervals_that_are_shown() -> None:
    """A head that helps, by itself; would catch: judged with other columns, or by another test."""
    rng = np.random.default_rng(0)
    observed = [
        [Observation("heads", "loss", float(v), Place(0, h)) for h, v in enumerate(row)]
        + [Observation("heads", "whole-loss", 50.0 * rng.exponential())]
        for row in rng.normal([0.02, 0.2, 0.0, -0.2, -0.015], 0.02, size=(60, 5))
    ]
    effects = effects_of(observed)
    found = _heads(observed, effects, 0)
    assert found is not None
    low = {e.place: e.interval[0] for e in effects if e.quantity == "loss" and e.interval}
    high = {e.place: e.interval[1] for e in effects if e.quantity == "loss" and e.interval}
    assert set(found.help) == {place for place in low if low[place] > TOLERANCE}
    assert set(found.spared) == {place for place in high if high[place] < TOLERANCE}
    assert Place(0, 3) in found.hurt
    assert all(high[place] < -TOLERANCE for place in found.hurt)


def test_an_untrained_model_is_not_called_readable(audit: Audit) -> None:
    """Its output hardly moves, whatever attention does."""
    assert {verdict.may for verdict in audit.of_layers} <= {May.NO, May.OPEN}


def test_the_same_call_goes_on_and_gives_the_same(
    model: whence.Model, audit: Audit, folder: Path
) -> None:
    parts = sorted((folder / "parts").iterdir())
    parts[0].unlink()
    rows = [{"text": text, "label": i % 2} for i, text in enumerate(TEXTS)]
    again = whence.audit(model, rows, QUICK, out=folder, part=3, text="text", label="label")
    assert again.effects == audit.effects
    assert again.places == audit.places


def test_a_label_that_the_model_does_not_have_is_a_failure_of_its_row(model: whence.Model) -> None:
    rows = [{"text": text, "label": "1"} for text in TEXTS[:2]]
    rows.append({"text": TEXTS[2], "label": "no such label"})
    found = whence.audit(model, rows, ["uniform"], text="text", label="label")
    assert (found.texts, found.failed) == (2, 1)


def test_mistakes_are_said_before_anything_is_run(
    model: whence.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    # as a user meets it, wrong types reach our own refusals: nothing checks annotations
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(InputError, match="no tests"):
        whence.audit(model, TEXTS, {})
    with pytest.raises(InputError, match="names with settings, not 5"):
        whence.audit(model, TEXTS, 5)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="settings of the test 'uniform' are a dict"):
        whence.audit(model, TEXTS, {"uniform": 3})  # pyright: ignore[reportArgumentType]
    with pytest.raises(UnknownName, match="named 'unifrom'"):
        whence.audit(model, TEXTS, "unifrom")
    with pytest.raises(UnknownName, match="permutation"):
        whence.audit(model, TEXTS, ["permutations"])
    with pytest.raises(SettingsError, match="steps"):
        whence.audit(model, TEXTS, {"adversary": {"steps": 0}})


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"uniform": {"steps": 3}}, r"^test 'uniform': it has no settings"),
        ({"adversary": {"step": 3}}, r"Did you mean 'steps'\? Known: epsilon"),
        ({"adversary": {"steps": 2.5}}, r"setting 'steps'.* not 2\.5\.$"),
        ({"adversary": {"steps": 0}}, r"steps=0, restarts=2 were asked for\.$"),
        ({"adversary": {"rate": float("nan")}}, r"a finite number is needed"),
    ],
)
def test_a_wrong_setting_of_a_test_is_told_as_that_of_a_method(
    model: whence.Model, settings: dict[str, dict[str, Any]], said: str
) -> None:
    """Would catch: what Python says of a wrong keyword, and 2.5 steps that fail on every text."""
    with pytest.raises(SettingsError, match=said):
        whence.audit(model, TEXTS, settings)


def test_the_model_is_left_as_it_was(model: whence.Model) -> None:
    before = model.fingerprint, model.config._attn_implementation, model.hf.training
    whence.audit(model, TEXTS[:1], QUICK)
    assert (model.fingerprint, model.config._attn_implementation, model.hf.training) == before
    assert all(parameter.grad is None for parameter in model.hf.parameters())


def test_the_passes_of_the_tests_are_counted(model: whence.Model) -> None:
    without = whence.audit(model, TEXTS[:2], {"uniform": {}})
    both = whence.audit(model, TEXTS[:2], {"uniform": {}, "adversary": {"steps": 2, "restarts": 1}})
    layers = model.config.num_hidden_layers
    # each layer and all of them: two steps and a last look; and the text as it is
    assert both.forwards - without.forwards == 2 * ((layers + 1) * 3 + 1)
    assert both.backwards - without.backwards == 2 * (layers + 1) * 2


def test_a_foil_is_what_each_label_is_contrasted_with() -> None:
    """Minimal pairs: the loss is over the two words, and heads are valued by the right one."""
    model = build("gpt2")
    rows = [
        {"text": "the food is", "right": " great", "wrong": " is"},
        {"text": "the prices are not", "right": " is", "wrong": " great"},
    ]
    columns = {"text": "text", "label": "right", "against": "wrong"}
    with pytest.raises(InputError, match="foil= is an old name of against="):
        whence.audit(model, rows, ["heads"], **columns, foil="wrong")
    found = whence.audit(model, rows, ["heads"], **columns)
    whole = found.effect("heads", "whole-loss")
    assert whole is not None
    losses = []
    for row in rows:
        passage = model.encode(row["text"])
        logits = model.logits([passage])[0]
        words = [whence.Target(row[name]) for name in ("right", "wrong")]
        right, wrong = (logits[model.resolve(word, logits, passage).index] for word in words)
        losses.append(np.logaddexp(0.0, wrong - right))
    assert whole.mean == pytest.approx(np.mean(losses), rel=1e-5)
    # the curve, too, is of the two words: with all heads it is the loss of the held-out text
    assert found.pruning is not None
    _, (held_out,) = halves(len(rows), found.seed)
    assert found.pruning.control.loss[0].mean == pytest.approx(losses[held_out], rel=1e-5)
    # and a reader is told what it is that moved
    assert CONTRAST in found.notes
    assert CONTRAST in " ".join(str(found).split())
    assert CONTRAST not in whence.audit(model, ["the food is"], ["uniform"]).notes


def test_a_regression_has_effects_and_no_verdict_on_places() -> None:
    """Its loss is in squared units: no head is worth "0.01 nats" either."""
    model = bert(num_labels=1)
    tests = {"uniform": {}, "heads": {}}
    found = whence.audit(model, TEXTS, tests, rankings=2)
    assert found.failed == 0
    assert (found.is_number, found.heads) == (True, None)
    assert {verdict.why for verdict in found.places} == {Why.NUMBER}
    assert found.effect("uniform", "change") is not None
    assert found.effect("heads", "loss", Place(0, 0)) is not None
    assert "probabilities move" not in str(found)


def test_the_labels_of_a_regression_are_numbers() -> None:
    # the version before: “label 2 is outside the 1 labels”, of every text
    model = bert(num_labels=1)
    rows = [{"text": text, "label": 2.5} for text in TEXTS]
    found = whence.audit(model, rows, ["heads"], text="text", label="label", rankings=2)
    assert (found.texts, found.failed) == (len(TEXTS), 0)
    said = model.logits([model.encode(text) for text in TEXTS])[:, 0]
    loss = found.effect("heads", "whole-loss")
    assert loss is not None
    assert loss.mean == pytest.approx(np.mean((said - 2.5) ** 2), rel=1e-4)
    rows[0] = {"text": TEXTS[0], "label": "many"}
    found = whence.audit(model, rows, ["heads"], text="text", label="label", rankings=2)
    assert found.failed == 1


def test_a_model_whose_attention_cannot_be_edited_is_refused_by_name() -> None:
    with pytest.raises(Unsupported, match=r"DebertaV2.*cannot be edited.*whence\.attend"):
        whence.audit(build("deberta-v2"), TEXTS)


# ---------------------------------------------------------------------- the pruning curve


def labelled(model: whence.Model, text: str, label: int) -> Case:
    passage = model.encode(text)
    target = model.resolve(None, model.logits([passage])[0], passage)
    return Case(passage, target, label)


def test_the_curve_is_that_of_the_half_that_did_not_order_the_heads(
    model: whence.Model, audit: Audit, folder: Path
) -> None:
    """Made anew from the effects; the enemies: halves that are swapped, and other labels."""
    pruning = audit.pruning
    assert pruning is not None
    ordering, held_out = halves(len(TEXTS), audit.seed)
    assert (pruning.ordered_on, pruning.texts) == (len(ordering), len(held_out))

    by_row: dict[int, dict[Place, float]] = {}
    for one in whence.open_run(folder).table("observations").to_pylist():
        if (one["test"], one["quantity"]) == ("heads", "loss") and one["head"] is not None:
            by_row.setdefault(one["row"], {})[Place(one["layer"], one["head"])] = one["value"]
    heads = list(by_row[0])
    worth = {head: np.mean([by_row[row][head] for row in ordering]) for head in heads}
    by_worth = pruning.orders[0]
    assert by_worth.name == "least worth first"
    assert list(by_worth.heads) == sorted(heads, key=lambda head: worth[head])

    cases = [labelled(model, TEXTS[row], int(row % 2)) for row in held_out]
    curve = pruning_curve(model, cases, {"own": by_worth.heads}, pruning.steps)
    means = [mean.mean for mean in by_worth.curve.loss]
    assert means == pytest.approx(curve.loss[0].mean(1).tolist(), abs=1e-6)
    shares = [mean.mean for mean in by_worth.curve.right]
    assert shares == pytest.approx(curve.right[0].mean(1).tolist())
    # 2 orders and 5 random ones, each with steps between none and all; all; whole; the target
    between = len(pruning.steps) - 2
    assert pruning.forwards <= len(held_out) * (7 * between + 3)


def test_a_second_call_reads_the_curve(
    model: whence.Model, audit: Audit, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("the curve was made again")

    monkeypatch.setattr("whence.explaining.audit.pruned", refuse)
    rows = [{"text": text, "label": i % 2} for i, text in enumerate(TEXTS)]
    again = whence.audit(model, rows, QUICK, out=folder, part=3, text="text", label="label")
    assert again.pruning == audit.pruning
    assert again.forwards == audit.forwards


def test_whoever_asks_to_stop_gets_no_curve_and_the_next_call_makes_it(
    model: whence.Model, tmp_path: Path
) -> None:
    work = audit_rows(model, ["heads"], 2, targets=targets_of(None, None), seed=0)
    data, choice, place = open_data(TEXTS[:2]), Choice(None, 0, None), place_of(tmp_path / "run")
    stop = Stop()

    def progress(done: int, failed: int, rows: int) -> None:
        del failed
        stop.asked = done == rows

    stopped = audited(work, data, choice, place, Manner(), stop=stop, progress=progress)
    assert (stopped.texts, stopped.pruning) == (2, None)
    run = whence.open_run(tmp_path / "run")
    assert run.is_complete
    assert not is_whole(run)
    said: list[str] = []
    with counted(model) as passes:
        done = audited(work, data, choice, place, Manner(), say=said.append)
    assert done.pruning is not None
    assert sum(passes) == done.pruning.forwards
    assert len(said) == 1
    assert is_whole(run)
    assert done.forwards == stopped.forwards + done.pruning.forwards


def test_without_heads_or_texts_there_is_no_curve(model: whence.Model, tmp_path: Path) -> None:
    without = whence.audit(model, TEXTS[:2], ["uniform"], out=tmp_path / "without")
    assert (without.pruning, without.notes) == (None, ())
    assert is_whole(whence.open_run(tmp_path / "without"))
    one = whence.audit(model, TEXTS[:1], ["heads"], out=tmp_path / "one")
    assert one.pruning is None
    assert one.notes == (
        "There is no pruning curve: one half of the texts orders the heads and the other tries the "
        "order, so it takes two texts on which heads were tested; there is 1.",
    )
    assert is_whole(whence.open_run(tmp_path / "one"))


def test_the_curve_is_of_texts_from_the_whole_of_sorted_data(
    model: whence.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Would catch: the first held-out texts, which in sorted data are of one label."""
    monkeypatch.setattr("whence.explaining.pruning.MOST_TEXTS", 2)
    found = whence.audit(model, TEXTS, ["heads"], rankings=2)
    _, held_out = halves(len(TEXTS), found.seed)
    assert found.pruning is not None
    assert (found.pruning.texts, found.pruning.held_out) == (2, len(held_out))
    losses = []
    for row in (held_out[0], held_out[-1]):
        logits = model.logits([model.encode(TEXTS[row])])[0]
        losses.append(np.logaddexp.reduce(logits) - logits.max())
    assert found.pruning.control.loss[0].mean == pytest.approx(np.mean(losses), rel=1e-5)


def test_a_damaged_curve_is_named(model: whence.Model, tmp_path: Path) -> None:
    whence.audit(model, TEXTS[:2], ["heads"], out=tmp_path / "run")
    file = tmp_path / "run" / "pruning.json"
    file.write_text(file.read_text().replace('"steps": [0', '"steps": ["none"'))
    with pytest.raises(LoadError, match=r"pruning\.json is damaged: pruning\.steps\[0\]"):
        whence.audit(model, TEXTS[:2], ["heads"], out=tmp_path / "run")


def test_values_for_figures_are_kept_of_layers_and_readings(audit: Audit) -> None:
    tau = audit.effect("correlation", "tau-loo", reading="rollout")
    shuffled = audit.effect("correlation", "shuffled-loo", reading="rollout")
    assert tau is not None
    assert shuffled is not None
    assert len(tau.values) == len(shuffled.values) == tau.texts
    significant = audit.effect("correlation", "significant-loo", reading="rollout")
    assert significant is not None
    assert significant.control is not None
    assert 0 <= significant.control < 0.2  # of copies, on texts of five to nine words
    for name in FIGURES:
        assert audit.figure(name).svg.startswith("<svg xmlns")


def test_dear_tests_look_at_texts_from_the_whole_of_sorted_data(
    model: whence.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first texts would be those of one label."""
    monkeypatch.setitem(MOST, "adversary", 3)
    found = whence.audit(model, TEXTS, {"uniform": {}, "adversary": {"steps": 1, "restarts": 1}})
    jsd = found.effect("adversary", "jsd")
    spread = [TEXTS[0], TEXTS[2], TEXTS[5]]
    of_all = whence.audit(model, spread, {"adversary": {"steps": 1, "restarts": 1}})
    expected = of_all.effect("adversary", "jsd")
    assert jsd is not None
    assert expected is not None
    assert jsd.values == pytest.approx(expected.values, abs=1e-4)
    assert len(jsd.values) == 3


@pytest.mark.parametrize("texts", [1, 59, 60, 61, 130, 5000])
def test_dear_tests_look_at_as_many_texts_as_are_promised(model: whence.Model, texts: int) -> None:
    """The enemy: one of every two of 61 texts, which are 31."""
    work = spread(audit_rows(model, ["adversary"], 2, targets=targets_of(None, None)), texts)
    (adversary,) = work.tests
    places = set(work._looked_at(adversary, range(texts)))
    assert len(places) == min(texts, 60)
    assert places <= set(range(texts))
    assert {0, texts - 1} <= places
    assert max(np.diff(sorted(places)), default=1) <= -(-texts // 59)


def test_an_audit_of_an_older_version_is_not_gone_on_with(
    model: whence.Model, tmp_path: Path
) -> None:
    whence.audit(model, TEXTS[:2], ["uniform"], out=tmp_path / "run")
    run = whence.open_run(tmp_path / "run")
    older = {name: value for name, value in run.manifest.asked.items() if name != "most"}
    with pytest.raises(InputError, match=r"older version.*Begin anew with --restart"):
        opened(older | {"every": {}})
