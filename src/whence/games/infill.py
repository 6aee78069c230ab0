"""Infilling: a masked language model writes other tokens in place of the removed ones."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Int

from whence.core.errors import Unsupported
from whence.core.passage import Passage
from whence.models.model import Model, finite
from whence.models.untouched import untouched

CANDIDATES = 50  # of which one is drawn, by its probability: the tail of a small model's distribution is noise
TOKENS_AT_ONCE = 2048


@dataclass(frozen=True, eq=False)
class Filler:
    """A masked language model with the same vocabulary as the model under explanation: its ids go in as they are."""

    model: Model
    seed: int = 0

    def check(self, explained: Model, passage: Passage) -> None:
        """Raise where the two do not fit, before anything is run."""
        if self.model.task != "masked":
            raise Unsupported(
                f"{self.model.name} is no masked language model, so it cannot fill what was removed."
            )
        if self.model.tokenizer.get_vocab() != explained.tokenizer.get_vocab():
            raise Unsupported(
                f"{self.model.name} has another vocabulary than {explained.name}, and infilling works on ids: name a masked language model "
                "with the same tokenizer (removal='infill:MODEL'), or use removal 'mask' or 'delete'."
            )
        if self.model.limit is not None and len(passage) > self.model.limit:
            raise Unsupported(
                f"{self.model.name} reads up to {self.model.limit} tokens, and the text has {len(passage)}."
            )

    def fill(
        self,
        passage: Passage,
        kept: Bool[np.ndarray, "mask token"],
        seeds: Int[np.ndarray, "mask word"],
    ) -> Int[np.ndarray, "mask token"]:
        """The ids with each removed token drawn from the model's distribution at its place, all places of a row at once.

        What is drawn for a row follows from the seed and its own mask, not from what stands beside it.
        """
        ids = np.tile(passage.ids, (len(kept), 1))
        inputs = self.model.batch([passage]).inputs
        rows = np.flatnonzero((~kept).any(1))
        model = self.model
        step = max(1, TOKENS_AT_ONCE // kept.shape[1])
        with model.lock, untouched(model.hf), torch.inference_mode():
            for first in range(0, len(rows), step):
                here = rows[first : first + step]
                hidden = np.where(kept[here], passage.ids, model.tokenizer.mask_token_id)
                others = {
                    name: t.expand(len(here), -1)
                    for name, t in inputs.items()
                    if name != "input_ids"
                }
                logits = finite(
                    model.hf(input_ids=torch.from_numpy(hidden).to(model.device), **others).logits
                )
                logits[..., self._special] = -torch.inf
                best = logits.double().topk(min(CANDIDATES, logits.shape[-1]))
                chances, found = best.values.softmax(-1).cpu().numpy(), best.indices.cpu().numpy()
                for k, row in enumerate(here):
                    holes = np.flatnonzero(~kept[row])
                    reached = chances[k, holes].cumsum(1)
                    drawn = np.random.default_rng([self.seed, *seeds[row].tolist()]).random(
                        len(holes)
                    )
                    ids[row, holes] = found[
                        k, holes, (reached < drawn[:, None] * reached[:, -1:]).sum(1)
                    ]
        return ids

    @cached_property
    def _special(self) -> torch.Tensor:
        return torch.tensor(self.model.tokenizer.all_special_ids, device=self.model.device)
