"""whence.generate: what it is asked, what it refuses, and how its parts add up."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

import whence
from tests.families import build
from whence.core.errors import InputError, TargetError, Unsupported
from whence.core.target import Target
from whence.models.labels import Vocabulary
from whence.models.model import Model
from whence.models.rivals import Placed, rival_of
from whence.models.writing import written_after

PROMPT = "Once upon a time there was a"
# where there is evidence: both ends and the middle of its curves
BARE: dict[str, Any] = {"max_new_tokens": 4, "evidence": False, "steps": 2}
BARE_ROWS: dict[str, Any] = {"evidence": False, "read": "logit"}


@cache
def writer() -> Model:
    return whence.load("writer")


def generated(methods: Any = "gradient-x-input", **options: Any) -> Any:
    return whence.generate(writer(), PROMPT, methods, **{**BARE, **options})


def test_sections_of_ones_own_are_units() -> None:
    prompt = "The king had a horse. The horse was old. Once"
    g = whence.generate(writer(), prompt, units=[0, 21], **BARE)
    assert g.passage.kind == "section"
    assert g.units.names[:2] == ("The king had a horse.", "The horse was old. Once")


# ---------------------------------------------------------------------- how parts add up


@pytest.mark.parametrize("method", ["gradient-x-input", "occlusion"])
def test_the_whole_continuation_is_the_sum_of_its_outputs(method: str) -> None:
    """Log-probabilities add up, and so do the scores of what is linear in them.

    Would catch a whole that is read at its last token alone, or as a mean.
    """
    single = generated(method, scored="prompt")
    whole = generated(method, scored="prompt", evidence=True, rankings=39)
    assert whole.chosen is not None
    total = np.nansum(single.matrix(method), axis=0)
    scores = whole.chosen[method].scores
    np.testing.assert_allclose(scores, total, rtol=1e-4, atol=1e-5 * np.abs(total).max())
    last = single.matrix(method)[-1]
    assert np.abs(scores - last).max() > 0.1 * np.abs(scores).max()
    assert whole.chosen[method].value == pytest.approx(
        sum(np.log(output.probability) for output in whole.outputs), rel=1e-5
    )


def test_evidence_is_about_an_output_a_word_a_span_or_the_whole() -> None:
    words = {"continuation": " little cow and", "evidence": True, "rankings": 39}
    about = {}
    for name, target in (
        ("one", 0),
        ("word", "cow"),
        ("span", Target(at=1, until=4)),
        ("all", None),
    ):
        result = generated("occlusion", target=target, **words)
        about[name] = result.chosen["occlusion"]
        assert about[name].evidence.trials
    assert [about[name].target.steps for name in ("one", "word", "span", "all")] == [
        range(1),
        range(1, 3),
        range(1, 4),
        range(4),
    ]
    assert about["word"].target.label == " cow"
    # what stands before an output: the prompt, and for later ones what was written until then
    assert [len(about[name].scores) for name in ("one", "word", "all")] == [7, 8, 7]


def test_the_prompt_alone_has_the_scores_that_it_has_among_others() -> None:
    """Of a method that scores each token by itself: what is not scored changes nothing else."""
    every, prompt = generated(), generated(scored="prompt")
    name = "gradient-x-input"
    np.testing.assert_allclose(every.matrix(name)[:, :7], prompt.matrix(name), rtol=1e-6)
    assert len(prompt.units) == 7


def test_a_word_is_found_where_only_the_prompt_is_scored() -> None:
    """Would catch a search among units that are gone."""
    options = {"continuation": " little cow and", "scored": "prompt", "evidence": True}
    result = generated("occlusion", target="cow", rankings=39, **options)
    assert result.chosen["occlusion"].target.steps == range(1, 3)


def test_a_generation_comes_back_from_json() -> None:
    result = generated(["occlusion", "gradient-x-input"], evidence=True, rankings=39)
    again = whence.Generation.from_dict(result.to_dict())
    assert again.to_dict() == result.to_dict()
    for method in result.methods:
        np.testing.assert_array_equal(again.matrix(method), result.matrix(method))


def test_readings_that_only_single_tokens_have_leave_the_evidence_to_the_whole() -> None:
    result = generated(read="margin", evidence=True, rankings=39)
    assert {a.target.read for a in result["gradient-x-input"]} == {"margin"}
    assert result.chosen["gradient-x-input"].target.read == "log-probability"


# ---------------------------------------------------------------------- why this rather than that


def test_a_contrast_is_the_difference_of_two_logits() -> None:
    """Re-derived from single tokens; would catch the rival's sign, or a rival without its space."""
    few = writer().labels.index_of(" few")[0]  # type: ignore[attr-defined]
    name, where = "gradient-x-input", {"outputs": [0], "read": "logit"}
    contrast = generated(against="few", **where).of(0)
    assert contrast.target.against_index == few
    written = generated(**where).of(0).scores
    passage = written_after(writer(), writer().encode(PROMPT), [few])
    rival = whence.generate(
        writer(), PROMPT, name, continuation=[few], evidence=False, outputs=[0], read="logit"
    ).of(0)
    assert passage.outputs == 1
    np.testing.assert_allclose(contrast.scores, written - rival.scores, rtol=1e-3, atol=1e-5)
    assert contrast.method == name


def test_a_rival_is_written_as_its_place_has_it() -> None:
    model = writer()
    text = written_after(model, model.encode("Then"), model.encode(" she said.").ids)
    assert [text.output_text(i) for i in range(3)] == [" she", " said", "."]

    def named(text: Any, output: int, rival: str | int) -> list[str]:
        return [model.labels[i] for i in rival_of(model, text, output, rival)]

    assert named(text, 0, "he") == [" he"]
    assert named(text, 2, "!") == ["!"]
    assert named(text, 2, "and") == [" and"]  # in the place of a mark a word has its blank, too
    assert named(text, 1, ",") == [","]  # no token is " ,"
    assert rival_of(model, text, 0, 77) == (77,)
    assert rival_of(model, text, 0, "<|endoftext|>") == (model.tokenizer.eos_token_id,)
    assert named(text, 0, "hippopotamus")[:2] == [" h", "ipp"]
    # a piece inside of a word takes no space
    inside = written_after(model, model.encode("a"), model.encode(" cow").ids)
    assert inside.output_text(1) == "ow"
    assert named(inside, 1, "at") == ["at"]


def test_rivals_of_sentencepiece_vocabularies() -> None:
    """Would catch a raw piece, "on", where the vocabulary has the word as "▁on"."""
    model = build("t5")
    vocabulary = model.tokenizer.get_vocab()
    words = [p for p in vocabulary if p.startswith("▁") and p[1:] in vocabulary and p[1:].isalpha()]
    text = written_after(model, model.encode("the food"), model.encode("is the").ids[:-1])
    spaced = next(i for i in range(text.outputs) if text.output_text(i).startswith(" "))
    # the first token that a decoder writes has lost its blank as text, and is no less a word
    first = written_after(model, model.encode("the food"), [vocabulary[words[0]]])
    assert not first.output_text(0).startswith(" ")
    assert words
    for place, passage in ((spaced, text), (0, first)):
        for piece in words:
            for name in (piece[1:], f" {piece[1:]}", piece):
                assert rival_of(model, passage, place, name) == (vocabulary[piece],)


def test_the_rival_at_the_first_token_of_a_decoder_is_a_word() -> None:
    """Re-derived from the model's own logits; would catch the piece inside of a word."""
    model = build("t5")
    vocabulary = model.tokenizer.get_vocab()
    ours, theirs = [p for p in vocabulary if p.startswith("▁") and p[1:] in vocabulary][:2]
    prompt = model.encode("the food is")
    values = []
    for rival in (theirs, theirs[1:], f" {theirs[1:]}"):
        g = whence.generate(
            model, prompt, "occlusion", continuation=[vocabulary[ours]], against=rival, **BARE_ROWS
        )
        assert g.of(0).target.against_index == vocabulary[theirs]
        values.append(g.of(0).value)
    with torch.no_grad():
        start = torch.tensor([[model.decoder_start]])
        ids = torch.tensor([prompt.ids.tolist()])
        row = model.hf(input_ids=ids, decoder_input_ids=start).logits[0, -1]
    expected = float(row[vocabulary[ours]] - row[vocabulary[theirs]])
    np.testing.assert_allclose(values, expected, rtol=1e-5)
    assert abs(float(row[vocabulary[theirs[1:]]] - row[vocabulary[theirs]])) > 1e-3


@pytest.mark.parametrize("name", ["writer", "translator", "gpt2", "llama", "t5", "bart", "marian"])
def test_what_alternatives_name_is_accepted_and_means_that_very_token(name: str) -> None:
    """Would catch a name that is read as another token, such as "ly" for a piece that goes on."""
    bundled = name in ("writer", "translator")
    model = whence.load(name) if bundled else build(name)
    g = whence.generate(model, "the food is great and", "occlusion", max_new_tokens=4, **BARE_ROWS)
    for number, output in enumerate(g.outputs):
        row = model.output_logits(g.passage)[number]
        likeliest = np.argsort(-row, kind="stable")[: len(output.alternatives)].tolist()
        for token, alternative in zip(likeliest, output.alternatives, strict=True):
            assert rival_of(model, g.passage, number, alternative) == (token,)
            assert not alternative.startswith(("▁", "Ġ"))
            # the same name where it is explained
            named = model.resolve(
                Target(at=number, label=int(token)), model.output_logits(g.passage), g.passage
            )
            assert named.label == alternative
    if not bundled:
        return
    wanted = next(name for name in g.outputs[1].alternatives if name.strip() != g.outputs[1].name)
    contrast = whence.generate(
        model,
        "the food is great and",
        "occlusion",
        continuation=g.passage.ids[g.passage.output_place(0) :].tolist(),
        target=1,
        against=list(g.outputs[1].alternatives)[-1],
        evidence=False,
    )
    assert contrast.of(1).target.against == list(g.outputs[1].alternatives)[-1]
    assert wanted


def test_every_name_of_a_token_leads_back_to_it_in_every_place() -> None:
    for name in ("gpt2", "llama", "t5", "bart", "writer", "translator"):
        model = whence.load(name) if name in ("writer", "translator") else build(name)
        for border in ("blank", "start", "inside"):
            names = Placed(model, model.labels, border)  # type: ignore[arg-type]
            listed = [names[i] for i in names]
            assert len(set(listed)) == len(listed)
            assert [names.index_of(one) for one in listed] == [[i] for i in names]


@pytest.mark.parametrize("text", ["é", "Ã", "ï", "å"])
def test_a_letter_is_that_letter_and_not_the_byte_that_is_spelt_so(text: str) -> None:
    """Vocabularies of bytes spell the byte E9 as "é", which itself is two bytes."""
    labels = writer().labels
    assert isinstance(labels, Vocabulary)
    assert writer().tokenizer.decode(labels.index_of(text)) == text


def test_a_word_that_the_vocabulary_lacks_is_not_said_to_lack_a_letter() -> None:
    with pytest.raises(TargetError, match="'Hund' cannot be written with the tokens"):
        whence.generate(whence.load("translator"), "the cat .", against="Hund", **BARE)


def test_where_the_rival_itself_was_written_there_is_no_contrast() -> None:
    with pytest.raises(TargetError, match="needs two, and “little” is what stands there"):
        generated(continuation=" little cat", against="little", outputs=[0])
    with pytest.raises(TargetError, match="needs two, and both are the same tokens: “cat”"):
        generated(continuation=" little cat", against="cat", target="cat")


@pytest.mark.parametrize(
    "options",
    [
        {"against": "little"},
        {"against": ""},
        {"against": "little", "read": "entropy"},
        {"target": "cow", "against": "cow"},
        {"target": "zebra", "against": "cow"},
        {"against": "few", "instead": "many"},
    ],
)
def test_refusing_takes_no_pass(options: dict[str, Any]) -> None:
    passes: list[Any] = []
    hook = writer().hf.register_forward_hook(lambda *_: passes.append(1))
    try:
        with pytest.raises((TargetError, InputError)):
            generated("occlusion", continuation=" little cow", **options)
    finally:
        hook.remove()
    assert not passes


def test_evidence_of_a_contrast_is_about_one_output() -> None:
    one = generated(against="few", target=0, evidence=True, rankings=39)
    assert one.explained == (0,)
    assert one.chosen["gradient-x-input"].target.against == " few"
    assert not one.notes
    for options in ({"against": "few", "outputs": [0]}, {"instead": "few"}, {"against": " few"}):
        same = generated(evidence=True, rankings=39, **options)
        assert same.chosen["gradient-x-input"].target == one.chosen["gradient-x-input"].target
    several = generated(against="few", outputs=[0, 1], evidence=True, rankings=39)
    assert several.chosen["gradient-x-input"].target.against is None
    assert "not about the contrast" in several.notes[-1]


@pytest.mark.parametrize(
    ("this", "that"), [("cow", "dog"), ("cow", "king"), ("and", "hippopotamus")]
)
def test_a_contrast_of_words_is_one_of_their_own_tokens(this: str, that: str) -> None:
    """log P(word) − log P(other), re-derived from the model's logits; and so are its scores.

    Would catch a rival that is asked at every token of the word, whose second one has no such
    rival.
    """
    model, text = writer(), " little cow and"
    ids = model.encode(text).ids.tolist()
    other = model.encode(f" {that}").ids.tolist()
    at = {"cow": 1, "and": 3}[this]
    own = ids[at : at + (2 if this == "cow" else 1)]
    assert len(own) + len(other) > 2

    def chance(tokens: list[int]) -> float:
        before = [*model.encode(PROMPT).ids.tolist(), *ids[:at]]
        with torch.no_grad():
            logits = model.hf(input_ids=torch.tensor([[*before, *tokens]])).logits[0]
        rows = logits.double().log_softmax(-1)
        return sum(float(rows[len(before) - 1 + i, t]) for i, t in enumerate(tokens))

    options: dict[str, Any] = {"continuation": text, "target": this, "against": that}
    methods = ["occlusion", "gradient-x-input", "integrated-gradients"]
    g = generated(methods, **options)
    assert g.chosen is not None
    assert g.contrast is g.chosen
    for name in methods:
        assert g.chosen[name].value == pytest.approx(chance(own) - chance(other), rel=1e-4)
        assert g.chosen[name].units.names[:8] == (*PROMPT.split(), "little")[: len(g.units)]
    # of what is linear, the scores are those of the one less those of the other
    sides = []
    for word, tokens in ((this, own), (that, other)):
        said = [*ids[:at], *tokens]
        whole = {"continuation": said, "target": Target(at=at, until=at + len(tokens))}
        if len(tokens) == 1:
            whole["target"] = Target(at=at, read="log-probability")
        sides.append(generated(methods, evidence=True, rankings=39, **whole).chosen)
        assert word in sides[-1].first.target.label
    for name in ("occlusion", "gradient-x-input"):
        expected = sides[0][name].scores - sides[1][name].scores
        size = np.abs(sides[0][name].scores).sum() + np.abs(sides[1][name].scores).sum()
        np.testing.assert_allclose(g.chosen[name].scores, expected, atol=1e-4 * size)


def test_tokens_with_which_both_begin_cancel_out() -> None:
    """From where they part: " c" is common to both, and its score is in neither."""
    model = writer()
    cow, cat = (model.encode(f" little {word}").ids.tolist() for word in ("cow", "cough"))
    assert cow[1] == cat[1]
    g = generated("occlusion", continuation=cow, target="cow", against="cough")
    with torch.no_grad():
        start = [*model.encode(PROMPT).ids.tolist(), *cow[:2]]
        logits = model.hf(input_ids=torch.tensor([[*start, *cat[2:]]])).logits[0].double()
    rows = logits.log_softmax(-1)
    parts = float(rows[len(start) - 1, cow[2]])
    parts -= sum(float(rows[len(start) - 1 + i, t]) for i, t in enumerate(cat[2:]))
    assert g.chosen["occlusion"].value == pytest.approx(parts, rel=1e-4)


@pytest.mark.parametrize("name", ["t5", "bart"])
def test_a_contrast_of_words_within_what_a_decoder_wrote(name: str) -> None:
    """Units are those of the prompt and of what stands before, on both sides alike."""
    model = build(name)
    g = whence.generate(
        model,
        "the food is great",
        ["occlusion", "gradient-x-input"],
        continuation="the menu is",
        target="menu",
        against="service",
        evidence=True,
        rankings=39,
    )
    a = g.chosen["occlusion"]
    assert a.units.names == ("the", "food", "is", "great", "the")
    assert a.evidence.trials
    again = whence.Generation.from_dict(g.to_dict())
    assert again.to_dict() == g.to_dict()


# ---------------------------------------------------------------------- bad input


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"outputs": []}, "leaves nothing to explain"),
        ({"outputs": [4]}, "output 4 is outside the 4 tokens"),
        ({"outputs": [-1]}, "output -1 is outside"),
        ({"scored": "everything"}, "scored is one of all, prompt"),
        ({"continuation": ""}, "the continuation is empty"),
        ({"continuation": " so", "do_sample": True}, "leave out do_sample"),
        ({"target": 9}, "at=9 is outside"),
        ({"target": "zebra"}, "the word 'zebra' was not written"),
        ({"target": Target(at="so", until=3)}, "until= goes with at= as a number"),
        ({"read": "sideways"}, "a target is read as one of"),
        ({"max_new_tokens": True}, "at least 1"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises((InputError, TargetError), match=says):
        generated(**options)


def test_a_prompt_longer_than_the_window_is_refused_plainly() -> None:
    """Would catch advice (windows, truncation) that generate does not take."""
    with pytest.raises(InputError, match=r"has 402 tokens, .* 256; shorten it") as problem:
        whence.generate(writer(), "word " * 400, **BARE)
    assert "overflow" not in str(problem.value)


def test_a_prompt_that_ends_inside_a_word_is_explained_and_said() -> None:
    result = whence.generate(writer(), "Once upon a ti", continuation="me there", evidence=False)
    assert result.units.names[:5] == ("Once", "upon", "a", "ti", "me")
    assert any("inside a word" in note for note in result.notes)


def test_other_models_are_refused() -> None:
    with pytest.raises(InputError, match="does not write text"):
        whence.generate(whence.load("sentiment"), "a fine film")


# ---------------------------------------------------------------------- this text rather than that


A, B = " little cow", " king of the land"


def whole(text: str, methods: Any, **options: Any) -> Any:
    """The comparison on one continuation, over the prompt."""
    given = {"continuation": text, "scored": "prompt", "evidence": True, "rankings": 39}
    return generated(methods, **given, **options).chosen


def test_a_contrast_of_texts_is_the_difference_of_two_explanations() -> None:
    """For what is linear; would catch a sign, a mean over tokens, or masks that differ.

    The texts have three and four tokens. Integrals are found to their own tolerance, 1 % each.
    """
    methods = ["gradient-x-input", "integrated-gradients", "occlusion", "shapley"]
    contrast = generated(methods, continuation=A, against=B).chosen
    this, that = whole(A, methods), whole(B, methods)
    for name in methods:
        expected = this[name].scores - that[name].scores
        size = np.abs(this[name].scores).sum() + np.abs(that[name].scores).sum()
        tolerance = 0.01 if name == "integrated-gradients" else 1e-5
        np.testing.assert_allclose(contrast[name].scores, expected, atol=tolerance * size)
        assert np.abs(expected + that[name].scores).max() > 10 * tolerance * size
        value = this[name].value - that[name].value
        assert contrast[name].value == pytest.approx(value, rel=1e-5)
    exact = contrast["shapley"]
    assert exact.error.completeness_gap < 1e-5


def test_the_size_of_a_difference_is_no_difference_of_sizes() -> None:
    """Of methods that are not linear the slope of the difference is read; derived from it here."""
    model = writer()
    contrast = generated("gradient-l2", continuation=A, against=B).chosen["gradient-l2"]
    prompt = model.encode(PROMPT)
    embeddings = model.input_embeddings.weight.detach()  # type: ignore[union-attr]
    slopes = 0
    for sign, text in ((1, A), (-1, B)):
        ids = torch.tensor([[*prompt.ids.tolist(), *model.encode(text).ids.tolist()]])
        leaf = embeddings[ids].clone().requires_grad_()
        logits = model.hf(inputs_embeds=leaf).logits.log_softmax(-1)
        first = len(prompt)
        chosen = logits[0, first - 1 : -1].gather(1, ids[0, first:, None]).sum()
        slopes = slopes + sign * torch.autograd.grad(chosen, leaf)[0][0, :first]
    expected = prompt.merge(slopes.norm(dim=-1).numpy(), "norm")
    np.testing.assert_allclose(contrast.scores, expected, rtol=1e-4)
    apart = whole(A, "gradient-l2")["gradient-l2"].scores
    apart = apart - whole(B, "gradient-l2")["gradient-l2"].scores
    assert np.abs(apart - expected).max() > 0.1 * expected.max()


def test_the_scores_of_a_contrast_of_texts_are_shown_and_written() -> None:
    g = generated(
        ["occlusion", "attention-mean"],
        continuation=" little cow",
        against="king of the land",
    )
    assert g.contrast is g.chosen
    (a,) = g.contrast.attributions.values()
    rows = [row for row in g.table() if row["output"] is None]
    assert {row["token"] for row in rows} == {"little cow rather than king of the land"}
    assert [row["score"] for row in rows] == a.scores.tolist()
    strongest = a.units.distinct_names[int(np.abs(a.scores).argmax())]
    both = "the log-probability of “little cow” less that of “king of the land”"
    said = " ".join(str(g).split())
    assert f"Scores of the contrast, {both}: for +, against − occlusion: {strongest} " in said
    assert f'colspan="2">{both}</th>' in g.to_html()
    assert generated("occlusion", continuation=" little cow").contrast is None


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (
            {"target": 0, "against": "few"},
            "the log-probability of each, less that of “few”.",
        ),
        ({"read": "entropy"}, "Scores: the entropy of all that could stand in place of each."),
        (
            {"target": 0, "instead": "cauliflower", "instead_first": True},
            "“cauliflower” is several tokens, and the first of them stands for it: “ca”.",
        ),
    ],
)
def test_what_the_scores_are_about_is_said(options: dict[str, Any], says: str) -> None:
    g = generated("occlusion", max_new_tokens=2, **options)
    assert says in " ".join(str(g).split())
    assert says in g.to_html()


def test_what_has_no_contrast_is_named_with_the_reason() -> None:
    g = generated(continuation=" little cow", outputs=[0, 1, 2], against="few")
    assert g.explained == (0, 1)
    said = " ".join(str(g).split())
    assert "2 of the 3 given tokens were explained" in said
    assert "as the rival is not one token in its place: output 2 (“ow”)" in said


def test_texts_change_sides() -> None:
    """Antisymmetry: why A rather than B is the opposite of why B rather than A."""
    one = generated("occlusion", continuation=A, against=B).chosen["occlusion"]
    other = generated("occlusion", continuation=B, against=A).chosen["occlusion"]
    by_old_name = generated("occlusion", continuation=A, instead_of=B).chosen["occlusion"]
    assert by_old_name.target == one.target
    np.testing.assert_array_equal(by_old_name.scores, one.scores)
    np.testing.assert_allclose(one.scores, -other.scores, atol=1e-6)
    assert (one.target.label, one.target.against) == (A, B)


def test_evidence_of_a_contrast_of_texts_and_its_way_through_json() -> None:
    options = {"continuation": A, "against": B, "evidence": True, "rankings": 39}
    result = generated(["occlusion", "attention-mean", "anchors", "attn-lrp"], **options)
    assert result.chosen["occlusion"].evidence.trials
    assert {"attention-mean", "attn-lrp"} <= set(result.chosen.skipped)
    assert "reads attention" in result.chosen.skipped["attention-mean"]
    again = whence.Generation.from_dict(result.to_dict())
    assert again.chosen["occlusion"].target == result.chosen["occlusion"].target
    assert again.to_dict() == result.to_dict()
    with pytest.raises(Unsupported, match="attention-mean reads attention"):
        generated("attention-mean", **options)


@pytest.mark.parametrize("name", ["t5", "llama"])
def test_contrasts_of_texts_in_other_families(name: str) -> None:
    model = build(name)
    methods = ["gradient-x-input", "occlusion"]
    options: dict[str, Any] = {"evidence": False}
    texts = ("the menu is", "bad")
    contrast = whence.generate(
        model, "the food is great", methods, continuation=texts[0], instead_of=texts[1], **options
    ).chosen
    sides = []
    for text in texts:
        rows = whence.generate(
            model, "the food is great", methods, continuation=text, scored="prompt", **options
        )
        sides.append({method: rows.matrix(method).sum(0) for method in methods})
    for method in methods:
        expected = sides[0][method] - sides[1][method]
        size = np.abs(sides[0][method]).sum() + np.abs(sides[1][method]).sum()
        np.testing.assert_allclose(contrast[method].scores, expected, atol=1e-4 * size)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"against": A}, "both are the same tokens: “little cow”"),
        ({"instead_of": ""}, "the continuation is empty"),
        ({"instead_of": B, "instead": "few"}, "ask the same question: give against= alone"),
        ({"instead_of": B, "against": "few"}, "against= and instead_of= ask the same question"),
        ({"instead_of": B, "target": 0}, "contrasts whole texts; against= goes with target="),
    ],
)
def test_what_is_no_contrast_of_texts_is_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises((InputError, TargetError), match=says):
        generated("occlusion", continuation=A, **options)
