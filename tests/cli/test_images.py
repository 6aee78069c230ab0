"""An image model on the command line: a file goes in, a grid and a page come out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import whence as wh
from tests.families import build

Image = pytest.importorskip("PIL.Image")


@pytest.fixture(scope="module")
def vit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small random ViT on disk, with the processor that scales a picture to 16 × 16 pixels."""
    from transformers import ViTImageProcessorPil

    path = tmp_path_factory.mktemp("models") / "vit"
    build("vit").hf.save_pretrained(path)
    ViTImageProcessorPil(size={"height": 16, "width": 16}).save_pretrained(path)
    return path


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    """Wider than high, bright in one corner."""
    pixels = np.zeros((40, 60, 3), dtype=np.uint8)
    pixels[:10, :15] = (255, 240, 128)
    path = tmp_path / "one picture.png"
    Image.fromarray(pixels).save(path)
    return path


def test_a_file_goes_in_and_a_grid_comes_out(run, vit, picture):
    done = run("explain", picture, "--model", vit, "--method", "gradient-l2")
    assert (done.code, done.err) == (0, "")
    grid = [line for line in done.out.splitlines() if line and set(line) <= set(" ░▒▓█")]
    assert len(grid) == 4
    assert max(map(len, grid)) == 8
    every = run("explain", picture, "--model", vit, "--method", "gradient-l2", "--all")
    assert "patch 0,0" in every.out
    # the grid shows all sixteen; the list only the strongest
    assert done.out.count("\npatch ") == 8


def test_the_scores_are_those_of_the_library_on_the_same_picture(run, vit, picture):
    done = run("explain", picture, "--model", vit, "--method", "gradient-l2", "--json")
    a = wh.Attribution.from_dict(json.loads(done.out))
    direct = wh.explain(wh.load(vit), str(picture), "gradient-l2", evidence=False)
    assert a.scores.tolist() == direct.scores.tolist()
    assert a.passage.pixels is not None
    # the processor's work was done: the bright corner is where it was, scaled to the model's size
    assert a.passage.pixels.shape == (3, 16, 16)
    assert a.passage.pixels[:, :3, :3].min() > a.passage.pixels[:, 8:, 8:].max()


def test_compare_draws_every_method_and_the_page_has_the_picture_once(run, vit, picture, tmp_path):
    page = tmp_path / "page.html"
    done = run(
        "compare",
        picture,
        "--model",
        vit,
        "--methods",
        "gradient-l2,random",
        "--full",
        "--html",
        page,
    )
    assert done.code == 0
    assert "gradient-l2    random" in done.out  # their grids, side by side
    html = page.read_text()
    assert html.count("data:image/png;base64,") == 1
    assert html.count('class="patches"') == 2


def test_several_files_are_several_images_for_an_image_model_only(
    run, vit, folder, picture, tmp_path
):
    other = tmp_path / "other.png"
    Image.new("RGB", (16, 16), "white").save(other)
    done = run("explain", picture, other, "--model", vit, "--method", "gradient-l2", "--json")
    first, second = (json.loads(line) for line in done.out.splitlines())
    assert first["scores"] != second["scores"]
    refused = run("explain", picture, other, "--model", folder, "--method", "gradient-l2")
    assert refused.code == 2
    assert "reads text" in refused.err
    assert refused.out == ""


def test_paths_come_through_a_pipe_too(run, vit, picture):
    done = run("predict", "--model", vit, "--json", stdin=f"{picture}\n{picture}\n".encode())
    labels = [json.loads(line)["label"] for line in done.out.splitlines()]
    assert len(labels) == 2
    assert labels[0] == labels[1]


@pytest.mark.parametrize("name", ["missing.png", "notes.txt", ""])
def test_what_is_no_image_is_named_in_one_line(run, vit, tmp_path, name):
    (tmp_path / "notes.txt").write_text("not bad")
    done = run("explain", tmp_path / name, "--model", vit, "--method", "gradient-l2")
    assert done.code == 2
    assert done.out == ""
    assert done.err.startswith("whence: cannot read the image ")
    assert done.err.count("\n") == 1
