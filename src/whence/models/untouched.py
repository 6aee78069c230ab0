"""Leave the model as you found it.

Everything that running or tracing may change is put back, also after an exception or an interrupt.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from torch import nn
from transformers.utils.output_capturing import _active_collector

from whence.core.errors import ModelError
from whence.models.state import own_state, state_of
from whence.models.unbroken import each, in_one_piece, put_back

COMPILED = "_compiled_call_impl"  # where torch keeps what ``module.compile()`` made
FLAG = "_output_capturing_hooks_installed"  # where transformers notes that it has hooks


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


@in_one_piece
def untouched(module: nn.Module) -> Iterator[None]:
    """Evaluation mode without parameter gradients, and uncompiled, for the length of a block.

    Everything is then what it was, also after an interrupt.
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
    compiled = [(m, m.__dict__[COMPILED]) for m in modules if m.__dict__.get(COMPILED)]
    state = state_of(module, modules)
    collector = _active_collector.get()
    with put_back(
        lambda: own_state(module, state),
        lambda: each(_train, training),
        lambda: each(_learn, learning),
        lambda: each(_attend_as_before, attention),
        lambda: each(_compile_as_before, compiled),
        lambda: _collect_as_before(collector),
    ):
        for m in training:
            m.training = False
        for p in learning:
            p.requires_grad_(False)
        # rules and hooks see what a model calls, and compiled code calls nothing
        for m, _ in compiled:
            setattr(m, COMPILED, None)
        yield


def _train(module: nn.Module) -> None:
    module.training = True


def _learn(parameter: nn.Parameter) -> None:
    parameter.requires_grad_(True)


def _attend_as_before(change: tuple[Any, str | None]) -> None:
    config, was = change
    if config._attn_implementation_internal != was:
        config._attn_implementation_internal = was


def _compile_as_before(change: tuple[nn.Module, Any]) -> None:
    module, compiled = change
    setattr(module, COMPILED, compiled)


def _collect_as_before(collector: Any) -> None:
    """Transformers' own, which an interrupt one step before its ``try`` leaves where it is."""
    if _active_collector.get() is not collector:
        _active_collector.set(collector)


@in_one_piece
def without_leftovers(module: nn.Module) -> Iterator[None]:
    """Take back the hooks that transformers leaves on a model.

    It installs them, for good, when a model is asked for hidden states or attentions.
    """
    before = [(m, set(m._forward_hooks), FLAG in vars(m)) for m in module.modules()]
    with put_back(lambda: each(_take_back_hooks, before)):
        yield


def _take_back_hooks(change: tuple[nn.Module, set[int], bool]) -> None:
    module, hooks, had_flag = change
    for key in [k for k in module._forward_hooks if k not in hooks]:
        del module._forward_hooks[key]
    # with the flag left and the hooks gone, the caller's next request would return nothing
    if not had_flag:
        vars(module).pop(FLAG, None)
