"""An audit of attention in words, and in a terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import StringIO
from math import log

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text

from whence.core.audit import Effect, Place
from whence.core.audited import (
    ADVERSARY,
    ANOTHER,
    CORRELATION,
    FEWEST_TO_RULE_OUT,
    MATTERS,
    READS,
    Audit,
    May,
    PlaceVerdict,
    ReadingVerdict,
)
from whence.core.percent import digits
from whence.core.pruning import Pruning
from whence.core.question import Question
from whence.views import wording
from whence.views.evaluation import wording_list
from whence.views.wording import share

DIM, BOLD = Style(dim=True), Style(bold=True)
TINTS = {
    May.YES: Style(color="green"),
    May.SEVERAL: Style(color="yellow"),
    May.NO: Style(color="red"),
    May.OPEN: Style(dim=True),
}
WIDTH = 100
GAP = 2  # columns between those of a table
NOTHING = "–"
# Said where a curve of heads has no intervals.
FEW_HELD_OUT = "So few texts have no intervals, and tell next to nothing."
FROZEN = "frozen attention"  # of the tests that train
LN_2 = log(2)
# Said below the table of readings.
READINGS_MEAN = (
    "Beaten: the share of random rankings of the words that the reading does better than, by "
    f"comprehensiveness and sufficiency; {share(0.5)} is chance, and a reading counts above "
    f"{share(READS)}. τ: Kendall's correlation with leaving each word out, and with gradient × "
    "input."
)


def how_to_read(audit: Audit) -> str:
    """What the columns of layers are, of those that there are, and how they make a verdict.

    Said below the table of layers; of a number without a bar for its verdicts.
    """
    moves = what_moves(audit)
    columns = columns_of(places_of(audit))
    about = "Means over texts with 95 % intervals, all heads of a column together. "
    if "shuffled" in columns and "even" in columns:
        about += f"Shuffled, even: how far {moves} when the weights are permuted, or made equal. "
    elif "shuffled" in columns:
        about += f"Shuffled: how far {moves} when the weights are permuted. "
    elif "even" in columns:
        about += f"Even: how far {moves} when the weights are made equal. "
    if "another" in columns:
        about += (
            "Another: how different an attention is at least that gives the same output, as a "
            "share of the most (ln 2); 0 on a text on which none was found. "
        )
    if audit.is_number:
        return about + "There is no verdict: how far such a number must move is for you to say."
    return about + (
        "Attention may be read where shuffling and evening out each move the output by more than "
        f"{MATTERS:.2f}, and may not where one of them clearly does not, on {FEWEST_TO_RULE_OUT} "
        "texts at least. It is one of several explanations if an attention further away than "
        f"{share(ANOTHER)} gives the same output."
    )


def places_of(audit: Audit) -> list[PlaceVerdict]:
    """The rows of the table of layers: each by itself, and all together."""
    return [*audit.of_layers, *([audit.of_all] if audit.of_all else [])]


def count_sentences(audit: Audit) -> list[str]:
    """Said where a test rests on fewer texts than the audit: dear ones look at some of them."""
    counts: dict[str, list[int]] = {}
    for effect in audit.effects:
        counts.setdefault(effect.test, []).append(effect.texts)
    fewer = []
    for test, texts in counts.items():
        least, most = min(texts), max(texts)
        if least < audit.texts:
            fewer.append(f"{test} on {least:,}" + (f" to {most:,}" if most > least else ""))
    if not fewer:
        return []
    return [f"Not every test rests on all {audit.texts:,} texts: {wording_list(fewer)}."]


def what_moves(audit: Audit) -> str:
    """What a change of the output is. Said within a sentence; a number has units of its own."""
    return (
        "the output moves, in its own units,"
        if audit.is_number
        else ("the output's probabilities move")
    )


# ---------------------------------------------------------------------- words


def audit_sentences(audit: Audit) -> list[str]:
    """What may be said, in a few sentences; nothing beyond the verdicts."""
    return [*audit_lead(audit), *audit_rest(audit)]


def audit_lead(audit: Audit) -> list[str]:
    """The answer itself: of which layers, and which ways to sum attention up, it may be read."""
    return _visible([_done(audit), *_of_layers(audit), *_of_readings(audit)])


def audit_rest(audit: Audit) -> list[str]:
    """What else may be said."""
    said = [*_of_all(audit), *_of_heads(audit), *_worth(audit), *_pruned(audit)]
    said += _yardstick(audit)
    said += [f"Trained anew ({each.test}): {each.answer}" for each in audit.retrained]
    return _visible([*said, *_between_seeds(audit)])


def _visible(lines: Sequence[str]) -> list[str]:
    return [wording.visible(line) for line in lines]


def _done(audit: Audit) -> str:
    """What was asked, and of how many texts. Said first, of every audit."""
    asked = f"Is attention an explanation in {wording.model_name(audit.model)}?"
    if not audit.texts:
        failed = f": {wording.counted(audit.failed, 'text')} failed" if audit.failed else ""
        return f"{asked} Nothing was tested{failed}."
    failed = f" ({audit.failed:,} more failed)" if audit.failed else ""
    return f"{asked} Tested on {wording.counted(audit.texts, 'text')}{failed}."


def _of_layers(audit: Audit) -> list[str]:
    """Layers with the same verdict for the same reason are named together."""
    if not audit.of_layers:
        return []
    groups: dict[tuple[May, str], list[str]] = {}
    for verdict in audit.of_layers:
        groups.setdefault((verdict.may, str(verdict.why)), []).append(_layer(verdict))
    said = []
    for may in May:
        for (verdict, why), names in groups.items():
            if verdict is may:
                said.append(f"In {_layers(names)} attention {_may(may)}: {why}.")
    return said


def _may(may: May) -> str:
    """Said of a verdict, within a sentence."""
    if may is May.OPEN:
        return "is neither cleared nor ruled out"
    if may is May.SEVERAL:
        return "may be read as one explanation of several"
    return f"{may} as an explanation"


def _layer(verdict: PlaceVerdict) -> str:
    return f"{verdict.place.kind} {verdict.place.layer}".strip()


def _layers(names: Sequence[str]) -> str:
    """Names of layers in a sentence; three and more that follow each other are a range.

    >>> _layers(["0", "1", "2", "4"]), _layers(["encoder 0"])
    ('layers 0 to 2 and 4', 'layer encoder 0')
    """
    runs: list[list[str]] = []
    for name in names:
        if runs and _next_layer(runs[-1][-1]) == name:
            runs[-1].append(name)
        else:
            runs.append([name])
    parts: list[str] = []
    for run in runs:
        last = run[-1].rpartition(" ")[2]
        parts += [f"{run[0]} to {last}"] if len(run) > 2 else run
    return f"{'layer' if len(names) == 1 else 'layers'} {wording_list(parts)}"


def _next_layer(name: str) -> str:
    kind, space, number = name.rpartition(" ")
    return f"{kind}{space}{int(number) + 1}"


def _of_all(audit: Audit) -> list[str]:
    """Said where attention of all layers together was tested, and of two layers or more."""
    verdict = audit.of_all
    if verdict is None or len(audit.of_layers) < 2:
        return []
    return [f"Of all layers together: it {_may(verdict.may)}, as {verdict.why}."]


def _of_heads(audit: Audit) -> list[str]:
    """Said where two heads or more were tested."""
    heads = audit.of_heads
    if len(heads) < 2:
        return []
    counts = {may: sum(v.may is may for v in heads) for may in May}
    are = "is" if counts[May.OPEN] == 1 else "are"
    verdicts = {
        May.YES: "may be read",
        May.SEVERAL: "may be read as one explanation of several",
        May.NO: "may not be read",
        May.OPEN: f"{are} undecided",
    }
    told = {may: said for may, said in verdicts.items() if counts[may]}
    if len(told) == 1:
        return [
            f"{'Both' if len(heads) == 2 else f'All {len(heads)}'} heads {said}."
            for said in told.values()
        ]
    parts = [f"{counts[may]} {said}" for may, said in told.items()]
    return [f"Of {len(heads)} heads, {wording_list(parts)}."]


def _worth(audit: Audit) -> list[str]:
    """What heads are worth to the task. Said where the loss without each head was measured."""
    heads = audit.heads
    if heads is None:
        return []
    names = wording_list([_head(place) for place in heads.hurt])
    each = "each alone" if len(heads.hurt) > 1 else "alone"
    hurt = f"; without {names}, {each}, it does better" if heads.hurt else ""
    are = "is" if len(heads.help) == 1 else "are"
    each = "alone" if len(heads.spared) == 1 else "each alone"
    return [
        f"To the task, {len(heads.help)} of {wording.counted(heads.of, 'head')} {are} worth more "
        f"than {heads.tolerance:g} nats of loss beyond doubt, and {len(heads.spared)} could go, "
        f"{each}, at less{hurt}."
    ]


def _head(place: Place) -> str:
    """A head in a list, where "layer 1, head 0" would read as two places."""
    return f"head {place.head} of {place.kind} layer {place.layer}".replace("  ", " ")


def _pruned(audit: Audit) -> list[str]:
    """What half of the heads are worth together.

    Said where heads were removed one after the other.
    """
    pruning = audit.pruning
    if pruning is None or len(pruning.steps) < 3:
        return []
    half = len(pruning.steps) // 2
    whole, control = pruning.control.loss[0].mean, pruning.control.loss[half].mean
    parts = []
    for order in pruning.orders:
        surely = ""
        if order.apart[half]:
            which = "better" if order.below_random[half].mean > 0 else "worse"
            surely = f" ({which} than at random beyond doubt)"
        parts.append(f"{order.curve.loss[half].mean:.2f} where they go {order.name}{surely}")
    texts = wording.counted(pruning.texts, "held-out text")
    reserve = "" if has_bands(pruning) else f" {FEW_HELD_OUT}"
    return [
        f"Without {pruning.steps[half]} of {pruning.heads} heads the loss on {texts} is "
        f"{wording_list(parts)}. It is {whole:.2f} with all heads, and {control:.2f} where they "
        f"go in random orders.{reserve}"
    ]


def has_bands(pruning: Pruning) -> bool:
    """Whether there were enough texts for intervals."""
    return all(mean.interval is not None for mean in pruning.control.loss)


def _of_readings(audit: Audit) -> list[str]:
    """Said where some reading was held against random rankings."""
    if not audit.readings:
        return []
    named = {may: [v.reading for v in audit.readings if v.may is may] for may in May}
    if len(named[May.OPEN]) == len(audit.readings) > 1:
        return [
            "Of none of the ways to sum attention up for each word do the texts tell whether it "
            f"may be read: {wording_list(named[May.OPEN])}."
        ]
    parts = []
    if named[May.YES]:
        parts.append(f"{wording_list(named[May.YES])} may be read")
    if named[May.NO]:
        parts.append(f"{wording_list(named[May.NO])} may not")
    if named[May.OPEN]:
        parts.append(f"of {wording_list(named[May.OPEN])} the texts do not tell")
    ways = "the ways" if len(audit.readings) > 1 else "ways"
    tested = "" if len(audit.readings) > 1 else " one was tested:"
    return [f"Of {ways} to sum attention up for each word,{tested} {'; '.join(parts)}."]


def _yardstick(audit: Audit) -> list[str]:
    """How far readings agree with leaving words out, beside how far gradients do.

    Said where readings and gradients were both compared with leaving words out.
    """
    of_gradients = audit.effect(CORRELATION, "tau-gradient-loo")
    taus = [(v.reading, v.tau_loo) for v in audit.readings if v.tau_loo]
    if of_gradients is None or not taus:
        return []
    best = max(tau.mean for _, tau in taus)
    names = [name for name, tau in taus if tau.mean == best]
    effect = next(tau for _, tau in taus if tau.mean == best)
    which = f"the highest is that of {wording_list(names)}, {shown(effect)}"
    if len(taus) == len(names):
        which = f"that of {wording_list(names)} is {shown(effect)}"
    by_chance = (
        "" if effect.control is None else f", and that of random weights {effect.control:z.2f}"
    )
    return [
        f"Of Kendall's τ with what leaving each word out does, {which}; that of gradients is "
        f"{shown(of_gradients)}{by_chance}."
    ]


def _between_seeds(audit: Audit) -> list[str]:
    """How far the adversary's attention is, beside that of a copy with another seed.

    Said where copies were trained from two seeds, and the adversary has searched.
    """
    trained = [each.numbers for each in audit.retrained if each.test == FROZEN]
    searched = audit.effect(ADVERSARY, "jsd")
    # without that, it is of an older version, whose mean is over rows that do not matter, too
    is_alike = bool(trained) and "free_mean" in trained[0]
    apart = trained[0]["between_seeds"] if is_alike else None
    if apart is None or searched is None:
        return []
    return [
        f"Two copies that differ in their seed alone attend {apart['mean']:.2f} nats apart "
        f"[{apart['low']:.2f}, {apart['high']:.2f}], on average over held-out texts; the attention "
        f"that was searched for in all layers, with the same output, is {shown(searched)} away. An "
        "adversary that is no further away than another seed proves little."
    ]


# ---------------------------------------------------------------------- terminal


def audit_text(audit: Audit, width: int = WIDTH) -> str:
    """What ``print`` shows."""
    console = Console(file=StringIO(), width=width, force_terminal=False)
    console.print(audit_view(audit, width))
    file = console.file
    assert isinstance(file, StringIO)
    return file.getvalue().rstrip("\n")


def audit_view(audit: Audit, width: int = WIDTH) -> RenderableType:
    """The answer, then the layers and the readings with what their verdicts rest on."""
    parts: list[RenderableType] = [Text(line) for line in audit_sentences(audit)]
    parts.append(Text(wording.answers(Question.ATTENTION), DIM))
    places = places_of(audit)
    if places:
        parts += [Text(), _places(places, width), Text(how_to_read(audit), DIM)]
        parts += [Text(line, DIM) for line in count_sentences(audit)]
    if audit.readings:
        parts += [Text(), _readings(audit.readings, width), Text(READINGS_MEAN, DIM)]
    for name, why in audit.skipped.items():
        parts.append(Text(wording.visible(f"{name}: nothing {why}"), DIM))
    parts += [Text(wording.visible(line), DIM) for line in audit.notes]
    return Group(*parts)


def _places(verdicts: Sequence[PlaceVerdict], width: int) -> Table:
    columns = columns_of(verdicts)
    rows = []
    for row, verdict in enumerate(verdicts):
        cells = [wording.visible(str(verdict.place)), *(each[row] for each in columns.values())]
        rows.append((cells, verdict.may))
    return _table(["attention of", *columns], rows, width)


def columns_of(verdicts: Sequence[PlaceVerdict]) -> dict[str, list[str]]:
    """What the tests found at each place; nothing of a test that was not done."""
    columns = {
        "shuffled": [shown(verdict.permutation) for verdict in verdicts],
        "even": [shown(verdict.uniform) for verdict in verdicts],
        "another": [shown_of_most(verdict.adversary) for verdict in verdicts],
    }
    return {name: cells for name, cells in columns.items() if set(cells) != {NOTHING}}


def _readings(verdicts: Sequence[ReadingVerdict], width: int) -> Table:
    rows = []
    for verdict in verdicts:
        cells = [
            wording.visible(verdict.reading),
            shown_share(verdict.beaten),
            shown(verdict.tau_loo),
            shown(verdict.tau_gradient),
        ]
        rows.append((cells, verdict.may))
    return _table(["reading", "beaten", "τ, left out", "τ, gradient"], rows, width)


def _table(names: Sequence[str], rows: Sequence[tuple[list[str], May]], width: int) -> Table:
    """A table without lines: names, numbers with their intervals, and the verdict.

    Where it would be wider than the terminal, intervals stand below their means.
    """
    every = [[*names, ""], *([*cells, str(may)] for cells, may in rows)]
    widest = [max(map(cell_len, column)) for column in zip(*every, strict=True)]
    is_narrow = sum(widest) + GAP * (len(widest) - 1) > width

    table = Table(box=None, pad_edge=False, header_style=BOLD)
    table.add_column(names[0])
    for name in names[1:]:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for cells, may in rows:
        if is_narrow:
            cells = [cells[0], *(cell.replace(" [", "\n[") for cell in cells[1:])]
        table.add_row(*cells, Text(str(may), TINTS[may]))
    return table


def shown(effect: Effect | None) -> str:
    """A mean with its interval.

    >>> from whence.core.audit import Place
    >>> shown(Effect("uniform", "change", Place(), "", 0.2, (0.1, 0.3), 50))
    '0.20 [0.10, 0.30]'
    """
    if effect is None:
        return NOTHING
    return _with_interval(effect, "{:z.2f}".format)


def shown_share(effect: Effect | None) -> str:
    """The same in per cent."""
    return NOTHING if effect is None else _with_interval(effect, _share)


def shown_of_most(effect: Effect | None) -> str:
    """A difference of attentions as a share of the largest that there is."""
    return NOTHING if effect is None else _with_interval(effect, _of_most)


def _share(number: float) -> str:
    return f"{digits(number)}%"


def _of_most(number: float) -> str:
    return _share(number / LN_2)


def _with_interval(effect: Effect, shown: Callable[[float], str]) -> str:
    mean = shown(effect.mean)
    if effect.interval is None:
        return f"{mean} ({wording.counted(effect.texts, 'text')})"
    low, high = (shown(end) for end in effect.interval)
    return f"{mean} [{low}, {high}]"
