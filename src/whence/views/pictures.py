"""Attributions of an image: which units are patches, the image as a PNG inside a page, and grids.

An attribution of features has no passage, and so no picture.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float, UInt8

from whence.core.attribution import Attribution
from whence.views import wording
from whence.views.markup import element, opening, text
from whence.views.palette import levels

# A page holds the picture once. With scripts, every grid lies over it; without them the grids
# stand beside it.
UNDERLAY = """<script>
for (const picture of document.querySelectorAll(".whence .pictures img.pixels")) {
  picture.closest(".whence").style.setProperty("--picture", `image-set("${picture.src}" 1x)`);
}
</script>"""


def pixels_of(a: Attribution) -> Float[np.ndarray, "channel height width"] | None:
    """The picture that was explained, alone or beside a text; None where there is none."""
    return None if a.passage is None else a.passage.pixels


def pictured(a: Attribution) -> Bool[np.ndarray, " unit"]:
    """True for the units of a picture (patches, regions), False for words and features."""
    if a.passage is None:
        return np.zeros(len(a.scores), dtype=bool)
    return a.passage.pictured


def pixels_figure(pixels: Float[np.ndarray, "channel height width"]) -> str:
    """The image as the model got it, brought back to the range of a screen."""
    picture = opening("img", class_="pixels", alt="the image", src=data_url(pixels))
    return element("figure", picture + element("figcaption", "the image")) + UNDERLAY


def data_url(pixels: Float[np.ndarray, "channel height width"]) -> str:
    """The image as a PNG inside an address."""
    return f"data:image/png;base64,{base64.b64encode(png(pixels)).decode()}"


def patches(
    a: Attribution,
    pixels: Float[np.ndarray, "channel height width"],
    unit: Callable[[int, str, str, float, bool], str],
) -> str:
    """One method's scores on the grid of patches, over the picture.

    ``unit`` makes the element of one patch from its number, content, tooltip and level, and whether
    the keyboard comes in here.
    """
    places = np.flatnonzero(pictured(a))
    level = levels(a)
    cells = []
    for i in places:
        tip = f"{a.units.names[i]}: {wording.exact(float(a.scores[i]), a.signed)}"
        cells.append(unit(int(i), "", tip, float(level[i]), bool(i == places[0])))

    rows, columns = grid_of(a, a.scores).shape
    high, wide = pixels.shape[1:]
    layout = f"grid-template:repeat({rows},1fr)/repeat({columns},1fr);aspect-ratio:{wide}/{high}"
    name = f"patches as {a.method} sees them"
    grid = element(
        "div", "".join(cells), class_="patches", role="group", aria_label=name, style=layout
    )
    return element("figure", grid + element("figcaption", text(a.method)))


def grid_of(a: Attribution, values: Float[np.ndarray, " unit"]) -> Float[np.ndarray, "row column"]:
    """Values of an image's patches in their places; those of a text beside it are left out."""
    shown = pictured(a)
    where = np.array(a.units.spans)[shown, 1:]
    out = np.zeros(where.max(0) + 1)
    out[where[:, 0], where[:, 1]] = values[shown]
    return out


def screen(
    pixels: Float[np.ndarray, "channel height width"],
) -> UInt8[np.ndarray, "height width 3"]:
    """Normalised pixels in the range of a screen: the smallest becomes black, the largest white.

    >>> screen(np.array([[[-2.0, 0.0, 2.0]]]))[0, :, 0].tolist()
    [0, 128, 255]
    """
    image = np.nan_to_num(np.asarray(pixels, dtype=np.float64)).transpose(1, 2, 0)
    if image.shape[2] != 3:
        image = np.repeat(image[..., :1], 3, axis=2)
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
    chunks = [
        b"\x89PNG\r\n\x1a\n",
        _chunk(b"IHDR", header),
        _chunk(b"IDAT", zlib.compress(rows, 9)),
        _chunk(b"IEND", b""),
    ]
    return b"".join(chunks)


def _chunk(kind: bytes, content: bytes) -> bytes:
    length = struct.pack(">I", len(content))
    check = struct.pack(">I", zlib.crc32(kind + content))
    return length + kind + content + check
