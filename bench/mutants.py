"""Small faults put into the code, one at a time: which of them does no test see?

    python -m bench.mutants --files src/whence/views/many.py --number 60 --seed 0

Drawn are comparisons turned, ``and`` for ``or``, constants one more or less, ``min`` for ``max``,
``mean`` for ``median``, signs, and orders reversed. Each is written into a copy of the package in a
temporary folder, and the tests of its file are run there: tests mirror the source, and those that
import the module belong to it, too. A survivor is a fault that all of them let pass: it is a
missing test, or it changes nothing that can be seen. Nothing is written to the tree itself.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
COPIED = ("src", "tests", "bench", "docs", "training")
NOT_COPIED = shutil.ignore_patterns("__pycache__", ".git", ".venv", "*.pyc", ".pytest_cache")
# what is said, judged and counted: sentences, verdicts, statistics
SENTENCES = tuple(
    f"src/whence/{name}.py"
    for name in (
        "views/evaluation",
        "views/planted",
        "views/audit",
        "views/many",
        "views/answering_of_many",
        "views/judgement",
        "core/evaluation",
        "core/bootstrap",
        "core/audited",
        "core/planted",
        "core/probe",
        "core/templates",
        "core/context_use",
        "core/agreement",
        "core/answer_of_many",
        "core/many",
        "metrics/standing",
        "metrics/ties",
        "metrics/control",
    )
)
# tests of files that have none of their own name, and that no test imports
OTHER_TESTS = {
    "views/many": ("core/test_many.py", "views/test_many_html.py"),
    "views/judgement": ("views/test_html.py", "views/test_evidence.py"),
    "views/planted_html": ("views/test_planted.py",),
    "core/answer_of_many": ("core/test_many.py", "views/test_many_html.py"),
    "views/answering_of_many": ("core/test_many.py",),
}
# they take minutes, and are of the whole rather than of one file
TOO_LONG = ("runs/", "labs/", "explaining/test_room.py", "explaining/test_audit.py", "_browser.py")
TIMES_AS_LONG = 4  # as the tests take without a fault: then they hang, which is seen
LEAST_SECONDS = 60.0

COMPARED = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.GtE),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.LtE),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
ADDED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
CALLED = {
    "min": "max",
    "max": "min",
    "mean": "median",
    "nanmean": "nanmedian",
    "median": "mean",
    "argmin": "argmax",
    "argmax": "argmin",
    "any": "all",
    "all": "any",
    "floor": "ceil",
    "ceil": "floor",
}


@dataclass(frozen=True)
class Mutant:
    """One fault: where it stands, what stood there, and what stands there instead."""

    file: str
    line: int
    start: int  # bytes of the file
    end: int
    was: str
    now: str


# ---------------------------------------------------------------------- the faults of a file


def mutants_of(path: Path) -> list[Mutant]:
    """Every fault that may be put into a file, in its order."""
    source = path.read_bytes()
    tree = ast.parse(source)
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    for node, whole in _expressions(tree, None):
        for changed in _changed(node):
            # what stands in an f-string has no place of its own
            shown = changed if whole is None else _within(whole, node, changed)
            at = node if whole is None else whole
            assert at.end_lineno is not None
            assert at.end_col_offset is not None
            start = starts[at.lineno - 1] + at.col_offset
            end = starts[at.end_lineno - 1] + at.end_col_offset
            now = f"({ast.unparse(shown)})" if _needs_brackets(shown) else ast.unparse(shown)
            was = source[start:end].decode()
            name = str(path.relative_to(ROOT))
            found.append(Mutant(name, at.lineno, start, end, was, now))
    return [mutant for mutant in found if _differs(source, mutant)]


def _expressions(
    node: ast.AST, whole: ast.JoinedStr | None
) -> Iterator[tuple[ast.expr, ast.JoinedStr | None]]:
    """Every expression that is run, with the f-string around it; no types, and no docstrings."""
    if isinstance(node, ast.expr):
        yield node, whole
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "format_spec"):
            continue
        inside = node if isinstance(node, ast.JoinedStr) and whole is None else whole
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _expressions(child, inside)


def _within(whole: ast.JoinedStr, old: ast.expr, new: ast.expr) -> ast.expr:
    """A copy of an f-string with one expression in it exchanged."""

    # in the place of the old one the copy holds the new one: nodes of the tree stay as they are
    return copy.deepcopy(whole, {id(old): new})


def _needs_brackets(node: ast.expr) -> bool:
    return isinstance(node, (ast.Compare, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.IfExp))


def _differs(source: bytes, mutant: Mutant) -> bool:
    changed = mutated(source, mutant)
    try:
        return ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source))
    except SyntaxError:
        return False


def mutated(source: bytes, mutant: Mutant) -> bytes:
    """The file with the fault in it."""
    return source[: mutant.start] + mutant.now.encode() + source[mutant.end :]


def _changed(node: ast.expr) -> Iterator[ast.expr]:
    """What may stand in the place of an expression."""
    if isinstance(node, ast.Compare):
        for place, operator in enumerate(node.ops):
            for other in COMPARED[type(operator)]:
                ops = [*node.ops[:place], other(), *node.ops[place + 1 :]]
                yield ast.Compare(node.left, ops, node.comparators)
    elif isinstance(node, ast.BoolOp):
        operator = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield ast.BoolOp(operator, node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
        yield node.operand
    elif isinstance(node, ast.BinOp) and type(node.op) in ADDED:
        if not _is_text(node.left) and not _is_text(node.right):
            yield ast.BinOp(node.left, ADDED[type(node.op)](), node.right)
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield ast.Constant(not node.value)
        elif isinstance(node.value, (int, float)):
            yield ast.Constant(node.value + 1)
            yield ast.Constant(node.value - 1)
    elif isinstance(node, ast.Call):
        yield from _called_otherwise(node)


def _is_text(node: ast.expr) -> bool:
    is_string = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return is_string or isinstance(node, (ast.JoinedStr, ast.List, ast.Tuple))


def _called_otherwise(node: ast.Call) -> Iterator[ast.expr]:
    function = node.func
    if isinstance(function, ast.Name) and function.id in CALLED:
        yield ast.Call(ast.Name(CALLED[function.id]), node.args, node.keywords)
    if isinstance(function, ast.Attribute) and function.attr in CALLED:
        is_array = not isinstance(function.value, ast.Name) or function.value.id != "np"
        if is_array and CALLED[function.attr] in ("median", "nanmedian"):
            return  # arrays have no such method: every test would see it
        other = ast.Attribute(function.value, CALLED[function.attr])
        yield ast.Call(other, node.args, node.keywords)
    if isinstance(function, ast.Name) and function.id == "sorted":
        others = [one for one in node.keywords if one.arg != "reverse"]
        turned = [*others, ast.keyword("reverse", ast.Constant(True))]
        yield ast.Call(function, node.args, others if len(others) < len(node.keywords) else turned)


# ---------------------------------------------------------------------- the tests of a file


@lru_cache
def tests_of(file: str) -> list[str]:
    """The tests that a fault in this file should fail, and the examples in its docstrings."""
    inner = Path(file).relative_to("src/whence").with_suffix("")
    tests = ROOT / "tests"
    found = {tests / inner.parent / f"test_{inner.name}.py"}
    found |= {tests / name for name in OTHER_TESTS.get(inner.as_posix(), ())}
    module = "whence." + ".".join(inner.parts)
    room, name = module.rpartition(".")[::2]
    for path in tests.rglob("test_*.py"):
        source = path.read_text(encoding="utf-8")
        by_name = any(
            line.startswith(f"from {room} import") and name in line.replace(",", " ").split()
            for line in source.splitlines()
        )
        if by_name or f"{module} import" in source or f"import {module}" in source:
            found.add(path)
    names = sorted(str(path.relative_to(ROOT)) for path in found if path.exists())
    return [file, *(name for name in names if not any(long in name for long in TOO_LONG))]


# ---------------------------------------------------------------------- trying


class Copy:
    """A copy of the package and its tests, in which faults are put and taken out again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in COPIED:
            if (ROOT / name).exists():
                shutil.copytree(ROOT / name, folder / name, ignore=NOT_COPIED)
        for path in ROOT.iterdir():
            if path.is_file():
                shutil.copy2(path, folder / path.name)

    def run(self, tests: Sequence[str], seconds: float) -> tuple[str, str]:
        """``passed``, ``failed`` or ``hangs``, and the end of what the tests print."""
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
        one_thread = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
        ours = {"PYTHONPATH": f"{self.folder / 'src'}{os.pathsep}{self.folder}"}
        # with a session of its own, so that whatever the tests have started ends with them
        process = subprocess.Popen(
            command,
            cwd=self.folder,
            env={**os.environ, "HF_HUB_OFFLINE": "1", **one_thread, **ours},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            printed, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return "hangs", ""
        lines = printed.strip().splitlines()
        named = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
        last = named[0] if named else (lines[-1] if lines else "")
        # 5: no test was collected, which says nothing about the fault
        if process.returncode == 5:
            return "untested", last
        return ("passed" if process.returncode == 0 else "failed"), last

    def imports_itself(self) -> bool:
        """Whether the tests would see the copy, and not what is installed."""
        asked = [sys.executable, "-c", "import whence; print(whence.__file__)"]
        env = {**os.environ, "PYTHONPATH": str(self.folder / "src")}
        said = subprocess.run(asked, cwd=self.folder, env=env, capture_output=True, text=True)
        return said.stdout.strip().startswith(str(self.folder))

    def tried(self, mutant: Mutant, tests: Sequence[str], seconds: float) -> tuple[str, str]:
        """What the tests say of a fault. The file is as it was before, whatever happens."""
        path = self.folder / mutant.file
        source = path.read_bytes()
        try:
            path.write_bytes(mutated(source, mutant))
            _forget_compiled(path)
            return self.run(tests, seconds)
        finally:
            path.write_bytes(source)
            _forget_compiled(path)


def _forget_compiled(path: Path) -> None:
    """Python goes by the second and by the size, and both may be the same."""
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink()


def drawn(files: Sequence[str], number: int, seed: int) -> list[Mutant]:
    """So many faults, at most one in a line, from all files together."""
    every = [mutant for file in files for mutant in mutants_of(ROOT / file)]
    random.Random(seed).shuffle(every)
    chosen: dict[tuple[str, int], Mutant] = {}
    for mutant in every:
        chosen.setdefault((mutant.file, mutant.line), mutant)
    return sorted(list(chosen.values())[:number], key=lambda m: (m.file, m.line))


def try_all(chosen: Sequence[Mutant], out: Path | None) -> list[dict[str, object]]:
    """Try each fault, and say of each at once what came of it."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        place = Copy(Path(folder).resolve())
        if not place.imports_itself():
            raise SystemExit("the copy is not what Python imports: nothing was tried.")
        limits: dict[str, float] = {}
        for number, mutant in enumerate(chosen, 1):
            tests = tests_of(mutant.file)
            if mutant.file not in limits:
                limits[mutant.file] = _limit(place, tests)
            result, last = "untested", ""
            if limits[mutant.file]:
                result, last = place.tried(mutant, tests, limits[mutant.file])
            rows.append({**asdict(mutant), "result": result, "by": last})
            if out is not None:
                with out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(rows[-1], ensure_ascii=False) + "\n")
            print(f"{number:4} {result:8} {_shown(mutant)}", flush=True)
    return rows


def _limit(place: Copy, tests: Sequence[str]) -> float:
    """How long the tests of a file may take; 0 where they fail without any fault."""
    begun = time.monotonic()
    result, last = place.run(tests, 900)
    if result != "passed":
        print(f"not tried, as its tests fail without a fault: {tests[0]}: {last}", flush=True)
        return 0.0
    return max(LEAST_SECONDS, TIMES_AS_LONG * (time.monotonic() - begun))


def _shown(mutant: Mutant) -> str:
    was, now = (" ".join(text.split()) for text in (mutant.was, mutant.now))
    return f"{mutant.file}:{mutant.line}  {was[:90]}  →  {now[:90]}"


def main() -> None:
    """Draw faults, try them, and print the survivors."""
    parser = argparse.ArgumentParser(description="Which small faults does no test see?")
    parser.add_argument("--files", nargs="+", default=list(SENTENCES), help="relative to the root")
    parser.add_argument("--number", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="a file to which each is written as JSON, at once")
    parser.add_argument("--list", action="store_true", help="print what is drawn, and try nothing")
    asked = parser.parse_args()

    chosen = drawn(asked.files, asked.number, asked.seed)
    if asked.list:
        print("\n".join(map(_shown, chosen)))
        return
    rows = try_all(chosen, asked.out)
    tested = [row for row in rows if row["result"] != "untested"]
    survivors = [row for row in tested if row["result"] == "passed"]
    print(f"\n{len(survivors)} of {len(tested)} survive; {len(rows) - len(tested)} were not tried.")
    for row in survivors:
        print(f"  {row['file']}:{row['line']}  {row['was']}  →  {row['now']}")


if __name__ == "__main__":
    main()
