"""A run whose work can kill its worker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from whence import __version__
from whence.runs.data import Row
from whence.runs.kept_rows import keep_rows
from whence.runs.manifest import Manifest, write_manifest
from whence.runs.places import Place, place_of


def prepared(out: Path, texts: list[str], **asked: Any) -> Place:
    place = place_of(out)
    rows = [Row(number, text, id=str(number)) for number, text in enumerate(texts)]
    assert len(list(keep_rows(place, rows))) == len(texts)
    data = {"rows": len(texts), "digest": ""}
    manifest = Manifest("tests.runs.deadly_worker:opened", "", asked, data, 3, __version__)
    write_manifest(place, manifest)
    return place
