"""whence features: sparse autoencoders, trained, shown, explained by and steered with."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from whence.cli import options as o
from whence.cli.bars import fitted_bar
from whence.cli.running import BETWEEN_LINES, emit, emit_json, loaded, note
from whence.core.durations import about
from whence.core.errors import InputError
from whence.core.percent import digits
from whence.core.showing import visible

if TYPE_CHECKING:
    from whence.core.progress import Step
    from whence.features.training import Trained

app = typer.Typer(
    name="features",
    help="Sparse autoencoders: features of a model's hidden states, and what they do.",
    rich_markup_mode=None,
)
EXAMPLE = (
    "Example: whence features train --model writer --layer 2 --data corpus.txt --size 1536 "
    "--variant topk"
)
# the commands that stand in files of their own, and an example of each
OTHERS = {
    "show": "Example: whence features show features/writer --html features.html",
    "explain": 'Example: whence features explain "My lord, the king" features/writer',
    "steer": 'Example: whence features steer features/writer --feature 17 --to 5x "My lord,"',
}

Data = Annotated[
    list[Path],
    typer.Option(
        "--data",
        help="The corpus: a .txt (documents are what blank lines separate, else lines), or a file "
        "or folder that whence run reads. Several are read one after the other.",
        metavar="FILE",
    ),
]
Layer = Annotated[
    int, typer.Option(help="The block whose output is read, counted from 0.", metavar="N")
]
Size = Annotated[
    list[int] | None,
    typer.Option(help="How many features; several times for several. [default: 4096]", metavar="N"),
]
Variant = Annotated[
    str,
    typer.Option(help="relu, topk, batch-topk, jump-relu, gated or matryoshka.", metavar="NAME"),
]
Sparsity = Annotated[
    list[float] | None,
    typer.Option(
        help="λ, the weight of sparsity (relu, jump-relu, gated); several times for several.",
        metavar="λ",
    ),
]
K = Annotated[
    list[int] | None,
    typer.Option(
        "--k",
        help="How many features are active at once (topk, batch-topk, matryoshka).",
        metavar="N",
    ),
]
Seeds = Annotated[
    list[int] | None,
    typer.Option(
        "--seed",
        help="What the first directions are drawn from; two of them tell how many features are "
        "found twice. [default: 0]",
        metavar="N",
    ),
]
Steps = Annotated[
    int | None,
    typer.Option(
        help="How many batches are learned from. [default: one pass over the corpus, at least "
        "1,000]",
        metavar="N",
        min=1,
    ),
]
Batch = Annotated[int, typer.Option(help="Activations of one step.", metavar="N", min=1)]
Tokens = Annotated[
    int | None, typer.Option(help="Take about so many tokens of the corpus.", metavar="N", min=1)
]
Out = Annotated[
    Path | None,
    typer.Option(
        help="The folder for weights, description, metrics and card. The same command goes on "
        "where it was ended. [default: features/MODEL-LAYER]",
        metavar="FOLDER",
    ),
]
Cache = Annotated[
    Path | None,
    typer.Option(
        help="Where activations are kept, for other trainings too. [default: in --out]",
        metavar="FOLDER",
    ),
]


@app.command("train", epilog=EXAMPLE)
def train(
    layer: Layer,
    data: Data,
    model: o.ModelName = "writer",
    size: Size = None,
    variant: Variant = "relu",
    sparsity: Sparsity = None,
    k: K = None,
    seed: Seeds = None,
    steps: Steps = None,
    batch: Batch = 4096,
    learning_rate: Annotated[
        float, typer.Option(help="How far a step goes.", metavar="RATE")
    ] = 1e-3,
    tokens: Tokens = None,
    text: o.TextColumn = None,
    length: Annotated[
        int, typer.Option(help="Tokens of a passage, at most.", metavar="N", min=2)
    ] = 128,
    special: Annotated[
        bool | None,
        typer.Option(
            "--special/--no-special",
            help="Whether special tokens are learned from. [default: of models that read both "
            "ways]",
        ),
    ] = None,
    centre: Annotated[
        bool | None,
        typer.Option(
            "--centre/--no-centre",
            help="Take the mean activation away first. [default: where features would be dead "
            "without that]",
        ),
    ] = None,
    kept_as: Annotated[
        str,
        typer.Option(
            "--kept-as", help="How activations are kept: float32 or float16.", metavar="DTYPE"
        ),
    ] = "float32",
    out: Out = None,
    cache: Cache = None,
    restart: o.Restart = False,
    dtype: o.Dtype = "float32",
    device: o.Device = "cpu",
    as_json: o.AsJson = False,
    debug: o.Debug = False,
) -> None:
    """Train a sparse autoencoder on the hidden states of a model.

    The corpus goes through the model once, and its activations are kept. Every twentieth document
    is held out, and the quality is measured there, beside principal components, random directions
    and single neurons. Ctrl-C, a crash or a full disk lose at most a minute: the same command goes
    on, and ends in the same weights.
    """
    del debug
    folder = out or Path("features") / f"{Path(model).name}-{layer}"
    from whence.runs.run import stopping

    source: Any = data[0] if len(data) == 1 else list(data)
    for file in data:
        if not file.expanduser().exists():
            raise InputError(f"there is no {str(file)!r} to learn from.")
    with loaded(model, dtype, device) as loaded_model:
        from whence.features.training import train as train_features

        with stopping(note) as stop, _live() as say:
            trained = train_features(
                loaded_model,
                layer,
                source,
                out=folder,
                variant=variant,
                size=size or 4096,
                sparsity=sparsity,
                k=k,
                seeds=seed or 0,
                steps=steps,
                batch=batch,
                learning_rate=learning_rate,
                tokens=tokens,
                text=text,
                length=length,
                special=special,
                centre=centre,
                dtype=kept_as,
                cache=cache,
                restart=restart,
                progress=say,
                stop=lambda: stop.asked,
            )
    for one in trained:
        _tell(one, as_json)


def _tell(trained: Trained, as_json: bool) -> None:
    """What was trained, and how it compares.

    Said after training, of each autoencoder; of seeds where two were trained.

    ``On 2,048 held-out tokens of 12 documents:``
    """
    about, quality = trained.autoencoder.about, trained.quality
    if as_json:
        emit_json(
            {
                "kind": "features",
                "folder": str(trained.folder),
                "variant": about.variant,
                "size": about.size,
                "seed": about.settings.get("seed"),
                "quality": quality.to_dict(),
            }
        )
        return
    emit(
        visible(
            f"{trained.folder}: {about.size:,} features of {about.model}, layer {about.layer} "
            f"({about.variant}): {quality.dead:,} dead, {quality.dense:,} dense."
        )
    )
    of = "1 document" if quality.documents == 1 else f"{quality.documents:,} documents"
    emit(f"On {quality.tokens:,} held-out tokens of {of}:")
    for fit in quality.fits:
        recovered = "" if fit.recovered is None else f", loss recovered {fit.recovered.mean:.3f}"
        emit(
            f"  {fit.name}: L0 {fit.l0.mean:.1f}, variance explained "
            f"{fit.variance_explained.mean:.3f}{recovered}"
        )
    if quality.agreement is not None:
        also = quality.agreement
        emit(
            f"  found from seed {also.with_seed} too: {digits(also.share)}% of the live features "
            f"(random directions: {digits(also.chance)}%)"
        )
    emit(f"The card is {trained.folder / 'README.md'}.")


@contextmanager
def _live() -> Iterator[Callable[[Step], None]]:
    """The step at hand on stderr: a bar in a terminal, else a line from time to time.

    Where there is no terminal, the first step of each kind of work is told at once.
    """
    from rich.console import Console

    console = Console(stderr=True)
    left = _Left()
    if not (sys.stderr.isatty() and console.is_interactive):
        last = time.monotonic()

        def line(step: Step) -> None:
            nonlocal last
            now = time.monotonic()
            begins = left.begins(step)
            words = ", ".join(filter(None, [str(step), left.words(step, now)]))
            if step.forecast is not None or begins or now - last >= BETWEEN_LINES:
                last = now
                note(words)

        yield line
        return

    told = ""
    bar = fitted_bar(console, lambda task: task.description, lambda _: told)
    with bar:
        # nothing is shown before something is told: of several processes the first one tells
        task = bar.add_task("", total=None, visible=False)

        def fill(step: Step) -> None:
            nonlocal told
            if step.forecast is not None:
                words = visible(f"whence: {step}")
                console.print(words, markup=False, highlight=False, soft_wrap=True)
                return
            told = left.words(step, time.monotonic())
            bar.update(task, description=str(step), completed=step.done, total=step.of)
            bar.update(task, visible=True)

        yield fill


class _Left:
    """The time that is left of what is being done, from how it went so far."""

    def __init__(self) -> None:
        self.began: tuple[float, int, int | None] | None = None

    def begins(self, step: Step) -> bool:
        """Whether this is the first step of another kind of work."""
        if step.forecast is not None:
            return False
        return self.began is None or self.began[2] != step.of or step.done < self.began[1]

    def words(self, step: Step, now: float) -> str:
        """The time that is left; empty where nothing is known of it."""
        if step.forecast is not None:
            return ""
        if self.began is None or self.begins(step):
            self.began = (now, step.done, step.of)
        since, first, of = self.began
        if of is None or step.done <= first or step.done >= of:
            return ""
        seconds = (now - since) / (step.done - first) * (of - step.done)
        return f"{about(seconds)} left"


def _add_others() -> None:
    """The commands in files of their own. They import nothing heavy until they are called."""
    for name, example in OTHERS.items():
        if importlib.util.find_spec(f"whence.cli.features_{name}") is None:
            continue
        module = importlib.import_module(f"whence.cli.features_{name}")
        app.command(name, epilog=getattr(module, "EXAMPLE", example))(getattr(module, name))


_add_others()
