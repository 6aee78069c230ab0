"""whence generate as a user types it."""

from __future__ import annotations

import io
import json
import sys
from inspect import signature
from pathlib import Path

import numpy as np
import pytest

import whence
from tests.models.test_chat import CHAT, chatty
from whence.cli.generate import OWN_NAMES, command
from whence.explaining.rival import BEFORE

PROMPT = "Once upon a time there was a"
QUICK = ("--tokens", "3", "--no-evidence")
FEW = ("--tokens", "4", "--rankings", "39", "--steps", "2")  # of everything, but with evidence


@pytest.fixture(scope="module")
def chat_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model with a chat template, on disk."""
    path = tmp_path_factory.mktemp("models") / "chatty"
    model = chatty("chatml")
    model.hf.save_pretrained(path)
    model.tokenizer.save_pretrained(path)
    return path


@pytest.fixture
def chat_file(tmp_path: Path) -> Path:
    path = tmp_path / "messages.json"
    path.write_text(json.dumps(CHAT))
    return path


# ---------------------------------------------------------------------- what comes out


def test_json_is_what_python_gives(run) -> None:
    done = run("generate", PROMPT, *QUICK, "--methods", "occlusion", "--json")
    assert done.code == 0, done.err
    result = whence.Generation.from_dict(json.loads(done.out))
    model = whence.load("writer")
    own = whence.generate(model, PROMPT, "occlusion", max_new_tokens=3, evidence=False)
    assert result.text == own.text
    np.testing.assert_allclose(result.matrix("occlusion"), own.matrix("occlusion"), rtol=1e-9)
    assert result.chosen is None


def test_methods_are_listed_or_repeated_and_have_settings(run) -> None:
    options = ("--methods", "occlusion,lime", "--method", "gradient-l2", "--set", "lime.samples=50")
    done = run("generate", PROMPT, *QUICK, *options, "--json")
    stored = json.loads(done.out)
    assert list(stored["rows"]) == ["occlusion", "lime", "gradient-l2"]
    assert stored["rows"]["lime"][0]["settings"]["samples"] == 50


def test_evidence_is_about_what_at_names(run) -> None:
    """Would catch evidence of the whole text under the name of one word."""
    done = run("generate", PROMPT, *FEW, "--at", "2", "--json")
    chosen = json.loads(done.out)["chosen"]["attributions"]["occlusion"]
    assert (chosen["target"]["at"], chosen["target"].get("until")) == (2, None)
    assert len(chosen["evidence"]["removals"]) == 2
    span = ("--at", "1", "--until", "3")
    done = run("generate", PROMPT, *FEW, *span, "--json")
    target = json.loads(done.out)["chosen"]["attributions"]["occlusion"]["target"]
    assert (target["at"], target["until"]) == (1, 3)


def test_a_contrast_is_named_in_the_result(run) -> None:
    stored = {}
    for name in ("--against", "--instead"):
        options = ("--at", "0", name, "few", "--no-evidence")
        done = run("generate", PROMPT, "--tokens", "3", *options, "--json")
        stored[name] = json.loads(done.out)
        assert stored[name]["explained"] == [0]
        (row,) = stored[name]["rows"]["occlusion"]
        assert row["target"]["against"] == " few"
    shown = run("generate", "--help").out
    assert "--against" in shown
    assert "--instead" not in shown
    for other in ("run", "evaluate", "audit"):
        shown = run(other, "--help").out
        assert "--against" in shown
        assert "--foil" not in shown


def test_chosen_outputs_the_prompt_alone_and_other_units(run) -> None:
    options = ("--outputs", "0,2-3", "--only-prompt", "--units", "token", "--read", "probability")
    done = run("generate", PROMPT, "--tokens", "5", "--no-evidence", *options, "--json")
    result = whence.Generation.from_dict(json.loads(done.out))
    assert result.explained == (0, 2, 3)
    assert len(result.units) == 8  # those of the prompt
    assert {a.target.read for a in result["occlusion"]} == {"probability"}


def test_drawn_tokens_follow_the_seed_and_options_pass_through(run) -> None:
    draw = ("--sample", "--temperature", "1.5", "--top-k", "50", "--top-p", "0.9")

    def text(*options: str) -> str:
        return json.loads(run("generate", PROMPT, *QUICK, *options, "--json").out)["passage"][
            "pair"
        ]

    first = text(*draw, "--seed", "3")
    assert first == text(*draw, "--seed", "3")
    assert {text(*draw, "--seed", "4"), text(*draw, "--seed", "5")} != {first}
    done = run("generate", PROMPT, *QUICK, "--set", "suppress_tokens=[963]", "--json")
    stored = json.loads(done.out)
    assert stored["decoding"]["suppress_tokens"] == [963]
    assert (
        stored["outputs"][0]["id"]
        != 963
        == json.loads(run("generate", PROMPT, *QUICK, "--json").out)["outputs"][0]["id"]
    )
    beams = json.loads(run("generate", PROMPT, *QUICK, "--beams", "3", "--json").out)
    assert beams["decoding"]["num_beams"] == 3


def test_a_given_continuation_as_text_and_as_ids(run) -> None:
    text = json.loads(
        run("generate", PROMPT, "--continuation", " little cat", "--no-evidence", "--json").out
    )
    assert text["passage"]["pair"] == " little cat"
    ids = ",".join(str(output["id"]) for output in text["outputs"])
    again = json.loads(
        run("generate", PROMPT, "--continuation-ids", ids, "--no-evidence", "--json").out
    )
    assert again["outputs"] == text["outputs"]
    assert again["decoding"] == {"given": "ids"}


def test_a_file_and_a_pipe_are_one_prompt(run, tmp_path: Path) -> None:
    """Would catch a prompt that is cut at its line breaks, as texts of other commands are."""
    lines = "Once upon a time\nthere was a"
    file = tmp_path / "prompt.txt"
    file.write_text(f"{lines}\n")
    from_file = json.loads(run("generate", "--file", file, *QUICK, "--json").out)
    piped = json.loads(run("generate", *QUICK, "--json", stdin=f"{lines}\n".encode()).out)
    assert from_file["passage"]["text"] == piped["passage"]["text"] == lines


def test_files_are_written(run, tmp_path: Path) -> None:
    save, csv, html = tmp_path / "g.json", tmp_path / "g.csv", tmp_path / "g.html"
    files = ("--save", save, "--csv", csv, "--html", html)
    done = run("generate", PROMPT, *QUICK, *files, "--json")
    assert "report written to" in done.err
    page = html.read_text()
    assert page.startswith("<!doctype html>")
    assert "little" in page
    result = whence.read(save)
    assert isinstance(result, whence.Generation)
    assert result.to_dict()["outputs"] == json.loads(done.out)["outputs"]
    rows = csv.read_text().splitlines()
    assert rows[0] == "method,output,token,unit,word,score"
    assert len(rows) == 1 + sum(len(a.scores) for a in result["occlusion"])


class Closed(io.StringIO):
    """A terminal that can no longer be written to."""

    def write(self, text: str) -> int:
        raise OSError("gone")


def test_files_are_written_though_nobody_reads_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Would catch: no page of `whence generate … --html x.html | head`."""
    page = tmp_path / "g.html"
    monkeypatch.setattr(sys, "stdout", Closed())
    with pytest.raises(OSError, match="gone"):
        command([PROMPT], tokens=2, evidence=False, html=page)
    assert page.exists()


def test_the_terminal_shows_what_was_written(run) -> None:
    done = run("generate", PROMPT, *QUICK)
    assert done.code == 0
    assert "little" in done.out
    assert "by occlusion, the strongest sources" in done.out


# ---------------------------------------------------------------------- chats


def test_a_chat_is_read_by_the_models_template(run, chat_folder, chat_file) -> None:
    options = ("--model", chat_folder, "--chat", chat_file, *QUICK, "--json")
    stored = json.loads(run("generate", *options, "--units", "section").out)
    assert [s["name"] for s in stored["passage"]["sections"]] == [
        "system",
        "user 1",
        "assistant",
        "user 2",
    ]
    words = json.loads(run("generate", *options).out)
    assert words["passage"]["kind"] == "word"
    prompt = words["passage"]["ids"][: words["passage"]["written"]]
    assert prompt == chatty("chatml").encode_chat(CHAT).ids.tolist()


def test_a_chat_that_ends_with_an_answer_explains_that_answer(run, chat_folder, tmp_path) -> None:
    """Would catch an answer that is put into the prompt, and a new turn that is written."""
    file = tmp_path / "chat.json"
    file.write_text(json.dumps({"messages": CHAT[:3]}))
    done = run("generate", "--model", chat_folder, "--chat", file, "--no-evidence", "--json")
    assert "last message is taken as what was written" in done.err
    stored = json.loads(done.out)
    assert stored["passage"]["pair"] == CHAT[2]["content"]
    model = chatty("chatml")
    whole = model.tokenizer.apply_chat_template(CHAT[:3])["input_ids"]
    ids = stored["passage"]["ids"]
    assert ids == whole[: len(ids)]


def test_every_option_of_whence_itself_is_named_where_set_refuses_it() -> None:
    assert {*OWN_NAMES, "decoding"} - set(BEFORE) == set(signature(whence.generate).parameters)
    assert {OWN_NAMES[name] for name in BEFORE} == {"--against"}


# ---------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "there is no prompt"),
        (("a b", "c d"), "2 prompts were given"),
        (("a", "--file", "x.txt"), "give a prompt or --file, not both"),
        ((PROMPT, "--continuation", ""), "the continuation is empty"),
        ((PROMPT, "--continuation-ids", "1,x"), "whole numbers with commas"),
        ((PROMPT, "--continuation-ids", "1,-5"), "id -5"),
        ((PROMPT, "--continuation-ids", "99999"), "the id 99999"),
        ((PROMPT, "--continuation-ids", "12,0,13"), "the end of the sequence (id 0) at place 1"),
        ((PROMPT, "--continuation", " a", "--continuation-ids", "3"), "not both"),
        ((PROMPT, "--continuation", " a", "--sample"), "nothing is decoded: leave out do_sample"),
        ((PROMPT, "--tokens", "0"), "at least 1, not 0"),
        ((PROMPT, "--tokens", "900"), "go beyond the model's 256 positions"),
        (("word " * 400,), "the prompt has 402 tokens"),
        ((PROMPT, "--outputs", "2-1"), "ends before it begins"),
        ((PROMPT, "--outputs", "a"), "numbers and ranges"),
        ((PROMPT, *QUICK, "--outputs", "7"), "output 7 is outside the 3 tokens"),
        ((PROMPT, *QUICK, "--at", "9"), "at=9 is outside the 3 tokens"),
        ((PROMPT, *QUICK, "--at", "zebra"), "the word 'zebra' was not written. Written were"),
        ((PROMPT, "--at", "cat", "--until", "3"), "--until goes with --at as a number"),
        ((PROMPT, *QUICK, "--at", "1", "--until", "9"), "until=9 must lie behind at=1"),
        ((PROMPT, *QUICK, "--outputs", "0", "--against", "hippopotamus"), "is 6 tokens, not one"),
        ((PROMPT, *QUICK, "--at", "0", "--against", ""), "names no token"),
        ((PROMPT, *QUICK, "--against", "few", "--instead", "few"), "give against= alone"),
        ((PROMPT, "--temperature", "2"), "add --sample"),
        ((PROMPT, *QUICK, "--set", "frobnicate=3"), "frobnicate"),
        ((PROMPT, *QUICK, "--set", "=3"), "--set takes"),
        ((PROMPT, *QUICK, "--set", "max_new_tokens=2"), "use --tokens"),
        ((PROMPT, *QUICK, "--set", "seed=3"), "use --seed"),
        ((PROMPT, *QUICK, "--set", "prompt=x"), "use the prompt in quotes"),
        ((PROMPT, *QUICK, "--set", "streamer=true"), "streamer=True is not possible"),
        ((PROMPT, *QUICK, "--beams", "0"), "'--beams': Input should be greater than"),
        ((PROMPT, *QUICK, "--sample", "--top-p", "2"), "top_p is a share"),
        ((PROMPT, *QUICK, "--set", "lime.samples=3"), "'lime' is not among the methods"),
        ((PROMPT, *QUICK, "--set", "num_return_sequences=2", "--beams", "2"), "one text at a time"),
        ((PROMPT, "--methods", "nonsense"), "no method named 'nonsense'"),
        ((PROMPT, *QUICK, "--read", "sideways"), "'sideways'"),
        ((PROMPT, "--units", "section"), "--units section is for the messages of a --chat"),
        ((PROMPT, "--model", "sentiment"), "does not write text"),
        ((PROMPT, "--html", "no/such/folder/x.html"), "does not exist"),
    ],
)
def test_a_mistake_is_one_line_and_exit_2(run, arguments: tuple[str, ...], says: str) -> None:
    done = run("generate", *arguments)
    assert done.code == 2, done.err
    assert says in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert not done.out


def test_mistakes_with_chats(run, chat_folder, chat_file, tmp_path) -> None:
    done = run("generate", "--chat", chat_file)
    assert (done.code, "writer has no chat template" in done.err) == (2, True)
    done = run("generate", "hello", "--chat", chat_file, "--model", chat_folder)
    assert (done.code, "give no prompt" in done.err) == (2, True)
    for content, says in (("[", "is no JSON"), ("3", "a list of messages"), ("[]", "no message")):
        bad = tmp_path / "bad.json"
        bad.write_text(content)
        done = run("generate", "--chat", bad, "--model", chat_folder)
        assert done.code == 2
        assert says in done.err


def test_a_word_that_was_written_twice_must_be_told_apart(run) -> None:
    """Would catch numbers of words where numbers of tokens are asked for."""
    text = " cow and a cow and so"
    options = ("--continuation", text, "--rankings", "39", "--steps", "2", "--json")
    done = run("generate", PROMPT, *options, "--at", "cow")
    assert done.code == 2
    assert "the word 'cow' was written 2 times: say at=0, until=2 or at=4, until=6" in done.err
    done = run("generate", PROMPT, *options, "--at", "4", "--until", "6")
    assert json.loads(done.out)["chosen"]["attributions"]["occlusion"]["target"]["label"] == " cow"


def test_two_whole_texts_are_contrasted(run) -> None:
    for name in ("--against", "--instead-of"):
        options = ("--continuation", " little cow", name, " king of the land", "--no-evidence")
        done = run("generate", PROMPT, *options, "--json")
        (attribution,) = json.loads(done.out)["chosen"]["attributions"].values()
        assert attribution["target"]["against"] == " king of the land"
    assert len(attribution["scores"]) == 7
    done = run("generate", PROMPT, *options, "--at", "0")
    assert (done.code, "against= goes with target=" in done.err) == (2, True)
