"""Numbers of bytes as people say them.

All sizes in whence are decimal, in what is read (``--memory 2GB``) and in what is shown:
1 kB is 1,000 bytes and 1 GB is 10⁹ bytes. Nothing is counted in units of 1,024.
"""

from __future__ import annotations

import re

from whence.core.errors import SettingsError

FACTORS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
SHOWN = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"))
SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?\s*", re.IGNORECASE)


def human(size: int | float) -> str:
    """A number of bytes as people say it.

    >>> human(9_663_676_416), human(512)
    ('9.66 GB', '512 B')
    """
    for power, unit in SHOWN:
        if size >= power:
            return f"{size / power:.3g} {unit}"
    return f"{int(size)} B"


def parsed(size: str | int | float) -> int:
    """The bytes that "2GB", "500 MB" or a plain number stand for.

    "GiB" is read as "GB" is: a budget is a rough number, and people write both for the same thing.

    >>> parsed("2GB"), parsed("1.5 M"), parsed(4096)
    (2000000000, 1500000, 4096)
    """
    match = SIZE.fullmatch(str(size))
    if match is None or float(match[1]) <= 0:
        raise SettingsError(
            "a memory budget is a number of bytes or a size such as '2GB' or '500MB', "
            f"not {size!r}."
        )
    number, letter = match.groups()
    return int(float(number) * FACTORS[letter.lower()])
