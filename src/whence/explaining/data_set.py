"""run: explain every text of a data set, into a store that loses nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from whence import __version__
from whence.core.errors import InputError
from whence.core.registry import methods as all_methods
from whence.core.request import AnyTarget, Overflow, Request, Via, targets_of, units_as_given
from whence.core.target import Reading
from whence.core.units import UnitKind
from whence.explaining.data_labels import (
    MAPPING,
    Use,
    labels_met,
    mapping_in,
    warn_of_labels,
)
from whence.explaining.rows import READER, WORK, ExplainRows, asked_of, fitting, wishes_of
from whence.games.game import check_is_model
from whence.models.model import Model
from whence.runs.data import Choice, Data, chosen, digest_of, open_data
from whence.runs.holding import held
from whence.runs.kept_rows import keep_rows
from whence.runs.manifest import (
    Manifest,
    check_same,
    has_manifest,
    read_manifest,
    write_manifest,
)
from whence.runs.manner import Engine, Manner
from whence.runs.places import Place, place_of
from whence.runs.run import Progress, Run, Stop, carry_out, check_engine, restart
from whence.runs.work import Work

# names, or names with settings
Methods = Sequence[str] | Mapping[str, Mapping[str, Any]]
PART = 32  # texts that are done, written and lost together


def run(
    model: Model,
    data: str | Path | Sequence[Any],
    methods: Methods | None = None,
    *,
    out: str | Path,
    text: str | None = None,
    pair: str | None = None,
    label: str | None = None,
    id: str | None = None,
    against: str | None = None,
    labels: Mapping[str, str] | None = None,
    split: str | None = None,
    sample: int | None = None,
    limit: int | None = None,
    gold: bool = False,
    target: AnyTarget = None,
    read: Reading | None = None,
    units: UnitKind = "word",
    seed: int = 0,
    overflow: Overflow = "error",
    attention_via: Via = "auto",
    memory: str | int | float | None = None,
    evidence: bool = True,
    budget: str | int | None = None,
    rankings: int | None = None,
    steps: int | None = None,
    part: int = PART,
    engine: Engine | None = None,
    workers: int | None = None,
    address: str | None = None,
    again: bool = False,
    mend: bool = False,
    fail_fast: bool = False,
    progress: Progress | None = None,
    foil: str | None = None,
) -> Run:
    """Explain every text of a data set by several methods, and keep the results in ``out``.

    ``data`` is a file (txt, csv, tsv, jsonl, parquet, also gzipped), a folder saved by Hugging Face
    datasets, or a list of texts or of records. ``text``, ``pair``, ``label`` and ``id`` name its
    columns; what there is no doubt about is found by itself. ``sample`` takes so many at random,
    ``limit`` the first. With ``gold`` the label that the data give is explained, and not the
    predicted one; ``against`` names a column of what that label is contrasted with, text by text:
    why this rather than that. ``labels`` says which label of the model a label of the data is,
    where their names differ: {"ok": "not-toxic"}. A label that the model does not have is neither
    right nor wrong, and is told.

    ``out`` is a folder, or a URL such as s3://bucket/reviews. What is done is kept there in parts
    of ``part`` texts. The same call again goes on where it was ended; a call for anything else is
    refused, unless ``again=True`` begins anew. A text that cannot be explained becomes a failure
    (``run.failures``), and the others go on. ``mend=True`` does damaged parts again.

    ``workers=2`` does parts in two processes, each with a model of its own; ``engine="ray"`` on the
    Ray cluster at ``address``, or on this machine.

    >>> import tempfile, whence
    >>> model = whence.load("sentiment")
    >>> texts = ["a moving and funny film", "not bad at all", ""]
    >>> with tempfile.TemporaryDirectory() as out:
    ...     run = whence.run(model, texts, ["gradient-l2"], out=out, evidence=False)
    ...     run.table("scores").num_rows, len(run.failures)
    (9, 1)
    """
    check_is_model(model)
    manner = Manner(engine, workers, address, again, mend, fail_fast)
    check_engine(manner)
    if not manner.is_inline:
        check_can_be_loaded(model)
    foil = one_column(against, foil)
    columns = {"text": text, "pair": pair, "label": label, "id": id, "foil": foil}
    opened = open_data(data, **columns, split=split)
    request = request_of(
        model,
        methods,
        targets=targets_of(target, read),
        units=units_as_given(units),
        seed=seed,
        overflow=overflow,
        attention_via=attention_via,
        memory=memory,
        evidence=evidence,
        budget=budget,
        rankings=rankings,
        steps=steps,
    )
    work = ExplainRows(model, request, gold or foil is not None, labels=labels or {})
    choice = Choice(sample, seed, limit)
    use = use_of_labels(work)
    warn_of_labels(labels_met(model, opened, choice, work.labels, use), use)
    return run_as_asked(work, opened, choice, place_of(out), manner, part=part, progress=progress)


def one_column(against: str | None, foil: str | None) -> str | None:
    """The column that each label is contrasted with; ``foil`` is what that was called before.

    >>> one_column("wrong", None), one_column(None, "wrong")
    ('wrong', 'wrong')
    """
    if against is not None and foil is not None:
        raise InputError("foil= is an old name of against=: give against= alone.")
    return foil if against is None else against


def request_of(model: Model, methods: Methods | None, **options: Any) -> Request:
    """The request of a run; without methods, for every one that fits the model.

    ``options`` are entries of Request.
    """
    wanted = list(all_methods()) if methods is None else methods
    request = Request(wishes=wishes_of(wanted), **options)
    return fitting(model, request) if methods is None else request


@dataclass(frozen=True)
class Order:
    """A work that is open here, and how a manifest names it: for others to open, and to read."""

    work: Work
    name: str
    reader: str
    asked: Mapping[str, Any]
    gold: bool  # whether it explains the labels of the data
    # whether results depend on what labels of the data mean; else only what is counted does
    needs_labels: bool = False


def run_as_asked(
    work: ExplainRows,
    data: Data,
    choice: Choice,
    place: Place,
    manner: Manner,
    *,
    part: int = PART,
    stop: Stop | None = None,
    progress: Progress | None = None,
) -> Run:
    """The run of this work over the rows that are chosen, in parts of so many rows."""
    order = Order(work, WORK, READER, asked_of(work), work.gold, work.gold)
    options: dict[str, Any] = {"part": part, "stop": stop, "progress": progress}
    return carried_out(order, data, choice, place, manner, **options)


def carried_out(
    order: Order,
    data: Data,
    choice: Choice,
    place: Place,
    manner: Manner,
    *,
    part: int,
    stop: Stop | None = None,
    progress: Progress | None = None,
) -> Run:
    """The run of any work, begun or continued."""
    if part < 1:
        raise InputError(f"a part holds at least one text, not {part}.")
    if order.gold and data.columns.label is None:
        raise InputError("to explain the label that the data give, name its column: label=.")
    manifest = _begun(place, data, choice, order, part, manner.again)
    own = order.work if manner.is_inline else None
    return carry_out(place, manifest, own, manner, stop=stop, progress=progress)


def _begun(
    place: Place,
    data: Data,
    choice: Choice,
    order: Order,
    part: int,
    again: bool,
) -> Manifest:
    """The manifest of the run: written now, or the same as the one that is there."""
    with held(place):
        if again:
            restart(place)
        goes_on = has_manifest(place)
        rows = chosen(data, choice)
        if not goes_on:
            rows = keep_rows(place, rows)
        count = 0

        def counted() -> Any:
            nonlocal count
            for row in rows:
                count += 1
                yield row

        digest = digest_of(counted())
        if not count:
            raise InputError(f"{data.source} holds no texts.")
        columns = asdict(data.columns)
        notes = columns.pop("notes", ())
        for late in ("rationale", "foil"):
            if columns[late] is None:
                del columns[late]  # as runs had it before there were such columns
        described = {
            "source": data.source,
            "format": data.format,
            "columns": columns,
            "notes": list(notes),
            **asdict(choice),
            "rows": count,
            "digest": digest,
        }
        manifest = Manifest(order.name, order.reader, order.asked, described, part, __version__)
        if goes_on:
            manifest = manifest if order.needs_labels else _relabelled(place, manifest)
            check_same(place, manifest)
        else:
            write_manifest(place, manifest)
    return manifest


def _relabelled(place: Place, manifest: Manifest) -> Manifest:
    """A run that needs no labels may be told later what they mean: only counts change by that.

    Without a new mapping the run's own stays.
    """
    known = read_manifest(place)
    labels = mapping_in(manifest.asked) or mapping_in(known.asked)
    if not labels:
        return manifest
    manifest = replace(manifest, asked={**manifest.asked, MAPPING: dict(labels)})
    relabelled = replace(known, asked={**known.asked, MAPPING: dict(labels)})
    if relabelled != known and not relabelled.differences(manifest):
        write_manifest(place, relabelled)
    return manifest


def use_of_labels(work: ExplainRows) -> Use:
    """What labels of the data are there for in a run."""
    return "needed" if work.gold else "counted"


def check_can_be_loaded(model: Model) -> None:
    """Workers load the model by its name, each for itself."""
    from whence.models.load import load

    try:
        other = load(model.name, dtype=str(model.dtype).removeprefix("torch."))
        is_same = replace(other).fingerprint == model.fingerprint
    except Exception as problem:
        raise InputError(
            f"workers load the model by its name, and {model.name!r} cannot be loaded: {problem} "
            "Save it to a folder, load it from there, or use the engine inline."
        ) from problem
    if not is_same:
        raise InputError(
            f"workers load the model by its name, and what lies at {model.name!r} has other "
            "weights than this one. Save this one to a folder, load it from there, or use "
            "the engine inline."
        )
