"""The files of a tokenizer, checked before one is made of them.

A tokenizer lays its tokens out by their ids, so an id far beyond their number costs time and
memory for every id below it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from whence.core.errors import LoadError
from whence.models.checkpoint import LARGEST_TOKENIZER, Find, read_json, short
from whence.models.numbers import check_other_files

# Ids may have gaps; these are the most that a list of tokens is laid out with.
TIMES = 10
SPARE = 1_000_000

# All that are read as JSON, besides tokenizer.json.
JSON_FILES = ("vocab.json", "added_tokens.json", "special_tokens_map.json", "chat_template.json")


def check_tokenizer(find: Find, where: str) -> None:
    """Raise where the files of a tokenizer are damaged, or have ids that cannot be meant."""
    settings = _read(find, "tokenizer_config.json")
    others = settings.get("fast_tokenizer_files")
    check_other_files(others, "tokenizer_config.json", where)
    _check_class(settings, where)
    _check_ids("tokenizer_config.json", _decoder_ids(settings), where)

    for name in JSON_FILES:
        content = _read(find, name)
        if name in ("vocab.json", "added_tokens.json"):
            _check_ids(name, content.values(), where)
    for name in ["tokenizer.json", *(others or [])]:
        _check_ids(name, _ids(_read(find, name), name, where), where)


def _read(find: Find, name: str) -> dict[str, Any]:
    path = find(name)
    return {} if path is None else read_json(path, LARGEST_TOKENIZER)


def _check_class(settings: dict[str, Any], where: str) -> None:
    """transformers looks the name up among all its classes, models included, and loads that."""
    import transformers

    name = settings.get("tokenizer_class")
    if name is None:
        return
    kind = getattr(transformers, name, None) if isinstance(name, str) else name
    is_tokenizer = isinstance(kind, type) and issubclass(kind, transformers.PreTrainedTokenizerBase)
    if kind is not None and not is_tokenizer:
        raise LoadError(
            f"tokenizer_config.json of {where} says tokenizer_class {short(name)}, "
            "which is no tokenizer."
        )


def _decoder_ids(settings: dict[str, Any]) -> list[Any]:
    decoder = settings.get("added_tokens_decoder")
    if not isinstance(decoder, dict):
        return []
    # what is no number stays a string, and is refused as an id
    return [int(key) if key.isdecimal() and len(key) < 20 else key for key in decoder]


def _ids(content: dict[str, Any], name: str, where: str) -> Iterator[Any]:
    """Every id in a tokenizer.json: of its model, of added tokens, of what is put around a text."""
    model = content.get("model")
    added = content.get("added_tokens")
    if content and not isinstance(model, dict):
        raise LoadError(f"{name} of {where} has no 'model', so it holds no tokenizer.")
    vocabulary = model.get("vocab") if model else None
    if isinstance(vocabulary, dict):
        yield from vocabulary.values()
    elif isinstance(vocabulary, list):
        yield from range(len(vocabulary))
    for token in added if isinstance(added, list) else []:
        if isinstance(token, dict):
            yield token.get("id")
    yield from _template_ids(content.get("post_processor"))


def _template_ids(processor: Any) -> Iterator[Any]:
    if not isinstance(processor, dict):
        return
    for part in processor.get("processors") or []:
        yield from _template_ids(part)
    tokens = processor.get("special_tokens")
    for token in tokens.values() if isinstance(tokens, dict) else []:
        if isinstance(token, dict) and isinstance(token.get("ids"), list):
            yield from token["ids"]


def _check_ids(name: str, ids: Iterable[Any], where: str) -> None:
    numbers = list(ids)
    most = TIMES * len(numbers) + SPARE
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, int):
            raise LoadError(f"{name} of {where} has the token id {short(number)}, no whole number.")
        if not 0 <= number <= most:
            raise LoadError(
                f"{name} of {where} has the token id {short(number)}, "
                f"which cannot be with its {len(numbers):,} tokens."
            )
