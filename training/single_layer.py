"""Train the single-layer attention classifier that ships with whence.

It is the model of "Attention meets post-hoc interpretability". The idea: on a model with one
attention layer, no residual and no normalisation, gradients, LIME and Shapley values are formulas.
To see them on sentences, such a model must have learned something. This one reads film reviews word
by word; what it lacks in accuracy is the price of its formulas.

Read it from the bottom (`main`), or top-down: tokenizer -> train -> evaluate -> write card.

    python training/single_layer.py            # the real thing, minutes on one core
    python training/single_layer.py --quick    # a smoke run into a temporary folder; a poor model
"""

import argparse
import copy
import random
import sys
import tempfile
import time
from pathlib import Path

import torch
import transformers
from sentiment import START, batches, pad, read_tsv, say, wilson, write_model
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from torch.nn import functional
from transformers import AutoModelForSequenceClassification, AutoTokenizer, PreTrainedTokenizerFast

import whence.models.single_layer as single_layer

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "src" / "whence" / "models" / "bundled" / "single-layer"
SIZE_LIMIT = 6_000_000
SPECIAL = ("[PAD]", "[UNK]", "[CLS]")
FEWEST = 2  # times that a word must occur in the training texts

EPOCHS = 12
BUDGET = 2048  # tokens of a batch
RATE, DECAY = 1e-3, 0.3
# The share of words that become [UNK] in training: what a word is worth, with others gone, is what
# will be asked of the model.
FORGET = 0.15


def new_tokenizer(texts):
    """Lower-cased words, and signs one by one; what is rare is [UNK]. A text begins with [CLS]."""
    tokenizer = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    word_or_sign = Regex(r"\w+(?:['’]\w+)*|[^\w\s]")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(word_or_sign, "removed", invert=True)
    trainer = trainers.WordLevelTrainer(
        special_tokens=list(SPECIAL), min_frequency=FEWEST, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A", special_tokens=[("[CLS]", SPECIAL.index("[CLS]"))]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        mask_token="[UNK]",
        model_max_length=256,
    )


def new_model(tokenizer):
    """K = 6 heads, d_e = 128, d_att = d_out = 64, T_max = 256."""
    config = single_layer.SingleLayerConfig(
        vocab_size=len(tokenizer),
        num_labels=2,
        id2label={0: "negative", 1: "positive"},
        label2id={"negative": 0, "positive": 1},
        pad_token_id=SPECIAL.index("[PAD]"),
    )
    model = single_layer.SingleLayerForSequenceClassification(config)
    # the authors' N(0, 1) embeddings leave no room for words that occur twice
    with torch.no_grad():
        model.embedding.weight.mul_(0.1)
        model.embedding.weight[SPECIAL.index("[PAD]")].zero_()
    return model


def encode(tokenizer, pairs):
    """(ids, label) of each text."""
    rows = tokenizer([text for text, _ in pairs], truncation=True)["input_ids"]
    return [(ids, label) for ids, (_, label) in zip(rows, pairs, strict=True)]


def run(model, rows):
    """The logits of a batch of rows of ids."""
    ids = pad(rows)
    return model(input_ids=ids, attention_mask=(ids != 0).long()).logits


@torch.no_grad()
def accuracy(model, rows):
    """The share of rows whose label is the larger logit."""
    right = 0
    for batch in batches([len(ids) for ids, _ in rows], 8192, random.Random(0)):
        guess = run(model, [rows[i][0] for i in batch]).argmax(-1)
        right += int((guess == torch.tensor([rows[i][1] for i in batch])).sum())
    return right / len(rows)


def train(model, rows, dev, epochs, rng):
    """AdamW; words are forgotten at random; the epoch with the best dev accuracy is kept."""
    lengths = [len(ids) for ids, _ in rows]
    steps = epochs * len(batches(lengths, BUDGET, random.Random(0)))
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=DECAY)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: max(0.0, 1 - step / steps))
    best, best_weights = 0.0, None
    for epoch in range(epochs):
        total = 0.0
        plan = batches(lengths, BUDGET, rng)
        for batch in plan:
            seen = [forget(rows[i][0], rng) for i in batch]
            labels = torch.tensor([rows[i][1] for i in batch])
            loss = functional.cross_entropy(run(model, seen), labels, label_smoothing=0.05)
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            total += loss.item()
        score = accuracy(model, dev)
        say(f"epoch {epoch + 1}/{epochs}, loss {total / len(plan):.3f}, dev {score:.3f}")
        if score > best:
            best, best_weights = score, copy.deepcopy(model.state_dict())
    model.load_state_dict(best_weights)
    return best


def forget(ids, rng):
    """A text of which some words have become [UNK]; [CLS] stays."""
    start, unknown = SPECIAL.index("[CLS]"), SPECIAL.index("[UNK]")
    return [t if t == start or rng.random() > FORGET else unknown for t in ids]


def write_card(out, results, options):
    """The model card, with every number taken from this run."""
    low, high = wilson(results["right"] * results["count"], results["count"])
    warning = ""
    if options.quick:
        warning = "\n**This is the result of a smoke run (--quick): do not ship it.**\n"
    card = f"""# whence single-layer

A classifier with one attention layer, whose gradients, LIME coefficients and Shapley values are \
known in closed form. It is the model of
Lopardo, Precioso & Garreau, "Attention meets post-hoc interpretability" (ICML 2024), trained \
anew: their weights are not \
public. It is made for
seeing explanations beside their formulas, and for nothing else; `sentiment` is the better \
classifier.
{warning}
- Architecture: `SingleLayerForSequenceClassification` (`whence/models/single_layer.py`): \
embedding + sinusoidal positional \
encoding, K = 6 heads, \
d_e = 128, d_att = d_out = 64, [CLS] query, linear read-out of the heads' mean; no residual, no \
normalisation, no biases. Words are tokens \
({results["vocabulary"]:,}, lower-cased, each at least {FEWEST} times in the training texts), all \
others [UNK]; up to 256 of them. \
{results["parameters"]:,} parameters, stored in half precision (the config asks for float32). The \
folder holds less than \
{SIZE_LIMIT / 1e6:.0f} MB.
- rotten_tomatoes test: **{results["right"]:.1%}** (95 % Wilson interval {low:.1%} – {high:.1%}, n \
= \
{results["count"]:,}); dev \
{results["dev"]:.1%}.
- Seed {options.seed}, {results["epochs"]} epochs, {results["minutes"]:.0f} minutes on \
{options.threads} thread(s), beside other jobs; torch \
{torch.__version__}, transformers {transformers.__version__}. Made by one run of \
`training/single_layer.py`.

## How it was made

AdamW, rate {RATE} falling to nothing, weight decay {DECAY}, label smoothing 0.05; the epoch with \
the best dev accuracy was \
kept. In training each \
word becomes [UNK] with probability {FORGET}: removing words from a text (LIME, Shapley) is then \
something that the model has \
seen. The authors' \
embeddings start from N(0, 1), these from a tenth of it. Where the authors fill a text up to 256 \
places with [UNK] that is \
attended to, padding \
here is masked.

## Data and licence

rotten_tomatoes (Pang & Lee 2005), train; CC BY 4.0.

## What it fails at

- *Word order.* Beside the positional encoding nothing tells it; "not bad" is little more than \
"not" and "bad".
- *Rare words.* All are one: [UNK].
- It learned from film critics, and repeats their associations, also about people.
"""
    (out / "README.md").write_text(card, encoding="utf-8")


def parse_arguments():
    """The options, with their defaults."""
    parser = argparse.ArgumentParser(
        description="Train the single-layer attention classifier that ships with whence."
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
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--quick", action="store_true", help="a smoke run; the model is poor")
    options = parser.parse_args()
    if options.out is None:
        options.out = OUT
        if options.quick:
            options.out = Path(tempfile.mkdtemp(prefix="whence-single-layer-"))
    if options.quick:
        options.epochs = 1
    return options


def main():
    """From the data to the folder that ships."""
    options = parse_arguments()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    rng = random.Random(options.seed)
    splits = {}
    for split in ("train", "dev", "test"):
        pairs = read_tsv(options.data / "rotten_tomatoes" / f"{split}.tsv")
        splits[split] = pairs[::20] if options.quick else pairs
    tokenizer = new_tokenizer([text for text, _ in splits["train"]])
    rows = {split: encode(tokenizer, pairs) for split, pairs in splits.items()}
    model = new_model(tokenizer)
    dev = train(model, rows["train"], rows["dev"], options.epochs, rng)
    write_model(model, tokenizer, options.out)

    # measured as it was written, loaded as a user would load it
    stored = AutoModelForSequenceClassification.from_pretrained(options.out).eval()
    stored_tokenizer = AutoTokenizer.from_pretrained(options.out)
    results = {
        "right": accuracy(stored, encode(stored_tokenizer, splits["test"])),
        "count": len(splits["test"]),
        "dev": dev,
        "vocabulary": len(tokenizer),
        "parameters": sum(p.numel() for p in stored.parameters()),
        "epochs": options.epochs,
        "minutes": (time.time() - START) / 60,
    }
    write_card(options.out, results, options)
    size = sum(path.stat().st_size for path in options.out.iterdir())
    say(f"test {results['right']:.3f}; wrote {size:,} bytes to {options.out}")
    if size > SIZE_LIMIT:
        sys.exit(f"the folder holds {size:,} bytes, more than {SIZE_LIMIT:,}")


if __name__ == "__main__":
    main()
