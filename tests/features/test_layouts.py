"""Folders: ours, SAELens' and dictionary_learning's; what is damaged is refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from whence.core.errors import InputError, LoadError, Unsupported
from whence.core.features import About
from whence.features.autoencoder import Autoencoder
from whence.features.layouts import (
    from_dictionary_learning,
    from_saelens,
    to_dictionary_learning,
    to_saelens,
)
from whence.features.rules import Gated, Relu, Rule, Threshold, TopK
from whence.features.saving import load, save

SIZE, DIM = 10, 4


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


RULES: dict[str, Rule] = {
    "relu": Relu(),
    "topk": TopK(3),
    "jump-relu": Threshold(random(SIZE, seed=1).abs()),
    "gated": Gated(random(SIZE, seed=2).exp(), random(SIZE, seed=3)),
}
every_rule = pytest.mark.parametrize("variant", RULES)


def autoencoder_of(variant: str) -> Autoencoder:
    about = About("writer", "abc", 2, "decoder", variant, SIZE, DIM, {"seed": 1}, {"tokens": 5})
    return Autoencoder(
        random(SIZE, DIM, seed=4),
        random(SIZE, seed=5),
        random(SIZE, DIM, seed=6),
        random(DIM, seed=7),
        RULES[variant],
        about,
    )


def same(one: Autoencoder, other: Autoencoder) -> None:
    h = random(50, DIM, seed=8)
    close: dict[str, Any] = {"rtol": 1e-5, "atol": 1e-5}
    torch.testing.assert_close(one.encode(h), other.encode(h), **close)
    torch.testing.assert_close(one.error(h), other.error(h), **close)


@every_rule
def test_a_saved_folder_is_the_same_autoencoder(variant: str, tmp_path: Path) -> None:
    # a wrong version: W_enc written as feature × dim
    ours = autoencoder_of(variant)
    peak = tuple(float(i) for i in range(SIZE))
    ours = Autoencoder(**{**vars(ours), "about": About(**{**vars(ours.about), "peak": peak})})
    read = load(save(ours, tmp_path / "a", more={"frequency": torch.zeros(SIZE)}))
    same(ours, read)
    assert read.about == ours.about
    assert load_file(tmp_path / "a" / "weights.safetensors")["W_enc"].shape == (DIM, SIZE)


@every_rule
def test_what_saelens_reads_is_the_same_by_its_own_formulas(variant: str, tmp_path: Path) -> None:
    # a wrong version: b_mag written as our shift, which leaves out the gate's bias
    ours = autoencoder_of(variant)
    to_saelens(ours, tmp_path)
    same(ours, from_saelens(tmp_path))
    assert from_saelens(tmp_path).about.layer == 2

    w = load_file(tmp_path / "sae_weights.safetensors")
    h = random(50, DIM, seed=8)
    if variant == "gated":
        gate = h @ w["W_enc"] + w["b_gate"] > 0
        activations = gate * (h @ (w["W_enc"] * w["r_mag"].exp()) + w["b_mag"]).relu()
        assert "b_enc" not in w
    else:
        pre = h @ w["W_enc"] + w["b_enc"]
        activations = pre.relu()
        if variant == "jump-relu":
            activations = activations * (pre > w["threshold"])
        if variant == "topk":
            activations = activations * (pre >= pre.topk(3, dim=1).values[:, 2:])
    torch.testing.assert_close(activations, ours.encode(h), rtol=1e-5, atol=1e-5)


def saelens_folder(folder: Path, **config: Any) -> Path:
    to_saelens(autoencoder_of("relu"), folder)
    file = folder / "cfg.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **config}))
    return folder


def test_what_saelens_does_before_encoding_is_folded(tmp_path: Path) -> None:
    # a wrong version: b_dec ignored, as ours takes nothing off
    ours = autoencoder_of("relu")
    h = random(50, DIM, seed=8)
    read = from_saelens(saelens_folder(tmp_path, apply_b_dec_to_input=True))
    expected = ((h - ours.decoder_bias) @ ours.encoder.T + ours.encoder_bias).relu()
    torch.testing.assert_close(read.encode(h), expected, rtol=1e-5, atol=1e-5)

    folder = saelens_folder(tmp_path, architecture="topk", k=2, rescale_acts_by_decoder_norm=True)
    read = from_saelens(folder)
    pre = h @ ours.encoder.T + ours.encoder_bias
    shown = (pre * ours.norms).relu()
    shown = shown * (shown >= shown.topk(2, dim=1).values[:, 1:])
    torch.testing.assert_close(read.encode(h) * read.norms, shown, rtol=1e-5, atol=1e-5)
    expected = shown @ (ours.decoder / ours.norms[:, None]) + ours.decoder_bias
    torch.testing.assert_close(read.decode(read.encode(h)), expected, rtol=1e-5, atol=1e-5)


def without(folder: Path, *names: str) -> Path:
    """The folder, without some entries of its description."""
    file = folder / "cfg.json"
    config = json.loads(file.read_text())
    file.write_text(json.dumps({n: v for n, v in config.items() if n not in names}))
    return folder


def test_old_folders_of_saelens_take_the_bias_off_without_saying_so(tmp_path: Path) -> None:
    # a wrong version: what is not said is taken as no
    ours, h = autoencoder_of("relu"), random(50, DIM, seed=8)
    expected = ((h - ours.decoder_bias) @ ours.encoder.T + ours.encoder_bias).relu()
    old = {"normalize_activations": False, "hook_point": "blocks.3.hook_resid_pre"}
    for number, version in enumerate(({}, {"sae_lens_version": "5.10.2"})):
        folder = saelens_folder(tmp_path / str(number), **old, **version)
        read = from_saelens(without(folder, "apply_b_dec_to_input", "metadata"))
        torch.testing.assert_close(read.encode(h), expected, rtol=1e-5, atol=1e-5)
        assert read.about.layer == 2

    folder = saelens_folder(tmp_path / "new", sae_lens_version="6.1.0")
    with pytest.raises(LoadError, match="'apply_b_dec_to_input' is missing, which SAELens 6"):
        from_saelens(without(folder, "apply_b_dec_to_input"))
    with pytest.raises(InputError, match="does not say where the hidden states are: give layer="):
        from_saelens(without(saelens_folder(tmp_path / "none"), "metadata"))


def test_batchtopk_of_saelens_has_one_threshold(tmp_path: Path) -> None:
    folder = saelens_folder(tmp_path, architecture="batchtopk")
    file = folder / "sae_weights.safetensors"
    save_file({**load_file(file), "topk_threshold": torch.tensor(0.7)}, file)
    rule = from_saelens(folder).rule
    assert isinstance(rule, Threshold)
    assert rule.thresholds.tolist() == pytest.approx([0.7] * SIZE)


@pytest.mark.parametrize(
    ("config", "error", "words"),
    [
        ({"normalize_activations": "layer_norm"}, Unsupported, "scales its input"),
        ({"normalize_activations": True}, Unsupported, "scales its input"),
        ({"architecture": "temporal"}, Unsupported, "'temporal' is none that whence reads"),
        ({"d_sae": 11}, LoadError, r"'W_enc' has the shape \(4, 10\), not \(4, 11\)"),
        ({"architecture": "gated"}, LoadError, "'b_gate' is missing; there are: W_dec, W_enc"),
        ({"architecture": "topk"}, LoadError, "'k' is missing"),
        ({"d_in": "four"}, LoadError, "expected a whole number"),
        ({"metadata": {"hook_name": "blocks.1.mlp"}}, InputError, "give layer="),
    ],
)
def test_what_cannot_be_read_of_saelens_is_said(
    config: dict[str, Any], error: type[Exception], words: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=words):
        from_saelens(saelens_folder(tmp_path, **config))


@every_rule
def test_dictionary_learning_and_back(variant: str, tmp_path: Path) -> None:
    # a wrong version: the bias that its classes take off first is not made up for
    ours = autoencoder_of(variant)
    file = to_dictionary_learning(ours, tmp_path / "ae.safetensors")
    read = from_dictionary_learning(file, layer=2, model="writer")
    same(ours, read)
    assert read.about.variant == variant

    w, h = load_file(file), random(50, DIM, seed=8)
    if variant == "topk":  # by the formula of AutoEncoderTopK
        pre = ((h - w["b_dec"]) @ w["encoder.weight"].T + w["encoder.bias"]).relu()
        a = pre * (pre >= pre.topk(3, dim=1).values[:, 2:])
        decoded = a @ w["decoder.weight"].T + w["b_dec"]
        torch.testing.assert_close(h - decoded, ours.error(h), rtol=1e-4, atol=1e-4)
    if variant == "gated":  # of GatedAutoEncoder
        x = (h - w["decoder_bias"]) @ w["encoder.weight"].T
        a = (x + w["gate_bias"] > 0) * (w["r_mag"].exp() * x + w["mag_bias"]).relu()
        torch.testing.assert_close(a, ours.encode(h), rtol=1e-4, atol=1e-4)


def test_the_older_class_of_dictionary_learning_takes_its_bias_off_first(tmp_path: Path) -> None:
    ours, h = autoencoder_of("relu"), random(50, DIM, seed=8)
    tensors = {
        "encoder.weight": ours.encoder,
        "encoder.bias": ours.encoder_bias,
        "decoder.weight": ours.decoder.T.contiguous(),
        "bias": ours.decoder_bias,
    }
    save_file(tensors, tmp_path / "ae.safetensors")
    read = from_dictionary_learning(tmp_path / "ae.safetensors", layer=0)
    expected = ((h - ours.decoder_bias) @ ours.encoder.T + ours.encoder_bias).relu()
    torch.testing.assert_close(read.encode(h), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("threshold", [0.4, -1.0])
def test_matryoshka_of_dictionary_learning(threshold: float, tmp_path: Path) -> None:
    # a wrong version: read as jump-relu, which takes nothing off
    ours, h = autoencoder_of("relu"), random(50, DIM, seed=8)
    tensors = {
        "W_enc": ours.encoder.T.contiguous(),
        "b_enc": ours.encoder_bias,
        "W_dec": ours.decoder,
        "b_dec": ours.decoder_bias,
        "k": torch.tensor(3),
        "threshold": torch.tensor(threshold),
        "group_sizes": torch.tensor([4, 6]),
    }
    save_file(tensors, tmp_path / "ae.safetensors")
    read = from_dictionary_learning(tmp_path / "ae.safetensors", layer=0)
    pre = ((h - ours.decoder_bias) @ ours.encoder.T + ours.encoder_bias).relu()
    torch.testing.assert_close(read.encode(h), pre * (pre > threshold), rtol=1e-5, atol=1e-5)
    assert read.about.variant == "matryoshka"


def test_batch_topk_of_dictionary_learning_must_be_named(tmp_path: Path) -> None:
    file = to_dictionary_learning(autoencoder_of("topk"), tmp_path / "ae.safetensors")
    save_file({**load_file(file), "threshold": torch.tensor(0.4)}, file)
    with pytest.raises(LoadError, match="say kind="):
        from_dictionary_learning(file, layer=0)
    with pytest.raises(InputError, match=r"kind is 'topk' or 'batch-topk'.* not 'foo'"):
        from_dictionary_learning(file, layer=0, kind="foo")
    rule = from_dictionary_learning(file, layer=0, kind="batch-topk").rule
    assert isinstance(rule, Threshold)
    assert rule.thresholds.tolist() == pytest.approx([0.4] * SIZE)


def test_damaged_folders_and_pickles_are_refused(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="there is no folder 'nowhere'"):
        load("nowhere")
    pickle = tmp_path / "ae.pt"
    pickle.write_bytes(b"\x80\x04.")
    with pytest.raises(InputError, match="can run code"):
        from_dictionary_learning(pickle, layer=0)

    folder = save(autoencoder_of("relu"), tmp_path / "a")
    weights = load_file(folder / "weights.safetensors")
    save_file({n: t for n, t in weights.items() if n != "b_dec"}, folder / "weights.safetensors")
    with pytest.raises(LoadError, match="'b_dec' is missing"):
        load(folder)
    broken = {**weights, "b_enc": torch.full((SIZE,), torch.nan)}
    save_file(broken, folder / "weights.safetensors")
    with pytest.raises(LoadError, match="'b_enc' has numbers that are not finite"):
        load(folder)
    (folder / "weights.safetensors").write_bytes(b"nothing")
    with pytest.raises(LoadError, match="cannot be read"):
        load(folder)
    (folder / "config.json").write_text("{")
    with pytest.raises(LoadError):
        load(folder)


def test_wrong_shapes_are_refused() -> None:
    ours = autoencoder_of("relu")
    # where signatures are checked, they say it first
    with pytest.raises((InputError, TypeError), match="decoder_bias"):
        Autoencoder(**{**vars(ours), "decoder_bias": ours.encoder_bias})
    with pytest.raises(InputError, match="their description says 11 of 4"):
        Autoencoder(**{**vars(ours), "about": About("", "", 0, "encoder", "relu", 11, 4)})
    with pytest.raises(InputError, match="hidden states of 4 numbers, not of 5"):
        ours.encode(torch.zeros(3, 5))
