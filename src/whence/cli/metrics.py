"""whence metrics: what metrics there are, and what one of them measures."""

from __future__ import annotations

from whence.cli import options as o
from whence.cli.running import emit_json, progress, show

EXAMPLE = "Example: whence metrics deletion"


def command(
    name: o.MetricName = None,
    settings: o.WithSettings = False,
    as_json: o.AsJson = False,
    debug: o.Debug = False,
) -> None:
    """List the metrics, or explain one of them.

    With a NAME: what the metric measures, which values are good, what chance gets, when it
    misleads, and each of its settings.
    """
    del debug
    with progress("metrics"):
        from whence.explaining.listing import list_metrics, one_metric
        from whence.views import catalogue

    if name is not None:
        metric = one_metric(name).to_dict()
        if as_json:
            emit_json(metric)
        else:
            show(lambda _: catalogue.metric_view(metric))
        return

    listed = [metric.to_dict() for metric in list_metrics()]
    if as_json:
        emit_json(listed)
    else:
        show(lambda _: catalogue.metrics_view(listed, settings))
