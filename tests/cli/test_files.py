"""--file: files of records are read by their columns in every command, as whence run reads them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.cli.conftest import Run
from whence.cli.texts import read_texts
from whence.core.errors import InputError, UnknownName

TEXTS = ["a moving and funny film", "dull, flat\nand far too long"]
RECORDS = [{"id": str(n), "review": text, "stars": n} for n, text in enumerate(TEXTS)]
CSV = 'id,review,stars\n0,a moving and funny film,0\n1,"dull, flat\nand far too long",1\n'


def written(folder: Path, ending: str) -> Path:
    """The same two reviews in a file of this kind."""
    file = folder / f"reviews{ending}"
    inner = ending.removesuffix(".gz")
    if inner == ".parquet":
        parquet.write_table(pa.Table.from_pylist(RECORDS), file)
        return file
    # of a .tsv no field is quoted
    tsv = "id\treview\tstars\n" + "".join(f"{n}\t{t}\t{n}\n" for n, t in enumerate(TEXTS))
    content = {
        ".csv": CSV,
        ".tsv": tsv.replace("flat\nand", "flat and"),
        ".jsonl": "".join(json.dumps(record) + "\n" for record in RECORDS),
        ".json": json.dumps(RECORDS),
    }[inner].encode()
    file.write_bytes(gzip.compress(content) if ending.endswith(".gz") else content)
    return file


@pytest.mark.parametrize(
    "ending", [".csv", ".tsv", ".jsonl", ".json", ".parquet", ".csv.gz", ".tsv.gz", ".jsonl.gz"]
)
def test_a_file_of_records_is_read_by_its_text_column(
    ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # the version before reads "id,review,stars" as the first text, and cuts the second in two
    lines = read_texts([], written(tmp_path, ending))
    assert [line.content.replace("\n", " ") for line in lines] == [
        text.replace("\n", " ") for text in TEXTS
    ]
    assert "text: column 'review' (by its name)" in capsys.readouterr().err


def test_any_other_ending_is_plain_lines_also_packed(tmp_path: Path) -> None:
    for name in ("reviews.txt", "reviews.md", "reviews"):
        (tmp_path / name).write_text(CSV)
        assert len(read_texts([], tmp_path / name)) == 4
    (tmp_path / "reviews.txt.gz").write_bytes(gzip.compress(b"one\ntwo\n"))
    assert [line.content for line in read_texts([], tmp_path / "reviews.txt.gz")] == ["one", "two"]


@pytest.mark.parametrize(
    "command",
    [
        ("predict",),
        ("explain", "--method", "gradient-l2", "--no-evidence"),
        ("compare", "--methods", "gradient-l2", "--no-evidence"),
        ("attend",),
        ("theory", "--no-evidence"),
    ],
)
def test_every_command_reads_it_and_says_so(
    command: tuple[str, ...], run: Callable[..., Run], tmp_path: Path
) -> None:
    told = run(*command, "--file", written(tmp_path, ".csv"), "--json")
    assert told.code == 0
    assert len([line for line in told.out.splitlines() if line.startswith("{")]) == 2
    assert "text: column 'review' (by its name)" in told.err


def test_another_column_is_chosen_by_the_option_of_whence_run(
    run: Callable[..., Run], tmp_path: Path
) -> None:
    file = tmp_path / "reviews.csv"
    file.write_text("title,review\na masterpiece,dull and far too long\n")
    told = run("predict", "--file", file, "--text", "title", "--json")
    assert json.loads(told.out)["text"] == "a masterpiece"
    told = run("predict", "--file", file, "--text", "titel")
    assert told.code == 2
    assert "Did you mean 'title'?" in told.err


def test_text_without_a_file_of_columns_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    for file in (None, tmp_path / "a.txt"):
        with pytest.raises(InputError, match="--text names a column"):
            read_texts(["one"] if file is None else [], file, "review")
    with pytest.raises(UnknownName):
        read_texts([], written(tmp_path, ".csv"), "revue")


def test_a_record_that_cannot_be_read_fails_alone_with_its_row(
    run: Callable[..., Run], tmp_path: Path
) -> None:
    file = tmp_path / "reviews.jsonl"
    file.write_text('{"text": "a moving film"}\n{"text": 7}\n{"text": "dull"}\n')
    told = run("predict", "--file", file)
    assert told.code == 2
    assert "1 of 3 texts could not be run" in told.err
    assert "reviews.jsonl, row 1: line 2: column 'text' holds a number, not text" in told.err


def test_second_texts_are_of_their_column_or_one_for_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "pairs.csv"
    file.write_text("premise,hypothesis,other\na,b,c\n")
    (line,) = read_texts([], file)
    assert line.row is not None
    assert line.row.pair == "b"
    (line,) = read_texts([], file, None, "other")
    assert line.row is not None
    assert line.row.pair == "c"
    capsys.readouterr()
    (line,) = read_texts([], file, None, "it rains")
    assert line.row is not None
    assert line.row.pair is None
    assert "the text 'it rains' beside each row" in capsys.readouterr().err


def test_kept_results_are_those_that_whence_run_would_keep(
    run: Callable[..., Run], tmp_path: Path
) -> None:
    file, out = written(tmp_path, ".csv"), tmp_path / "kept"
    told = run("explain", "--method", "gradient-l2", "--no-evidence", "--file", file, "--out", out)
    assert told.code == 0
    columns = json.loads((out / "run.json").read_text())["data"]["columns"]
    assert (columns["text"], columns["label"], columns["id"]) == ("review", "stars", "id")


def test_a_prompt_is_the_text_of_the_only_record(run: Callable[..., Run], tmp_path: Path) -> None:
    file = tmp_path / "prompt.csv"
    file.write_text("n,prompt\n1,The king was\n")
    told = run("generate", "--model", "writer", "--file", file, "--json", "--no-evidence")
    assert told.code == 0
    assert "text: column 'prompt' (the only one of text)" in told.err
    told = run("generate", "--model", "writer", "--file", written(tmp_path, ".csv"))
    assert told.code == 2
    assert "has 2 records, and one prompt is explained" in told.err


def test_each_record_of_a_document_is_a_document(tmp_path: Path) -> None:
    from whence.cli.texts import read_document

    file = written(tmp_path, ".jsonl")
    assert read_document(file, file.name) == {
        f"reviews.jsonl, row {n}": text for n, text in enumerate(TEXTS)
    }
