"""Explaining models of text and image, against the authors' rules written out over maps that a
plain run gave.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import whence
from tests.models.test_image_text import QUESTION, lxmert, picture, regions, vilt
from tests.trace.test_relevance import bar_by_loops
from tests.trace.test_untouched import assert_same, snapshot
from whence.core.errors import Unsupported
from whence.core.passage import Passage
from whence.core.registry import Needs
from whence.models.model import Model
from whence.trace.lxmert import axes, memberships
from whence.trace.trace import trace

KINDS = ["language", "vision", "language-to-vision", "vision-to-language"]


def lxmert_by_hand(
    model: Model, passage: Passage, label: int, monkeypatch: pytest.MonkeyPatch
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Weights and gradients of every softmax of a plain run, in the order of the model's source: no
    dropout hook, no trace.
    """
    kept: list[Tensor] = []
    softmax = torch.nn.functional.softmax

    def recorded(*args: Any, **named: Any) -> Tensor:
        kept.append(softmax(*args, **named))
        kept[-1].retain_grad()
        return kept[-1]

    with monkeypatch.context() as patched:
        patched.setattr(torch.nn.functional, "softmax", recorded)
        out = model.hf(**model.batch([passage]).inputs)
    out.question_answering_score[0, label].backward()
    model.hf.zero_grad()
    return [
        (m[0].detach().numpy(), np.zeros(m.shape[1:]) if m.grad is None else m.grad[0].numpy())
        for m in kept
    ]


def averaged(weights: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    total = np.zeros(weights.shape[1:])
    for w, g in zip(weights, gradient, strict=True):
        total += np.where(g * w > 0, g * w, 0)
    return total / len(weights)


@pytest.mark.parametrize(
    "layers", [{}, {"x_layers": 1}, {"l_layers": 1, "r_layers": 3, "x_layers": 2}]
)
@pytest.mark.parametrize("count", [4, 7])
def test_lxmert_follows_the_authors_rules(
    layers: dict[str, int], count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # would catch: the two directions exchanged, one side's update seen by the other within a layer,
    # R̄ without its transpose, the first layers of a kind taken for those of the cross layers, the
    # regions' scores before the words'
    model = lxmert(**layers)
    config = model.config
    passage = model.encode(QUESTION, image=regions(count))
    a = whence.explain(model, passage, "generic-attention", target="good", evidence=False)
    every = iter([averaged(*pair) for pair in lxmert_by_hand(model, passage, 2, monkeypatch)])
    t, i = int(passage.of_text.sum()), count
    tt, ii, ti, it = np.eye(t), np.eye(i), np.zeros((t, i)), np.zeros((i, t))
    for _ in range(config.l_layers):
        cam = next(every)
        tt, ti = tt + cam @ tt, ti + cam @ ti
    for _ in range(config.r_layers):
        cam = next(every)
        ii, it = ii + cam @ ii, it + cam @ it
    for depth in range(config.x_layers):
        cam_ti, cam_it, cam_t, cam_i = (next(every) for _ in range(4))
        ti_more, tt_more = bar_by_loops(tt).T @ (cam_ti @ bar_by_loops(ii)), cam_ti @ it
        it_more, ii_more = bar_by_loops(ii).T @ (cam_it @ bar_by_loops(tt)), cam_it @ ti
        ti, tt = ti + ti_more, tt + tt_more
        if depth < config.x_layers - 1:
            it, ii = it + it_more, ii + ii_more
            ii, it = ii + cam_i @ ii, it + cam_i @ it
        tt, ti = tt + cam_t @ tt, ti + cam_t @ ti
    assert next(every, None) is None
    tt[0, 0] = 0  # the authors': "disregard the [CLS] token itself"
    expected = passage.merge(np.concatenate([tt[0], ti[0]]))
    assert (expected > 0).any()
    np.testing.assert_allclose(a.scores, expected, atol=1e-9 * expected.max(), rtol=0)
    assert a.provenance.attention == "captured (hooks)"


def test_the_maps_of_lxmert_are_those_that_it_exports_and_those_that_it_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = lxmert()
    passage = model.encode(QUESTION, image=regions())
    t = trace(model, [passage], needs=Needs.ATTENTION)
    assert list(t.attentions) == KINDS
    assert [len(t.attentions[k]) for k in KINDS] == [5, 4, 3, 3]
    assert (
        t.layers["vision-to-language"][1].module == "lxmert.encoder.x_layers.1.visual_attention.att"
    )
    assert [layer.index for layer in t.layers["language"]] == [0, 1, 2, 3, 4]
    out = model.hf(**model.batch([passage]).inputs, output_attentions=True)
    exported = [*out.language_attentions, *out.vision_attentions, *out.cross_encoder_attentions]
    found = [
        *t.attentions["language"][:2],
        *t.attentions["vision"][:1],
        *t.attentions["language-to-vision"],
    ]
    for mine, theirs in zip(found, exported, strict=True):
        assert torch.equal(mine, theirs.detach())
    plain = [w for w, _ in lxmert_by_hand(model, passage, 0, monkeypatch)]
    in_order = [
        x
        for d in range(3)
        for k in (*KINDS[2:], *KINDS[:2])
        for x in (t.attentions[k][d - 3][0].numpy(),)
    ]
    for mine, theirs in zip(in_order, plain[3:], strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-12)


def test_the_axes_of_each_kind() -> None:
    model = lxmert()
    passage = model.encode(QUESTION, image=regions(3))
    maps = trace(model, [passage], needs=Needs.ATTENTION).attentions
    words, boxes = (
        ("[CLS]", "is", "the", "food", "great", "[SEP]"),
        ("region 0", "region 1", "region 2"),
    )
    for kind, looks, seen in zip(
        KINDS, (words, boxes, words, boxes), (words, boxes, boxes, words), strict=True
    ):
        assert tuple(axis.labels for axis in axes(passage, kind, "word")) == (looks, seen)
        rows, columns = memberships(passage, kind, "word")
        merged = (rows / rows.sum(1, keepdims=True)) @ maps[kind][0][0, 0].numpy() @ columns.T
        assert merged.shape == (len(looks), len(seen))
        np.testing.assert_allclose(merged.sum(-1), 1, atol=1e-6)
        assert tuple(len(axis) for axis in axes(passage, kind, "token")) == maps[kind][0].shape[-2:]


def test_an_image_that_nothing_is_read_from_gets_nothing() -> None:
    model = lxmert()
    with torch.no_grad():
        for layer in model.hf.lxmert.encoder.x_layers:
            # the text still looks at the image, and takes nothing away
            layer.visual_attention.att.value.weight.zero_()
            layer.visual_attention.att.value.bias.zero_()
    a = whence.explain(
        model, model.encode(QUESTION, image=regions()), "generic-attention", evidence=False
    )
    assert (a.scores[a.passage.pictured] == 0).all()
    assert a.scores[~a.passage.pictured].max() > 0


def test_a_region_that_cannot_be_seen_gets_nothing() -> None:
    # in the only cross layer, and without the image's own layers, a region counts by the text's
    # look at it alone
    model = lxmert(l_layers=1, r_layers=0, x_layers=1)
    layer = model.hf.lxmert.encoder.x_layers[0].visual_attention.att

    def blind(_module: Any, args: tuple[Any, ...]) -> Any:
        hidden, context, mask, *rest = args
        if mask is None:  # the image has no mask: this is the text that looks
            mask = torch.zeros(1, 1, 1, context.shape[1], dtype=context.dtype)
            mask[..., 2] = torch.finfo(context.dtype).min
        return hidden, context, mask, *rest

    passage = model.encode(QUESTION, image=regions())
    open_eyed = whence.explain(
        model, passage, "generic-attention", target="good", evidence=False
    ).scores[-4:]
    handle = layer.register_forward_pre_hook(blind)
    scores = whence.explain(
        model, passage, "generic-attention", target="good", evidence=False
    ).scores[-4:]
    handle.remove()
    assert scores[2] == 0
    assert scores.max() > 0
    assert not np.allclose(scores, open_eyed)


def test_vilt_follows_the_rule_of_one_stream_with_the_patches_in_their_places(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # would catch: patches in the random order that the model draws
    model = vilt()
    passage = model.encode(QUESTION, image=picture())
    assert passage.pixels is not None
    a = whence.explain(model, passage, "generic-attention", target="good", evidence=False)
    mean = whence.explain(model, passage, "attention-mean", target="good", evidence=False)
    monkeypatch.setattr(
        torch, "multinomial", lambda weights, n, **_: torch.arange(int(n))
    )  # reading order, in the model's own run
    inputs = {
        k: v
        for k, v in model.batch([passage]).inputs.items()
        if k not in ("image_embeds", "pixel_mask")
    }
    pixels = torch.tensor(passage.pixels)[None]
    out = model.hf(
        **inputs, pixel_values=pixels, pixel_mask=torch.ones(1, 16, 24), output_attentions=True
    )
    for m in out.attentions:
        m.retain_grad()
    out.logits[0, 2].backward()
    r = np.eye(len(passage))
    for m in out.attentions:
        r = r + averaged(m[0].detach().numpy(), m.grad[0].numpy()) @ r
    expected = passage.merge((r - np.eye(len(passage)))[0])
    np.testing.assert_allclose(a.scores, expected, atol=1e-9 * expected.max(), rtol=0)
    assert (a.scores[passage.pictured] > 0).any()
    np.testing.assert_allclose(
        mean.scores, passage.merge(out.attentions[-1][0, :, 0].detach().mean(0).numpy()), atol=1e-9
    )
    again = whence.explain(model, passage, "generic-attention", target="good", evidence=False)
    assert np.array_equal(again.scores, a.scores)


def test_vilt_s_attention_over_words_and_patches() -> None:
    model = vilt()
    maps = whence.attend(model, model.encode(QUESTION, image=picture()))
    assert maps.tokens[:2] == ("[CLS]", "is")
    assert maps.tokens[-7:-5] == ("[IMAGE]", "patch 0,0")
    np.testing.assert_allclose(maps.weights["encoder"].sum(-1), 1, atol=1e-5)


@pytest.mark.parametrize(("build", "given"), [(lxmert, regions), (vilt, picture)])
def test_methods_that_see_the_text_alone_are_refused(
    build: Callable[[], Model], given: Callable[[], Any]
) -> None:
    model = build()
    passage = model.encode(QUESTION, image=given())
    for name in ("gradient-l2", "gradient-x-input", "integrated-gradients", "smooth-grad"):
        with pytest.raises(Unsupported, match="only the text's embeddings are seen"):
            whence.explain(model, passage, name)
    t = trace(model, [passage], needs=Needs.EMBEDDING_GRADIENTS)
    assert t.embeddings.shape[:2] == (1, len(passage))
    for look in (
        lambda: t.embedding_gradients,
        lambda: t.embeddings_of(0),
        lambda: t.gradients_at(0, t.embeddings),
    ):
        with pytest.raises(Unsupported, match="only the text's embeddings are seen"):
            look()


def test_compare_leaves_out_what_does_not_fit() -> None:
    model = lxmert()
    c = whence.compare(model, model.encode(QUESTION, image=regions()))
    assert {"generic-attention", "random"} <= set(c)
    assert "only the text's embeddings" in c.skipped["gradient-l2"]
    assert "follows one stream of tokens" in c.skipped["attention-mean"]
    assert len(c["random"].scores) == 4 + 4
    with pytest.raises(Unsupported, match="cannot be edited"):
        whence.explain(model, c.first.passage, "generic-attention", attention_via="interface")


@pytest.mark.parametrize(("build", "given"), [(lxmert, regions), (vilt, picture)])
def test_batch_mates_do_not_matter(build: Callable[[], Model], given: Callable[..., Any]) -> None:
    model = build()
    passages = [
        model.encode(QUESTION, image=given(seed=0)),
        model.encode("bad prices", image=given(seed=1)),
    ]
    passages.append(model.encode(QUESTION, image=given(seed=2)))
    for name in ("generic-attention", "random"):
        for passage, many in zip(
            passages, whence.explain(model, passages, name, evidence=False), strict=True
        ):
            assert np.array_equal(
                whence.explain(model, passage, name, evidence=False).scores, many.scores
            )
    # of one size, two may be traced together
    needs = Needs.ATTENTION_GRADIENTS
    alone, both = (
        trace(model, ps, "good", needs).attention_gradients for ps in (passages[2:], passages[::2])
    )
    for kind, maps in both.items():
        for one, two in zip(alone[kind], maps, strict=True):
            np.testing.assert_allclose(two[1], one[0], atol=1e-12)


@pytest.mark.parametrize(("build", "given"), [(lxmert, regions), (vilt, picture)])
def test_the_model_is_left_as_found_also_after_an_exception(
    build: Callable[[], Model], given: Callable[[], Any]
) -> None:
    model = build()
    model.hf.train()
    before = snapshot(model.hf)
    passage = model.encode(QUESTION, image=given())
    whence.explain(model, passage, "generic-attention", evidence=False)
    assert_same(before, snapshot(model.hf))
    head = model.hf.answer_head if build is lxmert else model.hf.classifier
    handle = head.register_forward_pre_hook(
        lambda *_: (_ for _ in ()).throw(RuntimeError("broken"))
    )
    with pytest.raises(RuntimeError, match="broken"):
        whence.explain(model, passage, "generic-attention")
    handle.remove()
    assert_same(before, snapshot(model.hf))
