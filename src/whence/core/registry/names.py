"""Names as people write them: ``LIME``, ``integrated_gradients``, ``SmoothGrad``, ``ig``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from whence.core.errors import UnknownName, unknown_name

# how alike a mistyped name must be to be guessed; 1 is the same
ALIKE = 0.6


def bare(name: str) -> str:
    """The letters and digits of a name, in lower case: what two spellings of it share.

    >>> bare("Integrated_Gradients") == bare("integrated-gradients")
    True
    """
    return "".join(character for character in name.lower() if character.isalnum())


def found(name: str, aliases: Mapping[str, Iterable[str]]) -> str | None:
    """The proper name that is meant, or None. ``aliases`` has those of every proper name.

    A name as it is registered comes first, then another spelling of it, then an alias.

    >>> known = {"integrated-gradients": ["ig"], "lime": []}
    >>> found("LIME", known), found("IG", known), found("limes", known)
    ('lime', 'integrated-gradients', None)
    """
    if name in aliases:
        return name
    wanted = bare(str(name))
    for proper in aliases:
        if bare(proper) == wanted:
            return proper
    for proper, others in aliases.items():
        if wanted in [bare(other) for other in others]:
            return proper
    return None


def not_found(kind: str, name: object, aliases: Mapping[str, Iterable[str]]) -> UnknownName:
    """The error for a name that nothing answers to; it guesses from names and aliases alike.

    >>> not_found("method", "salience", {"gradient-l2": ["saliency"], "lime": []})
    UnknownName("no method named 'salience'. Did you mean 'gradient-l2' (also called 'saliency')? \
Known: gradient-l2, lime.")
    """
    proper_of = {bare(proper): (proper, proper) for proper in aliases}
    for proper, others in aliases.items():
        for other in others:
            proper_of.setdefault(bare(other), (proper, other))
    close = get_close_matches(bare(str(name)), proper_of, n=1, cutoff=ALIKE)
    if not close:
        return unknown_name(kind, name, aliases)

    proper, written = proper_of[close[0]]
    hint = f"Did you mean {proper!r}?"
    if written != proper:
        hint = f"Did you mean {proper!r} (also called {written!r})?"
    known = ", ".join(sorted(aliases))
    return UnknownName(f"no {kind} named {str(name)!r}. {hint} Known: {known}.")
