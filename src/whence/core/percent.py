"""Shares in per cent, for every view: never 0 or 100 % unless it is exactly that.

996 of 1,000 is 99.6 %: "100 %" beside a p-value of 0.006 would be false. The pages' scripts do the
same in ``views/static/percent.js``.
"""

from __future__ import annotations

import math

MOST_DECIMALS = 2  # beyond the smallest and the largest of them stands "< 0.01" or "> 99.99"
ROUNDING = 1e-12  # a mean of ones may be off by so much, and is still one
ROUNDING_ABOVE = 1e-6  # and a sum of shares in float32 by so much more than one


def digits(share: float, decimals: int = 0) -> str:
    """A share in hundredths, with more decimals where it would round to 0 or to 100.

    >>> digits(0.5), digits(0.996), digits(1.0), digits(0.99999), digits(0.004), digits(8.3)
    ('50', '99.6', '100', '> 99.99', '0.4', '830')
    """
    hundred = 100 * float(share)
    if math.isnan(hundred):
        return "–"
    for exactly in (0.0, 100.0, -100.0):
        if abs(hundred - exactly) <= 100 * ROUNDING:
            return f"{exactly:.{decimals}f}"
    if 100 < hundred <= 100 * (1 + ROUNDING_ABOVE):
        return f"{100.0:.{decimals}f}"
    places = range(decimals, max(decimals, MOST_DECIMALS) + 1)
    for shown in (f"{hundred:.{digits_after}f}" for digits_after in places):
        if abs(float(shown)) not in (0.0, 100.0):
            return shown
    return _beyond(hundred, 10.0 ** -places[-1], places[-1])


def _beyond(hundred: float, step: float, places: int) -> str:
    """A share so near to 0 or 100 that its digits would say it is that."""
    end = step if abs(hundred) < 1 else 100 - step
    if abs(hundred) > 100:
        return "> 100" if hundred > 0 else "< -100"
    is_below = (abs(hundred) < 1) == (hundred > 0)
    sign = "" if hundred > 0 else "-"
    return f"{'<' if is_below else '>'} {sign}{end:.{places}f}"


def percent(share: float, decimals: int = 0) -> str:
    """The same with its sign.

    >>> percent(0.996), percent(0.0), percent(0.27, 1)
    ('99.6 %', '0 %', '27.0 %')
    """
    shown = digits(share, decimals)
    return shown if shown == "–" else f"{shown} %"


def between(low: float, high: float) -> str:
    """An interval of shares.

    >>> between(0.92, 1.0), between(0.9883, 0.9986)
    ('92 to 100 %', '99 to 99.9 %')
    """
    return f"{digits(low)} to {digits(high)} %"


def figures(share: float, significant: int) -> str:
    """A share in hundredths with so many significant digits, and more where it must.

    Beyond a hundred it has no fewer than the number has before its point.

    >>> figures(0.123456, 3), figures(0.99996, 3), figures(0.25, 3), figures(12.34, 2)
    ('12.3', '> 99.99', '25', '1234')
    """
    hundred = 100 * share
    shown = f"{hundred:.{significant}g}"
    if abs(float(shown)) in (0.0, 100.0) or "e" in shown:
        return digits(share)
    return shown
