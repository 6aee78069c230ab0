"""Leave the model as you found it: everything that running or tracing may change is put back, also after an exception."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn

from whence.core.errors import ModelError


def configs_of(modules: Iterable[nn.Module]) -> list[Any]:
    """Every configuration object of these modules: their own, and the parts that they declare."""
    found: dict[int, Any] = {}
    # told apart before they are asked anything: many modules share one, and a configuration is slow to answer
    own = {id(c): c for m in modules if (c := m.__dict__.get("config")) is not None}
    waiting = [c for c in own.values() if hasattr(c, "sub_configs")]
    while waiting:
        config = waiting.pop()
        if id(config) not in found:
            found[id(config)] = config
            waiting += [
                c for key in config.sub_configs if (c := getattr(config, key, None)) is not None
            ]
    return list(found.values())


def modules_of(module: nn.Module) -> list[nn.Module]:
    """Every module below, once; ``Module.modules`` builds dotted names on the way, which is felt on a small model."""
    found, seen = [module], {id(module)}
    for m in found:  # which grows on the way
        if m._modules:
            for child in m._modules.values():
                if child is not None and id(child) not in seen:
                    seen.add(id(child))
                    found.append(child)
    return found


@contextmanager
def untouched(module: nn.Module) -> Iterator[None]:
    """Evaluation mode without parameter gradients for the length of a block; every flag is then what it was."""
    modules = modules_of(module)
    parameters = list(
        {
            id(p): p
            for m in modules
            if m._parameters
            for p in m._parameters.values()
            if p is not None
        }.values()
    )
    if any(p.is_meta for p in parameters):
        raise ModelError(
            "the model's weights are on the meta device, so it cannot run; load it onto a real device first."
        )
    training = [m for m in modules if m.training]
    learning = [p for p in parameters if p.requires_grad]
    attention = [(c, c._attn_implementation_internal) for c in configs_of(modules)]
    try:
        for m in training:
            m.training = False
        for p in learning:
            p.requires_grad_(False)
        yield
    finally:
        for m in training:
            m.training = True
        for p in learning:
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
