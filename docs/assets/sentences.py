"""The catalogue of sentences, docs/sentences.md: what can be said, when, and an example.

    python docs/assets/sentences.py          # writes the page
    python docs/assets/sentences.py --check  # says what has no condition or no example

A *speaker* is a function or a constant of whence whose own text has three words in a row, but for
text that is raised. When it speaks stands in its docstring (or in the comment above a constant), in
sentences that begin with "Said". What it can say is read from its code, "…" for what is put in. An
example is recorded while made-up results say everything that they can (``tests/occasions``), or
stands in its docstring between double backquotes.
"""

from __future__ import annotations

import ast
import html
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "whence"
PAGE = ROOT / "docs" / "sentences.md"
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

WORDS = re.compile(r"[A-Za-z’]{2,},? [a-z’]+,? [a-z’]+")
SAID = re.compile(r"Said [^.]*(?:\.(?=\S)[^.]*)*\.", re.DOTALL)
SCRIPT_FUNCTION = re.compile(
    r"\s*(?:export )?(?:async )?(?:function |const )(\w+)\s*(?:\(|= (?:async )?\(?[\w, {}]*\)? =>)"
)
EXAMPLE = re.compile(r"``([^`]+)``")
LONGEST = 240
OCCASIONS = 300  # made-up results of each area
# rooms whose text is of errors, of prose that a lab writes with its claims, or of declarations
SILENT_ROOMS = ("labs", "notebook", "runs", "models", "foreign", "generation")
# what declares options, settings and errors: their text stands in the help and in refusals
DECLARES = re.compile(r"(Error|Warning|BadParameter|[Oo]ption|Argument|setting|field|help|Typer)$")
# of an element: names of classes and of regions, which nobody reads as a statement
ATTRIBUTES = re.compile(r"(class_|style|aria_\w+|data_\w+|placeholder)$")
QUERY = re.compile(r"\bselect .+ from\b|\) order by ", re.DOTALL)  # SQL is no sentence


@dataclass(frozen=True)
class Speaker:
    """What speaks: where it stands, what it can say, when, and what it said once."""

    file: str
    name: str
    line: int
    says: tuple[str, ...]
    when: str
    example: str = ""


# ---------------------------------------------------------------------- who speaks


def speakers() -> list[Speaker]:
    """Every speaker, in the order of the files."""
    found: list[Speaker] = []
    for path in sorted(SOURCE.rglob("*.py")):
        file = path.relative_to(SOURCE).as_posix()
        if file.split("/")[0] not in SILENT_ROOMS:
            found += _speakers_of(file, path.read_text(encoding="utf-8"))
    for path in sorted((SOURCE / "views" / "static").glob("*.js")):
        found += _speakers_of_script(path)
    return [one for one in found if f"{one.file}:{one.name}" not in NO_SENTENCES]


def _speakers_of(file: str, source: str) -> Iterator[Speaker]:
    tree, lines = ast.parse(source), source.splitlines()
    for name, node in _functions(tree, ""):
        says = tuple(_texts(node.body[1:] if ast.get_docstring(node) else node.body))
        if says:
            told = " ".join((ast.get_docstring(node) or "").split())
            when = " ".join(match.group() for match in SAID.finditer(told))
            shown = EXAMPLE.search(told.split(">>>")[0])
            yield Speaker(file, name, node.lineno, says, when, shown.group(1) if shown else "")
    for node in tree.body:
        targets = _names(node)
        says = tuple(_texts([node])) if targets else ()
        if says:
            above = _comment_above(lines, node.lineno)
            when = " ".join(match.group() for match in SAID.finditer(above))
            yield Speaker(file, targets[0], node.lineno, says, when, says[0])


def _speakers_of_script(path: Path) -> Iterator[Speaker]:
    """Functions of a page's program: when they speak stands in the comment above them.

    What they say is their example: only a browser can record another.
    """
    file, lines = path.relative_to(SOURCE).as_posix(), path.read_text(encoding="utf-8").splitlines()
    name, begun, texts = "the program", 0, list[str]()
    for number, line in enumerate([*lines, "function "]):
        if opened := SCRIPT_FUNCTION.match(line) or number == len(lines):
            if texts:
                above = _comment_above([one.strip() for one in lines], begun + 1)
                when = " ".join(match.group() for match in SAID.finditer(above))
                yield Speaker(file, name, begun + 1, tuple(texts), when, texts[0])
            name = opened.group(1) if isinstance(opened, re.Match) else ""
            begun, texts = number, []
        if not line.strip().startswith("//"):
            texts += [text for text in _script_texts(line) if WORDS.search(text)]


def _script_texts(line: str) -> Iterator[str]:
    """The texts of a line of a program, "…" for what is put in; those put in as well."""
    at = 0
    while at < len(line):
        if line.startswith("//", at):
            return
        quote = line[at]
        at += 1
        if quote not in "\"'`":
            continue
        text = ""
        while at < len(line) and line[at] != quote:
            if quote == "`" and line.startswith("${", at):
                inner = _in_braces(line, at + 1)
                yield from _script_texts(inner)
                text, at = f"{text}…", at + len(inner) + 3
            else:
                text, at = text + line[at], at + 1
        at += 1
        yield " ".join(text.split())


def _in_braces(line: str, opened: int) -> str:
    depth = 0
    for at in range(opened, len(line)):
        depth += {"{": 1, "}": -1}.get(line[at], 0)
        if not depth:
            return line[opened + 1 : at]
    return line[opened + 1 :]


def _functions(node: ast.AST, inside: str) -> Iterator[tuple[str, ast.FunctionDef]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
            name = f"{inside}{child.name}"
            if isinstance(child, ast.FunctionDef):
                yield name, child
            yield from _functions(child, f"{name}.")
        elif isinstance(child, (ast.If, ast.Try, ast.With, ast.For)):
            yield from _functions(child, inside)


def _names(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    return []


def _comment_above(lines: list[str], line: int) -> str:
    above: list[str] = []
    for text in reversed(lines[: line - 1]):
        if not text.startswith(("#", "//")):
            break
        above.insert(0, text.lstrip("#/ "))
    return " ".join(above)


def _texts(nodes: list[ast.stmt] | list[ast.AST]) -> Iterator[str]:
    """The texts of a function that have three words in a row, but for those that are raised."""
    for node in nodes:
        if isinstance(node, (ast.Raise, ast.FunctionDef, ast.ClassDef)):
            continue
        if isinstance(node, ast.Call) and DECLARES.search(_called(node)):
            continue
        if isinstance(node, ast.keyword) and ATTRIBUTES.match(node.arg or ""):
            continue
        if isinstance(node, (ast.Constant, ast.JoinedStr)):
            text = " ".join(_template(node).split())
            if WORDS.search(text) and not QUERY.search(text):
                yield text
            if isinstance(node, ast.JoinedStr):  # texts may stand in what is put in
                yield from _texts([part for part in ast.walk(node) if _is_inner(part, node)])
            continue
        yield from _texts(list(ast.iter_child_nodes(node)))


def _is_inner(part: ast.AST, node: ast.JoinedStr) -> bool:
    return isinstance(part, ast.Constant) and part not in node.values and _is_text(part)


def _is_text(node: ast.Constant) -> bool:
    return isinstance(node.value, str)


def _called(node: ast.Call) -> str:
    function = node.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _template(node: ast.expr) -> str:
    """A text as it stands in the code, "…" for what is put in."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(
            _template(part) if isinstance(part, ast.Constant) else "…" for part in node.values
        )
    return ""


# ---------------------------------------------------------------------- what they said


def with_examples(found: list[Speaker]) -> list[Speaker]:
    """Each speaker with the shortest of what it said of made-up results."""
    said = recorded(found)
    return [replace(one, example=said.get((one.file, one.line), one.example)) for one in found]


def recorded(found: list[Speaker]) -> dict[tuple[str, int], str]:
    """What speakers say while every area of ``tests/occasions`` says all that it can."""
    from tests import occasions

    wanted = {(one.file, one.line) for one in found}
    heard: dict[tuple[str, int], str] = {}
    places: dict[CodeType, tuple[str, int] | None] = {}

    def listen(frame: FrameType, event: str, value: Any) -> None:
        if event != "return":
            return
        code = frame.f_code
        if code not in places:
            place = _place_of(code)
            places[code] = place if place in wanted else None
        place = places[code]
        text = "" if place is None else _in_words(value)
        if place is None or not WORDS.search(text):
            return
        if place not in heard or len(text) < len(heard[place]):
            heard[place] = text

    sys.setprofile(listen)
    try:
        occasions.speak(OCCASIONS)
    finally:
        sys.setprofile(None)
    return heard


def _place_of(code: CodeType) -> tuple[str, int] | None:
    path = Path(code.co_filename)
    if not path.is_relative_to(SOURCE):
        return None
    return path.relative_to(SOURCE).as_posix(), _line_of_def(path, code.co_firstlineno)


def _line_of_def(path: Path, first: int) -> int:
    """The line of ``def``: the first line of a decorated function is that of its decorator."""
    lines = path.read_text(encoding="utf-8").splitlines()
    for number in range(first, min(first + 8, len(lines) + 1)):
        if re.match(r"\s*(async )?def ", lines[number - 1]):
            return number
    return first


def _in_words(value: Any) -> str:
    """What was returned, as a person reads it; empty where it is no text."""
    if isinstance(value, str):
        bare = html.unescape(re.sub(r"<[^>]+>", " ", value)) if "<" in value else value
        return " ".join(bare.split())
    if isinstance(getattr(value, "plain", None), str):  # a text of a terminal, or several
        return " ".join(value.plain.split())
    value = getattr(value, "renderables", value)
    if isinstance(value, (list, tuple)) and value:
        if all(hasattr(part, "text") and hasattr(part, "role") for part in value):
            return "".join(part.text for part in value)
        return " ".join(filter(None, map(_in_words, value)))
    return ""


# ---------------------------------------------------------------------- the page

HEAD = """# Every sentence that can be said

What answers, pages and notes can say: by which function, when, and an example. `…` stands for what
is put in. This page is made by `python docs/assets/sentences.py` from the code itself and from
made-up results that say all they can; a test fails where a function that makes sentences is not on
it, where it does not say when it speaks, or where it can say something else than stands here. That
what is said is true of the numbers is tested apart: sentences are parsed back, and held against the
record they speak of.
"""


def page(found: list[Speaker]) -> str:
    """docs/sentences.md."""
    parts, file = [HEAD], ""
    for one in found:
        if one.file != file:
            file = one.file
            parts.append(f"\n## {file.removesuffix('.py')}\n")
        parts.append(f"\n**`{one.name}`** {_escaped(one.when)}\n\n")
        parts += [f"- {_escaped(text)}\n" for text in dict.fromkeys(one.says)]
        if one.example and one.example not in one.says:
            parts.append(f"\n> {_escaped(_cut(one.example))}\n")
    return "".join(parts)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST].rstrip()} …"


def _escaped(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", text)


def without_examples(made: str) -> str:
    """The page without what only made-up results can tell."""
    return re.sub(r"\n> .*\n", "", made)


def lacking(found: list[Speaker]) -> list[str]:
    """Speakers that do not say when they speak, or of which there is no example."""
    rows = [(one, "no condition") for one in found if not one.when]
    rows += [(one, "no example") for one in found if not one.example]
    return [f"{one.file}:{one.line} {one.name}: {what}" for one, what in rows]


# What has words and says no sentence, and why: "file:name".
NO_SENTENCES: dict[str, str] = {
    # -- answers of one text and of many
    "core/attribution.py:check_schema": "a refusal",
    "core/errors.py:unknown_name": "a refusal",
    "core/registry/declared.py:check_method": "a refusal, to authors",
    "core/registry/declared.py:check_metric": "a refusal, to authors",
    "core/registry/fields.py:SEED": "of a setting: in the help",
    "core/registry/names.py:not_found": "a refusal",
    "core/stored.py:Stored.whole": "a refusal",
    "core/stored.py:_quoted": "a value in a refusal",
    "core/attributions.py:Attributions.from_dict": "what a refusal calls the record",
    "core/cutting.py:ABBREVIATION_LIST": "abbreviations that end no sentence",
    "core/cutting.py:checked_units": "a refusal",
    "core/evidence.py:Evidence.__getitem__": "a warning to programs",
    "core/many.py:Many.from_dict": "what a refusal calls the record",
    "core/registry/needs.py:GIVEN_TO_METRICS": "parameters of a metric, in a refusal",
    "core/target.py:_index": "a refusal",
    "core/units.py:Units.from_dict": "what a refusal calls the record",
    "games/scoring.py:Plan.passes": "the name of a pool of samples",
    "games/settings.py:ESTIMATOR": "of a setting: in the help",
    "games/settings.py:EXACT": "of a setting: in the help",
    "games/settings.py:REMOVAL": "of a setting: in the help",
    "methods/attention_arbiter.py:AttentionArbiter._no_candidate": "a refusal",
    "methods/shapley_exact.py:ONLY_FOR": "a declaration of the method",
    "methods/transformer_attribution.py:weighted": "a refusal",
    "metrics/curves.py:IN_STEPS": "of a setting: in the help",
    "metrics/effects.py:WITHIN_TOLERANCE": "of a setting: in the help",
    "metrics/limits.py:EXACTLY": "of a setting: in the help",
    "metrics/limits.py:IN_WIDTH": "of a setting: in the help",
    "metrics/walks.py:SO_MANY_SUBSETS": "of a setting: in the help",
    "trace/contrast.py:At": "shapes of tensors",
    "trace/effects.py:_switched_off": "the name of an edit",
    "trace/footprint.py:PROMPT": "a text that is tried",
    "trace/footprint.py:_measured": "what is done meanwhile, in an error",
    "trace/lrp/mode.py:ACTIVATES": "names of operations",
    "trace/lrp/mode.py:BILINEAR": "names of operations",
    "trace/lrp/mode.py:CONSTANT": "names of operations",
    "trace/lrp/mode.py:REARRANGES": "names of operations",
    "trace/lrp/mode.py:_refusal": "a refusal",
    "trace/trace.py:no_gradient": "a refusal",
    "views/catalogue.py:KINDS": "what a setting takes",
    "views/latex.py:COLUMNS_OF_MANY": "heads of a table",
    "views/listing.py:_conduct": "heads of a table",
    "views/pictures.py:UNDERLAY": "a program",
    # -- written text, attention, features
    "core/features.py:About.from_dict": "what a refused file is called",
    "core/features_quality.py:Quality.from_dict": "what a refused file is called",
    "core/probe.py:TemplateProbe.verdict": "names of verdicts; CONCLUSIONS has their words",
    "core/probe.py:TemplateVerdict": "names of verdicts; CONCLUSIONS has their words",
    "core/probe.py:WITHOUT_INTERVAL": "names of verdicts; CONCLUSIONS has their words",
    "core/templates.py:_AFTER": "words that are read",
    "explaining/attend.py:OPTIONS": "advice of a refusal",
    "explaining/contrast.py:_without_attention": "a refusal, raised by its caller",
    "explaining/probe.py:_forecast": "what a refusal for want of memory calls it",
    "features/cache.py:_known_shards": "what a refused file is called",
    "features/checkpoint.py:read_checkpoint": "advice of a refusal",
    "features/explaining.py:_detail": "names of facts; views/wording.py has their sentences",
    "features/saving.py:_place": "advice of a refusal",
    "features/training.py:_Work.carry_out": "progress",
    "features/training.py:_Work._begun": "progress",
    "features/training.py:_Work._seconds_of_measuring": "progress",
    "features/training.py:_Work._measured": "progress",
    "features/training.py:_words": "progress",
    "features/training.py:_differences": "part of a refusal",
    "features/unrelated.py:SENTENCES": "texts that a model reads",
    "features/variants/gated.py:VARIANT": "the name of a paper",
    "features/variants/jump_relu.py:VARIANT": "the name of a paper",
    "features/variants/matryoshka.py:VARIANT": "the name of a paper",
    "features/variants/relu.py:VARIANT": "the name of a paper",
    "features/variants/topk.py:VARIANT": "the name of a paper",
    "views/attention.py:_threshold": "the label of a control",
    "views/attention.py:_controls": "labels of controls",
    "views/attention.py:_exports": "the label of a group of buttons",
    "views/attention.py:APART": "choices of a menu",
    "views/attention.py:FULL_COLOUR": "choices of a menu",
    "views/features_page.py:ORDERS": "choices of a menu",
    "views/features_page.py:WHERE": "choices of a menu",
    "views/probe.py:STYLE": "a style sheet",
    "views/static/attention-answer.js:the program": "labels of lines of words",
    "views/static/features.js:drawMap": "a selector",
    "views/templates.py:OWN_STYLE": "a style sheet",
    # -- data sets: tables, audits, runs, commands
    "cli/attend.py:EXAMPLE": "an example of a command, in its help",
    "cli/attend.py:command": "words of a refusal",
    "cli/audit.py:command": "where a file was written, and what was ended",
    "cli/card.py:EXAMPLE": "an example of a command, in its help",
    "cli/card.py:command": "where a file was written, and what was ended",
    "cli/compare.py:EXAMPLE": "an example of a command, in its help",
    "cli/context.py:EXAMPLE": "an example of a command, in its help",
    "cli/evaluate.py:command": "where a file was written, and what was ended",
    "cli/explain.py:EXAMPLE": "an example of a command, in its help",
    "cli/features.py:EXAMPLE": "an example of a command, in its help",
    "cli/features.py:OTHERS": "examples of commands, in their help",
    "cli/features_explain.py:EXAMPLE": "an example of a command, in its help",
    "cli/features_explain.py:explain": "the name of a number, and a note on standard error",
    "cli/features_show.py:EXAMPLE": "an example of a command, in its help",
    "cli/features_show.py:_source": "words of a refusal",
    "cli/features_steer.py:EXAMPLE": "an example of a command, in its help",
    "cli/generate.py:EXAMPLE": "an example of a command, in its help",
    "cli/generate.py:OWN_NAMES": "words of a refusal",
    "cli/lab.py:EXAMPLE": "an example of a command, in its help",
    "cli/lab.py:command": "where a file was written, and what was ended",
    "cli/main.py:_complain_of": "an error that nobody foresaw",
    "cli/methods.py:EXAMPLE": "an example of a command, in its help",
    "cli/metrics.py:EXAMPLE": "an example of a command, in its help",
    "cli/planted.py:command": "where a file was written, and what was ended",
    "cli/predict.py:EXAMPLE": "an example of a command, in its help",
    "cli/predict.py:command": "the name of a step of the work",
    "cli/run.py:EXAMPLE": "an example of a command, in its help",
    "cli/settings.py:_unknown": "words of a refusal",
    "cli/texts.py:_line": "words of a refusal",
    "cli/texts.py:read_texts": "words of a refusal",
    "cli/theory.py:EXAMPLE": "an example of a command, in its help",
    "core/data_labels.py:_hint": "words of a refusal",
    "explaining/added.py:_difference": "words of a refusal",
    "explaining/added.py:_differing": "words of a refusal",
    "explaining/added.py:_of_no_text": "words of a refusal",
    "explaining/added.py:_of_none": "words of a refusal",
    "explaining/added.py:joined_with": "words of a refusal",
    "explaining/again.py:made_again": "words of a refusal",
    "explaining/arbitrate.py:OPTIONS": "words of a refusal",
    "explaining/arbitrate.py:_room": "words of a refusal",
    "explaining/audit.py:audited": "the name of a step of the work",
    "explaining/card.py:_Gathered.check_model": "words of a refusal",
    "explaining/explain.py:compare_as_asked": "a line of a log",
    "explaining/job.py:_of_the_targets": "words of a refusal",
    "explaining/planning.py:_too_small": "words of a refusal",
    "explaining/room.py:_larger_budget": "words of a refusal",
    "explaining/room.py:_refused": "words of a refusal",
    "explaining/room.py:_shorter_that_fits": "words of a refusal",
    "explaining/room.py:_that_fit": "words of a refusal",
    "explaining/room.py:_what": "words of a refusal",
    "explaining/room.py:room_for_games": "words of a refusal",
    "explaining/sharing.py:_too_small": "words of a refusal",
    "retraining/adversarial.py:_teller.tell": "the name of a step of the work",
    "retraining/diagnostic.py:attention_diagnostic.answers.tell": "the name of a step of the work",
    "retraining/labelled.py:numbered": "words of a refusal",
    "views/audit_figures.py:WORTH": "the name of a figure",
    "views/audit_figures.py:_adversary": "names of a figure and of its axes",
    "views/audit_figures.py:_correlation": "names of a figure and of its axes",
    "views/audit_figures.py:_gains": "names of a figure and of its axes",
    "views/audit_figures.py:_heads": "names of a figure and of its axes",
    "views/audit_figures.py:_losses": "names of a figure and of its axes",
    "views/audit_figures.py:_permutation": "names of a figure and of its axes",
    "views/audit_figures.py:_pruning": "names of a figure and of its axes",
    "views/audit_figures.py:_readings": "names of a figure and of its axes",
    "views/audit_figures.py:_shares_right": "names of a figure and of its axes",
    "views/audit_figures.py:_uniform": "names of a figure and of its axes",
    "views/retraining.py:plot_roar": "names of lines and axes",
}


if __name__ == "__main__":
    every = with_examples(speakers())
    if "--check" in sys.argv:
        print("\n".join(lacking(every)) or "Every speaker says when, and has an example.")
    else:
        PAGE.write_text(page(every), encoding="utf-8")
        print(f"{len(every)} speakers in {PAGE.name}")
