"""Every error a user can meet: one root, few leaves, each also a standard type.

A message says what was asked, what was found, and what to do next. The command line prints it
and exits with 2.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from whence.core.showing import visible


class WhenceError(Exception):
    """The root of all errors that are the caller's to mend."""

    def __str__(self) -> str:
        # KeyError would print the repr of the message, and OSError would look for errno
        message = str(self.args[0]) if self.args else ""
        return visible(message, keep="\n")  # it may quote a label, or the name of a file


class InputError(WhenceError, ValueError):
    """The text, image or file cannot be explained as it is."""


class TargetError(WhenceError, ValueError):
    """The number to explain does not exist for this model."""


class PlaceError(TargetError, InputError):
    """The word at which the target is read does not stand in this text; in another it may."""


class SettingsError(WhenceError, ValueError):
    """A method's setting has a wrong name, type or value."""


class UnknownName(WhenceError, KeyError):
    """A name that nothing is registered under."""


class Unsupported(WhenceError, NotImplementedError):
    """The model cannot do what the method needs."""


class LoadError(WhenceError, OSError):
    """A model or a result cannot be loaded."""


class TooLarge(WhenceError, MemoryError):
    """The run would need more memory than its budget."""


class AuthorError(WhenceError, TypeError):
    """A method or a metric is not written as it must be: its author's to mend, not its user's."""


class ModelError(WhenceError, RuntimeError):
    """The model ran, and what came back is unusable."""


class OurMistake(ModelError):
    """whence itself went wrong: nothing that the caller could mend.

    It is a ModelError too, as a method that meets it is left out like one that does not fit the
    model, and the others go on.
    """


def unknown_name(kind: str, name: object, known: Iterable[str]) -> UnknownName:
    """The error for a name that is not in ``known``, with the nearest one.

    >>> unknown_name("method", "lim", ["lime", "random"])
    UnknownName("no method named 'lim'. Did you mean 'lime'? Known: lime, random.")
    """
    known = sorted(known)
    close = get_close_matches(str(name), known, n=1, cutoff=0.5)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return UnknownName(f"no {kind} named {str(name)!r}.{hint} Known: {', '.join(known)}.")
