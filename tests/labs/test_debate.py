"""The lab of the debate: each formula by itself, closed forms of both papers, and a small run."""

from __future__ import annotations

import gzip
import math
from importlib.resources import files
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
import torch

import whence
from tests.labs.test_imports import foreign
from whence.labs import debate as lab
from whence.labs.debating.adversary import Search, exact, search
from whence.labs.debating.distance import tvd
from whence.labs.debating.importance import gradient_importance, kendall, leave_one_out
from whence.labs.debating.network import ENCODERS, Encoder, Network, Reading, read, uniform
from whence.labs.debating.permutation import permutation_changes, permuted
from whence.labs.debating.summary import accuracy, f1, mean_of
from whence.labs.debating.texts import FILE, Texts, as_texts, batches, bundled, vocabulary
from whence.labs.debating.training import Training, labelled, opposed, train
from whence.notebook.book import Notebook
from whence.theory import jsd

PAIRS = [
    ("a fine and lovely film", 1),
    ("a dull film", 0),
    ("lovely", 1),
    ("dull dull and stale", 0),
    ("a fine song and a fine plot", 1),
    ("the plot was stale", 0),
]
NUMBERS = vocabulary([sentence for sentence, _ in PAIRS], at_least=1)
WORDS = len(NUMBERS) + 2
every_encoder = pytest.mark.parametrize("encoder", ENCODERS)


def a_network(encoder: Encoder, seed: int = 0) -> Network:
    """Small, untrained, and with embeddings large enough that words differ."""
    return Network(encoder, WORDS, seed, embedding=6, hidden=8, scale=2.0)


def the_texts() -> Texts:
    return as_texts(PAIRS, NUMBERS)


def dice(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


# ---------------------------------------------------------------------- distances


def test_the_distance_of_answers_counts_both_labels() -> None:
    """The published scalar is half of this."""
    p, q = torch.tensor([0.9, 0.2]), torch.tensor([0.4, 0.3])
    both = torch.stack([p, 1 - p], -1) - torch.stack([q, 1 - q], -1)
    torch.testing.assert_close(tvd(p, q), both.abs().sum(-1) / 2)


# ---------------------------------------------------------------------- texts


def test_the_bundled_sentences_are_apart_and_say_whose_they_are() -> None:
    parts = bundled()
    assert not {text for text, _ in parts["train"]} & {text for text, _ in parts["test"]}
    for pairs in parts.values():
        assert np.mean([label for _, label in pairs]) == 0.5
    packed = files("whence.labs.debating").joinpath(FILE).read_bytes()
    first = gzip.decompress(packed).decode("utf-8").split("\n")[0]
    assert "Bo Pang and Lillian Lee" in first
    assert "Creative Commons Attribution 4.0" in first


@pytest.mark.parametrize("generator", [None, dice()])
def test_batches_hold_every_text_once_and_one_length_each(
    generator: torch.Generator | None,
) -> None:
    lengths = torch.randint(1, 6, (40,), generator=dice(1))
    parts = batches(lengths, 3, generator)
    assert sorted(torch.cat(parts).tolist()) == list(range(40))
    for rows in parts:
        assert len(rows) <= 3
        assert len(lengths[rows].unique()) == 1


# ---------------------------------------------------------------------- network


@every_encoder
def test_neighbours_and_padding_change_nothing(encoder: Encoder) -> None:
    """An LSTM that runs over the padding would end in another state."""
    model, texts = a_network(encoder), the_texts()
    together = read(model, texts)
    torch.testing.assert_close(together.weights.sum(-1), torch.ones(len(texts)))
    assert bool((together.weights[~texts.present] == 0).all())
    for row, length in enumerate(texts.lengths.tolist()):
        alone = model(texts.ids[row : row + 1, :length])
        torch.testing.assert_close(together.logit[row], alone.logit[0])
        torch.testing.assert_close(together.weights[row, :length], alone.weights[0])
    # the formula: the output layer on the weighted sum of hidden states
    pooled = (together.weights[..., None] * together.hidden).sum(1)
    torch.testing.assert_close(together.logit, model.output(pooled).squeeze(-1))


def test_only_the_bilstm_tells_a_word_of_its_neighbours() -> None:
    words = torch.tensor([[2, 3, 4, 5], [2, 3, 4, 6]])
    for encoder in ENCODERS:
        hidden = a_network(encoder)(words).hidden
        moved = float((hidden[0, 0] - hidden[1, 0]).detach().abs().max())
        assert (moved > 1e-4) == (encoder == "BiLSTM")


def test_a_seed_fixes_the_weights_and_leaves_torch_alone() -> None:
    before = torch.random.get_rng_state()
    one, other = a_network("BiLSTM", 3), a_network("BiLSTM", 3)
    assert torch.equal(before, torch.random.get_rng_state())
    for p, q in zip(one.parameters(), other.parameters(), strict=True):
        assert torch.equal(p, q)


# ---------------------------------------------------------------------- importance


@every_encoder
def test_gradient_importance_by_differences_with_attention_held(encoder: Encoder) -> None:
    """With the gradient of the attention too, as plain autograd gives it, numbers would differ."""
    model, texts = a_network(encoder).double(), the_texts()
    row = 0
    length = int(texts.lengths[row])
    vectors = model.embedding(texts.ids[row : row + 1, :length]).detach()
    held = model.read_vectors(vectors).weights.detach()
    step = 1e-5
    slopes, free_slopes = [], []
    for place in range(length):
        for weights, kept in ((held, slopes), (None, free_slopes)):
            answers = []
            for sign in (1, -1):
                moved = vectors.clone()
                moved[0, place] *= 1 + sign * step  # along the word's own embedding
                with torch.no_grad():
                    answers.append(float(model.read_vectors(moved, weights).probability))
            kept.append(abs(answers[0] - answers[1]) / (2 * step))
    importance = gradient_importance(model, texts)[row, :length]
    expected = torch.tensor(slopes, dtype=torch.float64) / sum(slopes)
    torch.testing.assert_close(importance, expected, rtol=1e-6, atol=1e-8)
    free = torch.tensor(free_slopes, dtype=torch.float64) / sum(free_slopes)
    assert float((importance - free).abs().max()) > 0.01


@every_encoder
def test_leave_one_out_by_writing_each_shorter_text(encoder: Encoder) -> None:
    """A word that is masked, not deleted, leaves a place; then the numbers would differ."""
    model, texts = a_network(encoder), the_texts()
    change = leave_one_out(model, texts)
    whole = read(model, texts).probability
    for row, (sentence, label) in enumerate(PAIRS):
        words = sentence.split()
        if len(words) == 1:
            assert float(change[row].abs().max()) == 0
            continue
        for place in range(len(words)):
            shorter = " ".join(words[:place] + words[place + 1 :])
            without = read(model, as_texts([(shorter, label)], NUMBERS)).probability[0]
            expected = float((without - whole[row]).abs())
            assert float(change[row, place]) == pytest.approx(expected, abs=1e-6)
        assert float(change[row, len(words) :].abs().sum()) == 0


def test_kendall_by_counting_pairs_with_ties() -> None:
    """τ-a, which divides by all pairs, is smaller where there are ties; padding would add some."""
    generator = np.random.default_rng(0)
    one = torch.from_numpy(generator.integers(0, 4, (6, 7)).astype(np.float32))
    other = torch.from_numpy(generator.integers(0, 4, (6, 7)).astype(np.float32))
    taus, p_values = kendall(one, other, the_texts())
    for row, (sentence, _) in enumerate(PAIRS):
        length = len(sentence.split())
        agree, untied_one, untied_other = 0.0, 0, 0
        for i, j in combinations(range(length), 2):
            a, b = float(one[row, i] - one[row, j]), float(other[row, i] - other[row, j])
            agree += np.sign(a) * np.sign(b)
            untied_one += a != 0
            untied_other += b != 0
        if untied_one == 0 or untied_other == 0:
            assert np.isnan(taus[row])
        else:
            assert taus[row] == pytest.approx(agree / math.sqrt(untied_one * untied_other))
            assert 0 <= p_values[row] <= 1


# ---------------------------------------------------------------------- permutation


def test_a_permutation_keeps_the_weights_and_the_padding() -> None:
    texts = the_texts()
    weights = read(a_network("BiLSTM"), texts).weights
    shuffled = permuted(weights, texts.present, dice())
    torch.testing.assert_close(shuffled.sort(-1).values, weights.sort(-1).values)
    assert bool((shuffled[~texts.present] == 0).all())
    assert not torch.equal(shuffled, weights)


def test_nothing_changes_where_all_words_vote_alike_or_weigh_alike() -> None:
    texts = the_texts()
    present = texts.present
    weights = read(a_network("BiLSTM"), texts).weights
    votes = torch.randn(weights.shape, generator=dice())
    alike = torch.full(weights.shape, 0.7)
    assert float(permutation_changes(weights, alike, present, dice(), 20).max()) < 1e-6
    even = uniform(present)
    assert float(permutation_changes(even, votes, present, dice(), 20).max()) < 1e-6
    assert float(permutation_changes(weights, votes, present, dice(), 20).max()) > 0.01


def test_the_mean_logit_over_permutations_is_that_of_uniform_attention() -> None:
    """By linearity. A shuffle that prefers to leave things in place would miss it."""
    present = torch.ones(1, 5, dtype=torch.bool)
    weights = torch.tensor([[0.7, 0.2, 0.05, 0.03, 0.02]])
    votes = torch.tensor([[3.0, -1.0, 0.5, 2.0, -4.0]])
    generator = dice()
    logits = []
    for _ in range(4000):
        logits.append(float((permuted(weights, present, generator) * votes).sum()))
    error = np.std(logits) / math.sqrt(len(logits))
    expected = float((uniform(present) * votes).sum())
    assert abs(np.mean(logits) - expected) < 4 * error
    assert abs(float((weights * votes).sum()) - expected) > 20 * error


# ---------------------------------------------------------------------- adversarial attention

QUICK_SEARCH = Search(steps=250)


def test_where_all_words_vote_alike_attention_may_lie_anywhere() -> None:
    """FACTS: one-hot attention against a disjoint one, ε-max JSD reaches about ln 2."""
    weights = torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]])
    votes = torch.full((2, 4), 0.3)
    present = torch.tensor([[True] * 4, [True, True, True, False]])
    result = search(weights, votes, present, QUICK_SEARCH, dice())
    assert float(result.divergence.min()) > 0.98 * lab.MOST
    assert float(result.change.max()) < 1e-6
    assert float(exact(weights[0], votes[0], 0.05).divergence) == pytest.approx(lab.MOST)
    assert float(result.weights[1, 3]) == 0


def test_where_only_one_attention_gives_the_answer_there_is_no_adversary() -> None:
    """A search that forgets ε would go to the other word."""
    weights = torch.tensor([[1.0, 0.0]])
    votes = torch.tensor([[1.0, -30.0]])  # any weight on the second word turns the answer
    present = torch.ones(1, 2, dtype=torch.bool)
    result = search(weights, votes, present, QUICK_SEARCH, dice())
    limit = exact(weights[0], votes[0], 0.05)
    assert float(limit.divergence) < 0.01
    assert float(result.divergence) <= float(limit.divergence) + 1e-6


def test_the_exact_adversary_by_trying_a_grid() -> None:
    """Corners of the simplex alone, without those on the planes, would be too few."""
    generator = dice(4)
    steps = 60
    grid = []
    for i, j in product(range(steps + 1), repeat=2):
        if i + j <= steps:
            grid.append((i, j, steps - i - j))
    candidates = torch.tensor(grid, dtype=torch.float64) / steps
    on_planes = 0
    for _ in range(12):
        weights = torch.rand(3, generator=generator, dtype=torch.float64)
        weights /= weights.sum()
        votes = 2 * torch.randn(3, generator=generator, dtype=torch.float64)
        best = exact(weights, votes, 0.05)
        answer = (weights * votes).sum().sigmoid()
        change = ((candidates @ votes).sigmoid() - answer).abs()
        tried = jsd(candidates, weights)[change <= 0.05]
        assert float(best.change) <= 0.05 + 1e-8
        assert float(tried.max()) <= float(best.divergence) + 1e-9
        assert float(tried.max()) > float(best.divergence) - 0.05  # the grid is coarse
        on_planes += int((best.weights > 0).sum() == 2)
    assert on_planes > 3


def test_the_search_keeps_to_its_bounds() -> None:
    generator = dice(2)
    present = torch.ones(6, 5, dtype=torch.bool)
    weights = torch.randn(6, 5, generator=generator).softmax(-1)
    votes = 2 * torch.randn(6, 5, generator=generator)
    result = search(weights, votes, present, QUICK_SEARCH, dice())
    assert float(result.change.max()) <= 0.05
    assert float(result.divergence.min()) >= 0
    torch.testing.assert_close(jsd(result.weights, weights), result.divergence)
    for row in range(6):
        limit = float(exact(weights[row], votes[row], 0.05).divergence)
        assert float(result.divergence[row]) <= limit + 1e-5
    assert float(result.divergence.mean()) > 0.2


# ---------------------------------------------------------------------- training


def test_the_opposing_loss_is_its_formula() -> None:
    """KL the other way round, or half of the TVD, would give other numbers."""
    base = Reading(torch.zeros(2, 2, 1), torch.tensor([[0.5, 0.5], [0.2, 0.8]]), torch.zeros(2))
    hidden, logit = torch.zeros(1, 2, 1), torch.tensor([math.log(4)])  # probability 0.8
    adversary = Reading(hidden, torch.tensor([[0.9, 0.1]]), logit)
    loss = opposed(base, 0.5)(adversary, torch.tensor([0]))
    assert float(loss) == pytest.approx(0.3 - 0.5 * 0.3681, abs=1e-4)


def test_without_lambda_an_opponent_imitates_and_with_it_attends_elsewhere() -> None:
    """FACTS: λ = 0 → TVD → 0. A loss that is taken from labels would stay away."""
    sentences = ["a dull film was", "lovely and fine song", "the plot was stale", "fine fine a a"]
    texts = as_texts([(sentence, 1) for sentence in sentences], NUMBERS)
    base = read(a_network("BiLSTM", 1), texts)
    training = Training(epochs=100, rate=0.02, decay=0.0)
    distances, divergences = [], []
    for strength in (0.0, 0.1):
        model = train(a_network("BiLSTM", 2), texts, opposed(base, strength), training, 0)
        reading = read(model, texts)
        distances.append(float(tvd(reading.probability, base.probability).mean()))
        divergences.append(float(jsd(reading.weights, base.weights).mean()))
    untrained = read(a_network("BiLSTM", 2), texts)
    start = float(tvd(untrained.probability, base.probability).mean())
    assert distances[0] < 0.02 < start
    assert divergences[1] > divergences[0] + 0.1


def test_given_weights_are_read_by_and_attention_learns_nothing() -> None:
    texts = the_texts()
    even = uniform(texts.present)
    model = a_network("words")
    before = [p.detach().clone() for p in model.attention.parameters()]
    start = read(model, texts, even)
    assert torch.equal(start.weights, even)
    train(model, texts, labelled(texts), Training(epochs=30, rate=0.01), 0, even)
    for p, old in zip(model.attention.parameters(), before, strict=True):
        assert torch.equal(p, old)
    after = read(model, texts, even)
    assert accuracy(after.logit, texts.labels) == 1


def test_training_is_the_same_for_the_same_seed() -> None:
    texts = the_texts()
    logits = []
    for order in (5, 5, 6):
        model = a_network("BiLSTM")
        train(model, texts, labelled(texts), Training(epochs=2, batch=2), order)
        logits.append(read(model, texts).logit)
    assert torch.equal(logits[0], logits[1])
    assert not torch.equal(logits[0], logits[2])


# ---------------------------------------------------------------------- summaries


def test_means_and_f1() -> None:
    """The normal factor 1.96 would make the interval of three values too short by half."""
    mean = mean_of([1.0, 2.0, 3.0])
    assert mean.high - mean.mean == pytest.approx(4.3027 / math.sqrt(3), abs=1e-4)
    assert mean.includes(-0.4)
    assert not mean.includes(-0.5)
    assert mean.includes(-0.5, widened=2.0)
    labels = torch.tensor([1.0, 1.0, 0.0, 0.0, 0.0])
    logit = torch.tensor([1.0, -1.0, 1.0, -1.0, -1.0])
    assert f1(logit, labels) == 0.5  # precision ½, recall ½; accuracy is 3/5
    assert accuracy(logit, labels) == pytest.approx(0.6)


# ---------------------------------------------------------------------- the lab

SMALLEST = lab.Size(
    train=60,
    test=30,
    texts=12,
    seeds=2,
    strengths=(0.0, 0.1),
    training=Training(epochs=1),
    search=Search(restarts=2, steps=5),
    permutations=5,
    hidden=8,
)
FIGURES = ("tau", "permutation", "adversary", "example", "uniform", "seeds", "opponents",
           "diagnostic")  # fmt: skip


def test_the_lab_runs_and_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab, "QUICK", SMALLEST)
    book = Notebook(lab.TITLE, quick=True, formats=("svg",))
    lab.run(book)
    assert [figure.name for figure in book.figures] == [f"debate-{name}" for name in FIGURES]
    holds = {claim.claim: claim.holds for claim in book.claims}
    assert holds["Control: a permutation of uniform weights changes nothing."]
    assert holds["The search never finds more than the exact value."]
    taus = next(table for table in book.tables if table.name == "debate-taus")
    assert len(taus.rows) == 3 * 4
    assert "whence audit" in str(book)


def test_the_parts_of_the_lab_import_public_names_only() -> None:
    folder = Path(whence.__file__).parent / "labs" / "debating"
    for path in folder.glob("*.py"):
        assert foreign(path.read_text(encoding="utf-8")) == [], path.name


@pytest.mark.slow
def test_the_claims_of_a_quick_run() -> None:
    book = Notebook(lab.TITLE, quick=True, formats=("svg",))
    lab.run(book)
    sure = (
        "Both models are right more often than chance.",
        "BiLSTM: τ(attention, gradient) is far (more than 0.2) below τ(gradient, LOO).",
        "Words alone: it is not.",
        "Control: random weights agree with gradients no more than chance does.",
        "Control: a permutation of uniform weights changes nothing.",
        "The search never finds more than the exact value.",
        "Adversarial attention is much further off than another seed's (0.2 nats and more).",
    )
    holds = {claim.claim: claim.holds for claim in book.claims}
    assert all(holds[claim] for claim in sure), book.claims
