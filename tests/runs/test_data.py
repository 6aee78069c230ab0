"""Data sets of every format become the same rows, and what is broken spoils itself only."""

from __future__ import annotations

import csv
import gzip
import io
import json
import pickle
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from whence.core.errors import InputError, UnknownName
from whence.runs import delimited, files, plain
from whence.runs.data import Choice, Data, Row, chosen, digest_of, drawn, open_data

Write = Callable[[Path, Sequence[dict[str, Any]]], Path]

# each example writes its own files over those of the one before
few = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
texts = st.text(
    st.one_of(
        st.characters(exclude_categories=["Cs"]),
        st.sampled_from("\",\t\n\r;|\\'\u2028\x0c\x00\ufeffé😀"),
    ),
    max_size=12,
)
records = st.lists(
    st.fixed_dictionaries({"text": texts, "pair": texts, "label": st.integers(0, 3)}),
    min_size=1,
    max_size=6,
)
TRICKY = [
    {"text": 'he said "no",\nand left\r\n', "pair": "\t", "label": 1},
    {"text": "lone\rreturn", "pair": "ends in one\r", "label": 0},
    {"text": '"', "pair": '""', "label": 2},
    {"text": " 😀\u2028\x0c ", "pair": "é", "label": 3},
]


def rows_of(source: Any, **options: Any) -> list[Row]:
    return list(open_data(source, **options).rows())


def written(path: Path, content: str | bytes) -> Path:
    content = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def problems(rows: Sequence[Row]) -> list[str | None]:
    return [row.problem for row in rows]


# ---- the same records in every format


def as_csv(folder: Path, rows: Sequence[dict[str, Any]], name: str = "data.csv") -> Path:
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, list(rows[0]), delimiter="\t" if ".tsv" in name else ",")
    writer.writeheader()
    writer.writerows(rows)
    return written(folder / name, out.getvalue())


def as_tsv(folder: Path, rows: Sequence[dict[str, Any]]) -> Path:
    return as_csv(folder, rows, "data.tsv")


def as_packed_csv(folder: Path, rows: Sequence[dict[str, Any]]) -> Path:
    return as_csv(folder, rows, "data.CSV.gz")


def as_pandas_csv(folder: Path, rows: Sequence[dict[str, Any]]) -> Path:
    path = folder / "pandas.csv"
    pd.DataFrame(list(rows)).to_csv(path, index=False)
    return path


def as_json_lines(folder: Path, rows: Sequence[dict[str, Any]]) -> Path:
    lines = [json.dumps(row, ensure_ascii=number % 2 == 0) for number, row in enumerate(rows)]
    return written(folder / "data.jsonl", "\n".join(lines))


def as_packed_json_lines(folder: Path, rows: Sequence[dict[str, Any]]) -> Path:
    lines = [json.dumps(row) + "\r\n" for row in rows]
    return written(folder / "data.ndjson.gz", "\ufeff" + "".join(lines))


def as_json(folder: Path, rows: Sequence[dict[str, Any]]) -> Path:
    return written(folder / "data.json", json.dumps(rows, indent=1))


def as_parquet(folder: Path, rows: Sequence[dict[str, Any]]) -> Path:
    path = folder / "data.parquet"
    pq.write_table(pa.Table.from_pylist(list(rows)), path, row_group_size=2)
    return path


def as_packed_parquet(folder: Path, rows: Sequence[dict[str, Any]]) -> Path:
    return written(folder / "data.parquet.gz", as_parquet(folder, rows).read_bytes())


def as_dataset(folder: Path, rows: Sequence[dict[str, Any]], name: str = "saved") -> Path:
    """In the layout of ``Dataset.save_to_disk``."""
    path = folder / name
    path.mkdir(exist_ok=True)
    half = len(rows) // 2
    names = []
    for number, part in enumerate((rows[:half], rows[half:])):
        table = pa.Table.from_pylist(list(part), pa.Table.from_pylist(list(rows)).schema)
        names.append(f"data-{number:05}-of-00002.arrow")
        with pa.ipc.new_stream(path / names[-1], table.schema) as stream:
            stream.write_table(table, max_chunksize=3)
    state = {"_data_files": [{"filename": name} for name in names], "_split": "train"}
    written(path / "state.json", json.dumps(state))
    written(path / "dataset_info.json", "{}")
    return path


WRITERS: list[Write] = [
    as_csv,
    as_tsv,
    as_packed_csv,
    as_json_lines,
    as_packed_json_lines,
    as_json,
    as_parquet,
    as_packed_parquet,
    as_dataset,
]


@pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__[3:])
@few
@given(rows=records)
@example(rows=TRICKY)
def test_what_was_written_is_read(write: Write, tmp_path: Path, rows: list[dict[str, Any]]):
    read = rows_of(write(tmp_path, rows), text="text", pair="pair", label="label")
    expected = [
        Row(number, row["text"], row["pair"], str(row["label"]), str(number))
        for number, row in enumerate(rows)
    ]
    assert read == expected


@few
@given(rows=records)
@example(rows=TRICKY)
def test_what_pandas_wrote_is_read(tmp_path: Path, rows: list[dict[str, Any]]):
    """It leaves a lone carriage return without quotes, which csv alone would refuse."""
    path = as_pandas_csv(tmp_path, rows)
    read = rows_of(path, text="text", pair="pair")
    assert [(row.text, row.pair) for row in read] == [(row["text"], row["pair"]) for row in rows]


@few
@given(lines=st.lists(texts.map(lambda text: text.replace("\n", "").replace("\r", "")), min_size=1))
def test_lines_of_a_text_file(tmp_path: Path, lines: list[str]):
    lines.append("the last")
    for name, end in (("a.txt", "\n"), ("b.txt.gz", "\r\n")):
        path = written(tmp_path / name, "\ufeff" + end.join(lines))
        expected = [
            Row(number, line, id=str(number)) for number, line in enumerate(lines) if line.strip()
        ]
        assert rows_of(path) == expected


def test_rows_can_be_read_again_and_data_travels_to_another_process(tmp_path: Path):
    for write in WRITERS:
        data = open_data(write(tmp_path, TRICKY))
        assert (
            list(data.rows()) == list(data.rows()) == list(pickle.loads(pickle.dumps(data)).rows())
        )


def test_formats_and_names(tmp_path: Path):
    found = {write: open_data(write(tmp_path, TRICKY)) for write in WRITERS}
    formats = [data.format for data in found.values()]
    assert formats == [
        "csv", "tsv", "csv", "jsonl", "jsonl", "json", "parquet", "parquet", "datasets",
    ]  # fmt: skip
    assert found[as_csv].source == str(tmp_path / "data.csv")
    assert open_data(["a"]).format == "list"


# ---- which column is which


def columns(*names: str, **values: Any) -> Data:
    return open_data([{name: values.get(name, "words") for name in names}])


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("text", "label", "id"), ("text", None, "label", "id")),
        (("Review", "Stars"), ("Review", None, "Stars", None)),
        (("premise", "hypothesis", "label", "idx"), ("premise", "hypothesis", "label", "idx")),
        (("question", "context"), ("question", "context", None, None)),
        (("sentence1", "sentence2"), ("sentence1", "sentence2", None, None)),
        (("text", "context"), ("text", None, None, None)),  # no natural partner
        (("body", "category"), ("body", None, "category", None)),
        (("body", "pair"), ("body", "pair", None, None)),
        (("context", "label"), ("context", None, "label", None)),
        (("text", "label", "stars"), ("text", None, None, None)),  # two could be the label
    ],
)
def test_columns_are_guessed(names: tuple[str, ...], expected: tuple[str | None, ...]):
    c = columns(*names).columns
    assert (c.text, c.pair, c.label, c.id) == expected


def test_what_was_guessed_is_said():
    assert columns("body", "id", "label", id=7).columns.notes == (
        "text: column 'body' (the only one of text)",
        "label: column 'label' (by its name)",
        "id: column 'id' (by its name)",
    )
    notes = columns("text", "label", "stars").columns.notes
    assert notes[1] == "label: none, as it could be 'label' or 'stars'; pass --label NAME"
    assert open_data([{"a": "x", "b": "y"}], text="b").columns.notes == ()


@pytest.mark.parametrize("names", [("text", "review"), ("title", "body"), ("Text", "text")])
def test_a_doubt_about_the_text_is_an_error(names: tuple[str, ...]):
    with pytest.raises(InputError, match=r"is the text\? It could be .* or .*--text NAME.*Columns"):
        columns(*names)


def test_a_doubt_about_the_pair_is_an_error_until_it_is_named():
    record = {"question": "why", "context": "so", "choices": ["a", "b"]}
    with pytest.raises(InputError, match=r"goes with 'question'.*'context' or 'choices'.*--pair"):
        open_data([record])
    assert rows_of([record], pair="choices")[0].pair == ("a", "b")
    assert rows_of([record], pair="")[0].pair is None


def test_a_name_that_is_not_there():
    with pytest.raises(UnknownName, match=r"named 'reviw'. Did you mean 'review'\? Known: review"):
        open_data([{"review": "x", "stars": 1}], text="reviw")
    with pytest.raises(UnknownName, match=r"named 'nonsense'"):
        open_data([{"review": "x"}], label="nonsense")


def test_a_column_that_comes_late_is_found(tmp_path: Path):
    rows = [{"text": "a"}] * 300 + [{"text": "b", "rare": "x"}]
    path = written(tmp_path / "a.jsonl", "\n".join(map(json.dumps, rows)))
    assert [row.label for row in chosen(open_data(path, label="rare"), Choice())][-2:] == [
        None,
        "x",
    ]


def test_a_column_of_numbers_is_no_text():
    with pytest.raises(InputError, match=r"no column .* looks like the text.*a \(numbers\)"):
        open_data([{"a": 1, "b": [2], "c": True}])
    with pytest.raises(InputError, match=r"'text' .* has the name of a text and holds numbers"):
        open_data([{"text": 1, "body": "x"}])
    data = open_data([{"stars": 4}], text="stars")
    assert data.columns.notes[0].endswith("holds numbers and no text")
    assert problems(list(data.rows())) == ["column 'stars' holds a number, not text"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("I love it,1\nawful,0\n", "looks like data.*'1'"),
        ("It is really very good,pos\nawful,neg\n", "looks like data"),
        ("a,b\n1,2\n", "no column .* looks like the text.*must name the columns"),
        ("text;mark\ngood;1\n", "one column, 'text;mark': is it separated by ';'"),
        ("text,text\na,b\n", "two columns named 'text'"),
        ("text,label\rgood,1\rbad,0\r", "carriage return alone"),
        ('"text,label\n', "the header: broken quotes: a quote is never closed"),
    ],
)
def test_a_header_that_is_none(tmp_path: Path, content: str, message: str):
    with pytest.raises(InputError, match=message):
        open_data(written(tmp_path / "a.csv", content))


def test_texts_have_no_columns(tmp_path: Path):
    with pytest.raises(InputError, match=r"a .txt file: it has texts and no columns"):
        open_data(written(tmp_path / "a.txt", "x"), text="text")
    with pytest.raises(InputError, match=r"a list of strings"):
        open_data(["x"], label="label")


# ---- values


def test_labels_and_ids_become_text():
    values = [1, True, False, "pos", 2.0, 0.5, None, "", float("nan"), np.int64(3), [1, 2]]
    read = rows_of([{"text": "x", "label": value, "id": value} for value in values])
    expected = ["1", "true", "false", "pos", "2", "0.5", None, None, None, "3", "[1, 2]"]
    assert [row.label for row in read] == expected
    assert [row.id for row in read] == [
        label if label is not None else str(number) for number, label in enumerate(expected)
    ]


def test_values_that_are_no_text():
    values = [None, float("nan"), 5, True, ["x"], {"x": 1}, b"x", "a\ud800b", "fine"]
    read = rows_of([{"text": value} for value in values], text="text")
    assert problems(read) == [
        "column 'text' is null",
        "column 'text' holds NaN, not text",
        "column 'text' holds a number, not text",
        "column 'text' holds true, not text",
        "column 'text' holds a list, not text",
        "column 'text' holds an object, not text",
        "column 'text' holds a value of type bytes, not text",
        "column 'text' holds half a character (surrogate U+D800)",
        None,
    ]
    assert read[7].text == "a\\ud800b"


def test_pairs_that_are_none():
    values = ["b", ["b", "c"], [], ["b", 1], None, 5]
    read = rows_of([{"text": "a", "pair": value} for value in values], pair="pair")
    assert [row.pair for row in read] == ["b", ("b", "c"), None, None, None, None]
    assert problems(read) == [
        None,
        None,
        "column 'pair' holds an empty list",
        "column 'pair' holds a list with a number, not text",
        "column 'pair' is null",
        "column 'pair' holds a number, not text",
    ]


def test_nulls_numbers_and_bad_bytes_of_parquet(tmp_path: Path):
    bad = pa.Array.from_buffers(
        pa.string(),
        3,
        [None, pa.py_buffer(np.array([0, 1, 2, 3], np.int32)), pa.py_buffer(b"a\xffb")],
    )
    table = pa.table({"text": bad, "other": [None, "x", "y"], "label": [1.0, None, 0.0]})
    path = tmp_path / "a.parquet"
    pq.write_table(table, path)
    read = rows_of(path, text="text")
    assert [row.text for row in read] == ["a", "", "b"]
    assert problems(read)[1] == (
        "column 'text' holds bytes that are not UTF-8 (byte 0xff), not text"
    )
    assert [row.label for row in read] == ["1", None, "0"]
    assert problems(rows_of(path, text="other"))[0] == "column 'other' is null"
    assert problems(rows_of(path, text="label"))[0] == "column 'label' holds a number, not text"


# ---- one bad record spoils itself only


def test_broken_lines_of_json(tmp_path: Path):
    lines = [
        b'{"text": "a", "id": "x"}',
        b'{"text": "b"',
        b"",
        b"[1]",
        b'{"label": 1}',
        b'{"text": "\xff"}',
        b'{"text": "\\ud800"}',
        b'{"text": "c", "text": "d"}',
        b"[" * 100_000,
        b'{"text": NaN}',
        b'{"text": "last"}',
    ]
    read = rows_of(written(tmp_path / "a.jsonl", b"\n".join(lines)))
    assert [row.number for row in read] == list(range(10))
    starts = [
        None,
        "line 2: broken JSON: Expecting ',' delimiter at character 13",
        "line 4: JSON, but no object with named fields: a list",
        "line 5: it has no column 'text' (it has: label)",
        "line 6: not UTF-8 (byte 0xff)",
        "line 7: column 'text' holds half a character (surrogate U+D800)",
        "line 8: broken JSON: it has 'text' twice",
        "line 9: broken JSON: it is nested too deeply",
        "line 10: column 'text' holds NaN",
        None,
    ]
    for row, start in zip(read, starts, strict=True):
        assert (row.problem or "").startswith(start or "")
        assert (row.problem is None) == (start is None)
    assert (read[0].id, read[-1].text, read[4].text) == ("x", "last", '{"text": "\\xff"}')


def test_broken_records_of_csv(tmp_path: Path):
    content = (
        b"text,label\r\n"
        b"a,1\r\n"
        b"too,many,fields\r\n"
        b"few\r\n"
        b'"closed"and more,1\r\n'
        b"\xff,1\r\n"
        b"\r\n"
        b'"two\nlines",1\r\n'
        b'"never closed,1\r\n'
        b"b,1\r\n"
        b"last,0\r\n"
    )
    read = rows_of(written(tmp_path / "a.csv", content))
    assert [(row.text, row.label) for row in read if row.problem is None] == [
        ("a", "1"),
        ("two\nlines", "1"),
        ("b", "1"),
        ("last", "0"),
    ]
    assert [problem for problem in problems(read) if problem] == [
        "line 3: 3 fields, where the header names 2",
        "line 4: 1 field, where the header names 2",
        "line 5: broken quotes: a quote is closed and text follows "
        "(within a quoted text, quotes are doubled)",
        "line 6: not UTF-8 (byte 0xff); convert it first, e.g. with iconv",
        "line 10: broken quotes: a quote is never closed",
    ]
    assert [row.number for row in read] == list(range(9))


def test_a_quote_that_is_never_closed_does_not_fill_the_memory(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(delimited, "LONGEST_QUOTED", 100)
    lines = ["text,label", '"open,1', *["x,1"] * 200, 'a "word",1']
    read = rows_of(written(tmp_path / "a.csv", "\n".join(lines)))
    assert problems(read)[0] == "line 2: broken quotes: a quote is not closed within 100 B"
    assert [row.text for row in read[1:]] == ["x"] * 200 + ['a "word"']


def test_quotes_of_a_tsv_may_be_plain_characters(tmp_path: Path):
    """As GLUE has them: pandas with its defaults would join the second line and the third."""
    lines = ["sentence\tlabel", '"so it begins\t1', 'and ends"\t0', '"yes" he said\t1', 'a "b\t0']
    data = open_data(written(tmp_path / "a.tsv", "\n".join(lines)))
    expected = ['"so it begins', 'and ends"', '"yes" he said', 'a "b']
    assert [row.text for row in data.rows()] == expected
    assert data.columns.notes[0].startswith("quotes: read as characters of the text")


def test_a_plain_quote_far_down_a_tsv(tmp_path: Path):
    lines = ["sentence\tlabel", *["x\t1"] * 1500, '"yes" he said\t1', '"open\t1', "last\t0"]
    read = rows_of(written(tmp_path / "a.tsv", "\n".join(lines)))
    assert [row.text for row in read[-3:]] == ['"yes" he said', '"open', "last"]
    assert not any(problems(read))


def test_a_line_that_is_not_utf_8(tmp_path: Path):
    read = rows_of(written(tmp_path / "a.txt", b"one\n\n\xe9t\xe9\nlast\n"))
    assert [row.number for row in read] == [0, 2, 3]
    assert problems(read) == [
        None,
        "line 3: not UTF-8 (byte 0xe9); convert it first, e.g. with iconv",
        None,
    ]
    assert read[1].text == "\\xe9t\\xe9"


def test_a_line_without_end_is_cut(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(files, "LONGEST_LINE", 50)
    read = rows_of(written(tmp_path / "a.txt", "x" * 500 + "\nlast"))
    assert problems(read) == ["line 1: longer than 50 B", None]
    assert read[1].text == "last"


# ---- what is refused as a whole


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", "", "holds no records"),
        ("a.txt", "\n \n", "holds no records"),
        ("a.csv", "", "holds no records"),
        ("a.csv", "text,label\n", "holds no records. It has a header only"),
        ("a.jsonl", "\n", "holds no records"),
        ("a.json", " ", "holds no records"),
        ("a.json", "[]", "holds no records"),
        ("a.txt.gz", "", "holds no records"),
        ("a.xlsx", "x", r"ends in '.xlsx', which is not read. Data is .txt, .tsv"),
        ("README", "x", "has no ending"),
        ("a.gz", "x", "has no ending"),
        ("a.jsonl", "{}\n{}", "have no fields"),
        ("a.jsonl", "[\n{},\n", "no record .* can be read. The first, line 1.*is named .json"),
        ("a.jsonl", "nonsense", "no record .* can be read"),
        ("a.json", '{"text": "a"}\n{"text": "b"}', "If it has one object a line, name it .jsonl"),
        ("a.json", '{"data": []}', "holds an object, where a list of objects is read"),
        ("a.json", "[1, 2]", "no record .* can be read. The first, record 0"),
        ("a.json", b'["\xff"]', "not UTF-8"),
        ("a.txt", b"\xe9\n\xe8\n", "no record .* can be read. The first, line 1: not UTF-8"),
        ("a.txt", "words".encode("utf-16"), "is in UTF-16"),
        ("a.csv", "text\nwords".encode("utf-16"), "is in UTF-16"),
        ("a.parquet", "nonsense", "cannot read .* as Parquet"),
        ("a.parquet", "", "cannot read .* as Parquet"),
    ],
)
def test_files_that_are_refused(tmp_path: Path, name: str, content: str | bytes, message: str):
    path = written(tmp_path / name, content)
    with pytest.raises(InputError, match=message) as caught:
        open_data(path)
    assert "\n" not in str(caught.value)


def test_what_is_not_there(tmp_path: Path):
    for missing in (tmp_path / "no.csv", "", "a\0b", "x" * 5000):
        with pytest.raises(InputError):
            open_data(missing)
    with pytest.raises(InputError, match=r"there is no file or folder"):
        open_data("not bad at all")


def test_a_gzip_file_that_is_cut_off_or_none(tmp_path: Path):
    whole = gzip.compress(b"\n".join(b"%d" % number for number in range(100_000)))
    path = tmp_path / "a.txt.gz"
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"is cut off"):
        rows_of(path)
    path.write_bytes(b"plain words")
    with pytest.raises(InputError, match=r"no sound gzip file"):
        rows_of(path)
    path.write_bytes(whole[:1000] + bytes([whole[1000] ^ 255]) + whole[1001:])
    with pytest.raises(InputError, match=r"gzip|cut off"):
        rows_of(path)


def test_a_json_list_that_is_too_large(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(plain, "LARGEST_JSON", 100)
    for name in ("a.json", "a.json.gz"):
        path = written(tmp_path / name, json.dumps([{"text": "x" * 200}]))
        with pytest.raises(InputError, match=r"larger than 100 B.*name it .jsonl"):
            open_data(path)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ([], "holds no records"),
        ([("a", "b")], "its first item is a tuple"),
        ([1], "its first item is a int"),
        (["a", {"text": "b"}], "item 1 is a dict, the first is a str"),
        ([{"text": "b"}, "a"], "item 1 is a str, the first is a dict"),
        (b"words", "not a bytes"),
        (pd.DataFrame({"text": ["a"]}), r"not a DataFrame. .*to_dict\('records'\)"),
        (iter(["a"]), "not a list_iterator"),
    ],
)
def test_python_values_that_are_refused(source: Any, message: str):
    with pytest.raises(InputError, match=message):
        open_data(source)


def test_without_pyarrow_the_way_to_it_is_told(tmp_path: Path, monkeypatch):
    paths = as_parquet(tmp_path, TRICKY), as_dataset(tmp_path, TRICKY)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for path in paths:
        with pytest.raises(InputError, match=r"pip install 'whence\[runs\]'"):
            open_data(path)
    assert rows_of(as_csv(tmp_path, TRICKY))  # which needs none


# ---- folders


def test_a_folder_of_parquet(tmp_path: Path):
    for name, text in (("b", "second"), ("a", "first"), ("_metadata", "not this")):
        pq.write_table(pa.table({"text": [text]}), tmp_path / f"{name}.parquet")
    written(tmp_path / "README.md", "x")
    assert [row.text for row in rows_of(tmp_path)] == ["first", "second"]
    with pytest.raises(InputError, match=r"not divided into splits"):
        open_data(tmp_path, split="train")
    pq.write_table(pa.table({"other": ["x"]}), tmp_path / "c.parquet")
    with pytest.raises(InputError, match=r"has no column 'text', which 'a.parquet' beside it has"):
        open_data(tmp_path)


def test_a_folder_of_parquet_with_the_names_of_the_hub(tmp_path: Path):
    for name in ("test-00000-of-00001", "train-00000-of-00002", "train-00001-of-00002"):
        pq.write_table(pa.table({"text": [name]}), tmp_path / f"{name}.parquet")
    with pytest.raises(InputError, match=r"has 2 splits: test, train. Pass one"):
        open_data(tmp_path)
    read = rows_of(tmp_path, split="train")
    assert [row.text for row in read] == ["train-00000-of-00002", "train-00001-of-00002"]


def test_splits_of_datasets(tmp_path: Path):
    as_dataset(tmp_path, TRICKY, "train")
    as_dataset(tmp_path, TRICKY[:1], "test")
    written(tmp_path / "dataset_dict.json", json.dumps({"splits": ["train", "test"]}))
    with pytest.raises(InputError, match=r"has 2 splits: train, test. Pass one"):
        open_data(tmp_path)
    with pytest.raises(UnknownName, match=r"named 'tset'. Did you mean 'test'"):
        open_data(tmp_path, split="tset")
    assert len(rows_of(tmp_path, split="test")) == 1
    assert len(rows_of(tmp_path / "train")) == len(rows_of(tmp_path / "train", split="train")) == 4
    with pytest.raises(InputError, match=r"it is the split 'train'"):
        open_data(tmp_path / "train", split="validation")
    written(tmp_path / "dataset_dict.json", json.dumps({"splits": ["test"]}))
    assert len(rows_of(tmp_path)) == 1


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "holds no object"),
        ("{}", "names no files"),
        ('{"_data_files": [{"filename": "../../secret.arrow"}]}', "names no files"),
        ('{"_data_files": [3]}', "names no files"),
        ('{"_data_files": [{"filename": "gone.arrow"}]}', "cannot read .*gone.arrow"),
        ('{"_data_files": [], "_indices_data_files": [1]}', "old version of `datasets`"),
    ],
)
def test_a_damaged_folder_of_datasets(tmp_path: Path, state: str, message: str):
    path = as_dataset(tmp_path, TRICKY)
    written(path / "state.json", state)
    with pytest.raises(InputError, match=message):
        open_data(path)


def test_a_stream_that_is_cut_off(tmp_path: Path):
    path = as_dataset(tmp_path, TRICKY * 100)
    part = path / "data-00001-of-00002.arrow"
    part.write_bytes(part.read_bytes()[:-500])
    with pytest.raises(InputError, match=r"cannot read .*data-00001-of-00002.arrow"):
        rows_of(path)


def test_a_folder_of_other_things(tmp_path: Path):
    with pytest.raises(InputError, match=r"Found: nothing"):
        open_data(tmp_path)
    for number in range(7):
        written(tmp_path / f"{number}.png", "x")
    with pytest.raises(InputError, match=r"neither Parquet files nor .*Found: 0.png, .* …"):
        open_data(tmp_path)


def test_splits_of_what_has_none(tmp_path: Path):
    for source in (["a"], written(tmp_path / "a.txt", "x")):
        with pytest.raises(InputError, match=r"has no splits"):
            open_data(source, split="train")


# ---- samples


def numbered(count: int) -> Data:
    return open_data([str(number) for number in range(count)])


def test_limit_comes_before_sample():
    data = numbered(100)
    assert [row.number for row in chosen(data, Choice(limit=3))] == [0, 1, 2]
    drawn_rows = [row.number for row in chosen(data, Choice(sample=5, limit=10))]
    assert len(set(drawn_rows)) == 5
    assert max(drawn_rows) < 10
    assert len(list(chosen(data, Choice(sample=500)))) == 100
    assert len(list(chosen(data, Choice(limit=500)))) == 100


def test_a_sample_is_the_same_in_every_format_and_on_every_machine(tmp_path: Path):
    rows = [{"text": f"text {number}", "label": number % 2} for number in range(200)]
    csv_sample, json_sample, parquet_sample = (
        list(chosen(open_data(write(tmp_path, rows)), Choice(sample=5, seed=3)))
        for write in (as_csv, as_json_lines, as_parquet)
    )
    assert csv_sample == json_sample == parquet_sample
    # written down once: another numpy or another machine must draw the same
    assert [row.number for row in csv_sample] == [20, 28, 104, 166, 186]
    assert csv_sample[0].id == "20"


@given(count=st.integers(0, 50), size=st.integers(1, 60), seed=st.integers(0, 10**6))
def test_a_sample_is_in_order_without_repeats_and_grows(count: int, size: int, seed: int):
    places = drawn(count, size, seed)
    assert places == sorted(set(places))
    assert len(places) == min(size, count)
    assert set(places) <= set(range(count))
    assert set(places) <= set(drawn(count, size + 1, seed))


def test_a_sample_is_those_with_the_smallest_bits():
    """Drawn again slowly, by a sort of all places."""
    bits = np.random.PCG64(3).random_raw(200).tolist()
    assert drawn(200, 5, 3) == sorted(sorted(range(200), key=bits.__getitem__)[:5])


def test_a_sample_does_not_depend_on_how_many_bits_are_drawn_at_once(monkeypatch):
    whole = drawn(1000, 20, 0)
    monkeypatch.setattr("whence.runs.data.DRAWN_AT_ONCE", 7)
    assert drawn(1000, 20, 0) == whole


def test_each_place_and_each_pair_is_drawn_as_often():
    """3 of 10, by 3,000 seeds; a sampler that favours the first places would fail."""
    singles: Counter[int] = Counter()
    pairs: Counter[tuple[int, int]] = Counter()
    for seed in range(3000):
        a, b, c = drawn(10, 3, seed)
        singles.update((a, b, c))
        pairs.update(((a, b), (a, c), (b, c)))
    # 900 and 200 are expected, with standard deviations of 25 and 14: five of them
    assert all(abs(singles[place] - 900) < 125 for place in range(10))
    assert len(pairs) == 45
    assert all(abs(count - 200) < 70 for count in pairs.values())


def test_rows_with_a_problem_are_drawn_too(tmp_path: Path):
    path = written(tmp_path / "a.jsonl", '{"text": "a"}\nbroken\nbroken')
    assert len(list(chosen(open_data(path), Choice(sample=3)))) == 3


@pytest.mark.parametrize("wrong", [{"sample": 0}, {"limit": 0}, {"sample": -1}, {"seed": -1}])
def test_wrong_numbers_are_refused_at_once(wrong: dict[str, int]):
    with pytest.raises(InputError, match=r"must be at least"):
        Choice(**wrong)


# ---- streaming


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.jsonl"])
def test_ten_rows_of_many_do_not_read_the_file(tmp_path: Path, monkeypatch, name: str):
    """Counted in lines, as time depends on the machine."""
    line = {"a.txt": "words", "a.csv": "words,1", "a.jsonl": '{"text": "words"}'}[name]
    head = "text,label\n" if name == "a.csv" else ""
    path = written(tmp_path / name, head + f"{line}\n" * 100_000)

    read = 0
    make = files._line

    def counted(number: int, content: bytes) -> files.Line:
        nonlocal read
        read += 1
        return make(number, content)

    monkeypatch.setattr(files, "_line", counted)
    rows = list(chosen(open_data(path), Choice(limit=10)))
    assert len(rows) == 10
    assert read < 300


# ---- the digest


# rows are made in the test: where types are checked, making one draws, and a strategy may not
fields_of_rows = st.lists(
    st.builds(
        dict,
        number=st.integers(0, 3),
        text=st.text("ab", max_size=2),
        pair=st.one_of(
            st.none(),
            st.text("ab", max_size=2),
            st.lists(st.text("ab", max_size=2), max_size=2).map(tuple),
        ),
        label=st.one_of(st.none(), st.text("ab", max_size=1)),
        id=st.text("ab", max_size=1),
        problem=st.one_of(st.none(), st.text("ab", max_size=1)),
    ),
    max_size=3,
)


@given(some=fields_of_rows, others=fields_of_rows)
def test_different_rows_have_different_digests(
    some: list[dict[str, Any]], others: list[dict[str, Any]]
):
    a, b = [Row(**fields) for fields in some], [Row(**fields) for fields in others]
    assert (digest_of(a) == digest_of(b)) == (a == b)


@pytest.mark.parametrize(
    "change",
    [
        {"number": 1},
        {"text": "ab"},
        {"pair": None},
        {"pair": ("b", "c")},
        {"pair": ("bc",)},
        {"label": None},
        {"label": ""},
        {"id": "e"},
        {"problem": ""},
    ],
)
def test_each_field_counts(change: dict[str, Any]):
    row = Row(0, "a", "bc", "d", "0")
    assert digest_of([row]) != digest_of([replace(row, **change)])


def test_what_stands_where_counts():
    """Fields that are only put one after the other would give the same bytes."""
    assert digest_of([Row(0, "ab", "c")]) != digest_of([Row(0, "a", "bc")])
    assert digest_of([Row(0, "a", ("b", "c"))]) != digest_of([Row(0, "a", ("bc",))])
    assert digest_of([Row(0, "a"), Row(1, "b")]) != digest_of([Row(1, "b"), Row(0, "a")])
    assert digest_of(iter([Row(0, "\ud800")])) != digest_of([])


def test_a_foil_is_read_where_it_is_named_and_only_then() -> None:
    rows = [{"text": "the cats", "label": " are", "foil": " is"}]
    (bare,) = open_data(rows).rows()
    assert bare.foil is None
    (named,) = open_data(rows, foil="foil").rows()
    assert (named.label, named.foil) == (" are", " is")
    # another foil is another question, and no foil is the data as it was before there were any
    (other,) = open_data([rows[0] | {"foil": " was"}], foil="foil").rows()
    assert len({digest_of([row]) for row in (bare, named, other)}) == 3
    with pytest.raises(UnknownName, match="foils"):
        open_data(rows, foil="foils")
