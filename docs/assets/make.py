"""Draw the pictures of the README and of docs/attention.md, from the real program.

``python docs/assets/make.py``; it needs chromium. ``python docs/assets/make.py RUN`` draws the page
of a run instead, for docs/runs.md: there it is of 120 sentences of Rotten Tomatoes' test data.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright
from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

HERE = Path(__file__).parent
TEXT = (
    "the food is great and the selection on the menu is great "
    "but the service is not bad prices are fine"
)
COLUMNS = 124
LOOKED_AT = "the food is great but the service is not bad"
PAGE = (
    "<style>body{{margin:0;padding:22px 26px;background:#1a1b1f;color:#d8dade;width:max-content}}"
    "pre{{margin:0;font:15px/1.32 'DejaVu Sans Mono',monospace}} {stylesheet}</style>"
    "<pre>{code}</pre>"
)


def coloured_output(report: Path) -> str:
    """What the program prints into a terminal of 16 million colours; it writes the report too."""
    environment = {
        **os.environ,
        "FORCE_COLOR": "1",
        "COLORTERM": "truecolor",
        "TERM": "xterm-256color",
        "COLUMNS": str(COLUMNS),
    }
    command = [sys.executable, "-m", "whence.cli.main", "compare", TEXT, "--html", str(report)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout


def as_page(ansi: str) -> str:
    """A terminal's output as HTML."""
    console = Console(record=True, width=COLUMNS, file=open(os.devnull, "w"))  # noqa: SIM115
    console.print(Text(f'$ whence compare "{TEXT}"', style="bold"))
    console.print(Text.from_ansi("\n" + ansi))
    return console.export_html(theme=DIMMED_MONOKAI, code_format=PAGE, inline_styles=True)


def shoot(
    browser: Browser,
    page: Path,
    picture: Path,
    width: int,
    whole: str,
    before: str | None = None,
    scale: float = 1.25,
) -> None:
    """A picture of one element, down to where ``before`` begins.

    It has 256 colours: that takes a third of the bytes, and the difference is not seen.
    """
    context = browser.new_context(
        viewport={"width": width, "height": 700}, color_scheme="light", device_scale_factor=scale
    )
    tab = context.new_page()
    tab.goto(page.as_uri())
    box = tab.locator(whole).bounding_box()
    assert box is not None
    if before is not None:
        end = tab.locator(before).first.bounding_box()
        assert end is not None
        box["height"] = end["y"] - box["y"] - 8
    tab.screenshot(path=picture, clip=box, full_page=True)
    context.close()
    Image.open(picture).convert("RGB").quantize(256).save(picture, optimize=True)


def attention_page(path: Path) -> None:
    """The page of attention maps, with all three views."""
    import whence

    whence.attend(whence.load("sentiment"), LOOKED_AT, neurons=True).to_html(path)


def shoot_views(browser: Browser, page: Path) -> None:
    """One picture of each view: the head view and the neuron view as they open."""
    context = browser.new_context(
        viewport={"width": 980, "height": 500}, color_scheme="light", device_scale_factor=1.25
    )
    tab = context.new_page()
    tab.goto(page.as_uri())
    _shoot(tab, "head-view.png")
    tab.locator("[role=tab][data-view=model]").click()
    _shoot(tab, "model-view.png")
    tab.locator("[role=tab][data-view=neuron]").click()
    _shoot(tab, "neuron-view.png")
    context.close()


def _shoot(tab: Page, name: str) -> None:
    tab.wait_for_timeout(500)
    tab.locator(".whence-maps").screenshot(path=HERE / name)
    picture = Image.open(HERE / name).convert("RGB")
    # by coverage: the ramp of a few pixels keeps its purple
    picture.quantize(256, Image.Quantize.MAXCOVERAGE).save(HERE / name, optimize=True)


def shoot_run(run: str) -> None:
    """The page of a run, with its first text open."""
    import whence

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as p:
        page = Path(folder, "run.html")
        whence.open_run(run).to_html(page)
        browser = p.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        context = browser.new_context(viewport={"width": 1100, "height": 900}, color_scheme="light")
        tab = context.new_page()
        tab.goto(page.as_uri())
        tab.locator("details.read summary").first.click()
        tab.evaluate("scrollTo(0, 0)")
        opened = tab.locator("details.read").first.bounding_box()
        assert opened is not None
        height = opened["y"] + opened["height"] + 8
        clip = {"x": 0.0, "y": 0.0, "width": 1100.0, "height": height}
        tab.screenshot(path=HERE / "run.png", clip=clip, full_page=True)  # type: ignore[arg-type]
        browser.close()
    picture = Image.open(HERE / "run.png").convert("RGB")
    picture.quantize(256).save(HERE / "run.png", optimize=True)


def main() -> None:
    """Write all pictures beside this file."""
    if len(sys.argv) > 1:
        shoot_run(sys.argv[1])
        return
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as p:
        report, terminal = Path(folder, "report.html"), Path(folder, "terminal.html")
        terminal.write_text(as_page(coloured_output(report)), encoding="utf-8")
        browser = p.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        shoot(browser, report, HERE / "report.png", 1340, ".whence", before=".fold")
        shoot(browser, terminal, HERE / "terminal.png", 1200, "body", scale=1)
        attention = Path(folder, "attention.html")
        attention_page(attention)
        shoot_views(browser, attention)
        browser.close()


if __name__ == "__main__":
    main()
