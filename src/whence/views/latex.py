"""For papers: coloured text and tables, in LaTeX that needs xcolor and booktabs.

What is explained, and how, stands in its comments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

from whence.core.attribution import Attribution
from whence.core.attributions import Attributions
from whence.core.comparison import Comparison
from whence.core.durations import precise
from whence.core.errors import InputError
from whence.core.evidence import Verdict
from whence.core.many import Many, attributions_of
from whence.core.percent import digits
from whence.views import verdicts, wording
from whence.views.many import beaten, chance, strongest_first
from whence.views.palette import LIGHT, RGB, colour, levels
from whence.views.pictures import pictured
from whence.views.sides import sides_of
from whence.views.tables import Result, named_attributions

Part = Literal["text", "methods", "units"]

# Said in the first comment.
NEEDS = (
    r"needs \usepackage{booktabs,xcolor}; with pdfLaTeX also \usepackage[T1]{fontenc}; "
    "letters beyond Latin need XeLaTeX or LuaLaTeX and a font that has them"
)
SAFE = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "`": r"\textasciigrave{}",
    # a plain " is a command in several languages of babel, and \textquotedbl does not exist in
    # every encoding
    '"': r"\char34{}",
}
LIGATURES = "-',"  # two of them in a row would become a dash or a quotation mark
BETWEEN_TABLES = r"\par\medskip\noindent{}"
NOTHING = "–"  # in a cell
BETWEEN_TEXTS = r"\enskip\textbardbl\enskip{}"


def result_latex(result: Result, part: Part | None = None) -> str:
    """The coloured text, and the table of methods, of any result; or one of the two.

    ``part="units"`` is a table with a row for each unit and a column for each method.

    >>> print(a.to_latex())            # doctest: +SKIP
    """
    if part is not None and part not in get_args(Part):
        raise InputError(f"a part is one of {', '.join(get_args(Part))}, not {part!r}.")
    attributions = named_attributions(result)
    every = list(attributions.values())
    bodies = []
    if part == "units":
        bodies.append(tabular(*unit_cells(attributions)))
    if part in (None, "text"):
        _need_words(every[0])
        body = _coloured(every[0])
        if not isinstance(result, Attribution):
            body = _texts(attributions)
        bodies.append(_grouped(body))
    if part in (None, "methods"):
        bodies.append(tabular(*method_cells(result)))
    comments = [*_about(every), *(_settings(a) for a in every)]
    if isinstance(result, Comparison):
        comments += [_comment(f"{name} left out: {why}") for name, why in result.skipped.items()]
    if not isinstance(result, Attribution):
        comments.append(_comment(f"in all {wording.cost(result.cost)}"))
    return "\n".join([*comments, f"\n{BETWEEN_TABLES}\n".join(bodies), ""])


def _texts(attributions: Mapping[str, Attribution]) -> str:
    """A table with the coloured text once for each of them. It takes the width of a line."""
    rows = [
        rf"  {escaped(name)} & {{\raggedright {_coloured(a)}\par}} \tabularnewline"
        for name, a in attributions.items()
    ]
    return "\n".join(["\\begin{tabular}{@{}lp{0.7\\linewidth}@{}}", *rows, "\\end{tabular}"])


def many_latex(many: Many) -> str:
    """A table of many texts, with a row for each method: its verdicts over the texts beside chance.

    >>> print(many.to_latex())            # doctest: +SKIP
    """
    if not many.results:
        raise InputError("there are no texts, so there is no table.")
    tallies = {tally.method: tally for tally in strongest_first(many.tallies())}
    # of one text after the other; what holds for all of them is said once
    every = [a for result in many for a in attributions_of(result).values()]
    lines = [
        f"whence: {wording.counted(len(many), 'text')}; {COUNTED}",
        *dict.fromkeys(f"explained: {wording.target(a.target)}" for a in every),
        *dict.fromkeys(f"model: {_weights(a)}" for a in every),
        *dict.fromkeys(_made(a) for a in every),
    ]
    comments = [_comment(line) for line in lines]
    return "\n".join([*comments, tabular(*cells_of("method", COLUMNS_OF_MANY, tallies)), ""])


def method_cells(result: Result) -> Cells:
    """The table of methods: verdict, cost and error of each."""
    by_target = isinstance(result, Attributions) and result.by == "target"
    first = "target" if by_target else "method"
    return cells_of(first, COLUMNS, named_attributions(result))


def unit_cells(attributions: Mapping[str, Attribution]) -> Cells:
    """A row for each unit, and its score by each method: three digits of the largest."""
    every = list(attributions.values())
    columns = []
    for a in every:
        shown = wording.score_format(a.scores, a.signed)
        columns.append([shown(score) for score in a.scores.tolist()])
    names = every[0].units.distinct_names
    rows = [[name, *(column[i] for column in columns)] for i, name in enumerate(names)]
    return Cells([every[0].units.kind, *attributions], "l" + "r" * len(every), rows)


def cells_of(first_column: str, wanted: Sequence[Column], entries: Mapping[str, Any]) -> Cells:
    """A table with a row for each entry. A column in which nothing stands is left out."""
    columns = [column for column in wanted if any(map(column.cell, entries.values()))]
    rows = []
    for name, entry in entries.items():
        rows.append([name, *(column.cell(entry) or NOTHING for column in columns)])
    heading = [first_column, *(column.heading for column in columns)]
    return Cells(heading, "l" + "".join(column.alignment for column in columns), rows)


def tabular(heading: Sequence[str], alignment: str, rows: Iterable[Sequence[str]]) -> str:
    """A table with the rules of booktabs; every cell is escaped here.

    >>> print(tabular(["word", "n"], "lr", [["50%", "2"]]))
    \\begin{tabular}{@{}lr@{}}
      \\toprule
      word & n \\\\
      \\midrule
      50\\% & 2 \\\\
      \\bottomrule
    \\end{tabular}
    """
    return ruled([*map(escaped, heading)], alignment, ([*map(escaped, row)] for row in rows))


def ruled(heading: Sequence[str], alignment: str, rows: Iterable[Sequence[str]]) -> str:
    """The same of cells that are LaTeX already."""
    lines = [rf"\begin{{tabular}}{{@{{}}{alignment}@{{}}}}", r"  \toprule"]
    lines += [rf"  {' & '.join(heading)} \\", r"  \midrule"]
    lines += [rf"  {' & '.join(row)} \\" for row in rows]
    lines += [r"  \bottomrule", r"\end{tabular}"]
    return "\n".join(lines)


def _verdict(a: Attribution) -> str:
    if a.evidence is None:
        return ""
    return str(a.evidence.verdict or verdicts.NO_VERDICT)


def _beaten(a: Attribution) -> str:
    ruling = verdicts.overall(a)
    if ruling is None or ruling.beaten is None:
        return ""
    return wording.percent(ruling.beaten)


def _p(a: Attribution) -> str:
    p = None if a.evidence is None else a.evidence.p_of_verdict
    if p is None:
        return ""
    return wording.p_value(p).removeprefix("p").removeprefix(" = ").strip()


class Cells(NamedTuple):
    """A table as it is printed: its heading, LaTeX's alignment of the columns, and its rows."""

    heading: Sequence[str]
    alignment: str
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Column:
    """A column of a table. ``alignment`` is LaTeX's: l or r."""

    heading: str
    alignment: str
    cell: Callable[[Any], str]


COLUMNS = (
    Column("evidence", "l", _verdict),
    Column("beaten", "r", _beaten),
    Column("p", "r", _p),
    Column("forward", "r", lambda a: f"{a.cost.forwards:,}"),
    Column("backward", "r", lambda a: f"{a.cost.backwards:,}"),
    Column("time", "r", lambda a: precise(a.cost.seconds)),
    Column("error", "l", wording.error),
)
COLUMNS_OF_MANY = (
    Column("better", "r", lambda tally: f"{tally.better} of {tally.judged}"),
    Column("not separable", "r", lambda tally: str(tally.same)),
    Column("worse", "r", lambda tally: str(tally.worse)),
    Column("better by chance", "r", chance),
    Column("p", "r", lambda tally: "" if tally.p is None else verdicts.short_p(tally.p)),
    Column("beaten", "r", beaten),
)
# Said in a comment above the table of many texts.
COUNTED = (
    f"on how many of them the ranking is {Verdict.BETTER}, not separable, or worse; on how many "
    "a random ranking would be called better, at most, on average; the chance that it is on as "
    "many; and the mean share of random rankings beaten, with its 95 % interval over texts"
)


def escaped(text: str) -> str:
    """Text that LaTeX sets as it is: no character is a command or becomes part of a ligature.

    >>> print(escaped("50% of $x_1$ -- so"))
    50\\% of \\$x\\_1\\$ -{}- so
    """
    text = wording.visible(text)
    following = [*text[1:], ""]
    return "".join(_safe(c, after) for c, after in zip(text, following, strict=True))


def _safe(character: str, after: str) -> str:
    if character in LIGATURES and character == after:
        return f"{character}{{}}"
    return SAFE.get(character, character)


def _need_words(a: Attribution) -> None:
    if pictured(a).all():
        raise InputError(
            "an image has no words to colour; draw it with .plot() and include the file."
        )


# ---------------------------------------------------------------------- comments


def _comment(text: str) -> str:
    return f"% {wording.visible(text)}"  # without line ends, so that it stays a comment


def _about(every: Sequence[Attribution]) -> list[str]:
    """What was explained, as comments.

    Said in comments above every table and text.
    """
    a = every[0]
    # one for several methods; several where there are several targets
    values = dict.fromkeys(wording.value(one) for one in every[:1])
    if any(one.target != a.target for one in every):
        values = dict.fromkeys(wording.value(one) for one in every)
    lines = [
        f"whence: {NEEDS}",
        *(f"explained: {value}" for value in values),
        f"model: {_weights(a)}",
    ]

    reply = wording.reply(a)
    if reply:
        lines.append(f"reply so far, whose next token is explained: {reply}")

    leading = list(a.prediction.items())[:5]
    if leading:
        shown = ", ".join(f"{wording.label_said(a, name)} {digits(p, 1)}%" for name, p in leading)
        lines.append(f"prediction: {shown}")

    cut = wording.dropped(a)
    if cut:
        lines.append(f"note: {cut}")

    patches = int(pictured(a).sum())
    if patches:
        have, are = ("has a score", "is") if patches == 1 else ("have scores", "are")
        of = "patch or region" if patches == 1 else "patches or regions"
        lines.append(
            f"note: {patches} {of} of the picture beside the text {have} too, and {are} not shown"
        )

    lines.append(f"colours: {_colours(every)}; scaled by each method's largest score")
    return [_comment(line) for line in lines]


def _colours(every: Sequence[Attribution]) -> str:
    """Said in a comment, of methods with signs and without."""
    meanings = []
    if any(a.signed for a in every):
        said = sides_of(every[0].target)
        meanings.append(f"orange {said.above.end('the target')}, blue {said.below.other_end()}")
    if any(not a.signed for a in every):
        meanings.append("purple without a sign")
    return "; ".join(meanings)


def _weights(a: Attribution) -> str:
    return f"{wording.model_line(a)}, weights {a.provenance.fingerprint}"


def _made(a: Attribution) -> str:
    """The method, its settings and the seed."""
    settings = wording.settings(a.settings)
    return f"method: {a.method}; version {a.version}; settings: {settings}; seed {a.seed}"


def _settings(a: Attribution) -> str:
    """Method, settings, cost and error, as a comment."""
    parts = [_made(a), f"cost: {wording.cost(a.cost)}"]
    error = wording.error(a)
    if error:
        parts.append(f"error: {error}")
    evidence = verdicts.lines(a)
    if evidence:
        parts.append(f"evidence: {'; '.join(evidence)}")
    notes = (wording.anchor(a), wording.detail(a), wording.note(a))
    parts += [note for note in notes if note]
    parts.append(f"largest score {max(map(abs, a.scores.tolist()), default=0.0):.4g}")
    return _comment("; ".join(parts))


# ---------------------------------------------------------------------- coloured text


def _grouped(body: str) -> str:
    return f"\\begingroup\\setlength{{\\fboxsep}}{{1pt}}%\n{body}\n\\endgroup"


def _coloured(a: Attribution) -> str:
    """Every word in a box of its own, as a box never breaks.

    Where no space stands between two, a line may still end there.
    """
    in_picture = pictured(a)
    level = levels(a)
    out, last = "", 0
    for i, unit in enumerate(wording.running_texts(a)):
        if in_picture[i]:
            continue
        if a.units.parts[i] != last:
            out += BETWEEN_TEXTS
            last = a.units.parts[i]
        content = wording.visible(unit, keep="\n\r\t")
        background = colour(float(level[i]), a.signed, LIGHT)
        if out:
            out += " " if content[:1].isspace() else r"\allowbreak{}"
        words = " ".join(_box(word, background) for word in content.split())
        out += words
        if words and content[-1:].isspace():
            out += " "
    return out.rstrip(" ")


def _box(word: str, background: RGB | None) -> str:
    if background is None:
        return escaped(word)
    red, green, blue = background
    return f"\\colorbox[HTML]{{{red:02X}{green:02X}{blue:02X}}}{{\\strut {escaped(word)}}}"
