"""What is said of a text that a model wrote, or that was given: who wrote it, and which tokens."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np
import pytest

import whence
from tests.families import build
from whence.core.answer import answer
from whence.core.generation import Generation
from whence.models.model import Model
from whence.models.writing import written_after
from whence.views.answering import answer_sentences
from whence.views.generation import rows_of

BARE: dict[str, Any] = {"evidence": False, "max_new_tokens": 5}
STORY = "Once upon a time there was a"
LAMPS, PUSH = "the lamps stay under the teacher .", "they push the cow ."
# signs by which vocabularies write a blank, and a blank that is told as if it were a word
RAW = re.compile(r"[▁Ġ]|“ “|“\s*”|‘\s*’|' '")


@cache
def model_of(name: str) -> Model:
    return whence.load(name) if name in ("writer", "translator") else build(name)


def sentences_of(model: Model, prompt: str, **options: Any) -> list[tuple[Any, Any, str]]:
    """Every written token, its attribution, and the first sentence of its answer."""
    g = whence.generate(model, prompt, "gradient-l2", **{**BARE, **options})
    told = []
    for number, output in enumerate(g.outputs):
        a = g.of(number)
        told.append((output, a, answer_sentences(answer({a.method: a}))[0]))
    return told


# ---------------------------------------------------------------------- which token was likelier


@pytest.mark.parametrize("name", ["t5", "marian", "bart", "gpt2", "writer", "translator"])
def test_what_was_written_greedily_is_never_told_that_another_was_likelier(name: str) -> None:
    """Would catch a runner-up that is sought by its spelling: "▁Sp" beside the written "Sp"."""
    differently_spelt = 0
    for prompt in ("the food is great", "the menu", "and the service is not bad"):
        for output, a, said in sentences_of(model_of(name), prompt):
            assert said.startswith("The model wrote “")
            if output.probability < max(output.alternatives.values()):
                continue  # the model's own files forbid the likeliest
            assert "likelier was" not in said
            differently_spelt += a.target.label != output.name
    if name == "t5":
        assert differently_spelt  # else nothing was tried


@pytest.mark.parametrize("name", ["t5", "writer"])
def test_what_was_likelier_than_a_given_token_is_told(name: str) -> None:
    model = model_of(name)
    (output, a, _), *_ = sentences_of(model, "the food is great")
    row = model.output_logits(a.passage)[0]
    second = int(np.argsort(-row)[1])
    (given, b, said), *_ = sentences_of(model, "the food is great", continuation=[second])
    assert given.probability < output.probability
    assert said.startswith("The text goes on with “")
    assert "likelier was “" in said
    assert f"likelier was “{a.target.label.strip()}” (" in said
    assert b.prediction[b.target.label] == pytest.approx(given.probability)


def test_saved_results_of_before_say_nothing_false() -> None:
    """They name tokens as the vocabulary does, and do not say who wrote the text."""
    model = model_of("t5")
    g = whence.generate(model, "the food is great", "gradient-l2", **BARE)
    stored = g.to_dict()
    del stored["passage"]["by_model"]
    ids = model.tokenizer.convert_ids_to_tokens
    for row in stored["rows"]["gradient-l2"]:
        label = ids(row["target"]["index"])
        row["prediction"] = {str(label): next(iter(row["prediction"].values()))}
        row["target"]["label"] = label
    old = Generation.from_dict(stored)
    for number in old.explained:
        a = old.of(number)
        said = answer_sentences(answer({a.method: a}))[0]
        assert "likelier" not in said
        assert "wrote" not in said
    assert str(old).startswith("Why did the model write “")  # its decoding says that it did


# ---------------------------------------------------------------------- what was asked comes first


def test_the_first_line_is_the_question_with_what_was_written() -> None:
    writer = model_of("writer")
    g = whence.generate(writer, STORY, **BARE)
    written = " ".join(g.text.split())
    first = str(g).splitlines()[0]
    assert written in " ".join(str(g).split())
    assert first.startswith("Why did the model write “")
    page = g.to_html()
    assert page.index("Why did the model write “") < page.index("Answer</h2>")


def test_a_text_that_was_given_was_not_written() -> None:
    writer = model_of("writer")
    options: dict[str, Any] = {"continuation": " little cow", "rankings": 39, "steps": 2}
    g = whence.generate(writer, STORY, "occlusion", **options)
    said = " ".join(str(g).split())
    assert said.startswith("Why does the text go on with “little cow”?")
    assert g.chosen is not None
    page = g.to_html()
    for told in (said, str(g.chosen.answer), page):
        assert "The model wrote" not in told
        assert "Why did the model write" not in told
    assert "given prob. rests on" in said
    assert str(g.chosen.answer).startswith("The text goes on with “little cow” (")


def test_with_a_rival_the_answer_speaks_of_the_contrast() -> None:
    """Would catch evidence about all that was written, under the name of a contrast."""
    writer = model_of("writer")
    for text, rival, target in (
        (" little cow", "dog", "cow"),
        (" little cow", "few", 0),
        (" little cow", "king of the land", None),
        (" little", "few", None),
    ):
        g = whence.generate(
            writer,
            STORY,
            "occlusion",
            continuation=text,
            against=rival,
            target=target,
            rankings=39,
            steps=2,
        )
        this = {"cow": "cow", 0: "little"}.get(target, text.strip())  # type: ignore[arg-type]
        both = f"“{this}” rather than “{rival}”"
        first = " ".join(str(g).split()).split("?")[0]
        assert first == f"Why {both}"
        assert g.chosen is not None
        assert g.chosen.first.target.against is not None
        named = [s for s in answer_sentences(g.chosen.answer) if "speak" in s]
        assert all(both in sentence for sentence in named)
        assert "for what was" not in " ".join(named)


# ---------------------------------------------------------------------- nothing raw is shown


def shown_of(model: Model, prompt: str, **options: Any) -> list[str]:
    """All that a person reads of a generation: terminal, page, table and answer."""
    g = whence.generate(model, prompt, ["gradient-l2", "occlusion"], **{**BARE, **options})
    texts = [str(g), g.to_html(), repr(g), *(str(row["word"]) for row in g.table())]
    texts.append("\n".join(name for output in g.outputs for name in output.alternatives))
    for number in g.explained:
        a = g.of(number)
        texts.append(str(answer({a.method: a})))
    return texts


@pytest.mark.parametrize("name", ["writer", "translator", "t5", "marian", "bart", "gpt2"])
@pytest.mark.parametrize("prompt", [f"{LAMPS} {PUSH}", "the food  is\ngreat , 🙂 and"])
def test_no_sign_of_a_vocabulary_and_no_bare_blank_is_shown(name: str, prompt: str) -> None:
    for text in shown_of(model_of(name), prompt, max_new_tokens=6):
        assert not RAW.findall(re.sub(r"<(script|style).*?</\1>", "", text, flags=re.S))
        assert not re.search("[▁Ġ]", text)
        assert text.strip()


@pytest.mark.parametrize("name", ["writer", "translator", "t5"])
def test_nor_of_what_depends_on_a_context(name: str) -> None:
    use = whence.context(
        model_of(name), PUSH, LAMPS, separator=" ", max_new_tokens=6, evidence=False, least=0.0
    )
    columns = [str(row["instead"]) for row in use.table()]
    for text in (str(use), use.to_html(), *columns):
        assert not RAW.findall(re.sub(r"<(script|style).*?</\1>", "", text, flags=re.S))
        assert not re.search("[▁Ġ]", text)


def test_of_a_given_output_no_view_of_its_context_says_that_it_was_written() -> None:
    options: dict[str, Any] = {"separator": " | ", "evidence": False}
    text = "elas pussen la vaka ."
    use = whence.context(model_of("translator"), PUSH, LAMPS, continuation=text, **options)
    assert "1 of 5 given words depends on the context: “elas”" in " ".join(str(use).split())
    # without the words that every page explains
    page = re.sub(r"<(script|style|dd).*?</\1>", "", use.to_html(), flags=re.S)
    for told in (str(use), page):
        assert "written" not in re.sub('would be written|class="[^"]*"', "", told)
    use = whence.context(model_of("translator"), PUSH, LAMPS, max_new_tokens=6, **options)
    assert "1 of 5 written words" in " ".join(str(use).split())


def test_a_token_that_is_white_space_is_told_by_its_sign() -> None:
    writer = model_of("writer")
    newline = writer.labels.index_of("\n")  # type: ignore[attr-defined]
    (_, _, said), *_ = sentences_of(writer, STORY, continuation=newline)
    assert said.startswith("The text goes on with “⏎”")


# ---------------------------------------------------------------------- letters of several tokens

ABROAD = " naïve — he said “über” 😀 東京 ."


def letters_beyond(text: str) -> set[str]:
    """Its letters that no ASCII keyboard has."""
    return {c for c in text if c.isalpha() and not c.isascii()}


def test_a_character_of_several_tokens_is_told_as_that_character() -> None:
    """Would catch the letters by which vocabularies of bytes spell each byte: “naÃïve”."""
    g = whence.generate(
        model_of("writer"), STORY, "gradient-l2", **{**BARE, "continuation": ABROAD}
    )
    pieces = [output for output in g.outputs if re.fullmatch(r" ?(<0x..>)+", output.name)]
    assert pieces  # else nothing was tried
    assert "".join(row.name for row in rows_of(g, "gradient-l2")) == ABROAD.replace(" ", "")
    assert g.passage.outputs_text(range(len(g.outputs))) == ABROAD
    for text in (str(g), g.to_html(), *(str(row["word"]) for row in g.table())):
        body = re.sub(r"<(script|style).*?</\1>", "", text, flags=re.S)
        assert letters_beyond(body) <= letters_beyond(ABROAD)


@pytest.mark.parametrize("rival", ["über", "naïve", "é", "東", "—no"])
def test_a_rival_is_named_as_it_was_typed(rival: str) -> None:
    writer = model_of("writer")
    options: dict[str, Any] = {**BARE, "target": "cow", "rankings": 39, "evidence": True}
    text = " little cow"
    g = whence.generate(writer, STORY, "occlusion", continuation=text, against=rival, **options)
    assert str(g).startswith(f"Why “cow” rather than “{rival}”?")
    assert g.contrast is not None
    ids = g.contrast.first.target.against_ids
    assert ids is not None
    assert writer.tokenizer.decode(list(ids)).strip() == rival


def test_a_part_of_a_character_is_cut_off_with_its_own_name_only() -> None:
    writer = model_of("writer")
    (first, *others) = writer.backend.encode("é", add_special_tokens=False).ids
    whole = written_after(writer, writer.encode(STORY), [first, *others, first])
    both = range(1 + len(others))
    assert whole.outputs_text(both) == "é"
    assert whole.outputs_text(range(whole.outputs)) == f"é{whole.output_text(whole.outputs - 1)}"
    assert whole.output_text(0) == "<0xC3>"


def test_context_names_words_by_their_characters() -> None:
    use = whence.context(
        model_of("writer"),
        "He was so",
        "Anna is naïve.",
        continuation=" naïve.",
        evidence=False,
        least=0.0,
    )
    for text in (str(use), use.to_html()):
        body = re.sub(r"<(script|style).*?</\1>", "", text, flags=re.S)
        assert letters_beyond(body) <= {"ï"}
