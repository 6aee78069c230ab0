"""Train the masked language model that ships with whence.

The idea: a word can be taken out of a text by letting a model guess what else might stand there.
The guesses go to the model `sentiment` as token ids, so both must read the same ids; no pretrained
masked model has these 4,500 pieces, and none is small enough. So a small BERT is trained for the
one task. It does not start from nothing, but as a narrower copy of `sentiment`, which has seen
MiniLM's training. Whole words are hidden, because whence takes out whole words; and often many at
once, because LIME or a deletion curve takes out half of a text, or nearly all of it.

Read it from the bottom (`main`), or top-down:
texts -> holes -> cut -> train -> evaluate -> write card.

    python training/filler.py            # the real thing, about half an hour on one core
    python training/filler.py --quick    # a smoke run into a temporary folder, about a minute
"""

import argparse
import math
import random
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path

import torch
import transformers
from sentiment import (
    LONG_SENTENCE,
    SANITY,
    SPECIAL,
    START,
    batches,
    clear_emotions,
    normalised,
    optimiser_for,
    pad,
    read_jsonl,
    read_tsv,
    say,
    sentences,
    step,
    templates,
    wilson,
    word_count,
    write_model,
)
from torch.nn import functional
from transformers import (
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BertConfig,
    BertForMaskedLM,
)

ROOT = Path(__file__).resolve().parent.parent
BUNDLED = ROOT / "src" / "whence" / "models" / "bundled"

# In half precision these make 5.7 MB: the folder must stay under 6 MB.
WIDTH = 256  # of 384
LAYERS = 3  # of 4
HEADS = 8  # of 12
SIZE_LIMIT = 6_000_000

PASSES = 1
BUDGET = 1024  # tokens of a batch
RATE = 1e-3
MASK = SPECIAL.index("[MASK]")
LONGEST = 512
USUAL = 0.15  # the share of words that BERT hides (Devlin et al. 2019)

# A unit of whence, near enough: a word with its apostrophes, or one sign.
WORD = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")

# For the card, and for tests/models/test_bundled_filler.py. Never trained on: one word of each is
# hidden, the one in brackets.
SHOWN = (
    "the movie was [great] .",
    "the food was cold and the [waiter] was rude .",
    "i would not [recommend] this film to anyone .",
    "one of the [best] films of the year .",
    "the acting is good , but the [plot] is a mess .",
    "she [is] a young woman who lives with her mother in new york .",
)
PRAISE = "great amazing good wonderful excellent fun brilliant"
BLAME = "awful horrible bad terrible boring dull stupid"
MANY_HOLES = LONG_SENTENCE


# --- texts ----------------------------------------------------------------------------------------


def load_texts(folder, rng):
    """Texts to learn from, and texts held out, as {name: list}.

    What is also in a held-out text is dropped.
    """
    splits = {}
    for split in ("train", "dev", "test"):
        pairs = read_tsv(folder / "rotten_tomatoes" / f"{split}.tsv")
        splits[split] = [text for text, _ in pairs]
    reviews = read_jsonl(folder / "movie_reviews_long" / "movie_reviews.jsonl.gz")
    imdb_train = read_jsonl(folder / "imdb_counterfactual" / "train.jsonl.gz")
    imdb_dev = read_jsonl(folder / "imdb_counterfactual" / "dev.jsonl.gz")
    long = [review["text"] for review in reviews if review["fold"] == 9]
    reddit_dev = [text for text, _ in clear_emotions(folder, "dev")]
    held_out = {
        "rotten_tomatoes test": splits["test"],
        "rotten_tomatoes dev": splits["dev"],
        "film reviews, whole (movie_reviews fold 9, first 512 tokens)": long,
        "IMDb reviews (imdb_counterfactual dev, originals)": [
            pair["original"]["text"] for pair in imdb_dev
        ],
        "Reddit comments (goemotions dev, clear emotions)": reddit_dev,
    }

    shown = [text.replace("[", "").replace("]", "") for text in SHOWN]
    forbidden = {normalised(text) for text in [*SANITY, MANY_HOLES, *shown]}
    for texts in held_out.values():
        for text in texts:
            parts = [text, *sentences(text)]
            forbidden |= {normalised(part) for part in parts if word_count(part) > 5}

    def is_forbidden(text):
        return any(normalised(part) in forbidden for part in [text, *sentences(text)])

    film = []
    for review in reviews:
        if review["fold"] != 9:
            film += runs([line.strip() for line in review["text"].split("\n")], rng)
    # Of a revised review only the sentences that the reviser changed: the rest is there already.
    imdb = []
    for pair in imdb_train:
        original = sentences(pair["original"]["text"])
        revised = sentences(pair["revised"]["text"])
        imdb += original
        imdb += [sentence for sentence in revised if sentence not in set(original)]
    texts = {
        "rotten_tomatoes": splits["train"] * 2,  # the text it will be used on most
        "film": film,
        "imdb": imdb,
        "reddit": [text for text, _ in clear_emotions(folder, "train")],
        "templates": [text for text, _ in templates(rng, 4000)],
    }
    dropped = {}
    for name, every in texts.items():
        allowed = [text for text in every if not is_forbidden(text)]
        texts[name] = allowed
        dropped[name] = len(every) - len(allowed)
        say(f"{name}: {len(allowed)} texts, {dropped[name]} dropped because they are held out")
    return texts, held_out, dropped


def runs(lines, rng):
    """Consecutive sentences: mostly one alone, some short runs.

    Some fill the model to its last position.
    """
    texts, run, limit = [], [], 1
    for line in lines:
        if run and word_count(" ".join(run)) >= limit:
            texts.append(" ".join(run))
            run, limit = [], rng.choices([1, 60, 400], [30, 4, 1])[0]
        run.append(line)
    return [*texts, " ".join(run)]


# --- holes ----------------------------------------------------------------------------------------


def encode(tokenizer, texts):
    """For each text its token ids, and for each token the number of its word; -1 if special."""
    encoded = tokenizer(texts, truncation=True, max_length=LONGEST, return_offsets_mapping=True)
    rows = []
    for text, ids, offsets in zip(
        texts, encoded["input_ids"], encoded["offset_mapping"], strict=True
    ):
        owner = [-1] * len(text)  # of each character
        for number, word in enumerate(WORD.finditer(text)):
            owner[word.start() : word.end()] = [number] * len(word[0])
        words = []
        for token, (start, _) in zip(ids, offsets, strict=True):
            words.append(-1 if token < len(SPECIAL) else owner[start])
        rows.append((ids, words))
    return rows


def hide(ids, words, share, rng):
    """The ids with a share of the words (at least one) behind [MASK], and which tokens it hides."""
    present = sorted({word for word in words if word >= 0})
    chosen = {word for word in present if rng.random() < share}
    if not chosen:
        chosen = set(rng.sample(present, min(1, len(present))))
    holes = [word in chosen for word in words]
    seen = [MASK if hole else token for token, hole in zip(ids, holes, strict=True)]
    return seen, holes


def any_share(rng):
    """Half the time the usual share of words; else any larger one, up to all.

    So whole texts are taken apart.
    """
    if rng.random() < 0.5:
        return USUAL
    return rng.uniform(USUAL, 1.0)


# --- model ----------------------------------------------------------------------------------------


def streams(sentiment, rows):
    """What goes into and comes out of each LayerNorm that the cut keeps.

    As {name: (tokens in, tokens out)}.
    """
    kept = ["bert.embeddings.LayerNorm"]
    for n in range(LAYERS):
        kept.append(f"bert.encoder.layer.{n}.attention.output.LayerNorm")
        kept.append(f"bert.encoder.layer.{n}.output.LayerNorm")
    seen = {name: ([], []) for name in kept}

    def keep(name):
        def hook(_module, inputs, output):
            seen[name][0].append(inputs[0][0])
            seen[name][1].append(output[0])

        return hook

    hooks = [sentiment.get_submodule(name).register_forward_hook(keep(name)) for name in kept]
    with torch.no_grad():
        for ids in rows:
            sentiment.bert(input_ids=torch.tensor([ids]))
    for hook in hooks:
        hook.remove()
    return {name: (torch.cat(into), torch.cat(out)) for name, (into, out) in seen.items()}


def cut(sentiment, rows, base):
    """A narrower BERT whose weights are those of `sentiment`, folded onto its main directions.

    The residual stream h (384) is replaced by P'h (256), with P the leading eigenvectors of the
    mean of h h' over all layers and the word vectors. A weight that reads h becomes W P, one that
    writes it P'W. A LayerNorm does not fold; its gains and biases are fitted to the folded output
    by least squares, direction by direction. `base` is the unigram.
    """
    source = sentiment.state_dict()
    vectors = source["bert.embeddings.word_embeddings.weight"]
    config = BertConfig(
        vocab_size=len(vectors),
        hidden_size=WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=sentiment.config.intermediate_size,
        max_position_embeddings=LONGEST,
        hidden_dropout_prob=0.0,  # few passes over the texts: there is nothing to forget
        attention_probs_dropout_prob=0.0,
        pad_token_id=0,
    )
    model = BertForMaskedLM(config)
    seen = streams(sentiment, rows)
    moments = [h.T @ h / h.square().sum() for _, h in seen.values()]
    moments.append(4 * vectors.T @ vectors / vectors.square().sum())
    fold = torch.linalg.eigh(sum(moments)).eigenvectors.flip(1)[:, :WIDTH]  # (384, 256)

    folded = {name: source[name] @ fold for name in source if name.endswith("embeddings.weight")}
    for n in range(LAYERS):
        layer = f"bert.encoder.layer.{n}"
        out = f"{layer}.attention.output.dense"
        mine = chosen_heads(source[f"{layer}.attention.self.value.weight"], source[f"{out}.weight"])
        for part in ("query", "key", "value"):
            name = f"{layer}.attention.self.{part}"
            folded[f"{name}.weight"] = source[f"{name}.weight"][mine] @ fold
            folded[f"{name}.bias"] = source[f"{name}.bias"][mine]
        folded[f"{out}.weight"] = fold.T @ source[f"{out}.weight"][:, mine]
        folded[f"{out}.bias"] = fold.T @ source[f"{out}.bias"]

        into, out = f"{layer}.intermediate.dense", f"{layer}.output.dense"
        folded[f"{into}.weight"] = source[f"{into}.weight"] @ fold
        folded[f"{into}.bias"] = source[f"{into}.bias"]
        folded[f"{out}.weight"] = fold.T @ source[f"{out}.weight"]
        folded[f"{out}.bias"] = fold.T @ source[f"{out}.bias"]
    for name, (before, after) in seen.items():
        x = functional.layer_norm(before @ fold, (WIDTH,))  # (token, 256)
        y = after @ fold  # (token, 256)
        gain = ((x - x.mean(0)) * (y - y.mean(0))).mean(0) / x.var(0, unbiased=False)
        bias = y.mean(0) - gain * x.mean(0)
        folded[f"{name}.weight"] = gain
        folded[f"{name}.bias"] = bias
        lost = (y - gain * x - bias).square().sum() / (y - y.mean(0)).square().sum()
        say(f"{name}: {1 - lost:.1%} of the variance kept")
    model.load_state_dict(folded, strict=False)  # only the head is new

    # at first every hole gets nearly the unigram: how frequent words are need not be learned
    with torch.no_grad():
        head = model.cls.predictions
        head.bias.copy_(base.log())
        head.transform.dense.weight.copy_(torch.eye(WIDTH))
        head.transform.LayerNorm.weight.fill_(0.3)
    return model


def chosen_heads(value, out):
    """The rows of the heads that write most into the residual stream: by |W_out W_value|."""
    size = WIDTH // HEADS
    writes = []
    for of_out, of_value in zip(out.split(size, 1), value.split(size), strict=True):
        writes.append((of_out @ of_value).norm())
    best = torch.stack(writes).topk(HEADS).indices.sort().values.tolist()
    return torch.cat([torch.arange(n * size, (n + 1) * size) for n in best])


def predict(model, rows, holes):
    """The logits of the hidden tokens only, and where they are: the head is the dearest part."""
    ids, places = pad(rows), pad(holes, False)
    hidden = model.bert(input_ids=ids, attention_mask=(ids != 0).long()).last_hidden_state
    return model.cls(hidden[places]), places


def train(model, rows, rng, passes):
    """Cross-entropy of the hidden tokens, each text with new holes in each pass."""
    lengths = [len(ids) for ids, _ in rows]
    plan = []
    for _ in range(passes):
        plan += batches(lengths, BUDGET, rng)
    optimiser, schedule = optimiser_for(model, RATE, len(plan))
    model.train()
    recent = []
    for number, batch in enumerate(plan):
        hidden = [hide(*rows[i], any_share(rng), rng) for i in batch]
        seen = [ids for ids, _ in hidden]
        holes = [tokens for _, tokens in hidden]
        logits, places = predict(model, seen, holes)  # (hole, token), (text, place)
        truth = pad([rows[i][0] for i in batch])[places]  # (hole,)
        loss = functional.cross_entropy(logits, truth)
        step(model, optimiser, schedule, loss)
        recent.append(loss.item())
        if (number + 1) % 100 == 0:
            say(f"step {number + 1}/{len(plan)}, loss {sum(recent[-100:]) / 100:.3f}")
    return len(plan)


# --- evaluate -------------------------------------------------------------------------------------


def unigram(rows, size):
    """The share of each token among the words of the training texts.

    Each is counted once more than it occurs.
    """
    tokens = []
    for ids, words in rows:
        tokens += [token for token, word in zip(ids, words, strict=True) if word >= 0]
    counts = torch.bincount(torch.tensor(tokens), minlength=size)
    return (counts + 1).float() / (counts + 1).sum()


@torch.no_grad()
def score(model, rows, share, base):
    """(hidden tokens, accuracy, perplexity, the same two of the unigram baseline).

    The holes depend on no run.
    """
    rng = random.Random(0)
    hidden = [hide(ids, words, share, rng) for ids, words in rows]
    right = guessed = 0
    surprise = base_surprise = 0.0
    count = 0
    for batch in batches([len(ids) for ids, _ in rows], 4096, random.Random(0)):
        seen = [hidden[i][0] for i in batch]
        holes = [hidden[i][1] for i in batch]
        logits, places = predict(model, seen, holes)
        truth = pad([rows[i][0] for i in batch])[places]
        right += int((logits.argmax(-1) == truth).sum())
        guessed += int((truth == base.argmax()).sum())
        surprise += functional.cross_entropy(logits, truth, reduction="sum").item()
        base_surprise -= base[truth].log().sum().item()
        count += len(truth)
    return (
        count,
        right / count,
        math.exp(surprise / count),
        guessed / count,
        math.exp(base_surprise / count),
    )


@torch.no_grad()
def in_the_hole(model, tokenizer, text):
    """The probability of every token at the one hole of a text."""
    ids = tokenizer(text, return_tensors="pt")["input_ids"]  # (1, token)
    hole = ids[0].tolist().index(MASK)
    return model(input_ids=ids).logits[0, hole].softmax(-1)


def fills(model, tokenizer, shown, base):
    """The sentence with a hole, the five likeliest fills, and P of the hidden word.

    P by the model, and by the unigram.
    """
    before, word, after = re.split(r"[\[\]]", shown)
    text = f"{before}{tokenizer.mask_token}{after}"
    likely = in_the_hole(model, tokenizer, text)
    best = likely.topk(5)
    words = []
    for p, token in zip(best.values.tolist(), best.indices, strict=True):
        words.append(f"{tokenizer.convert_ids_to_tokens(int(token))} {p:.2f}")
    number = tokenizer.convert_tokens_to_ids(word)
    assert number != SPECIAL.index("[UNK]"), word
    return text, words, word, likely[number].item(), base[number].item()


def leaning(model, tokenizer, text):
    """How much of the hole goes to seven words of praise, and how much to seven of blame."""
    likely = in_the_hole(model, tokenizer, text)
    shares = []
    for words in (PRAISE, BLAME):
        tokens = tokenizer.convert_tokens_to_ids(words.split())
        shares.append(likely[tokens].sum().item())
    return shares


@torch.no_grad()
def refill(model, tokenizer, text, share, rng):
    """A text with a share of its words hidden, and each hole filled by a draw from the model."""
    ids, words = encode(tokenizer, [text])[0]
    seen, holes = hide(ids, words, share, rng)
    likely = model(input_ids=torch.tensor([seen])).logits[0].softmax(-1)
    drawn = torch.multinomial(likely, 1, generator=torch.Generator().manual_seed(0))[:, 0].tolist()
    full = [new if hole else old for new, old, hole in zip(drawn, ids, holes, strict=True)]
    return tokenizer.decode(seen[1:-1]), tokenizer.decode(full[1:-1])


def evaluate(out, held_out, base, quick):
    """Measure the model as it was written, loaded as a user would load it."""
    model = AutoModelForMaskedLM.from_pretrained(out).eval()
    tokenizer = AutoTokenizer.from_pretrained(out)
    results = {"rows": [], "parameters": sum(p.numel() for p in model.parameters())}
    for name, texts in held_out.items():
        rows = encode(tokenizer, texts[: 40 if quick else None])
        for share in (USUAL, 0.5):
            numbers = score(model, rows, share, base)
            results["rows"].append((name, share, *numbers))
            say(name, share, " ".join(f"{number:.4g}" for number in numbers))
    results["fills"] = [fills(model, tokenizer, shown, base) for shown in SHOWN]
    results["refills"] = []
    for share in (0.2, 0.5):
        pair = refill(model, tokenizer, MANY_HOLES, share, random.Random(3))
        results["refills"].append(pair)
    for verb in ("loved", "hated"):
        text = f"the movie was {tokenizer.mask_token} and i {verb} it ."
        results[verb] = leaning(model, tokenizer, text)
        say(verb, results[verb])
    for text, best, word, mine, theirs in results["fills"]:
        say(text, best, word, f"{mine:.2e} {theirs:.2e}")
    for pair in results["refills"]:
        say(*pair)
    return results


# --- the card -------------------------------------------------------------------------------------


def write_card(out, results, options):
    """The model card, with every number taken from this run."""
    lines = []
    for name, share, count, right, surprise, guessed, base in results["rows"]:
        accuracies = f"{right:.1%} | {guessed:.1%}"
        perplexities = f"{surprise:.0f} | {base:.0f}"
        lines.append(f"| {name} | {share:.0%} | {count:,} | {accuracies} | {perplexities} |")
    _, _, count, right, surprise, guessed, base = results["rows"][0]
    low, high = wilson(right * count, count)
    shown = []
    for text, best, word, mine, theirs in results["fills"]:
        shown.append(f"| {text} | {', '.join(best)} | {word} | {mine:.4f} | {theirs:.4f} |")
    refilled = [f"- {seen}  \n  → {full}" for seen, full in results["refills"]]
    dropped = ", ".join(f"{name} {number}" for name, number in results["dropped"].items())
    warning = ""
    if options.quick:
        warning = "\n**This is the result of a smoke run (--quick): do not ship it.**\n"
    card = f"""# whence filler

A small masked language model: it guesses the words behind `[MASK]`. whence uses it to take words \
out of a text without
leaving a hole (`removal="infill"`). It reads the same token ids as the bundled model `sentiment`: \
the two tokenizers are
the same. It is made to fill holes in short English reviews, and for nothing else.
{warning}
- Architecture: `BertForMaskedLM`, {LAYERS} layers × {HEADS} heads × {WIDTH}, feed-forward \
{results["feed-forward"]}, \
{results["vocabulary"]:,} lower-cased WordPieces, tied embeddings, up to {LONGEST} tokens; \
{results["parameters"]:,} parameters, \
stored in half precision (the config asks for float32, so a plain `from_pretrained` gives \
float32). The folder holds less \
than {SIZE_LIMIT / 1e6:.0f} MB.
- Hidden tokens of rotten_tomatoes test, {USUAL:.0%} of the words hidden: accuracy **{right:.1%}** \
(95 % Wilson interval \
{low:.1%} – {high:.1%}, n = {count:,}), perplexity **{surprise:.0f}**. The unigram baseline gets \
{guessed:.1%} and {base:.0f}.
- Seed {options.seed}, {options.threads} thread(s), {results["steps"]:,} steps of about {BUDGET:,} \
tokens, \
{results["cpu"]:.0f} minutes of a CPU's time ({results["minutes"]:.0f} by the clock, beside other \
jobs); torch \
{torch.__version__}, transformers {transformers.__version__}. Made by one run of \
`training/filler.py`.

## How it was made

1. *Start.* Cut out of `sentiment`: its first {LAYERS} layers, the {HEADS} of 12 heads of each \
layer that write most, and \
everything that is 384 wide folded onto the {WIDTH} main directions of what flows through the \
layers. `sentiment` in turn \
was cut out of MiniLM. The head is new.
2. *Training.* {results["texts"]:,} texts (rotten_tomatoes twice), {results["tokens"]:,} tokens, \
each \
seen {results["passes"]} \
time(s). Whole words are hidden, all pieces of them. A hidden token is always `[MASK]`, never left \
as it is or swapped, \
because nothing else will be asked of the model. Half of the texts lose {USUAL:.0%} of their \
words, the other half any \
share from {USUAL:.0%} to all, because LIME or a deletion curve hides half of a text or more.

No checkpoint was chosen: it is the last one. The settings are judgement, after trials of a few \
hundred steps. A smoke run \
scored a throw-away model on 40 texts of the test split; nothing was chosen from that. Training \
texts with a sentence of \
more than five words that is in a held-out text, or with a sentence of the examples below, were \
dropped ({dropped}).

## Data and licences

| what | used for | licence |
|---|---|---|
| `sentiment` (see its card), and through it `all-MiniLM-L6-v2` | the starting weights | \
Apache-2.0 |
| rotten_tomatoes (Pang & Lee 2005), train | training | CC BY 4.0 |
| movie_reviews (Pang & Lee 2004), folds 0–8 | training | CC BY 4.0 |
| imdb_counterfactual (Kaushik, Hovy & Lipton 2020), train | training | Apache-2.0 |
| goemotions (Demszky et al. 2020), train, clear emotions only | training | CC BY 4.0 |
| generated sentences (`templates` in `training/sentiment.py`) | training | Apache-2.0, as this \
repository |

Labels were used only to find the clear emotions.

## How well it fills

| held-out texts | words hidden | hidden tokens | accuracy | of the unigram | perplexity | of the \
unigram |
|---|---|---|---|---|---|---|
{chr(10).join(lines)}

Accuracy and perplexity count tokens, not words: a word of three pieces is three holes. The \
unigram baseline says the same
for every hole: the shares of the tokens in the training texts.

## What it fills in

The five likeliest words; then the hidden word, with its probability by this model and by the \
unigram. None of these
sentences was trained on.

| text | fills | hidden word | P | unigram |
|---|---|---|---|---|
{chr(10).join(shown)}

Many holes, each filled by a draw of its own (the first draw, not a chosen one):

{chr(10).join(refilled)}

## What it fails at

- *Holes are filled one by one.* Each position has its own distribution. Words drawn for \
neighbouring holes need not fit
  each other, and the pieces of a long word need not make a word.
- *It hears little of the opinion around a hole.* In "the movie was [MASK] and i loved it ." seven \
words of praise get \
{results["loved"][0]:.2f} and seven of blame {results["loved"][1]:.2f}; with "hated" \
{results["hated"][0]:.2f} and \
{results["hated"][1]:.2f}.
- *It knows film reviews.* Other subjects get film words. Not for other languages.
- It learned from film critics and Reddit users, and repeats their associations, also about people.
"""
    (out / "README.md").write_text(card, encoding="utf-8")


# --- the whole run --------------------------------------------------------------------------------


def parse_arguments():
    """The options, with their defaults."""
    parser = argparse.ArgumentParser(
        description="Train the masked language model that ships with whence."
    )
    parser.add_argument(
        "--data", type=Path, default=ROOT.parent / "shared" / "data", help="folder of the data sets"
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
    parser.add_argument("--passes", type=int, default=PASSES, help="how often each text is seen")
    parser.add_argument(
        "--quick", action="store_true", help="a smoke run of about a minute; the model is poor"
    )
    options = parser.parse_args()
    if options.out is None:
        options.out = BUNDLED / "filler"
        if options.quick:
            options.out = Path(tempfile.mkdtemp(prefix="whence-filler-"))
    return options


def main():
    """From the data to the folder that ships."""
    options = parse_arguments()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    rng = random.Random(options.seed)

    texts, held_out, dropped = load_texts(options.data, rng)
    sentiment = AutoModelForSequenceClassification.from_pretrained(BUNDLED / "sentiment").eval()
    tokenizer = AutoTokenizer.from_pretrained(BUNDLED / "sentiment")
    rows = []
    for name in texts:
        rows += encode(tokenizer, texts[name][:: 60 if options.quick else 1])
    tokens = sum(len(ids) for ids, _ in rows)
    say(f"{len(rows):,} texts, {tokens:,} tokens")
    base = unigram(rows, len(tokenizer))
    with_holes = [hide(*row, 0.25, rng)[0] for row in rng.sample(rows, 400)]
    model = cut(sentiment, with_holes, base)
    steps = train(model, rows, rng, options.passes)

    write_model(model, tokenizer, options.out)
    # as saved, it would remember where `encode` cut texts off
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(BUNDLED / "sentiment" / name, options.out / name)
    results = evaluate(options.out, held_out, base, options.quick)
    results |= {
        "dropped": dropped,
        "steps": steps,
        "passes": options.passes,
        "texts": len(rows),
        "tokens": tokens,
        "vocabulary": len(tokenizer),
        "feed-forward": model.config.intermediate_size,
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
