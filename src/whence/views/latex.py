"""Coloured text for papers: LaTeX that needs xcolor and nothing else.

What is explained, and how, stands in its comments.
"""

from __future__ import annotations

from collections.abc import Sequence

from whence.core.attribution import Attribution
from whence.core.comparison import Comparison
from whence.core.errors import InputError
from whence.views import verdicts, wording
from whence.views.palette import LIGHT, RGB, colour, levels
from whence.views.pictures import pictured

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
    # a plain " is a command in several languages of babel, and \textquotedbl does not exist in
    # every encoding
    '"': r"\char34{}",
}
LIGATURES = "-',"  # two of them in a row would become a dash or a quotation mark
BETWEEN_TEXTS = r"\enskip\textbardbl\enskip{}"


def attribution_latex(a: Attribution) -> str:
    """The text, each word on the colour of its unit: ``\\colorbox[HTML]{F3841C}{\\strut great}``.

    >>> print(a.to_latex())            # doctest: +SKIP
    """
    _need_words(a)
    return "\n".join([*_about([a]), _settings(a), _grouped(_coloured(a)), ""])


def comparison_latex(c: Comparison) -> str:
    """A table with the coloured text once for each method. It takes the width of a line."""
    every = list(c.attributions.values())
    _need_words(c.first)
    rows = [
        rf"  {escaped(a.method)} & {{\raggedright {_coloured(a)}\par}} \tabularnewline"
        for a in every
    ]
    table = ["\\begin{tabular}{@{}lp{0.7\\linewidth}@{}}", *rows, "\\end{tabular}"]
    comments = [
        *_about(every),
        *(_settings(a) for a in every),
        *(_comment(f"{name} left out: {why}") for name, why in c.skipped.items()),
        _comment(f"in all {wording.cost(c.cost)}"),
    ]
    return "\n".join([*comments, _grouped("\n".join(table)), ""])


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
    """What was explained, as comments."""
    a = every[0]
    lines = [
        f"whence: {NEEDS}",
        f"explained: {wording.value(a)}",
        f"model: {wording.model_line(a)}, weights {a.provenance.fingerprint}",
    ]

    leading = list(a.prediction.items())[:5]
    if leading:
        shown = ", ".join(f"{wording.label(name)} {p:.1%}" for name, p in leading)
        lines.append(f"prediction: {shown}")

    cut = wording.dropped(a)
    if cut:
        lines.append(f"note: {cut}")

    patches = int(pictured(a).sum())
    if patches:
        lines.append(
            f"note: {patches} patches or regions of the picture beside the text have scores too, "
            "and are not shown"
        )

    lines.append(f"colours: {_colours(every)}; scaled by each method's largest score")
    return [_comment(line) for line in lines]


def _colours(every: Sequence[Attribution]) -> str:
    meanings = []
    if any(a.signed for a in every):
        meanings.append("orange for the target, blue against it")
    if any(not a.signed for a in every):
        meanings.append("purple without a sign")
    return "; ".join(meanings)


def _settings(a: Attribution) -> str:
    """Method, settings, cost and error, as a comment."""
    parts = [
        f"method: {a.method}",
        f"version {a.version}",
        f"settings: {wording.settings(a.settings)}",
        f"seed {a.seed}",
        f"cost: {wording.cost(a.cost)}",
    ]
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
