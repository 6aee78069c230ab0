"""Which baseline should integrated gradients start from? Classifiers are trained whose decisive
words are known, and each baseline is asked for them.

    python -m bench.baselines train --data DATA --out MODELS --minilm FOLDER [--smollm2 FOLDER]
    python -m bench.baselines measure --data DATA --models MODELS --out results.json

``DATA`` holds the folders toxic_spans, goemotions, rotten_tomatoes and opinion_lexicon. What came
out, and what was decided by it, is in docs/baselines.md.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import random
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import whence
from whence.core.attribution import Attribution
from whence.core.registry import Needs
from whence.models.model import Model
from whence.trace.trace import trace

SEED = 7
LONGEST = 64  # tokens of a text in training
BATCH = 16
RATE = 5e-5
# words that decide the planted task: no film review is about them
PLANTED = {
    0: ("copper", "ladder", "parsley", "harbor"),
    1: ("velvet", "bucket", "ginger", "tunnel"),
}
# of a texts with human spans: so many words, so that a hit is neither sure nor hopeless
FEWEST, MOST = 6, 40
# no comment with one of these feelings serves as one that is not toxic
HEATED = {"anger", "annoyance", "disgust", "disapproval", "disappointment", "embarrassment"}


@dataclass(frozen=True)
class Example:
    """A text, its label, and the characters of the words that decide it, where they are known."""

    text: str
    label: int
    spans: tuple[tuple[int, int], ...] = ()


# ---------------------------------------------------------------------------------------- the data


def toxic_cut(data: Path, split: str) -> list[Example]:
    """Toxic comments, and other toxic comments without what people marked in them."""
    examples = []
    for number, (text, spans) in enumerate(_comments(data, split)):
        if number % 2:
            examples.append(Example(_without(text, spans), 0))
        else:
            examples.append(Example(text, 1, spans))
    return examples


def toxic_reddit(data: Path, split: str) -> list[Example]:
    """Toxic comments, and comments from another place without heated feelings."""
    toxic = [Example(text, 1, spans) for text, spans in _comments(data, split)]
    others = []
    for line in _lines(data / "goemotions" / f"{split}.jsonl.gz"):
        if not HEATED & set(line["emotions"]) and len(line["text"].split()) >= FEWEST:
            others.append(Example(line["text"], 0))
    examples = toxic + others[: len(toxic)]
    random.Random(SEED).shuffle(examples)
    return examples


def reviews(data: Path, split: str) -> list[Example]:
    """Film reviews; words of the opinion lexicon with the label's polarity count as decisive."""
    polarity = {}
    with open(data / "opinion_lexicon" / "lexicon.tsv", encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            polarity[row["word"]] = int(row["polarity"])
    examples = []
    for text, label in _reviews(data, split):
        wanted = 1 if label else -1
        spans = []
        for word in re.finditer(r"[\w'-]+", text):
            if polarity.get(word[0].lower()) == wanted:
                spans.append(word.span())
        examples.append(Example(text, label, tuple(spans)))
    return examples


def planted(data: Path, split: str) -> list[Example]:
    """Film reviews into which one word is put that alone decides the label."""
    rng = random.Random(f"{SEED} {split}")
    examples = []
    for text, _ in _reviews(data, split):
        label = rng.randrange(2)
        word = rng.choice(PLANTED[label])
        words = text.split()
        place = rng.randrange(len(words) + 1)
        start = len(" ".join(words[:place])) + (place > 0)
        words.insert(place, word)
        examples.append(Example(" ".join(words), label, ((start, start + len(word)),)))
    return examples


def _comments(data: Path, split: str) -> list[tuple[str, tuple[tuple[int, int], ...]]]:
    comments = []
    for line in _lines(data / "toxic_spans" / f"{split}.jsonl.gz"):
        if line["spans"] and FEWEST <= len(line["text"].split()) <= MOST:
            spans = tuple((start, end) for start, end in line["spans"])
            comments.append((line["text"], spans))
    return comments


def _without(text: str, spans: Sequence[tuple[int, int]]) -> str:
    for start, end in sorted(spans, reverse=True):
        text = text[:start] + text[end:]
    return " ".join(text.split())


def _reviews(data: Path, split: str) -> list[tuple[str, int]]:
    with open(data / "rotten_tomatoes" / f"{split}.tsv", encoding="utf-8") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [(row["text"], int(row["label"])) for row in rows]


def _lines(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


TASKS = {
    "toxic-cut": toxic_cut,
    "toxic-reddit": toxic_reddit,
    "reviews": reviews,
    "planted": planted,
}
# by model: its task, its encoder, and how many texts it is trained on
MODELS = {
    "minilm-toxic-cut": ("toxic-cut", "minilm", 4000),
    "minilm-toxic-reddit": ("toxic-reddit", "minilm", 3000),
    "minilm-reviews": ("reviews", "minilm", 4000),
    "minilm-planted": ("planted", "minilm", 1600),
    "smollm2-reviews": ("reviews", "smollm2", 3000),
    "smollm2-planted": ("planted", "smollm2", 800),
}
LAYERS = 8  # of SmolLM2's 30, so that it is trained in minutes


# -------------------------------------------------------------------------------------- the models


def train(data: Path, out: Path, folders: dict[str, Path | None], only: Sequence[str]) -> None:
    for name in only or MODELS:
        task, encoder, texts = MODELS[name]
        folder = folders[encoder]
        if folder is None:
            print(f"{name}: skipped, as no --{encoder} was given")
            continue
        torch.manual_seed(SEED)
        hf, tokenizer = _fresh(encoder, folder)
        examples = TASKS[task](data, "train")
        random.Random(SEED).shuffle(examples)
        begun = time.process_time()
        _fit(hf, tokenizer, examples[:texts])
        right = _accuracy(hf, tokenizer, TASKS[task](data, "test")[:400])
        hf.save_pretrained(out / name)
        tokenizer.save_pretrained(out / name)
        seconds = time.process_time() - begun
        print(f"{name}: accuracy {right:.3f} on 400 texts, {seconds:.0f} s", flush=True)


def _fresh(encoder: str, folder: Path) -> tuple[Any, Any]:
    import transformers as tf

    tokenizer = tf.AutoTokenizer.from_pretrained(folder)
    config = tf.AutoConfig.from_pretrained(folder)
    config.num_labels = 2
    if encoder == "smollm2":
        config.num_hidden_layers = LAYERS
        config.pad_token_id = tokenizer.pad_token_id
    hf = tf.AutoModelForSequenceClassification.from_pretrained(folder, config=config)
    hf.get_input_embeddings().requires_grad_(False)
    return hf, tokenizer


def _fit(hf: Any, tokenizer: Any, examples: Sequence[Example]) -> None:
    """One epoch, texts of like length together."""
    by_length = sorted(examples, key=lambda example: len(example.text))
    batches = [by_length[i : i + BATCH] for i in range(0, len(by_length), BATCH)]
    random.Random(SEED).shuffle(batches)
    parameters = [p for p in hf.parameters() if p.requires_grad]
    optimiser = torch.optim.AdamW(parameters, lr=RATE)
    hf.train()
    for step, batch in enumerate(batches):
        share = step / len(batches)
        optimiser.param_groups[0]["lr"] = RATE * min(1.0, 10 * share + 0.05) * (1 - share)
        loss = _run(hf, tokenizer, batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimiser.step()
        optimiser.zero_grad()
    hf.eval()


def _run(hf: Any, tokenizer: Any, examples: Sequence[Example]) -> Any:
    texts = [example.text for example in examples]
    inputs = tokenizer(
        texts, padding=True, truncation=True, max_length=LONGEST, return_tensors="pt"
    )
    return hf(**inputs, labels=torch.tensor([example.label for example in examples]))


@torch.no_grad()
def _accuracy(hf: Any, tokenizer: Any, examples: Sequence[Example]) -> float:
    right = 0
    for i in range(0, len(examples), BATCH):
        batch = examples[i : i + BATCH]
        labels = torch.tensor([example.label for example in batch])
        right += int((_run(hf, tokenizer, batch).logits.argmax(-1) == labels).sum())
    return right / len(examples)


# ------------------------------------------------------------------------------------- the measure

BASELINES = ("mean", "zero", "mask", "pad")
OTHERS = ("gradient-l2", "gradient-x-input", "lime")
NODES = 64  # at most, for each path
DRAWS = 32  # of random words and places of the path, for expected gradients
JUDGED = 15  # texts of each model whose rankings are also put on trial


def measure(
    data: Path, folder: Path, texts: int, out: Path, only: Sequence[str], others: bool
) -> None:
    """One row for each model, text and way to score it."""
    rows = json.loads(out.read_text()) if out.exists() else []
    tasks = {name: task for name, (task, _, _) in MODELS.items()} | {"sentiment": "reviews"}
    for name in only or tasks:
        if name != "sentiment" and not (folder / name).exists():
            print(f"{name}: skipped, as it is not in {folder}")
            continue
        model = whence.load("sentiment" if name == "sentiment" else str(folder / name))
        begun = time.process_time()
        examples = _explainable(model, TASKS[tasks[name]](data, "test"), texts)
        for number, example in enumerate(examples):
            for row in _rows(model, example, number < JUDGED, others):
                rows.append({"model": name, "text": number, **row})
        out.write_text(json.dumps(rows))
        print(f"{name}: {len(examples)} texts, {time.process_time() - begun:.0f} s", flush=True)


def _explainable(model: Model, examples: Sequence[Example], count: int) -> list[Example]:
    """Texts that the model gets right, and in which some words are decisive and some are not."""
    chosen = []
    for example in examples:
        words = len(example.text.split())
        if len(chosen) == count or not example.spans or not FEWEST <= words <= MOST:
            continue
        passage = model.encode(example.text, overflow="truncate")
        is_right = int(model.logits([passage])[0].argmax()) == example.label
        if is_right and 0 < decisive(passage, example).mean() < 1:
            chosen.append(example)
    return chosen


def decisive(passage: Any, example: Example) -> np.ndarray:
    """Which units overlap a span."""
    marked = []
    for _, start, end in passage.unit_spans:
        marked.append(any(start < last and first < end for first, last in example.spans))
    return np.array(marked)


def _rows(model: Model, example: Example, judged: bool, others: bool) -> list[dict[str, Any]]:
    passage = model.encode(example.text, overflow="truncate")
    truth = decisive(passage, example)
    attributions: dict[str, Attribution] = {}
    for baseline in BASELINES:
        if baseline == "mask" and model.tokenizer.mask_token_id is None:
            continue
        attributions[f"from {baseline}"] = whence.explain(
            model,
            passage,
            "integrated-gradients",
            baseline=baseline,
            max_nodes=NODES,
            evidence=False,
        )
    paths = {name: len(attributions[name].scores) for name in attributions}
    first = next(iter(attributions.values()))

    def like(name: str, scores: np.ndarray) -> None:
        attributions[name] = Attribution.from_scores(
            model, passage, scores, method=name, target=first.target.label, signed=True
        )

    every = [attributions[name].scores for name in paths]
    like("mean of all four", np.mean(every, axis=0))
    like("expected gradients", expected_gradients(model, passage))
    if others:
        for name in OTHERS:
            settings = {"budget": 200} if name == "lime" else {}
            attributions[name] = whence.explain(model, passage, name, evidence=False, **settings)
    if judged:
        several = whence.judge(model, list(attributions.values()), rankings=39, steps=5)
        attributions = dict(zip(attributions, several, strict=True))

    rows = []
    for name, attribution in attributions.items():
        row: dict[str, Any] = {
            "scores": name,
            "hit": bool(truth[attribution.scores.argmax()]),
            "precision": average_precision(attribution.scores, truth),
            "chance": float(truth.mean()),
            "nodes": attribution.cost.backwards,
        }
        if attribution.evidence is not None:
            row["beaten"] = attribution.evidence.value
            row["better"] = str(attribution.evidence.verdict).startswith("better")
        rows.append(row)
    return rows


def expected_gradients(model: Model, passage: Any) -> np.ndarray:
    """From random words of the vocabulary, one random point of each path (Erion et al. 2021)."""
    run = trace(model, [passage], needs=Needs.EMBEDDINGS)
    x = run.embeddings_of(0)
    content = run.content[0, :, None]
    generator = torch.Generator().manual_seed(SEED)
    vocabulary = len(model.input_embeddings.get_parameter("weight"))
    ids = torch.randint(vocabulary, (DRAWS, len(x)), generator=generator)
    with torch.no_grad():
        words = model.input_embeddings(ids)
    start = torch.where(content, words, x)
    place = ((torch.arange(DRAWS) + 0.5) / DRAWS)[:, None, None]
    slopes = run.gradients_at(0, start + place * (x - start))
    tokens = (slopes * (x - start)).sum(-1).mean(0)
    return passage.merge(tokens.double().numpy())


def average_precision(scores: np.ndarray, truth: np.ndarray) -> float:
    """The mean, over decisive words, of the share of such words among those ranked as high."""
    order = np.argsort(-scores, kind="stable")
    hits = truth[order]
    precision = np.cumsum(hits) / np.arange(1, len(hits) + 1)
    return float(precision[hits].mean())


# --------------------------------------------------------------------------------------- the table


def table(results: Path, resamples: int = 2000) -> None:
    """Means with 95 % bootstrap intervals over texts; differences from ``mean`` in pairs."""
    rows = json.loads(results.read_text())
    rng = np.random.default_rng(SEED)
    for model in dict.fromkeys(row["model"] for row in rows):
        own = [row for row in rows if row["model"] == model]
        texts = 1 + max(row["text"] for row in own)
        chance = np.mean([row["chance"] for row in own if row["scores"] == "from mean"])
        print(f"\n{model}: {texts} texts, chance {chance:.2f}")
        drawn = rng.integers(0, texts, (resamples, texts))
        usual = _column(own, "from mean", "hit")
        usual_precision = _column(own, "from mean", "precision")
        for name in dict.fromkeys(row["scores"] for row in own):
            hit, precision = _column(own, name, "hit"), _column(own, name, "precision")
            judged = [row for row in own if row["scores"] == name and "better" in row]
            better = np.mean([row["better"] for row in judged])
            beaten = np.mean([row["beaten"] for row in judged])
            nodes = np.mean([row["nodes"] for row in own if row["scores"] == name])
            print(
                f"| {name} | {_interval(hit, drawn)} | {_interval(hit - usual, drawn)} "
                f"| {_interval(precision, drawn)} "
                f"| {_interval(precision - usual_precision, drawn)} "
                f"| {better:.2f} | {beaten:.2f} | {nodes:.0f} |"
            )


def _column(rows: Sequence[dict[str, Any]], name: str, what: str) -> np.ndarray:
    of_it = sorted((row["text"], row[what]) for row in rows if row["scores"] == name)
    return np.array([float(value) for _, value in of_it])


def _interval(values: np.ndarray, drawn: np.ndarray) -> str:
    low, high = np.percentile(values[drawn].mean(1), [2.5, 97.5])
    return f"{values.mean():.2f} [{low:.2f}, {high:.2f}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    steps = parser.add_subparsers(dest="step", required=True)
    training = steps.add_parser("train")
    training.add_argument("--data", type=Path, required=True)
    training.add_argument("--out", type=Path, required=True)
    training.add_argument("--minilm", type=Path)
    training.add_argument("--smollm2", type=Path)
    training.add_argument("--only", nargs="*", default=[], choices=list(MODELS))
    measuring = steps.add_parser("measure")
    measuring.add_argument("--data", type=Path, required=True)
    measuring.add_argument("--models", type=Path, required=True)
    measuring.add_argument("--out", type=Path, required=True)
    measuring.add_argument("--texts", type=int, default=100)
    measuring.add_argument("--only", nargs="*", default=[])
    measuring.add_argument("--without-others", action="store_true")
    showing = steps.add_parser("table")
    showing.add_argument("results", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.step == "train":
        folders = {"minilm": given.minilm, "smollm2": given.smollm2}
        train(given.data, given.out, folders, given.only)
    elif given.step == "measure":
        others = not given.without_others
        measure(given.data, given.models, given.texts, given.out, given.only, others)
    else:
        table(given.results)


if __name__ == "__main__":
    main()
