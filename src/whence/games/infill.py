"""Infilling: a masked language model writes other tokens in place of the removed ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from whence.core.errors import Unsupported
from whence.core.once import once
from whence.core.passage import Passage
from whence.models.model import Model
from whence.models.unbroken import unbroken
from whence.models.untouched import untouched
from whence.models.values import finite

# Of these one is drawn, by its probability: the tail of a small model's distribution is noise.
CANDIDATES = 50
TOKENS_AT_ONCE = 2048


@dataclass(frozen=True, eq=False)
class Filler:
    """A masked language model with the same vocabulary as the model under explanation.

    Ids go from one to the other as they are.
    """

    model: Model
    seed: int = 0

    def check(self, explained: Model, passage: Passage) -> None:
        """Raise where the two do not fit, before anything is run."""
        filler = self.model
        if not filler.kind.fills_a_mask:
            raise Unsupported(
                f"{filler.name} is no masked language model, so it cannot fill what was removed."
            )
        if filler.tokenizer.get_vocab() != explained.tokenizer.get_vocab():
            raise Unsupported(
                f"{filler.name} has another vocabulary than {explained.name}, and infilling works "
                "on ids: name a masked language model with the same tokenizer "
                "(removal='infill:MODEL'), or use removal 'mask' or 'delete'."
            )
        if filler.limit is not None and len(passage) > filler.limit:
            raise Unsupported(
                f"{filler.name} reads up to {filler.limit} tokens, and the text has {len(passage)}."
            )

    def fill(
        self,
        passage: Passage,
        kept: Bool[np.ndarray, "mask token"],
        seeds: Int[np.ndarray, "mask word"],
    ) -> Int[np.ndarray, "mask token"]:
        """The ids with each removed token drawn from the model's distribution at its place.

        All places of a row are drawn at once. What is drawn for a row follows from the seed and its
        own mask, not from what stands beside it.
        """
        ids = np.tile(passage.ids, (len(kept), 1))
        inputs = self.model.batch([passage]).inputs
        rows = np.flatnonzero((~kept).any(1))
        step = max(1, TOKENS_AT_ONCE // kept.shape[1])
        in_inference = unbroken(torch.inference_mode())
        with self.model.lock, untouched(self.model.hf), in_inference:
            for first in range(0, len(rows), step):
                here = rows[first : first + step]
                hidden = np.where(kept[here], passage.ids, self.model.tokenizer.mask_token_id)
                chances, tokens = self._candidates(inputs, hidden)
                for k, row in enumerate(here):
                    holes = np.flatnonzero(~kept[row])
                    random = np.random.default_rng([self.seed, *seeds[row].tolist()])
                    drawn = _drawn(chances[k, holes], random)
                    ids[row, holes] = tokens[k, holes, drawn]
        return ids

    def _candidates(
        self, inputs: dict[str, Tensor], hidden: Int[np.ndarray, "row token"]
    ) -> tuple[Float[np.ndarray, "row token candidate"], Int[np.ndarray, "row token candidate"]]:
        """The likeliest tokens at every place, with their probabilities among each other."""
        others = {
            name: tensor.expand(len(hidden), -1)
            for name, tensor in inputs.items()
            if name != "input_ids"
        }
        ids = torch.from_numpy(hidden).to(self.model.device)
        logits = finite(self.model.run({"input_ids": ids}, **others).logits)
        logits[..., self._special] = -torch.inf
        best = logits.double().topk(min(CANDIDATES, logits.shape[-1]))
        return best.values.softmax(-1).cpu().numpy(), best.indices.cpu().numpy()

    @once
    def _special(self) -> torch.Tensor:
        return torch.tensor(self.model.tokenizer.all_special_ids, device=self.model.device)


def _drawn(
    chances: Float[np.ndarray, "hole candidate"], random: np.random.Generator
) -> Int[np.ndarray, " hole"]:
    """One candidate for each hole, by the candidates' probabilities."""
    reached = chances.cumsum(1)
    level = random.random(len(chances))[:, None] * reached[:, -1:]
    return (reached < level).sum(1)
