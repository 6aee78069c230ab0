"""Where a model lies: a bundled name, a folder, or an id on the hub; and what a typo meant.

Nothing heavy is imported here: a misspelled name is answered before torch is loaded.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

from whence.core.errors import LoadError

BUNDLED = Path(__file__).parent / "bundled"
CONFIG = "config.json"
MOST_LISTED = 8  # neighbours, in the line of a refusal


def bundled() -> list[str]:
    """The names of the models inside the package."""
    return sorted(p.parent.name for p in BUNDLED.glob(f"*/{CONFIG}"))


def source_of(name: str, is_path: bool = False) -> Path | str:
    """The folder of a bundled or local model, or the name itself where it is an id on the hub.

    >>> source_of("sentiment").name, source_of("org/some-model")
    ('sentiment', 'org/some-model')
    """
    if name in bundled() and not is_path:
        return BUNDLED / name

    folder = Path(name).expanduser()
    if name.strip() and folder.is_dir():
        _check_holds_a_model(name, folder)
        return folder
    if folder.is_file():
        raise LoadError(
            f"{name!r} is a file; give the folder that holds config.json and the weights."
        )
    if is_path or _looks_like_a_path(name) or not name.strip():
        raise LoadError(f"no folder {name!r}.{_beside(folder)}{known()}")

    if "/" not in name:
        close = get_close_matches(name, bundled(), n=1)
        if close:
            raise LoadError(f"no bundled model named {name!r}. Did you mean {close[0]!r}?{known()}")
    if not _is_in_cache(name):
        _refuse_near_a_folder(name, folder)
    return name


def known() -> str:
    """The bundled models, at the end of a refusal."""
    names = bundled()
    return f" Bundled models: {', '.join(names)}." if names else ""


def _looks_like_a_path(name: str) -> bool:
    """An id on the hub has at most one slash, and begins with a letter or a digit."""
    if name.startswith((".", "/", "~", "\\")) or name.count("/") > 1:
        return True
    return os.sep != "/" and os.sep in name


def _check_holds_a_model(name: str, folder: Path) -> None:
    """A folder of models is no model: say which ones lie in it."""
    if (folder / CONFIG).exists():
        return
    inside = [str(Path(name) / one) for one in _models_in(folder)]
    if inside:
        raise LoadError(
            f"the folder {name!r} has no {CONFIG}, so it holds no Hugging Face model. "
            f"Models in it: {_listed(inside)}."
        )


def _refuse_near_a_folder(name: str, folder: Path) -> None:
    """A name that is nearly that of a model here, or would lie among models, is no id on the hub.

    Asking the hub for it takes over a minute where there is no network.
    """
    models = _models_in(folder.parent)
    if "/" in name and models:
        way_out = f"To take it from the hub, run this where no folder {str(folder.parent)!r} lies."
        raise LoadError(f"no folder {name!r}.{_beside(folder)} {way_out}")
    if get_close_matches(name, models, n=1):
        raise LoadError(
            f"no folder {name!r}.{_beside(folder)} To take it from the hub, write org/name."
        )


def _beside(folder: Path) -> str:
    """What stands where a folder was sought: what was meant, and the models there."""
    missing = _first_missing(folder)
    if missing != folder:
        close = get_close_matches(missing.name, _folders_in(missing.parent), n=1)
        if not close:
            return ""
        meant = missing.parent / close[0]
        whole = meant / folder.relative_to(missing)
        return f" Did you mean {str(whole if whole.is_dir() else meant)!r}?"
    models = _models_in(folder.parent)
    if not models:
        return ""
    close = get_close_matches(folder.name, models, n=1)
    hint = f" Did you mean {str(folder.parent / close[0])!r}?" if close else ""
    return f"{hint} Models there: {_listed(models)}."


def _first_missing(folder: Path) -> Path:
    """The outermost folder of a path that is not there."""
    while folder.parent != folder and not folder.parent.is_dir():
        folder = folder.parent
    return folder


def _models_in(folder: Path) -> list[str]:
    """The names of the folders in a folder that hold a model."""
    return [name for name in _folders_in(folder) if (folder / name / CONFIG).is_file()]


def _folders_in(folder: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in folder.iterdir() if entry.is_dir())
    except OSError:  # no permission, or gone
        return []


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    more = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
    return ", ".join(names[:MOST_LISTED]) + more


def _is_in_cache(name: str) -> bool:
    """Whether something of that name was loaded from the hub before."""
    from huggingface_hub.constants import HF_HUB_CACHE

    return (Path(HF_HUB_CACHE) / f"models--{name.replace('/', '--')}").is_dir()
