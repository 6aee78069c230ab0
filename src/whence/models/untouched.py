"""Leave the model as you found it.

Everything that running or tracing may change is put back, also after an exception.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn

from whence.core.errors import ModelError
from whence.models.state import put_back, state_of


def configs_of(modules: Iterable[nn.Module]) -> list[Any]:
    """Every configuration object of these modules: their own, and the parts that they declare."""
    # told apart before they are asked anything: many modules share one configuration, and it is
    # slow to answer
    own: dict[int, Any] = {}
    for module in modules:
        config = module.__dict__.get("config")
        if config is not None:
            own[id(config)] = config

    configs: dict[int, Any] = {}
    waiting = [config for config in own.values() if hasattr(config, "sub_configs")]
    while waiting:
        config = waiting.pop()
        if id(config) in configs:
            continue
        configs[id(config)] = config
        for key in config.sub_configs:
            part = getattr(config, key, None)
            if part is not None:
                waiting.append(part)
    return list(configs.values())


def modules_of(module: nn.Module) -> list[nn.Module]:
    """Every module below, once.

    ``Module.modules`` builds dotted names on the way, which is felt on a small model.
    """
    modules = [module]
    seen = {id(module)}
    for parent in modules:  # which grows on the way
        for child in parent._modules.values():
            if child is not None and id(child) not in seen:
                seen.add(id(child))
                modules.append(child)
    return modules


def _parameters_of(modules: Iterable[nn.Module]) -> list[nn.Parameter]:
    """Every parameter of these modules, once."""
    parameters = {}
    for module in modules:
        for parameter in module._parameters.values():
            if parameter is not None:
                parameters[id(parameter)] = parameter
    return list(parameters.values())


@contextmanager
def untouched(module: nn.Module) -> Iterator[None]:
    """Evaluation mode without parameter gradients for the length of a block.

    Every flag is then what it was.
    """
    modules = modules_of(module)
    parameters = _parameters_of(modules)
    if any(p.is_meta for p in parameters):
        raise ModelError(
            "the model's weights are on the meta device, so it cannot run; "
            "load it onto a real device first."
        )

    training = [m for m in modules if m.training]
    learning = [p for p in parameters if p.requires_grad]
    attention = [(c, c._attn_implementation_internal) for c in configs_of(modules)]
    own_state = state_of(module, modules)
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
        put_back(module, own_state)


@contextmanager
def without_leftovers(module: nn.Module) -> Iterator[None]:
    """Take back the hooks that transformers leaves on a model.

    It installs them, for good, when a model is asked for hidden states or attentions.
    """
    # with the flag left and the hooks gone, the caller's next request would return nothing
    flag = "_output_capturing_hooks_installed"
    before = [(m, set(m._forward_hooks), flag in vars(m)) for m in module.modules()]
    try:
        yield
    finally:
        for m, hooks, had_flag in before:
            for key in [k for k in m._forward_hooks if k not in hooks]:
                del m._forward_hooks[key]
            if not had_flag:
                vars(m).pop(flag, None)
