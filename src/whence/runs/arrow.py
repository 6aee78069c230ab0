"""pyarrow, or the line that installs it."""

from __future__ import annotations

from typing import Any

from whence.core.errors import Unsupported

MISSING = "runs over data sets need {package}: pip install 'whence[runs]'."


def arrow() -> Any:
    """The module ``pyarrow``."""
    try:
        import pyarrow
    except ImportError as problem:
        raise Unsupported(MISSING.format(package="pyarrow")) from problem
    return pyarrow


def parquet() -> Any:
    """The module ``pyarrow.parquet``."""
    arrow()
    import pyarrow.parquet

    return pyarrow.parquet


def duckdb() -> Any:
    """The module ``duckdb``."""
    try:
        import duckdb
    except ImportError as problem:
        raise Unsupported(MISSING.format(package="duckdb")) from problem
    return duckdb
