"""What a misspelled model is answered with, and that it takes no heavy import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from whence.core.errors import LoadError
from whence.models.finding import source_of


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with three models and one other thing, beside which commands are run."""
    for name in ("bert-tiny", "gpt-small", "writer-de"):
        (tmp_path / "models" / name).mkdir(parents=True)
        (tmp_path / "models" / name / "config.json").write_text("{}")
    (tmp_path / "models" / "bert-tinny-notes").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return tmp_path / "models"


@pytest.mark.parametrize("name", ["models/bert-tinny", "./models/bert-tinny", "models/bert_tiny"])
def test_a_misspelled_folder_is_answered_with_its_neighbour(models: Path, name: str) -> None:
    with pytest.raises(LoadError, match=r"Did you mean 'models/bert-tiny'\?") as refused:
        source_of(name)
    assert "Models there: bert-tiny, gpt-small, writer-de." in str(refused.value)
    assert "notes" not in str(refused.value)  # the enemy lists what holds no model


def test_so_is_one_whose_parent_is_misspelled(models: Path) -> None:
    with pytest.raises(LoadError, match="Did you mean 'models/bert-tiny'"):
        source_of("./modles/bert-tiny")


def test_a_name_among_models_is_not_asked_of_the_hub_even_if_it_is_like_none(models: Path) -> None:
    with pytest.raises(LoadError, match="Models there: bert-tiny, gpt-small, writer-de"):
        source_of("models/zzz")


def test_a_folder_of_models_names_those_in_it(models: Path) -> None:
    with pytest.raises(LoadError, match="Models in it: models/bert-tiny, models/gpt-small"):
        source_of("models")


def test_a_name_of_the_hub_stays_one(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert source_of("some-org/some-model") == "some-org/some-model"
    monkeypatch.chdir(models)
    with pytest.raises(LoadError, match="Did you mean 'gpt-small'"):
        source_of("gpt-smal")
    assert source_of("roberta") == "roberta"


def test_what_lies_in_the_cache_of_the_hub_is_taken_from_there(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = models.parent / "cache"
    (cache / "models--models--bert-tinny").mkdir(parents=True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(cache))
    assert source_of("models/bert-tinny") == "models/bert-tinny"


NAMED: dict[str, list[str]] = {
    "predict": ["a film"],
    "explain": ["a film"],
    "compare": ["a film"],
    "generate": ["a film"],
    "context": ["--context", "a film", "--input", "it"],
    "attend": ["a film"],
    "theory": ["a film"],
    "doctor": [],
    "run": ["data.csv", "--out", "run"],
    "evaluate": ["--data", "data.csv", "--out", "run"],
    "audit": ["--data", "data.csv", "--out", "run"],
    "features train": ["data.csv", "--out", "features"],
    "features explain": ["a film", "features"],
    "features show": ["features"],
    "features steer": ["features", "a film", "--feature", "1"],
}


@pytest.mark.parametrize("command", NAMED)
def test_the_command_line_answers_before_anything_heavy_is_imported(
    models: Path, command: str
) -> None:
    """Half a second, where torch takes four. Would catch a command that reads methods before."""
    typed = [*command.split(), *NAMED[command], "--model", "models/bert-tinny"]
    program = (
        "import sys; from whence.cli.main import main; "
        f"code = main({typed!r}); "
        "heavy = [name for name in ('torch', 'transformers') if name in sys.modules]; "
        "print(code, heavy)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split("\n")[0] == "2 []"
    assert "Did you mean 'models/bert-tiny'?" in done.stderr
