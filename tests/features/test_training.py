"""Training from the corpus to the folder: arms on one pass, resumed to the bit, and refusals."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import resource
import signal
import socket
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.features.small import documents, writer
from tests.features.test_cache import in_child
from whence.core.errors import InputError, LoadError
from whence.core.progress import Step
from whence.features import training
from whence.features.checkpoint import NAME as CHECKPOINT
from whence.features.saving import load
from whence.features.training import Trained, arms_of, train

SMALL: dict[str, Any] = {
    "variant": "topk",
    "k": 4,
    "size": 48,
    "steps": 25,
    "batch": 64,
    "length": 32,
    "held_out": 100,
}


def trained(out: Path, **more: Any) -> tuple[Trained, ...]:
    return train(writer(), 0, documents(), out=out, **{**SMALL, **more})


def weights_in(folder: Path) -> bytes:
    return (folder / "weights.safetensors").read_bytes()


def test_the_folder_holds_weights_description_metrics_and_card(tmp_path: Path) -> None:
    (one,) = trained(tmp_path / "out")
    folder = tmp_path / "out"
    names = {"weights.safetensors", "config.json", "metrics.json", "README.md", "request.json"}
    assert names <= {file.name for file in folder.iterdir()}
    assert not (folder / CHECKPOINT).exists()
    about = one.autoencoder.about
    assert about.fingerprint == writer().fingerprint
    assert (about.layer, about.kind, about.variant, about.size) == (0, "decoder", "topk", 48)
    assert about.data["provenance"]["architecture"] == "GPT2LMHeadModel"
    assert len(about.peak or ()) == 48
    card = (folder / "README.md").read_text()
    assert "4 principal components" in card
    assert "random directions" in card


def test_more_steps_explain_more(tmp_path: Path) -> None:
    # would catch: rows that are not scaled as the weights expect, or a decoder that never moves
    (short,) = trained(tmp_path / "short", steps=2)
    (long,) = trained(tmp_path / "long", steps=150, learning_rate=3e-3)
    explained = [one.quality.own.variance_explained.mean for one in (short, long)]
    assert explained[1] > explained[0] + 0.2


def test_arms_that_share_a_pass_are_those_that_train_alone(tmp_path: Path) -> None:
    # would catch: one arm's rows, or random numbers, that depend on the arms beside it
    together = trained(tmp_path / "all", seeds=[0, 1])
    assert [one.folder.name for one in together] == ["topk-48-k4-seed0", "topk-48-k4-seed1"]
    for seed, one in enumerate(together):
        (alone,) = trained(tmp_path / str(seed), seeds=seed, cache=tmp_path / "cache")
        assert torch.equal(alone.autoencoder.encoder, one.autoencoder.encoder)
        assert torch.equal(alone.autoencoder.decoder, one.autoencoder.decoder)
    assert not torch.equal(together[0].autoencoder.decoder, together[1].autoencoder.decoder)
    agreement = together[0].quality.agreement
    assert agreement is not None
    assert agreement.with_seed == 1
    with pytest.raises(LoadError, match=r"holds 2 autoencoders.*all/topk-48-k4-seed0, .*seed1"):
        load(tmp_path / "all")


class Ended(Exception):
    pass


def test_a_training_that_was_broken_off_ends_in_the_same_bits(tmp_path: Path) -> None:
    # would catch: moments of Adam, the schedule, idle counters or the order of rows begun anew
    undisturbed = trained(tmp_path / "whole", variant="relu", k=None, sparsity=[0.5, 3.0])

    def end_at(step: int) -> Callable[[Step], None]:
        def tell(told: Step) -> None:
            if told.done == step and told.startswith("step"):
                raise Ended

        return tell

    options: dict[str, Any] = {"variant": "relu", "k": None, "sparsity": [0.5, 3.0]}
    for step in (1, 9, 20, 25):
        with pytest.raises(Ended):
            trained(tmp_path / "broken", **options, checkpoint_seconds=0.0, progress=end_at(step))
    resumed = trained(tmp_path / "broken", **options)
    for one, other in zip(undisturbed, resumed, strict=True):
        assert weights_in(one.folder) == weights_in(other.folder)
        for name in ("config.json", "metrics.json", "history.json"):
            assert (one.folder / name).read_bytes() == (other.folder / name).read_bytes()


def in_background(work: Callable[[], object]) -> Any:
    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    return process


def killed_after(words: int, seconds: float) -> Callable[[Step], None]:
    """Kill this process a moment after it has told so many steps, in the midst of a later one.

    A clock of the parent's would find it done, or not begun, on a machine that others use too.
    """
    told: list[Step] = []

    def tell(step: Step) -> None:
        told.append(step)
        if len(told) == words:
            kill = partial(os.kill, os.getpid(), signal.SIGKILL)
            threading.Timer(seconds, kill).start()

    return tell


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["topk", "jump-relu"])
def test_killed_at_random_moments_it_ends_in_the_same_bits(tmp_path: Path, variant: str) -> None:
    dose = {"k": 4} if variant == "topk" else {"k": None, "sparsity": 0.3}
    options: dict[str, Any] = {"variant": variant, **dose, "steps": 60}
    whole = in_background(lambda: trained(tmp_path / "whole", **options))
    whole.join()
    assert whole.exitcode == 0
    draw = random.Random(0)
    kills = 0
    for _ in range(8):
        tell = killed_after(draw.randint(1, 10), draw.uniform(0.0, 0.01))
        again = partial(trained, tmp_path / "killed", **options, checkpoint_seconds=0.0)
        process = in_background(partial(again, progress=tell))
        process.join()
        kills += process.exitcode == -signal.SIGKILL
    last = in_background(lambda: trained(tmp_path / "killed", **options))
    last.join()
    assert last.exitcode == 0
    assert kills >= 3
    for name in ("weights.safetensors", "config.json", "metrics.json", "history.json"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    leftovers = [file.name for file in (tmp_path / "killed").glob("*.part")]
    assert not leftovers


def test_a_full_disk_leaves_the_last_checkpoint(tmp_path: Path) -> None:
    (whole,) = trained(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path / "out", stop=lambda: (tmp_path / "out" / "forecast.json").exists())
    before = (tmp_path / "out" / CHECKPOINT).read_bytes()

    def go_on_with_a_full_disk() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) // 2, len(before) // 2))
        trained(tmp_path / "out", checkpoint_seconds=0.0)

    assert "cannot write" in in_child(go_on_with_a_full_disk)
    assert (tmp_path / "out" / CHECKPOINT).read_bytes() == before
    trained(tmp_path / "out")
    assert weights_in(tmp_path / "out") == weights_in(whole.folder)


@pytest.mark.slow
def test_two_processes_train_what_one_would(tmp_path: Path) -> None:
    # would catch: gradients of half a batch, or the same half twice
    (alone,) = trained(tmp_path / "alone", size=40)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    told: list[list[Step]] = [[], []]

    def run(number: int) -> None:
        os.environ |= {"RANK": str(number), "WORLD_SIZE": "2", "MASTER_PORT": str(port)}
        os.environ["MASTER_ADDR"] = "127.0.0.1"
        tell = told[number].append
        trained(tmp_path / "two", size=40, progress=tell)
        (tmp_path / f"told-{number}").write_text(str(len(told[number])))

    both = [in_background(partial(run, number)) for number in (0, 1)]
    for process in both:
        process.join()
    assert [process.exitcode for process in both] == [0, 0]
    assert int((tmp_path / "told-0").read_text()) > 0
    assert (tmp_path / "told-1").read_text() == "0"  # would catch: the forecast, twice
    (two,) = trained(tmp_path / "two", size=40)
    histories = [json.loads((f / "history.json").read_text()) for f in (alone.folder, two.folder)]
    losses = [[point["loss"] for point in history] for history in histories]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    assert losses[0][-1] < 0.9 * losses[0][0]  # they moved far more than that


def test_what_is_trained_is_not_trained_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (first,) = trained(tmp_path)

    def fail(*_args: object, **_more: object) -> None:
        raise AssertionError("there was a step")

    monkeypatch.setattr(training, "step", fail)
    (again,) = trained(tmp_path)
    assert torch.equal(again.autoencoder.decoder, first.autoencoder.decoder)
    assert again.quality == first.quality


def test_another_request_is_refused_and_nothing_is_lost(tmp_path: Path) -> None:
    (first,) = trained(tmp_path)
    before = weights_in(tmp_path)
    # would catch: the beginning of two long texts that are the same so far
    said = r"something else. k: 4 there, 6 asked for now; seed: 0 there, 3 asked for now. Ask"
    with pytest.raises(InputError, match=said):
        trained(tmp_path, k=6, seeds=3)
    with pytest.raises(InputError, match="autoencoders: 1 there, 2 asked for now"):
        trained(tmp_path, seeds=[0, 1])
    assert weights_in(tmp_path) == before
    (anew,) = trained(tmp_path, k=6, restart=True)
    assert anew.autoencoder.about.settings["k"] == 6
    assert first.autoencoder.about.settings["k"] == 4


def test_stopping_leaves_a_checkpoint(tmp_path: Path) -> None:
    steps: list[Step] = []
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path, progress=steps.append, stop=lambda: any(s.done == 7 for s in steps))
    assert (tmp_path / CHECKPOINT).exists()
    steps.clear()
    trained(tmp_path, progress=steps.append)
    assert next(s.done for s in steps if s.startswith("step")) == 8


def test_a_damaged_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path, stop=lambda: (tmp_path / "forecast.json").exists())
    file = tmp_path / CHECKPOINT
    content = bytearray(file.read_bytes())
    content[-5] ^= 1
    file.write_bytes(bytes(content))
    with pytest.raises(LoadError, match=r"not those written. Begin anew with --restart"):
        trained(tmp_path)
    file.write_bytes(bytes(content[:-5]))
    with pytest.raises(LoadError, match="is damaged"):
        trained(tmp_path)
    trained(tmp_path, restart=True)


def test_weights_are_written_before_anything_is_measured(tmp_path: Path) -> None:
    # would catch: minutes of silent measuring, in which a crash takes the weights with it
    seen: list[tuple[str, bool, bool]] = []

    def look(step: Step) -> None:
        folder = tmp_path / "out"
        is_written = (folder / "weights.safetensors").exists()
        seen.append((str(step), is_written, (folder / "metrics.json").exists()))

    trained(tmp_path / "out", progress=look)
    last = max(i for i, (words, *_) in enumerate(seen) if words.startswith("step "))
    after = seen[last + 1 :]
    assert any("measuring its quality beside components" in words for words, *_ in after)
    assert any("how often features are active" in words for words, *_ in after)
    assert all(is_written and not has_metrics for _, is_written, has_metrics in after)


def test_a_training_that_ends_while_it_is_measured_goes_on_from_there(tmp_path: Path) -> None:
    def end(step: Step) -> None:
        if step.startswith("measuring its quality beside components"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path / "ended", progress=end)
    assert load(tmp_path / "ended").size == 48
    told: list[Step] = []
    trained(tmp_path / "ended", progress=told.append)
    assert not [step for step in told if step.startswith("step ")]
    trained(tmp_path / "whole")
    assert weights_in(tmp_path / "ended") == weights_in(tmp_path / "whole")


def test_the_forecast_comes_before_the_first_step(tmp_path: Path) -> None:
    steps: list[Step] = []
    trained(tmp_path, progress=steps.append)
    forecasts = [i for i, step in enumerate(steps) if step.forecast is not None]
    first = next(i for i, step in enumerate(steps) if step.startswith("step"))
    assert forecasts == [first - 1]
    forecast = steps[first - 1].forecast
    activations = sum(f.stat().st_size for f in (tmp_path / "activations").glob("*/*"))
    assert forecast.bytes_of_activations == activations
    words = str([step for step in steps if step.startswith("step")][-1])
    for part in ("loss", "L0 4", "variance explained", "dead", "tokens/s"):
        assert part in words


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"batch": 100_000}, "tokens to learn from, and a batch has 100,000"),
        ({"size": 3}, "k is from 1 to the 3 features, not 4"),
        ({"sparsity": 1.0}, "topk is told how many features are active"),
        ({"variant": "relu"}, "relu is told its sparsity, λ, and no k"),
        ({"variant": "relux", "k": None}, "relux"),
        ({"seeds": [1, 1]}, "two arms are the same"),
    ],
)
def test_what_is_wrong_is_said_before_the_model_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: dict[str, Any], said: str
) -> None:
    monkeypatch.setattr("whence.features.cache.hidden_at", None)
    with pytest.raises(Exception, match=said) as raised:
        trained(tmp_path, **wrong)
    assert raised.type.__module__ == "whence.core.errors"
    assert not (tmp_path / "request.json").exists()


def test_a_layer_that_does_not_exist_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no layer 2: GPT2LMHeadModel has 2 layers, 0 to 1"):
        train(writer(), 2, documents(), out=tmp_path / "out", **SMALL)
    assert not (tmp_path / "out").exists()


def test_arms_are_all_combinations() -> None:
    arms = arms_of("relu", [8, 16], [1.0], [], [0, 1], steps=5, batch=4, learning_rate=0.1)
    assert [(a.size, a.sparsity, a.seed) for a in arms] == [
        (8, 1.0, 0),
        (8, 1.0, 1),
        (16, 1.0, 0),
        (16, 1.0, 1),
    ]


def test_the_history_is_written(tmp_path: Path) -> None:
    trained(tmp_path)
    history = json.loads((tmp_path / "history.json").read_text())
    assert [point["step"] for point in history] == list(range(25))
    assert history[-1]["variance_explained"] > history[0]["variance_explained"]
