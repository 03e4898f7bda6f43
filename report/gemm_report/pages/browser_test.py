"""The page in a browser: it shows, sorts and filters, asks no network, and runs nobody's script."""

import dataclasses
import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gemm_report.pages.picture import Picture
from gemm_report.pages.record_page import record_page, write_page
from gemm_report.pages.render import Html, document
from gemm_report.record import DeviceCode, Record, read_record

SUITE = Path(__file__).parents[3] / "results/nvidia-h200/20261122T190535Z-ffd85c8f2be2.json.gz"


@pytest.fixture(scope="module")
def gpu_page(gpu: Record, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_page(gpu, tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="module")
def suite_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The table of a whole suite: 372 rows."""
    path = tmp_path_factory.mktemp("suite") / "index.html"
    path.write_text(record_page(read_record(SUITE), []), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def long_page(gpu: Record, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Names without a place to break them, all columns, and a figure that is wide."""
    name = "Kernel" * 30
    code = DeviceCode(f"void {name}()", "0123456789abcdef", 255, 232448, 16, 1024, 4096, 1.0)
    rows = [dataclasses.replace(row, kernel=name, device_code=(code, code)) for row in gpu.rows]
    record = dataclasses.replace(
        gpu, rows=tuple(rows), device=dataclasses.replace(gpu.device, name=name), conformance=name
    )
    svg = Html('<svg class="picture" viewBox="0 0 2000 50"/>')
    path = tmp_path_factory.mktemp("long") / "index.html"
    path.write_text(record_page(record, [Picture("wide", name, svg)]), encoding="utf-8")
    return path


@pytest.fixture
def browser(chromium: Any) -> Iterator[Any]:
    """As after its start: in light, on a screen, with JavaScript, with empty logs."""
    media(chromium, "light")
    for log in ("browser", "performance"):
        chromium.get_log(log)
    yield chromium
    chromium.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    chromium.get("data:,")


def media(browser: Any, theme: str, medium: str = "screen") -> None:
    features = [{"name": "prefers-color-scheme", "value": theme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": medium, "features": features})


def resize(browser: Any, width: int) -> None:
    view = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", view)


def show(browser: Any, page: Path, anchor: str = "") -> Callable[[str], Any]:
    """Opens the page; what it gives evaluates an expression there."""
    browser.get(page.as_uri() + anchor)
    return lambda expression: browser.execute_script(f"return {expression}")


def find(browser: Any, selector: str) -> Any:
    return browser.find_element("css selector", selector)


def find_all(browser: Any, selector: str) -> list[Any]:
    found: list[Any] = browser.find_elements("css selector", selector)
    return found


def unfold(browser: Any) -> None:
    """All results."""
    browser.execute_script("document.querySelector('#rows').open = true")


def choose(browser: Any, name: str, choice: str) -> None:
    """In one of the lists above the table."""
    browser.execute_script(
        "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input'))",
        find(browser, f"#rows select[name={name}]"),
        choice,
    )


def soon(ask: Callable[[], Any]) -> Any:
    """The answer as soon as there is one, at the latest after 5 s."""
    deadline = time.monotonic() + 5
    while not (answer := ask()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return answer


def column(browser: Any, name: str) -> list[str]:
    """What is seen in a column of the table of rows, from the top."""
    script = """
      const table = document.querySelector("#rows table");
      const heads = [...table.tHead.rows[0].cells];
      const index = heads.findIndex((head) => head.textContent.trim() === arguments[0]);
      return [...table.tBodies].filter((body) => !body.hidden)
        .map((body) => body.rows[0].cells[index].textContent.trim());"""
    found: list[str] = browser.execute_script(script, name)
    return found


def click_head(browser: Any, name: str) -> str:
    """Sorts by a column; what is then said of it."""
    heads = find_all(browser, "#rows thead th")
    found = next(each for each in heads if each.text.replace("\n", " ") == name)
    browser.execute_script("arguments[0].querySelector('button').click()", found)
    return str(found.get_attribute("aria-sort"))


def requests(browser: Any) -> list[str]:
    """What was requested from the network since this was last called."""
    log = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    sent = [each for each in log if each["method"] == "Network.requestWillBeSent"]
    return [each["params"]["request"]["url"] for each in sent]


def test_the_page_shows_its_figures_and_rows_and_asks_no_network(
    browser: Any, gpu_page: Path, gpu: Record, tmp_path: Path
) -> None:
    value = show(browser, gpu_page)
    assert len(column(browser, "kernel")) == len(gpu.rows)
    assert gpu.device.name in find(browser, "h1").text
    drawn = find_all(browser, "svg.picture")
    assert all(each.size["width"] > 300 for each in drawn)
    assert any("TFLOP/s" in each.text for each in drawn), "text of figures is text"
    # Clip paths and marks are found.
    assert value("[...document.querySelectorAll('use')].every(u => "
                 "document.querySelector(u.getAttribute('xlink:href')))")  # fmt: skip
    assert requests(browser) == [gpu_page.as_uri()]
    assert browser.get_log("browser") == []
    # What would be loaded or run is refused.
    page = tmp_path / "index.html"
    page.write_text(document("x", Html("<img src='x.png' onerror='window.ran = 1'>")), "utf-8")
    value = show(browser, page)
    told = soon(lambda: browser.get_log("browser"))
    assert any("Content Security Policy" in entry["message"] for entry in told)
    assert value("window.ran") is None


def test_numbers_sort_as_numbers_texts_naturally_and_unknown_ones_last(
    browser: Any, gpu_page: Path
) -> None:
    show(browser, gpu_page)
    unfold(browser)
    powers = {"µs": 1e-6, "ms": 1e-3, "s": 1.0}

    def seconds() -> list[float]:
        known = [text.split() for text in column(browser, "time") if text != "-"]
        return [float(number) * powers[unit] for number, unit in known]

    for direction in ("descending", "ascending"):
        assert click_head(browser, "time") == direction
        assert seconds() == sorted(seconds(), reverse=direction == "descending")
        assert column(browser, "time")[-2:] == ["-", "-"]
    click_head(browser, "kernel")
    kernels = column(browser, "kernel")
    assert kernels.index("Tiled/tile:8") < kernels.index("Tiled/tile:32")


def test_rows_are_filtered_by_words_lists_and_counts(browser: Any, suite_page: Path) -> None:
    value = show(browser, suite_page)
    unfold(browser)
    rows = len(column(browser, "kernel"))
    search, count = find(browser, "#rows input[type=search]"), find(browser, "#rows output")
    search.send_keys("NAIVE f32")
    assert {name.lower()[:5] for name in column(browser, "kernel")} == {"naive"}
    assert count.text == f"{len(column(browser, 'kernel'))} of {rows} rows"
    choose(browser, "size", "4096")
    assert set(column(browser, "size")) == {"4096"}
    find(browser, "#rows .clear").click()
    assert count.text == f"{rows} rows"
    choose(browser, "precision", "bf16")
    assert set(column(browser, "precision")) == {"BF16"}
    for chip in find_all(browser, ".chips a"):
        browser.execute_script("arguments[0].click()", chip)
        shown = int(chip.text.partition(" ")[0])

        def is_filtered(shown: int = shown) -> bool:
            return len(column(browser, "kernel")) == shown

        assert soon(is_filtered), chip.text
    assert value("document.querySelector('#rows').getBoundingClientRect().top") < 100


def test_a_row_unfolds_by_a_click_and_on_arrival(browser: Any, suite_page: Path) -> None:
    value = show(browser, suite_page)
    unfold(browser)
    details, link = find(browser, "#rows .details"), find(browser, "#rows tbody th a")
    for is_open in (True, False):
        browser.execute_script("arguments[0].click()", link)
        assert details.is_displayed() == is_open
        assert link.get_attribute("aria-expanded") == str(is_open).lower()
    assert value("location.hash") == ""
    anchor = "#bf16-4096-WgmmaStreamK"
    browser.get("data:,")
    show(browser, suite_page, anchor)
    assert "GPU kernels" in find(browser, f"{anchor} .details").text
    top = "return arguments[0].getBoundingClientRect().top"
    assert 0 <= browser.execute_script(top, find(browser, anchor)) < 90


def test_without_javascript_it_is_a_plain_table(browser: Any, gpu_page: Path, gpu: Record) -> None:
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    show(browser, gpu_page)
    unfold(browser)
    assert len(column(browser, "kernel")) == len(gpu.rows)
    assert not find(browser, "#rows .tools").is_displayed()
    details, link = find(browser, "#rows .details"), find(browser, "#rows tbody th a")
    assert not details.is_displayed()
    browser.get(link.get_attribute("href"))
    assert find(browser, "#rows .details").is_displayed(), "unfolding needs no script"


@pytest.mark.parametrize(
    ("theme", "medium", "is_dark"),
    [("light", "screen", False), ("dark", "screen", True), ("dark", "print", False)],
)
def test_page_and_figures_follow_the_theme_and_paper_is_white(
    browser: Any, gpu_page: Path, theme: str, medium: str, is_dark: bool
) -> None:
    media(browser, theme, medium)
    value = show(browser, gpu_page)
    paper = value("getComputedStyle(document.body).backgroundColor")
    light = sum(map(int, re.findall(r"\d+", paper)[:3])) / 765
    assert light < 0.2 if is_dark else light > 0.9
    text = value("getComputedStyle(document.querySelector('svg.picture text')).fill")
    assert (sum(map(int, re.findall(r"\d+", text)[:3])) / 765 > 0.5) == is_dark
    assert find(browser, "#problems .tools").is_displayed() == (medium == "screen")


def test_a_suite_takes_six_screens_and_its_bars_are_their_shares(
    browser: Any, suite_page: Path
) -> None:
    resize(browser, 1440)
    value = show(browser, suite_page)
    assert value("document.documentElement.scrollHeight") < 6 * 900
    assert suite_page.stat().st_size < 1.5e6
    assert not find(browser, "#rows table").is_displayed()
    for bar, name, less in ((".bar:not(.short)", "--share", 0), ("#rows td[style]", "--bar", 9)):
        for share in (0.25, 1.0, 1.5):
            value(f"document.querySelector('{bar}').style.setProperty('{name}', {share})")
            size = value(f"getComputedStyle(document.querySelector('{bar}')).backgroundSize")
            percent, *pixels = map(float, re.findall(r"[\d.]+", size.split(",")[0]))
            assert percent / 100 == pytest.approx(min(share, 1)), bar
            assert not less or pixels[0] == pytest.approx(less * min(share, 1), rel=0.1)


@pytest.mark.parametrize("width", [400, 800])
def test_a_narrow_screen_shows_rate_and_ratios_of_each_precision(
    browser: Any, suite_page: Path, width: int
) -> None:
    resize(browser, width)
    value = show(browser, suite_page)
    seen = "[...document.querySelectorAll('.matrix td.c, .bar')].every(e => { const b = "
    seen += "e.getBoundingClientRect(); return b.width > 20 && b.right <= innerWidth })"
    assert value(seen)


@pytest.mark.parametrize("width", [400, 800, 1440])
def test_nothing_sticks_out_of_the_page(browser: Any, long_page: Path, width: int) -> None:
    resize(browser, width)
    value = show(browser, long_page)
    assert value("document.documentElement.scrollWidth <= innerWidth")
