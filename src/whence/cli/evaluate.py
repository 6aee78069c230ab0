"""whence evaluate: methods × metrics over a data set, beside a random control."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from whence.cli import completing
from whence.cli import options as o
from whence.cli.against import Foil, column_or_label
from whence.cli.pace import pace_shown
from whence.cli.run import (
    MOST_FAILURES,
    Methods,
    Out,
    check_page,
    chosen_methods,
    method_name,
    with_settings,
)
from whence.cli.running import (
    INTERRUPTED,
    SOME_FAILED,
    emit,
    emit_json,
    loaded,
    note,
    show,
)
from whence.core.counting import counted
from whence.core.errors import InputError
from whence.core.showing import visible

if TYPE_CHECKING:
    from whence.core.evaluation import Evaluation
    from whence.explaining.trials import TrialRows
    from whence.runs.places import Place
    from whence.runs.run import Run

EXAMPLE = "Example: whence evaluate --data reviews.csv --sample 200 --out runs/trial"
TABLES = {"table.csv": "to_csv", "table.tex": "to_latex", "table.html": "to_html"}


@dataclass(frozen=True)
class Form:
    """How the table is told; ``is_kept`` is whether its folder is still there afterwards."""

    as_json: bool
    full: bool
    html: Path | None
    is_kept: bool = True


def command(
    data: Annotated[
        str | None,
        typer.Option(
            help="A file (.txt, .csv, .tsv, .jsonl, .parquet, also .gz), a folder saved by Hugging "
            "Face datasets, or the folder of an evaluation, whose table is then shown.",
            metavar="DATA",
        ),
    ] = None,
    model: o.ModelName = "sentiment",
    methods: Methods = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            help="The metrics, separated by commas, groups of them (faithfulness, gold, again, "
            "form), or all. [default: all]",
            autocompletion=completing.metrics,
            metavar="NAMES",
        ),
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="A setting of a method or a metric, such as lime.samples=500 or "
            "consistency.by=vsi.",
            metavar="NAME.SETTING=…",
        ),
    ] = None,
    add: Annotated[
        list[Path] | None,
        typer.Option(
            "--add",
            help="Also try results of other tools, saved as JSON; each belongs to its text.",
            metavar="FILE",
        ),
    ] = None,
    out: Out = None,
    removals: Annotated[
        str | None,
        typer.Option(
            help="How words are removed, separated by commas: mask, delete, pad, mean, zero, "
            "infill. [default: two that fit the model]",
            metavar="NAMES",
        ),
    ] = None,
    text: o.TextColumn = None,
    pair: o.PairColumn = None,
    label: o.LabelColumn = None,
    id: o.IdColumn = None,
    labels: o.LabelNames = None,
    rationale: Annotated[
        str | None,
        typer.Option(
            help="The column of what people marked as the reason: spans [[0, 5], …] or words.",
            metavar="COLUMN",
        ),
    ] = None,
    split: o.Split = None,
    sample: o.Sample = None,
    limit: o.Limit = None,
    gold: o.Gold = False,
    target: o.TargetLabel = None,
    against: o.AgainstLabelOrColumn = None,
    foil: Foil = None,
    read: o.Read = "logit",
    units: o.Units = "word",
    seed: o.Seed = 0,
    overflow: o.Overflow = "error",
    memory: o.Memory = None,
    dtype: o.Dtype = "float32",
    device: o.Device = "cpu",
    budget: o.Budget = None,
    rankings: Annotated[
        int,
        typer.Option(help="Random rankings of each text that are the control.", metavar="N", min=1),
    ] = 20,
    planted: Annotated[
        int,
        typer.Option(
            help="Also try the methods where the truth is known, on so many texts of each "
            "mechanism; 0 leaves it out. It leads the report.",
            metavar="N",
            min=0,
        ),
    ] = 30,
    part: Annotated[
        int,
        typer.Option(
            help="Texts that are done and written together; a crash loses one such part.",
            metavar="N",
            min=1,
        ),
    ] = 8,
    engine: o.EngineName = None,
    workers: o.Workers = None,
    address: o.Address = None,
    again: o.Restart = False,
    mend: o.Mend = False,
    fail_fast: o.FailFast = False,
    full: Annotated[
        bool, typer.Option("--full", help="Print every column, under every removal.")
    ] = False,
    html: o.Html = None,
    as_json: o.AsJson = False,
    debug: o.Debug = False,
) -> None:
    """Put explanations on trial: a table of methods × metrics, with intervals and a control.

    With --out everything is kept: the table as table.csv, table.tex, table.parquet and a page
    table.html. Ctrl-C stops after the part at hand, and the same command goes on from there. A text
    that cannot be explained is listed as a failure; the exit code is then 3.
    """
    del debug
    check_page(html, out)
    if data is None:
        raise InputError("there are no data: name a file or a folder by --data.")

    from whence.runs.run import is_run, open_run

    if out is None and is_run(data):
        run = open_run(data)
        evaluation = _evaluation(run)
        left = "The command that began this goes on from here."
        _tell(evaluation, run, Form(as_json, full, html), left if _is_begun(run) else "")
        return

    asked: dict[str, Any] = {
        "columns": {
            "text": text,
            "pair": pair,
            "label": label,
            "id": id,
            "rationale": rationale,
            "split": split,
        },
        "methods": None if methods in (None, "all") else chosen_methods(methods),
        "metrics": None if metrics in (None, "all") else chosen_metrics(metrics),
        "removals": None if removals is None else [name.strip() for name in removals.split(",")],
    }
    _set(asked, setting or [])
    label_map = o.label_names(labels)

    from whence.core.target import Target
    from whence.runs.data import Choice, open_data
    from whence.runs.manner import Manner
    from whence.runs.places import place_for
    from whence.runs.run import check_engine, stopping

    manner = Manner(engine, workers, address, again, mend, fail_fast)
    check_engine(manner)
    of_labels = (label is not None or gold) and target is None
    foil, against = column_or_label(data, asked["columns"], against, foil, of_labels)
    opened = open_data(data, **asked["columns"], foil=foil)
    for guessed in opened.columns.notes:
        note(guessed)
    is_of_labels = gold or foil is not None
    if label is not None and not is_of_labels:
        note("what the model predicts is explained; labels are only kept (--gold explains them)")
    with place_for(out) as place, loaded(model, dtype, device) as loaded_model:
        from whence.explaining.data_labels import label_lines, labels_met
        from whence.explaining.data_set import check_can_be_loaded, request_of
        from whence.explaining.evaluate import (
            check_none_added,
            evaluated,
            is_whole,
            never_alone,
            trial_rows,
            use_of_labels_in_trials,
        )
        from whence.explaining.rows import ExplainRows

        added = _added(add or [])
        if not manner.is_inline:
            check_can_be_loaded(loaded_model)
            check_none_added(added)
        request = request_of(
            loaded_model,
            asked["methods"],
            targets=(Target(target, against, read),),
            units=units,
            seed=seed,
            overflow=overflow,
            memory=memory,
            evidence=False,
            budget=budget,
        )
        explain = ExplainRows(loaded_model, request, is_of_labels, added, label_map)
        work = trial_rows(explain, asked["metrics"], asked["removals"], None, rankings)
        for name in never_alone(asked["metrics"] or {}):
            note(f"{name} is measured, too: robustness says nothing without faithfulness beside it")
        choice = Choice(sample, seed, limit)
        use = use_of_labels_in_trials(work)
        for line in label_lines(labels_met(loaded_model, opened, choice, label_map, use), use):
            note(line)
        if work.of_again:
            note(_what_is_dear(work))
        with stopping(note) as stop, pace_shown(manner.workers or 1) as progress:
            evaluation = evaluated(
                work,
                opened,
                choice,
                place,
                manner,
                part=part,
                planted=planted,
                stop=stop,
                progress=progress,
                say=note,
            )
        run = open_run(place.name, check=False)
        if out is not None and "://" not in out:
            _write_all(evaluation, Path(out))
        is_ended_early = stop.asked and not is_whole(run, planted)
        form = Form(as_json, full, html, place.is_kept)
        left = _what_is_left(run, planted) + how_to_go_on(place) if is_ended_early else ""
        _tell(evaluation, run, form, left)
        # in here: without --out the folder is gone afterwards
        if is_ended_early:
            raise typer.Exit(INTERRUPTED)
        if run.state.failed:
            raise typer.Exit(SOME_FAILED)


def chosen_metrics(names: str) -> dict[str, dict[str, Any]]:
    """Metrics by name, or by the name of their group, as they were written."""
    from whence.explaining.evaluate import wanted_metrics

    listed = [name.strip() for name in names.split(",") if name.strip()]
    return {name: dict(given) for name, given in wanted_metrics(listed).items()}


def metric_name(name: str) -> str:
    """The proper name of a metric."""
    from whence.core.registry import find_metric

    return find_metric(name).name


def _set(asked: dict[str, Any], settings: list[str]) -> None:
    """Settings of methods and of metrics, such as lime.samples=500 or deletion.steps=5."""
    from whence.core.registry import metrics

    mine = [given for given in settings if given.partition(".")[0] in metrics()]
    others = [given for given in settings if given not in mine]
    if mine:
        asked["metrics"] = with_settings(asked["metrics"], mine, "metric", metric_name)
    if others:
        asked["methods"] = with_settings(asked["methods"], others, "method", method_name)


def _added(paths: list[Path]) -> Any:
    """The attributions in files of results."""
    from whence.core.reading import read
    from whence.explaining.added import wishes_and_added

    if not paths:
        return ()
    _, added = wishes_and_added([read(path) for path in paths])
    return added


def _what_is_dear(work: TrialRows) -> str:
    """What most of the time will go to, and how to do without.

    Said before a work in which some metrics make explanations again.

    ``for robustness each explanation is made up to 8 times more, which takes most of the time;
    --metrics faithfulness,gold,form leaves them out``
    """
    from whence.explaining.again import times_again
    from whence.views.evaluation import wording_list

    metrics = wording_list(list(work.of_again))
    times = len(times_again(work.of_again.values()))
    often = "once more" if times == 1 else f"up to {times} times more"
    return (
        f"for {metrics} each explanation is made {often}, which takes most of the time; "
        "--metrics faithfulness,gold,form leaves them out"
    )


def _is_begun(run: Run) -> bool:
    """Whether something is left to do that was begun: texts, or mechanisms of planted truth."""
    from whence.explaining.stored_trials import stored_planted, untried

    planted, _ = stored_planted(run.place)
    return not run.is_complete or (planted is not None and bool(untried(planted)))


def _what_is_left(run: Run, planted: int) -> str:
    """What was not done after the last text; the table tells of texts itself."""
    from whence.explaining.evaluate import left_to_measure
    from whence.views.evaluation import wording_list

    if not run.is_complete:
        return ""
    return f"Not done: {wording_list(left_to_measure(run, planted))}. "


def how_to_go_on(place: Place) -> str:
    """What to do after Ctrl-C.

    Said after Ctrl-C, by whether there is a folder.

    ``The same command goes on from here.``
    """
    if place.is_kept:
        return "The same command goes on from here."
    return "Nothing of this is kept. With --out FOLDER the same command goes on where it was ended."


def _evaluation(run: Run) -> Evaluation:
    from whence.explaining.stored_trials import READER_NAME, evaluation_of

    if run.manifest.reader != READER_NAME:
        raise InputError(
            f"{run.place.name!r} is a run of explanations, and no evaluation: "
            "whence evaluate --data FILE --out FOLDER makes one."
        )
    return evaluation_of(run)


def _write_all(evaluation: Evaluation, folder: Path) -> None:
    """The table beside the parts, in every form.

    Said where the table has a folder.

    ``tables and page written to trials: table.csv, table.json, table.parquet``
    """
    for name, writer in TABLES.items():
        getattr(evaluation, writer)(folder / name)
    evaluation.to_parquet(folder / "table.parquet")
    note(f"tables and page written to {folder.resolve()}: {', '.join(TABLES)}, table.parquet")


def _tell(evaluation: Evaluation, run: Run, form: Form, left: str) -> None:
    """The table, the failures, and ``left``: how to go on, where something is left to do.

    Said of a page where one was asked for.
    """
    if form.as_json:
        emit_json(evaluation.to_dict())
        if left:
            note(left)
    else:
        from whence.views.evaluation import evaluation_view

        show(lambda console: evaluation_view(evaluation, console, form.full))
        tell_failures(run, form.is_kept)
        if left:
            emit(left)
    if form.html is not None:
        evaluation.to_html(form.html)
        note(f"page written to {form.html.resolve()}")


def tell_failures(run: Run, is_kept: bool) -> None:
    """The first texts of which nothing came, with their rows.

    Said where some text failed.

    ``  … --out FOLDER keeps all``
    """
    state = run.state
    if not state.failed:
        return
    from whence.explaining.stored_trials import failed_texts

    emit(f"{state.failed:,} of {counted(state.rows, 'text')} failed:")
    for failure in failed_texts(run, MOST_FAILURES):
        emit(visible(f"  {failure.where}: {failure.reason}"))
    if state.failed > MOST_FAILURES:
        query = f'whence query {run.place.name} "select * from failures" lists all'
        emit(f"  … {query if is_kept else '--out FOLDER keeps all'}")
