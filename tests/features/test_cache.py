"""The cache of activations: right, kept, checked, and safe from what may happen to a disk."""

from __future__ import annotations

import json
import multiprocessing
import resource
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.families import build
from tests.features.small import cache_of, documents, writer
from whence.core.errors import InputError, ModelError, Unsupported
from whence.features import cache as caches
from whence.features.cache import MANIFEST, fill, open_cache
from whence.features.corpus import open_corpus, pieces_of
from whence.trace.hidden import hidden_at


def all_rows(cache: caches.Cache) -> torch.Tensor:
    return torch.cat([cache.states(number) for number in range(len(cache.shards))])


def count_passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of passages of each call that runs the model."""
    calls: list[int] = []

    def counted(model: object, passages: list, *rest: object) -> list[torch.Tensor]:
        calls.append(len(passages))
        return hidden_at(model, passages, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(caches, "hidden_at", counted)
    return calls


def test_it_holds_the_hidden_states_of_every_learned_token_in_order(tmp_path: Path) -> None:
    cache = cache_of(tmp_path)
    assert len(cache.shards) > 2
    model, corpus = writer(), open_corpus(documents())
    passages = [piece.passage for piece in pieces_of(model, corpus, held_out=False, length=32)]
    alone = torch.cat([hidden_at(model, [passage], 0)[0] for passage in passages])
    torch.testing.assert_close(all_rows(cache), alone, atol=1e-5, rtol=1e-5)


def test_special_tokens_are_left_out_unless_they_are_asked_for(tmp_path: Path) -> None:
    model, corpus = build("bert"), open_corpus(documents(10))
    rows = {}
    for special in (True, False):
        cache = open_cache(model, corpus, 0, tmp_path, length=32, special=special)
        rows[special] = cache.rows
    passages = sum(1 for _ in pieces_of(model, corpus, held_out=False, length=32))
    assert rows[True] - rows[False] == 2 * passages  # [CLS] and [SEP]


def test_moments_are_those_of_all_rows(tmp_path: Path) -> None:
    # would catch: the mean of the means of unequal shards; a covariance around zero
    cache = cache_of(tmp_path)
    rows = all_rows(cache).double()
    moments = cache.moments()
    centred = rows - rows.mean(0)
    torch.testing.assert_close(moments.mean, rows.mean(0))
    torch.testing.assert_close(moments.covariance, rows.T.cov(correction=0))
    assert moments.length == pytest.approx(float(rows.norm(dim=1).mean()))
    assert moments.centred_length == pytest.approx(float(centred.norm(dim=1).mean()))
    assert moments.spread == pytest.approx(float(centred.square().sum(1).mean()) ** 0.5)


def test_a_second_training_runs_the_model_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = cache_of(tmp_path)
    fill(first)
    calls = count_passes(monkeypatch)
    second = cache_of(tmp_path)
    fill(second)
    assert torch.equal(all_rows(second), all_rows(first))
    assert not calls


@pytest.mark.parametrize(
    "other", [{"length": 16}, {"dtype": "float16"}, {"tokens": 200}, {"texts": documents(seed=1)}]
)
def test_other_activations_are_kept_apart(tmp_path: Path, other: dict) -> None:
    assert cache_of(tmp_path).folder != cache_of(tmp_path, **other).folder


def test_another_model_has_another_cache(tmp_path: Path) -> None:
    corpus = open_corpus(documents())
    ours = open_cache(build("gpt2"), corpus, 0, tmp_path, length=32, special=False)
    other = open_cache(build("gpt2", seed=1), corpus, 0, tmp_path, length=32, special=False)
    assert ours.folder != other.folder


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-7])


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[-3] ^= 1
    file.write_bytes(bytes(content))


@pytest.mark.parametrize("damage", [cut, flip, Path.unlink])
def test_a_shard_that_is_not_sound_is_made_again_to_the_last_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: Callable[[Path], None]
) -> None:
    cache = cache_of(tmp_path)
    fill(cache)
    before, content = all_rows(cache), cache.file(1).read_bytes()
    damage(cache.file(1))
    calls = count_passes(monkeypatch)
    again = cache_of(tmp_path)
    assert torch.equal(all_rows(again), before)
    assert cache.file(1).read_bytes() == content
    assert again.made_again == [1]
    assert len(calls) == 1  # this shard, and no other


def test_a_shard_that_was_not_noted_is_made_again(tmp_path: Path) -> None:
    # as when a process is killed between the file and the manifest
    cache = cache_of(tmp_path)
    fill(cache)
    before = all_rows(cache)
    cache.shards[2] = replace(cache.shards[2], checksum="")
    cache.write_manifest()
    flip(cache.file(2))
    assert torch.equal(all_rows(cache_of(tmp_path)), before)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"wanted": {}, "shards": []}'])
def test_a_damaged_manifest_costs_the_work_and_nothing_else(tmp_path: Path, content: str) -> None:
    cache = cache_of(tmp_path)
    before = all_rows(cache)
    (cache.folder / MANIFEST).write_text(content)
    assert torch.equal(all_rows(cache_of(tmp_path)), before)
    assert json.loads((cache.folder / MANIFEST).read_text())["kind"] == "activations"


def in_child(work: Callable[[], None]) -> str:
    """What a forked process says: "done", or its error."""
    context = multiprocessing.get_context("fork")
    answer = context.SimpleQueue()

    def run() -> None:
        try:
            work()
            answer.put("done")
        except Exception as problem:
            answer.put(f"{type(problem).__name__}: {problem}")

    process = context.Process(target=run)
    process.start()
    said = answer.get()
    process.join()
    return said


def test_a_full_disk_is_one_clear_line_and_what_was_done_is_kept(tmp_path: Path) -> None:
    cache = cache_of(tmp_path, tokens=250)
    largest = max(shard.rows for shard in cache.shards)
    cache.states(0)
    kept = cache.file(0).read_bytes()

    def fill_on_a_full_disk() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))  # bytes, far below a shard
        fill(cache_of(tmp_path, tokens=250))

    said = in_child(fill_on_a_full_disk)
    assert said.startswith("InputError: the disk is full: 1 of 3 shards of activations are kept")
    assert "Make room and ask for the same again" in said
    assert cache.file(0).read_bytes() == kept
    assert not list(cache.folder.glob("*.part"))
    fill(cache_of(tmp_path, tokens=250))  # there is room now


def test_activations_that_are_no_numbers_are_refused_with_their_text(tmp_path: Path) -> None:
    model = build("gpt2")
    with torch.no_grad():
        model.hf.transformer.wpe.weight[30] = float("nan")  # texts of 31 tokens and more
    corpus = open_corpus(documents(length=40))
    cache = open_cache(model, corpus, 0, tmp_path, length=32, special=False)
    with pytest.raises(ModelError, match="layer 0 of GPT2LMHeadModel gave NaN or infinity"):
        fill(cache)
    assert not list(cache.folder.glob("shard*"))


def test_what_float16_cannot_hold_is_refused(tmp_path: Path) -> None:
    model = build("gpt2")
    with torch.no_grad():
        model.hf.transformer.h[0].mlp.c_proj.bias[3] = 1e6
    corpus = open_corpus(documents())
    cache = open_cache(model, corpus, 0, tmp_path, length=32, special=False, dtype="float16")
    with pytest.raises(InputError, match="which float16 cannot hold; keep them as float32"):
        fill(cache)


def test_what_is_wrong_is_said_before_anything_runs(tmp_path: Path) -> None:
    model, corpus = writer(), open_corpus(documents(4))
    with pytest.raises(InputError, match="no layer 2: GPT2LMHeadModel has 2 layers"):
        open_cache(model, corpus, 2, tmp_path, length=32, special=False)
    with pytest.raises(InputError, match="not in 'int8'"):
        open_cache(model, corpus, 0, tmp_path, length=32, special=False, dtype="int8")
    with pytest.raises(Unsupported, match="trained on the encoder"):
        open_cache(build("t5"), corpus, 0, tmp_path, kind="decoder", length=32, special=False)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot make"):
        open_cache(model, corpus, 0, tmp_path / "file", length=32, special=False)
