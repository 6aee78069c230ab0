"""Attention of generated tokens, stitched from the steps, is that of one teacher-forced pass."""

from __future__ import annotations

import numpy as np
import pytest

import whence
from tests.choices import at_once
from tests.families import FAMILIES, MAIN, build
from tests.trace.test_untouched import assert_same, snapshot
from whence.core.errors import InputError
from whence.core.maps import GENERATED
from whence.trace.generated import generate

PROMPT = "the food is great but the"
WRITERS = [n for n, f in FAMILIES.items() if "classifier" not in n and "decoder" in f.kinds]


@pytest.mark.parametrize("units", ["token", "word"])
@pytest.mark.parametrize("family", at_once(WRITERS, MAIN))
def test_stitched_steps_equal_one_pass(family: str, units: str) -> None:
    # would catch: a step's row in the wrong place, a sliding window's keys counted from the front,
    # cross attention of the wrong step
    model = build(family)
    stitched = whence.attend(model, PROMPT, generate=6, units=units)
    forced = whence.attend(model, stitched.passage, units="token")
    steps = whence.attend(model, PROMPT, generate=6, units="token")
    for kind in forced.kinds:
        w = steps.weights[kind]
        rows, columns = (
            min(w.shape[2], forced.weights[kind].shape[2]),
            min(w.shape[3], forced.weights[kind].shape[3]),
        )
        np.testing.assert_allclose(
            w[:, :, :rows, :columns], forced.weights[kind][:, :, :rows, :columns], atol=2e-5
        )
        if family != "gpt-oss":  # whose sinks take a part of every row
            np.testing.assert_allclose(stitched.weights[kind].sum(-1), 1, atol=1e-5)
        assert stitched.weights[kind].shape[2:] == (
            len(stitched.from_axis[kind]),
            len(stitched.to_axis[kind]),
        )


def test_more_than_the_prompt_was_seen_and_is_marked() -> None:
    model = build("llama")
    maps = whence.attend(model, PROMPT, generate=5, units="token")
    prompt = len(model.encode(PROMPT))
    assert maps.weights["decoder"].shape[2] == prompt + 4  # the fifth was written and never read
    assert (maps.from_axis["decoder"].part[prompt:] == GENERATED).sum() >= 1
    assert (maps.from_axis["decoder"].part[:prompt] != GENERATED).all()
    assert maps.passage.text.startswith(PROMPT)
    assert maps.is_causal("decoder")


def test_what_is_written_is_what_the_model_itself_writes() -> None:
    import torch

    model = build("gpt2")
    p = model.encode(PROMPT)
    plain = model.hf.generate(
        torch.tensor(p.ids)[None], max_new_tokens=4, do_sample=False, pad_token_id=0
    )[0, len(p) :]
    assert generate(model, p, 4).ids.tolist() == plain.tolist()


@pytest.mark.parametrize("family", ["gpt2", "t5"])
def test_the_model_is_left_as_found(family: str) -> None:
    model = build(family)
    before = snapshot(model.hf)
    generate(model, model.encode(PROMPT), 2)
    assert_same(before, snapshot(model.hf))


def test_what_cannot_be_generated_is_refused() -> None:
    with pytest.raises(InputError, match="does not write"):
        whence.attend(build("bert"), PROMPT, generate=3)
    with pytest.raises(InputError, match="1 or more"):
        generate(build("gpt2"), build("gpt2").encode(PROMPT), 0)
    with pytest.raises(InputError, match="beams"):
        generate(build("gpt2"), build("gpt2").encode(PROMPT), 2, num_beams=2)
    with pytest.raises(InputError, match="either reply"):
        whence.attend(build("t5"), PROMPT, reply="x", generate=3)


def test_no_unit_is_half_the_prompt_s_and_half_the_model_s() -> None:
    model = build("gpt2")  # goes on without a space
    maps = whence.attend(model, PROMPT, generate=6)
    assert maps.passage.units[: len(PROMPT.split())] == model.encode(PROMPT).units
    assert "".join(maps.passage.units) == maps.passage.text
    assert maps.from_axis["decoder"].part.tolist()[: len(PROMPT.split())] == [0] * len(
        PROMPT.split()
    )
    assert GENERATED in maps.from_axis["decoder"].part
