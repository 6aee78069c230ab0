"""A reply: what an encoder-decoder has written so far. The next token of it is explained."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import whence
from tests.families import build
from whence.cli.main import main
from whence.core.errors import InputError
from whence.core.request import Request
from whence.models.model import Model
from whence.views import wording

TEXT, REPLY = "the food is great", "not bad"


@pytest.fixture(scope="module")
def t5() -> Model:
    return build("t5")


def next_logits(model: Model, text: str, reply: str) -> np.ndarray:
    """What the model itself says next, without any of our code between the ids and the logits."""
    read = torch.tensor([model.tokenizer(text).input_ids])
    written = model.tokenizer(reply, add_special_tokens=False).input_ids
    begun = torch.tensor([[model.config.decoder_start_token_id, *written]])
    with torch.inference_mode():
        return model.hf(input_ids=read, decoder_input_ids=begun).logits[0, -1].numpy()


def test_the_next_token_of_the_reply_is_explained(t5: Model) -> None:
    expected = next_logits(t5, TEXT, REPLY)
    a = whence.explain(t5, TEXT, "gradient-x-input", reply=REPLY)
    assert a.target.index == expected.argmax()
    # the enemy leaves the reply out, and explains the first token
    assert a.value == pytest.approx(expected.max(), abs=1e-4)
    assert a.value != pytest.approx(next_logits(t5, TEXT, "").max(), abs=1e-2)
    encoded = whence.explain(t5, t5.encode(TEXT, reply=REPLY), "gradient-x-input")
    np.testing.assert_allclose(a.scores, encoded.scores)
    assert wording.reply(a) == REPLY
    assert f"next token is explained: {REPLY}" in a.to_latex()
    c = whence.compare(t5, TEXT, ["gradient-x-input", "occlusion"], reply=REPLY, evidence=False)
    np.testing.assert_allclose(c["gradient-x-input"].scores, a.scores)
    assert c["occlusion"].value == pytest.approx(a.value, abs=1e-4)


def test_it_is_part_of_the_request() -> None:
    request = Request.of("lime", reply=REPLY)
    assert request.reply == REPLY
    assert Request.from_dict(request.to_dict()) == request


def test_it_survives_saving(t5: Model, tmp_path: Path) -> None:
    a = whence.explain(t5, TEXT, "gradient-l2", reply=REPLY)
    read = whence.read(a.save(tmp_path / "a.json"))
    assert read == a
    assert isinstance(read, whence.Attribution)
    assert wording.reply(read) == REPLY


@pytest.mark.parametrize("family", ["bert", "gpt2", "bart-classifier", "vit"])
def test_other_models_have_none(family: str) -> None:
    model = build(family)
    text = np.zeros((3, 16, 16), dtype=np.float32) if family == "vit" else TEXT
    with pytest.raises(InputError, match="is no such writer") as caught:
        whence.explain(model, text, "gradient-l2", reply=REPLY)
    assert ("at the end of the text" in str(caught.value)) == (family == "gpt2")


def test_a_passage_that_lacks_it_is_an_error(t5: Model) -> None:
    with pytest.raises(InputError, match=r"use model.encode\(text, reply='not bad'\)"):
        whence.explain(t5, t5.encode(TEXT), "gradient-l2", reply=REPLY)


def test_on_the_command_line(t5: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    t5.hf.save_pretrained(tmp_path)
    t5.tokenizer.save_pretrained(tmp_path)
    expected = next_logits(t5, TEXT, REPLY)
    words = ["--model", str(tmp_path), TEXT, "--reply", REPLY, "--json"]
    capsys.readouterr()
    assert main(["explain", "--method", "gradient-l2", "--no-evidence", *words]) == 0
    explained = json.loads(capsys.readouterr().out)
    assert explained["value"] == pytest.approx(expected.max(), abs=1e-4)
    assert explained["passage"]["reply"]["text"] == REPLY
    assert main(["compare", "--methods", "gradient-l2", "--no-evidence", *words]) == 0
    compared = json.loads(capsys.readouterr().out)
    assert compared["passage"]["reply"]["text"] == REPLY
    assert compared["attributions"]["gradient-l2"]["value"] == explained["value"]
    assert main(["predict", *words]) == 0
    label = json.loads(capsys.readouterr().out)["label"]
    assert label == explained["target"]["label"]
