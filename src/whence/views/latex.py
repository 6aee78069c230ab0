"""Coloured text for papers: LaTeX that needs xcolor and nothing else. What is explained, and how, stands in its comments."""

from __future__ import annotations

from collections.abc import Sequence

from whence.core.attribution import Attribution
from whence.core.comparison import Comparison
from whence.core.errors import InputError
from whence.views import verdicts, wording
from whence.views.palette import LIGHT, colour, levels

NEEDS = (
    r"needs \usepackage{xcolor}; with pdfLaTeX also \usepackage[T1]{fontenc}; "
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
    '"': r"\char34{}",  # a plain " is a command in several languages of babel; \textquotedbl does not exist in every encoding
}
LIGATURES = "-',"  # two of them in a row would become a dash or a quotation mark


def attribution_latex(a: Attribution) -> str:
    """The text, each word on the colour of its unit: ``\\colorbox[HTML]{F3841C}{\\strut great}``.

    >>> print(a.to_latex())            # doctest: +SKIP
    """
    _need_words([a])
    return "\n".join([*_about([a]), *_settings(a), _grouped(_coloured(a)), ""])


def comparison_latex(c: Comparison) -> str:
    """A table with the coloured text once for each method. It takes the width of a line."""
    every = list(c.attributions.values())
    _need_words(every)
    rows = [
        rf"  {escaped(a.method)} & {{\raggedright {_coloured(a)}\par}} \tabularnewline"
        for a in every
    ]
    body = "\n".join(["\\begin{tabular}{@{}lp{0.7\\linewidth}@{}}", *rows, "\\end{tabular}"])
    comments = [line for a in every for line in _settings(a)]
    comments += [_comment(f"{name} left out: {why}") for name, why in c.skipped.items()]
    comments.append(_comment(f"in all {wording.cost(c.cost)}"))
    return "\n".join([*_about(every), *comments, _grouped(body), ""])


def escaped(text: str) -> str:
    """Text that LaTeX sets as it is: no character of it is a command, nor becomes part of a ligature.

    >>> print(escaped("50% of $x_1$ -- so"))
    50\\% of \\$x\\_1\\$ -{}- so
    """
    text = wording.visible(text)
    following = [*text[1:], ""]
    return "".join(
        f"{c}{{}}" if c in LIGATURES and c == after else SAFE.get(c, c)
        for c, after in zip(text, following, strict=True)
    )


def _need_words(every: Sequence[Attribution]) -> None:
    if every[0].passage.pictured.all():
        raise InputError(
            "an image has no words to colour; draw it with .plot() and include the file."
        )


def _comment(text: str) -> str:
    return f"% {wording.visible(text)}"  # without line ends, so that it stays a comment


def _about(every: Sequence[Attribution]) -> list[str]:
    a = every[0]
    signed, unsigned = any(x.signed for x in every), any(not x.signed for x in every)
    colours = [
        *(["orange for the target, blue against it"] if signed else []),
        *(["purple without a sign"] if unsigned else []),
    ]
    shown = ", ".join(
        f"{wording.label(name)} {p:.1%}" for name, p in list(a.prediction.items())[:5]
    )
    lines = [
        f"whence: {NEEDS}",
        f"explained: {wording.value(a)}",
        f"model: {wording.model_line(a)}, weights {a.provenance.fingerprint}",
    ]
    lines += [f"prediction: {shown}"] if shown else []
    lines += [f"note: {wording.dropped(a)}"] if a.passage.dropped else []
    pictured = int(a.passage.pictured.sum())
    lines += (
        [
            f"note: {pictured} patches or regions of the picture beside the text have scores too, and are not shown"
        ]
        if pictured
        else []
    )
    return [
        _comment(line)
        for line in [
            *lines,
            f"colours: {'; '.join(colours)}; scaled by each method's largest score",
        ]
    ]


def _settings(a: Attribution) -> list[str]:
    """Method, settings, cost and error, as comments."""
    largest = max(map(abs, a.scores.tolist()), default=0.0)
    told = wording.error(a)
    note = a.error.note if a.error else ""
    parts = [
        f"version {a.version}",
        f"settings: {wording.settings(a.settings)}",
        f"seed {a.seed}",
        f"cost: {wording.cost(a.cost)}",
    ]
    parts += [f"error: {told}"] if told else []
    parts += [f"evidence: {'; '.join(found)}"] if (found := verdicts.lines(a)) else []
    parts += [part for part in (wording.anchor(a), wording.detail(a), note) if part]
    return [_comment(f"method: {a.method}; {'; '.join(parts)}; largest score {largest:.4g}")]


def _grouped(body: str) -> str:
    return f"\\begingroup\\setlength{{\\fboxsep}}{{1pt}}%\n{body}\n\\endgroup"


def _coloured(a: Attribution) -> str:
    """Every word in a box of its own, as a box never breaks; where no space stands between two, a line may still end there."""
    out, part = "", 0
    for unit, (here, _, _), level, pictured in zip(
        a.units, a.passage.unit_spans, levels(a), a.passage.pictured, strict=True
    ):
        if pictured:
            continue
        if here != part:
            out += r"\enskip\textbardbl\enskip{}"
            part = here
        content = wording.visible(unit, keep="\n\r\t")
        background = colour(float(level), a.signed, LIGHT)
        words = " ".join(_box(word, background) for word in content.split())
        between = " " if content[:1].isspace() else r"\allowbreak{}"
        out += (between if out else "") + words + (" " if words and content[-1:].isspace() else "")
    return out.rstrip(" ")


def _box(word: str, background: tuple[int, int, int] | None) -> str:
    if background is None:
        return escaped(word)
    return (
        "\\colorbox[HTML]{{{:02X}{:02X}{:02X}}}".format(*background)
        + f"{{\\strut {escaped(word)}}}"
    )
