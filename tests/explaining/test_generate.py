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
from whence.models.model import Model
from whence.models.rivals import rival_of
from whence.models.writing import written_after

PROMPT = "Once upon a time there was a"
# where there is evidence: both ends and the middle of its curves
BARE: dict[str, Any] = {"max_new_tokens": 4, "evidence": False, "steps": 2}


@cache
def writer() -> Model:
    return whence.load("writer")


def generated(*arguments: Any, **options: Any) -> Any:
    return whence.generate(writer(), PROMPT, *arguments, **{**BARE, **options})


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
    contrast = generated(instead="few", **where).of(0)
    assert contrast.target.against_index == few
    written = generated(**where).of(0).scores
    passage = written_after(writer(), writer().encode(PROMPT), [few])
    rival = whence.generate(
        writer(), PROMPT, continuation=[few], evidence=False, outputs=[0], read="logit"
    ).of(0)
    assert passage.outputs == 1
    np.testing.assert_allclose(contrast.scores, written - rival.scores, rtol=1e-3, atol=1e-5)
    assert contrast.method == name


def test_a_rival_is_written_as_its_place_has_it() -> None:
    model = writer()
    text = written_after(model, model.encode("Then"), model.encode(" she said.").ids)
    assert [text.output_text(i) for i in range(3)] == [" she", " said", "."]
    labels = model.labels
    assert labels[rival_of(model, text, 0, "he")] == " he"
    assert labels[rival_of(model, text, 2, "!")] == "!"
    assert labels[rival_of(model, text, 1, ",")] == ","  # no token is " ,"
    assert rival_of(model, text, 0, 77) == 77
    assert rival_of(model, text, 0, "<|endoftext|>") == model.tokenizer.eos_token_id
    assert labels[rival_of(model, text, 0, "hippopotamus", first=True)] == " h"
    with pytest.raises(TargetError, match=r"is 6 tokens, not one: ' h', 'ipp'.*instead_first"):
        rival_of(model, text, 0, "hippopotamus")
    # a piece inside of a word takes no space
    inside = written_after(model, model.encode("a"), model.encode(" cow").ids)
    assert inside.output_text(1) == "ow"
    assert labels[rival_of(model, inside, 1, "at")] == "at"


def test_rivals_of_sentencepiece_vocabularies() -> None:
    """Would catch a raw piece, "on", where the vocabulary has the word as "▁on"."""
    model = build("t5")
    vocabulary = model.tokenizer.get_vocab()
    words = [p for p in vocabulary if p.startswith("▁") and p[1:] in vocabulary and p[1:].isalpha()]
    text = written_after(model, model.encode("the food"), model.encode("is the").ids[:-1])
    spaced = next(i for i in range(text.outputs) if text.output_text(i).startswith(" "))
    found = 0
    for piece in words:
        pieces = model.backend.encode(f"the {piece[1:]}", add_special_tokens=False).ids
        if pieces[-1] == vocabulary[piece]:
            assert rival_of(model, text, spaced, piece[1:]) == vocabulary[piece]
            found += 1
        else:  # the tokenizer spells it otherwise
            with pytest.raises(TargetError, match="tokens, not one"):
                rival_of(model, text, spaced, piece[1:])
    assert found


def test_where_the_rival_itself_was_written_there_is_no_contrast() -> None:
    """Nor inside of a word, where the rival would be other tokens."""
    result = generated(continuation=" little cow and little", instead="little", evidence=False)
    names = [result.outputs[number].name for number in result.explained]
    assert names == [" c", " and"]
    with pytest.raises(TargetError, match="a contrast needs two labels"):
        generated(continuation=" little cat", instead="little", outputs=[0])


def test_evidence_of_a_contrast_is_about_one_output() -> None:
    one = generated(instead="few", target=0, evidence=True, rankings=39)
    assert one.explained == (0,)
    assert one.chosen["gradient-x-input"].target.against == " few"
    assert not one.notes
    same = generated(instead="few", outputs=[0], evidence=True, rankings=39)
    assert same.chosen["gradient-x-input"].target == one.chosen["gradient-x-input"].target
    several = generated(instead="few", evidence=True, rankings=39)
    assert several.chosen["gradient-x-input"].target.against is None
    assert "not about the contrast" in several.notes[-1]


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
    contrast = generated(methods, continuation=A, instead_of=B).chosen
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
    contrast = generated("gradient-l2", continuation=A, instead_of=B).chosen["gradient-l2"]
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
        instead_of=" king of the land",
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
            {"target": 0, "instead": "few"},
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
    g = generated(continuation=" little cow", target="cow", instead="few")
    assert g.explained == (0, 1)
    said = " ".join(str(g).split())
    assert "2 of the 3 written tokens were explained" in said
    assert "as the rival is not one token in its place: output 2 (“ow”)" in said


def test_texts_change_sides() -> None:
    """Antisymmetry: why A rather than B is the opposite of why B rather than A."""
    one = generated("occlusion", continuation=A, instead_of=B).chosen["occlusion"]
    other = generated("occlusion", continuation=B, instead_of=A).chosen["occlusion"]
    np.testing.assert_allclose(one.scores, -other.scores, atol=1e-6)
    assert (one.target.label, one.target.against) == (A, B)


def test_evidence_of_a_contrast_of_texts_and_its_way_through_json() -> None:
    options = {"continuation": A, "instead_of": B, "evidence": True, "rankings": 39}
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
        ({"instead_of": A}, "both continuations are the same tokens"),
        ({"instead_of": ""}, "the continuation is empty"),
        ({"instead_of": B, "instead": "few"}, "leave out instead= and target="),
        ({"instead_of": B, "target": 0}, "leave out instead= and target="),
    ],
)
def test_what_is_no_contrast_of_texts_is_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        generated("occlusion", continuation=A, **options)
