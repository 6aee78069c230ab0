"""Decoding: rules reshape the scores of the next token, and a loop or a search picks the tokens.

A rule is a pure function from logits to logits, in which a token that may not be drawn has minus
infinity; softmax renormalises the rest.
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
from whence.models.unbroken import unbroken

# of probabilities from float32 logits: two tokens of 0.7 and 0.2 reach 0.9
ROUNDING = 1e-7

# ids "path position" -> logits of the next token "path vocabulary"
Scorer = Callable[[Tensor], Tensor]
# logits "... vocabulary" -> logits "... vocabulary"
Rule = Callable[[Tensor], Tensor]


# ---------------------------------------------------------------------- rules


def temperature(
    logits: Float[Tensor, "*batch vocabulary"], tau: float
) -> Float[Tensor, "*batch vocabulary"]:
    """Logits divided by ``tau``: below 1 the distribution sharpens, above 1 it flattens.

    Ackley, Hinton and Sejnowski 1985.

    >>> temperature(torch.tensor([1.0, 2.0]), 0.5).softmax(0)
    tensor([0.1192, 0.8808])
    """
    if not (tau > 0 and isfinite(tau)):
        raise SettingsError(
            f"a temperature is a finite number above 0, not {tau}; "
            "for the limit at 0 decode greedily."
        )
    # the best is 0, so that a tiny tau sends the others to -inf and nothing to +inf
    below = logits - logits.amax(-1, keepdim=True)
    # 0 / tau would be NaN where tau is 0 in this precision
    return torch.where(below == 0, below, below / tau)


def top_k(logits: Float[Tensor, "*batch vocabulary"], k: int) -> Float[Tensor, "*batch vocabulary"]:
    """The ``k`` best tokens only; among equals the first in the vocabulary is the better one.

    >>> top_k(torch.tensor([1.0, 3.0, 2.0]), 2)
    tensor([-inf, 3., 2.])
    """
    if k < 1 or k != int(k):
        raise SettingsError(f"top-k keeps a whole number of tokens, at least one; k is {k}.")
    order = torch.sort(logits, dim=-1, descending=True, stable=True).indices  # best first
    rank = torch.arange(logits.shape[-1], device=logits.device).expand_as(order)
    return _only(logits, order, rank < k)


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
    order = torch.sort(logits, dim=-1, descending=True, stable=True).indices  # best first
    probability = logits.double().softmax(-1).gather(-1, order)
    before = probability.cumsum(-1) - probability  # of all better tokens
    return _only(logits, order, before < p - ROUNDING)


def _only(
    logits: Float[Tensor, "*batch vocabulary"],
    order: Int[Tensor, "*batch vocabulary"],
    among: Bool[Tensor, "*batch vocabulary"],
) -> Float[Tensor, "*batch vocabulary"]:
    """The logits of the tokens that are ``among`` the ranked ones, -inf for all others."""
    allowed = torch.zeros_like(among).scatter(-1, order, among)  # from ranks back to tokens
    return logits.masked_fill(~allowed, -torch.inf)


# ---------------------------------------------------------------------- one path


def scorer(hf: Any) -> Scorer:
    """What a causal Hugging Face model gives for the token after each path.

    Of a path that is too long for its positions the model sees the end.
    """
    limit = getattr(hf.config, "max_position_embeddings", None) or 0  # -0: is the whole path

    def score(ids: Int[Tensor, "path position"]) -> Float[Tensor, "path vocabulary"]:
        seen = ids[:, -limit:].to(hf.device)
        with unbroken(torch.no_grad()):
            logits = hf(input_ids=seen).logits  # (path, position, vocabulary)
        return logits[:, -1].float().cpu()

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
    """Up to ``count`` new tokens after ``prompt``: the most probable ones, or drawn ones.

    With a ``generator`` they are drawn from what the rules leave. The rules are applied in their
    order. Ends with the token ``stop`` where one is given.

    >>> after = lambda ids: torch.nn.functional.one_hot((ids[:, -1] + 1) % 4, 4).float()
    >>> decode(after, [0], 5, stop=0)
    [1, 2, 3, 0]
    """
    _check(prompt, count)
    ids = list(prompt)
    for _ in range(count):
        logits = score(torch.tensor([ids], device="cpu"))[0]
        for rule in rules:
            logits = rule(logits)
        if generator is None:
            token = logits.argmax()
        else:
            token = torch.multinomial(logits.softmax(-1), 1, generator=generator)
        ids.append(int(token))
        if ids[-1] == stop:
            break
    return ids[len(prompt) :]


# ---------------------------------------------------------------------- several paths


@dataclass(frozen=True)
class Path:
    """New tokens, and the logarithm of their probability after the prompt.

    ``parent`` is the place of the path that they continue among those of the step before.
    """

    ids: tuple[int, ...] = ()
    log_probability: float = 0.0
    parent: int = 0


def beam_steps(
    score: Scorer, prompt: Sequence[int], count: int, width: int, *, stop: int | None = None
) -> Iterator[list[Path]]:
    """The ``width`` most probable paths after each step, best first.

    Those that ended with ``stop`` stay as they are. Paths are compared by the sum of
    log-probabilities with no reward for length, so that with ``stop`` the shorter ones are
    favoured.
    """
    _check(prompt, count)
    if width < 1:
        raise SettingsError(f"a beam has at least one path; the width is {width}.")
    paths = [Path()]
    for _ in range(count):
        grown: list[Path] = []
        going: list[int] = []
        for i, path in enumerate(paths):
            if path.ids and path.ids[-1] == stop:
                grown.append(Path(path.ids, path.log_probability, i))
            else:
                going.append(i)
        if not going:
            return

        # (path, position)
        rows = torch.tensor([[*prompt, *paths[i].ids] for i in going], device="cpu")
        log_probabilities = score(rows).double().log_softmax(-1)  # (path, vocabulary)
        ordered = torch.sort(log_probabilities, dim=-1, descending=True, stable=True)
        # no path places more than ``width`` children
        best = ordered.values[:, :width].tolist()
        tokens = ordered.indices[:, :width].tolist()
        for i, of_tokens, its_tokens in zip(going, best, tokens, strict=True):
            for log_probability, token in zip(of_tokens, its_tokens, strict=True):
                together = paths[i].log_probability + log_probability
                grown.append(Path((*paths[i].ids, token), together, i))
        paths = sorted(grown, key=lambda path: -path.log_probability)[:width]
        yield paths


def beam_search(
    score: Scorer, prompt: Sequence[int], count: int, width: int, *, stop: int | None = None
) -> list[Path]:
    """The paths at the end of ``beam_steps``, best first.

    Width 1 is greedy; a greater width mostly finds a more probable text, not always.

    >>> odds = torch.tensor([[0.6, 0.4, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]).log()
    >>> beam_search(lambda ids: odds[ids[:, -1]], [0], 2, width=2)[0].ids
    (0, 0)
    """
    *_, paths = beam_steps(score, prompt, count, width, stop=stop)
    return paths


def generated(hf: Any, prompt: Sequence[int], count: int, width: int = 1) -> list[int]:
    """What transformers' own ``generate`` writes, greedily or with a beam.

    It is the reference for the functions above. The end of text is put out of reach and length has
    no reward, since that is where implementations differ.
    """
    ids = torch.tensor([list(prompt)], device=hf.device)
    limits: dict[str, Any] = {
        "max_new_tokens": count,
        "eos_token_id": hf.config.vocab_size,
        "pad_token_id": 0,
    }
    if width > 1:
        limits |= {"num_beams": width, "length_penalty": 0.0}
    rows = hf.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, **limits)
    return rows[0, len(prompt) :].tolist()


# ---------------------------------------------------------------------- looking at what was written


def log_probability(hf: Any, prompt: Sequence[int], new: Sequence[int]) -> float:
    """The logarithm of the probability of ``new`` after ``prompt``, from one pass of the model."""
    ids = torch.tensor([[*prompt, *new]], device=hf.device)
    with unbroken(torch.no_grad()):
        logits = hf(input_ids=ids).logits[0, len(prompt) - 1 : -1]  # (new, vocabulary)
    each = logits.double().log_softmax(-1).cpu()
    tokens = torch.tensor(list(new), device="cpu")[:, None]  # (new, 1)
    return float(each.gather(-1, tokens).sum())


def repeated(ids: Sequence[int], n: int = 4) -> float:
    """The share of n-grams that occurred before in the same text.

    >>> repeated([1, 2, 1, 2, 1], n=2)
    0.5
    """
    grams = [tuple(ids[i : i + n]) for i in range(len(ids) - n + 1)]
    if not grams:
        return 0.0
    return 1 - len(set(grams)) / len(grams)


def token_bytes(token: str) -> bytes:
    """The bytes that a token of a byte-level vocabulary stands for.

    Bytes that cannot be printed are written there as letters from Ā on.

    >>> token_bytes("Ġlow"), token_bytes("ðŁĻĤ").decode()
    (b' low', '🙂')
    """
    letters = _letters()
    if any(letter not in letters for letter in token):
        return token.encode()
    return bytes(letters[letter] for letter in token)


@cache
def _letters() -> dict[str, int]:
    """The byte that each letter of a byte-level vocabulary stands for."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    letters = {chr(byte): byte for byte in printable}
    letters |= {chr(256 + i): byte for i, byte in enumerate(others)}
    return letters


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
            "the prompt has no tokens, and a causal model scores what comes after some: "
            "give at least the one that begins a text."
        )
    if count < 1:
        raise SettingsError(f"at least one token is to be written, not {count}.")
