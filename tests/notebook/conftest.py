"""The browser of the views' tests, for the notebook's pages."""

from tests.views.conftest import browser  # noqa: F401
