"""Times in words: rounded as a person would, or with two digits where they are compared."""

from __future__ import annotations

MINUTE, HOUR, DAY = 60, 3600, 86400


def spoken(seconds: int | float) -> str:
    """How long something took or will take, as a person would say it.

    Said of every time that was taken or is expected.

    ``12 s``

    Whole seconds; from a minute on half minutes, from ten minutes on whole ones; the same of hours.

    Said of what something took or will take; "under a second" only below one.

    >>> spoken(0.12), spoken(12.3), spoken(80), spoken(130), spoken(5000)
    ('under a second', '12 s', '1.5 min', '2 min', '1.5 h')
    """
    if seconds < 1:
        return "under a second"
    if round(seconds) < MINUTE:
        return f"{seconds:.0f} s"
    if seconds < HOUR - MINUTE / 2:
        return f"{_halves(seconds / MINUTE)} min"
    if seconds < 2 * DAY:
        return f"{_halves(seconds / HOUR)} h"
    return f"{seconds / DAY:,.0f} days"


def about(seconds: int | float) -> str:
    """The same of a time that is only guessed: "about", where that can be said.

    >>> about(0.12), about(130)
    ('under a second', 'about 2 min')
    """
    told = spoken(seconds)
    return told if seconds < 1 else f"about {told}"


def precise(seconds: int | float) -> str:
    """A time with two digits, for what is compared or was asked for: one pass, a budget.

    >>> precise(0.0021), precise(0.12), precise(12.3), precise(150), precise(5400)
    ('2.1 ms', '120 ms', '12 s', '2.5 min', '1.5 h')
    """
    if seconds < 0.9995:
        return f"{_two_digits(1000 * seconds)} ms"
    if seconds < 59.5:
        return f"{_two_digits(seconds)} s"
    if seconds < 3570:
        return f"{_two_digits(seconds / MINUTE)} min"
    return f"{_two_digits(seconds / HOUR)} h"


def _halves(number: float) -> str:
    """To a half below ten, as in 1.5; else whole.

    >>> _halves(1.3), _halves(1.9), _halves(24.6)
    ('1.5', '2', '25')
    """
    if number >= 9.75:
        return f"{number:,.0f}"
    return f"{round(2 * number) / 2:g}"


def _two_digits(number: int | float) -> str:
    """Two digits at least, and never an exponent."""
    if number < 9.95:
        return f"{number:.2g}"
    return f"{number:,.0f}"
