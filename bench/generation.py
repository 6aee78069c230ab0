"""Generated text: what each of 32 outputs owes to the tokens before it, beside inseq and the floor.

    python -m bench.generation --peers FOLDER             # all methods, one turn each: half an hour
    python -m bench.generation --only saliency --turns 3
    python -m bench.generation --only integrated_gradients --steps 4
    python -m bench.generation --only occlusion --some 2
    python -m bench.generation --memory                   # peak memory, a process for each run

``FOLDER`` is where inseq is: ``pip install --no-deps --target FOLDER inseq==0.7.1 treescope``. The
model has the size of GPT-2 small and random weights, the prompt 64 tokens, the continuation is
given. The sides take turns, in one process and on one thread, and seconds are the processor's.
How far what a side returns differs from inseq's is told, so that all do the same work; integrated
gradients differ by their quadrature, as our nodes lie in panels.

inseq's occlusion runs the model on one row for each output and token: a quarter of an hour. With
``--some N`` it explains the N outputs in the middle, and its seconds are multiplied by how many
calls it would make for all of them. Its memory is then that of these outputs, whose texts are
shorter than the last ones'.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from torch import Tensor

import whence
from bench.status import status
from bench.timing import Ratio
from whence.core.sizes import human
from whence.trace.memory import give_back_holes

METHODS = ("saliency", "integrated_gradients", "occlusion")
SIDES = ("inseq", "floor", "ours")
# ours over inseq's, at most: 1.9, 1.6 and 15 times faster
LIMITS = {"saliency": 1 / 1.9, "integrated_gradients": 1 / 1.6, "occlusion": 1 / 15}
OVER_FLOOR = 1.1
# rows of a batch of the floor, on one thread; a node took 14.4 s by itself, 12.2 s among four and
# 11.8 s among sixteen
NODES, ROWS = 4, 8
SEED = 0


@dataclass(frozen=True)
class Task:
    """A model, a prompt and a continuation, as text and as ids."""

    hf: Any
    tokenizer: Any
    prompt: str
    continuation: str
    ids: Tensor  # of both
    outputs: int
    steps: int = 16  # of integrated gradients, on both sides; inseq's default is 50
    some: int | None = None  # outputs that inseq's occlusion explains

    @property
    def start(self) -> int:
        """Tokens of the prompt."""
        return len(self.ids) - self.outputs

    @property
    def middle(self) -> range:
        """The outputs that inseq's occlusion explains."""
        some = self.some or self.outputs
        first = (self.outputs - some) // 2
        return range(first, first + some)

    @property
    def read(self) -> Tensor:
        """What the model reads: the last output is never read."""
        return self.ids[:-1]

    @property
    def written(self) -> Tensor:
        return self.ids[self.start :]


def task(
    prompt: int = 64,
    outputs: int = 32,
    layers: int = 12,
    steps: int = 16,
    some: int | None = None,
) -> Task:
    import transformers as tf

    torch.manual_seed(SEED)
    hf = tf.GPT2LMHeadModel(tf.GPT2Config(n_layer=layers)).eval()
    # no side pays for gradients that it does not want
    hf.requires_grad_(False)
    size = hf.config.vocab_size

    generator = torch.Generator().manual_seed(SEED)
    ids = torch.randint(size - 2, (prompt + outputs,), generator=generator)
    words = [f"w{i}" for i in ids.tolist()]
    return Task(
        hf,
        words_of(size),
        prompt=" ".join(words[:prompt]),
        continuation=" " + " ".join(words[prompt:]),
        ids=ids,
        outputs=outputs,
        steps=steps,
        some=some,
    )


def asked_for(arguments: argparse.Namespace) -> Task:
    return task(
        arguments.prompt,
        arguments.outputs,
        arguments.layers,
        arguments.steps,
        arguments.some,
    )


def words_of(size: int) -> Any:
    """A tokenizer without a file: the words w0, w1, …, and two special tokens as the last ids.

    One hides others: inseq takes the unknown token for that, whence the mask, so it is both.
    """
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    end, hidden = "<|endoftext|>", "<hidden>"
    vocabulary = {f"w{i}": i for i in range(size - 2)} | {hidden: size - 2, end: size - 1}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=hidden))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=end,
        pad_token=end,
        unk_token=hidden,
        mask_token=hidden,
    )


# --------------------------------------------------------------------------------------- the sides

# Outputs in rows, places in columns, 0 where an output could not read. Of saliency, the norm of
# each gradient; of integrated gradients, the sum over an embedding; of occlusion, the size of a
# change, as inseq keeps no sign of it.
Table = Tensor


def of_inseq(t: Task, method: str) -> Callable[[], Table]:
    import inseq

    settings: dict[str, int] = {}
    if method == "integrated_gradients":
        settings = {"n_steps": t.steps}
    if method == "occlusion" and t.some is not None:
        first, last = t.start + t.middle.start, t.start + t.middle.stop
        settings = {"attr_pos_start": first, "attr_pos_end": last}
    # a tokenizer of its own, which it changes
    model = inseq.load_model(t.hf, method, tokenizer=words_of(t.hf.config.vocab_size), device="cpu")

    def run() -> Table:
        out = model.attribute(
            t.prompt,
            t.prompt + t.continuation,
            attributed_fn="logit",
            show_progress=False,
            **settings,
        )
        scores = out.sequence_attributions[0].target_attributions[:-1].transpose(0, 1)
        if method == "saliency":
            scores = scores.norm(dim=-1)
        elif method == "integrated_gradients":
            scores = scores.sum(-1)
        # where it explains some outputs, places behind the last of them are left out
        behind = len(t.read) - scores.shape[1]
        return torch.nn.functional.pad(scores.nan_to_num(), (0, behind))

    return run


# inseq's method by our name, with the settings that make it the same number: the token that stands
# for others is inseq's, and as many nodes as inseq has steps are neither added to nor saved
OURS: dict[str, tuple[str, dict[str, Any]]] = {
    "saliency": ("gradient-l2", {}),
    "integrated_gradients": ("integrated-gradients", {"baseline": "mask"}),
    "occlusion": ("occlusion", {"removal": "mask"}),
}


def ours(t: Task, method: str) -> Callable[[], Table]:
    """The same through the public surface, each token a unit."""
    model = whence.load(t.hf, tokenizer=t.tokenizer)
    name, settings = OURS[method]
    if method == "integrated_gradients":
        settings = {**settings, "nodes": t.steps, "max_nodes": t.steps}

    def explained(prompt: str, continuation: str) -> whence.Generation:
        return whence.generate(
            model,
            prompt,
            {name: settings},
            continuation=continuation,
            units="token",
            read="logit",
            evidence=False,
        )

    # what is tried once of every model is measured elsewhere (bench.guard)
    explained("w1 w2 w3", " w4 w5")

    def run() -> Table:
        result = explained(t.prompt, t.continuation)
        # the last output stands before no other
        scores = np.nan_to_num(result.matrix(name)[:, : len(t.read)])
        return torch.as_tensor(abs(scores) if method == "occlusion" else scores)

    return run


def floor(t: Task, method: str) -> Callable[[], Table]:
    """The model's own passes and nothing else."""
    return {
        "saliency": gradients,
        "integrated_gradients": integrals,
        "occlusion": removals,
    }[method](t)


def gradients(t: Task) -> Callable[[], Table]:
    """One forward of everything, and a backward for each output."""
    embeddings = t.hf.get_input_embeddings()(t.read)[None]

    def run() -> Table:
        return torch.stack([of_output[0].norm(dim=-1) for of_output in _backwards(t, embeddings)])

    return run


def integrals(t: Task) -> Callable[[], Table]:
    """The same at each node of the path, which all tokens go together."""
    table = t.hf.get_input_embeddings()
    end, begin = table(t.read), table(torch.full_like(t.read, t.tokenizer.unk_token_id))
    nodes, weights = (torch.tensor(x / 2) for x in np.polynomial.legendre.leggauss(t.steps))
    batches = list(zip((nodes + 0.5).split(NODES), weights.split(NODES), strict=True))

    def run() -> Table:
        total = torch.zeros(t.outputs, *end.shape)
        for some, their_weights in batches:
            on_the_way = begin + some.float()[:, None, None] * (end - begin)
            for row, of_output in zip(total, _backwards(t, on_the_way), strict=True):
                row += torch.tensordot(their_weights.float(), of_output, dims=1)
        return (total * (end - begin)).sum(-1)

    return run


def _backwards(t: Task, embeddings: Tensor) -> Iterator[Tensor]:
    """For each output, the gradients of all rows at once: no row depends on another."""
    leaf = embeddings.clone().requires_grad_()
    logits = t.hf(inputs_embeds=leaf, use_cache=False, logits_to_keep=t.outputs).logits
    values = logits.gather(2, t.written.expand(len(leaf), -1)[..., None])[..., 0].sum(0)
    for output, value in enumerate(values):
        is_last = output == t.outputs - 1
        yield torch.autograd.grad(value, [leaf], retain_graph=not is_last)[0]


def removals(t: Task) -> Callable[[], Table]:
    """What is read, and the same without each token: as many rows as tokens, and one."""
    places = len(t.read)
    rows = t.read.repeat(places + 1, 1)
    rows[torch.arange(places), torch.arange(places)] = t.tokenizer.unk_token_id
    # of an output, only the places before it
    readable = torch.ones(t.outputs, places).tril(t.start - 1)

    @torch.inference_mode()
    def run() -> Table:
        values = []
        for batch in rows.split(ROWS):
            logits = t.hf(batch, use_cache=False, logits_to_keep=t.outputs).logits
            written = t.written.expand(len(batch), -1)[..., None]
            values.append(logits.gather(2, written)[..., 0])
        of_rows = torch.cat(values)
        return (of_rows[-1] - of_rows[:-1]).abs().T * readable

    return run


MAKERS = {"inseq": of_inseq, "floor": floor, "ours": ours}


# ----------------------------------------------------------------------------------------- seconds


def calls(t: Task, method: str) -> tuple[int, int]:
    """Forwards that inseq makes, and their rows, by what tests/generation/test_peer_inseq.py saw.

    >>> calls(Task(None, None, "", "", torch.zeros(96), outputs=32), "occlusion")
    (2576, 2576)
    """
    if method == "saliency":
        return t.outputs, t.outputs
    if method == "integrated_gradients":
        return t.outputs, t.outputs * t.steps
    # each place that an output could read, and the text as it is
    forwards = _calls_of_occlusion(t, range(t.outputs))
    return forwards, forwards


def _calls_of_occlusion(t: Task, outputs: range) -> int:
    return sum(t.start + output + 1 for output in outputs)


def seconds(
    t: Task, method: str, runs: dict[str, Callable[[], Table]], turns: int
) -> dict[str, list[float]]:
    """Of each side, in turns; who is first changes."""
    taken: dict[str, list[float]] = {side: [] for side in runs}
    tables: dict[str, Table] = {}
    for turn in range(turns):
        order = list(runs) if turn % 2 == 0 else list(runs)[::-1]
        for side in order:
            started = time.process_time()
            tables[side] = runs[side]()
            taken[side].append(time.process_time() - started)
    if "inseq" in taken and method == "occlusion":
        share = _calls_of_occlusion(t, t.middle) / _calls_of_occlusion(t, range(t.outputs))
        taken["inseq"] = [of_some / share for of_some in taken["inseq"]]
        rows = slice(t.middle.start, t.middle.stop)
        for side in tables.keys() - {"inseq"}:
            tables[side] = tables[side][rows]
    first, expected = next(iter(tables.items()))
    for side, table in tables.items():
        print(f"  {side} differs from {first} by {differs(table, expected):.0e}", flush=True)
    return taken


def differs(table: Table, expected: Table) -> float:
    """Relative to the largest number."""
    return float((table - expected).abs().max() / expected.abs().max())


def ratios(method: str, taken: dict[str, list[float]]) -> list[Ratio]:
    pairs = [("inseq", "floor", None)]
    if "ours" in taken:
        pairs = [("ours", "inseq", LIMITS[method]), ("ours", "floor", OVER_FLOOR)]
    found = []
    for what, over, limit in pairs:
        if what not in taken or over not in taken:
            continue
        of_pairs = sorted(a / b for a, b in zip(taken[what], taken[over], strict=True))
        quarter = len(of_pairs) // 4
        found.append(
            Ratio(
                what=f"{method}, {what}",
                over=over,
                ratio=median(of_pairs),
                low=of_pairs[quarter],
                high=of_pairs[-1 - quarter],
                seconds=median(taken[what]),
                limit=limit,
            )
        )
    return found


def measured(t: Task, method: str, sides: tuple[str, ...], turns: int) -> Iterator[dict[str, Any]]:
    runs = {}
    for side in sides:
        try:
            runs[side] = MAKERS[side](t, method)
        except ModuleNotFoundError as problem:
            print(f"{method}, {side}: left out, {problem}", flush=True)
    taken = seconds(t, method, runs, turns)
    for side, all_turns in taken.items():
        note = ""
        if side == "inseq":
            forwards, rows = calls(t, method)
            note = f"{forwards} forwards of {rows} rows"
        print(f"{method:<22} {side:<6} {median(all_turns):8.2f} s  {note}", flush=True)
        yield {"method": method, "side": side, "seconds": all_turns}
    for ratio in ratios(method, taken):
        verdict = ""
        if ratio.holds is not None:
            verdict = f"at most {ratio.limit:.3f}: {'yes' if ratio.holds else 'NO'}"
        spread = f"{ratio.ratio:7.3f} [{ratio.low:.3f}, {ratio.high:.3f}]"
        print(f"{ratio.what:<29} over {ratio.over:<6} {spread}  {verdict}", flush=True)
        yield asdict(ratio)


# ------------------------------------------------------------------------------------------ memory


def peak(method: str, side: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Bytes above the loaded model at the highest moment, in a process of its own."""
    command = [sys.executable, "-m", "bench.generation", "--peak", method, side]
    command += ["--prompt", str(arguments.prompt), "--outputs", str(arguments.outputs)]
    command += ["--steps", str(arguments.steps), "--layers", str(arguments.layers)]
    if arguments.some is not None:
        command += ["--some", str(arguments.some)]
    if arguments.peers:
        command += ["--peers", arguments.peers]
    root = Path(__file__).parents[1]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=root)
    if done.returncode:
        complaints = done.stderr.strip().splitlines() or ["killed"]
        print(f"{method}, {side}: left out, {complaints[-1]}", flush=True)
        return {"method": method, "side": side, "problem": complaints[-1]}
    size = int(done.stdout.split()[-1])
    print(f"{method:<22} {side:<6} {human(size):>9} above the loaded model", flush=True)
    return {"method": method, "side": side, "bytes": size}


def peak_of_this_process(method: str, side: str, arguments: argparse.Namespace) -> int:
    # a small one first, for what is only loaded once
    MAKERS[side](task(prompt=4, outputs=2, layers=1), method)()
    t = asked_for(arguments)
    run = MAKERS[side](t, method)
    give_back_holes()  # or what a run needs would lie in the holes that loading left
    Path("/proc/self/clear_refs").write_text("5")  # the highest moment is now
    before = status("VmRSS")
    run()
    return status("VmHWM") - before


# -------------------------------------------------------------------------------------------- main


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.generation", description=__doc__)
    parser.add_argument("--only", choices=METHODS, help="one method")
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=SIDES)
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--prompt", type=int, default=64, help="tokens of the prompt")
    parser.add_argument("--outputs", type=int, default=32, help="tokens of the continuation")
    parser.add_argument("--steps", type=int, default=16, help="of integrated gradients")
    parser.add_argument("--some", type=int, help="outputs that inseq's occlusion explains")
    parser.add_argument("--layers", type=int, default=12, help="fewer, to try this out")
    parser.add_argument("--memory", action="store_true", help="peak memory instead of seconds")
    parser.add_argument("--peak", nargs=2, metavar=("METHOD", "SIDE"), help=argparse.SUPPRESS)
    parser.add_argument("--peers", help="a folder in which inseq is, searched last")
    parser.add_argument("--json", help="also write the rows to this file")
    return parser.parse_args()


def main() -> None:
    arguments = read_arguments()
    torch.set_num_threads(1)
    if arguments.peers:
        sys.path.append(arguments.peers)
    if arguments.peak:
        method, side = arguments.peak
        print(peak_of_this_process(method, side, arguments))
        return

    rows: list[dict[str, Any]] = []
    methods = [arguments.only] if arguments.only else METHODS
    if arguments.memory:
        for method in methods:
            rows += [peak(method, side, arguments) for side in arguments.sides]
    else:
        t = asked_for(arguments)
        for method in methods:
            # inseq's hooks and torch's first use of each kernel stay outside
            small = task(prompt=4, outputs=2, layers=1)
            for side in arguments.sides:
                try:
                    MAKERS[side](small, method)()
                except ModuleNotFoundError:
                    continue
            rows += measured(t, method, tuple(arguments.sides), arguments.turns)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
