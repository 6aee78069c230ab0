"""whence features train: the folder, the words, the JSON, and what is wrong in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.features.small import documents

SMALL = ("--size", 24, "--variant", "topk", "--k", 3, "--steps", 6, "--batch", 32)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    file = tmp_path / "corpus.txt"
    file.write_text("\n".join(documents(20)) + "\n")
    return file


@pytest.fixture
def train(run, folder, corpus, tmp_path):
    """The command on a small model and corpus, with what it needs."""

    def call(*more: object, data: Path = corpus, layer: int = 0, out: Path = tmp_path / "out"):
        where = ("--model", folder, "--layer", layer, "--data", data, "--out", out)
        return run("features", "train", *where, *SMALL, *more)

    return call


def test_it_trains_tells_and_writes_the_folder(train, tmp_path):
    done = train()
    assert done.code == 0
    lines = done.out.splitlines()
    assert "24 features of" in lines[0]
    assert "layer 0 (topk)" in lines[0]
    assert lines[1].endswith("held-out tokens of 1 document:")
    for name in ("autoencoder", "principal components", "random directions", "neurons"):
        assert sum(name in line and "loss recovered" in line for line in lines) == 1
    # on stderr: the forecast
    assert "would never be active" in done.err
    assert "training state on the disk" in done.err
    assert "of block 0" not in done.out
    card = (tmp_path / "out" / "README.md").read_text()
    assert "residual stream after block 0" in card
    again = train()
    assert again.out == done.out
    assert again.err == ""  # nothing was left to do


def test_json_has_the_quality_of_each_arm(train):
    done = train("--seed", 0, "--seed", 1, "--json")
    assert done.code == 0
    arms = [json.loads(line) for line in done.out.splitlines()]
    assert [arm["seed"] for arm in arms] == [0, 1]
    assert [Path(arm["folder"]).name for arm in arms] == ["topk-24-k3-seed0", "topk-24-k3-seed1"]
    assert arms[0]["quality"]["agreement"]["with_seed"] == 1
    assert len(arms[0]["quality"]["fits"]) == 4


def test_what_is_wrong_is_one_line(train, tmp_path):
    empty = tmp_path / "empty.txt"
    empty.write_text("\n \n")
    for done, said in (
        (train(layer=7), "there is no layer 7"),
        (train(data=tmp_path / "no.txt"), "there is no "),
        (train(data=empty), "is empty: it has no text to learn from"),
        (train("--batch", 10_000), "take a longer corpus, or a batch of at most"),
        (train("--variant", "topp"), "topp"),
        (train("--sparsity", 1), "topk is told how many features are active"),
        (train("--kept-as", "int8"), "kept in float32 or float16, not in 'int8'"),
    ):
        assert done.code == 2
        assert said in done.err
        assert done.err.count("\n") == 1
        assert done.out == ""


def test_another_request_for_the_same_folder_is_refused(train):
    assert train().code == 0
    other = train("--steps", 7)
    assert other.code == 2
    assert "was asked for something else" in other.err
    assert train("--steps", 7, "--restart").code == 0


def test_help_needs_no_torch(run):
    done = run("features", "--help")
    assert done.code == 0
    assert "train" in done.out
