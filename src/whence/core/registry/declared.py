"""What the author of a method or of a metric must declare, checked when the decorator is applied.

Every mistake is said in one line that names the class and shows what to write.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, fields, replace
from math import isfinite, isinf
from typing import Any, get_type_hints

from whence.core.errors import AuthorError
from whence.core.passage import MERGE_RULES
from whence.core.registry.fields import ABOUT
from whence.core.registry.needs import GIVEN_TO_METRICS, OF_METRICS, Needs
from whence.core.registry.passes import Passes

KEBAB_CASE = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
A_FEW_UNITS = 9  # for which a method is asked what it costs
# what a class says about itself, and what is no setting therefore
DECLARATIONS = (
    "needs",
    "signed",
    "merge",
    "only_for",
    "two_streams",
    "price",
    "misleads",
    "better",
    "range",
    "chance",
)
# whose settings must have their sentences; a method of somebody else works without
OUR_OWN = "whence."


@dataclass(frozen=True)
class Author:
    """Whom a complaint is for: the decorator, the name that was asked for, and the class."""

    kind: str
    name: Any
    settings: Any

    def error(self, fault: str) -> AuthorError:
        """The error, addressed."""
        owner = getattr(self.settings, "__qualname__", repr(self.settings))
        return AuthorError(f"@{self.kind}({self.name!r}) on {owner}: {fault}")


def check_method(name: Any, version: Any, cites: Any, settings: Any, aliases: Any = ()) -> None:
    """Raise an AuthorError if this is no well-made method."""
    author = Author("method", name, settings)
    _check_registration(author, version, cites, aliases)
    _check_class(author)
    needs = _declared(author, "needs", "say what it wants, e.g. needs: ClassVar = Needs.EMBEDDINGS")
    if not isinstance(needs, Needs) or needs & OF_METRICS:
        raise author.error(f"needs is one or more of Needs of a method, not {needs!r}.")
    _declared(author, "signed", "may a score speak against the target? signed: ClassVar = True")
    _check_call(author, ("the trace or the game",))
    if needs & Needs.GAME:
        _check_game_method(author, needs)

    example = _with_defaults(author)
    if not isinstance(example.signed, bool):
        raise author.error(f"signed is True or False, not {example.signed!r}.")
    merge = getattr(example, "merge", "sum")
    if merge not in MERGE_RULES:
        raise author.error(f"merge is one of {', '.join(MERGE_RULES)}, not {merge!r}.")
    _check_cost(author, example)


def check_metric(name: Any, version: Any, cites: Any, settings: Any, aliases: Any = ()) -> None:
    """Raise an AuthorError if this is no well-made metric."""
    author = Author("metric", name, settings)
    _check_registration(author, version, cites, aliases)
    _check_class(author)
    needs = _declared(
        author, "needs", "say what it takes, e.g. needs: ClassVar = Needs.GAME | Needs.RANKINGS"
    )
    if needs not in GIVEN_TO_METRICS:
        raise author.error(
            "needs is Needs.GAME or Needs.GOLD with Needs.RANKINGS or Needs.SCORES, or "
            f"Needs.SCORES alone, or Needs.AGAIN alone, not {needs!r}."
        )
    _declared(author, "better", 'which values are good? better: ClassVar = "higher" or "lower"')
    _declared(author, "range", "between what do values lie? range: ClassVar = (0.0, 1.0)")
    _declared(author, "chance", "what do random rankings get? chance: ClassVar = 0.5")
    _check_call(author, GIVEN_TO_METRICS[needs])
    if needs & Needs.GAME and not callable(getattr(settings, "passes", None)):
        raise author.error(
            "it has no passes(self, units): the most masks that one ranking of so many units asks."
        )
    if needs & Needs.AGAIN and not callable(getattr(settings, "again", None)):
        raise author.error(
            "it has no again(self): a tuple of Again, one for each time that the explanation is "
            "to be made once more."
        )

    example = _with_defaults(author)
    if example.better not in ("higher", "lower"):
        raise author.error(f'better is "higher" or "lower", not {example.better!r}.')
    low, high = _range_of(author, example.range)
    chance = example.chance
    if not _is_number(chance) or not low <= chance <= high:
        raise author.error(f"chance is a number within range ({low} to {high}), not {chance!r}.")


def _check_registration(author: Author, version: Any, cites: Any, aliases: Any) -> None:
    if not isinstance(author.name, str) or not KEBAB_CASE.fullmatch(author.name):
        raise author.error("a name is lower-case words with hyphens, e.g. 'gradient-x-input'.")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise author.error(f"version is a whole number from 1 on, not {version!r}.")
    if not isinstance(cites, str):
        raise author.error(f"cites is the key of a paper, or '', not {cites!r}.")
    is_list = isinstance(aliases, (tuple, list))
    if not is_list or not all(isinstance(a, str) and KEBAB_CASE.fullmatch(a) for a in aliases):
        raise author.error(
            f"aliases are lower-case words with hyphens, e.g. aliases=('ig',), not {aliases!r}."
        )


def _check_class(author: Author) -> None:
    """A frozen dataclass with a docstring, and a type and a default for each setting."""
    settings = author.settings
    if not inspect.isclass(settings):
        raise author.error(f"it decorates a class of settings, not a {type(settings).__name__}.")
    if "__dataclass_fields__" not in vars(settings):
        raise author.error(
            "it is no dataclass. Put @dataclass(frozen=True, slots=True) between "
            f"@{author.kind} and the class."
        )
    if not vars(settings)["__dataclass_params__"].frozen:
        raise author.error("its settings can change. Write @dataclass(frozen=True, slots=True).")
    _check_docstring(author)
    _check_fields(author)


def _check_docstring(author: Author) -> None:
    text = (author.settings.__doc__ or "").strip()
    # a dataclass without a docstring is given its own signature for one
    if not text or text.startswith(f"{author.settings.__name__}("):
        raise author.error("it has no docstring, and the first line is what lists show of it.")
    first = text.splitlines()[0]
    if not first.endswith("."):
        raise author.error(
            f"the first line of its docstring is a sentence, and ends with a full stop: {first!r}."
        )


def _check_fields(author: Author) -> None:
    settings = author.settings
    for name, value in vars(settings).items():
        if _is_unannotated_setting(settings, name, value):
            raise author.error(
                f"{name} has no type, so it is no setting. "
                f"Write {name}: {type(value).__name__} = {value!r}."
            )
    for field in fields(settings):
        if field.name in DECLARATIONS:
            raise author.error(
                f"{field.name} would be a setting. Write {field.name}: ClassVar[…] = …"
            )
        if field.default is MISSING:
            raise author.error(
                f"the setting {field.name} has no default. Write {field.name}: … = a plain value."
            )
        _check_sentence(author, field)
    try:
        get_type_hints(settings)
    except (NameError, TypeError) as problem:
        raise author.error(f"the types of its settings cannot be read: {problem}.") from None


def _check_sentence(author: Author, field: Field[Any]) -> None:
    """Of our own settings, and of every one that claims to have a sentence."""
    is_our_own = author.settings.__module__.startswith(OUR_OWN)
    if ABOUT not in field.metadata and not is_our_own:
        return
    sentence = field.metadata.get(ABOUT, "")
    if not isinstance(sentence, str) or not re.fullmatch(r"\S.*[.!?]", sentence):
        raise author.error(
            f"the setting {field.name} has no sentence that ends with a full stop. "
            f'Write {field.name}: … = setting({field.default!r}, "What it does.").'
        )


def _is_unannotated_setting(settings: type, name: str, value: Any) -> bool:
    """A plain value that the author most likely meant as a setting."""
    if name.startswith("_") or name.isupper() or name in DECLARATIONS:
        return False
    if name in vars(settings).get("__annotations__", {}):
        return False
    is_method_or_property = callable(value) or hasattr(type(value), "__get__")
    return not is_method_or_property


def _declared(author: Author, name: str, advice: str) -> Any:
    if not hasattr(author.settings, name):
        raise author.error(f"it declares no {name}: {advice}.")
    return getattr(author.settings, name)


def _check_call(author: Author, given: tuple[str, ...]) -> None:
    call = _own_call(author.settings)
    if call is None:
        raise author.error("it cannot be called: it has no __call__.")
    parameters = list(inspect.signature(call).parameters.values())[1:]
    required = [p for p in parameters if p.default is p.empty]
    if len(parameters) != len(given) or len(required) != len(given):
        names = ", ".join(p.name for p in parameters) or "nothing"
        raise author.error(
            f"__call__ takes self and {' and '.join(given)}, and no more; this one takes {names}."
        )


def _own_call(settings: type) -> Callable[..., Any] | None:
    for base in settings.__mro__:
        if "__call__" in vars(base):
            return vars(base)["__call__"]
    return None


def _check_game_method(author: Author, needs: Needs) -> None:
    if needs != Needs.GAME:
        raise author.error("a method of a game has no trace: needs is Needs.GAME alone.")
    names = [field.name for field in fields(author.settings)]
    if names[:1] != ["removal"]:
        raise author.error(
            'a method of a game has the setting removal first: removal: str = "auto".'
        )


def _check_cost(author: Author, example: Any) -> None:
    """What it says of its cost, if it does: passes(units), and settings that make it cheaper."""
    if hasattr(example, "passes"):
        try:
            declared = example.passes(A_FEW_UNITS)
        except Exception as problem:
            raise author.error(f"passes(self, units) cannot be called: {problem}.") from problem
        if not isinstance(declared, Passes):
            raise author.error(
                "passes(self, units) gives Passes(forwards=…, backwards=…), "
                f"beyond the trace that methods share, not {declared!r}."
            )
    if hasattr(example, "lean"):
        try:
            replace(example, **example.lean(A_FEW_UNITS))
        except (TypeError, ValueError) as problem:
            raise author.error(
                "lean(self, units) gives settings that make it cheaper, by name, "
                f"and this does not: {problem}."
            ) from problem
    if hasattr(example, "within"):
        try:
            replace(example, **example.within(A_FEW_UNITS, 1))
        except (TypeError, ValueError) as problem:
            raise author.error(
                "within(self, units, passes) gives settings, by name, with which it takes no more "
                f"passes than that, or the fewest it can, and this does not: {problem}."
            ) from problem


def _with_defaults(author: Author) -> Any:
    try:
        return author.settings()
    except Exception as problem:
        raise author.error(f"its own defaults are refused: {problem}.") from problem


def _range_of(author: Author, given: Any) -> tuple[float, float]:
    is_pair = isinstance(given, tuple) and len(given) == 2
    is_pair = is_pair and all(map(_is_number_or_infinite, given))
    if not is_pair or not given[0] < given[1]:
        raise author.error(f"range is the lowest and the highest value, not {given!r}.")
    return given


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value)


def _is_number_or_infinite(value: Any) -> bool:
    return _is_number(value) or (isinstance(value, float) and isinf(value))
