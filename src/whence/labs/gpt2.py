"""GPT-2 from bytes to the next word, each step by hand: byte pairs, the block, layer normalisation, GELU, and decoding."""

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

from whence.core.errors import InputError, Unsupported
from whence.generation import decoding as d
from whence.models.load import load
from whence.notebook.book import Notebook
from whence.views.drawing import plain

TITLE = "GPT-2: from bytes to the next word"
WORDS = "low login lower logins slow 🙂🙃"
ORANGE, BLUE, PURPLE, GREY = "#f3841c", "#549cde", "#7250b0", "#8a8f99"
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
RULES: tuple[tuple[str, d.Rule], ...] = (
    ("pure sampling", partial(d.temperature, tau=1.0)),
    ("top-k, k = 5", partial(d.top_k, k=5)),
    ("nucleus, p = 0.6", partial(d.nucleus, p=0.6)),
    ("temperature 0.5", partial(d.temperature, tau=0.5)),
    ("temperature 2", partial(d.temperature, tau=2.0)),
)


def run(book: Notebook, words: str | None = None, model: str = "writer") -> None:
    """Run the lab on a GPT-2 by bundled name or folder; ``words`` are the text whose byte pairs are merged."""
    loaded = load(Path(model) if Path(model).is_dir() else model)
    hf, tokenizer = loaded.hf, loaded.tokenizer
    if type(hf).__name__ != "GPT2LMHeadModel":
        raise Unsupported(
            f"this lab rebuilds GPT2LMHeadModel by hand, and {model!r} is a {type(hf).__name__}: name a GPT-2."
        )
    ids = torch.tensor(tokenizer(PROMPTS[0])["input_ids"])
    _byte_pairs(book, WORDS if words is None else words, tokenizer)
    _block(book, hf, ids)
    _normalisation(book, hf, ids)
    _activation(book)
    _decoding(book, hf, tokenizer)


@dataclass(frozen=True)
class Merge:
    """The most frequent pair, how often it occurred, and the words once it is one token."""

    pair: tuple[bytes, bytes]
    count: int
    words: tuple[tuple[bytes, ...], ...]


def train_bpe(words: Sequence[str], limit: int) -> list[Merge]:
    """Join the most frequent pair of neighbours, again and again, until none occurs twice; among equals the first met is taken."""
    cut = tuple(tuple(bytes([b]) for b in word.encode()) for word in words)
    merges: list[Merge] = []
    while len(merges) < limit:
        counts = Counter(pair for word in cut for pair in pairwise(word))
        pair, count = max(counts.items(), key=lambda item: item[1], default=((b"", b""), 0))
        if count < 2:
            break
        cut = tuple(joined(word, pair) for word in cut)
        merges.append(Merge(pair, count, cut))
    return merges


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
    words, show = text.split(), d.readable
    if not words:
        raise InputError(
            f"the words {text!r} hold nothing to merge: give some, for example {WORDS!r}."
        )
    book.head("Byte-pair encoding: the most frequent pair becomes a token")
    book.say(
        "Words begin as single bytes. The most frequent pair of neighbours becomes one new token, until no pair occurs twice."
    )
    rows = [
        (
            i,
            " + ".join(map(show, m.pair)),
            m.count,
            show(b"".join(m.pair)),
            "  ".join("|".join(map(show, w)) for w in m.words),
        )
        for i, m in enumerate(train_bpe(words, 12), 1)
    ]
    book.table(
        "gpt2-merges",
        ("merge", "pair", "count", "new token", "words after it"),
        rows,
        f"Merges learned from: {text}",
    )
    (first,) = train_bpe(("low", "login"), 1)
    measured, good = (
        f"{' + '.join(map(show, first.pair))}, count {first.count}",
        (first.pair, first.count) == ((b"l", b"o"), 2),
    )
    book.claim(
        "The first merge of ('low', 'login') joins l and o, which occur together twice.",
        measured,
        good,
    )
    book.say(
        "The model's own tokenizer was trained like this on its texts. Common words are one token, rare ones several, an emoji bytes."
    )
    cuts = [
        (w, [d.token_bytes(t) for t in tokenizer.tokenize(w)])
        for w in dict.fromkeys([*words, "the", "unbelievably", "naïve", "🙂"])
    ]
    cells = [(w, len(w.encode()), len(cut), " | ".join(map(show, cut))) for w, cut in cuts]
    book.table(
        "gpt2-tokens",
        ("word", "bytes", "tokens", "cut"),
        cells,
        "How the model's tokenizer cuts the same words, and a few more.",
    )
    whole = sum(b"".join(cut) == w.encode() for w, cut in cuts)
    book.claim(
        "Nothing is lost: the bytes of its tokens are those of the word.",
        f"{whole} of {len(cuts)} words",
        whole == len(cuts),
    )
    book.claim(
        "An emoji is four bytes.", f"🙂 is {'🙂'.encode().hex(' ')}", len("🙂".encode()) == 4
    )


def layer_norm(
    f: Float[Tensor, "*batch d"], gamma: Any = 1.0, beta: Any = 0.0, eps: float = 1e-5
) -> Float[Tensor, "*batch d"]:
    """Mean 0 and variance 1 across the features of one token, then a learned scale and shift (Ba, Kiros and Hinton 2016)."""
    mu = f.mean(-1, keepdim=True)
    variance = (f - mu).square().mean(-1, keepdim=True)  # divided by d, not d - 1
    return gamma * (f - mu) / (variance + eps).sqrt() + beta


def gelu(x: Tensor) -> Tensor:
    """X times Phi(x), with Phi the distribution function of a standard normal (Hendrycks and Gimpel 2016)."""
    return x * (1 + torch.erf(x / sqrt(2))) / 2


def gelu_tanh(x: Tensor) -> Tensor:
    """The approximation that GPT-2 was trained with."""
    return x * (1 + torch.tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))) / 2


def gpt2_logits(
    hf: Any, ids: Int[Tensor, " T"], act: Callable[[Tensor], Tensor] = gelu_tanh
) -> Float[Tensor, "T D"]:
    """All of GPT-2's forward pass, from its weights."""
    w, heads, width = hf.transformer.state_dict(), hf.config.n_head, hf.config.n_embd

    def norm(x: Tensor, name: str) -> Tensor:
        return layer_norm(x, w[f"{name}.weight"], w[f"{name}.bias"], hf.config.layer_norm_epsilon)

    def linear(x: Tensor, name: str) -> Tensor:
        return x @ w[f"{name}.weight"] + w[f"{name}.bias"]  # GPT-2 stores (in, out)

    x = (
        w["wte.weight"][ids] + w["wpe.weight"][: len(ids)]
    )  # (T, d): what the token is, plus where it stands
    later = torch.ones(len(ids), len(ids), dtype=torch.bool).triu(
        1
    )  # the diagonal is not masked: a token sees itself
    for b in (f"h.{i}" for i in range(hf.config.n_layer)):
        qkv = linear(norm(x, f"{b}.ln_1"), f"{b}.attn.c_attn")  # (T, 3d)
        q, k, v = qkv.view(len(ids), 3, heads, width // heads).permute(
            1, 2, 0, 3
        )  # each (heads, T, d/heads)
        attention = (
            (q @ k.mT / sqrt(width // heads)).masked_fill(later, -inf).softmax(-1)
        )  # (heads, T, T)
        x = x + linear((attention @ v).transpose(0, 1).reshape(x.shape), f"{b}.attn.c_proj")
        x = x + linear(act(linear(norm(x, f"{b}.ln_2"), f"{b}.mlp.c_fc")), f"{b}.mlp.c_proj")
    return norm(x, "ln_f") @ w["wte.weight"].T  # (T, D): the embedding again, as un-embedding


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


def _block(book: Notebook, hf: Any, ids: Int[Tensor, " T"]) -> None:
    book.head("The block: normalise, attend, add; normalise, transform, add")
    book.say("x = x + Attention(LN1(x))\nx = x + MLP(LN2(x))\n…\nlogits = LN(x) Eᵀ", code=True)
    book.say(
        "A norm stands before attention, before the MLP and before the un-embedding, none after attention. E holds the embeddings."
    )
    with torch.no_grad():
        wanted = hf(input_ids=ids[None]).logits[0]
        apart, other = (
            (gpt2_logits(hf, ids, act) - wanted).abs().max().item() for act in (gelu_tanh, gelu)
        )
    measured = f"largest difference {apart:.1e} among {wanted.numel():,} logits (with GELU itself in place of tanh: {other:.1e})"
    book.claim("Twenty lines of plain torch compute the model's logits.", measured, apart < 1e-4)
    tied = hf.lm_head.weight is hf.transformer.wte.weight
    book.claim(
        "The un-embedding is the embedding.",
        f"the model holds {'one matrix' if tied else 'two matrices'}",
        tied,
    )
    c = hf.config
    own, small = parameters(c.vocab_size, c.n_positions, c.n_embd, c.n_layer), parameters(*SMALL)
    rows = [
        (name, formula, f"{n:,}", f"{m:,}")
        for (name, formula, n), (*_, m) in zip(own, small, strict=True)
    ]
    all_own, all_small = (sum(n for *_, n in part) for part in (own, small))
    sizes = f"This model: V = {c.vocab_size:,}, P = {c.n_positions}, d = {c.n_embd}, L = {c.n_layer}. GPT-2 small: 50,257, 1,024, 768, 12."
    rows.append(("all", "", f"{all_own:,}", f"{all_small:,}"))
    book.table("gpt2-parameters", ("part", "formula", "this model", "GPT-2 small"), rows, sizes)
    measured = f"{all_own:,} by formula, {hf.num_parameters():,} in the model"
    book.claim(
        "The formula counts this model's parameters.", measured, all_own == hf.num_parameters()
    )
    with torch.device("meta"):  # shapes without numbers: no memory, no draws
        real = type(hf)(type(c)()).num_parameters()  # the defaults are GPT-2 small's
    measured, good = (
        f"{all_small:,} by formula, {real:,} in transformers",
        all_small == real and round(real / 1e6) == 124,
    )
    book.claim(
        "GPT-2 small has about 124 million parameters, not the 117 million of its first name.",
        measured,
        good,
    )
    padded = -(-SMALL[0] // 64) * 64
    measured = f"256 bytes + 50,000 merges + 1 end of text = {256 + 50_000 + 1:,}; the next multiple of 64 is {padded:,}"
    book.claim(
        "GPT-2 has 50,257 tokens; 50,304 is padded.",
        measured,
        (256 + 50_000 + 1, padded) == (SMALL[0], 50_304),
    )


def _normalisation(book: Notebook, hf: Any, ids: Int[Tensor, " T"]) -> None:
    from matplotlib import pyplot as plt

    book.head("Layer normalisation: neither scale nor shift of a token's features passes")
    with torch.no_grad():
        stream = torch.stack(hf(input_ids=ids[None], output_hidden_states=True).hidden_states[:-1])[
            :, 0
        ].double()  # (block, T, d)
    f, size = stream[-1, -1], range(1, len(stream) + 1)
    fig, (raw, normal, spread) = plt.subplots(1, 3, figsize=(9, 2.6), layout="constrained")
    for ax, shape, title in (
        (raw, lambda x: x, "features of the last token"),
        (normal, layer_norm, "after LN"),
    ):
        ax.plot(shape(3 * f + 2)[:32], "o", color=BLUE, ms=6, label="3 f + 2")
        ax.plot(shape(f)[:32], "o", color=ORANGE, ms=3, label="f")
        ax.set(title=title, xlabel="feature (the first 32)")
    raw.legend(frameon=False)
    spread.plot(size, stream.std(-1).mean(-1), "o-", color=PURPLE)
    spread.set(
        title="spread of the features before LN", xlabel="block", xticks=size, ylim=(0, None)
    )
    book.figure(
        "gpt2-layer-norm",
        fig,
        "A token's features, and three times them plus two: the same after LN. Right: what LN evens out.",
    )
    theirs = torch.nn.functional.layer_norm(f, f.shape)
    apart, far = (
        (x - theirs).abs().max().item()
        for x in (layer_norm(f), (f - f.mean()) / (f.var() + 1e-5).sqrt())
    )
    book.claim(
        "LN divides by the biased variance.",
        f"from torch's: {apart:.1e} with 1/d, {far:.1e} with 1/(d - 1)",
        apart < 1e-9 < far,
    )
    apart = (
        (layer_norm(torch.full_like(f, 7), gamma=f, beta=stream[0, 0]) - stream[0, 0])
        .abs()
        .max()
        .item()
    )
    book.claim("LN of a constant vector is beta.", f"largest difference {apart:.1e}", apart < 1e-9)
    apart, tiny = (
        (layer_norm(c * f + 2, eps=e) - layer_norm(f, eps=e)).abs().max().item()
        for c, e in ((3, 0.0), (1e-3, 1e-5))
    )
    book.claim(
        "LN(c f + b) = LN(f) for c > 0, eps = 0.",
        f"{apart:.1e} at c = 3; at c = 0.001, eps = 1e-5: {tiny:.2g}",
        apart < 1e-9,
    )


def _activation(book: Notebook) -> None:
    from matplotlib import pyplot as plt

    book.head("GELU: a ReLU with a soft corner")
    x = torch.linspace(-4, 4, 401, dtype=torch.float64)
    fig, (ax, error) = plt.subplots(1, 2, figsize=(8, 2.6), layout="constrained")
    for name, act, colour, line in (
        ("ReLU", torch.relu, GREY, "-"),
        ("GELU", gelu, ORANGE, "-"),
        ("GELU by tanh", gelu_tanh, PURPLE, ":"),
    ):
        ax.plot(x, act(x), line, color=colour, lw=2.5, label=name)
    ax.legend(frameon=False)
    error.plot(x, gelu_tanh(x) - gelu(x), color=PURPLE)
    error.set(title="the tanh form minus GELU", xlabel="x")
    book.figure(
        "gpt2-gelu",
        fig,
        "GELU, its approximation in GPT-2, and ReLU; right, how far the approximation is off.",
    )
    measured = " and ".join(
        f"{g(torch.ones(1, dtype=torch.float64)).item():.6f}" for g in (gelu, gelu_tanh)
    )
    book.claim(
        "GELU(1) is 0.841345, and 0.841192 by tanh.", measured, measured == "0.841345 and 0.841192"
    )
    t = torch.linspace(-12, 12, 100_001, dtype=torch.float64)
    mass = torch.trapezoid(torch.exp(-t * t / 2), t).item()
    measured = (
        f"total mass {mass / sqrt(2 * pi):.6f} with it, {mass / (2 * pi):.4f} with 1 / (2 pi)"
    )
    book.claim(
        "Phi needs the factor 1 / sqrt(2 pi).", measured, abs(mass / sqrt(2 * pi) - 1) < 1e-9
    )


def _decoding(book: Notebook, hf: Any, tokenizer: Any) -> None:
    score, prompts = d.scorer(hf), PROMPTS[: 2 if book.quick else None]
    ids = [tokenizer(p)["input_ids"] for p in prompts]
    count = min(30 if book.quick else 40, hf.config.n_positions - max(map(len, ids)))

    def drawn(prompt: list[int], rule: d.Rule) -> list[int]:
        return d.decode(
            score, prompt, count, rules=[rule], generator=torch.Generator().manual_seed(book.seed)
        )

    book.head("Decoding: what each rule leaves of the next token's distribution")
    logits = score(torch.tensor([ids[0]]))[0]  # (D,)
    names = [
        d.readable(d.token_bytes(t)) for t in tokenizer.convert_ids_to_tokens(range(len(logits)))
    ]
    _draw_rules(book, logits, names, prompts[0])
    book.head("Decoding: what each rule writes")
    greedy = [d.decode(score, p, count) for p in book.track(ids, "greedy, prompt")]
    pure = [drawn(p, lambda x: x) for p in book.track(ids, "sampling, prompt")]
    beams = [
        list(d.beam_search(score, p, count, 4)[0].ids)
        for p in book.track(ids, "beam search, prompt")
    ]
    texts = [
        ("greedy", greedy[0]),
        ("beam, width 4", beams[0]),
        *((rule, drawn(ids[0], shape)) for rule, shape in RULES),
    ]
    rows = [
        (
            rule,
            d.log_probability(hf, ids[0], new),
            d.repeated(new),
            tokenizer.decode(new).replace("\n", "⏎"),
        )
        for rule, new in texts
    ]
    book.table(
        "gpt2-texts",
        ("rule", "log-probability", "repeated 4-grams", "text"),
        rows,
        f"{count} tokens after: {prompts[0]}",
    )
    for claim, wanted, other in (
        (
            "Temperature near 0 (1e-6) is greedy.",
            greedy,
            lambda p: drawn(p, partial(d.temperature, tau=1e-6)),
        ),
        (
            "Top-k with k = D is pure sampling.",
            pure,
            lambda p: drawn(p, partial(d.top_k, k=len(logits))),
        ),
        (
            "A nucleus of p = 1 is pure sampling.",
            pure,
            lambda p: drawn(p, partial(d.nucleus, p=1.0)),
        ),
        (
            "Beam search of width 1 is greedy.",
            greedy,
            lambda p: list(d.beam_search(score, p, count, 1)[0].ids),
        ),
        (
            "Greedy decoding here is that of transformers.",
            greedy,
            lambda p: d.generated(hf, p, count),
        ),
        (
            "Beam search here is that of transformers.",
            beams,
            lambda p: d.generated(hf, p, count, width=4),
        ),
    ):
        same = [other(p) == made for p, made in zip(book.track(ids, claim), wanted, strict=True)]
        book.claim(
            claim, f"the same {count} tokens after {sum(same)} of {len(same)} prompts", all(same)
        )
    gains = [
        d.log_probability(hf, p, b) - d.log_probability(hf, p, g)
        for p, b, g in zip(ids, beams, greedy, strict=True)
    ]
    measured = f"{sum(g > -1e-4 for g in gains)} of {len(gains)} prompts; log-probability gained {min(gains):.2f} to {max(gains):.2f}"
    book.claim(
        "Beam search of width 4 finds a text as probable as greedy's or more (nothing guarantees it).",
        measured,
        min(gains) > -1e-4,
    )
    shares = [sum(map(d.repeated, made)) / len(made) for made in (greedy, beams, pure)]
    measured = (
        "{:.0%} of 4-grams greedy, {:.0%} beam, {:.0%} sampled".format(*shares)
        + f", over {len(ids)} prompts"
    )
    book.claim(
        "Greedy text repeats itself more than sampled text.", measured, shares[0] > shares[2]
    )
    _draw_tree(book, list(d.beam_steps(score, ids[0], 4, 3)), names, prompts[0])


def _draw_rules(book: Notebook, logits: Float[Tensor, " D"], names: list[str], prompt: str) -> None:
    from matplotlib import pyplot as plt

    best = logits.sort(descending=True).indices[:20]
    labels, style = plain([names[t] for t in best])
    fig, axes = plt.subplots(2, 3, figsize=(10, 5), sharex=True, layout="constrained")
    for ax, (rule, shape) in zip(
        axes.flat, (("greedy", partial(d.top_k, k=1)), *RULES), strict=True
    ):
        left, after = shape(logits).isfinite(), shape(logits).softmax(-1)
        ax.bar(range(20), after[best].tolist(), color=PURPLE, label="after the rule")
        ax.bar(
            range(20),
            logits.softmax(-1)[best].tolist(),
            fill=False,
            edgecolor=ORANGE,
            label="the model's own",
        )
        ax.set_title(f"{rule}: {int(left.sum()):,} of {len(after):,} tokens left")
        ax.set_xticks(range(20), labels=labels, rotation=90, fontsize=8, **style)
    axes[0, 0].legend(frameon=False)
    book.figure(
        "gpt2-rules",
        fig,
        f"The 20 likeliest tokens after “{prompt}”, with the probabilities that each rule leaves, renormalised.",
    )


def _draw_tree(book: Notebook, steps: list[list[d.Path]], names: list[str], prompt: str) -> None:
    from matplotlib import pyplot as plt

    fig, ax = plt.subplots(figsize=(8, 2.8), layout="constrained")
    box = {
        "ha": "center",
        "va": "center",
        "bbox": {"fc": "white", "ec": PURPLE, "boxstyle": "round"},
    }
    ax.text(0, -1, "prompt", **box)
    for x, paths in enumerate(steps, 1):
        for i, path in enumerate(paths):
            best = steps[-1][0].ids[:x] == path.ids
            ax.plot(
                [x - 1, x],
                [-path.parent if x > 1 else -1, -i],
                color=ORANGE if best else GREY,
                lw=3 if best else 1,
                zorder=1,
            )
            (label,), style = plain([f"{names[path.ids[-1]]}  {path.log_probability:.2f}"])
            ax.text(x, -i, label, **box, **style)
    ax.set(xlim=(-0.4, len(steps) + 0.4), ylim=(-2.5, 0.5), xticks=[], yticks=[], frame_on=False)
    book.figure(
        "gpt2-beam",
        fig,
        f"Beam search of width 3 after “{prompt}”: the paths kept, with log-probabilities; the best in orange.",
    )
