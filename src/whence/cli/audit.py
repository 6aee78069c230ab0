"""whence audit: is attention an explanation, in this model on these texts?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from whence.cli import options as o
from whence.cli.against import Foil, column_or_label
from whence.cli.evaluate import how_to_go_on, tell_failures
from whence.cli.pace import pace_shown
from whence.cli.run import Out, Set, with_settings
from whence.cli.running import (
    INTERRUPTED,
    SOME_FAILED,
    emit,
    emit_json,
    loaded,
    note,
    show,
    writable,
)
from whence.cli.running import progress as progress_bar
from whence.core.errors import InputError

if TYPE_CHECKING:
    from whence.core.audited import Audit
    from whence.runs.run import Run

EXAMPLE = "Example: whence audit --model sentiment --data reviews.csv --sample 200 --out audits/m"
SHOWING = ("data", "html", "as_json", "debug")  # options that a finished audit has use for


@dataclass(frozen=True)
class Form:
    """How the verdict is told; ``is_kept`` is whether its folder is still there afterwards."""

    as_json: bool
    html: Path | None
    is_kept: bool = True


def command(
    context: typer.Context,
    data: Annotated[
        str | None,
        typer.Option(
            help="A file (.txt, .csv, .tsv, .jsonl, .parquet, also .gz), a folder saved by Hugging "
            "Face datasets, or the folder of an audit, whose verdict is then shown.",
            metavar="DATA",
        ),
    ] = None,
    model: o.ModelName = "sentiment",
    tests: Annotated[
        str | None,
        typer.Option(
            help="The tests that change attention, separated by commas: permutation, uniform, "
            "adversary, heads. [default: all]",
            metavar="NAMES",
        ),
    ] = None,
    setting: Set = None,
    out: Out = None,
    text: o.TextColumn = None,
    pair: o.PairColumn = None,
    label: o.LabelColumn = None,
    id: o.IdColumn = None,
    labels: o.LabelNames = None,
    split: o.Split = None,
    sample: o.Sample = None,
    limit: o.Limit = None,
    target: o.TargetLabel = None,
    against: o.AgainstLabelOrColumn = None,
    foil: Foil = None,
    read: o.Read = "logit",
    seed: o.Seed = 0,
    overflow: o.Overflow = "error",
    memory: o.Memory = None,
    dtype: o.Dtype = "float32",
    device: o.Device = "cpu",
    rankings: Annotated[
        int,
        typer.Option(help="Random rankings of each text that are the control.", metavar="N", min=1),
    ] = 10,
    part: Annotated[
        int,
        typer.Option(
            help="Texts that are done and written together; a crash loses one such part.",
            metavar="N",
            min=1,
        ),
    ] = 8,
    retrain: Annotated[
        bool,
        typer.Option(
            "--retrain",
            help="Also train copies of the classifier with uniform attention, and with attention "
            "pushed elsewhere, and a bag of words with its weights; on all texts of DATA with "
            "their labels. Takes minutes, or hours for a large model.",
        ),
    ] = False,
    engine: o.EngineName = None,
    workers: o.Workers = None,
    address: o.Address = None,
    again: o.Restart = False,
    mend: o.Mend = False,
    fail_fast: o.FailFast = False,
    html: o.Html = None,
    as_json: o.AsJson = False,
    debug: o.Debug = False,
) -> None:
    """Where in a model attention may be read as an explanation, where not, and why.

    With --out everything is kept: all effects as effects.csv, the verdict as audit.json, and a page
    audit.html. Ctrl-C stops after the part at hand, and the same command goes on from there.
    """
    del debug
    writable(html)
    if data is None:
        raise InputError("there are no data: name a file or a folder by --data.")

    from whence.runs.run import is_run, open_run

    if out is None and is_run(data):
        _refuse_unused(context, data)
        run = open_run(data)
        left = _what_is_left(run, [])
        left = f"{left} The command that began this goes on from here." if left else ""
        _tell(_audit(run), run, Form(as_json, html), left)
        return

    from whence.core.target import Target
    from whence.runs.data import Choice, open_data
    from whence.runs.manner import Manner
    from whence.runs.places import place_for
    from whence.runs.run import check_engine, stopping

    wanted = _wanted(tests, setting or [])
    label_map = o.label_names(labels)
    manner = Manner(engine, workers, address, again, mend, fail_fast)
    check_engine(manner)
    columns = {"text": text, "pair": pair, "label": label, "id": id, "split": split}
    of_labels = label is not None and target is None
    foil, against = column_or_label(data, columns, against, foil, of_labels)
    opened = open_data(data, **columns, foil=foil)
    for guessed in opened.columns.notes:
        note(guessed)
    with place_for(out) as place, loaded(model, dtype, device) as loaded_model:
        from whence.explaining.audit import USE_OF_LABELS, audit_rows, audited, is_whole
        from whence.explaining.audit_forecast import forecast_audit
        from whence.explaining.data_labels import label_lines, labels_met
        from whence.explaining.data_set import check_can_be_loaded
        from whence.retraining.retrained import check_can_retrain, left_to_train, retrained_in

        if not manner.is_inline:
            check_can_be_loaded(loaded_model)
        if retrain:
            check_can_retrain(loaded_model, opened)
        work = audit_rows(
            loaded_model,
            wanted,
            rankings,
            gold=foil is not None,
            labels=label_map,
            targets=(Target(target, against, read),),
            seed=seed,
            overflow=overflow,
            memory=memory,
        )
        choice = Choice(sample, seed, limit)
        met = labels_met(loaded_model, opened, choice, label_map, USE_OF_LABELS)
        for line in label_lines(met, USE_OF_LABELS):
            note(line)
        if again or not is_run(place.name):
            note(str(forecast_audit(work, opened, choice)))
        with stopping(note) as stop:
            with pace_shown(manner.workers or 1) as progress:
                result = audited(
                    work,
                    opened,
                    choice,
                    place,
                    manner,
                    part=part,
                    stop=stop,
                    progress=progress,
                    say=note,
                )
            run = open_run(place.name, check=False)
            if retrain and is_whole(run):
                with progress_bar("training") as say:
                    retrained_in(run.place, loaded_model, opened, seed, stop, say, label_map)
                result = _audit(run)
        if out is not None and "://" not in out:
            _write_all(result, Path(out))
        left = _what_is_left(run, left_to_train(place) if retrain else [])
        left = f"{left} {how_to_go_on(place)}" if left else ""
        _tell(result, run, Form(as_json, html, place.is_kept), left)
        # in here: without --out the folder is gone afterwards
        if stop.asked and left:
            raise typer.Exit(INTERRUPTED)
        if run.state.failed:
            raise typer.Exit(SOME_FAILED)


def _refuse_unused(context: typer.Context, folder: str) -> None:
    """What is given beside a finished audit, and would change nothing of it."""
    given = []
    for option in context.command.params:
        name = option.name or ""
        source = context.get_parameter_source(name)
        if name not in SHOWING and source is not None and source.name == "COMMANDLINE":
            given.append(option.opts[0])
    if given:
        raise InputError(
            f"{folder!r} is an audit, whose verdict is shown as it is: it has no use for "
            f"{', '.join(given)}. To go on with it or to ask for something else, name the texts by "
            "--data and a folder by --out."
        )


def _wanted(tests: str | None, settings: list[str]) -> dict[str, dict[str, Any]]:
    """Tests with settings, such as adversary.steps=50."""
    from whence.explaining.audits import TESTS, name_of_test

    names = list(TESTS) if tests in (None, "all") else str(tests).split(",")
    wanted: dict[str, dict[str, Any]] = {name_of_test(n.strip()): {} for n in names if n.strip()}
    return with_settings(wanted, settings, "test", name_of_test) if settings else wanted


def _audit(run: Run) -> Audit:
    from whence.explaining.stored_audit import READER_NAME, audit_of

    if run.manifest.reader != READER_NAME:
        raise InputError(
            f"{run.place.name!r} is no audit: whence audit --data FILE --out FOLDER makes one."
        )
    return audit_of(run)


def _what_is_left(run: Run, untrained: list[str]) -> str:
    """What is not done yet; nothing where all is. ``untrained`` are tests that would train.

    Said where texts, the curve of heads, or a test that trains are left.
    """
    from whence.explaining.audit import is_whole

    if not run.is_complete:
        return "Not all texts are done."
    if not is_whole(run):
        return "The pruning curve is not done."
    return f"Not trained: {', '.join(untrained)}." if untrained else ""


def _write_all(result: Audit, folder: Path) -> None:
    """The verdict and its effects beside the parts."""
    result.to_csv(folder / "effects.csv")
    result.save(folder / "audit.json")
    result.to_html(folder / "audit.html")
    note(f"written to {folder.resolve()}: effects.csv, audit.json, audit.html")


def _tell(result: Audit, run: Run, form: Form, left: str) -> None:
    """The verdict, the failures, and ``left``: what is not done, and how to go on.

    Said of a page where one was asked for.
    """
    if form.as_json:
        emit_json(result.to_dict())
        if left:
            note(left)
    else:
        from whence.views.audit import audit_view

        show(lambda console: audit_view(result, console.width))
        tell_failures(run, form.is_kept)
        if left:
            emit(left)
    if form.html is not None:
        result.to_html(form.html)
        note(f"page written to {form.html.resolve()}")
