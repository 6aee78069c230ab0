"""Forecast memory beside measured memory: every method, three lengths, several families.

Each run is a fork of a process that holds the model, warmed up there, with glibc's mmap threshold
fixed. Measured is by how much the resident memory rises to its peak.

    MALLOC_MMAP_THRESHOLD_=1048576 python -m bench.forecast bert 768 128,512,2048
"""

from __future__ import annotations

import argparse
import gc
import os
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
import transformers as tf

import whence
from tests import tokenizers
from whence.core.passage import Passage, truncate
from whence.core.request import Request, targets_of, wishes_for
from whence.core.sizes import human
from whence.explaining.job import job_of
from whence.explaining.room import forecast_memory
from whence.models.model import Model

LAYERS = 2
TEN = 10  # units of each text, so that methods of removals stay quick
WITHIN = 0.3
SMALL = 4 * 10**6  # bytes that libraries take or leave, whatever is run
# methods that stop by what they find are held to a few passes, which does not change their memory
QUICK: dict[str, dict[str, Any]] = {
    "integrated-gradients": {"max_nodes": 16},
    "lime": {"budget": 40},
    "shapley": {"budget": 40},
}
METHODS = (
    "gradient-l2",
    "gradient-x-input",
    "integrated-gradients",
    "smooth-grad",
    "attention-mean",
    "rollout",
    "value-weighted",
    "attention-arbiter",
    "generic-attention",
    "transformer-attribution",
    "attn-lrp",
    "occlusion",
    "lime",
)
TOGETHER = "all together"


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


FAMILIES: dict[str, Callable[[int], Model]] = {
    "bert": bert,
    "gpt2": gpt2,
    "llama": llama,
    "bart": bart,
}


def text_of(model: Model, tokens: int) -> Passage:
    """So many tokens in ten units."""
    sentence = "the " * max(1, tokens // TEN - 1) + ". "
    whole = model.encode(sentence * TEN, units="sentence", overflow="truncate")
    return truncate(whole, tokens)


def wishes_of(method: str) -> dict[str, dict[str, Any]]:
    names = METHODS if method == TOGETHER else (method,)
    return {name: QUICK.get(name, {}) for name in names}


def forecast(model: Model, passage: Passage, method: str) -> int:
    request = Request(
        wishes=wishes_for(wishes_of(method)), targets=targets_of(None), evidence=False
    )
    return forecast_memory(job_of(model, request), passage).total


def run(model: Model, passage: Passage, method: str) -> None:
    whence.compare(model, passage, wishes_of(method), units="sentence", evidence=False)


def forked(work: Callable[[], int]) -> int:
    """A number from a fork, so that nothing it leaves in the heap is there for the next one."""
    gc.collect()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        number = -1
        try:
            number = work()
        finally:
            os.write(writer, str(number).encode())
            os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        return int(pipe.read())


def measured(model: Model, passage: Passage, short: Passage, method: str) -> int:
    """The rise of resident memory above that after a short text."""
    run(model, short, method)
    Path("/proc/self/clear_refs").write_text("5")  # the highest mark begins anew
    before = _status("VmRSS")
    run(model, passage, method)
    return _status("VmHWM") - before


def _status(name: str) -> int:
    found = re.search(rf"{name}:\s+(\d+)", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("family", choices=FAMILIES)
    parser.add_argument("width", type=int)
    parser.add_argument("tokens", type=lambda given: [int(part) for part in given.split(",")])
    parser.add_argument("--methods", type=lambda given: given.split(","), default=None)
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = FAMILIES[options.family](options.width)
    short = text_of(model, 24)
    outside = 0
    for tokens in options.tokens:
        passage = text_of(model, tokens)
        for method in options.methods or (*METHODS, TOGETHER):
            expected = forked(partial(forecast, model, passage, method))
            true = forked(partial(measured, model, passage, short, method))
            ratio = expected / true
            is_close = abs(ratio - 1) <= WITHIN or abs(expected - true) <= SMALL
            outside += not is_close
            print(
                f"{options.family} × {options.width}  {len(passage):>5} tokens  {method:<24}"
                f"{human(expected):>9} forecast {human(true):>9} measured  {ratio:5.2f}"
                f"{'' if is_close else '  OUTSIDE'}",
                flush=True,
            )
    sys.exit(bool(outside))


if __name__ == "__main__":
    main()
