"""whence methods: what methods there are, and what one of them does."""

from __future__ import annotations

from whence.cli import options as o
from whence.cli.running import emit_json, progress, show

EXAMPLE = "Example: whence methods integrated-gradients"


def command(
    name: o.MethodName = None,
    settings: o.WithSettings = False,
    as_json: o.AsJson = False,
    debug: o.Debug = False,
) -> None:
    """List the methods, or explain one of them.

    With a NAME: what the method says of a word, where it looks, what it costs, when it misleads,
    and each of its settings.
    """
    del debug
    with progress("methods"):
        from whence.explaining.listing import list_methods, one_method
        from whence.views import catalogue

    if name is not None:
        method = one_method(name).to_dict()
        if as_json:
            emit_json(method)
        else:
            show(lambda _: catalogue.method_view(method))
        return

    listed = [method.to_dict() for method in list_methods()]
    if as_json:
        emit_json(listed)
    else:
        show(lambda _: catalogue.methods_view(listed, settings))
