"""whence metrics: what metrics there are."""

from __future__ import annotations

from whence.cli import options as o
from whence.cli.running import emit_json, progress, show

EXAMPLE = "Example: whence metrics --json"


def command(as_json: o.AsJson = False, debug: o.Debug = False) -> None:
    """List the metrics and their settings.

    Prints of each its line, which values are good, what chance gets, its settings with their
    defaults, and the paper.
    """
    del debug
    with progress("metrics"):
        from whence.explaining.listing import list_metrics

        listed = [metric.to_dict() for metric in list_metrics()]
    if as_json:
        emit_json(listed)
        return

    from whence.views.metrics import metrics_view

    show(lambda _: metrics_view(listed))
