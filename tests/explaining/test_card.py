"""The card of a real model: its words are those of the runs, tables and audits it was made of."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import whence
from tests.views.audits import audit_with, observed
from tests.views.evaluations import evaluation, measured
from tests.views.generations import generation
from whence.core.card import Standing
from whence.core.errors import InputError, LoadError
from whence.core.evidence import Verdict
from whence.core.question import Question
from whence.explaining.questions import tallies_of

TEXTS = ["a fine film", "a dull film", "not bad at all", "the plot is thin", "I loved it", "bad"]
METHODS = ("occlusion", "gradient-l2", "random")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("card")
    data = place / "reviews.csv"
    data.write_text("text\n" + "\n".join(TEXTS) + "\n")
    model = whence.load("sentiment")
    whence.run(model, data, METHODS, out=place / "run")
    whence.compare(model, TEXTS[0], METHODS).save(place / "one.json")
    return place


def test_a_run_is_of_the_texts_that_it_explained(tmp_path):
    """The version before: "40 texts", of which 2 had failed, beside an audit of 10 of 12."""
    rows = [{"text": "a fine film"}, {"text": " "}, {"text": "a dull film"}]
    run = whence.run(whence.load("sentiment"), rows, ["gradient-l2"], out=tmp_path / "run")
    assert run.state.failed == 1
    (source,) = whence.card(tmp_path / "run").sources
    assert source.texts == 2


def test_a_run_says_on_how_many_texts(folder):
    card = whence.card(folder / "run")
    tallies = {tally.method: tally for tally in tallies_of(whence.open_run(folder / "run"))}
    for method in METHODS:
        (finding,) = card.of(method, Question.TEXTS)
        assert (finding.won, finding.of) == (tallies[method].better, tallies[method].judged)
        assert finding.chance == tallies[method].chance_range
    assert card.model == "sentiment"
    assert card.unasked == (Question.TEXT, Question.MEASURE, Question.ATTENTION)


def test_one_text_says_what_the_comparison_says(folder):
    card = whence.card(folder / "one.json")
    comparison = whence.read(folder / "one.json")
    for method, attribution in comparison.attributions.items():
        (finding,) = card.of(method, Question.TEXT)
        assert finding.said == str(attribution.evidence.verdict)
        expected = {Verdict.BETTER: Standing.YES, Verdict.SAME: Standing.OPEN}
        assert finding.standing is expected.get(attribution.evidence.verdict, Standing.NO)


def test_a_folder_of_results_is_read_and_nothing_counts_twice(folder):
    whole, named = whence.card(folder), whence.card(folder / "run", folder / "one.json", folder)
    assert len(whole.sources) == len(named.sources) == 2
    assert {source.file for source in whole.sources} == {"run", "one.json"}


def test_a_table_says_by_how_many_measures(tmp_path):
    table = evaluation(measured(), measured((1.0, 1.0, 0.0), removal="delete"))
    table.save(tmp_path / "table.json")
    card = whence.card(tmp_path)
    won = {m: card.of(m, Question.MEASURE)[0].won for m in ("sharp", "dull", "random")}
    assert won == {"sharp": 2, "dull": 1, "random": 0}
    standings = [card.standing(m, Question.MEASURE) for m in ("sharp", "dull", "random")]
    assert standings == [Standing.YES, Standing.PART, Standing.NO]


def test_results_of_two_models_are_refused(folder, tmp_path):
    other = whence.read(folder / "one.json").first
    changed = replace(other, provenance=replace(other.provenance, fingerprint="other"))
    changed.save(tmp_path / "other.json")
    with pytest.raises(InputError, match="a card is of one model: run is of 'sentiment', and"):
        whence.card(folder / "run", tmp_path / "other.json")


def test_what_says_nothing_is_named_or_refused(folder, tmp_path):
    with pytest.raises(LoadError, match="there is no folder or file"):
        whence.card(tmp_path / "nowhere")
    with pytest.raises(LoadError, match="no folder of a run and no saved result"):
        whence.card(tmp_path)
    with pytest.raises(InputError, match="at least one folder"):
        whence.card()
    (tmp_path / "card.json").write_text("{}")
    with pytest.raises(LoadError, match="no 'schema' number"):
        whence.card(tmp_path)
    card = whence.card(folder / "one.json").save(tmp_path / "card.json")
    with pytest.raises(InputError, match=r"nothing here answers .*card\.json: a Card answers"):
        whence.card(card)


def test_an_audit_says_whether_attention_may_be_read(tmp_path):
    rng = np.random.default_rng(0)
    texts = observed(60, lambda: float(rng.uniform(0.3, 0.4)), lambda: 0.6)
    audit = audit_with(texts)
    audit.save(tmp_path / "audit.json")
    card = whence.card(tmp_path)
    for verdict in audit.readings:
        (finding,) = card.of(verdict.reading, Question.ATTENTION)
        assert finding.said == str(verdict.may)
    assert card.attention == {"audit.json": f"{audit.of_all.may}: {audit.of_all.why}"}


def test_of_written_tokens_it_is_counted_on_how_many(tmp_path):
    generation("once upon a", [" time", " there"]).save(tmp_path / "written.json")
    card = whence.card(tmp_path / "written.json")
    (source,) = card.sources
    assert (source.question, source.counted) == (Question.TEXT, "written token")
    written = whence.read(tmp_path / "written.json")
    assert isinstance(written, whence.Generation)
    for method, rows in written.rows.items():
        verdicts = [a.evidence.verdict for a in rows if a.evidence is not None]
        for finding in card.of(method, Question.TEXT):
            assert (finding.won, finding.of) == (verdicts.count(Verdict.BETTER), len(verdicts))


def test_no_model_is_loaded_for_a_card(folder, monkeypatch):
    def refuse(*_args, **_more):
        raise AssertionError("a card loads no model")

    monkeypatch.setattr("whence.models.load.load", refuse)
    assert whence.card(folder).sources
