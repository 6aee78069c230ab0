"""Forecast memory beside measured memory: every method and the evidence, at several lengths.

Each method has a fork of a process that has run all of them on a short text. Measured is by how
much the resident memory rises to its peak, above what is in use. What is free in the heap is given
back first, or a small run would be seen to take nothing; the libraries' code, which a fork has not
in its memory until it runs it, and which is no part of a budget, is brought there first.

The C library is held to giving back what goes, as a run near its budget does itself;
``--as-it-comes`` leaves it as it is, as a run without a budget does, and compares with what the
process is forecast to take then.

    python -m bench.forecast bert 256 512,1024,2048
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
import transformers as tf

import whence
from bench.status import status
from tests import tokenizers
from whence.core.passage import Passage, truncate
from whence.core.registry import methods
from whence.core.request import Request, targets_of, wishes_for
from whence.core.sizes import human
from whence.explaining.job import Job, job_of
from whence.explaining.room import forecast_memory
from whence.models.model import Model
from whence.models.single_layer import SingleLayerConfig, SingleLayerForSequenceClassification
from whence.trace.memory import AS_IT_COMES, HELD, Heap, give_back_at_once, give_back_now

LAYERS = 2
TEN = 10  # units of each text, so that methods of removals stay quick
SHORT = 24  # tokens of the text that everything is warmed up with
RANKINGS, STEPS = 39, 2  # of the evidence: the fewest
WITHIN = 0.3
MADV_POPULATE_READ = 22  # since Linux 5.14
SLACK = 3 * 10**6  # bytes that libraries take or leave, whatever is run
# methods that stop by what they find are held to a few passes, which does not change their memory
QUICK: dict[str, dict[str, Any]] = {
    "integrated-gradients": {"max_nodes": 16},
    "lime": {"budget": 40},
    "shapley": {"budget": 40},
    "banzhaf": {"budget": 40},
    "beta-shapley": {"budget": 40},
    "anchors": {"budget": 40},
}
ENOUGH = 10**8  # bytes for a short text, and too few to do without a rehearsal
EVIDENCE = "evidence"
TOGETHER = "all together"
# methods of the single-layer classifier alone
EXACT = ("lime-exact", "shapley-exact")
# tokens up to which these are tried: each token is a maximum flow of its own, and all methods
# together take as long as each of them
SLOW_UP_TO = 512


def bert(width: int) -> Model:
    config = tf.BertConfig(
        vocab_size=3000,
        hidden_size=width,
        num_hidden_layers=LAYERS,
        num_attention_heads=max(2, width // 64),
        intermediate_size=4 * width,
        max_position_embeddings=4096,
        pad_token_id=0,
    )
    hf = tf.BertForSequenceClassification(config).eval()
    return whence.load(hf, tokenizer=tokenizers.wordpiece())


def gpt2(width: int) -> Model:
    config = tf.GPT2Config(
        vocab_size=8000,
        n_embd=width,
        n_layer=LAYERS,
        n_head=max(2, width // 64),
        n_positions=4096,
        bos_token_id=0,
        eos_token_id=0,
    )
    return whence.load(tf.GPT2LMHeadModel(config).eval(), tokenizer=tokenizers.byte_level())


def llama(width: int) -> Model:
    heads = max(2, width // 64)
    config = tf.LlamaConfig(
        vocab_size=8000,
        hidden_size=width,
        num_hidden_layers=LAYERS,
        num_attention_heads=heads,
        num_key_value_heads=heads // 2,
        intermediate_size=3 * width,
        max_position_embeddings=4096,
        bos_token_id=0,
        eos_token_id=0,
    )
    return whence.load(tf.LlamaForCausalLM(config).eval(), tokenizer=tokenizers.byte_level())


def bart(width: int) -> Model:
    heads = max(2, width // 64)
    config = tf.BartConfig(
        vocab_size=3000,
        d_model=width,
        encoder_layers=LAYERS,
        decoder_layers=LAYERS,
        encoder_attention_heads=heads,
        decoder_attention_heads=heads,
        encoder_ffn_dim=4 * width,
        decoder_ffn_dim=4 * width,
        max_position_embeddings=4096,
        pad_token_id=1,
    )
    hf = tf.BartForConditionalGeneration(config).eval()
    return whence.load(hf, tokenizer=tokenizers.roberta())


def single_layer(width: int) -> Model:
    config = SingleLayerConfig(
        vocab_size=3000,
        embedding_size=width,
        key_size=width // 2,
        value_size=width // 2,
        max_position_embeddings=4096,
    )
    hf = SingleLayerForSequenceClassification(config).eval()
    return whence.load(hf, tokenizer=tokenizers.wordpiece())


FAMILIES: dict[str, Callable[[int], Model]] = {
    "bert": bert,
    "gpt2": gpt2,
    "llama": llama,
    "bart": bart,
    "single-layer": single_layer,
}


def methods_of(family: str, tokens: int) -> list[str]:
    """Every registered method that fits, the evidence, and all methods at once."""
    names = [name for name in methods() if name not in EXACT or family == "single-layer"]
    if tokens > SLOW_UP_TO:
        names.remove("flow")
        return [*names, EVIDENCE]
    return [*names, EVIDENCE, TOGETHER]


def text_of(model: Model, tokens: int) -> Passage:
    """So many tokens in ten units."""
    sentence = "the " * max(1, tokens // TEN - 1) + ". "
    whole = model.encode(sentence * TEN, units="sentence", overflow="truncate")
    return truncate(whole, tokens)


def wishes_of(method: str) -> dict[str, dict[str, Any]]:
    names = [method]
    if method == EVIDENCE:
        names = ["random"]
    elif method == TOGETHER:
        # one that does not fit the model, or is too slow for a long text, would end all of them
        names = [name for name in methods() if name not in (*EXACT, "flow")]
    return {name: QUICK.get(name, {}) for name in names}


def job_for(model: Model, method: str) -> Job:
    """With evidence of the smallest control: so many rankings, and both ends and the middle."""
    request = Request(
        wishes=wishes_for(wishes_of(method)),
        targets=targets_of(None),
        evidence=method == EVIDENCE,
        rankings=RANKINGS,
        steps=STEPS,
    )
    return job_of(model, request)


def forecast(model: Model, passage: Passage, method: str, heap: Heap = HELD) -> int:
    return forecast_memory(job_for(model, method), passage, heap=heap).total


def run(model: Model, passage: Passage, method: str, memory: int | None = None) -> None:
    whence.compare(
        model,
        passage,
        wishes_of(method),
        units="sentence",
        evidence=method == EVIDENCE,
        rankings=RANKINGS,
        steps=STEPS,
        memory=memory,
    )


def forked(work: Callable[[], Any]) -> Any:
    """What comes of some work in a fork, so that nothing it leaves in the heap stays here."""
    gc.collect()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            came_of_it = work()
        except Exception as problem:
            came_of_it = f"{type(problem).__name__}: {problem}"
        with os.fdopen(writer, "w") as pipe:
            json.dump(came_of_it, pipe)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        words = pipe.read()
    os.waitpid(child, 0)
    came_of_it = json.loads(words)
    if isinstance(came_of_it, str):
        raise RuntimeError(came_of_it)
    return came_of_it


def measured(
    model: Model,
    passages: Sequence[Passage],
    method: str,
    memory: int | None = None,
    trims: bool = True,
) -> list[int]:
    """By how much resident memory rises to its peak for each passage, one after the other.

    If it ``trims``, what is free in the heap is given back before each.
    """
    if memory is not None:
        # loads what any rehearsal uses; the method's own is still to come, and is measured
        run(model, text_of(model, SHORT), "random", ENOUGH)
    bring_code_in()
    peaks = []
    for passage in passages:
        gc.collect()
        if trims:
            give_back_now()
        Path("/proc/self/clear_refs").write_text("5")  # the highest mark begins anew
        before = status("VmRSS")
        run(model, passage, method, memory)
        peaks.append(status("VmHWM") - before)
    return peaks


def bring_code_in() -> None:
    """All pages of the files that are mapped, as if they had been read."""
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    for line in Path("/proc/self/maps").read_text().splitlines():
        addresses, rights, *_, name = line.split(maxsplit=5)
        if rights.startswith("r") and name.startswith("/"):
            first, end = (int(address, 16) for address in addresses.split("-"))
            madvise(first, end - first, MADV_POPULATE_READ)


@dataclass(frozen=True)
class Line:
    """One method at one length, in bytes."""

    method: str
    tokens: int
    forecast: int
    measured: int

    @property
    def ratio(self) -> float:
        return self.forecast / self.measured

    @property
    def is_close(self) -> bool:
        is_within = abs(self.ratio - 1) <= WITHIN
        return is_within or abs(self.forecast - self.measured) <= SLACK

    def __str__(self) -> str:
        verdict = "" if abs(self.ratio - 1) <= WITHIN else "  within the slack"
        return (
            f"{self.tokens:>5} tokens  {self.method:<24}{human(self.forecast):>9} forecast "
            f"{human(self.measured):>9} measured  {self.ratio:5.2f}"
            f"{verdict if self.is_close else '  OUTSIDE'}"
        )


def table(
    model: Model, lengths: Sequence[int], names: Callable[[int], Sequence[str]], heap: Heap = HELD
) -> list[Line]:
    """Every method at every length, printed as it is measured."""
    passages: dict[str, list[Passage]] = {}
    for tokens in lengths:
        passage = text_of(model, tokens)
        for name in names(tokens):
            passages.setdefault(name, []).append(passage)
    warm_up(model, passages)

    def all_forecasts() -> dict[str, list[int]]:
        forecasts = {}
        for name, of_method in passages.items():
            forecasts[name] = [forecast(model, passage, name, heap) for passage in of_method]
        return forecasts

    # in one fork, where rehearsals are remembered
    forecasts = forked(all_forecasts)
    lines = []
    for name, of_method in passages.items():
        peaks = forked(partial(measured, model, of_method, name))
        for passage, expected, peak in zip(of_method, forecasts[name], peaks, strict=True):
            lines.append(Line(name, len(passage), expected, peak))
            print(lines[-1], flush=True)
    return lines


def warm_up(model: Model, names: Iterable[str]) -> None:
    """What is done once for a model, so that no fork does it again."""
    short = text_of(model, SHORT)
    for name in sorted(names):
        run(model, short, name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("family", choices=FAMILIES)
    parser.add_argument("width", type=int)
    parser.add_argument("tokens", type=lambda given: [int(part) for part in given.split(",")])
    parser.add_argument("--methods", type=lambda given: given.split(","), default=None)
    parser.add_argument("--as-it-comes", action="store_true")
    options = parser.parse_args()
    if not options.as_it_comes and not give_back_at_once():
        sys.exit("this C library cannot be asked to give memory back")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = FAMILIES[options.family](options.width)

    def names(tokens: int) -> Sequence[str]:
        return options.methods or methods_of(options.family, tokens)

    print(f"{options.family} × {options.width}")
    heap = AS_IT_COMES if options.as_it_comes else HELD
    lines = table(model, options.tokens, names, heap)
    outside = [line for line in lines if not line.is_close]
    print(f"{len(lines)} runs, {len(outside)} outside")
    sys.exit(bool(outside))


if __name__ == "__main__":
    main()
