"""Of planted changes, what is found; and what history does with folders of all kinds."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gemm_report.cli import main
from gemm_report.collection import Refusals
from gemm_report.history.changes import Change, detectable, find_changes
from gemm_report.history.pages import write_pages
from gemm_report.history.series import read_history
from gemm_report.history.trends import Trend, find_trends

ROOT = Path(__file__).resolve().parents[3]


def noise(count: int, seed: int, scale: float = 0.005, correlation: float = 0.3) -> np.ndarray:
    values = scale * np.random.default_rng(seed).standard_t(5, count)
    for i in range(1, count):
        values[i] += correlation * values[i - 1]
    return values


def changes(logs: np.ndarray, gpus: Any = ()) -> list[Change]:
    return find_changes(np.exp(logs), gpus)[1]


@pytest.mark.parametrize(("count", "at"), [(300, 100), (40, 36), (12, 6), (5, 3), (5, 2)])
def test_a_step_is_found_where_it_is(count: int, at: int) -> None:
    size = 0.05 if count > 12 else 0.2
    for seed in range(20):
        (found,) = changes(noise(count, seed) + np.log1p(size) * (np.arange(count) >= at))
        assert abs(found.at - at) <= 1
        assert found.ratio == pytest.approx(1 + size, rel=0.03)
        assert not found.gradual


def test_a_late_step_in_correlated_noise_is_found() -> None:
    steps = np.log(1.05) * (np.arange(300) >= 296)
    values = [noise(300, seed, 0.0012, 0.9) for seed in range(20)]
    assert sum(len(changes(each + steps)) == 1 for each in values) >= 18
    assert not any(changes(each) for each in values)


@pytest.mark.parametrize("during", [60, 120])
def test_a_gradual_change_is_one(during: int) -> None:
    for seed in range(10):
        rise = np.clip((np.arange(300) - 100) / during, 0, 1) * np.log(1.2)
        (found,) = changes(noise(300, seed) + rise)
        assert found.gradual
        assert (found.start, found.at) == pytest.approx((100, 100 + during), abs=20)
        assert found.ratio == pytest.approx(1.2, rel=0.03)


def test_noise_outliers_and_two_speeds_are_no_change() -> None:
    random = np.random.default_rng(4)
    for count in (1, 2, 5, 8, 30, 300):
        for seed in range(10):
            assert not changes(noise(count, seed))
            assert not changes(np.zeros(count))
    for seed in range(20):
        slow = 0.06 * (random.random(60) < 0.3)
        assert not changes(noise(60, seed, 0.001) + slow)
    for length, found in ((1, 0), (3, 0), (4, 2)):
        values = noise(60, 1)
        values[30 : 30 + length] += 0.2
        assert len(changes(values)) == found, length


def test_the_newest_records_are_a_level_if_all_are_far_and_almost_none_before() -> None:
    values = noise(60, 1, 0.001)
    values[58:] += 0.2
    assert [each.at for each in changes(values)] == [58]
    values[[20, 40]] += 0.2
    assert not changes(values)
    values[[20, 40]] -= 0.2
    values[58:] -= 0.15  # two records are one if it is large
    assert not changes(values)


def test_each_gpu_has_a_level_of_its_own() -> None:
    random = np.random.default_rng(3)
    of = random.integers(0, 8, 80)
    values = 0.02 * random.normal(size=8)[of] + noise(80, 5, 0.001)
    gpus = [f"gpu {i}" for i in of]
    assert not changes(values, gpus)
    (found,) = changes(values + 0.02 * (np.arange(80) >= 40), gpus)
    assert found.at == 40


def test_what_could_be_seen_depends_on_records_and_noise() -> None:
    def seen(count: int, scale: float) -> list[bool]:
        return [detectable(np.exp(noise(count, 1, scale)), (), step) for step in (0.05, 0.2)]

    assert seen(4, 0.001) == [False, False]
    assert seen(5, 0.001) == [False, True]
    assert seen(30, 0.001) == [True, True]
    assert seen(30, 0.1) == [False, False]


Edit = Callable[[Any, int], None]


def made(template: Path, folder: Path, count: int, edit: Edit = lambda *_: None) -> Path:
    """Records an hour apart; `edit` gets each with its number."""
    folder.mkdir(exist_ok=True)
    start = datetime.fromisoformat("2025-01-01T00:00:00+00:00")
    for i in range(count):
        document = json.loads(template.read_text(encoding="utf-8"))
        document["context"]["date"] = (start + timedelta(hours=i)).isoformat()
        run = document["context"]["gemm"]
        run |= {"commit": f"{i:012x}", "complete": True}
        run["device"]["uuid_hash"] = f"{i:016x}"
        for row in rows(document):
            if row["seconds"]:
                row["fingerprint"] = "0" * 16
                timed(row, float(np.exp(noise(count, row["m"], 0.001)[i])))
        edit(document, i)
        (folder / f"{i:03}.json").write_text(json.dumps(document), encoding="utf-8")
    return folder


def rows(document: Any) -> list[Any]:
    return [row["gemm"] for row in document["benchmarks"] if "gemm" in row]


def timed(row: Any, factor: float, clock: float = 1.0) -> None:
    row["seconds"] = {key: factor * value for key, value in row["seconds"].items()}
    hertz = dict.fromkeys(("min", "median", "max"), 1.9e9 * clock)
    row["clocks"] = {"readings": 9, "sm_hz": hertz, "throttled_share": 0.0}


def trends_of(folder: Path) -> list[Trend]:
    return find_trends(read_history(folder, Refusals()))


@pytest.fixture
def few(ladder_path: Path, tmp_path: Path) -> Path:
    return made(ladder_path, tmp_path / "records", 12)


def test_names_of_best_before_plans_are_those_of_today(few: Path) -> None:
    def best(document: Any, i: int) -> None:
        first, second = [row for row in rows(document) if row["kernel"] == "Naive"][:2]
        for row in (first, second):
            row |= {"kernel": "Best", "m": 512, "n": 512, "k": 512, "parameters": {}}
        planned = i >= 6
        (first if planned else second)["parameters"] = {"pick": "model" if planned else "tried"}
        if planned:
            second["plan"] = {"name": "tile 128", "source": "tried"}

    made(few / "000.json", few / "best", 12, best)
    series = read_history(few / "best", Refusals()).series
    found = {str(each.case): len(each.record) for each in series if each.case.kernel == "Best"}
    assert found == {"Best/f32/512x512x512": 12, "Best/pick:model/f32/512x512x512": 12}


def test_gpus_of_a_model_are_pooled_and_states_are_not(few: Path, ladder_path: Path) -> None:
    assert {len(trend.series.record) for trend in trends_of(few)} == {12}

    def zeros(document: Any, i: int) -> None:
        if i < 5:
            document["context"]["gemm"]["method"]["fill"] = "zeros"

    made(ladder_path, few, 12, zeros)
    assert {len(trend.series.record) for trend in trends_of(few)} == {5, 7}


@pytest.mark.parametrize(
    "cause", ["fingerprint", "driver", "power limit", "clock", "GPU", "commit"]
)
def test_a_change_is_put_down_to_what_differs(
    ladder_path: Path, tmp_path: Path, cause: str
) -> None:
    def edit(document: Any, i: int) -> None:
        after, device = i >= 10, document["context"]["gemm"]["device"]
        device |= {"driver": "550.1", "power_limit_w": 700.0, "uuid_hash": "a" * 16}
        if after and cause in ("driver", "power limit", "GPU"):
            device |= {
                "driver": {"driver": "560.2"},
                "power limit": {"power_limit_w": 600.0},
                "GPU": {"uuid_hash": "b" * 16},
            }[cause]
        for row in rows(document):
            if row["seconds"] and after:
                row["fingerprint"] = ("1" if cause == "fingerprint" else "0") * 16
                timed(row, 1.06, 1 / 1.06 if cause == "clock" else 1.0)

    trends = trends_of(made(ladder_path, tmp_path / "records", 20, edit))
    found = [trend.changes for trend in trends]
    assert all(len(each) == 1 and each[0].change.at == 10 for each in found)
    assert {each[0].suspects[0].what for each in found} == {cause}


def test_what_was_not_recorded_before_is_no_suspect(ladder_path: Path, tmp_path: Path) -> None:
    def edit(document: Any, i: int) -> None:
        document["context"]["gemm"]["device"]["driver"] = "560.2" if i >= 10 else None
        for row in rows(document):
            if row["seconds"] and i >= 10:
                timed(row, 1.06)

    trends = trends_of(made(ladder_path, tmp_path / "records", 20, edit))
    for trend in trends:
        (found,) = trend.changes
        assert "driver" not in {suspect.what for suspect in found.suspects}


def test_a_newest_record_far_off_its_level_strays(ladder_path: Path, tmp_path: Path) -> None:
    def off(record: int) -> Edit:
        def edit(document: Any, i: int) -> None:
            for row in rows(document):
                if row["seconds"] and i == record:
                    timed(row, 1.2)

        return edit

    for record, strays in ((11, {True}), (0, {False}), (12, {False})):
        trends = trends_of(made(ladder_path, tmp_path / str(record), 12, off(record)))
        assert {trend.strays for trend in trends} == strays, record


def test_records_are_in_the_order_of_commits(ladder_path: Path, tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        command = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    git("init", "-q")
    commits = []
    for i in range(12):
        git("commit", "-q", "--allow-empty", "-m", str(i))
        commits.append(git("rev-parse", "HEAD"))

    def edit(document: Any, i: int) -> None:
        at = (i + 6) % 12  # the older half is measured later
        document["context"]["gemm"]["commit"] = commits[at]
        for row in rows(document):
            if row["seconds"] and at >= 6:
                timed(row, 1.2)

    folder = made(ladder_path, tmp_path / "records", 12, edit)
    assert read_history(folder, Refusals()).by_commit
    for trend in trends_of(folder):
        (found,) = trend.changes
        assert found.change.ratio == pytest.approx(1.2, rel=0.02)
        assert (found.suspects[-1].before, found.suspects[-1].after) == (commits[5], commits[6])


def test_a_case_that_fails_or_is_skipped_since_is_told(
    ladder_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def edit(document: Any, i: int) -> None:
        if i == 11:
            for row, key in zip(rows(document)[:2], ("failed", "skipped"), strict=True):
                row |= {"seconds": None, "samples_seconds": [], "clocks": None, key: "too little"}

    folder = made(ladder_path, tmp_path / "records", 12, edit)
    ended = [trend.series.ended for trend in trends_of(folder)]
    assert sorted(filter(None, ended)) == ["failed", "skipped: too little"]
    assert main(["history", str(folder), "-o", str(tmp_path / "pages")]) == 0
    assert "; 2 failed or were skipped since." in capsys.readouterr().out


def test_bad_files_are_told_and_the_rest_is_used(
    few: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (few / "003.json").read_text(encoding="utf-8")
    (few / "cut.json").write_text(text[:1000], encoding="utf-8")
    (few / "empty.json").write_text("", encoding="utf-8")
    undated = re.sub(r'"date":\s*"[^"]*"', '"date": "today"', text, count=1)
    (few / "undated.json").write_text(undated, encoding="utf-8")
    (few / "link.json").symlink_to(few / "nowhere.json")
    shutil.copy(few / "000.json", few / "copy.json")  # counts once
    told = 4
    with suppress(OSError):  # where names are in UTF-8 only
        shutil.copy(few / "003.json", few / os.fsdecode(b"caf\xe9.json"))
        told += 1
    assert main(["history", str(few)]) == 3
    output = capsys.readouterr()
    assert "12 records" in output.out
    assert len(output.err.splitlines()) == told
    for path in few.iterdir():
        path.unlink()
    assert main(["history", str(few)]) == 3


def test_names_stay_texts(ladder_path: Path, tmp_path: Path) -> None:
    def odd(document: Any, i: int) -> None:
        document["context"]["gemm"]["device"]["name"] = "\x1b[2J<img src=x>"
        for row in rows(document):
            row["kernel"] = f"../{row['kernel']}<img src=x>"

    few = made(ladder_path, tmp_path / "records", 5, odd)
    output = tmp_path / "pages"
    assert main(["history", str(few), "-o", str(output)]) == 0
    pages = list(tmp_path.rglob("*.html"))
    assert {path.parent.name for path in pages} == {"pages", "kernels"}
    assert not any("<img" in path.read_text(encoding="utf-8") for path in pages)


def test_the_projects_own_results_show_changes(tmp_path: Path) -> None:
    history = read_history(ROOT / "results", Refusals())
    trends = find_trends(history)
    case = "WarpTile/f32/4096x4096x4096"
    its = [trend for trend in trends if str(trend.series.case) == case]
    assert len({trend.series.device for trend in its}) == len(its) >= 2
    assert all(trend.shows for trend in its)
    write_pages(tmp_path, history, trends)
    assert sum(path.stat().st_size for path in tmp_path.rglob("*.html")) < 10e6


def test_pages_work_in_a_browser(few: Path, tmp_path: Path, chromium: Any) -> None:
    assert main(["history", str(few), "-o", str(tmp_path / "pages")]) == 0
    chromium.get_log("browser")
    chromium.get((tmp_path / "pages/index.html").as_uri())
    chromium.find_element("css selector", "table[aria-label=kernels] td a").click()
    bodies = chromium.find_elements("css selector", "table[aria-label=series] tbody")
    assert bodies
    chromium.find_element("css selector", "tbody th a").click()
    assert chromium.find_element("css selector", ".details svg.history").size["width"] > 700
    chromium.find_element("css selector", "input[type=search]").send_keys("no such kernel")
    assert not any(body.is_displayed() for body in bodies)
    chromium.find_element("link text", "All kernels").click()
    assert not chromium.get_log("browser")
