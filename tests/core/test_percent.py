"""No share is said to be 0 or 100 % unless it is exactly that, whoever says it.

The enemy is a format like ``.0%``: 996 of 1,000 is then "100 %", beside p = 0.006.
"""

from __future__ import annotations

import re
from math import isclose
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import whence
from tests.views.conftest import evidence_for, made
from whence.core.audit import Effect, Place
from whence.core.percent import between, digits, figures, percent
from whence.games import scoring
from whence.methods import anchors
from whence.methods.integrated_gradients import Jump, jumps_in_words
from whence.views import answering, generation, planted, wording
from whence.views.audit import shown_share
from whence.views.document import static
from whence.views.html import _share

NEAR = [0.996, 0.9951, 0.9996, 0.99999, 1 - 1e-9, 0.0049, 0.0004, 1e-5, 1e-9]
SOURCE = Path(whence.__file__).parent
SAYS_ALL_OR_NOTHING = re.compile(r"(?<![\d.<>] )(?<![\d.])(0|100)(\.0*)?(?=\s?%|&nbsp;%| to |–|$)")


@given(st.floats(0, 1), st.integers(0, 2))
def test_digits_say_all_or_nothing_only_of_all_or_nothing(share: float, decimals: int) -> None:
    shown = digits(share, decimals)
    if shown.startswith("<"):
        assert 0 < 100 * share < float(shown[2:]) + 1e-9
    elif shown.startswith(">"):
        assert 100 > 100 * share > float(shown[2:]) - 1e-9
    elif float(shown) in (0.0, 100.0):
        assert isclose(share, float(shown) / 100, abs_tol=1e-9)
    else:
        places = len(shown.partition(".")[2])
        assert abs(float(shown) - 100 * share) <= 0.5 * 10.0**-places + 1e-9
        assert places >= decimals


def test_beyond_what_a_share_can_be() -> None:
    assert [digits(share) for share in (8.3, -0.996, -1.0, 1 + 1e-7, -1e-5)] == [
        "830",
        "-99.6",
        "-100",
        "100",
        "> -0.01",
    ]
    assert digits(float("nan")) == "–" == percent(float("nan"))
    assert figures(0.99996, 3) == "> 99.99"


def effect_of(share: float) -> str:
    return shown_share(Effect("readings", "beaten", Place(), "", share, (share, share), 50))


def evidence_of(share: float) -> str:
    from dataclasses import replace

    scores = np.linspace(1, -1, 6)
    evidence = replace(
        evidence_for(scores), value=share, interval=(share, share), p=0.006, p_worse=0.9
    )
    a = made("one two three four five six", scores=scores, evidence=evidence)
    return f"{a.answer} {a.to_text(full=True)}"


FORMATS = {
    "percent": wording.percent,
    "share": wording.share,
    "between": lambda share: wording.between((share, share)),
    "interval": lambda share: between(share, share),
    "answer": answering._percent,
    "generation": generation.percent,
    "planted": lambda share: f"{planted.interval_of((share, share))}",
    "audit": effect_of,
    "html": _share,
    "anchor": anchors.percent,
    "end of an anchor": lambda share: anchors.percent(share, up=True),
    "sampling": lambda share: scoring._uncertain_by(share, 5),
    "jump": lambda share: jumps_in_words([Jump(0.25, 0.2501, share)], 1.0, has_router=False),
}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("share", NEAR)
def test_nobody_rounds_to_all_or_nothing(name: str, share: float) -> None:
    said = FORMATS[name](share)
    assert SAYS_ALL_OR_NOTHING.search(said) is None, said
    assert SAYS_ALL_OR_NOTHING.search(FORMATS[name](1.0)), FORMATS[name](1.0)
    assert SAYS_ALL_OR_NOTHING.search(FORMATS[name](0.0)), FORMATS[name](0.0)


def test_996_of_1000_random_rankings_are_not_all_of_them() -> None:
    said = evidence_of(0.996)
    assert "beats 99.6 % of random rankings" in said
    assert "beats 100 %" not in said


def test_nothing_that_is_shown_formats_a_share_by_itself() -> None:
    """What is shown to people goes through ``core/percent.py``; a test of the source finds it.

    Labs have claims of their own, and words of the code that are no measured shares are listed.
    """
    bare = re.compile(r":[+,]?\.[0-9]%\}|:\.[0-9][fg]\} ?%")
    widths = re.compile(r"width|left:")
    allowed = {
        "views/features.py": "DENSE",  # a constant
        "views/evaluation_page.py": "removed",  # asked for
        "views/heads.py": "color-mix",
        "views/context.py": "100 * chance",  # of what is below a hundredth of a per cent
        "views/wording.py": "hundred:.2g",  # what would be 0 or 100 is told before
        "core/gauge.py": "share:.0%} removed",  # asked for
        "explaining/audit_forecast.py": "passes / every",  # of a forecast
        "explaining/closed_forms.py": "infinite",
        "features/forecast.py": "asleep",
        "retraining/curve.py": "share:.0%} removed",
    }
    for folder in SOURCE.iterdir():
        for path in folder.rglob("*.py"):
            name = str(path.relative_to(SOURCE))
            if folder.name == "labs":
                continue
            for line in path.read_text(encoding="utf-8").splitlines():
                if bare.search(line) is None or widths.search(line):
                    continue
                assert allowed.get(name, bare.pattern) in line, f"{name}: {line.strip()}"


def test_the_pages_scripts_say_the_same(browser) -> None:
    page = browser.new_page()
    page.set_content("<p></p>")
    page.add_script_tag(content=static("percent.js"))
    shares = [*NEAR, 0.0, 1.0, 0.5, 0.123, 8.3, -0.00001, 0.98]
    for decimals in (0, 1):
        said = page.evaluate(
            "([shares, decimals]) => shares.map((share) => hundredths(share, decimals))",
            [shares, decimals],
        )
        assert said == [digits(share, decimals) for share in shares]
    page.close()
