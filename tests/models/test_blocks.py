"""The blocks of every family are found, in the order in which they run."""

from __future__ import annotations

import pytest

from tests.families import FAMILIES, build
from whence.core.errors import InputError, Unsupported
from whence.models.blocks import block_at, blocks_of, side_of

WITH_BLOCKS = [name for name in FAMILIES if name != "single-layer"]


@pytest.mark.parametrize("name", WITH_BLOCKS)
def test_every_family_has_as_many_blocks_as_its_configuration_says(name: str) -> None:
    # would catch: the two halves of a T5 block taken for blocks; ALBERT's one module taken for one
    # layer; both sides of an encoder-decoder in one list
    model = build(name)
    assert len(blocks_of(model)) == 2
    if model.is_encoder_decoder:
        encoder, decoder = blocks_of(model, "encoder"), blocks_of(model, "decoder")
        assert len(decoder) == 2
        assert not set(encoder) & set(decoder)


def test_a_block_that_runs_twice_stands_there_twice() -> None:
    first, second = blocks_of(build("albert"))
    assert first is second


@pytest.mark.parametrize("layer", [2, -1, 99])
def test_a_layer_that_does_not_exist_is_refused_with_their_number(layer: int) -> None:
    with pytest.raises(InputError, match=f"no layer {layer}: BertFor.* has 2 layers, 0 to 1"):
        block_at(build("bert"), layer)


def test_a_layer_is_a_whole_number() -> None:
    with pytest.raises(InputError, match="whole number, not True"):
        block_at(build("bert"), True)


def test_a_side_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InputError, match="has no decoder"):
        side_of(build("bert"), "decoder")
    with pytest.raises(InputError, match="encoder, decoder, not 'cross'"):
        blocks_of(build("t5"), "cross")


def test_a_model_without_blocks_is_refused() -> None:
    with pytest.raises(Unsupported, match="no list of blocks"):
        blocks_of(build("single-layer"))
