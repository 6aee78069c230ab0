"""whence doctor: what a model is, what works on it, and what it will cost."""

from __future__ import annotations

from whence.cli import options as o
from whence.cli.running import emit_json, loaded, progress, show

EXAMPLE = "Example: whence doctor --model ./my-model"


def command(
    model: o.ModelName = "sentiment",
    dtype: o.Dtype = "float32",
    device: o.Device = "cpu",
    as_json: o.AsJson = False,
    debug: o.Debug = False,
) -> None:
    """Examine a model: what works on it, and its cost.

    Prints what kind of model it is, which methods work on it (each is tried), whether the attention
    that whence sees is the model's own, and how much time and memory texts of several lengths will
    take.
    """
    del debug
    with loaded(model, dtype, device) as loaded_model, progress("doctor") as say:
        from whence.explaining.doctor import examine

        report = examine(loaded_model, progress=say).to_dict()
    if as_json:
        emit_json(report)
        return
    from whence.views.listing import doctor_view

    show(lambda console: doctor_view(report, console))
