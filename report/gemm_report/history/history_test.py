"""Of planted changes, what is found; and what history does with folders of all kinds."""

import hashlib
import json
import os
import re
import shutil
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from own_files import own_files

from gemm_report.cli import main
from gemm_report.collection import Refusals
from gemm_report.history import changes as changes_module
from gemm_report.history.changes import find_changes
from gemm_report.history.gone import find_gone
from gemm_report.history.pages import web_address
from gemm_report.history.planted import CASES, noise, scaled
from gemm_report.history.series import means, read, read_history
from gemm_report.history.trends import Trend, find_trends

# What changes with the times at a place; with `nothing` no other thing does.
CAUSES = ("fingerprint", "driver", "toolkit", "power limit", "clock", "nothing")
RECORDS, ROWS = 200, 30


@dataclass(frozen=True)
class World:
    """What was planted: by row and record the cause and the factor of each step; and the gaps."""

    names: list[str]
    steps: dict[tuple[int, int], tuple[str, float]]
    failed: np.ndarray
    interrupted: np.ndarray


def made(template: Path, folder: Path) -> World:
    """Records with steps of 5 %, each with its cause, failed rows and interrupted runs."""
    random = np.random.default_rng(3)
    document = json.loads(template.read_text(encoding="utf-8"))
    rows = [row for row in document["benchmarks"] if row["gemm"].get("seconds")][:ROWS]
    # A quarter of the rows never changes: what is found there is false.
    steps = {
        (row, at): (CAUSES[i % len(CAUSES)], float(1.05 ** random.choice([-1, 1])))
        for i, at in enumerate(range(24, RECORDS - 24, 27))
        for row in range(ROWS // 4, ROWS)
        if random.random() < 0.25
    }
    noises = np.exp([noise(random, RECORDS) for _ in rows])
    failed = random.random((RECORDS, ROWS)) < 0.002
    interrupted = random.random(RECORDS) < 0.02
    date = datetime.fromisoformat("2020-01-01T00:00:00+00:00")
    run = document["context"]["gemm"]
    for index in range(RECORDS):
        past = {place: step for place, step in steps.items() if place[1] <= index}
        places = {cause: {at for (_, at), step in past.items() if step[0] == cause}
                  for cause in CAUSES}  # fmt: skip
        document["context"]["date"] = (date + timedelta(hours=4 * index)).isoformat()
        run["complete"] = not interrupted[index]
        run["commit"] = hash_of("commit", index // 3 + 1000 * len(places["fingerprint"]))
        run["device"]["driver"] = f"{550 + 5 * len(places['driver'])}.54"
        run["device"]["runtime"] = f"12.{len(places['toolkit'])}"
        run["device"]["power_limit_w"] = 700.0 - 10 * len(places["power limit"])
        document["benchmarks"] = []
        for i, row in enumerate(rows[: ROWS // 2] if interrupted[index] else rows):
            mine = [(at, *step) for (which, at), step in past.items() if which == i]
            slower = float(np.prod([factor for *_, factor in mine]))
            of_clock = np.prod([f for _, cause, f in mine if cause in ("clock", "power limit")])
            new = scaled(row, slower * float(noises[i, index]))
            hertz = dict.fromkeys(("min", "median", "max"), 1.95e9 / float(of_clock))
            new["gemm"]["clocks"] = {"sm_hz": hertz, "throttled_share": 0.0}
            code = sum(at for at, cause, _ in mine if cause == "fingerprint")
            new["gemm"]["fingerprint"] = hash_of(row["name"], code)
            if failed[index, i]:
                new["gemm"] |= dict.fromkeys(("seconds", "flop_per_second", "clocks"))
                new["gemm"] |= {"samples_seconds": [], "failed": "c[0,0] = nan, expected 1 +- 0.1"}
            document["benchmarks"].append(new)
        path = folder / f"{index:04}-{run['commit']}.json"
        path.write_text(json.dumps(document), encoding="utf-8")
    names = [row["name"].removesuffix("/manual_time") for row in rows]
    return World(names, steps, failed, interrupted)


def hash_of(text: str, number: int) -> str:
    return hashlib.sha256(f"{text} {number}".encode()).hexdigest()[:16]


def trends_of(folder: Path) -> list[Trend]:
    return find_trends(read_history(folder, Refusals()))


@pytest.fixture(scope="session")
def planted(ladder_path: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[World, Path]:
    folder = tmp_path_factory.mktemp("history")
    return made(ladder_path, folder), folder


@pytest.fixture
def few(planted: tuple[World, Path], tmp_path: Path) -> Path:
    folder = tmp_path / "records"
    folder.mkdir()
    for path in sorted(planted[1].glob("*.json"))[:12]:
        shutil.copy(path, folder)
    return folder


def test_planted_steps_are_found_where_they_are(planted: tuple[World, Path]) -> None:
    world, folder = planted
    trends = trends_of(folder)
    assert len(trends) == ROWS
    found, false, causes = 0, 0, 0
    for trend in trends:
        row = world.names.index(str(trend.series.case))
        records = trend.series.record.tolist()
        want = {bisect_left(records, at): step for (of, at), step in world.steps.items()
                if of == row}  # fmt: skip
        false += sum(all(abs(c.at - at) > 1 for at in want) for c in trend.changes)
        for at, (cause, factor) in want.items():
            change = next((c for c in trend.changes if abs(c.at - at) <= 1), None)
            if change is not None:
                assert change.ratio == pytest.approx(factor, rel=0.02)
                assert not change.gradual
                found += 1
                causes += change.suspect.split()[0] == cause.split()[0] or cause == "nothing"
    assert len(world.steps) > 20
    assert found >= 0.98 * len(world.steps)
    assert false == 0
    assert causes == found


# Other seeds than `planted` prints its table with.
@pytest.mark.parametrize("kind", CASES)
def test_what_was_planted_is_found_and_nothing_else(kind: str) -> None:
    series = 5 if "3,000" in kind else 40
    cases = [CASES[kind](np.random.default_rng([1, i])) for i in range(series)]
    judged = [case.judged() for case in cases]
    planted = sum(len(case.changes) for case in cases)
    assert sum(found for found, _ in judged) >= 0.95 * planted
    assert sum(elsewhere > 0 for _, elsewhere in judged) <= 0.05 * series


def noisy(count: int, seed: int) -> np.ndarray:
    return 1e-3 * np.exp(0.005 * np.random.default_rng(seed).standard_t(5, count))


def test_a_gradual_change_is_told_with_its_beginning_and_end() -> None:
    seconds = noisy(300, 1)
    seconds *= np.exp(np.clip((np.arange(300) - 100) / 80, 0, 1) * np.log(1.2))
    segments, (change,) = find_changes(seconds)
    assert change.gradual
    assert (change.start, change.at) == pytest.approx((100, 180), abs=8)
    assert change.ratio == pytest.approx(1.2, rel=0.02)
    assert segments[-1].last_seconds / segments[0].seconds == pytest.approx(1.2, rel=0.02)


def test_a_return_to_a_speed_that_was_seen_before_needs_more_records() -> None:
    random = np.random.default_rng(4)
    slow = random.random(200) < 0.3
    seconds = noisy(200, 4) * np.where(slow, 1.06, 1.0)
    seconds[-5:] = seconds[slow][:5]
    assert not find_changes(seconds)[1]
    assert find_changes(np.append(seconds, np.full(30, seconds[-1])))[1]


def test_noise_alone_is_no_change() -> None:
    assert all(not find_changes(noisy(2000, seed))[1] for seed in range(40))


def test_one_slow_record_is_no_change_and_four_are() -> None:
    for slow, changes in ((1, 0), (3, 0), (4, 2)):
        seconds = noisy(60, 1)
        seconds[30 : 30 + slow] *= 1.2
        assert len(find_changes(seconds)[1]) == changes, slow


def test_a_change_four_records_ago_is_found() -> None:
    seconds = noisy(40, 2)
    seconds[36:] *= 1.05
    (change,) = find_changes(seconds)[1]
    assert change.at == 36
    assert change.low < 1.05 < change.high


def test_short_and_constant_series_have_no_change() -> None:
    for count in (1, 2, 5, 9, 30):
        assert not find_changes(np.full(count, 1e-3))[1]
        assert not find_changes(noisy(count, count))[1]


def test_copies_count_once_and_records_are_in_the_order_of_their_dates(few: Path) -> None:
    paths = sorted(few.glob("*.json"))
    shutil.copy(paths[0], few / "copy.json")
    assert len(read_history(few, Refusals()).entries) == 12
    document = json.loads(paths[1].read_text(encoding="utf-8"))
    document["context"]["date"] = "2030-01-01T00:00:00+00:00"
    paths[1].write_text(json.dumps(document), encoding="utf-8")
    entries = read_history(few, Refusals()).entries
    assert len(entries) == 12
    assert (entries[-1].path, entries[-1].date) == (paths[1], "2030-01-01T00:00:00Z")


def test_bad_files_are_told_each_time_and_the_rest_is_used(
    few: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = sorted(few.glob("*.json"))[3]
    text = good.read_text(encoding="utf-8")
    date = re.search(r'"date":\s*"[^"]*"', text)
    assert date
    (few / "cut.json").write_text(text[:1000], encoding="utf-8")
    (few / "empty.json").write_text("", encoding="utf-8")
    (few / "binary.json").write_bytes(bytes(range(256)))
    (few / "nan.json").write_text(text.replace("0.0", "NaN", 1), encoding="utf-8")
    (few / "undated.json").write_text(text.replace(date[0], '"date": "today"'), encoding="utf-8")
    (few / "link.json").symlink_to(few / "nowhere.json")
    told = []
    for _ in range(2):
        assert main(["history", str(few)]) == 3
        output = capsys.readouterr()
        told.append(sorted(output.err.splitlines()))
        assert "12 records" in output.out
    assert told[0] == told[1]
    assert len(told[0]) == 6
    assert any("link.json: no such file" in line for line in told[0])
    assert all(line.startswith(f"gemm-report: {few}") for line in told[0])


def test_a_file_name_that_is_no_utf_8_is_told_each_time(
    few: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = sorted(few.glob("*.json"))[3]
    try:
        shutil.copy(good, few / os.fsdecode(b"caf\xe9.json"))
    except OSError:
        pytest.skip("this file system has names in UTF-8 only")
    for _ in range(2):
        assert main(["history", str(few)]) == 3
        output = capsys.readouterr()
        assert "12 records" in output.out
        (line,) = output.err.splitlines()
        assert "no UTF-8: rename it" in line


@pytest.mark.parametrize("content", [None, "{}"])
def test_without_a_record_there_is_no_history(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str | None
) -> None:
    if content is not None:
        (tmp_path / "other.json").write_text(content, encoding="utf-8")
    assert main(["history", str(tmp_path)]) == 3
    assert capsys.readouterr().err


def test_devices_are_kept_apart_and_names_stay_texts(
    few: Path, ladder_path: Path, tmp_path: Path
) -> None:
    document = json.loads(ladder_path.read_text(encoding="utf-8"))
    name = "<img src=x onerror=alert(1)>/../../up"
    document["context"]["gemm"]["device"]["name"] = name
    rows = [row["gemm"] for row in document["benchmarks"] if "gemm" in row]
    for i, row in enumerate(rows):
        row["kernel"] = f"../{i}{name}"
    (few / "other.json").write_text(json.dumps(document), encoding="utf-8")
    output = tmp_path / "pages"
    found = tmp_path / "found.json"
    assert main(["history", str(few), "-o", str(output), "--json", str(found)]) == 0
    devices = {series["device"] for series in json.loads(found.read_text())["series"]}
    assert len(devices) == 2
    assert {path.parent.name for path in tmp_path.rglob("*.html")} == {"pages", "series"}
    pages = [path.read_text(encoding="utf-8") for path in output.rglob("*.html")]
    assert any("onerror" in page for page in pages)
    assert all("<img" not in page for page in pages)


def test_a_devices_name_is_no_command_to_a_runner(
    few: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in few.glob("*.json"):
        document = json.loads(path.read_text(encoding="utf-8"))
        document["context"]["gemm"]["device"]["name"] = "::stop-commands::\x1b[2Jx"
        path.write_text(json.dumps(document), encoding="utf-8")
    assert main(["history", str(few)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any("stop-commands" in line for line in lines)
    assert not any(line.lstrip().startswith("::") for line in lines)
    assert all(map(str.isprintable, lines))


def test_failed_rows_are_gaps(planted: tuple[World, Path]) -> None:
    world, folder = planted
    trends = trends_of(folder)
    shown = ~world.interrupted[:, None] | (np.arange(ROWS) < ROWS // 2)
    assert sum(len(t.series.failed) for t in trends) == (world.failed & shown).sum() > 0
    assert sum(len(t.series.record) for t in trends) == (~world.failed & shown).sum()


def test_the_partition_is_the_best_of_all() -> None:
    def cost(bounds: tuple[int, ...], signal: np.ndarray) -> float:
        parts = np.split(signal, bounds)
        if any(len(part) < changes_module.SHORTEST for part in parts):
            return np.inf
        squares = sum(float(((part - part.mean()) ** 2).sum()) for part in parts)
        return squares + changes_module._PROPOSED * len(parts)

    rng = np.random.default_rng(5)
    for step in (0, 4, 8):
        signal = rng.normal(size=16)
        signal[9:] += step
        everywhere = [bounds for inner in range(4) for bounds in combinations(range(1, 16), inner)]
        best = min(everywhere, key=lambda bounds: cost(bounds, signal))
        assert changes_module._partitioned(signal).tolist() == [0, *best, 16]


def test_every_stored_record_can_be_read() -> None:
    paths = own_files("results/*/*.json")
    assert paths
    for path in paths:
        for timing in read(path)[1]:
            assert timing.flop > 0


def test_pages_work_in_a_browser(few: Path, tmp_path: Path, chromium: Any) -> None:
    assert main(["history", str(few), "-o", str(tmp_path / "pages")]) == 0
    chromium.get_log("browser")
    chromium.get((tmp_path / "pages/index.html").as_uri())
    bodies = chromium.find_elements("css selector", "table[aria-label=series] tbody")
    assert len(bodies) == 30
    chromium.find_element("css selector", "input[type=search]").send_keys("no such kernel")
    assert not any(body.is_displayed() for body in bodies)
    chromium.find_element("css selector", "button.clear").click()
    assert "No changes" in chromium.find_element("css selector", ".answer").text
    chromium.find_element("css selector", "tbody th a").click()
    mean = chromium.find_element("css selector", ".details svg.history")
    assert mean.is_displayed(), "the geometric mean of a precision unfolds"
    chromium.find_element("css selector", "table[aria-label=series] td a").click()
    chart = chromium.find_element("css selector", "svg.history")
    assert chart.size["width"] > 700
    assert chromium.find_element("css selector", "svg.history .points").get_attribute("d")
    chromium.find_element("link text", "All series").click()
    assert chromium.find_elements("css selector", "svg.spark")
    assert not chromium.get_log("browser")


def test_the_mean_is_geometric_and_over_the_cases_of_the_newest_record(few: Path) -> None:
    history = read_history(few, Refusals())
    found = means(history)
    assert {series.case.precision for series, _ in found} == {
        series.case.precision for series in history.series
    }
    for mean, cases in found:
        its = [s for s in history.series if s.case.precision == mean.case.precision]
        its = [s for s in its if s.record[-1] == mean.record[-1]]
        assert cases == len(its)
        assert mean.rates[-1] == pytest.approx(100)
        first = int(mean.record[0])
        shares = [s.rates[s.record.tolist().index(first)] / s.rates[-1]
                  for s in its if first in s.record]  # fmt: skip
        assert mean.rates[0] == pytest.approx(100 * np.exp(np.mean(np.log(shares))))


def test_two_records_are_no_trend(few: Path, tmp_path: Path) -> None:
    for path in sorted(few.glob("*.json"))[2:]:
        path.unlink()
    assert main(["history", str(few), "-o", str(tmp_path / "pages")]) == 0
    page = (tmp_path / "pages/index.html").read_text(encoding="utf-8")
    assert 'class="spark"' not in page
    folded = re.search(
        r"<details><summary>(\d+) series of fewer than 3 records<.*?</details>", page
    )
    assert folded and int(folded[1]) == folded[0].count("<li>") == 30


@pytest.mark.parametrize(
    ("remote", "address"),
    [
        ("git@github.com:owner/name.git", "https://github.com/owner/name"),
        ("https://user:secret@host.org/a/name.git", "https://host.org/a/name"),
        ("ssh://git@host.org/a/name", "https://host.org/a/name"),
        ("javascript:alert(1)//", "https://javascript/alert%281%29/"),
        ("", None),
    ],
)
def test_a_git_remote_is_an_address(remote: str, address: str | None) -> None:
    assert web_address(remote) == address


def test_commits_are_links_where_the_repository_is_known(few: Path, tmp_path: Path) -> None:
    for name, options in (("without", []), ("with", ["--repository=git@github.com:o/n.git"])):
        assert main(["history", str(few), "-o", str(tmp_path / name), *options]) == 0
        page = next((tmp_path / name / "series").iterdir()).read_text(encoding="utf-8")
        links = re.findall(r"https://github.com/o/n/commit/(\w+)", page)
        assert bool(links) == bool(options)
    commits = {entry.setting[-1] for entry in read_history(few, Refusals()).entries}
    assert set(links) <= commits


def edited(folder: Path, which: slice, change: Callable[[Any], object]) -> None:
    for path in sorted(folder.glob("*.json"))[which]:
        document = json.loads(path.read_text(encoding="utf-8"))
        change(document)
        path.write_text(json.dumps(document), encoding="utf-8")


def test_states_and_gpus_are_series_of_their_own(
    few: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def other(document: Any) -> None:
        document["context"]["gemm"]["method"]["state"] = "burst"
        document["context"]["gemm"]["method"]["fill"] = "zeros"

    edited(few, slice(8, 12), other)
    edited(few, slice(6, 8), lambda d: d["context"]["gemm"]["device"].update(uuid_hash="b" * 16))
    edited(few, slice(0, 6), lambda d: d["context"]["gemm"]["device"].update(uuid_hash="a" * 16))
    edited(few, slice(8, 12), lambda d: d["context"]["gemm"]["device"].update(uuid_hash="a" * 16))
    history = read_history(few, Refusals())
    devices = [entry.device.partition(", ")[2] for entry in history.entries]
    assert (
        devices == ["GPU aaaaaaaa"] * 6 + ["GPU bbbbbbbb"] * 2 + ["GPU aaaaaaaa, burst, zeros"] * 4
    )
    assert max(len(series.record) for series in history.series) == 6
    assert main(["history", str(few)]) == 0
    assert capsys.readouterr().out.count(" records, newest ") == 3


def test_devices_of_one_name_are_kept_apart_by_what_they_are(few: Path) -> None:
    edited(few, slice(0, 5), lambda d: d["context"]["gemm"]["device"].update(l2_bytes=1 << 20))
    edited(few, slice(5, 8), lambda d: d["context"]["gemm"]["device"].update(l2_bytes=2 << 20))
    devices = [entry.device for entry in read_history(few, Refusals()).entries]
    name = devices[0]
    assert devices == [name] * 5 + [f"{name}, L2 2048 KiB"] * 3 + [name] * 4


def test_cases_that_are_gone_are_told_with_what_became_of_them(
    few: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def change(document: Any) -> None:
        rows = document["benchmarks"]
        del rows[0]
        rows[0]["gemm"]["kernel"] = "Renamed"
        rows[1]["gemm"] |= {"seconds": None, "flop_per_second": None, "samples_seconds": []}
        rows[1]["gemm"] |= {"clocks": None, "failed": None, "skipped": "needs more memory"}
        document["context"]["gemm"]["complete"] = True

    names = [str(t.series.case) for t in trends_of(few)]
    assert not find_gone(read_history(few, Refusals()))
    first = json.loads(sorted(few.glob("*.json"))[0].read_text())["benchmarks"][:3]
    lost, old, skipped = (row["name"].removesuffix("/manual_time") for row in first)
    edited(few, slice(9, 12), change)
    gone = {str(each.series.case): each for each in find_gone(read_history(few, Refusals()))}
    assert set(gone) == {lost, old, skipped} <= set(names)
    assert {each.since for each in gone.values()} == {9}
    assert gone[lost].why == "not in the record"
    assert gone[skipped].why == "skipped: needs more memory"
    assert "Renamed" in str(gone[old].now) and gone[old].why.endswith("(same machine code)")
    found = tmp_path / "found.json"
    pages = tmp_path / "pages"
    assert main(["history", str(few), "--json", str(found), "-o", str(pages)]) == 0
    assert "gone since" in capsys.readouterr().out
    assert len(json.loads(found.read_text())["gone"]) == 3
    assert "3 cases without a time any more" in (pages / "index.html").read_text()


def test_a_run_of_a_few_kernels_makes_no_case_gone(few: Path) -> None:
    edited(few, slice(11, 12), lambda document: document["benchmarks"].__delitem__(slice(10, 30)))
    assert not find_gone(read_history(few, Refusals()))
