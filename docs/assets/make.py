"""Draw the two pictures of the README, from the real program: ``python docs/assets/make.py`` (needs chromium and playwright)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright
from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

HERE = Path(__file__).parent
TEXT = "the food is great and the selection on the menu is great but the service is not bad prices are fine"
COLUMNS = 124
PAGE = (
    "<style>body{{margin:0;padding:22px 26px;background:#1a1b1f;color:#d8dade;width:max-content}}"
    "pre{{margin:0;font:15px/1.32 'DejaVu Sans Mono',monospace}} {stylesheet}</style><pre>{code}</pre>"
)


def coloured_output(report: Path) -> str:
    """What the program prints into a terminal of 16 million colours; it writes the report too."""
    environment = {**os.environ, "FORCE_COLOR": "1", "COLORTERM": "truecolor", "TERM": "xterm-256color", "COLUMNS": str(COLUMNS)}
    command = [sys.executable, "-m", "whence.cli.main", "compare", TEXT, "--html", str(report)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def as_page(ansi: str) -> str:
    """A terminal's output as HTML."""
    console = Console(record=True, width=COLUMNS, file=open(os.devnull, "w"))  # noqa: SIM115
    console.print(Text(f'$ whence compare "{TEXT}"', style="bold"))
    console.print(Text.from_ansi("\n" + ansi))
    return console.export_html(theme=DIMMED_MONOKAI, code_format=PAGE, inline_styles=True)


def shoot(browser: Browser, page: Path, picture: Path, width: int, whole: str) -> None:
    """A picture of one element, in 256 colours: a third of the bytes, and nobody sees it."""
    context = browser.new_context(viewport={"width": width, "height": 700}, color_scheme="light", device_scale_factor=1.25)
    tab = context.new_page()
    tab.goto(page.as_uri())
    tab.locator(whole).screenshot(path=picture)
    context.close()
    Image.open(picture).convert("RGB").quantize(256).save(picture, optimize=True)


def main() -> None:
    """Write both pictures beside this file."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as p:
        report, terminal = Path(folder, "report.html"), Path(folder, "terminal.html")
        terminal.write_text(as_page(coloured_output(report)), encoding="utf-8")
        browser = p.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        shoot(browser, report, HERE / "report.png", 1180, ".whence")
        shoot(browser, terminal, HERE / "terminal.png", 1200, "body")
        browser.close()


if __name__ == "__main__":
    main()
