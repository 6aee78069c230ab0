"""A valid folder, damaged in a seeded way: one change in one of its files."""

from __future__ import annotations

import json
import random
import struct
from pathlib import Path
from typing import Any

# what stands where a number, a name or a list belongs
VALUES: tuple[Any, ...] = (
    0,
    -1,
    1,
    7,
    33,
    10**6,
    10**7,
    10**9,
    10**18,
    10**30,
    -(10**9),
    0.5,
    1e300,
    float("nan"),
    float("inf"),
    True,
    False,
    None,
    "",
    "abc",
    "../x",
    "a" * 100_000,
    "\x1b[31m\n‮",
    [],
    [1, "a", None],
    {},
    {"a": {"b": 1}},
    [[[[]]]],
)


def damage(folder: Path, seed: int) -> str:
    """Make one change, and say which."""
    draw = random.Random(seed)
    kind = draw.choice(
        ["config", "config", "tokenizer", "tokenizer", "settings", "header", "bytes"]
    )
    if kind == "config":
        return _json(folder / "config.json", draw)
    if kind == "tokenizer":
        return _json(folder / "tokenizer.json", draw)
    if kind == "settings":
        return _json(folder / "tokenizer_config.json", draw)
    if kind == "header":
        return _header(folder / "model.safetensors", draw)
    files = ["config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"]
    return _bytes(folder / draw.choice(files), draw)


def _json(path: Path, draw: random.Random) -> str:
    """One value anywhere in it is another one, is gone, or stands under another name."""
    content = json.loads(path.read_text(encoding="utf-8"))
    change = _change(content, draw)
    path.write_text(json.dumps(content), encoding="utf-8")
    return f"{path.name}: {change}"


def _change(content: Any, draw: random.Random) -> str:
    place, trail = content, ""
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return f"{trail} is empty already"
        key = draw.choice(keys)
        trail += f"/{key}"
        below = place[key]
        if not isinstance(below, (dict, list)) or not below or draw.random() < 0.25:
            break
        place = below

    how = draw.choice(["value", "value", "value", "gone", "renamed"])
    if how == "gone":
        del place[key]
    elif how == "renamed" and isinstance(place, dict):
        place[str(draw.choice(VALUES))[:1000]] = place.pop(key)
    else:
        place[key] = draw.choice(VALUES)
        how = f"= {str(place[key])[:40]!r}"
    return f"{trail} {how}"


def _header(path: Path, draw: random.Random) -> str:
    """Another value in the header of the weights, or another length of it."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    if draw.random() < 0.3:
        other = draw.choice([0, 1, length - 1, length + 1, 10**8, 10**12, 2**63, 2**64 - 1])
        path.write_bytes(struct.pack("<Q", other) + data[8:])
        return f"header length {other}"
    header = json.loads(data[8 : 8 + length])
    change = _change(header, draw)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + length :])
    return f"header {change}"


def _bytes(path: Path, draw: random.Random) -> str:
    """Cut off, or with some bytes that are others."""
    data = bytearray(path.read_bytes())
    if draw.random() < 0.4:
        size = draw.randrange(len(data))
        path.write_bytes(data[:size])
        return f"{path.name} cut at {size}"
    for _ in range(draw.choice([1, 3, 20])):
        data[draw.randrange(len(data))] = draw.randrange(256)
    path.write_bytes(data)
    return f"{path.name} with other bytes"
