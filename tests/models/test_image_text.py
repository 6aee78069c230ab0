"""Models that read a text with an image.

LXMERT reads regions, in two streams; ViLT reads patches, in one.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as tf

import whence
from tests import tokenizers as tok
from tests.families import LABELS, SMALL
from tests.trace.test_untouched import assert_same, snapshot
from whence.core.errors import InputError, LoadError, Unsupported
from whence.core.passage import IMAGE, Passage, Regions, truncate, windows
from whence.models.model import Model
from whence.trace.trace import trace

QUESTION = "is the food great"


def _wide(hf: Any) -> Any:
    """Weights so wide that attention is far from uniform, in the precision that is compared."""
    with torch.no_grad():
        for parameter in hf.parameters():
            if parameter.ndim >= 2:
                parameter.mul_(4.0)
    return hf.double().eval()


def lxmert(seed: int = 0, **more: Any) -> Model:
    torch.manual_seed(seed)
    sizes = {k: v for k, v in SMALL.items() if k != "num_hidden_layers"}
    layers = {"l_layers": 2, "r_layers": 1, "x_layers": 3, **more}
    config = tf.LxmertConfig(
        **sizes, **layers, vocab_size=len(tok.wordpiece()), max_position_embeddings=16,
        visual_feat_dim=6, num_qa_labels=3,
        id2label=LABELS["id2label"], label2id=LABELS["label2id"],
    )  # fmt: skip
    return whence.load(_wide(tf.LxmertForQuestionAnswering(config)), tokenizer=tok.wordpiece())


def vilt(seed: int = 0, **more: Any) -> Model:
    torch.manual_seed(seed)
    config = tf.ViltConfig(
        **SMALL,
        **LABELS,
        vocab_size=len(tok.wordpiece()),
        max_position_embeddings=16,
        image_size=32,
        patch_size=8,
        pad_token_id=0,
        **more,
    )
    hf = tf.ViltForQuestionAnswering(config)
    with torch.no_grad():
        # zeros at first: every order of the patches would look the same
        hf.vilt.embeddings.position_embeddings.normal_()
    kind: Any = tf.ViltImageProcessor
    processor = kind(size={"shortest_edge": 16}, size_divisor=8)
    return whence.load(_wide(hf), tokenizer=tok.wordpiece(), image_processor=processor)


def regions(count: int = 4, seed: int = 0) -> Regions:
    rng = np.random.default_rng(seed)
    return Regions(
        rng.normal(size=(count, 6)).astype(np.float32), rng.random((count, 4)).astype(np.float32)
    )


def picture(high: int = 40, wide: int = 60, seed: int = 0) -> Any:
    image = pytest.importorskip("PIL.Image")
    return image.fromarray(
        np.random.default_rng(seed).integers(0, 255, (high, wide, 3), dtype=np.uint8)
    )


def test_the_units_are_words_and_then_regions() -> None:
    model = lxmert()
    assert (model.task, list(model.labels.values())) == ("image-text", ["bad", "fair", "good"])
    passage = model.encode(QUESTION, image=regions())
    assert passage.units == (
        "is",
        " the",
        " food",
        " great",
        " region 0",
        " region 1",
        " region 2",
        " region 3",
    )
    assert passage.names[-1] == "region 3"
    assert passage.tokens[-4:] == ("region 0", "region 1", "region 2", "region 3")
    assert passage.unit_spans[-1] == (IMAGE, 3, 4)
    assert passage.parts[0] == -1
    assert passage.parts[-4:].tolist() == [IMAGE] * 4
    assert passage.pictured.tolist() == [False] * 4 + [True] * 4
    text, image = passage.halves()
    assert text.units == ("is", " the", " food", " great")
    assert image.units == (" region 0", " region 1", " region 2", " region 3")
    assert (len(text) + len(image), len(image)) == (len(passage), 4)


def test_the_units_are_words_and_then_patches() -> None:
    model = vilt()
    passage = model.encode(QUESTION, image=picture())
    assert passage.pixels is not None
    assert passage.pixels.shape == (3, 16, 24)
    assert passage.units[4:] == (
        " patch 0,0",
        " patch 0,1",
        " patch 0,2",
        " patch 1,0",
        " patch 1,1",
        " patch 1,2",
    )
    assert passage.tokens[-7:] == ("[IMAGE]", "0,0", "0,1", "0,2", "1,0", "1,1", "1,2")
    assert passage.special.sum() == 3  # [CLS] [SEP] [IMAGE]
    assert passage.pictured.sum() == 6


@pytest.mark.parametrize("build", [lxmert, vilt])
def test_a_passage_survives_json_and_knows_its_picture(build: Any) -> None:
    model = build()
    given = [(regions(seed=s) if build is lxmert else picture(seed=s)) for s in (0, 1)]
    one, other = (model.encode(QUESTION, image=g) for g in given)
    back = Passage.from_dict(json.loads(json.dumps(one.to_dict())))
    assert back == one
    assert back.digest == one.digest
    assert one != other
    assert one.digest != other.digest  # else two pictures would get the same random numbers


def test_a_result_survives_json() -> None:
    a = whence.explain(
        lxmert(), lxmert().encode(QUESTION, image=regions()), "random", evidence=False
    )
    assert whence.Attribution.from_dict(json.loads(json.dumps(a.to_dict()))) == a


def test_regions_are_frozen_copies() -> None:
    features, boxes = np.ones((2, 6), dtype=np.float32), np.zeros((2, 4), dtype=np.float32)
    made = Regions(features, boxes)
    features[:] = 7
    assert made.features.max() == 1
    with pytest.raises(ValueError, match="read-only"):
        made.features[0, 0] = 2


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (None, "reads a text with an image: model.encode"),
        ({"features": np.zeros((2, 6))}, "regions have 'features' and 'boxes'; got 'features'"),
        (
            {"features": np.zeros((2, 5)), "boxes": np.zeros((2, 4))},
            r"features are \[region, 6\] and boxes \[region, 4\]",
        ),
        ({"features": np.zeros((2, 6)), "boxes": np.zeros((3, 4))}, r"got \(2, 6\) and \(3, 4\)"),
        ({"features": np.zeros((0, 6)), "boxes": np.zeros((0, 4))}, r"got \(0, 6\)"),
        ({"features": np.zeros((2, 6)), "boxes": np.full((2, 4), 80.0)}, "from 0 to 1"),
        ({"features": np.full((2, 6), np.nan), "boxes": np.zeros((2, 4))}, "finite"),
        ({"features": [["a"]], "boxes": [["b"]]}, "arrays of numbers"),
        (np.zeros((3, 16, 16)), "reads the regions that a detector found, not a ndarray"),
    ],
)
def test_regions_that_do_not_fit_are_refused(image: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        lxmert().encode(QUESTION, image=image)


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (None, "reads a text with an image: model.encode"),
        (regions(), "reads pixels, not regions"),
        (np.zeros((3, 12, 16)), "multiples of the 8 × 8 patches; got 12 × 16"),
        (np.zeros((1, 16, 16)), "with 3 channels"),
        ("/none.png", "cannot read the image"),
    ],
)
def test_images_that_do_not_fit_are_refused(image: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        vilt().encode(QUESTION, image=image)


def test_only_such_a_model_takes_an_image_beside_the_text() -> None:
    with pytest.raises(InputError, match="reads no image beside a text"):
        whence.load("sentiment").encode("good", image=picture())
    with pytest.raises(InputError, match="reads a text with an image"):
        lxmert().predict([QUESTION])
    text_alone, _ = lxmert().encode(QUESTION, image=regions()).halves()
    with pytest.raises(InputError, match="reads a text with an image"):
        vilt().logits([text_alone])


def test_the_text_s_positions_are_the_limit_and_not_the_picture_s() -> None:
    model = lxmert()
    # LXMERT's position table has a padding row and counts it as a position all the same
    assert model.limit == 16
    full = "the " * 14
    passage = model.encode(full, image=regions(9))
    assert len(passage) == 16 + 9
    assert len(whence.explain(model, passage, "random", evidence=False).scores) == 14 + 9
    with pytest.raises(InputError, match="positions end at 16"):
        model.encode(full + "the", image=regions())
    with pytest.raises(InputError, match="cannot be cut into windows"):
        model.encode(full + "the", image=regions(), overflow="window")
    cut = model.encode(full + "the", image=regions(), overflow="truncate")
    assert (cut.dropped > 0, cut.units[-1]) == (True, " region 3")
    assert truncate(passage, 100) is passage
    with pytest.raises(InputError, match="only a single text"):
        windows(passage, 8)


def test_lxmert_says_what_it_says_alone() -> None:
    model = lxmert()
    passage = model.encode(QUESTION, image=regions())
    inputs = tok.wordpiece()(QUESTION, return_tensors="pt")
    with torch.no_grad():
        features, boxes = (
            torch.tensor(x, dtype=torch.float64)[None]
            for x in (regions().features, regions().boxes)
        )
        out = model.hf(**inputs, visual_feats=features, visual_pos=boxes)
    np.testing.assert_allclose(
        model.logits([passage])[0], out.question_answering_score[0].numpy(), atol=1e-12
    )
    assert model.predict([passage])[0].label in ("bad", "fair", "good")


def test_vilt_says_what_it_says_alone_and_keeps_the_caller_s_random_numbers() -> None:
    model = vilt()
    passage = model.encode(QUESTION, image=picture())
    assert passage.pixels is not None
    inputs = tok.wordpiece()(QUESTION, return_tensors="pt")
    with torch.no_grad():
        pixels = torch.from_numpy(passage.pixels.copy())[None]
        alone = (
            model.hf(**inputs, pixel_values=pixels, pixel_mask=torch.ones(1, 16, 24))
            .logits[0]
            .numpy()
        )
    before = torch.get_rng_state()
    found = model.logits([passage])[0]
    assert torch.equal(torch.get_rng_state(), before)
    np.testing.assert_allclose(found, alone, atol=1e-12)
    # would catch: patches in the order that the model draws, which differs from run to run
    first = model.batch([passage]).inputs["image_embeds"]
    for place in range(6):
        row, column = divmod(place, 3)
        other = passage.pixels.copy()
        other[:, 8 * row : 8 * row + 8, 8 * column : 8 * column + 8] += 1
        torch.manual_seed(place)  # another draw
        moved = model.batch([model.encode(QUESTION, image=other)]).inputs["image_embeds"] - first
        assert moved.abs().sum((0, 2)).nonzero().flatten().tolist() == [1 + place]


def test_patches_that_vilt_draws_at_random_are_refused() -> None:
    model = vilt(max_image_length=4)
    with pytest.raises(Unsupported, match="draws 4 of the image's 6 patches at random"):
        model.logits([model.encode(QUESTION, image=picture())])


def test_passages_of_several_sizes_do_not_share_a_batch_but_may_share_a_call() -> None:
    for model, given in (
        (lxmert(), [regions(4), regions(2, 1)]),
        (vilt(), [picture(), picture(30, 30, 1)]),
    ):
        passages = [
            model.encode(QUESTION, image=given[0]),
            model.encode("bad prices", image=given[1]),
        ]
        together = model.logits(passages)
        for row, passage in zip(together, passages, strict=True):
            np.testing.assert_allclose(row, model.logits([passage])[0], atol=1e-12)
        with pytest.raises(Unsupported, match="one at a time"):
            trace(model, passages)


def test_both_are_loaded_from_folders(tmp_path: Path) -> None:
    for name, model in (("lxmert", lxmert()), ("vilt", vilt())):
        model.hf.save_pretrained(tmp_path / name)
        with pytest.raises(LoadError, match="has no tokenizer"):
            whence.load(tmp_path / name)
        model.tokenizer.save_pretrained(tmp_path / name)
        if model.image_processor is not None:
            model.image_processor.save_pretrained(tmp_path / name)
        loaded = whence.load(tmp_path / name, dtype="float64")
        assert (loaded.task, loaded.fingerprint) == ("image-text", model.fingerprint)
        assert (loaded.image_processor is None) == (name == "lxmert")
    assert np.isfinite(loaded.logits([loaded.encode(QUESTION, image=picture())])).all()


def test_other_heads_of_the_two_families_are_refused_by_name() -> None:
    config = tf.ViltConfig(**SMALL, vocab_size=len(tok.wordpiece()), image_size=32, patch_size=8)
    for head in (tf.ViltForMaskedLM, tf.ViltModel):
        with pytest.raises(Unsupported, match="only the one that answers questions"):
            whence.load(head(config), tokenizer=tok.wordpiece())
    with pytest.raises(LoadError, match="pass its tokenizer"):
        whence.load(vilt().hf)


def test_the_model_is_left_as_found() -> None:
    for model, image in ((lxmert(), regions()), (vilt(), picture())):
        model.hf.train()
        before = snapshot(model.hf)
        model.logits([model.encode(QUESTION, image=image)])
        assert_same(before, snapshot(model.hf))
