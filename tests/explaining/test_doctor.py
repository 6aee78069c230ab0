"""The doctor examines every kind of model, and would notice a wrong capture."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
import transformers as tf

from tests import tokenizers as tok
from tests.choices import at_once
from tests.families import SMALL, build
from whence.core.registry import methods
from whence.explaining import doctor
from whence.models.load import load
from whence.trace.forecast import OVERHEAD
from whence.views.listing import doctor_view
from whence.views.terminal import to_text


@pytest.mark.parametrize(
    "family",
    at_once(
        [
            "bert",
            "bert-mlm",
            "gpt2",
            "gpt2-classifier",
            "t5",
            "bart",
            "bart-classifier",
            "vit",
            "deberta-v2",
        ],
        ["bert", "gpt2", "vit"],
    ),
)
def test_every_kind_of_model(family, monkeypatch):
    monkeypatch.setattr(doctor, "REPEATS", 1)
    report = doctor.examine(build(family))
    json.dumps(report.to_dict(), allow_nan=False)
    assert report.attention_path == ("output" if family == "deberta-v2" else "interface")
    if report.attention_path == "interface":
        assert report.self_check.passed is True
        assert report.self_check.attention_difference == pytest.approx(0, abs=1e-6)
    else:
        assert report.self_check.passed is None

    refused = {"lime-exact", "shapley-exact"}
    if family == "deberta-v2":
        refused.add("value-weighted")  # as its values cannot be seen
    reasons = {a.method: a.reason for a in report.methods if a.method not in refused}
    assert reasons == dict.fromkeys(set(methods()) - refused, "")
    assert report.parameters == sum(p.numel() for p in build(family).hf.parameters())


def test_a_model_without_a_head():
    torch.manual_seed(0)
    bare = tf.BertModel(
        tf.BertConfig(**SMALL, vocab_size=len(tok.wordpiece()), max_position_embeddings=64)
    ).eval()
    report = doctor.examine(load(bare, tokenizer=tok.wordpiece()))
    assert report.task == "bare"
    assert report.self_check.passed is True
    assert not any(a.works for a in report.methods)
    assert all("no head" in a.reason for a in report.methods)
    assert all(f.gradient_seconds is None for f in report.forecast)


def test_no_head_of_the_tables_is_cut_off_in_a_narrow_terminal():
    """ "all ma…" and "head me…" stood above the numbers of memory, at 80 columns."""
    report = doctor.examine(build("bert")).to_dict()
    # as wide as a model of millions of weights makes the columns
    wide = {"forward_seconds": 0.342, "gradient_seconds": 0.695, "head_mean_bytes": 20_500_000}
    wide |= {"gradient_bytes": 16_500_000, "maps_bytes": 96_700_000}
    report["forecast"] = [each | wide for each in report["forecast"]]
    shown = to_text(lambda console: doctor_view(report, console), width=80)
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= 80
    last = shown[shown.index("tokens  ") - 80 :]
    for name in ("forward", "backward", "gradients", "maps", "mean"):
        assert name in last


def test_memory_is_of_maps_and_of_activations():
    report = doctor.examine(build("bert"))
    last = report.forecast[-1]
    assert last.tokens == report.limit == 64
    maps = 2 * 4 * 64 * 64 * 4
    assert last.maps_bytes is not None
    assert last.maps_and_gradients_bytes is not None
    assert last.head_mean_bytes is not None
    assert last.gradient_bytes is not None
    # the maps, and what passes beside them
    assert maps < last.maps_bytes - OVERHEAD < 3 * maps
    # maps, their gradients, and what the graph holds of them
    assert 3 * maps < last.maps_and_gradients_bytes - OVERHEAD < 8 * maps
    assert maps / 4 < last.head_mean_bytes - OVERHEAD < last.maps_bytes - OVERHEAD
    # the two layers' activations, which the old forecast did not know
    assert last.gradient_bytes - OVERHEAD > 2 * 8 * 64 * 32 * 4


def test_an_encoder_decoder_counts_all_three_kinds():
    assert set(doctor.self_check(build("t5"))[1]) == {"encoder", "decoder", "cross"}


def test_a_wrong_capture_is_noticed(monkeypatch):
    true = doctor.trace

    def wrong(model, passages, *args, **options):
        t = true(model, passages, *args, **options)
        if t.attention_via == "interface":
            t.attentions["encoder"][0].mul_(0.99)
        return t

    monkeypatch.setattr(doctor, "trace", wrong)
    check, _ = doctor.self_check(build("bert"))
    assert check.passed is False
    assert check.attention_difference is not None
    assert check.attention_difference > 1e-4


def test_a_method_that_breaks_is_reported_and_not_raised(monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("out of luck")

    monkeypatch.setattr(doctor, "compare", broken)
    assert doctor.attempt(build("bert"), "random").reason == "RuntimeError: out of luck"


@pytest.mark.parametrize(("a", "b"), [(3e-4, 2e-6), (1e-3, 0.0), (0.0, 5e-6)])
def test_times_are_continued_by_the_law_they_follow(a, b):
    lengths = [16, 48, 112]
    seconds = [a * t + b * t * t for t in lengths]
    assert doctor._continued(lengths, seconds, 512) == pytest.approx(a * 512 + b * 512**2)


def test_a_forecast_is_never_negative():
    lengths, falling = [16, 48, 112], [3.0, 2.0, 1.0]  # noise on a tiny model
    assert all(doctor._continued(lengths, falling, t) > 0 for t in (32, 512, 8192))
    assert np.isfinite(doctor._continued([20], [0.5], 512))
