"""The use of context: against two plain runs of the model, and on what was planted."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

import whence
from bench.context_planted import Suite, first_step, held_out, second_step, used
from tests.models.test_chat import chatty
from whence.core.context_use import (
    LARGE_CHANGE,
    MEASURES,
    SHORT,
    selected,
    threshold_of,
    usual_floor,
)
from whence.core.contextual import Dependence, Selection
from whence.core.errors import InputError, UnknownName
from whence.explaining.context import MOST_WITH_EVIDENCE, _selected
from whence.models.model import Model

CONTEXT, SENTENCE = "the lamps stay under the teacher .", "they push the cow ."
SEPARATOR = " | "
DOCUMENTS = {"a.txt": "I saw it. It was good.", "b.txt": "Nobody liked it. I cried."}


@cache
def writer() -> Model:
    return whence.load("writer")


@cache
def translator() -> Model:
    return whence.load("translator")


@cache
def translated(*methods: str, evidence: bool = False) -> whence.ContextUse:
    names = list(methods) or ["occlusion"]
    return whence.context(
        translator(), SENTENCE, CONTEXT, names, separator=SEPARATOR, evidence=evidence
    )


def plain_log_p(source: str, target: list[int]) -> np.ndarray:
    """What the translator says of each place of an output, by transformers alone."""
    model = translator()
    read = model.tokenizer(source, return_tensors="pt")
    start = model.hf.config.decoder_start_token_id
    so_far = torch.tensor([[start, *target[:-1]]])
    with torch.no_grad():
        logits = model.hf(**read, decoder_input_ids=so_far).logits[0]
    return torch.log_softmax(logits.double(), -1).numpy()


def plain_causal_log_p(prompt: str, target: list[int]) -> np.ndarray:
    model = writer()
    before = model.tokenizer(prompt)["input_ids"]
    with torch.no_grad():
        logits = model.hf(torch.tensor([[*before, *target]])).logits[0]
    rows = logits[len(before) - 1 : -1]
    return torch.log_softmax(rows.double(), -1).numpy()


# ---------------------------------------------------------------------- two plain runs


@pytest.mark.parametrize("measure", MEASURES)
def test_scores_of_a_translation_are_those_of_two_plain_runs(measure) -> None:
    """Would catch: the runs exchanged, an output read one place too late, the separator left."""
    use = whence.context(
        translator(), SENTENCE, CONTEXT, "random", separator=SEPARATOR, measure=measure
    )
    ids = [output.id for output in use.outputs]
    before = plain_log_p(SENTENCE, ids)
    after = plain_log_p(CONTEXT + SEPARATOR + SENTENCE, ids)
    own = np.arange(len(ids)), np.array(ids)
    p, q = np.exp(after[own]), np.exp(before[own])
    expected = {
        "kl-divergence": (np.exp(before) * (before - after)).sum(-1),
        "p-cxmi": np.log2(p / q),
        "in-context-pvi": np.log(p / q),
        "probability-difference": p - q,
        "likelihood-ratio": p / (p + q),
    }[measure]
    np.testing.assert_allclose(use.scores, expected, atol=2e-5, rtol=1e-4)
    np.testing.assert_allclose([o.probability for o in use.outputs], p, atol=1e-6)
    np.testing.assert_allclose([o.without for o in use.outputs], q, atol=1e-6)
    assert [o.instead_id for o in use.outputs] == before.argmax(-1).tolist()


def test_scores_of_a_causal_model_are_those_of_two_plain_runs() -> None:
    use = whence.context(
        writer(), "The movie was", "I hated it.", "random", max_new_tokens=8, evidence=False
    )
    ids = [output.id for output in use.outputs]
    before = plain_causal_log_p("The movie was", ids)
    after = plain_causal_log_p("I hated it.\nThe movie was", ids)
    expected = (np.exp(before) * (before - after)).sum(-1)
    np.testing.assert_allclose(use.scores, expected, atol=2e-5, rtol=1e-4)


def test_a_source_is_what_the_contrast_loses_without_it() -> None:
    """Would catch: a plain reading for the contrast, the rival of the run with context."""
    use = whence.context(
        translator(),
        SENTENCE,
        CONTEXT,
        {"occlusion": {"removal": "delete"}},
        separator=SEPARATOR,
        evidence=False,
    )
    (number,) = use.selected
    output, ids = use.outputs[number], [one.id for one in use.outputs]
    assert (output.name, output.instead) == ("elas", "elos")

    def contrast(words: list[str]) -> float:
        row = np.exp(plain_log_p(" ".join(words) + SEPARATOR + SENTENCE, ids)[number])
        return float(row[output.id] - row[output.instead_id])

    words = CONTEXT.split()
    whole = contrast(words)
    attribution = use.of(number)
    assert attribution.value == pytest.approx(whole, abs=1e-5)
    for place in range(len(words)):
        without = contrast(words[:place] + words[place + 1 :])
        assert attribution.scores[place] == pytest.approx(whole - without, abs=2e-5)


def test_where_both_runs_agree_the_token_itself_is_read() -> None:
    use = whence.context(
        translator(), "it is wet .", "the cat falls .", separator=SEPARATOR, evidence=False
    )
    (number,) = use.selected
    assert use.outputs[number].is_same  # of the class that is likeliest without context, too
    target = use.of(number).target
    assert target.against is None
    assert target.read == "probability"
    assert use.of(number).value == pytest.approx(use.outputs[number].probability, abs=1e-6)


def test_a_word_that_the_context_made_less_likely_rests_on_nothing_of_it() -> None:
    """Would catch: what little speaks for the word named as its source, beside what speaks against.

    Without context the model would write "elos"; "lamps" is of the class of "elas".
    """
    use = whence.context(
        translator(),
        SENTENCE,
        CONTEXT,
        separator=SEPARATOR,
        continuation="elos pussen la vaka .",
        evidence=False,
    )
    assert use.outputs[0].is_same
    assert use.outputs[0].probability < use.outputs[0].without
    assert use.of(0).scores.max() > 0  # of next to nothing
    assert use.sources(0) == use.sources() == ()
    assert [use.units.names[unit] for unit in use.opposing(0)] == ["lamps"]
    said = " ".join(str(use).split())
    assert "The context speaks against “elos” (" in said
    assert "most of all “lamps” (word 2 of the context)" in said
    assert "without context it would be the likeliest" in said
    assert "against it: lamps" in said
    assert "against it: <bdi>lamps</bdi>" in use.to_html()


def test_words_that_are_alike_are_told_apart() -> None:
    """Would catch: “la”, “vaka”, “la”, “vaka”, of which two sentences begin with “la”."""
    use = whence.context(
        translator(), "the cow sleeps .", CONTEXT, separator=SEPARATOR, evidence=False
    )
    assert use.text.split() == ["la", "vaka", "segit", "la", "vaka", "."]
    said = " ".join(str(use).split())
    assert "depend on the context: “la”, “vaka”, “la (2)”, “vaka (2)”." in said
    assert "“la (2)” (85 % with the context, 21 % without)" in said
    assert "la (2)" in use.to_html()


# ---------------------------------------------------------------------- what is selected


@pytest.mark.parametrize("measure", MEASURES)
def test_the_same_context_twice_changes_nothing(measure) -> None:
    use = whence.context(
        translator(), SENTENCE, CONTEXT, separator=SEPARATOR, other_context=CONTEXT, measure=measure
    )
    assert set(use.scores.tolist()) == {0.5 if measure == "likelihood-ratio" else 0.0}
    assert use.selected == ()
    assert dict(use.rows) == {}
    assert use.sources() == ()
    assert "No word of the output depends on the context" in str(use)


def test_what_depends_on_no_context_is_kept_out_by_the_floor_alone() -> None:
    idle = "the nurse reaches the cow ."
    options = {"separator": SEPARATOR, "evidence": False}
    use = whence.context(translator(), idle, CONTEXT, **options)
    assert use.selected == ()
    assert use.selection.least == usual_floor("kl-divergence")
    without_floor = whence.context(translator(), idle, CONTEXT, least=0.0, **options)
    assert len(without_floor.selected) >= 1


def test_the_strongest_few_are_kept() -> None:
    use = whence.context(
        writer(),
        "The movie was",
        "I hated it.",
        "gradient-l2",
        max_new_tokens=8,
        deviations=None,
        least=0.0,
        most=3,
        evidence=False,
    )
    order = np.argsort(-use.scores)[:3]
    assert use.selected == tuple(sorted(order.tolist()))
    assert use.strongest == tuple(order.tolist())
    np.testing.assert_allclose(
        use.together(), sum(use.of(number).scores for number in use.selected), rtol=1e-12
    )


def test_of_two_tokens_the_floor_decides() -> None:
    use = whence.context(
        translator(),
        "it falls .",
        "the cows fall .",
        continuation="ela kadit",
        deviations=1.0,
        evidence=False,
    )
    assert len(use.outputs) == 2
    assert use.selection.threshold is None
    assert "the floor alone decided" in use.notes[0]


def test_evidence_is_that_of_the_strongest_unless_asked_for() -> None:
    options = {"max_new_tokens": 7, "deviations": None, "least": 0.0, "rankings": 39, "steps": 2}
    use = whence.context(writer(), "The movie was", "I hated it all.", "gradient-l2", **options)
    judged = [n for n in use.selected if use.of(n).evidence is not None]
    assert judged == sorted(use.strongest[:MOST_WITH_EVIDENCE])
    assert any(f"the {MOST_WITH_EVIDENCE} strongest of 7" in note for note in use.notes)


# ---------------------------------------------------------------------- documents and chats


def test_an_answer_rests_on_a_sentence_of_a_document() -> None:
    use = whence.context(
        writer(), "The movie was", DOCUMENTS, max_new_tokens=3, least=0.0, evidence=False
    )
    assert use.passage.kind == "sentence"
    assert len(use.sentences) == 1
    places = [use.place(unit) for unit in range(len(use.units))]
    assert places == [
        "sentence 1 of a.txt",
        "sentence 2 of a.txt",
        "sentence 1 of b.txt",
        "sentence 2 of b.txt",
    ]
    unit = use.sources()[0]
    assert use.together()[unit] == use.together().max()
    assert f"this answer rests most on {places[unit]}" in " ".join(str(use).split())


def test_each_written_sentence_has_its_own_sources() -> None:
    # would catch: a long second sentence that outweighs a short answer
    written = " good. It was bad. Well"
    use = whence.context(
        writer(),
        "The movie was",
        DOCUMENTS,
        continuation=written,
        deviations=None,
        least=0.0,
        evidence=False,
    )
    names = ["".join(use.outputs[n].name for n in outputs).strip() for outputs in use.sentences]
    assert names == ["good.", "It was bad.", "Well"]
    assert [n for outputs in use.sentences for n in outputs] == list(range(len(use.outputs)))

    said = " ".join(str(use).split())
    for number, outputs in enumerate(use.sentences):
        alone = sum(use.of(n).scores for n in outputs)
        np.testing.assert_allclose(use.together(outputs=outputs), alone, rtol=1e-12)
        if alone.max() > 0:
            strongest = use.sources(outputs)[0]
            assert strongest == alone.argmax()
            where = f"sentence {number + 1} of the given continuation rests most on"
            assert f"{where} {use.place(strongest)}" in said
    assert "this answer rests most" not in said


def test_a_first_sentence_in_which_nothing_stands_out_is_told() -> None:
    use = whence.context(
        writer(),
        "The movie was",
        DOCUMENTS,
        continuation=" good. It was bad.",
        deviations=None,
        least=0.0,
        evidence=False,
    )
    later = tuple(n for n in use.selected if n >= use.sentences[1].start)
    rows = {name: tuple(use.of(n, name) for n in later) for name in use.methods}
    narrowed = replace(use, selected=later, rows=rows)
    said = " ".join(str(narrowed).split())
    assert "No word of the first sentence of the given continuation stands out" in said
    assert "sentence 1 of the given continuation" not in said
    assert "sentence 2 of the given continuation rests most on" in said


@pytest.mark.parametrize(
    ("text", "spans", "words", "expected"),
    [
        # a full stop with the line breaks behind it belongs to what it ends
        ("1.\n2.\n3", [(0, 1), (1, 3), (3, 4), (4, 6), (6, 7)], "00000", [2, 2, 1]),
        # pieces of a character, of which only the last has a span
        ("a. 中文", [(0, 1), (1, 2), (2, 2), (2, 4), (4, 5)], "00000", [2, 3]),
        # a special token at the end
        (" yes.", [(0, 4), (4, 5), (0, 0)], "00-", [3]),
    ],
)
def test_a_token_belongs_to_the_sentence_of_its_first_character(
    text: str, spans: list[tuple[int, int]], words: str, expected: list[int]
) -> None:
    use = whence.context(
        writer(), "The movie was", "I saw it.", max_new_tokens=len(spans), evidence=False
    )
    count = len(spans)
    places = use.passage.spans.copy()
    places[-count:] = spans
    passage = replace(use.passage, spans=places, pair=text)
    outputs = tuple(
        replace(output, word=None if word == "-" else 0)
        for output, word in zip(use.outputs, words, strict=True)
    )
    changed = replace(use, passage=passage, outputs=outputs, selected=(), rows={})
    assert [len(outputs) for outputs in changed.sentences] == expected


def test_a_chat_is_written_and_attributed() -> None:
    use = whence.context(
        chatty("chatml"),
        "Was it good?",
        DOCUMENTS,
        ["occlusion", "gradient-x-input"],
        system="Be short.",
        max_new_tokens=4,
        deviations=None,
        least=0.0,
        evidence=False,
    )
    assert use.decoding["chat"] is True
    assert use.methods == ("occlusion", "gradient-x-input")
    assert len(use["occlusion"]) == len(use.selected) == 4


# ---------------------------------------------------------------------- stored and refused


def test_a_result_comes_back_from_its_file(tmp_path: Path) -> None:
    use = translated("occlusion", "gradient-l2", evidence=True)
    read = whence.read(use.save(tmp_path / "use.json"))
    assert isinstance(read, whence.ContextUse)
    assert read.to_dict() == use.to_dict()
    assert read.of(use.selected[0]).evidence is not None
    assert str(read) == str(use)
    assert read.to_html() == use.to_html()
    assert read.table("sources") == use.table("sources")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"selected": [99]}, "selected"),
        ({"outputs": []}, "one output for each written token"),
        ({"rows": {"occlusion": []}}, "0 rows for 1 outputs"),
    ],
)
def test_a_damaged_file_is_refused(change, said) -> None:
    stored = json.loads(json.dumps(translated().to_dict()))
    with pytest.raises(whence.WhenceError, match=said):
        whence.ContextUse.from_dict({**stored, **change})


def test_a_measure_in_a_file_must_be_one() -> None:
    stored = json.loads(json.dumps(translated().to_dict()))
    stored["selection"]["measure"] = "distance"
    with pytest.raises(whence.WhenceError, match="measure"):
        whence.ContextUse.from_dict(stored)


@pytest.mark.usefixtures("unchecked")
def test_tables_have_a_row_for_each_token_or_source() -> None:
    use = translated()
    outputs = use.table()
    assert [row["selected"] for row in outputs].count(True) == 1
    assert len(outputs) == len(use.outputs)
    sources = use.table("sources")
    assert [row["word"] for row in sources if row["kept"]] == ["lamps"]
    assert len(use.to_csv(of="sources").strip().splitlines()) == len(sources) + 1
    with pytest.raises(UnknownName):
        use.table("words")  # type: ignore[arg-type]


def test_what_was_not_found_has_no_attribution() -> None:
    use = translated()
    with pytest.raises(InputError, match="found were 0"):
        use.of(3)
    with pytest.raises(UnknownName):
        use["lime"]


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"measure": "kl"}, UnknownName, "kl-divergence"),
        ({"continuation": "elo", "do_sample": True}, InputError, "leave out do_sample"),
        ({"continuation": ""}, InputError, "empty"),
        ({"methods": "lim"}, UnknownName, "lime"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_mistakes_are_refused(options, error, said) -> None:
    with pytest.raises(error, match=said):
        whence.context(translator(), SENTENCE, CONTEXT, **options)


def test_a_classifier_does_not_write() -> None:
    with pytest.raises(InputError, match="does not write"):
        whence.context(whence.load("sentiment"), "so good", "I saw it.")


# ---------------------------------------------------------------------- what was planted


def planted(every: int) -> tuple[Suite, list[whence.ContextUse], list[whence.ContextUse]]:
    """Each so many of the held-out texts, as a user would run them."""
    whole = held_out(translator())
    suite = Suite(whole.separator, whole.needed[::every], whole.idle[::every])
    needed = [used(translator(), suite, text, ["occlusion"]) for text in suite.needed]
    idle = [used(translator(), suite, text, ["occlusion"]) for text in suite.idle]
    return suite, needed, idle


def counted(every: int) -> tuple[list[int], list[int]]:
    """Pronouns found, found alone, false alarms; then nouns first, and alone kept."""
    suite, needed, idle = planted(every)
    floor = usual_floor("kl-divergence")
    first = first_step(suite, needed, idle, "kl-divergence", floor)
    second = second_step(suite, needed, "occlusion")
    return [count.right for count in first], [count.right for count in second]


def test_pronouns_and_nouns_are_found_in_a_sample_of_the_suite() -> None:
    """Every 20th: 10 texts that need context and 10 that do not."""
    assert counted(20) == ([10, 10, 0], [10, 10])


@pytest.mark.slow
def test_pronouns_and_nouns_are_found_in_the_whole_suite() -> None:
    """Asked are 90 % found and fewer than 5 % false alarms."""
    assert counted(1) == ([200, 200, 1], [200, 200])


# ---------------------------------------------------------------------- short outputs


def test_of_a_short_output_each_token_is_judged_by_itself() -> None:
    """Would catch: mean + 1 standard deviation over three tokens, which one at most can reach."""
    options = {"separator": SEPARATOR, "evidence": False, "continuation": "elas pussen las vakas ."}
    use = whence.context(translator(), SENTENCE, CONTEXT, **options)
    assert len(use.outputs) < SHORT
    changes = {
        number
        for number, output in enumerate(use.outputs)
        if output.score > usual_floor("kl-divergence")
        or max(output.probability / output.without, output.without / output.probability) >= 4
    }
    assert set(use.selected) == changes
    assert use.selection.deviations is None
    assert use.selection.factor == LARGE_CHANGE
    as_published = whence.context(translator(), SENTENCE, CONTEXT, deviations=1.0, **options)
    assert as_published.selection.factor is None
    chosen = selected(as_published.scores, "tool", 1.0, None, usual_floor("kl-divergence"))
    assert as_published.selected == tuple(np.flatnonzero(chosen).tolist())


def test_a_token_that_the_context_makes_four_times_as_likely_is_selected() -> None:
    """“12”: 15 % with the context, 0.03 % without, at 0.16 nats of divergence."""
    outputs = tuple(
        Dependence("t", 0, with_it, without, score, "t", 0, number)
        for number, (with_it, without, score) in enumerate(
            [(0.15, 0.0003, 0.16), (0.9, 0.1, 2.0), (0.15, 0.14, 0.01)]
        )
    )
    floor = usual_floor("kl-divergence")
    asked = Selection(deviations=None, least=floor, factor=LARGE_CHANGE)
    assert _selected(outputs, asked)[1] == (0, 1)
    assert _selected(outputs, replace(asked, factor=None))[1] == (1,)
    assert _selected(outputs, replace(asked, most=1))[1] == (1,)


def test_a_long_output_is_judged_by_the_rule_of_pecore() -> None:
    options = {"evidence": False, "methods": "random"}
    use = whence.context(writer(), "The movie was", "I hated it.", max_new_tokens=SHORT, **options)
    assert len(use.outputs) == SHORT
    assert (use.selection.deviations, use.selection.factor) == (1.0, None)
    assert use.selection.threshold == pytest.approx(threshold_of(use.scores))
    short = whence.context(writer(), "The movie was", "I hated it.", max_new_tokens=3, **options)
    assert short.selection.factor == LARGE_CHANGE
    paper = whence.context(
        writer(), "The movie was", "I hated it.", max_new_tokens=3, rule="paper", **options
    )
    assert paper.selection.deviations == 1.0


@pytest.mark.usefixtures("unchecked")
def test_deviations_are_a_number_or_auto() -> None:
    with pytest.raises(InputError, match="a number or 'auto'"):
        whence.context(translator(), SENTENCE, CONTEXT, deviations="one")  # type: ignore[arg-type]


def test_a_result_of_before_has_no_factor() -> None:
    stored = json.loads(json.dumps(translated().to_dict()))
    del stored["selection"]["factor"]
    assert whence.ContextUse.from_dict(stored).selection.factor is None
