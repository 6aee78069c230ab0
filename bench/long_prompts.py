"""Long prompts within a budget of memory: what was forecast, and what the process took.

    python -m bench.long_prompts                                # a small GPT-2, 2,000 tokens
    python -m bench.long_prompts --budget 300MB
    python -m bench.long_prompts --model FOLDER --tokens 1000 --budget 3GB --outputs 4

Without ``--model``, the model is a GPT-2 of 4 layers, 256 wide, with random weights and GPT-2's own
vocabulary. The budget decides how many outputs share a trace. The peak is that of resident memory
above what was there when the run began, in a process that did a short run before.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import whence
from bench.generation import words_of
from bench.status import status
from whence.core.passage import Passage, truncate
from whence.core.request import Request, wishes_for
from whence.core.sizes import human, parsed
from whence.core.target import Target
from whence.explaining.inside import outputs_at_once
from whence.explaining.job import Job, job_of
from whence.explaining.room import forecast_memory, room_for
from whence.models.model import Model
from whence.models.writing import written_after
from whence.trace.memory import give_back_now

WITHIN = 0.3
SEED = 0
WORDS = "w1 w22 w333 w4444 w55 w6 "  # of the small model's vocabulary
ENGLISH = "The keeper of the lighthouse wrote down every ship that passed in the night. "


def small_gpt2(positions: int) -> Model:
    import transformers as tf

    torch.manual_seed(SEED)
    config = tf.GPT2Config(n_layer=4, n_embd=256, n_head=4, n_positions=positions)
    hf = tf.GPT2LMHeadModel(config).eval()
    return whence.load(hf, tokenizer=words_of(config.vocab_size))


def prompt_of(model: Model, text: str, tokens: int) -> Passage:
    """The first tokens of a text that is repeated."""
    whole = model.encode(text * tokens, units="token", overflow="truncate")
    return truncate(whole, tokens)


def job_for(model: Model, method: str, outputs: int, memory: int) -> Job:
    """What ``whence.generate`` runs for this."""
    targets = tuple(Target(at=n, read="log-probability") for n in range(outputs))
    request = Request(
        wishes=wishes_for([method]), targets=targets, units="word", evidence=False, memory=memory
    )
    return job_of(model, request)


def measured(
    model: Model, prompt: Passage, continuation: list[int], method: str, budget: int
) -> dict[str, Any]:
    """The forecast of a run, the peak of it, and how many outputs shared a trace."""
    passage = written_after(model, prompt, continuation)
    job = job_for(model, method, len(continuation), budget)
    room = room_for(job, [passage])
    forecast = forecast_memory(job, passage, room).total
    together = min(len(continuation), outputs_at_once(passage, job.needs, room))

    gc.collect()
    give_back_now()
    Path("/proc/self/clear_refs").write_text("5")  # the highest mark begins anew
    before, begun = status("VmRSS"), time.perf_counter()
    whence.generate(model, prompt, method, continuation=continuation, evidence=False, memory=budget)
    return {
        "method": method,
        "tokens": len(prompt),
        "outputs": len(continuation),
        "together": together,
        "budget": budget,
        "forecast": forecast,
        "peak": status("VmHWM") - before,
        "seconds": time.perf_counter() - begun,
    }


def told(row: dict[str, Any]) -> str:
    ratio = row["forecast"] / row["peak"]
    holds = "yes" if abs(ratio - 1) <= WITHIN and row["peak"] <= row["budget"] else "NO"
    return (
        f"{row['method']}, {row['tokens']:,} + {row['outputs']} tokens, {row['together']} outputs "
        f"at once: forecast {human(row['forecast'])}, peak {human(row['peak'])}, "
        f"{ratio:.2f} (within 30 %, and within {human(row['budget'])}: {holds}); "
        f"{row['seconds']:.0f} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.long_prompts", description=__doc__)
    parser.add_argument("--model", help="a folder with a causal model; else a small GPT-2")
    parser.add_argument("--tokens", type=int, default=2000, help="of the prompt")
    parser.add_argument("--outputs", type=int, default=12, help="tokens of the continuation")
    parser.add_argument("--method", default="gradient-x-input")
    parser.add_argument("--budget", nargs="+", default=["2GB"])
    parser.add_argument("--json", help="also write the rows to this file")
    arguments = parser.parse_args()
    torch.set_num_threads(1)

    if arguments.model:
        model, text = whence.load(arguments.model), ENGLISH
    else:
        model, text = small_gpt2(arguments.tokens + arguments.outputs), WORDS
    short = prompt_of(model, text, 8)
    whence.generate(model, short, arguments.method, continuation=[5, 6], evidence=False)
    prompt = prompt_of(model, text, arguments.tokens)
    continuation = [int(i) for i in np.random.default_rng(1).integers(5000, size=arguments.outputs)]
    rows = []
    for budget in arguments.budget:
        rows.append(measured(model, prompt, continuation, arguments.method, parsed(budget)))
        print(told(rows[-1]), flush=True)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
