"""GPT-2 from bytes to the next word, each step by hand: byte pairs, the block, layer normalisation,
GELU, and decoding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import inf, pi, sqrt
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

import whence
from whence import InputError, Unsupported, generation
from whence.generation import readable
from whence.notebook import Notebook, drawing
from whence.notebook.drawing import BLUE, GREY, ORANGE, PURPLE

TITLE = "GPT-2: from bytes to the next word"

# ---------------------------------------------------------------------- settings

WORDS = "low login lower logins slow 🙂🙃"  # whose byte pairs are merged
MORE_WORDS = ("the", "unbelievably", "naïve", "🙂")  # that the model's tokenizer cuts, too
PROMPTS = (
    "The people of this country",
    "The captain of the",
    "This film is",
    "My lord,",
    "We must not",
    "I have never seen",
    "The king",
)
SMALL = (50_257, 1024, 768, 12)  # GPT-2 small: vocabulary, positions, width, layers
RULES: tuple[tuple[str, generation.Rule], ...] = (
    ("pure sampling", partial(generation.temperature, tau=1.0)),
    ("top-k, k = 5", partial(generation.top_k, k=5)),
    ("nucleus, p = 0.6", partial(generation.nucleus, p=0.6)),
    ("temperature 0.5", partial(generation.temperature, tau=0.5)),
    ("temperature 2", partial(generation.temperature, tau=2.0)),
)


def run(book: Notebook, words: str | None = None, model: str = "writer") -> None:
    """Run the lab on a GPT-2 by bundled name or folder.

    ``words`` are the text whose byte pairs are merged.
    """
    loaded = whence.load(Path(model) if Path(model).is_dir() else model)
    hf, tokenizer = loaded.hf, loaded.tokenizer
    if type(hf).__name__ != "GPT2LMHeadModel":
        raise Unsupported(
            f"this lab rebuilds GPT2LMHeadModel by hand, and {model!r} is a {type(hf).__name__}: "
            "name a GPT-2."
        )
    ids = torch.tensor(tokenizer(PROMPTS[0])["input_ids"])  # (T,)

    _byte_pairs(book, WORDS if words is None else words, tokenizer)
    _block(book, hf, ids)
    _parameters(book, hf)
    _normalisation(book, hf, ids)
    _activation(book)
    _decoding(book, hf, tokenizer)


# ---------------------------------------------------------------------- byte pairs


@dataclass(frozen=True)
class Merge:
    """The most frequent pair, how often it occurred, and the words once it is one token."""

    pair: tuple[bytes, bytes]
    count: int
    words: tuple[tuple[bytes, ...], ...]


def train_bpe(words: Sequence[str], limit: int) -> list[Merge]:
    """Join the most frequent pair of neighbours, again and again, until none occurs twice.

    Among equals the first met is taken.
    """
    cut = [single_bytes(word) for word in words]
    merges: list[Merge] = []
    while len(merges) < limit:
        counts: Counter[tuple[bytes, bytes]] = Counter()
        for word in cut:
            counts.update(pairwise(word))
        pair, count = max(counts.items(), key=lambda item: item[1], default=((b"", b""), 0))
        if count < 2:
            break
        cut = [joined(word, pair) for word in cut]
        merges.append(Merge(pair, count, tuple(cut)))
    return merges


def single_bytes(word: str) -> tuple[bytes, ...]:
    """A word as merging begins: one token for each byte."""
    return tuple(bytes([byte]) for byte in word.encode())


def joined(word: tuple[bytes, ...], pair: tuple[bytes, bytes]) -> tuple[bytes, ...]:
    """The word with every occurrence of the pair as one token, from the left."""
    out: list[bytes] = []
    for token in word:
        if out and (out[-1], token) == pair:
            out[-1] += token
        else:
            out.append(token)
    return tuple(out)


def _byte_pairs(book: Notebook, text: str, tokenizer: Any) -> None:
    words = text.split()
    if not words:
        raise InputError(
            f"the words {text!r} hold nothing to merge: give some, for example {WORDS!r}."
        )
    book.head("Byte-pair encoding: the most frequent pair becomes a token")
    book.say(
        "Words begin as single bytes. The most frequent pair of neighbours becomes one new token, "
        "until no pair occurs twice."
    )
    rows = []
    for number, merge in enumerate(train_bpe(words, 12), 1):
        pair = " + ".join(map(readable, merge.pair))
        token = readable(b"".join(merge.pair))
        after = ["|".join(map(readable, word)) for word in merge.words]
        rows.append((number, pair, merge.count, token, "  ".join(after)))
    book.table(
        "gpt2-merges",
        ("merge", "pair", "count", "new token", "words after it"),
        rows,
        f"Byte pairs learned from these words: {text}. Bytes that are no letters are written "
        "in hexadecimal, ⟨f0⟩.",
    )
    (first,) = train_bpe(("low", "login"), 1)
    book.claim(
        "The first merge of ('low', 'login') joins l and o, which occur together twice.",
        f"{' + '.join(map(readable, first.pair))}, count {first.count}",
        (first.pair, first.count) == ((b"l", b"o"), 2),
    )

    book.say(
        "The model's own tokenizer was trained like this on its texts. Common words are one token, "
        "rare ones several, an emoji bytes."
    )
    rows = []
    whole = 0  # words whose tokens hold all of their bytes
    for word in dict.fromkeys([*words, *MORE_WORDS]):
        cut = [generation.token_bytes(token) for token in tokenizer.tokenize(word)]
        whole += b"".join(cut) == word.encode()
        rows.append((word, len(word.encode()), len(cut), " | ".join(map(readable, cut))))
    book.table(
        "gpt2-tokens",
        ("word", "bytes", "tokens", "cut"),
        rows,
        "How the model's tokenizer cuts the same words, and a few more.",
    )
    book.claim(
        "Nothing is lost: the bytes of its tokens are those of the word.",
        f"{whole} of {len(rows)} words",
        whole == len(rows),
    )
    emoji = "🙂".encode()
    book.claim("An emoji is four bytes.", f"🙂 is {emoji.hex(' ')}", len(emoji) == 4)


# ---------------------------------------------------------------------- the model


def layer_norm(
    f: Float[Tensor, "*batch d"], gamma: Any = 1.0, beta: Any = 0.0, eps: float = 1e-5
) -> Float[Tensor, "*batch d"]:
    """Mean 0 and variance 1 across the features of one token, then a learned scale and shift.

    Ba, Kiros and Hinton 2016.
    """
    mu = f.mean(-1, keepdim=True)
    variance = (f - mu).square().mean(-1, keepdim=True)  # divided by d, not d - 1
    return gamma * (f - mu) / (variance + eps).sqrt() + beta


def gelu(x: Tensor) -> Tensor:
    """X times Phi(x), with Phi the distribution function of a standard normal.

    Hendrycks and Gimpel 2016.
    """
    return x * (1 + torch.erf(x / sqrt(2))) / 2


def gelu_tanh(x: Tensor) -> Tensor:
    """The approximation that GPT-2 was trained with."""
    return x * (1 + torch.tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))) / 2


def gpt2_logits(
    hf: Any, ids: Int[Tensor, " T"], act: Callable[[Tensor], Tensor] = gelu_tanh
) -> Float[Tensor, "T D"]:
    """All of GPT-2's forward pass, from its weights."""
    w = hf.transformer.state_dict()
    layers, heads, width = hf.config.n_layer, hf.config.n_head, hf.config.n_embd
    length, size = len(ids), width // heads

    def norm(x: Tensor, name: str) -> Tensor:
        return layer_norm(x, w[f"{name}.weight"], w[f"{name}.bias"], hf.config.layer_norm_epsilon)

    def linear(x: Tensor, name: str) -> Tensor:
        return x @ w[f"{name}.weight"] + w[f"{name}.bias"]  # GPT-2 stores (in, out)

    # what the token is, plus where it stands
    x = w["wte.weight"][ids] + w["wpe.weight"][:length]  # (T, d)
    # the diagonal is not masked: a token sees itself
    later = torch.ones(length, length, dtype=torch.bool).triu(1)  # (T, T)
    for i in range(layers):
        # normalise, attend, add
        qkv = linear(norm(x, f"h.{i}.ln_1"), f"h.{i}.attn.c_attn")  # (T, 3d)
        q, k, v = qkv.view(length, 3, heads, size).permute(1, 2, 0, 3)  # each (heads, T, d/heads)
        scores = (q @ k.mT / sqrt(size)).masked_fill(later, -inf)  # (heads, T, T)
        attention = scores.softmax(-1)  # (heads, T, T)
        mixed = (attention @ v).transpose(0, 1).reshape(x.shape)  # (T, d)
        x = x + linear(mixed, f"h.{i}.attn.c_proj")  # (T, d)

        # normalise, transform, add
        hidden = act(linear(norm(x, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc"))  # (T, 4d)
        x = x + linear(hidden, f"h.{i}.mlp.c_proj")  # (T, d)
    return norm(x, "ln_f") @ w["wte.weight"].T  # (T, D): the embedding again, as un-embedding


def _block(book: Notebook, hf: Any, ids: Int[Tensor, " T"]) -> None:
    book.head("The block: normalise, attend, add; normalise, transform, add")
    book.say("x = x + Attention(LN1(x))\nx = x + MLP(LN2(x))\n…\nlogits = LN(x) Eᵀ", code=True)
    book.say(
        "A norm stands before attention, before the MLP and before the un-embedding, none after "
        "attention. E holds the embeddings."
    )
    with torch.no_grad():
        wanted = hf(input_ids=ids[None]).logits[0]  # (T, D)
        by_tanh = (gpt2_logits(hf, ids, gelu_tanh) - wanted).abs().max().item()
        by_gelu = (gpt2_logits(hf, ids, gelu) - wanted).abs().max().item()
    book.claim(
        "Twenty lines of plain torch compute the model's logits.",
        f"largest difference {by_tanh:.1e} among {wanted.numel():,} logits "
        f"(with GELU itself in place of tanh: {by_gelu:.1e})",
        by_tanh < 1e-4,
    )
    tied = hf.lm_head.weight is hf.transformer.wte.weight
    book.claim(
        "The un-embedding is the embedding.",
        f"the model holds {'one matrix' if tied else 'two matrices'}",
        tied,
    )


def parameters(
    vocabulary: int, positions: int, width: int, layers: int
) -> list[tuple[str, str, int]]:
    """The parts of a GPT-2, the formula of their size, and the size."""
    return [
        ("token embedding, also the un-embedding", "V d", vocabulary * width),
        ("position embedding", "P d", positions * width),
        ("attention", "L (4 d² + 4 d)", layers * (4 * width**2 + 4 * width)),
        ("MLP", "L (8 d² + 5 d)", layers * (8 * width**2 + 5 * width)),
        ("layer norms", "(2 L + 1) 2 d", (2 * layers + 1) * 2 * width),
    ]


def _parameters(book: Notebook, hf: Any) -> None:
    c = hf.config
    own = parameters(c.vocab_size, c.n_positions, c.n_embd, c.n_layer)
    small = parameters(*SMALL)
    all_own = sum(size for _, _, size in own)
    all_small = sum(size for _, _, size in small)

    rows = []
    for (name, formula, size), (_, _, size_in_small) in zip(own, small, strict=True):
        rows.append((name, formula, f"{size:,}", f"{size_in_small:,}"))
    rows.append(("all", "", f"{all_own:,}", f"{all_small:,}"))
    book.table(
        "gpt2-parameters",
        ("part", "formula", "this model", "GPT-2 small"),
        rows,
        "Numbers of parameters. V is the number of tokens, P of positions, d the width, L the "
        f"number of layers; this model: {c.vocab_size:,}, {c.n_positions}, {c.n_embd}, "
        f"{c.n_layer}; GPT-2 small: 50,257, 1,024, 768, 12.",
    )
    book.claim(
        "The formula counts this model's parameters.",
        f"{all_own:,} by formula, {hf.num_parameters():,} in the model",
        all_own == hf.num_parameters(),
    )
    with torch.device("meta"):  # shapes without numbers: no memory, no draws
        real = type(hf)(type(c)()).num_parameters()  # the defaults are GPT-2 small's
    book.claim(
        "GPT-2 small has about 124 million parameters, not the 117 million of its first name.",
        f"{all_small:,} by formula, {real:,} in transformers",
        all_small == real and round(real / 1e6) == 124,
    )
    tokens = 256 + 50_000 + 1
    padded = -(-SMALL[0] // 64) * 64
    book.claim(
        "GPT-2 has 50,257 tokens; 50,304 is padded.",
        f"256 bytes + 50,000 merges + 1 end of text = {tokens:,}; "
        f"the next multiple of 64 is {padded:,}",
        (tokens, padded) == (SMALL[0], 50_304),
    )


# ---------------------------------------------------------------------- its parts


def _normalisation(book: Notebook, hf: Any, ids: Int[Tensor, " T"]) -> None:
    book.head("Layer normalisation: neither scale nor shift of a token's features passes")
    with torch.no_grad():
        states = hf(input_ids=ids[None], output_hidden_states=True).hidden_states
    stream = torch.stack(states[:-1])[:, 0].double()  # (block, T, d): what goes into each block
    f = stream[-1, -1]  # (d,): the last token in the last block
    _draw_norms(book, stream, f)

    theirs = torch.nn.functional.layer_norm(f, f.shape)
    unbiased = (f - f.mean()) / (f.var() + 1e-5).sqrt()
    near = (layer_norm(f) - theirs).abs().max().item()
    far = (unbiased - theirs).abs().max().item()
    book.claim(
        "LN divides by the biased variance.",
        f"from torch's: {near:.1e} with 1/d, {far:.1e} with 1/(d - 1)",
        near < 1e-9 < far,
    )
    constant = torch.full_like(f, 7)
    beta = stream[0, 0]
    gap = (layer_norm(constant, gamma=f, beta=beta) - beta).abs().max().item()
    book.claim("LN of a constant vector is beta.", f"largest difference {gap:.1e}", gap < 1e-9)

    def moved(c: float, eps: float) -> float:
        """How far LN(c f + 2) is from LN(f)."""
        return (layer_norm(c * f + 2, eps=eps) - layer_norm(f, eps=eps)).abs().max().item()

    gap = moved(3.0, 0.0)
    book.claim(
        "LN(c f + b) = LN(f) for c > 0, eps = 0.",
        f"{gap:.1e} at c = 3; at c = 0.001, eps = 1e-5: {moved(1e-3, 1e-5):.2g}",
        gap < 1e-9,
    )


def _draw_norms(book: Notebook, stream: Float[Tensor, "block T d"], f: Float[Tensor, " d"]) -> None:
    from matplotlib import pyplot as plt

    fig, (raw, normal, spread) = plt.subplots(1, 3, figsize=(9, 2.6), layout="constrained")
    raw.plot((3 * f + 2)[:32], "o", color=BLUE, ms=6, label="3 f + 2")
    raw.plot(f[:32], "o", color=ORANGE, ms=3, label="f")
    raw.set(title="features of the last token", xlabel="feature (the first 32)")
    normal.plot(layer_norm(3 * f + 2)[:32], "o", color=BLUE, ms=6, label="3 f + 2")
    normal.plot(layer_norm(f)[:32], "o", color=ORANGE, ms=3, label="f")
    normal.set(title="after LN", xlabel="feature (the first 32)")
    raw.legend(frameon=False)

    blocks = range(1, len(stream) + 1)
    spread.plot(blocks, stream.std(-1).mean(-1), "o-", color=PURPLE)
    spread.set(
        title="spread of the features before LN", xlabel="block", xticks=blocks, ylim=(0, None)
    )
    book.figure(
        "gpt2-layer-norm",
        fig,
        "A token's features, and three times them plus two: the same after LN. Right: what LN "
        "evens out.",
    )


def _activation(book: Notebook) -> None:
    from matplotlib import pyplot as plt

    book.head("GELU: a ReLU with a soft corner")
    x = torch.linspace(-4, 4, 401, dtype=torch.float64)
    fig, (ax, error) = plt.subplots(1, 2, figsize=(8, 2.6), layout="constrained")
    ax.plot(x, torch.relu(x), "-", color=GREY, lw=2.5, label="ReLU")
    ax.plot(x, gelu(x), "-", color=ORANGE, lw=2.5, label="GELU")
    ax.plot(x, gelu_tanh(x), ":", color=PURPLE, lw=2.5, label="GELU by tanh")
    ax.legend(frameon=False)
    error.plot(x, gelu_tanh(x) - gelu(x), color=PURPLE)
    error.set(title="the tanh form minus GELU", xlabel="x")
    book.figure(
        "gpt2-gelu",
        fig,
        "GELU, its approximation in GPT-2, and ReLU; right, how far the approximation is off.",
    )

    one = torch.ones(1, dtype=torch.float64)
    measured = f"{gelu(one).item():.6f} and {gelu_tanh(one).item():.6f}"
    book.claim(
        "GELU(1) is 0.841345, and 0.841192 by tanh.", measured, measured == "0.841345 and 0.841192"
    )
    t = torch.linspace(-12, 12, 100_001, dtype=torch.float64)
    mass = torch.trapezoid(torch.exp(-t * t / 2), t).item()
    right = mass / sqrt(2 * pi)
    book.claim(
        "Phi needs the factor 1 / sqrt(2 pi).",
        f"total mass {right:.6f} with it, {mass / (2 * pi):.4f} with 1 / (2 pi)",
        abs(right - 1) < 1e-9,
    )


# ---------------------------------------------------------------------- decoding


def _decoding(book: Notebook, hf: Any, tokenizer: Any) -> None:
    prompts, most = PROMPTS, 40
    if book.quick:
        prompts, most = PROMPTS[:2], 30
    ids = [tokenizer(prompt)["input_ids"] for prompt in prompts]
    longest = max(len(prompt) for prompt in ids)
    count = min(most, hf.config.n_positions - longest)  # of tokens that are written
    score = generation.scorer(hf)

    def sampled(prompt: list[int], rule: generation.Rule) -> list[int]:
        generator = torch.Generator().manual_seed(book.seed)
        return generation.decode(score, prompt, count, rules=[rule], generator=generator)

    def beam(prompt: list[int], width: int) -> list[int]:
        best = generation.beam_search(score, prompt, count, width)[0]
        return list(best.ids)

    book.head("Decoding: what each rule leaves of the next token's distribution")
    logits = score(torch.tensor([ids[0]]))[0]  # (D,)
    vocabulary = tokenizer.convert_ids_to_tokens(range(len(logits)))
    names = [readable(generation.token_bytes(token)) for token in vocabulary]
    _draw_rules(book, logits, names, prompts[0])

    book.head("Decoding: what each rule writes")
    greedy = [generation.decode(score, p, count) for p in book.track(ids, "greedy, prompt")]
    pure = [sampled(p, lambda x: x) for p in book.track(ids, "sampling, prompt")]
    beams = [beam(p, 4) for p in book.track(ids, "beam search, prompt")]

    texts = [("greedy", greedy[0]), ("beam, width 4", beams[0])]
    for name, rule in RULES:
        texts.append((name, sampled(ids[0], rule)))
    rows = []
    for name, new in texts:
        probability = generation.log_probability(hf, ids[0], new)
        text = tokenizer.decode(new).replace("\n", "⏎")
        rows.append((name, probability, generation.repeated(new), text))
    book.table(
        "gpt2-texts",
        ("rule", "log-probability", "repeated 4-grams", "text"),
        rows,
        f"What each rule writes: {count} tokens after “{prompts[0]}”, the log-probability of "
        "all of them, and the share of runs of four tokens that were there before.",
    )

    def claim_same(
        claim: str, texts: list[list[int]], write: Callable[[list[int]], list[int]]
    ) -> None:
        """Two ways of writing give the same tokens after every prompt."""
        same = 0
        for prompt, text in zip(book.track(ids, claim), texts, strict=True):
            same += write(prompt) == text
        measured = f"the same {count} tokens after {same} of {len(ids)} prompts"
        book.claim(claim, measured, same == len(ids))

    cold = partial(generation.temperature, tau=1e-6)
    every_token = partial(generation.top_k, k=len(logits))
    all_mass = partial(generation.nucleus, p=1.0)
    claim_same("Temperature near 0 (1e-6) is greedy.", greedy, lambda p: sampled(p, cold))
    claim_same("Top-k with k = D is pure sampling.", pure, lambda p: sampled(p, every_token))
    claim_same("A nucleus of p = 1 is pure sampling.", pure, lambda p: sampled(p, all_mass))
    claim_same("Beam search of width 1 is greedy.", greedy, lambda p: beam(p, 1))
    claim_same(
        "Greedy decoding here is that of transformers.",
        greedy,
        lambda p: generation.generated(hf, p, count),
    )
    claim_same(
        "Beam search here is that of transformers.",
        beams,
        lambda p: generation.generated(hf, p, count, width=4),
    )

    gains = []  # in log-probability, of beam search over greedy
    for prompt, by_beam, by_greedy in zip(ids, beams, greedy, strict=True):
        of_beam = generation.log_probability(hf, prompt, by_beam)
        of_greedy = generation.log_probability(hf, prompt, by_greedy)
        gains.append(of_beam - of_greedy)
    not_worse = sum(gain > -1e-4 for gain in gains)
    book.claim(
        "Beam search of width 4 finds a text as probable as greedy's or more "
        "(nothing guarantees it).",
        f"{not_worse} of {len(gains)} prompts; "
        f"log-probability gained {min(gains):.2f} to {max(gains):.2f}",
        min(gains) > -1e-4,
    )

    def mean_repeated(texts: list[list[int]]) -> float:
        return sum(generation.repeated(text) for text in texts) / len(texts)

    of_greedy, of_beams, of_pure = map(mean_repeated, (greedy, beams, pure))
    book.claim(
        "Greedy text repeats itself more than sampled text.",
        f"{of_greedy:.0%} of 4-grams greedy, {of_beams:.0%} beam, {of_pure:.0%} sampled, "
        f"over {len(ids)} prompts",
        of_greedy > of_pure,
    )
    steps = list(generation.beam_steps(score, ids[0], 4, 3))
    _draw_tree(book, steps, names, prompts[0])


def _draw_rules(book: Notebook, logits: Float[Tensor, " D"], names: list[str], prompt: str) -> None:
    from matplotlib import pyplot as plt

    own = logits.softmax(-1)  # (D,): the model's own distribution
    best = logits.sort(descending=True).indices[:20]
    labels, style = drawing.plain([names[token] for token in best])
    rules = (("greedy", partial(generation.top_k, k=1)), *RULES)
    fig, axes = plt.subplots(2, 3, figsize=(10, 5), sharex=True, layout="constrained")
    for ax, (name, rule) in zip(axes.flat, rules, strict=True):
        shaped = rule(logits)  # (D,)
        left = int(shaped.isfinite().sum())
        after = shaped.softmax(-1)
        ax.bar(range(20), after[best].tolist(), color=PURPLE, label="after the rule")
        ax.bar(
            range(20),
            own[best].tolist(),
            fill=False,
            edgecolor=ORANGE,
            label="the model's own",
        )
        ax.set_title(f"{name}: {left:,} of {len(after):,} tokens left")
        ax.set_xticks(range(20), labels=labels, rotation=90, fontsize=8, **style)
    axes[0, 0].legend(frameon=False)
    book.figure(
        "gpt2-rules",
        fig,
        f"The 20 likeliest tokens after “{prompt}”, with the probabilities that each rule leaves, "
        "renormalised; ␣ is the blank before a word.",
    )


def _draw_tree(
    book: Notebook, steps: list[list[generation.Path]], names: list[str], prompt: str
) -> None:
    from matplotlib import pyplot as plt

    best = steps[-1][0]
    frame = {"fc": "white", "ec": PURPLE, "boxstyle": "round"}
    box = {"ha": "center", "va": "center", "bbox": frame}
    fig, ax = plt.subplots(figsize=(8, 2.8), layout="constrained")
    ax.text(0, -1, "prompt", **box)
    for x, paths in enumerate(steps, 1):
        for i, path in enumerate(paths):
            colour, width = GREY, 1
            if best.ids[:x] == path.ids:
                colour, width = ORANGE, 3
            parent = path.parent if x > 1 else 1  # the prompt stands in the middle
            ax.plot([x - 1, x], [-parent, -i], color=colour, lw=width, zorder=1)
            token = names[path.ids[-1]]
            (label,), style = drawing.plain([f"{token}  {path.log_probability:.2f}"])
            ax.text(x, -i, label, **box, **style)
    ax.set(xlim=(-0.4, len(steps) + 0.4), ylim=(-2.5, 0.5), xticks=[], yticks=[], frame_on=False)
    book.figure(
        "gpt2-beam",
        fig,
        f"Beam search of width 3 after “{prompt}”: the paths kept, with log-probabilities; "
        "the best in orange; ␣ is the blank before a word.",
    )
