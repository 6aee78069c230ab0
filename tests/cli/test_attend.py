"""whence attend as a user types it."""

from __future__ import annotations

import json

import pytest

TEXT = "the food is great , but the service is slow"


def test_the_page_has_its_three_views_unasked(run, tmp_path) -> None:
    page = tmp_path / "heads.html"
    done = run("attend", TEXT, "--html", str(page))
    assert done.code == 0
    content = page.read_text()
    assert all(f"{name} view" in content for name in ("Head", "Model", "Neuron"))
    assert "wrote" in done.err
    smaller = tmp_path / "no.html"
    run("attend", TEXT, "--html", str(smaller), "--no-neurons")
    assert smaller.stat().st_size < page.stat().st_size


def test_heads_are_listed_with_what_is_lost_without_them(run) -> None:
    done = run("attend", TEXT, "--heads", "--json")
    rows = json.loads(done.out)["kinds"]["encoder"]["heads"]
    assert len(rows) == 48
    columns = {"layer", "head", "pattern", "entropy", "previous", "first"}
    columns |= {"separators", "punctuation", "output_change"}
    assert columns <= set(rows[0])
    assert max(r["output_change"] for r in rows) > 0.001
    shown = run("attend", TEXT, "--heads").out
    assert "whose loss changes the output most" in shown
    assert "encoder: what each head does" in shown


def test_two_texts_are_compared(run, tmp_path) -> None:
    first = "The doctor asked the nurse a question. She"
    second = "The doctor asked the nurse a question. He"
    probe = json.loads(run("attend", "--compare", first, second, "--json").out)
    places = zip(probe["places"], probe["changed"], strict=True)
    assert [place for place, changed in places if changed] == ["She → He"]
    strongest = probe["strongest"][0]
    assert strongest["change"] == pytest.approx(strongest["second"] - strongest["first"])
    page = tmp_path / "probe.html"
    done = run("attend", "--compare", first, second, "--html", str(page))
    assert "what She → He looks at" in done.out
    assert "What differs between two texts" in page.read_text()
    assert "The model says" in done.out
    assert "beside swaps that should not matter" in done.out


def test_templates_give_an_interval(run, tmp_path) -> None:
    file, page = tmp_path / "templates.txt", tmp_path / "page.html"
    few = "words: she\nagainst: he\n{} was late\nwe liked {}\n"
    file.write_text(
        f"{few}nobody saw {{}} there\nit is about {{}}\nthe cast adored {{}}\nwe liked {{}}\n"
    )
    done = run("attend", "--templates", str(file), "--html", str(page))
    assert done.code == 0
    assert "Over 5 templates, the probability of" in done.out
    assert "1 template that stood there before: not counted again." in done.out
    assert "95 % interval" in done.out
    assert "control: someone →" in done.out
    assert "does it matter?" in page.read_text()
    stored = json.loads(run("attend", "--templates", str(file), "--json").out)
    assert len(stored["contrast"]["differences"]) == 5
    assert len(stored["contrast"]["interval"]) == 2
    other = ["--words", "Anna", "--against", "Paul", "--control", "one,all", "--json"]
    stored = json.loads(run("attend", "--templates", str(file), *other).out)
    assert stored["second"] == "Anna"
    assert [control["name"] for control in stored["controls"]] == ["one → all"]
    # the enemy: NaN, which JSON does not know, so that the command fails
    file.write_text(few)
    stored = json.loads(run("attend", "--templates", str(file), "--json").out)
    assert (stored["verdict"], stored["contrast"]["interval"]) == ("too few templates", None)


def test_the_summary_says_what_the_heads_do(run) -> None:
    shown = " ".join(run("attend", TEXT).out.split())
    assert "Of 48 heads, " in shown
    assert "the word before 1 layer 0, head 2 99.8 %" in shown
    assert "Worth a look: layer " in shown
    assert "Attention says where a head reads, not what matters" in shown
    stored = json.loads(run("attend", TEXT, "--json").out)
    assert sum(h["heads"] for h in stored["kinds"]["encoder"]["habits"]) == 48


def test_what_was_generated_is_printed(run) -> None:
    prompt = "once upon a time"
    done = run("attend", prompt, "--model", "writer", "--generate", "4")
    lines = done.out.splitlines()
    assert lines[0].split() == ["prompt", *prompt.split()]
    stored = json.loads(run("attend", prompt, "--model", "writer", "--generate", "4", "--json").out)
    assert lines[1].split(maxsplit=1) == ["wrote", stored["written"].strip()]


def test_only_some_layers_and_heads(run) -> None:
    done = run("attend", TEXT, "--keep", "mean", "--layers", "0,3", "--json")
    encoder = json.loads(done.out)["kinds"]["encoder"]
    assert encoder["layers_heads_from_to"][:2] == [2, 1]
    assert [m.split(".")[3] for m in encoder["modules"]] == ["0", "3"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--compare", "one text"], "--compare takes two texts"),
        (["so good", "so bad"], "--compare shows what differs between two."),
        (["so good", "so bad"], "2 texts were given, 'so good' and 'so bad': put one text"),
        (["a", "b", "c"], "3 texts were given, 'a' and 'b' …: put one text in quotes, or use --f"),
        ([TEXT, "--keep", "some"], "neither a word"),
        ([TEXT, "--keep", "99"], "head 99 is outside the 12 heads"),
        ([TEXT, "--layers", "7"], "layer 7 is outside the 4 layers"),
        ([TEXT, "--memory", "1kB"], "budget is 1 kB"),
        ([TEXT, "--memory", "lots"], "not 'lots'"),
        ([TEXT, "--generate", "3"], "does not write text"),
        ([TEXT, "--html", "/nowhere/x.html"], "does not exist"),
        ([TEXT, "--words", "she"], "--words means nothing beside a text"),
        ([TEXT, "--control", "one,all"], "--control goes with --compare"),
        (["--templates", "/nowhere.txt"], "cannot read"),
        ([TEXT, "--templates", "/nowhere.txt"], "no other text"),
        (["--compare", "a", "b", "--control", "one"], "--control takes two words"),
    ],
)
def test_mistakes_end_with_2_and_one_line(run, arguments: list[str], says: str) -> None:
    done = run("attend", *arguments)
    assert done.code == 2
    assert says in done.err
    assert done.err.count("\n") <= 3


def test_a_forecast_is_printed_where_it_matters(run, monkeypatch) -> None:
    import whence.cli.running as running

    monkeypatch.setattr(running, "LOUD", 10)
    assert "forecast: attention maps need about" in run("attend", TEXT).err
    done = run("explain", TEXT, "--method", "rollout", "--no-evidence")
    assert "forecast: the passes of rollout" in done.err
    done = run("explain", TEXT, "--method", "attention-mean", "--memory", "1kB")
    assert done.code == 2
    assert "a larger budget" in done.err


def test_a_setting_is_switched_off_by_no(run) -> None:
    rollout = ("explain", TEXT, "--method", "rollout", "--no-evidence", "--json")
    plain = json.loads(run(*rollout).out)
    bare = json.loads(run(*rollout, "--no-residual").out)
    assert (plain["settings"]["residual"], bare["settings"]["residual"]) == (True, False)
    assert run("explain", TEXT, "--method", "rollout", "--no-start-layer").code == 2
