"""Figures: bars as long as the scores, colours where they belong, words as they are written.

Nothing of pyplot is touched where axes are given.
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.container import BarContainer
from matplotlib.figure import Figure

from tests.views.conftest import compared, image, made, passage_of
from whence.core.attribution import Error
from whence.core.comparison import Comparison
from whence.core.errors import InputError, SettingsError, UnknownName
from whence.core.heads import HeadTable
from whence.core.maps import AttentionMaps, axis_of
from whence.core.passage import Passage, with_picture
from whence.core.render import draw
from whence.views.figures import GREY, INK, plot_attribution, plot_distances, plot_heads, plot_map
from whence.views.palette import LIGHT

HOSTILE = "costs $5_000 and $x^2$ \\frac{ 中国 👍🏽 bell\x07 _a_"


@pytest.fixture
def ax():
    return Figure(figsize=(6, 6), layout="constrained").subplots()


def maps_of(text: str = "so very good", layers: int = 3, heads: int = 4, **more) -> AttentionMaps:
    passage = passage_of(text)
    passage = Passage.from_tokens(
        text,
        [1, *passage.ids.tolist(), 2],
        ["[CLS]", *passage.tokens, "[SEP]"],
        [(0, 0), *map(tuple, passage.spans.tolist()), (0, 0)],
        [-1, *[0] * len(passage), -1],
    )
    axis = axis_of(passage, "word")
    weights = (
        np.random.default_rng(0)
        .dirichlet(np.ones(len(axis)), size=(layers, heads, len(axis)))
        .astype(np.float32)
    )
    return AttentionMaps(
        passage, {"encoder": weights}, {"encoder": axis}, {"encoder": axis}, {"encoder": ()}, **more
    )


def table_of(
    layers: int = 3, heads: int = 4, places: np.ndarray | None = None, **columns
) -> HeadTable:
    rng = np.random.default_rng(0)
    given = {
        "entropy": rng.uniform(0, 3, (layers, heads)),
        "change": rng.normal(size=(layers, heads)),
        **columns,
    }
    names = tuple(map(str, range(layers))), tuple(map(str, range(heads)))
    table = HeadTable("encoder", *names, given, np.full((layers, heads, 2, 2), 0.5))
    table.__dict__["places"] = (
        rng.normal(size=(layers, heads, 2)) if places is None else places
    )  # instead of computing them
    return table


def pixels_of(figure: Figure) -> np.ndarray:
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3]


def colour_at(ax, x: float, y: float) -> np.ndarray:
    """Of the drawn pixel at a place in the axes' own coordinates."""
    drawn = pixels_of(ax.figure)
    column, row = ax.transData.transform((x, y))
    return drawn[drawn.shape[0] - 1 - int(row), int(column)].astype(float)


def labels(axis) -> list[str]:
    return [t.get_text() for t in axis.get_ticklabels()]


# ---------------------------------------------------------------- attributions


def test_bars_are_the_scores_in_reading_order_from_the_top(ax):
    a = made("so very good", scores=[0.5, -0.25, 0.0])
    assert plot_attribution(a, ax) is ax
    bars = sorted(ax.patches, key=lambda p: p.get_y())
    assert [p.get_width() for p in bars] == [0.5, -0.25, 0.0]
    assert labels(ax.yaxis) == ["so", "very", "good"]
    bottom, top = ax.get_ylim()
    assert bottom > top  # the first word is the uppermost
    assert ax.get_title(loc="left") == "the score (logit) of good, 1.25\ntoy"
    orange, blue = (tuple(c / 255 for c in rgb) for rgb in (LIGHT.positive, LIGHT.negative))
    assert to_rgb(bars[0].get_facecolor()) == pytest.approx(orange)
    assert to_rgb(bars[1].get_facecolor()) == pytest.approx(blue)
    assert "for the target" in ax.get_xlabel()


def test_a_method_without_a_sign_has_its_own_colour(ax):
    made("so good", signed=False, scores=[0.5, 0.25]).plot(ax)
    assert {to_rgb(p.get_facecolor()) for p in ax.patches} == {
        tuple(c / 255 for c in LIGHT.unsigned)
    }
    assert "without a sign" in ax.get_xlabel()


def test_whiskers_are_standard_errors_and_only_where_there_are_any(ax):
    a = made("so very good", scores=[0.5, -1.0, 0.25], error=Error(np.array([0.1, 0.2, 0.05])))
    plot_attribution(a, ax, top=2)
    bars = next(c for c in ax.containers if isinstance(c, BarContainer))
    (whiskers,) = bars.errorbar.lines[2]
    ends = [segment[:, 0].tolist() for segment in whiskers.get_segments()]
    assert ends == [pytest.approx([0.4, 0.6]), pytest.approx([-1.2, -0.8])]
    assert "standard error" in ax.get_xlabel()
    without = Figure().subplots()
    plot_attribution(made("so good", error=Error(None, 0.01)), without)
    assert without.containers[0].errorbar is None
    assert "standard error" not in without.get_xlabel()


def test_the_strongest_keep_their_order_and_the_title_says_so(ax):
    made("a b c d", scores=[0.1, -3.0, 0.2, 2.0]).plot(ax, top=2)
    assert labels(ax.yaxis) == ["b", "d"]
    assert ax.get_title(loc="left").endswith("the 2 strongest of 4 units")
    with pytest.raises(SettingsError, match="at least 1"):
        made("a b").plot(ax, top=0)


def test_the_texts_of_a_pair_are_parted(ax):
    p = Passage.from_tokens(
        "so good", [0, 1, 2], ["so", "good", "no"], [(0, 2), (3, 7), (0, 2)], [0, 0, 1], pair="no"
    )
    plot_attribution(made(p), ax)
    dashed = [line for line in ax.lines if line.get_linestyle() == "--"]
    assert [line.get_ydata()[0] for line in dashed] == [1.5]


def test_an_image_is_drawn_with_its_heat_in_the_right_place(ax):
    scores = [
        1.0,
        0.0,
        0.0,
        0.0,
        0.0,
        -1.0,
    ]  # first row first patch for, last row last patch against
    pixels = np.zeros((3, 8, 12), dtype=np.float32)
    pixels[:, :, 6:] = 1.0  # the right half is white
    plot_attribution(made(replace(image(), pixels=pixels), scores=scores), ax)
    picture, heat = ax.images
    assert picture.get_extent() == heat.get_extent() == [0, 12, 8, 0]
    assert np.asarray(heat.get_array()).tolist() == [[1, 0, 0], [0, 0, -1]]
    share, black = 0.88, 255 * (1 - 0.55)
    orange, blue = np.array(LIGHT.positive), np.array(LIGHT.negative)
    assert colour_at(ax, 2, 2) == pytest.approx(share * orange + (1 - share) * black, abs=3)
    assert colour_at(ax, 10, 6) == pytest.approx(
        share * blue + (1 - share) * 255, abs=3
    )  # over white
    assert colour_at(ax, 2, 6) == pytest.approx([black] * 3, abs=3)  # no score: the picture, pale
    assert colour_at(ax, 10, 2) == pytest.approx([255, 255, 255], abs=3)
    assert len(ax.figure.axes) == 2  # the colour bar
    assert heat.get_clim() == (-1, 1)


def test_an_image_by_a_method_without_signs_and_its_strongest_patches(ax):
    made(image(), signed=False, scores=[1, 2, 3, 4, 5, 6]).plot(ax, top=2)
    assert np.asarray(ax.images[1].get_array()).tolist() == [[0, 0, 0], [0, 5, 6]]
    assert ax.images[1].get_clim() == (0, 6)
    assert "2 strongest of 6 units" in ax.get_title(loc="left")


def test_an_image_beside_a_text_is_bars_for_both(ax):
    both = with_picture(
        passage_of("so good"),
        ("[IMAGE]",),
        [(0, 0), (0, 1)],
        pixels=np.zeros((3, 4, 8), dtype=np.float32),
    )
    plot_attribution(made(both, scores=[1, 2, 3, 4]), ax)
    assert labels(ax.yaxis) == ["so", "good", "patch 0,0", "patch 0,1"]
    assert [line.get_ydata()[0] for line in ax.lines if line.get_linestyle() == "--"] == [1.5]


# ---------------------------------------------------------------- attention


def test_a_map_is_the_head_that_was_asked_for(ax):
    maps = maps_of()
    plot_map(maps, 2, 1, ax)
    assert np.asarray(ax.images[0].get_array()) == pytest.approx(maps.weights["encoder"][2, 1])
    assert ax.images[0].get_clim()[0] == 0
    assert ax.get_title(loc="left") == "layer 2, head 1"
    assert labels(ax.xaxis) == labels(ax.yaxis) == ["[CLS]", "so", "very", "good", "[SEP]"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("to", "from")
    # the upper row is the first place that looks
    low, high = ax.get_ylim()
    assert low > high


def test_special_tokens_are_grey(ax):
    plot_map(maps_of(), 0, 0, ax)
    for axis in (ax.xaxis, ax.yaxis):
        assert [t.get_color() for t in axis.get_ticklabels()] == [GREY, INK, INK, INK, GREY]


def test_the_mean_and_numbers_from_the_end():
    maps = maps_of()
    mean = draw("plot_map", maps, -1, "mean", ax=Figure().subplots())
    assert np.asarray(mean.images[0].get_array()) == pytest.approx(
        maps.weights["encoder"][2].mean(0), abs=1e-6
    )
    assert mean.get_title(loc="left") == "layer 2, mean of 4 heads"
    assert plot_map(maps, 0, -1, Figure().subplots()).get_title(loc="left") == "layer 0, head 3"


def test_layers_and_heads_go_by_the_numbers_of_the_model(ax):
    few = replace(maps_of(layers=2, heads=1), kept_layers={"encoder": (3, 5)}, kept_heads=("mean",))
    plot_map(few, 5, "mean", ax)
    assert np.asarray(ax.images[0].get_array()) == pytest.approx(few.weights["encoder"][1, 0])
    assert ax.get_title(loc="left") == "layer 5, mean of the heads"
    with pytest.raises(
        SettingsError, match=r"layer 4 is outside the 2 layers of these maps \(3, 5\)"
    ):
        plot_map(few, 4, "mean", ax)
    with pytest.raises(SettingsError, match=r"head 0 is outside the 1 head of these maps \(mean\)"):
        plot_map(few, 3, 0, ax)


@pytest.mark.parametrize(
    ("layer", "head", "said"),
    [
        (3, 0, "layer 3 is outside the 3 layers of these maps (0 to 2)"),
        (-4, 0, "layer -4"),
        (0, 4, "head 4 is outside the 4 heads of these maps (0 to 3)"),
        (0, "max", "head 'max'"),
    ],
)
def test_what_is_out_of_range_is_named_with_the_range(ax, layer, head, said):
    with pytest.raises(SettingsError) as caught:
        plot_map(maps_of(), layer, head, ax)
    assert said in str(caught.value)


def test_an_unknown_kind_is_named(ax):
    with pytest.raises(UnknownName, match="encoder"):
        plot_map(maps_of(), 0, 0, ax, kind="cross")


def test_labels_are_thinned_where_there_is_no_room(ax):
    plot_map(maps_of(" ".join(f"w{i}" for i in range(150))), 0, 0, ax)
    shown = labels(ax.yaxis)
    assert 10 < len(shown) < 80
    assert (
        shown[1] == f"w{ax.get_yticks()[1] - 1}"
    )  # the label belongs to its row: [CLS] stands before the words


def test_the_colour_bar_is_optional():
    assert len(plot_map(maps_of(), 0, 0, Figure().subplots()).figure.axes) == 2
    assert len(plot_map(maps_of(), 0, 0, Figure().subplots(), colour_bar=False).figure.axes) == 1


# ---------------------------------------------------------------- heads


def test_a_value_of_every_head(ax):
    table = table_of()
    plot_heads(table, "entropy", ax)
    assert np.asarray(ax.images[0].get_array()) == pytest.approx(table.columns["entropy"])
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title(loc="left")) == (
        "head",
        "layer",
        "entropy, encoder attention",
    )
    assert labels(ax.xaxis) == ["0", "1", "2", "3"]
    assert labels(ax.yaxis) == ["0", "1", "2"]
    assert ax.images[0].get_clim() == (0, table.columns["entropy"].max())


def test_zero_is_white_where_values_have_signs_and_a_missing_one_is_grey(ax):
    values = np.array([[0.0, 2.0], [-1.0, np.nan]])
    plot_heads(table_of(2, 2, change=values), "change", ax)
    assert ax.images[0].get_clim() == (-2, 2)
    assert colour_at(ax, 0, 0) == pytest.approx([255, 255, 255], abs=2)
    assert colour_at(ax, 1, 0) == pytest.approx(LIGHT.positive, abs=2)
    assert np.ptp(colour_at(ax, 1, 1)) < 10
    assert colour_at(ax, 1, 1).max() < 230


def test_an_unknown_column_is_named(ax):
    with pytest.raises(UnknownName, match="Did you mean 'entropy'"):
        plot_heads(table_of(), "entropie", ax)


def test_heads_lie_where_the_table_says_and_are_named(ax):
    table = table_of()
    plot_distances(table, ax)
    (dots,) = ax.collections
    assert np.asarray(dots.get_offsets()) == pytest.approx(table.places.reshape(-1, 2))
    assert np.asarray(dots.get_array()).tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert {t.get_text(): t.xy for t in ax.texts}["2-1"] == pytest.approx(table.places[2, 1])
    assert len(ax.texts) == 12


def test_names_of_heads_do_not_cover_each_other_where_there_is_room():
    grid = np.stack(np.meshgrid(np.arange(4.0), np.arange(3.0)), -1)
    ax = plot_distances(table_of(places=grid), Figure(figsize=(6, 6)).subplots())
    pixels_of(ax.figure)
    boxes = [t.get_window_extent() for t in ax.texts]
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


# ---------------------------------------------------------------- words and files


@pytest.mark.parametrize("kind", ["svg", "pdf", "png"])
def test_any_text_can_be_drawn_and_warns_of_nothing(kind, tmp_path, ax):
    made(HOSTILE).plot(ax)
    other = Figure(layout="constrained").subplots()
    plot_map(maps_of(HOSTILE), 0, 0, other)
    for i, one in enumerate((ax, other)):
        one.figure.savefig(tmp_path / f"{i}.{kind}")
        assert (tmp_path / f"{i}.{kind}").stat().st_size > 1000


def test_an_svg_holds_the_words_as_they_are_written(tmp_path, ax):
    words = ["$5_000", "$x^2$", "$\\frac{", "bell\x07", "_a_"]
    text = " ".join(words)
    starts = np.cumsum([0, *(len(w) + 1 for w in words[:-1])]).tolist()
    spans = [(start, start + len(word)) for start, word in zip(starts, words, strict=True)]
    p = Passage.from_tokens(
        text, list(range(5)), words, spans, [0] * 5, units="token"
    )  # words would be cut at the signs
    with rc_context({"svg.fonttype": "none"}):
        plot_attribution(made(p, method="$a_b$"), ax)
        ax.figure.savefig(tmp_path / "words.svg")
    content = re.sub(
        r"<!--.*?-->", "", (tmp_path / "words.svg").read_text(), flags=re.DOTALL
    )  # they repeat the texts
    shown = re.findall(r">([^<>]*)</text>", content)
    assert {"$5_000", "$x^2$", "$\\frac{", "bell\\x07", "_a_", "$a_b$"} <= set(shown)


def test_letters_that_no_font_has_become_boxes(ax, monkeypatch):
    monkeypatch.setattr("whence.views.drawing._installed", tuple)
    made("中国 a\u200db \U0001f44d").plot(ax)
    assert [name.replace("\u200d", "") for name in labels(ax.yaxis)] == ["□□", "ab", "□"]
    pixels_of(ax.figure)


def test_long_words_are_cut(ax):
    made("x" * 200).plot(ax)
    assert labels(ax.yaxis) == ["x" * 21 + "…"]


def test_tex_of_the_user_does_not_read_the_words(ax):
    with rc_context({"text.usetex": True}):
        made("50% $x").plot(ax)
    assert not any(t.get_usetex() for t in [*ax.get_yticklabels(), ax.title])


@pytest.mark.slow
def test_everything_fits_into_a_figure_of_its_own():
    from matplotlib import pyplot

    for made_ax in (
        made("the food is great but the " + "x" * 40).plot(),
        plot_map(maps_of("the food is great but the " + "x" * 40), 0, 0),
        plot_heads(table_of(12, 12), "entropy"),
        plot_distances(table_of(12, 12)),
        made(image()).plot(),
    ):
        figure = made_ax.figure
        pixels_of(figure)
        box, whole = figure.get_tightbbox(), figure.get_size_inches()
        assert box.x0 >= -0.01
        assert box.y0 >= -0.01
        assert box.x1 <= whole[0] + 0.01
        assert box.y1 <= whole[1] + 0.01
        pyplot.close(figure)


def test_pyplot_is_left_alone_when_axes_are_given(ax):
    from matplotlib import pyplot

    before = pyplot.get_fignums()
    made("so good").plot(ax)
    plot_map(maps_of(), 0, 0, Figure().subplots())
    plot_heads(table_of(), "change", Figure().subplots())
    plot_distances(table_of(), Figure().subplots())
    assert pyplot.get_fignums() == before


def test_without_matplotlib_the_error_has_the_pip_line(monkeypatch):
    for name in [n for n in sys.modules if n.partition(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InputError, match=r"pip install 'whence\[figures\]'"):
        made("so good").plot()
    with pytest.raises(InputError, match=r"pip install 'whence\[figures\]'"):
        plot_map(maps_of(), 0, 0)


def test_matplotlib_is_imported_when_something_is_drawn_and_not_before():
    look = (
        "import sys, whence.views.figures, whence.views.latex; print('matplotlib' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", look], capture_output=True, text=True, timeout=600, check=True
    )
    assert done.stdout == "False\n"


# ---------------------------------------------------------------- pictures in the page


@pytest.fixture
def page(browser, tmp_path):
    """Open a result's page with the network off."""
    contexts = []

    def open_page(result, **options):
        result.to_html(tmp_path / "page.html")
        context = browser.new_context(offline=True, device_scale_factor=1, **options)
        contexts.append(context)
        tab = context.new_page()
        tab.wrong = []
        tab.on(
            "console",
            lambda message: (
                tab.wrong.append(message.text) if message.type in ("error", "warning") else None
            ),
        )
        tab.goto((tmp_path / "page.html").as_uri())
        return tab

    yield open_page
    for context in contexts:
        context.close()


def test_the_heat_lies_over_the_picture(page, tmp_path):
    from PIL import Image

    pixels = np.zeros((3, 8, 12), dtype=np.float32)
    pixels[:, :, 6:] = 1.0
    c = compared(replace(image(), pixels=pixels), 2)
    c = Comparison(
        {n: made(a.passage, n, True, [1, 0, 0, 0, 0, -1]) for n, a in c.attributions.items()},
        c.cost,
    )
    tab = page(c, color_scheme="light")
    assert tab.wrong == []
    white, black = 255.0, 255 * (1 - 0.55)  # the picture is pale
    for_it, against = np.array([0xF5, 0x85, 0x18]), np.array([0x4C, 0x9B, 0xE8])
    tab.locator(".pictures + .fold summary").click()
    for i in range(2):  # every method, not only the first
        tab.locator(".patches").nth(i).screenshot(path=tmp_path / "grid.png")
        drawn = np.asarray(Image.open(tmp_path / "grid.png").convert("RGB"), dtype=float)
        high, wide = drawn.shape[:2]
        assert wide / high == pytest.approx(1.5, abs=0.03)  # as the picture
        found = {
            (r, c): drawn[int((r + 0.5) / 2 * high), int((c + 0.25) / 3 * wide)]
            for r in range(2)
            for c in range(3)
        }
        assert found[0, 0] == pytest.approx(0.88 * for_it + 0.12 * black, abs=4)
        assert found[1, 2] == pytest.approx(0.88 * against + 0.12 * white, abs=4)
        assert found[1, 0] == pytest.approx([black] * 3, abs=4)
        assert found[0, 2] == pytest.approx([white] * 3, abs=4)


def test_the_keyboard_reaches_every_patch_and_its_number(page):
    tab = page(made(image(), scores=[0.5, -0.25, 0, 0, 0, 1]))
    tab.keyboard.press("Tab")  # the button for light and dark, which every page has
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.dataset.tip") == "patch 0,0: +0.5"
    tab.keyboard.press("ArrowRight")
    assert (
        tab.evaluate("getComputedStyle(document.activeElement, '::after').content")
        == '"patch 0,1: -0.25"'
    )
    box = tab.evaluate(
        """() => {
          const {x, width, bottom} = document.activeElement.getBoundingClientRect();
          return [x + width / 2, bottom - 3];
        }"""
    )
    top = tab.evaluate("([x, y]) => document.elementFromPoint(x, y).dataset.tip", box)
    assert top == "patch 0,1: -0.25"  # nothing lies over the cell: the mouse reaches it too
    assert tab.locator(".patches .u[tabindex='0']").count() == 1


def test_a_page_without_scripts_still_shows_the_picture_and_the_heat(page):
    tab = page(compared(image(), 2), java_script_enabled=False)
    assert tab.locator("img.pixels").bounding_box()["width"] > 100
    assert tab.locator(".patches").count() == 2
    assert tab.locator(".patches .u").first.bounding_box()["height"] > 10
