"""The stored records that the tests read."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gemm_report.record import Clocks, Range, Record, read_record

TESTDATA = Path(__file__).with_name("testdata")


def clocks(
    sm_hz: float | None = None,
    power_w: float | None = None,
    throttled_share: float | None = None,
    *reasons: str,
) -> Clocks:
    """Clocks of a GPU at one frequency."""
    hertz, watts = (Range(each, each, each) if each else None for each in (sm_hz, power_w))
    return Clocks(
        readings=100,
        sm_hz=hertz,
        power_w=watts,
        throttled_share=throttled_share,
        reasons=dict.fromkeys(reasons, throttled_share or 0.0),
    )


@pytest.fixture(scope="session")
def gpu_path() -> Path:
    """A made-up GPU: all roofs known, every precision but f16, one row skipped, one failed."""
    return TESTDATA / "gpu.json"


@pytest.fixture(scope="session")
def gpu(gpu_path: Path) -> Record:
    """The record in gpu_path."""
    return read_record(gpu_path)


@pytest.fixture(scope="session")
def ladder_path() -> Path:
    """A made-up GPU: seven rungs with modelled bytes, a grid of one of them, and transfers."""
    return TESTDATA / "ladder.json"


@pytest.fixture(scope="session")
def ladder(ladder_path: Path) -> Record:
    """The record in ladder_path."""
    return read_record(ladder_path)


@pytest.fixture(scope="session")
def cpu() -> Record:
    """A made-up CPU: no roof known, interrupted."""
    return read_record(TESTDATA / "cpu.json")


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """A headless Chromium for all tests of pages; they are skipped where there is none.

    Its log of the network is on: get_log("performance") has every request.
    """
    webdriver = pytest.importorskip("selenium.webdriver", reason="pip install selenium")
    names = ("chromium", "chromium-browser", "google-chrome")
    driver, browser = (
        shutil.which("chromedriver"),
        next(filter(None, map(shutil.which, names)), None),
    )
    if not driver or not browser:
        pytest.skip("chromium and chromedriver are not on PATH")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1440,1000"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(executable_path=driver)
    with webdriver.Chrome(options=options, service=service) as started:
        yield started


@pytest.fixture
def rewritten(gpu_path: Path, tmp_path: Path) -> Callable[..., Path]:
    """Writes gpu_path under a name, every time scaled, after `change` was made to it."""

    def write(
        name: str,
        factor: float = 1.0,
        change: Callable[[Any], object] = lambda document: None,
    ) -> Path:
        document = json.loads(gpu_path.read_text(encoding="utf-8"))
        for benchmark in document["benchmarks"]:
            row = benchmark.get("gemm")
            if row and row["seconds"]:
                row["seconds"] = {key: factor * value for key, value in row["seconds"].items()}
                row["samples_seconds"] = [factor * each for each in row["samples_seconds"]]
        change(document)
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document), encoding="utf-8")
        return path

    return write
