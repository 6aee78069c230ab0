"""Leave the model as you found it: everything that running or tracing may change is put back, also after an exception."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn

from whence.core.errors import ModelError


def configs_of(module: nn.Module) -> list[Any]:
    """Every configuration object below a model: its own, its sub-models', and the parts they declare."""
    found: dict[int, Any] = {}
    waiting = [c for m in module.modules() if (c := getattr(m, "config", None)) is not None and hasattr(c, "sub_configs")]
    while waiting:
        config = waiting.pop()
        if id(config) not in found:
            found[id(config)] = config
            waiting += [c for key in config.sub_configs if (c := getattr(config, key, None)) is not None]
    return list(found.values())


@contextmanager
def untouched(module: nn.Module) -> Iterator[None]:
    """Evaluation mode without parameter gradients for the length of a block; every flag is then what it was."""
    modules = list(module.modules())
    parameters = list(module.parameters())
    if any(p.is_meta for p in parameters):
        raise ModelError("the model's weights are on the meta device, so it cannot run; load it onto a real device first.")
    training = [m.training for m in modules]
    requires_grad = [p.requires_grad for p in parameters]
    attention = [(c, c._attn_implementation_internal) for c in configs_of(module)]
    try:
        if any(training):
            module.eval()
        for p, needed in zip(parameters, requires_grad, strict=True):
            if needed:
                p.requires_grad_(False)
        yield
    finally:
        for m, was in zip(modules, training, strict=True):
            m.training = was
        for p, was in zip(parameters, requires_grad, strict=True):
            if was:
                p.requires_grad_(True)
        for config, was in attention:
            if config._attn_implementation_internal != was:
                config._attn_implementation_internal = was


@contextmanager
def without_leftovers(module: nn.Module) -> Iterator[None]:
    """Take back the hooks that transformers installs, for good, when a model is asked for hidden states or attentions."""
    flag = "_output_capturing_hooks_installed"  # with the flag left and the hooks gone, the caller's next request would return nothing
    before = [(m, set(m._forward_hooks), flag in vars(m)) for m in module.modules()]
    try:
        yield
    finally:
        for m, hooks, had_flag in before:
            for key in [k for k in m._forward_hooks if k not in hooks]:
                del m._forward_hooks[key]
            if not had_flag:
                vars(m).pop(flag, None)
