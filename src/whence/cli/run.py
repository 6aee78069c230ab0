"""whence run: every text of a data set, into a store that loses nothing."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from whence.cli import completing
from whence.cli import options as o
from whence.cli.against import Foil, column_or_label
from whence.cli.pace import pace_shown
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
from whence.core.counting import texts_done_and_failed
from whence.core.errors import InputError, SettingsError, unknown_name
from whence.core.showing import visible
from whence.core.sizes import human

if TYPE_CHECKING:
    from whence.runs.manner import Manner
    from whence.runs.run import Run, State

EXAMPLE = "Example: whence run reviews.csv --methods lime,occlusion --out runs/reviews"
MOST_FAILURES = 5  # that are shown; whence query has all
MANY = 300  # texts, from which on reading their results takes more than a moment

Source = Annotated[
    str | None,
    typer.Argument(
        metavar="DATA",
        help="A file (.txt, .csv, .tsv, .jsonl, .parquet, also .gz), a folder saved by Hugging "
        "Face datasets, a .toml file that describes a run, or the folder of a run, whose state is "
        "then told.",
    ),
]
Methods = Annotated[
    str | None,
    typer.Option(
        help="The methods, separated by commas. [default: every method that fits the model]",
        autocompletion=completing.methods,
        metavar="NAMES",
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set", help="A setting of a method, such as lime.samples=500.", metavar="NAME.SETTING=…"
    ),
]
Out = Annotated[
    str | None,
    typer.Option(
        help="The folder for the results, or a URL such as s3://bucket/reviews. "
        "The same command again goes on where it was ended.",
        metavar="FOLDER",
    ),
]
Column = Annotated[str | None, typer.Option(metavar="COLUMN")]


def command(
    data: Source = None,
    model: o.ModelName = "sentiment",
    methods: Methods = None,
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
    evidence: o.Evidence = True,
    budget: o.Budget = None,
    rankings: o.Rankings = None,
    steps: o.Steps = None,
    part: Annotated[
        int,
        typer.Option(
            help="Texts that are done and written together; a crash loses one such part.",
            metavar="N",
            min=1,
        ),
    ] = 32,
    engine: o.EngineName = None,
    workers: o.Workers = None,
    address: o.Address = None,
    again: o.Restart = False,
    mend: o.Mend = False,
    fail_fast: o.FailFast = False,
    html: Annotated[
        Path | None,
        typer.Option(
            help="Also write the page of the run: one HTML file that needs nothing else.",
            metavar="FILE",
            readable=False,
        ),
    ] = None,
    as_json: o.AsJson = False,
    debug: o.Debug = False,
) -> None:
    """Explain every text of a data set by several methods, and keep the results.

    Ctrl-C stops after the part at hand. The same command goes on from there. A text that cannot be
    explained is listed as a failure, and the others go on; the exit code is then 3.
    """
    del debug
    check_page(html, out)
    if data is None:
        raise InputError("there are no data: name a file, a folder, or a run.")

    from whence.runs.manner import Manner
    from whence.runs.run import is_run, open_run

    if out is None and not data.endswith(".toml") and is_run(data):
        run = open_run(data)
        _tell(run, as_json)
        _write_page(run, html)
        return

    asked: dict[str, Any] = {
        "data": data,
        "model": model,
        "methods": _methods(methods, setting or []),
        "out": out,
        "text": text,
        "pair": pair,
        "label": label,
        "id": id,
        "foil": foil,
        "labels": o.label_names(labels),
        "split": split,
        "sample": sample,
        "limit": limit,
        "gold": gold,
        "target": target,
        "against": against,
        "read": read,
        "units": units,
        "seed": seed,
        "overflow": overflow,
        "memory": memory,
        "dtype": dtype,
        "device": device,
        "evidence": evidence,
        "budget": budget,
        "rankings": rankings,
        "steps": steps,
        "part": part,
        "engine": engine,
        "workers": workers,
        "address": address,
    }
    if data.endswith(".toml"):
        asked |= _read_spec(Path(data), asked)
    if asked["out"] is None:
        raise InputError("name a folder for the results: --out runs/NAME.")
    manner = Manner(asked["engine"], asked["workers"], asked["address"], again, mend, fail_fast)
    _carry_out(asked, manner, as_json, html)


def _methods(names: str | None, settings: list[str]) -> dict[str, dict[str, Any]] | None:
    """Methods with their settings; None for all of them."""
    chosen = None if names is None else chosen_methods(names)
    return with_settings(chosen, settings, "method", method_name) if settings else chosen


def check_page(html: Path | None, out: str | None) -> None:
    """Refuse a page that cannot be written; a folder that --out is about to make is none yet."""
    is_made_by_out = (
        html is not None
        and out is not None
        and "://" not in out
        and html.parent.resolve() == Path(out).resolve()
        and not html.parent.exists()
    )
    if not is_made_by_out:
        writable(html)


def chosen_methods(names: str) -> dict[str, dict[str, Any]]:
    """Methods by name, as they were written."""
    from whence.core.registry import find_method

    return {find_method(name.strip()).name: {} for name in names.split(",") if name.strip()}


def method_name(name: str) -> str:
    """The proper name of a method."""
    from whence.core.registry import find_method

    return find_method(name).name


def with_settings(
    chosen: dict[str, dict[str, Any]] | None,
    settings: list[str],
    kind: str,
    proper_name: Callable[[str], str],
) -> dict[str, dict[str, Any]]:
    """The same with settings that were given as NAME.SETTING=VALUE."""
    if chosen is None:
        raise SettingsError(f"--set needs --{kind}s: name the {kind} whose setting it is.")
    filled = {name: dict(given) for name, given in chosen.items()}
    for given in settings:
        place, _, value = given.partition("=")
        name, _, entry = place.partition(".")
        if not value or not entry:
            raise SettingsError(f"--set {given}: write it as {kind.upper()}.SETTING=VALUE.")
        proper = proper_name(name)
        if proper not in filled:
            raise unknown_name(f"{kind} in --{kind}s", proper, filled)
        filled[proper][entry.replace("-", "_")] = _value(value)
    return filled


def _value(written: str) -> Any:
    """A number, true, false or a word."""
    try:
        return tomllib.loads(f"value = {written}")["value"]
    except tomllib.TOMLDecodeError:
        return written


def _read_spec(file: Path, known: Mapping[str, Any]) -> dict[str, Any]:
    """What a file of a run says; its paths are meant from where it lies."""
    try:
        spec = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as problem:
        raise InputError(f"cannot read {str(file)!r}: {problem.strerror or problem}.") from problem
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise InputError(f"{file}: {problem}.") from problem
    for name in spec:
        if name not in known:
            raise unknown_name(f"entry of {file.name}", name, known)
    methods = spec.get("methods")
    if isinstance(methods, list):
        spec["methods"] = {name: {} for name in methods}
    if "labels" in spec:
        spec["labels"] = _labels_in(spec["labels"], file)
    for name in ("data", "out"):
        if name in spec and "://" not in spec[name]:
            spec[name] = str(file.parent / spec[name])
    if "data" not in spec:
        raise InputError(f'{file} names no data: data = "reviews.csv".')
    return spec


def _labels_in(given: Any, file: Path) -> dict[str, str]:
    """A table of labels, or the same as on the command line."""
    if isinstance(given, Mapping):
        return {str(label): str(meant) for label, meant in given.items()}
    if isinstance(given, str):
        return o.label_names([given])
    raise InputError(f'{file}: labels is a table: [labels] and below it ok = "not-toxic".')


def _carry_out(asked: Mapping[str, Any], manner: Manner, as_json: bool, html: Path | None) -> None:
    from whence.core.target import Target
    from whence.runs.data import Choice, open_data
    from whence.runs.places import place_of
    from whence.runs.run import check_engine, stopping

    check_engine(manner)
    columns = {name: asked[name] for name in ("text", "pair", "label", "id", "split")}
    of_labels = (asked["label"] is not None or asked["gold"]) and asked["target"] is None
    foil, against = column_or_label(
        asked["data"], columns, asked["against"], asked["foil"], of_labels
    )
    data = open_data(asked["data"], **columns, foil=foil)
    for guessed in data.columns.notes:
        note(guessed)

    with loaded(asked["model"], asked["dtype"], asked["device"]) as model:
        from whence.explaining.data_labels import label_lines, labels_met
        from whence.explaining.data_set import request_of, run_as_asked, use_of_labels
        from whence.explaining.rows import ExplainRows

        targets = (Target(asked["target"], against, asked["read"]),)
        same = ("units", "seed", "overflow", "memory", "evidence", "budget", "rankings", "steps")
        options = {name: asked[name] for name in same}
        request = request_of(model, asked["methods"], targets=targets, **options)
        gold = asked["gold"] or foil is not None
        work = ExplainRows(model, request, gold, labels=asked["labels"])
        choice = Choice(asked["sample"], asked["seed"], asked["limit"])
        use = use_of_labels(work)
        for line in label_lines(labels_met(model, data, choice, work.labels, use), use):
            note(line)
        place = place_of(asked["out"])
        with stopping(note) as stop, pace_shown(manner.workers or 1) as progress:
            run = run_as_asked(
                work,
                data,
                choice,
                place,
                manner,
                part=asked["part"],
                stop=stop,
                progress=progress,
            )
    _tell(run, as_json, answers=run.is_complete)
    _write_page(run, html)
    if stop.asked and not run.is_complete:
        raise typer.Exit(INTERRUPTED)
    if run.state.failed:
        raise typer.Exit(SOME_FAILED)


def _tell(run: Run, as_json: bool, answers: bool = True) -> None:
    """The state of a run, its answer, and what a reader may do next.

    Said of every run; that the same command goes on where something is left to do.

    ``answers`` is false after Ctrl-C: whoever asked to stop does not wait for an answer.
    """
    state = run.state
    if as_json:
        emit_json(_as_dict(run, state))
        return
    model = run.manifest.asked.get("model", {}).get("model", "")
    methods = [method["name"] for method in run.manifest.asked.get("methods", [])]
    counted = texts_done_and_failed(state.done, state.rows, state.failed)
    emit(f"{run.place.name}: {counted}.")
    parts = "1 part" if state.parts_done == 1 else f"{state.parts_done:,} parts"
    emit(f"model {model}; {', '.join(methods)}; {human(state.bytes)} in {parts}")
    if state.failed:
        for failure in run.failures[:MOST_FAILURES]:
            emit(visible(f"  {failure.where}: {failure.kind}: {failure.message}"))
        if state.failed > MOST_FAILURES:
            emit(f'  … whence query {run.place.name} "select * from failures" lists all')
    if not state.is_complete:
        emit("The same command goes on from here.")
    if answers and state.done > state.failed and "confusion" in run.questions:
        _answer(run, state)


def _answer(run: Run, state: State) -> None:
    """What came of it: the lead of its page, where the model is wrong, and what to type next.

    Said where some text is explained, below the answer.

    ``every word and text, on a page``
    """
    from rich.text import Text

    from whence.views.answering_of_many import asked_of_many
    from whence.views.confusion import confusion_view, next_commands
    from whence.views.overview import overview_sentences

    if state.done >= MANY:
        note(f"reading {state.done:,} results for the answer …")
    overview = run.overview(most=0)
    sentences = overview_sentences(overview)
    lead = " ".join(sentences[: sentences.index("")])
    emit("")
    show(lambda _: Text(lead))
    for line in asked_of_many(overview.answer):
        show(lambda _, line=line: Text(line, "dim"))
    if overview.confusion is not None:
        emit("")
        show(lambda _: confusion_view(overview))
    commands = next_commands(overview, run.place.name)
    commands.append(
        ("every word and text, on a page", f"whence run {run.place.name} --html page.html")
    )
    emit("")
    for about, command in commands:
        emit(visible(f"{about}:\n  {command}", keep="\n"))


def _write_page(run: Run, html: Path | None) -> None:
    """The page of a run, of what is done of it.

    Said where a page was asked for.

    ``page written to page.html``
    """
    if html is None:
        return
    if not run.parts:
        note("no part is done yet, so there is no page")
        return
    if run.state.done >= MANY:
        note(f"writing the page of {run.state.done:,} results …")
    run.to_html(html)
    note(f"page written to {html.resolve()}")


def _as_dict(run: Run, state: State) -> dict[str, Any]:
    """The state; where the data have labels, also what the model says beside what they say."""
    told: dict[str, Any] = {
        "kind": "run",
        "place": run.place.name,
        "rows": state.rows,
        "done": state.done,
        "failed": state.failed,
        "parts": state.parts,
        "parts_done": state.parts_done,
        "bytes": state.bytes,
        "is_complete": state.is_complete,
    }
    if state.done > state.failed and "confusion" in run.questions and _has_labels(run):
        confusion = run.overview(most=0).confusion
        told["confusion"] = None if confusion is None else confusion.to_dict()
    return told


def _has_labels(run: Run) -> bool:
    """Whether the data give a label to any text; asked before every result is read."""
    (counted,) = run.query("select count(label) as labels from texts").to_pylist()
    return counted["labels"] > 0
