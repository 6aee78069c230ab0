"""whence methods: what methods there are."""

from __future__ import annotations

from whence.cli import options as o
from whence.cli.running import emit_json, progress, show

EXAMPLE = "Example: whence methods --json"


def command(as_json: o.AsJson = False, debug: o.Debug = False) -> None:
    """List the methods and their settings.

    Prints of each its line, whether its scores have a sign, its settings with their defaults, and
    the paper.
    """
    del debug
    with progress("methods"):
        from whence.explaining.listing import list_methods

        listed = [method.to_dict() for method in list_methods()]
    if as_json:
        emit_json(listed)
        return

    from whence.views.listing import methods_view

    show(lambda _: methods_view(listed))
