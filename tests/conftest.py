"""Shapes and types in signatures are checked while tests run, and only then."""

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

from jaxtyping import install_import_hook

install_import_hook("whence", "beartype.beartype")

import pytest  # noqa: E402
from hypothesis import settings  # noqa: E402


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    """The models here are tiny: a second thread costs more than it gives, and pytest-xdist already uses the other core."""
    import torch

    torch.set_num_threads(1)


# how long an example may take says nothing about the code on a machine that others use too
settings.register_profile("whence", deadline=None)
settings.load_profile("whence")
