"""The Dyck lab.

Its language, its metric and its model against slow references, and a quick run of the whole.
"""

from __future__ import annotations

from math import log

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from whence.labs import dyck
from whence.labs.running import lab
from whence.notebook import Notebook


@pytest.fixture(scope="module")
def book() -> Notebook:
    return lab("dyck", quick=True, formats=("svg",))


def reduced(text: str) -> str:
    """A text after striking out partners as often as possible.

    An unfinished word leaves open brackets only.
    """
    while (shorter := text.replace("()", "").replace("[]", "")) != text:
        text = shorter
    return text


def slow_top(tokens: list[int]) -> int:
    """Walk backwards and owe an open bracket for each closing one passed."""
    owed = 0
    for place in reversed(range(len(tokens))):
        if tokens[place] >= dyck.CLOSE:
            owed += 1
        elif tokens[place] >= dyck.OPEN:
            if owed == 0:
                return place
            owed -= 1
    return -1


@st.composite
def prefixes(draw: st.DrawFn) -> list[int]:
    """Prefixes built without the lab's generator."""
    stack, tokens = [], []
    for wish in draw(
        st.lists(st.tuples(st.booleans(), st.integers(0, 1)), min_size=1, max_size=30)
    ):
        if not stack or (wish[0] and len(stack) < dyck.DEPTH):
            stack.append(wish[1])
            tokens.append(dyck.OPEN + wish[1])
        else:
            tokens.append(dyck.CLOSE + stack.pop())
    return tokens


def test_every_prefix_is_valid_and_at_most_four_deep() -> None:
    """Catches a closing bracket of the wrong kind, a fifth level, and strings of one token.

    The authors' strings are such.
    """
    sample = dyck.strings(200, dyck.LENGTH, np.random.default_rng(0))
    assert sample.shape == (200, dyck.LENGTH)
    deepest = 0
    for string in sample:
        text = "".join(dyck.SYMBOLS[t] for t in string)
        for end in range(1, len(text) + 1):
            left = reduced(text[:end])
            assert set(left) <= set("(["), text[:end]
            deepest = max(deepest, len(left))
    assert deepest == dyck.DEPTH


@pytest.mark.parametrize(
    ("text", "may_follow"), [("[()]", "(["), ("[()", "([]"), ("[(", "([)"), ("((((", ")")]
)
def test_what_may_follow(text: str, may_follow: str) -> None:
    """Of strings drawn anew, those that begin with the text.

    "[()]" is a word, so that no "[()])" is among them; catches a fifth "(".
    """
    sample = [
        "".join(dyck.SYMBOLS[t] for t in s)
        for s in dyck.strings(20_000, len(text) + 1, np.random.default_rng(5))
    ]
    assert {s[-1] for s in sample if s.startswith(text)} == set(may_follow)


def test_the_reference_knows_words() -> None:
    """The reference of the tests here; catches one that counts brackets only ("([)]")."""
    assert [reduced(text) == "" for text in ("[()]", "[()])", "([)]", ")(")] == [
        True,
        False,
        False,
        False,
    ]


def test_entropy_of_the_automaton() -> None:
    """Catches an END symbol in the empty state (1.04 there, not 0.69) and bits instead of nats.

    The sample knows nothing of the walk.
    """
    assert dyck.bayes_entropy(1) == pytest.approx(log(2))
    assert dyck.bayes_entropy(dyck.LENGTH) == pytest.approx(0.88, abs=0.005)
    sample = dyck.strings(4000, dyck.LENGTH, np.random.default_rng(1))
    opens = sample < dyck.CLOSE
    depth = np.cumsum(np.where(opens, 1, -1), 1)
    before = np.pad(depth, ((0, 0), (1, 0)))[:, :-1]
    total = 0.0
    # the entropy of opening, counted, and of the kind if it opens
    for level in range(dyck.DEPTH + 1):
        share = opens[before == level].mean()
        flip = -sum(p * log(p) for p in (share, 1 - share) if p > 0)
        total += (before == level).mean() * (flip + share * log(2))
    assert dyck.bayes_entropy(dyck.LENGTH) == pytest.approx(total, abs=0.01)


@given(prefixes())
def test_stack_tops_against_walking_back(tokens: list[int]) -> None:
    """Catches the last open bracket of all, matched or not, and a place off by the start symbol."""
    for given_ in (tokens, [dyck.START, *tokens]):
        tops = dyck.stack_tops(np.array([given_]))[0]
        assert tops.tolist() == [slow_top(given_[: end + 1]) for end in range(len(given_))]


@given(prefixes())
def test_the_token_before_is_never_the_bracket_to_close(tokens: list[int]) -> None:
    """The control is 0 by the language itself; catches one that looks at another place."""
    row = np.array([[dyck.START, *tokens]])
    assert dyck.controls(row)["token before"] == 0
    itself = [dyck.OPEN <= now < dyck.CLOSE for now in row[0, 1:]]
    counted = dyck.stack_tops(row)[0, 1:] >= 0
    assert dyck.controls(row)["itself"] == pytest.approx(np.array(itself)[counted].mean())


def test_control_anywhere_by_hand() -> None:
    """^ ( ): only the row of "(" counts, and it may look at two places.

    Catches rows counted with nothing open, one place too few.
    """
    assert dyck.controls(np.array([[0, 1, 3]]))["anywhere"] == 0.5


def test_closing_metric_by_hand() -> None:
    """Catches a comparison with all symbols instead of the closing ones.

    Also the kind of the last symbol, and a threshold at a half.
    """
    tokens = np.array([[0, 1, 2, 4, 3]])  # ^ ( [ ] ): to close are none ( [ ( none
    tops = dyck.stack_tops(tokens)
    assert tops.tolist() == [[-1, 1, 2, 1, -1]]
    p = np.array(
        [
            [
                [0.2, 0.2, 0.2, 0.39, 0.01],
                [0.01, 0.5, 0.3, 0.17, 0.02],
                [0.1, 0.1, 0.1, 0.2, 0.5],
                [0.1, 0.1, 0.1, 0.6, 0.1],
                [0.2] * 5,
            ]
        ]
    )
    # row 1: .17/.19 = .89 right though improbable; row 2: .5/.7 = .71, not enough; row 3: "("
    # again, .6/.7 = .86 right
    assert dyck.closes_right(np.log(p) + 3, tokens, tops).tolist() == [
        [False, True, False, True, False]
    ]


@pytest.mark.parametrize("variant", ["z", "p"])
def test_no_row_sees_what_follows(variant: str) -> None:
    """Bit by bit; catches a mask by one too wide and a norm over places."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = dyck.Transformer(variant).eval()
    tokens = dyck.begun(dyck.strings(3, 12, np.random.default_rng(2)))
    changed, at = tokens.clone(), 7
    changed[:, at] = tokens[:, at] % 4 + 1
    with torch.no_grad():
        (logits, attention), (other_logits, other_attention) = model(tokens), model(changed)
    assert torch.equal(logits[:, :at], other_logits[:, :at])
    assert torch.equal(attention[:, :, :at], other_attention[:, :, :at])
    assert not torch.equal(logits[:, at], other_logits[:, at])
    assert torch.allclose(attention.sum(-1), torch.ones(()))
    assert attention[0, 0, 0, 0] == 1


def test_only_variant_p_reads_its_position() -> None:
    """The same symbol again and again: without position every row is the same.

    Catches a position added to z, or to neither.
    """
    same = torch.ones(1, 6, dtype=torch.long)
    rows = {}
    for variant in "zp":
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            rows[variant] = dyck.Transformer(variant)(same)[0][0].detach()
    assert torch.allclose(rows["z"], rows["z"][:1].expand(6, -1), atol=1e-6)
    assert (rows["p"][0] - rows["p"][5]).abs().max() > 1e-6


def test_an_interval_counts_strings_that_repeat_themselves_once() -> None:
    """Ten rows that are all alike say as much as one.

    Catches an interval that takes every row for a trial.
    """
    rng = np.random.default_rng(3)
    one = rng.random((200, 1)) < 0.3
    every = np.ones((200, 10), bool)
    alike = dyck.share(np.repeat(one, 10, 1), every)
    apart = dyck.share(rng.random((200, 10)) < 0.3, every)
    once = dyck.share(one, every[:, :1])
    assert (alike.low, alike.high) == pytest.approx((once.low, once.high), abs=0.002)
    assert apart.high - apart.low < 0.5 * (alike.high - alike.low)


def test_training_leaves_torch_as_found() -> None:
    """Catches a global seed and a number of threads that stay."""
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    batches = list(dyck.strings(8, 6, np.random.default_rng(4)).reshape(2, 4, 6))
    first, again, other = (dyck.train(batches, 2, "z", seed).head.weight for seed in (5, 5, 6))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == threads


@pytest.mark.slow  # a whole lab
def test_the_quick_lab(book: Notebook) -> None:
    assert [c.claim for c in book.claims if not c.holds] == []
    assert len(book.claims) == 4
    assert [f.name for f in book.figures] == ["dyck-attention", "dyck-shares"]
    models, controls = book.tables
    assert len(models.rows) == 1
    assert [row[0] for row in controls.rows] == ["anywhere", "token before", "itself"]
    closes, looks = (float(models.rows[0][i].split("%")[0]) / 100 for i in (1, 2))
    assert closes > 0.9 > 0.5 > looks
