"""Image attributions in HTML: the image as a PNG inside the page, and a grid of patches over it for each method."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Callable
from html import escape

import numpy as np
from jaxtyping import Float

from whence.core.attribution import Attribution
from whence.views import wording
from whence.views.palette import levels


def pixels_figure(a: Attribution) -> str:
    """The image as the model got it, brought back to the range of a screen."""
    assert a.passage.pixels is not None
    source = base64.b64encode(png(a.passage.pixels)).decode()
    return f'<figure><img class="pixels" alt="the image" src="data:image/png;base64,{source}"><figcaption>the image</figcaption></figure>'


def patches(a: Attribution, unit: Callable[..., str]) -> str:
    """One method's scores on the grid of patches."""
    columns = 1 + max(column for _, _, column in a.passage.unit_spans)
    cells = "".join(
        unit(i, "", f"{name}: {wording.exact(float(a.scores[i]), a.signed)}", float(level), a.signed, i == 0)
        for i, (name, level) in enumerate(zip(a.names, levels(a), strict=True))
    )
    name, layout = f"patches as {escape(a.method)} sees them", f"grid-template-columns:repeat({columns},1fr)"
    grid = f'<div class="patches" role="group" aria-label="{name}" style="{layout}">'
    return f"<figure>{grid}{cells}</div><figcaption>{escape(a.method)}</figcaption></figure>"


def png(pixels: Float[np.ndarray, "channel height width"]) -> bytes:
    """A PNG of normalised pixels: the smallest becomes black, the largest white. Written here, so that no library is needed.

    >>> png(np.zeros((3, 2, 2), dtype=np.float32))[:4]
    b'\\x89PNG'
    """
    image = np.nan_to_num(np.asarray(pixels, dtype=np.float64)).transpose(1, 2, 0)
    image = image if image.shape[2] == 3 else np.repeat(image[..., :1], 3, axis=2)
    low, high = image.min(), image.max()
    grey = np.round((image - low) / ((high - low) or 1.0) * 255).astype(np.uint8)
    rows = b"".join(b"\0" + row.tobytes() for row in grey)
    header = struct.pack(">IIBBBBB", image.shape[1], image.shape[0], 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(rows, 9)) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
