"""Image attributions in HTML: the image as a PNG inside the page, and a grid of patches over it for each method."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Callable
from html import escape

import numpy as np
from jaxtyping import Float, UInt8

from whence.core.attribution import Attribution
from whence.views import wording
from whence.views.palette import levels

# A page holds the picture once. With scripts, every grid lies over it; without them the grids stand beside it.
UNDERLAY = """<script>
for (const picture of document.querySelectorAll(".whence .pictures img.pixels")) {
  picture.closest(".pictures").style.setProperty("--picture", `image-set("${picture.src}" 1x)`);
}
</script>"""


def pixels_figure(a: Attribution) -> str:
    """The image as the model got it, brought back to the range of a screen."""
    assert a.passage.pixels is not None
    source = base64.b64encode(png(a.passage.pixels)).decode()
    picture = f'<img class="pixels" alt="the image" src="data:image/png;base64,{source}">'
    return f"<figure>{picture}<figcaption>the image</figcaption></figure>{UNDERLAY}"


def patches(a: Attribution, unit: Callable[..., str]) -> str:
    """One method's scores on the grid of patches, over the picture."""
    assert a.passage.pixels is not None
    rows, columns = grid_of(a, a.scores).shape
    high, wide = a.passage.pixels.shape[1:]
    first = int(a.passage.pictured.argmax())  # where the keyboard comes in
    cells = "".join(
        unit(
            i,
            "",
            f"{name}: {wording.exact(float(a.scores[i]), a.signed)}",
            float(level),
            a.signed,
            i == first,
        )
        for i, (name, level, pictured) in enumerate(
            zip(a.names, levels(a), a.passage.pictured, strict=True)
        )
        if pictured
    )
    name, layout = (
        f"patches as {escape(a.method)} sees them",
        f"grid-template:repeat({rows},1fr)/repeat({columns},1fr)",
    )
    grid = f'<div class="patches" role="group" aria-label="{name}" style="{layout};aspect-ratio:{wide}/{high}">'
    return f"<figure>{grid}{cells}</div><figcaption>{escape(a.method)}</figcaption></figure>"


def grid_of(a: Attribution, values: Float[np.ndarray, " unit"]) -> Float[np.ndarray, "row column"]:
    """Values of an image's patches in their places; those of a text beside it are left out."""
    where = np.array(a.passage.unit_spans)[a.passage.pictured, 1:]
    out = np.zeros(where.max(0) + 1)
    out[where[:, 0], where[:, 1]] = values[a.passage.pictured]
    return out


def screen(
    pixels: Float[np.ndarray, "channel height width"],
) -> UInt8[np.ndarray, "height width 3"]:
    """Normalised pixels in the range of a screen: the smallest becomes black, the largest white.

    >>> screen(np.array([[[-2.0, 0.0, 2.0]]]))[0, :, 0].tolist()
    [0, 128, 255]
    """
    image = np.nan_to_num(np.asarray(pixels, dtype=np.float64)).transpose(1, 2, 0)
    image = image if image.shape[2] == 3 else np.repeat(image[..., :1], 3, axis=2)
    low, high = image.min(), image.max()
    return np.round((image - low) / ((high - low) or 1.0) * 255).astype(np.uint8)


def png(pixels: Float[np.ndarray, "channel height width"]) -> bytes:
    """A PNG of normalised pixels. Written here, so that no library is needed.

    >>> png(np.zeros((3, 2, 2), dtype=np.float32))[:4]
    b'\\x89PNG'
    """
    image = screen(pixels)
    rows = b"".join(b"\0" + row.tobytes() for row in image)
    header = struct.pack(">IIBBBBB", image.shape[1], image.shape[0], 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + _chunk(b"IHDR", header)
        + _chunk(b"IDAT", zlib.compress(rows, 9))
        + _chunk(b"IEND", b"")
    )


def _chunk(kind: bytes, content: bytes) -> bytes:
    return (
        struct.pack(">I", len(content))
        + kind
        + content
        + struct.pack(">I", zlib.crc32(kind + content))
    )
