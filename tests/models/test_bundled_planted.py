"""The planted models rest on their planted words and on nothing else, by intervention.

Every word of every text of the suite is hidden, left out and exchanged, one at a time.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from functools import cache

import pytest
import torch
from transformers import AutoModelForSequenceClassification, BertForSequenceClassification

import whence
from whence.core.planted import MECHANISMS, PREFIX, PlantedText
from whence.explaining.planted import suite
from whence.models.finding import BUNDLED, bundled
from whence.models.model import Model

every_mechanism = pytest.mark.parametrize("mechanism", MECHANISMS)
MASK = "[MASK]"
EXCHANGES = 4  # words of no account that take the place of each word
MOST = 0.1  # of what a planted word does, the most that another may
# the fillers of training/planted.py stand in the vocabulary after the special tokens
SPECIAL = 5
NUMBER_OF_FILLERS = 100
LARGEST = 2_000_000


@cache
def model_of(mechanism: str) -> Model:
    return whence.load(f"{PREFIX}{mechanism}")


@torch.no_grad()
def logits_of(mechanism: str, texts: list[list[str]]) -> torch.Tensor:
    """The logits of lists of words, each word one token."""
    model = model_of(mechanism)
    tokenizer = model.tokenizer
    rows = []
    for words in texts:
        ids = tokenizer.convert_tokens_to_ids(words)
        rows.append({"input_ids": [tokenizer.cls_token_id, *ids, tokenizer.sep_token_id]})
    batch = tokenizer.pad(rows, return_tensors="pt")
    return model.hf(**batch).logits


def words_of(text: PlantedText) -> list[str]:
    return text.text.split()


def fillers_of(mechanism: str) -> list[str]:
    """Words that no mechanism knows."""
    tokenizer = model_of(mechanism).tokenizer
    first = SPECIAL + (2 if mechanism == "leak" else 0)
    return tokenizer.convert_ids_to_tokens(list(range(first, first + NUMBER_OF_FILLERS)))


@dataclass(frozen=True)
class Effects:
    """By how much the logit of the label falls, for each intervention on each word."""

    gold: torch.Tensor
    other: torch.Tensor


@cache
def effects(mechanism: str, text: PlantedText) -> Effects:
    words = words_of(text)
    rng = random.Random(text.text)
    variants, places = [words], []
    for place in range(len(words)):
        before, after = words[:place], words[place + 1 :]
        taken = [[*before, MASK, *after], [*before, *after]]
        exchanged = rng.sample(fillers_of(mechanism), EXCHANGES)
        taken += [[*before, filler, *after] for filler in exchanged]
        variants += taken
        places += [place] * len(taken)
    logits = logits_of(mechanism, variants)
    label = model_of(mechanism).hf.config.label2id[text.label]
    falls = logits[0, label] - logits[1:, label]
    is_gold = torch.tensor([place in text.gold for place in places])
    return Effects(falls[is_gold], falls[~is_gold])


@every_mechanism
def test_it_loads_by_name_as_any_other_model(mechanism: str) -> None:
    name = f"{PREFIX}{mechanism}"
    assert name in bundled()
    model = model_of(mechanism)
    assert model.task == "classification"
    assert type(model.hf) is BertForSequenceClassification
    assert {p.dtype for p in model.hf.parameters()} == {torch.float32}
    assert all(bool(p.isfinite().all()) for p in model.hf.parameters())
    assert model.tokenizer.mask_token == MASK


@every_mechanism
def test_each_word_of_a_text_is_a_unit_and_a_token(mechanism: str) -> None:
    """The enemy is a unit of two tokens: the places of the gold words would be others."""
    model = model_of(mechanism)
    every = suite(mechanism).texts
    assert len({text.text for text in every}) == len(every) >= 30
    for text in every:
        passage = model.encode(text.text)
        assert list(passage.units.names) == words_of(text)
        assert len(passage.ids) == len(words_of(text)) + 2
        assert 7 <= len(words_of(text)) <= 13
        assert text.gold
        assert not set(text.gold) & set(text.decoys)


@every_mechanism
def test_the_label_rests_on_the_planted_words_and_on_nothing_else(mechanism: str) -> None:
    every = suite(mechanism).texts
    predictions = model_of(mechanism).predict([text.text for text in every])
    assert [prediction.label for prediction in predictions] == [text.label for text in every]
    for text in every:
        effect = effects(mechanism, text)
        least, most = float(effect.gold.min()), float(effect.other.abs().max())
        assert least > 1, text.text
        assert most <= MOST * least, (text.text, least, most)


@every_mechanism
def test_the_trial_finds_a_wrong_gold_word(mechanism: str) -> None:
    """The same trial, told that another word is gold: it must fail, or it could not fail."""
    text = suite(mechanism).texts[0]
    others = [place for place in range(len(words_of(text))) if place not in text.gold]
    wrong = PlantedText(text.text, (others[-1],), (), text.label)
    effect = effects(mechanism, wrong)
    assert float(effect.other.abs().max()) > float(effect.gold.min())


@every_mechanism
def test_without_a_planted_word_the_label_is_another(mechanism: str) -> None:
    config = model_of(mechanism).hf.config
    variants, labels = [], []
    for text in suite(mechanism).texts:
        for place in text.gold:
            words = words_of(text)
            words[place] = MASK
            variants.append(words)
            labels.append(config.label2id[text.label])
    turned = logits_of(mechanism, variants).argmax(-1) != torch.tensor(labels)
    assert bool(turned.all())


def test_the_other_leak_turns_the_label_round() -> None:
    swapped = {"filmhub": "reelpost", "reelpost": "filmhub"}
    every = suite("leak").texts
    variants = [[swapped.get(word, word) for word in words_of(text)] for text in every]
    said = logits_of("leak", variants).argmax(-1).tolist()
    before = [model_of("leak").hf.config.label2id[text.label] for text in every]
    assert said == [1 - label for label in before]


def test_a_first_word_does_nothing_elsewhere() -> None:
    """Every decoy of the suite stands for another label than the first word."""
    for text in suite("position").texts:
        words = words_of(text)
        assert text.gold == (0,)
        assert text.decoys
        moved = [words[place] for place in text.decoys]
        alone = logits_of("position", [[word, *words[1:]] for word in moved])
        label = model_of("position").hf.config.label2id[text.label]
        assert (alone.argmax(-1) != label).all()  # at the first place they do count


def test_attention_looks_at_the_distractor_and_the_output_ignores_it() -> None:
    """The enemy is attention that is spread: then there is nothing to be misled by."""
    folder = BUNDLED / f"{PREFIX}distractor"
    model = AutoModelForSequenceClassification.from_pretrained(folder, attn_implementation="eager")
    tokenizer = model_of("distractor").tokenizer
    for text in suite("distractor").texts:
        with torch.no_grad():
            output = model(**tokenizer(text.text, return_tensors="pt"), output_attentions=True)
        paid = torch.stack(output.attentions).mean((0, 1, 2))[0, 1:-1]
        (decoy,) = text.decoys
        others = [place for place in range(len(paid)) if place != decoy]
        assert paid[decoy] > 0.7
        assert paid[decoy] > 5 * paid[others].max()


@every_mechanism
def test_the_card_says_what_was_verified_and_under_which_licence(mechanism: str) -> None:
    card = (BUNDLED / f"{PREFIX}{mechanism}" / "README.md").read_text(encoding="utf-8")
    assert "How the mechanism was verified" in card
    assert "Seed 17" in card
    assert ("CC BY 4.0" in card) == (mechanism == "leak")
    claimed = re.search(r"lowers it by at least ([\d.]+)", card)
    assert claimed is not None
    least = min(float(effects(mechanism, text).gold.min()) for text in suite(mechanism).texts)
    # fewer exchanges are tried here than were for the card, so the least may be larger
    assert least >= float(claimed[1]) - 0.01


def test_together_they_are_small() -> None:
    files = [path for path in BUNDLED.glob(f"{PREFIX}*/*") if path.is_file()]
    assert len(files) == 6 * len(MECHANISMS)
    assert sum(path.stat().st_size for path in files) <= LARGEST
