"""Every sentence that can be said stands in the catalogue, with its condition and an example."""

from __future__ import annotations

import sys
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from tests.reader import ROOT


@cache
def catalogue() -> ModuleType:
    path = ROOT / "docs" / "assets" / "sentences.py"
    spec = spec_from_file_location("sentences", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@cache
def every_speaker() -> tuple:
    return tuple(catalogue().with_examples(catalogue().speakers()))


def shown() -> str:
    return Path(catalogue().PAGE).read_text(encoding="utf-8")


def test_every_function_that_makes_sentences_says_when():
    lacking = [one for one in catalogue().lacking(catalogue().speakers()) if "condition" in one]
    assert not lacking, "\n".join(lacking)


def test_every_function_that_makes_sentences_is_in_the_catalogue():
    sentences = catalogue()
    made = sentences.without_examples(sentences.page(sentences.speakers()))
    assert sentences.without_examples(shown()) == made, "run: python docs/assets/sentences.py"


@pytest.mark.slow  # hundreds of made-up results of each kind say all that they can
def test_every_one_has_an_example():
    lacking = catalogue().lacking(list(every_speaker()))
    assert not lacking, "\n".join(lacking)


def test_what_is_left_out_is_there_and_has_a_reason():
    sentences = catalogue()
    left_out = sentences.NO_SENTENCES
    assert all(reason.strip() for reason in left_out.values())
    known = {
        f"{path.relative_to(sentences.SOURCE).as_posix()}:{one.name}"
        for path in sentences.SOURCE.rglob("*.py")
        for one in sentences._speakers_of(
            path.relative_to(sentences.SOURCE).as_posix(), path.read_text(encoding="utf-8")
        )
    }
    for path in sentences.SOURCE.rglob("*.js"):
        file = path.relative_to(sentences.SOURCE).as_posix()
        known |= {f"{file}:{one.name}" for one in sentences._speakers_of_script(path)}
    assert left_out.keys() <= known


def test_a_function_without_a_condition_is_found():
    source = '''
def quiet(x):
    """Said where nothing is."""
    return f"nothing was found at {x}."


def loud(x):
    """Says something."""
    if x:
        raise ValueError("this is no sentence of a page")
    return "there is much to say"


# Said at the end.
FOOT = "that is all there is"
'''
    found = list(catalogue()._speakers_of("views/made.py", source))
    assert [(one.name, one.says) for one in found] == [
        ("quiet", ("nothing was found at ….",)),
        ("loud", ("there is much to say",)),
        ("FOOT", ("that is all there is",)),
    ]
    assert [one.when for one in found] == ["Said where nothing is.", "", "Said at the end."]
    assert [line.split(": ")[1] for line in catalogue().lacking(found)] == [
        "no condition",
        "no example",
        "no example",
    ]
