"""SmoothGrad: the gradient, averaged over noisy copies of the input."""

import hashlib
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from whence.core.passage import Passage
from whence.core.registry import SEED, Needs, Passes, method, setting
from whence.core.scores import FREE_OF_LENGTH, Scores
from whence.trace.cancelling import cancel
from whence.trace.trace import Trace


@method("smooth-grad", version=2, cites="smilkov2017smoothgrad")
@dataclass(frozen=True, slots=True)
class SmoothGrad:
    """How strongly the target reacts to each word, averaged over noisy copies of the text.

    The noise is Gaussian, on the embeddings; special tokens stay as they are. The jackknife
    over the samples gives the standard error, and takes off what noise adds to a length.
    """

    samples: int = setting(24, "How many noisy copies are run.")
    noise: float = setting(
        0.1,
        "How strong the noise is: its standard deviation, as a share of the range of the "
        "text's embeddings.",
    )
    form: Literal["l2", "l1", "x-input"] = setting(
        "l2",
        "What is made of the mean gradient: its length (l2), the sum of its absolute entries "
        "(l1), or its product with the input, which is signed (x-input).",
    )
    seed: int = setting(0, SEED)

    needs: ClassVar[Needs] = Needs.EMBEDDINGS | Needs.RERUNS
    price: ClassVar[str] = "One forward and one backward pass for each noisy copy (24)."
    misleads: ClassVar[str] = (
        "Noisy embeddings are no words: with much noise the model leaves what it was trained "
        "on. Few samples lift all unsigned scores a little, so look at the standard errors, which "
        "there are from 24 samples on."
    )

    @property
    def signed(self) -> bool:
        return self.form == "x-input"

    @property
    def merge(self) -> str:
        return "norm" if self.form == "l2" else "sum"

    def __post_init__(self) -> None:
        if self.samples < 2:
            raise ValueError("samples must be at least 2, or there is no standard error")
        if self.noise < 0:
            raise ValueError("noise cannot be negative")

    def passes(self, units: int) -> Passes:
        del units
        return Passes(forwards=self.samples, backwards=self.samples)

    def __call__(self, trace: Trace) -> list[Scores]:
        scores = torch.zeros(
            trace.content.shape, dtype=trace.embeddings.dtype, device=trace.embeddings.device
        )
        left_out = scores.new_zeros(self.samples, *scores.shape)
        notes = [""] * len(trace.passages)
        for i, passage in enumerate(trace.passages):
            x = trace.embeddings_of(i)
            is_content = trace.content[i, : len(passage)]
            spread = x[is_content].max() - x[is_content].min()
            steps = self.noise * spread * self._cloud(passage, x) * is_content[:, None]
            gradients = trace.gradients_at(i, x + steps)
            total = gradients.sum(0)
            mean = total / self.samples
            means_without_one = (total - gradients) / (self.samples - 1)
            if self.form == "x-input" and bool(cancel((mean * x)[None])):
                notes[i] = FREE_OF_LENGTH
                continue
            scores[i, : len(passage)] = self._read(mean, x)
            left_out[:, i, : len(passage)] = self._read(means_without_one, x)
        return Scores.rows(scores, left_out=left_out, notes=notes)

    def _cloud(
        self, passage: Passage, x: Float[Tensor, "token dim"]
    ) -> Float[Tensor, "sample token dim"]:
        """From the seed and the text, so that neither padding nor batch-mates change it."""
        seed = self.seed.to_bytes(8, "little", signed=True)
        digest = hashlib.sha256(passage.digest + seed).digest()
        generator = torch.Generator("cpu").manual_seed(int.from_bytes(digest[:7], "little"))
        noise = torch.randn(
            self.samples, *x.shape, generator=generator, dtype=torch.float32, device="cpu"
        )
        return noise.to(x)

    def _read(
        self, gradient: Float[Tensor, "*sample token dim"], x: Float[Tensor, "token dim"]
    ) -> Float[Tensor, "*sample token"]:
        if self.form == "x-input":
            return (gradient * x).sum(-1)
        return gradient.norm(p=2 if self.form == "l2" else 1, dim=-1)
