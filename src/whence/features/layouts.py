"""Autoencoders as other libraries store them: SAELens' folders, dictionary_learning's names.

Ours takes nothing off its input and scales nothing. So what others do before encoding is folded
into the weights: a bias ``c`` that is taken off first becomes ``b − E c``, lengths that activations
are multiplied by go to encoder and bias. What cannot be folded is refused.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from whence.core.errors import InputError, LoadError, Unsupported
from whence.core.features import About
from whence.core.stored import Stored
from whence.core.writing import write_json
from whence.features.autoencoder import Autoencoder
from whence.features.rules import Gated, Relu, Rule, Threshold, TopK
from whence.features.saving import autoencoder_of, read_config, weights_of
from whence.features.tensors import Tensors, read_tensors, write_tensors

SAE_CONFIG, SAE_WEIGHTS = "cfg.json", "sae_weights.safetensors"
# SAELens' architectures, and the rule that each has after training
RULES = {
    "standard": "relu",
    "topk": "topk",
    "jumprelu": "threshold",
    "batchtopk": "threshold",
    "matryoshka_batchtopk": "threshold",
    "gated": "gated",
}
VARIANTS = {"relu": "relu", "topk": "topk", "threshold": "jump-relu", "gated": "gated"}
FIRST_NUMBER = re.compile(r"\d+\.")
RESIDUAL = re.compile(r"blocks\.(\d+)\.hook_resid_(pre|post)")


# ---------------------------------------------------------------------- SAELens


def from_saelens(folder: str | Path, layer: int | None = None) -> Autoencoder:
    """An autoencoder that SAELens saved: ``cfg.json`` and ``sae_weights.safetensors``.

    ``layer`` is the block after which the hidden states are, where the folder does not say so.
    """
    folder = Path(folder)
    config = read_config(folder / SAE_CONFIG)
    tensors = read_tensors(folder / SAE_WEIGHTS)
    size, dim = config["d_sae"].whole(1), config["d_in"].whole(1)
    _refuse_what_cannot_be_folded(config)

    architecture = _architecture(config)
    kind = RULES[architecture]
    k = _k(config) if kind == "topk" else None
    if kind == "threshold" and "threshold" not in tensors and "topk_threshold" in tensors:
        threshold = torch.full((size,), tensors.number("topk_threshold"))
        tensors = Tensors({**tensors.values, "threshold": threshold}, tensors.source)

    about = About(
        model=_told(config, "model_name") or "",
        fingerprint="",
        layer=_layer(config, layer),
        kind="decoder",
        variant="batch-topk" if architecture == "batchtopk" else VARIANTS[kind],
        size=size,
        dim=dim,
        settings={"saelens": architecture, **({"k": k} if k else {})},
    )
    read = autoencoder_of(tensors, kind, k, about)
    if _takes_bias_off(config):
        read = _without_first(read, read.decoder_bias)
    rescales = config.get("rescale_acts_by_decoder_norm")
    if rescales is not None and rescales.flag():
        read = _with_unit_directions(read)
    return read


def to_saelens(autoencoder: Autoencoder, folder: str | Path) -> Path:
    """Write a folder that SAELens reads."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    rule, about = autoencoder.rule, autoencoder.about
    architecture = {Relu: "standard", TopK: "topk", Threshold: "jumprelu", Gated: "gated"}
    config = {
        "architecture": architecture[type(rule)],
        "d_in": autoencoder.dim,
        "d_sae": autoencoder.size,
        "dtype": "float32",
        "device": "cpu",
        "apply_b_dec_to_input": False,
        "normalize_activations": "none",
        "reshape_activations": "none",
        "metadata": {
            "model_name": about.model,
            "hook_name": f"blocks.{about.layer}.hook_resid_post",
            "hook_layer": about.layer,
        },
    }
    if isinstance(rule, TopK):
        config |= {"k": rule.k, "rescale_acts_by_decoder_norm": False}
    write_tensors(folder / SAE_WEIGHTS, weights_of(autoencoder))
    write_json(folder / SAE_CONFIG, config)
    return folder


def _architecture(config: Stored) -> str:
    named = config.get("architecture")
    architecture = named.text() if named is not None else "standard"
    if architecture not in RULES:
        raise Unsupported(
            f"{config.source}: SAELens' architecture {architecture!r} is none that whence reads. "
            f"It reads {', '.join(RULES)}."
        )
    activation = config.get("activation_fn") or config.get("activation_fn_str")
    if architecture == "standard" and activation is not None and activation.text() == "topk":
        return "topk"  # as the first versions wrote it
    return architecture


def _takes_bias_off(config: Stored) -> bool:
    """Whether the decoder's bias is taken off the input; what SAELens before 6 takes as said."""
    said = config.get("apply_b_dec_to_input")
    if said is not None:
        return said.flag()
    version = _told(config, "sae_lens_version")
    if version is None or (FIRST_NUMBER.match(version) and int(version.split(".")[0]) < 6):
        return True
    raise config.wrong(f"'apply_b_dec_to_input' is missing, which SAELens {version} writes")


def _refuse_what_cannot_be_folded(config: Stored) -> None:
    scaling = config.get("normalize_activations")
    # old versions wrote a flag
    if scaling is not None and scaling.value not in ("none", False, None):
        raise Unsupported(
            f"{config.source}: it scales its input ({scaling.shown}), which is not in the "
            "weights. Fold it first: sae.fold_activation_norm_scaling_factor(…) in SAELens."
        )
    shape = config.get("reshape_activations") or config.get("hook_z_reshaping")
    if shape is not None and shape.value not in ("none", False):
        raise Unsupported(f"{config.source}: it is of attention heads, not of hidden states.")
    tuned = config.get("finetuning_scaling_factor")
    if tuned is not None and tuned.value is True:
        raise Unsupported(f"{config.source}: its activations are scaled after encoding.")


def _k(config: Stored) -> int:
    for place in (config, config.get("activation_fn_kwargs")):
        found = place.get("k") if place is not None else None
        if found is not None:
            return found.whole(1)
    raise config.wrong("'k' is missing")


def _told(config: Stored, name: str) -> str | None:
    """A word of SAELens' metadata, wherever its versions put it."""
    for place in (config.get("metadata"), config.get("meta"), config):
        found = place.get(name) if place is not None else None
        if found is not None:
            return found.text()
    return None


def _layer(config: Stored, given: int | None) -> int:
    if given is not None:
        return given
    hook = _told(config, "hook_name") or _told(config, "hook_point")  # its older name
    if hook is None:
        raise InputError(
            f"{config.source} does not say where the hidden states are: give layer=, the block "
            "after which they are."
        )
    place = RESIDUAL.fullmatch(hook)
    if place is None:
        raise InputError(
            f"{config.source} says that the hidden states are at {hook!r}, which is no residual "
            "stream that whence knows: give layer=, the block after which they are."
        )
    number = int(place.group(1)) - (place.group(2) == "pre")
    if number < 0:
        raise Unsupported(f"{config.source}: the states before the first block are no layer here.")
    return number


# ---------------------------------------------------------------------- dictionary_learning


def from_dictionary_learning(
    file: str | Path, layer: int, model: str = "", kind: str | None = None
) -> Autoencoder:
    """An autoencoder by the names of dictionary_learning, from a safetensors file.

    Which of its classes it is, is seen by the names. ``kind``, "topk" or "batch-topk", is needed
    where they are the same.
    """
    if kind not in (None, "topk", "batch-topk"):
        raise InputError(f"kind is 'topk' or 'batch-topk', where it is needed, not {kind!r}.")
    tensors = read_tensors(file)
    if "group_sizes" in tensors:
        return _matryoshka(tensors, layer, model)
    if "W_enc" in tensors:  # JumpReluAutoEncoder has names like SAELens
        dim, size = tensors.of("W_enc", (None, None)).shape
        return autoencoder_of(
            tensors, "threshold", None, _about(model, layer, "jump-relu", size, dim)
        )

    encoder = tensors.of("encoder.weight", (None, None))
    size, dim = encoder.shape
    decoder = tensors.of("decoder.weight", (dim, size)).T.contiguous()
    if "r_mag" in tensors:
        bias, first = tensors.of("gate_bias", (size,)), tensors.of("decoder_bias", (dim,))
        scale = tensors.of("r_mag", (size,)).exp()
        rule: Rule = Gated(scale, tensors.of("mag_bias", (size,)) - scale * bias)
        read = Autoencoder(
            encoder, bias, decoder, first, rule, _about(model, layer, "gated", size, dim)
        )
        return _without_first(read, first)

    bias = tensors.of("encoder.bias", (size,))
    if "k" in tensors:
        first = tensors.of("b_dec", (dim,))
        variant, rule = _of_largest(tensors, kind, size)
        read = Autoencoder(
            encoder, bias, decoder, first, rule, _about(model, layer, variant, size, dim)
        )
        return _without_first(read, first)

    about = _about(model, layer, "relu", size, dim)
    if "bias" in tensors:  # AutoEncoder takes it off first, AutoEncoderNew has none of this name
        first = tensors.of("bias", (dim,))
        return _without_first(Autoencoder(encoder, bias, decoder, first, Relu(), about), first)
    return Autoencoder(encoder, bias, decoder, tensors.of("decoder.bias", (dim,)), Relu(), about)


def to_dictionary_learning(autoencoder: Autoencoder, file: str | Path) -> Path:
    """Write a safetensors file with the names of the class in dictionary_learning that it is.

    These are AutoEncoderNew, AutoEncoderTopK, JumpReluAutoEncoder and GatedAutoEncoder.
    """
    rule, first = autoencoder.rule, autoencoder.decoder_bias
    if isinstance(rule, Threshold):
        return write_tensors(file, weights_of(autoencoder))
    tensors: dict[str, Tensor] = {
        "encoder.weight": autoencoder.encoder,
        "decoder.weight": autoencoder.decoder.T,
    }
    if isinstance(rule, Relu):
        tensors |= {"encoder.bias": autoencoder.encoder_bias, "decoder.bias": first}
        return write_tensors(file, tensors)

    # the other two take the decoder's bias off first: what that changes is put into their bias
    moved = autoencoder.encoder @ first
    bias = autoencoder.encoder_bias + moved
    if isinstance(rule, TopK):
        tensors |= {"encoder.bias": bias, "b_dec": first, "k": torch.tensor(rule.k)}
        tensors["threshold"] = torch.tensor(-1.0)  # as it is where none is used
        return write_tensors(file, tensors)
    tensors |= {
        "decoder_bias": first,
        "r_mag": rule.scale.log(),
        "gate_bias": bias,
        "mag_bias": rule.shift + rule.scale * bias,
    }
    return write_tensors(file, tensors)


def _matryoshka(tensors: Tensors, layer: int, model: str) -> Autoencoder:
    """MatryoshkaBatchTopKSAE: names like SAELens, one threshold, and a bias that is taken off."""
    dim, size = tensors.of("W_enc", (None, None)).shape
    threshold = _one_threshold(tensors, size)
    tensors = Tensors({**tensors.values, "threshold": threshold}, tensors.source)
    about = _about(model, layer, "matryoshka", size, dim)
    read = autoencoder_of(tensors, "threshold", None, about)
    return _without_first(read, read.decoder_bias)


def _one_threshold(tensors: Tensors, size: int) -> Tensor:
    """The same for all features. −1, as it is before there is one, lets all above zero pass."""
    return torch.full((size,), max(0.0, tensors.number("threshold")))


def _of_largest(tensors: Tensors, kind: str | None, size: int) -> tuple[str, Rule]:
    """Whether the largest of each row or those above a threshold are active."""
    threshold = tensors.number("threshold") if "threshold" in tensors else -1.0
    if kind is None and threshold > 0:
        raise LoadError(
            f"{tensors.source!r} has both k and a threshold: say kind='topk' or 'batch-topk'."
        )
    if kind == "batch-topk":
        return kind, Threshold(_one_threshold(tensors, size))
    return "topk", TopK(round(tensors.number("k")))


def _about(model: str, layer: int, variant: str, size: int, dim: int) -> About:
    return About(model, "", layer, "decoder", variant, size, dim)


# ---------------------------------------------------------------------- folding


def _without_first(autoencoder: Autoencoder, first: Tensor) -> Autoencoder:
    """The same where ``first`` was taken off the input: ``E (h − c) + b = E h + (b − E c)``."""
    moved = autoencoder.encoder_bias - autoencoder.encoder @ first
    return replace(autoencoder, encoder_bias=moved)


def _with_unit_directions(autoencoder: Autoencoder) -> Autoencoder:
    """The same where activations are compared times the length of their direction."""
    norms = autoencoder.norms.clamp_min(1e-12)
    return replace(
        autoencoder,
        encoder=autoencoder.encoder * norms[:, None],
        encoder_bias=autoencoder.encoder_bias * norms,
        decoder=autoencoder.decoder / norms[:, None],
    )
