"""The histogram lab: the task, the model against its definition, and a quick run."""

from collections import Counter as Tally

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from whence.core.errors import InputError
from whence.labs.histogram import ALPHABET, LENGTH, WIDTH, Counter, attention, count, encode, looks, sequences
from whence.labs.running import lab

SOLUTIONS = ("semantic", "positional")


@pytest.fixture(scope="module")
def book():
    state = torch.random.get_rng_state()
    made = lab("histogram", quick=True, formats=("svg",))
    assert torch.equal(state, torch.random.get_rng_state()), "the lab changed torch's global generator"
    return made


@pytest.fixture(scope="module")
def data():
    return sequences(3000, 0)


def model(solution, seed=0):
    return Counter(solution, torch.Generator().manual_seed(seed))


def plain(m, letters):
    """Logits by the formula, token by token: catches a wrong half of V, a missing 1/8, or a wrong split of A x V in the fast form."""
    x = torch.cat([m.letter[letters], m.position.expand(len(letters), LENGTH, WIDTH // 2)], -1)
    f = torch.zeros(WIDTH)
    f[: WIDTH // 2] = 1
    f = f if m.solution == "semantic" else 1 - f
    a = torch.softmax((x * f @ m.query) @ (x * f @ m.key).mT / 8, -1)
    h = F.layer_norm(a @ (x @ m.value), (WIDTH,)) * m.gain + m.shift
    return torch.relu(h @ m.w1 + m.b1) @ m.w2 + m.b2, a


# ---------------------------------------------------------------------- the task


def test_the_lectures_example():
    assert count(encode("DATAIAIAIA")[None]).tolist() == [[1, 5, 1, 5, 3, 5, 3, 5, 3, 5]]


def test_count_agrees_with_a_tally(data):
    for letters in data[0][:50].tolist():
        tally = Tally(letters)
        assert count(torch.tensor([letters]))[0].tolist() == [tally[x] for x in letters]


def test_a_foreign_letter_is_refused():
    with pytest.raises(InputError, match="Z"):
        encode("DATAZ")


def test_no_sequence_twice_and_none_in_both():
    """On an alphabet this large duplicates are rare, so enough sequences are drawn that undeduplicated data would have some."""
    train, validation = sequences(50_000, 0)
    rows = [tuple(r) for r in torch.cat([train, validation]).tolist()]
    assert len(set(rows)) == len(rows)
    assert not {tuple(r) for r in train.tolist()} & {tuple(r) for r in validation.tolist()}
    assert len(train) == int(0.7 * len(rows))


def test_deduplication_removes_what_is_drawn_twice(monkeypatch):
    """With one letter all sequences are equal; without deduplication 100 would be left."""
    monkeypatch.setattr("whence.labs.histogram.ALPHABET", "A")
    assert sum(map(len, sequences(100, 0))) == 1


def test_validation_has_every_first_letter():
    """Catches a split of the sorted sequences, whose validation part would begin with the last letters only."""
    _, validation = sequences(3000, 0)
    assert set(validation[:, 0].tolist()) == set(range(len(ALPHABET)))


# ---------------------------------------------------------------------- the model


@pytest.mark.parametrize("solution", SOLUTIONS)
def test_the_fast_form_is_the_definition(solution, data):
    m = model(solution)
    torch.nn.init.normal_(m.gain, generator=torch.Generator().manual_seed(1))  # ones would hide a missing gain
    torch.nn.init.normal_(m.shift, generator=torch.Generator().manual_seed(2))
    logits, a = plain(m, data[0][:64])
    torch.testing.assert_close(m(data[0][:64]), logits, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(attention(m, data[0][:64]), a)


@pytest.mark.parametrize("solution", SOLUTIONS)
def test_gradients_of_the_fast_form(solution, data):
    """The relu works in place: catches one that overwrites what another gradient needs."""
    m, letters = model(solution), data[0][:32]
    wanted = torch.autograd.grad(plain(m, letters)[0].square().mean(), list(m.parameters()))
    got = torch.autograd.grad(m(letters).square().mean(), list(m.parameters()))
    for w, g in zip(wanted, got, strict=True):
        torch.testing.assert_close(g, w, atol=1e-6, rtol=1e-3)


@pytest.mark.parametrize("solution", SOLUTIONS)
def test_rows_sum_to_one(solution, data):
    a = attention(model(solution), data[0][:64])
    torch.testing.assert_close(a.sum(-1), torch.ones(64, LENGTH))


def test_positional_attention_ignores_the_letters_by_construction(data):
    a = attention(model("positional"), data[0])
    torch.testing.assert_close(a, a[:1].expand_as(a), atol=1e-7, rtol=0)
    assert looks(model("positional"), data[0]).sd < 1e-6


def test_semantic_attention_gives_equal_letters_equal_weight():
    """Catches positions that leak into queries or keys."""
    a = attention(model("semantic"), encode("DATAIAIAIA")[None])[0]
    torch.testing.assert_close(a[:, [1, 3, 5, 7, 9]], a[:, [1]].expand(LENGTH, 5))
    torch.testing.assert_close(a[[4, 6, 8]], a[[4]].expand(3, LENGTH))
    assert not torch.allclose(a[:, 0], a[:, 1])


def test_semantic_attention_moves_with_the_letters():
    a = attention(model("semantic"), torch.stack([encode("DATAIAIAIA"), encode("ADATAIAIAI")]))
    torch.testing.assert_close(a[0].roll((1, 1), (0, 1)), a[1])


def test_looks_on_known_attention():
    """Equal letters get weight w times another's: c = 2 gives w/(2w+8) and 1/(2w+8); catches an off-diagonal mean over all entries."""
    m, w = model("semantic"), 5.0
    with torch.no_grad():
        size = len(ALPHABET)
        m.letter.zero_()
        m.letter[:, :size] = torch.eye(size)
        m.query.zero_()
        m.query[:size, :size] = torch.eye(size) * 8 * torch.log(torch.tensor(w))
        m.key.copy_(torch.eye(WIDTH))
    at = looks(m, encode("AACDEGHILM")[None].repeat(2, 1))
    assert at.equal == pytest.approx(w / (2 * w + 8), rel=1e-4)
    assert at.other == pytest.approx(1 / (2 * w + 8), rel=1e-4)
    assert at.sd == pytest.approx(0, abs=1e-7)
    diagonal = (2 * w / (2 * w + 8) + 8 * w / (w + 9)) / 10
    assert at.diagonal == pytest.approx(diagonal, rel=1e-4)
    assert at.off_diagonal == pytest.approx((1 - diagonal) / 9, rel=1e-4)


# ---------------------------------------------------------------------- the lab


def test_quick_claims_hold(book):
    """All but one, which is put down as not holding: counts of five and more are too rare to be learned in this time."""
    assert len(book.claims) == 6
    assert [c.claim for c in book.claims if not c.holds and "five times" not in c.claim] == []


def test_quick_parts(book):
    assert [f.name for f in book.figures] == ["histogram-training", "histogram-attention", "histogram-spread"]
    (table,) = book.tables
    assert [row[1] for row in table.rows] == list(SOLUTIONS)
    at = {row[1]: dict(zip(table.columns, row, strict=True)) for row in table.rows}
    assert at["positional"]["sd of attention"] < 1e-3 < at["semantic"]["sd of attention"]
    assert all(row["accuracy"] > 0.9 and not row["stuck"] for row in at.values())
    # rows of A sum to one on average: catches diagonal and off-diagonal swapped or over the wrong number of entries
    assert at["positional"]["diagonal"] + 9 * at["positional"]["off diagonal"] == pytest.approx(1, abs=1e-4)
    assert 2 * at["semantic"]["equal letter"] + 8 * at["semantic"]["other letter"] == pytest.approx(1, abs=1e-4)
