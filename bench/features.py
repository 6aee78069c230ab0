"""A step of training an autoencoder over the five dense products that it would be without sparsity.

    python -m bench.features            the ratios, the memory, and cost against size and rows
    python -m bench.features --only steps

Rows are sums of about fifty directions out of as many as there are features, some of them frequent
and most of them rare; the autoencoder begins at these directions, so that its features are as
sparse, and as uneven, as after training.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor

from bench.status import status
from bench.timing import Ratio, interleaved
from whence.features.fitting import Settings, State, begin, step
from whence.features.variants import variant_named

DIM, BATCH = 384, 4096
PRESENT = 50  # directions in a row
FIGURE = Path(__file__).parent.parent / "docs" / "assets" / "features-cost.svg"
# at most this ratio to the floor, at 4,096 and 16,384 features
LIMITS = {"relu": {4096: 0.35, 16384: 0.45}, "topk": {4096: 0.32, 16384: 0.30}}


@dataclass(frozen=True)
class Case:
    """A state that is as sparse as a trained one, and the batch that it takes a step on."""

    state: State
    settings: Settings
    rows: Tensor
    l0: float

    def step(self) -> object:
        return step(self.state, self.settings, self.rows)


def directions(size: int, generator: torch.Generator) -> Tensor:
    drawn = torch.randn(size, DIM, generator=generator)
    return drawn / drawn.norm(dim=1, keepdim=True)


def planted_rows(truth: Tensor, rows: int, generator: torch.Generator) -> Tensor:
    """Direction r is as frequent as 1/(r + 20): some are in every tenth row, most in few."""
    weights = 1 / (torch.arange(len(truth), dtype=torch.float64) + 20)
    present = torch.multinomial(weights, rows * PRESENT, replacement=True, generator=generator)
    amounts = torch.rand(rows, PRESENT, generator=generator) + 0.5
    sums = (amounts[..., None] * truth[present].view(rows, PRESENT, DIM)).sum(dim=1)
    return sums * math.sqrt(DIM) / sums.norm(dim=1).mean()


def case(variant: str, size: int, rows: int = BATCH, l0: int = 50, begun: bool = False) -> Case:
    """``begun``: as training begins, with half of all features active."""
    generator = torch.Generator().manual_seed(0)
    truth = directions(size, generator)
    batch = planted_rows(truth, rows, generator)
    if variant in ("relu", "gated", "jump-relu"):
        settings = Settings(variant, size=size, sparsity=1e-3, learning_rate=1e-9, warm_up=0.0)
    else:
        settings = Settings(variant, size=size, k=l0, learning_rate=1e-9)
    state = begin(settings, DIM)
    if not begun:
        state.parameters["decoder"].copy_(truth)
        state.parameters["encoder"].copy_(truth)
        pre = batch[:256] @ truth.T
        bound = pre.flatten().kthvalue(pre.numel() - l0 * len(pre)).values
        if not settings.k:  # else the k largest are active, wherever zero is
            state.parameters["encoder_bias"].fill_(-float(bound))
    return Case(state, settings, batch, step(state, settings, batch).l0)


def five_products(size: int, rows: int = BATCH) -> Callable[[], object]:
    """Encode, decode, and the gradients of activations, decoder and encoder: no more than that."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(rows, DIM, generator=generator)
    g = torch.randn(rows, DIM, generator=generator)
    weights = torch.randn(size, DIM, generator=generator)
    a, of_a = torch.zeros(rows, size), torch.zeros(rows, size)
    s, of_weights = torch.zeros(rows, DIM), torch.zeros(size, DIM)

    def products() -> None:
        torch.mm(x, weights.T, out=a)
        torch.mm(a, weights, out=s)
        torch.mm(g, weights.T, out=of_a)
        torch.mm(a.T, g, out=of_weights)
        torch.mm(of_a.T, x, out=of_weights)

    return products


def one_step(variant: str, size: int, rounds: int, begun: bool = False, l0: int = 50) -> Ratio:
    made = case(variant, size, begun=begun, l0=l0)
    limit = None if begun else LIMITS.get(variant, {}).get(size)
    what = f"{variant}, {size} features, {made.l0:.0f} active"
    return in_turns(what, made.step, "5 products", five_products(size), limit=limit, rounds=rounds)


def in_turns(
    what: str,
    ours: Callable[[], object],
    over: str,
    theirs: Callable[[], object],
    *,
    rounds: int,
    limit: float | None = None,
) -> Ratio:
    """By the processor's time: one thread does all, and others may share the machine."""
    clock = time.process_time
    return interleaved(what, ours, over, theirs, limit=limit, rounds=rounds, clock=clock)


def steps(rounds: int) -> Iterator[Ratio]:
    for size in (4096, 16384):
        few = rounds if size == 4096 else max(3, rounds // 2)
        for variant in ("relu", "topk"):
            yield one_step(variant, size, few)
        yield one_step("topk", size, few, l0=32)
        yield one_step("relu", size, 3, begun=True)


def others(rounds: int) -> Iterator[Ratio]:
    for variant in ("batch-topk", "jump-relu", "gated", "matryoshka"):
        yield one_step(variant, 4096, rounds)


# ---------------------------------------------------------------------- memory


@dataclass(frozen=True)
class Memory:
    """The most that a few steps needed, beside what they train, in bytes."""

    what: str
    peak: int  # over what the process had before there was a state
    trained: int  # parameters and the two moments of Adam
    batch: int

    @property
    def times(self) -> float:
        """How many times parameters and optimiser state it is, without the batch."""
        return (self.peak - self.batch) / self.trained


def memory_here(variant: str, size: int, begun: bool) -> Memory:
    """In a process of its own, which has done nothing else."""
    # what is loaded and allocated once, whatever is trained
    dose = {"k": 4} if variant_named(variant).needs_k else {"sparsity": 1e-3}
    small = Settings(variant, size=64, **dose)
    step(begin(small, DIM), small, torch.randn(8, DIM))
    before = status("VmHWM")
    if variant in ("relu", "gated", "jump-relu"):
        settings = Settings(variant, size=size, sparsity=1e-3, learning_rate=1e-9, warm_up=0.0)
    else:
        settings = Settings(variant, size=size, k=50, learning_rate=1e-9)
    state = begin(settings, DIM)
    rows = torch.randn(BATCH, DIM, generator=torch.Generator().manual_seed(0))
    if not begun:
        # rows and directions at random: so many lie beyond this many standard deviations
        state.parameters["encoder"].copy_(10 * state.parameters["encoder"])
        bound = math.sqrt(2) * float(torch.erfinv(torch.tensor(1 - 2 * 50 / size)))
        state.parameters["encoder_bias"].fill_(-bound)
    for _ in range(2):
        step(state, settings, rows)
    seen = step(state, settings, rows)
    peak = status("VmHWM") - before
    parameters = sum(value.numel() * value.element_size() for value in state.parameters.values())
    what = f"{variant}, {size} features, {seen.l0:.0f} active"
    return Memory(what, peak, 3 * parameters, rows.numel() * rows.element_size())


def memory(variant: str, size: int, begun: bool = False) -> Memory:
    arguments = ["--memory-here", variant, str(size), str(int(begun))]
    command = [sys.executable, "-m", "bench.features", *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return Memory(**json.loads(done.stdout))


def memories() -> Iterator[Memory]:
    for size in (4096, 16384):
        yield memory("relu", size)
        yield memory("relu", size, begun=True)
        yield memory("topk", size)


# ---------------------------------------------------------------------- the figure


def curve(rounds: int = 3) -> dict[str, list[tuple[int, float, float]]]:
    """Milliseconds of a step, and of the five products, against features and against rows."""
    against: dict[str, list[tuple[int, float, float]]] = {"features": [], "rows": []}
    for size in (1024, 2048, 4096, 8192, 16384):
        ratio = in_turns(
            "", case("relu", size, rows=1024).step, "", five_products(size, 1024), rounds=rounds
        )
        against["features"].append((size, 1e3 * ratio.seconds, 1e3 * ratio.seconds / ratio.ratio))
    for rows in (256, 512, 1024, 2048, 4096):
        ratio = in_turns(
            "", case("relu", 4096, rows=rows).step, "", five_products(4096, rows), rounds=rounds
        )
        against["rows"].append((rows, 1e3 * ratio.seconds, 1e3 * ratio.seconds / ratio.ratio))
    return against


def draw(against: dict[str, list[tuple[int, float, float]]]) -> Path:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "whence"
    import matplotlib.pyplot as plt

    figure, both = plt.subplots(1, 2, figsize=(8, 3), sharey=True)
    for axes, (name, points) in zip(both, against.items(), strict=True):
        places = [point[0] for point in points]
        axes.loglog(places, [point[1] for point in points], "o-", label="a step, sparse")
        axes.loglog(places, [point[2] for point in points], "s--", label="five dense products")
        axes.set_xlabel(
            {"features": "features (1,024 rows)", "rows": "rows (4,096 features)"}[name]
        )
        axes.set_xticks(places, [f"{place:,}" for place in places])
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    both[0].set_ylabel("milliseconds, one thread")
    both[0].legend()
    figure.tight_layout()
    figure.savefig(FIGURE, metadata={"Date": None})
    return FIGURE


# ---------------------------------------------------------------------- printing


def show(ratio: Ratio) -> None:
    middle = f"{ratio.ratio:5.2f} [{ratio.low:.2f}, {ratio.high:.2f}]"
    limit = (
        "" if ratio.limit is None else f"at most {ratio.limit}: {'yes' if ratio.holds else 'NO'}"
    )
    print(
        f"{ratio.what:<44} {middle} × {ratio.over}, {1e3 * ratio.seconds:7.0f} ms  {limit}",
        flush=True,
    )


def show_memory(of: Memory) -> None:
    verdict = "yes" if of.times <= 3 else "NO"
    sizes = f"{of.peak / 1e6:6.0f} MB, of which {of.trained / 1e6:.0f} MB are trained"
    print(f"{of.what:<44} {sizes}: {of.times:.2f} times, at most 3: {verdict}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.features", description=__doc__)
    parser.add_argument("--only", choices=("steps", "others", "memory", "figure"))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--memory-here", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.memory_here:
        variant, size, begun = arguments.memory_here
        print(json.dumps(asdict(memory_here(variant, int(size), bool(int(begun))))))
        return
    if arguments.only in (None, "steps"):
        for ratio in steps(arguments.rounds):
            show(ratio)
    if arguments.only in (None, "others"):
        for ratio in others(3):
            show(ratio)
    if arguments.only in (None, "memory"):
        for of in memories():
            show_memory(of)
    if arguments.only in (None, "figure"):
        print(f"drawn: {draw(curve())}")


if __name__ == "__main__":
    main()
