"""Folders that the real `datasets` library saved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from whence.core.errors import InputError, UnknownName
from whence.runs.data import Row, open_data

datasets: Any = pytest.importorskip(
    "datasets",
    reason="the library that writes these folders is not installed: pip install datasets",
)

TEXTS = ["not bad", "a thin plot", "so good", "Æther – 漢字\nwith two lines", "dull"]
LABELS = [1, 0, 1, -1, 0]  # -1 says that there is no label


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    datasets.disable_progress_bars()
    yield
    datasets.enable_progress_bars()


@pytest.fixture
def reviews() -> Any:
    features = datasets.Features(
        {
            "text": datasets.Value("string"),
            "label": datasets.ClassLabel(names=["neg", "pos"]),
        }
    )
    return datasets.Dataset.from_dict({"text": TEXTS, "label": LABELS}, features=features)


def rows_of(path: Path, **columns: Any) -> list[Row]:
    return list(open_data(path, **columns).rows())


def test_rows_and_the_names_of_their_classes(reviews: Any, tmp_path: Path) -> None:
    # would catch: the number of a class in place of its name; -1 taken for the last class
    reviews.save_to_disk(tmp_path / "saved")
    rows = rows_of(tmp_path / "saved")
    assert [row.text for row in rows] == TEXTS
    assert [row.label for row in rows] == ["pos", "neg", "pos", None, "neg"]
    assert [row.number for row in rows] == list(range(5))
    assert all(row.problem is None for row in rows)


def test_a_parquet_file_of_datasets_has_the_same_classes(reviews: Any, tmp_path: Path) -> None:
    reviews.to_parquet(tmp_path / "reviews.parquet")
    labels = [row.label for row in rows_of(tmp_path / "reviews.parquet")]
    assert labels == ["pos", "neg", "pos", None, "neg"]


def test_classes_that_were_cast_to_numbers_stay_numbers(reviews: Any, tmp_path: Path) -> None:
    numbers = reviews.cast_column("label", datasets.Value("int64"))
    numbers.save_to_disk(tmp_path / "saved")
    assert [row.label for row in rows_of(tmp_path / "saved")] == ["1", "0", "1", "-1", "0"]


@pytest.mark.parametrize("shards", [1, 2, 5])
def test_several_shards_are_read_in_order(reviews: Any, tmp_path: Path, shards: int) -> None:
    reviews.save_to_disk(tmp_path / "saved", num_shards=shards)
    assert len(list((tmp_path / "saved").glob("*.arrow"))) == shards
    rows = rows_of(tmp_path / "saved")
    assert [row.text for row in rows] == TEXTS
    assert [row.number for row in rows] == list(range(5))


def test_rows_that_were_chosen_before_saving(reviews: Any, tmp_path: Path) -> None:
    # would catch: the table that lies behind the choice, read as if nothing had been chosen
    chosen = {
        "selected": reviews.select([4, 0, 2]),
        "shuffled": reviews.shuffle(seed=3),
        "filtered": reviews.filter(lambda record: record["label"] == 0),
        "joined": datasets.concatenate_datasets([reviews, reviews.select([1])]),
    }
    for name, dataset in chosen.items():
        dataset.save_to_disk(tmp_path / name)
        assert [row.text for row in rows_of(tmp_path / name)] == list(dataset["text"])
    assert [row.text for row in rows_of(tmp_path / "selected")] == [TEXTS[i] for i in (4, 0, 2)]
    assert [row.text for row in rows_of(tmp_path / "shuffled")] != TEXTS


def test_splits(reviews: Any, tmp_path: Path) -> None:
    splits = datasets.DatasetDict({"train": reviews, "test": reviews.select([1, 2])})
    splits.save_to_disk(tmp_path / "saved")
    assert [row.text for row in rows_of(tmp_path / "saved", split="test")] == TEXTS[1:3]
    assert len(rows_of(tmp_path / "saved" / "train")) == 5
    with pytest.raises(InputError, match=r"has 2 splits: train, test"):
        open_data(tmp_path / "saved")
    with pytest.raises(UnknownName, match=r"Did you mean 'test'"):
        open_data(tmp_path / "saved", split="tests")


def test_a_set_format_hides_no_column(reviews: Any, tmp_path: Path) -> None:
    reviews.with_format("numpy", columns=["text"]).save_to_disk(tmp_path / "saved")
    assert rows_of(tmp_path / "saved")[0].label == "pos"


def test_pairs_and_lists_of_choices(tmp_path: Path) -> None:
    pairs = datasets.Dataset.from_dict(
        {"premise": ["it rains"], "hypothesis": ["it is wet"], "endings": [["a", "b"]]}
    )
    pairs.save_to_disk(tmp_path / "saved")
    (row,) = rows_of(tmp_path / "saved", text="premise", pair="endings")
    assert (row.text, row.pair) == ("it rains", ("a", "b"))
    (row,) = rows_of(tmp_path / "saved", text="premise", pair="hypothesis")
    assert row.pair == "it is wet"


def test_many_rows_come_in_many_batches(tmp_path: Path) -> None:
    texts = [f"text {number}" for number in range(2500)]
    datasets.Dataset.from_dict({"text": texts}).save_to_disk(tmp_path / "saved", num_shards=3)
    rows = rows_of(tmp_path / "saved")
    assert [row.text for row in rows] == texts
    assert [row.number for row in rows] == list(range(2500))


def test_a_data_set_without_rows(reviews: Any, tmp_path: Path) -> None:
    reviews.select([]).save_to_disk(tmp_path / "saved")
    with pytest.raises(InputError, match=r"holds no records"):
        open_data(tmp_path / "saved")


def test_a_class_that_does_not_exist_is_the_problem_of_its_row(tmp_path: Path) -> None:
    import json

    import pyarrow as pa
    import pyarrow.parquet as pq

    # `datasets` refuses to write it; a file that another program changed may hold it
    features = {"label": {"names": ["neg", "pos"], "_type": "ClassLabel"}}
    written = json.dumps({"info": {"features": features}})
    table = pa.table({"text": ["good", "bad"], "label": [7, 0]})
    table = table.replace_schema_metadata({"huggingface": written})
    pq.write_table(table, tmp_path / "odd.parquet")
    first, second = rows_of(tmp_path / "odd.parquet")
    assert "the class 7, and there are 2 (neg, pos)" in (first.problem or "")
    assert second.label == "neg"


@pytest.mark.parametrize("written", ["{", "[]", '{"info": 3}', '{"info": {"features": [1]}}'])
def test_metadata_of_another_kind_are_no_classes(tmp_path: Path, written: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"text": ["good"], "label": [1]})
    table = table.replace_schema_metadata({"huggingface": written})
    pq.write_table(table, tmp_path / "odd.parquet")
    assert rows_of(tmp_path / "odd.parquet")[0].label == "1"
