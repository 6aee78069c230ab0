"""read: what was saved, whatever it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from whence.core.attribution import Attribution
from whence.core.attributions import Attributions
from whence.core.audited import Audit
from whence.core.card import Card
from whence.core.comparison import Comparison
from whence.core.contextual import ContextUse
from whence.core.dashboard import Dashboard
from whence.core.errors import LoadError
from whence.core.evaluation import Evaluation
from whence.core.generation import Generation
from whence.core.many import Failure, Many, result_from_dict
from whence.core.planted import PlantedTruth
from whence.core.receipt import Receipt
from whence.core.sizes import human, parsed
from whence.core.stored import Stored, parsed_json

KINDS: Mapping[str, Callable[[Any], Any]] = {
    "attribution": Attribution.from_dict,
    "attributions": Attributions.from_dict,
    "card": Card.from_dict,
    "comparison": Comparison.from_dict,
    "audit": Audit.from_dict,
    "context": ContextUse.from_dict,
    "dashboard": Dashboard.from_dict,
    "evaluation": Evaluation.from_dict,
    "generation": Generation.from_dict,
    "many": Many.from_dict,
    "planted": PlantedTruth.from_dict,
    "receipt": Receipt.from_dict,
}
LARGEST = "1GB"


def read(
    path: str | Path, *, largest: str | int = LARGEST
) -> (
    Attribution
    | Attributions
    | Audit
    | Card
    | Comparison
    | ContextUse
    | Dashboard
    | Evaluation
    | Generation
    | Many
    | PlantedTruth
    | Receipt
):
    """Read what ``save`` wrote, or the lines that ``--json`` wrote of several texts.

    Every field is checked, and what is wrong is said with its path. A file that is larger than
    ``largest`` is refused before it is read: in memory it would be several times that.

    >>> import whence
    >>> a = whence.explain(whence.load("sentiment"), "not bad", "gradient-l2", evidence=False)
    >>> whence.read(a.save("/tmp/a.json")) == a
    True
    """
    source = repr(str(path))
    text = _text_of(path, source, parsed(largest))
    try:
        content = parsed_json(text)
    except ValueError as problem:
        lines = _lines(text)
        if lines is None:
            raise LoadError(f"{source} is not JSON: {str(problem).rstrip('.')}.") from problem
        return _many(lines, source)
    if not isinstance(content, dict):
        raise LoadError(f"{source} holds no attribution but a {type(content).__name__}.")
    kind = content.get("kind", "attribution")
    if not isinstance(kind, str) or kind not in KINDS:
        in_one_line = " ".join(str(kind).split())
        raise LoadError(f"{source} holds no attribution but a {in_one_line:.40}.")
    return KINDS[kind](Stored(content, source))


def _text_of(path: str | Path, source: str, largest: int) -> str:
    """The whole file, unless it is too large or in another encoding."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(largest + 1)  # what is no file has no size beforehand
    except FileNotFoundError as problem:
        raise LoadError(f"no file {source}.") from problem
    except (OSError, ValueError) as problem:
        why = getattr(problem, "strerror", None) or problem
        raise LoadError(f"cannot read {source}: {why}.") from problem
    if len(content) > largest:
        raise LoadError(
            f"{source} is larger than {human(largest)}, which is the most that is read; "
            "whence.read(path, largest='4GB') asks for more."
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        byte = content[problem.start]
        raise LoadError(
            f"{source} is not JSON: it is not UTF-8 (byte 0x{byte:02x} at {problem.start})."
        ) from problem


def _many(lines: list[tuple[int, Any]], source: str) -> Many:
    """The results of lines, and the failures among them; an error names the line."""
    results, failures = [], []
    for number, content in lines:
        stored = Stored(content, f"{source}, line {number}")
        if content.get("kind") == "failure":
            failures.append(Failure.from_dict(stored))
        else:
            results.append(result_from_dict(stored))
    return Many(tuple(results), tuple(failures))


def _lines(text: str) -> list[tuple[int, dict[str, Any]]] | None:
    """One object a line, as ``--json`` writes them; None where it is something else.

    The last line may be half of one: the run was ended while it was written.
    """
    objects: list[tuple[int, dict[str, Any]]] = []
    lines = text.split("\n")  # nothing else ends a line: a text may hold U+2028
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            one = parsed_json(line)
        except ValueError:
            if objects and number == len(lines):
                break
            return None
        if not isinstance(one, dict):
            return None
        objects.append((number, one))
    return objects if objects else None
