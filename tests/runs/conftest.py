from __future__ import annotations

from pathlib import Path

import pytest

import whence
from tests.families import build
from whence.models.model import Model

TEXTS = [
    "the food is great but not the prices",
    "not bad prices",
    "the prices are bad",
    "great food and great prices",
    "the service is not good",
    "a fair price for good food",
    "bad",
]


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small random BERT on disk."""
    model = build("bert")
    path = tmp_path_factory.mktemp("models") / "bert"
    model.hf.save_pretrained(path)
    model.tokenizer.save_pretrained(path)
    return path


@pytest.fixture(scope="session")
def model(folder: Path) -> Model:
    return whence.load(str(folder))
