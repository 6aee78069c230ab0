"""Decoding: a rule reshapes the scores of the next token, and a loop picks one token after another, or searches among several paths.

A rule is a pure function from logits to logits, in which a token that may not be drawn has minus infinity; softmax renormalises the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from math import isfinite
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from whence.core.errors import SettingsError

ROUNDING = 1e-7  # of probabilities from float32 logits: two tokens of 0.7 and 0.2 reach 0.9
Scorer = Callable[
    [Tensor], Tensor
]  # ids "path position" -> logits of the next token "path vocabulary"
Rule = Callable[[Tensor], Tensor]  # logits "... vocabulary" -> logits "... vocabulary"


# ---------------------------------------------------------------------- rules


def temperature(
    logits: Float[Tensor, "*batch vocabulary"], tau: float
) -> Float[Tensor, "*batch vocabulary"]:
    """Logits divided by ``tau``: below 1 the distribution sharpens, above 1 it flattens (Ackley, Hinton and Sejnowski 1985).

    >>> temperature(torch.tensor([1.0, 2.0]), 0.5).softmax(0)
    tensor([0.1192, 0.8808])
    """
    if not (tau > 0 and isfinite(tau)):
        raise SettingsError(
            f"a temperature is a finite number above 0, not {tau}; for the limit at 0 decode greedily."
        )
    below = logits - logits.amax(
        -1, keepdim=True
    )  # the best is 0, so that a tiny tau sends the others to -inf and nothing to +inf
    return torch.where(
        below == 0, below, below / tau
    )  # 0 / tau would be NaN where tau is 0 in this precision


def top_k(logits: Float[Tensor, "*batch vocabulary"], k: int) -> Float[Tensor, "*batch vocabulary"]:
    """The ``k`` best tokens only; among equals the first in the vocabulary is the better one.

    >>> top_k(torch.tensor([1.0, 3.0, 2.0]), 2)
    tensor([-inf, 3., 2.])
    """
    if k < 1 or k != int(k):
        raise SettingsError(f"top-k keeps a whole number of tokens, at least one; k is {k}.")
    order = torch.sort(logits, dim=-1, descending=True, stable=True).indices
    among = torch.arange(logits.shape[-1], device=logits.device).expand_as(order) < k
    return _only(logits, order, among)


def nucleus(
    logits: Float[Tensor, "*batch vocabulary"], p: float
) -> Float[Tensor, "*batch vocabulary"]:
    """The fewest tokens whose probabilities reach ``p``, best first (Holtzman et al. 2020).

    >>> nucleus(torch.tensor([0.1, 0.6, 0.3]).log(), 0.7).softmax(0)
    tensor([0.0000, 0.6667, 0.3333])
    """
    if not 0 < p <= 1:
        raise SettingsError(
            f"a nucleus holds a share of the probability above 0 and up to 1, not {p}."
        )
    if p == 1:
        return logits  # rounding could let the sum reach 1 before the last token
    order = torch.sort(logits, dim=-1, descending=True, stable=True).indices
    probability = logits.double().softmax(-1).gather(-1, order)
    before = probability.cumsum(-1) - probability
    return _only(logits, order, before < p - ROUNDING)


def _only(
    logits: Float[Tensor, "*batch vocabulary"],
    order: Int[Tensor, "*batch vocabulary"],
    among: Bool[Tensor, "*batch vocabulary"],
) -> Float[Tensor, "*batch vocabulary"]:
    kept = torch.zeros_like(among).scatter(-1, order, among)
    return logits.masked_fill(~kept, -torch.inf)


# ---------------------------------------------------------------------- one path


def scorer(hf: Any) -> Scorer:
    """What a causal Hugging Face model gives for the token after each path; of a path too long for its positions it sees the end."""
    limit = getattr(hf.config, "max_position_embeddings", None) or 0

    def score(ids: Int[Tensor, "path position"]) -> Float[Tensor, "path vocabulary"]:
        with torch.no_grad():
            return hf(input_ids=ids[:, -limit:].to(hf.device)).logits[:, -1].float().cpu()

    return score


def decode(
    score: Scorer,
    prompt: Sequence[int],
    count: int,
    *,
    rules: Sequence[Rule] = (),
    generator: torch.Generator | None = None,
    stop: int | None = None,
) -> list[int]:
    """Up to ``count`` new tokens after ``prompt``: the most probable ones, or with a ``generator`` drawn from what the rules leave.

    The rules are applied in their order. Ends with the token ``stop`` where one is given.

    >>> after = lambda ids: torch.nn.functional.one_hot((ids[:, -1] + 1) % 4, 4).float()
    >>> decode(after, [0], 5, stop=0)
    [1, 2, 3, 0]
    """
    _check(prompt, count)
    ids = list(prompt)
    for _ in range(count):
        logits = score(torch.tensor([ids]))[0]
        for rule in rules:
            logits = rule(logits)
        ids.append(
            int(
                logits.argmax()
                if generator is None
                else torch.multinomial(logits.softmax(-1), 1, generator=generator)
            )
        )
        if ids[-1] == stop:
            break
    return ids[len(prompt) :]


# ---------------------------------------------------------------------- several paths


@dataclass(frozen=True)
class Path:
    """New tokens, the logarithm of their probability after the prompt, and the place of the path they continue among those before."""

    ids: tuple[int, ...] = ()
    log_probability: float = 0.0
    parent: int = 0


def beam_steps(
    score: Scorer, prompt: Sequence[int], count: int, width: int, *, stop: int | None = None
) -> Iterator[list[Path]]:
    """The ``width`` most probable paths after each step, best first; those that ended with ``stop`` stay as they are.

    Paths are compared by the sum of log-probabilities with no reward for length, so that with ``stop`` the shorter ones are favoured.
    """
    _check(prompt, count)
    if width < 1:
        raise SettingsError(f"a beam has at least one path; the width is {width}.")
    paths = [Path()]
    for _ in range(count):
        ended = [
            Path(p.ids, p.log_probability, i)
            for i, p in enumerate(paths)
            if p.ids and p.ids[-1] == stop
        ]
        going = [i for i, p in enumerate(paths) if not p.ids or p.ids[-1] != stop]
        if not going:
            return
        found = (
            score(torch.tensor([[*prompt, *paths[i].ids] for i in going])).double().log_softmax(-1)
        )
        best, token = (
            x[:, :width] for x in torch.sort(found, dim=-1, descending=True, stable=True)
        )  # no path places more children
        grown = [
            Path((*paths[i].ids, int(t)), paths[i].log_probability + float(b), i)
            for i, bs, ts in zip(going, best, token, strict=True)
            for b, t in zip(bs, ts, strict=True)
        ]
        paths = sorted(ended + grown, key=lambda p: -p.log_probability)[:width]
        yield paths


def beam_search(
    score: Scorer, prompt: Sequence[int], count: int, width: int, *, stop: int | None = None
) -> list[Path]:
    """The paths at the end of ``beam_steps``, best first. Width 1 is greedy; a greater width mostly finds a more probable text, not always.

    >>> odds = torch.tensor([[0.6, 0.4, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]).log()
    >>> beam_search(lambda ids: odds[ids[:, -1]], [0], 2, width=2)[0].ids
    (0, 0)
    """
    *_, paths = beam_steps(score, prompt, count, width, stop=stop)
    return paths


def generated(hf: Any, prompt: Sequence[int], count: int, width: int = 1) -> list[int]:
    """What transformers' own ``generate`` writes, greedily or with a beam: the reference for the functions above.

    The end of text is put out of reach and length has no reward, since that is where implementations differ.
    """
    ids = torch.tensor([list(prompt)], device=hf.device)
    limits = {"max_new_tokens": count, "eos_token_id": hf.config.vocab_size, "pad_token_id": 0}
    beam = {"num_beams": width, "length_penalty": 0.0} if width > 1 else {}
    made = hf.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, **beam, **limits)
    return made[0, len(prompt) :].tolist()


# ---------------------------------------------------------------------- looking at what was written


def log_probability(hf: Any, prompt: Sequence[int], new: Sequence[int]) -> float:
    """The logarithm of the probability of ``new`` after ``prompt``, from one pass of the model."""
    with torch.no_grad():
        logits = hf(input_ids=torch.tensor([[*prompt, *new]], device=hf.device)).logits[
            0, len(prompt) - 1 : -1
        ]
    each = logits.double().log_softmax(-1).cpu()
    return float(each.gather(-1, torch.tensor(list(new))[:, None]).sum())


def repeated(ids: Sequence[int], n: int = 4) -> float:
    """The share of n-grams that occurred before in the same text.

    >>> repeated([1, 2, 1, 2, 1], n=2)
    0.5
    """
    grams = [tuple(ids[i : i + n]) for i in range(len(ids) - n + 1)]
    return 1 - len(set(grams)) / len(grams) if grams else 0.0


def token_bytes(token: str) -> bytes:
    """The bytes that a token of a byte-level vocabulary stands for: bytes that cannot be printed are written there as letters from Ā on.

    >>> token_bytes("Ġlow"), token_bytes("ðŁĻĤ").decode()
    (b' low', '🙂')
    """
    letters = _letters()
    return bytes(letters[c] for c in token) if all(c in letters for c in token) else token.encode()


@cache
def _letters() -> dict[str, int]:
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = (b for b in range(256) if b not in printable)
    return {chr(b): b for b in printable} | {chr(256 + i): b for i, b in enumerate(others)}


def readable(token: bytes) -> str:
    """A token as text, a space as ␣; a part of a letter as its bytes.

    >>> readable(b" low"), readable("🙂".encode()[:2])
    ('␣low', '⟨f0 9f⟩')
    """
    try:
        return token.decode().replace(" ", "␣").replace("\n", "⏎")
    except UnicodeDecodeError:
        return f"⟨{token.hex(' ')}⟩"


def _check(prompt: Sequence[int], count: int) -> None:
    if not prompt:
        raise SettingsError(
            "the prompt has no tokens, and a causal model scores what comes after some: give at least the one that begins a text."
        )
    if count < 1:
        raise SettingsError(f"at least one token is to be written, not {count}.")
