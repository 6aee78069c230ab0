"""The bundled generator: a real GPT-2 through the ordinary path, that has learned English."""

from pathlib import Path

import numpy as np
import pytest
import torch

import whence
from whence.models.model import Model

FOLDER = Path(whence.__file__).parent / "models" / "bundled" / "writer"
SENTENCES = (  # ours, so in none of the training texts
    "The people of this country want peace, and they will work for it.",
    "I thought the film was slow, but the actors were very good.",
    "He looked at the sea for a long time and said nothing to the captain.",
    "My lord, the king is dead, and the queen has left the city.",
)


@pytest.fixture(scope="module")
def writer() -> Model:
    return whence.load("writer")


def surprise(model: Model, text: str) -> float:
    ids = torch.tensor([model.tokenizer(text)["input_ids"]])
    with torch.no_grad():
        return float(model.hf(input_ids=ids, labels=ids).loss)


def test_it_is_small_and_what_it_says(writer: Model) -> None:
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 8_000_000
    assert type(writer.hf).__name__ == "GPT2LMHeadModel"
    assert (writer.task, writer.limit) == ("causal", 256)
    assert "Kneser–Ney trigram" in (FOLDER / "README.md").read_text("utf-8")


def test_english_surprises_it_less_than_its_words_in_disorder(writer: Model) -> None:
    rng = np.random.default_rng(0)
    for sentence in SENTENCES:
        mixed = [surprise(writer, " ".join(rng.permutation(sentence.split()))) for _ in range(5)]
        assert surprise(writer, sentence) < min(mixed)
    assert np.mean([surprise(writer, s) for s in SENTENCES]) < np.log(200)  # a unigram has some 775


@pytest.mark.parametrize(
    "text", ["plain words", "naïve café", "🙂 👨‍👩‍👧", "tab\tand\nline", "<|endoftext|>"]
)
def test_any_text_can_be_written_and_read_back(writer: Model, text: str) -> None:
    passage = writer.encode(text)
    assert writer.tokenizer.decode(passage.ids) == text
    assert 0 not in passage.ids  # text that spells the end of text stays text


def test_it_can_be_explained(writer: Model) -> None:
    a = whence.explain(writer, "The people of this", "gradient-x-input", evidence=False)
    assert a.units == ("The", " people", " of", " this")
    assert np.isfinite(a.scores).all()
