"""Other models in place of the first: copies with changed weights. The first stays as it is.

A change is a frozen dataclass, so that equal changes are made once. Some keep the function of the
model and lay out its weights in another way (``models/rewired.py``), others change what it
computes, by a little (``NoisyEmbeddings``) or altogether (``Randomised``).
"""

from __future__ import annotations

import copy
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol, runtime_checkable
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from whence.core.errors import Unsupported
from whence.core.passage import Passage
from whence.core.percent import percent
from whence.models.conduct import answers, inherit, relative_difference, tolerance
from whence.models.model import Model
from whence.models.sample import samples_of_two_lengths

KEPT_BYTES = 2_000_000_000  # of the changed copies of one model


@runtime_checkable
class ModelChange(Protocol):
    """Another model, made from a given one.

    ``keeps_function`` says that it computes the same; whoever asks for it has that checked.
    """

    keeps_function: ClassVar[bool]

    def __call__(self, model: Model) -> Model:
        """A changed copy. Raises Unsupported where this model cannot be changed so."""
        ...

    def moved(self, model: Model, changed: Model, passage: Passage) -> float | None:
        """How far the input of the text moved, as a share of its length; None if not known."""
        ...


def copy_of(model: Model) -> Model:
    """The same model with weights of its own."""
    with model.lock:
        hf = copy.deepcopy(model.hf)
    return replace(model, hf=hf)


# ---------------------------------------------------------------------- made once

_copies: WeakKeyDictionary[nn.Module, OrderedDict[tuple[str, ModelChange], Model]]
_copies = WeakKeyDictionary()
_copies_lock = threading.Lock()


def changed_model(model: Model, change: ModelChange) -> tuple[Model, int]:
    """The changed model, and the passes that it took to see that its function is the same.

    It is made once for each model object and change, and remembered within ``KEPT_BYTES``. What
    the guard found of the first model is taken over: it is about the code, not the weights.
    """
    key = (model.fingerprint, change)
    with _copies_lock:
        kept = _copies.setdefault(model.hf, OrderedDict())
        if key in kept:
            kept.move_to_end(key)
            return kept[key], 0

    changed = change(model)
    inherit(changed, model)
    forwards = 0
    if change.keeps_function:
        forwards = _check_function(model, changed, change)
    with _copies_lock:
        kept[key] = changed
        while kept and sum(_bytes_of(one) for one in kept.values()) > KEPT_BYTES:
            kept.popitem(last=False)
    return changed, forwards


def _bytes_of(model: Model) -> int:
    return sum(p.numel() * p.element_size() for p in model.hf.parameters())


def _check_function(model: Model, changed: Model, change: ModelChange) -> int:
    """Refuse a copy that does not compute the same; or its explanation might rightly differ."""
    texts = samples_of_two_lengths(model)
    difference = 0.0
    for text in texts:
        (first,) = answers(model, [text])
        (second,) = answers(changed, [text])
        difference = max(difference, relative_difference(first, second))
    if not difference <= tolerance(model.dtype):
        raise Unsupported(
            f"{change} does not keep the function of {type(model.hf).__name__}: its outputs "
            f"differ by {percent(difference, 1)}, so the explanations are not compared."
        )
    return 2 * len(texts)


# ---------------------------------------------------------------------- another function


@dataclass(frozen=True)
class Randomised:
    """The weights nearest to the output shuffled: the cascade of Adebayo et al. (2018).

    ``share`` is that of the modules with weights, counted from the output down; 1 is all of them.
    Each weight tensor keeps its numbers, in an order that is drawn: a model of the same scale that
    has learnt nothing. (Numbers drawn anew at the scale of an initialisation let a deep model's
    output shrink to a constant.) A table that is tied to the head counts as what it is first: the
    embedding, which is randomised last.
    """

    share: float = 1.0
    seed: int = 0

    keeps_function: ClassVar[bool] = False

    def __call__(self, model: Model) -> Model:
        """A copy whose upper weights are shuffled."""
        changed = copy_of(model)
        owners = _owners(changed.hf)
        count = max(1, round(self.share * len(owners)))
        generator = torch.Generator().manual_seed(self.seed)
        with torch.no_grad():
            # from the top, so that a larger share begins as a smaller one does
            for parameters in reversed(owners[-count:]):
                for parameter in parameters:
                    _shuffle(parameter, generator)
        return changed

    def moved(self, model: Model, changed: Model, passage: Passage) -> float | None:
        """The input is the same; what reads it is not."""
        del model, changed, passage
        return None


def _owners(hf: nn.Module) -> list[list[nn.Parameter]]:
    """The parameters of each module that has any of its own, in the order of the definition."""
    seen: set[int] = set()
    owners = []
    for module in hf.modules():
        own = [p for p in module.parameters(recurse=False) if id(p) not in seen]
        seen.update(map(id, own))
        if own:
            owners.append(own)
    return owners


def _shuffle(parameter: Tensor, generator: torch.Generator) -> None:
    order = torch.randperm(parameter.numel(), generator=generator).to(parameter.device)
    parameter.copy_(parameter.reshape(-1)[order].reshape(parameter.shape))


@dataclass(frozen=True)
class NoisyEmbeddings:
    """A neighbour of every text: Gaussian noise on the table of the input embeddings.

    ``scale`` is relative to the table's own spread. All that reads ids, from inside or from
    outside, reads the moved ones. A head that is tied to the table keeps the old one.
    """

    scale: float = 0.05
    seed: int = 0

    keeps_function: ClassVar[bool] = False

    def __call__(self, model: Model) -> Model:
        """A copy that reads every token at a place nearby."""
        changed = copy_of(model)
        table = _table_of(changed)
        generator = torch.Generator().manual_seed(self.seed)
        noise = torch.randn(table.shape, generator=generator, dtype=torch.float64)
        spread = float(table.detach().double().std())
        moved = table.detach() + (self.scale * spread * noise).to(table.device, table.dtype)
        changed.input_embeddings.weight = nn.Parameter(moved, requires_grad=table.requires_grad)
        return changed

    def moved(self, model: Model, changed: Model, passage: Passage) -> float | None:
        """The distance between the two readings of the text, by the length of the first."""
        ids = torch.as_tensor(passage.ids.copy(), device=model.device)
        first = _table_of(model).detach()[ids].double()
        second = _table_of(changed).detach()[ids].double()
        length = float(first.norm())
        return float((second - first).norm()) / length if length else None


def _table_of(model: Model) -> Tensor:
    """The table of the input embeddings, a row for each id."""
    if not model.kind.reads_text or model.kind.reads_image:
        raise Unsupported(
            f"{type(model.hf).__name__} reads pictures, and noise is put on the embeddings of "
            "tokens."
        )
    module = model.input_embeddings
    if not isinstance(module, nn.Embedding):
        raise Unsupported(
            f"the embeddings of {type(model.hf).__name__} are no table with a row for each token "
            f"but a {type(module).__name__}, so no noise can be put on its rows."
        )
    return module.weight


def shares(steps: int) -> Sequence[float]:
    """The states of a cascade, from the output down to all of the model.

    >>> shares(4)
    [0.25, 0.5, 0.75, 1.0]
    """
    return [step / steps for step in range(1, steps + 1)]
