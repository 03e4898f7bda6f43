"""Of planted changes, what is found; and what history does with folders of all kinds."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from bisect import bisect_left
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from own_files import own_files

from gemm_report.cli import main
from gemm_report.collection import Refusals
from gemm_report.history import generated, index
from gemm_report.history.changes import WINDOW, find_changes, propose, searching, windows
from gemm_report.history.generated import World
from gemm_report.history.index import FOLDER, Index
from gemm_report.history.reading import identity_of, key_of, read
from gemm_report.history.series import series_of
from gemm_report.history.trends import Trend, find_trends

pytest.importorskip("ruptures")


def made(template: Path, folder: Path, records: int, rows: int) -> World:
    document = json.loads(template.read_text(encoding="utf-8"))
    hz = {"min": 1.9e9, "median": 1.95e9, "max": 1.98e9}
    for row in document["benchmarks"]:
        row["gemm"]["clocks"] = {"sm_hz": hz, "throttled_share": 0.0}
    world = generated.make_world(document, records, rows, seed=3)
    generated.write_history(world, folder, workers=1)
    return world


def trends_of(folder: Path) -> tuple[list[Trend], int]:
    with Index(folder) as opened:
        refusals = Refusals()
        opened.update(refusals)
        content = opened.content()
        known = opened.findings()
        trends, memory, _ = find_trends(content, series_of(content), known)
        opened.keep_findings(memory.new, known.keys() - memory.used)
    return trends, len(memory.new)


@pytest.fixture(scope="session")
def planted(ladder_path: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[World, Path]:
    folder = tmp_path_factory.mktemp("history")
    return made(ladder_path, folder, 200, 30), folder


@pytest.fixture
def few(planted: tuple[World, Path], tmp_path: Path) -> Path:
    folder = tmp_path / "records"
    folder.mkdir()
    for path in sorted(planted[1].glob("*.json"))[:12]:
        shutil.copy(path, folder)
    return folder


def test_planted_steps_are_found_where_they_are(planted: tuple[World, Path]) -> None:
    world, folder = planted
    names = [generated._name(row) for row in world.rows]
    order = {generated.file_name(world, i): i for i in range(len(world.commits))}
    files = sorted(path.name for path in folder.glob("*.json"))
    trends, _ = trends_of(folder)
    assert len(trends) == 30
    complete, false, causes, of_steps = 0, 0, 0, 0
    for trend in trends:
        row = names.index(str(trend.series.case))
        records = [order[files[i]] for i in trend.series.record.tolist()]
        want = {bisect_left(records, e.at): e for e in world.events if row in e.rows}
        found = {turn.change.at: turn for turn in trend.turns}
        near = {at: next((t for t in found if abs(t - at) <= 1), None) for at in want}
        complete += None not in near.values()
        false += any(all(abs(t - at) > 1 for at in want) for t in found)
        for at, place in near.items():
            if place is not None:
                event, turn = want[at], found[place]
                factor = event.factors[list(event.rows).index(row)]
                assert turn.change.ratio == pytest.approx(factor, rel=0.02)
                of_steps += 1
                suspect = turn.suspect.split()[0]
                causes += suspect == event.cause.split()[0] or event.cause == "nothing"
    assert of_steps > 20
    assert complete >= 0.95 * len(trends)
    assert false == 0
    assert causes == of_steps


def noise(count: int, seed: int) -> np.ndarray:
    return 1e-3 * np.exp(0.005 * np.random.default_rng(seed).standard_t(5, count))


def test_noise_alone_is_no_change() -> None:
    assert all(not find_changes(noise(2000, seed))[1] for seed in range(40))


def test_one_slow_record_is_no_change_and_four_are() -> None:
    for slow, changes in ((1, 0), (3, 0), (4, 2)):
        seconds = noise(60, 1)
        seconds[30 : 30 + slow] *= 1.2
        assert len(find_changes(seconds)[1]) == changes, slow


def test_a_change_four_records_ago_is_found() -> None:
    seconds = noise(40, 2)
    seconds[36:] *= 1.05
    (change,) = find_changes(seconds)[1]
    assert change.at == 36
    assert change.low < 1.05 < change.high


def test_short_and_constant_series_have_no_change() -> None:
    for count in (1, 2, 5, 9, 30):
        assert not find_changes(np.full(count, 1e-3))[1]
        assert not find_changes(noise(count, count))[1]


def test_the_search_is_that_of_ruptures() -> None:
    from ruptures import KernelCPD

    for seed in range(20):
        signal = np.random.default_rng(seed).normal(size=(300, 1))
        signal[100:180] += 2
        library = KernelCPD(kernel="linear", min_size=4).fit(signal).predict(pen=5.0)
        before = searching()(signal, 5.0, 4)
        found = [300]
        while before[found[0]] > 0:
            found.insert(0, int(before[found[0]]))
        assert found == library
        assert len(found) > 2


def test_windows_cover_all_points_and_only_the_last_holds_the_newest() -> None:
    for count in (1, WINDOW // 2, WINDOW, WINDOW + 1, 5000):
        found = windows(count)
        assert {i for a, b in found for i in range(a, b)} == set(range(count))
        assert sum(end == count for _, end in found) == 1


def test_what_is_found_in_steps_is_what_is_found_at_once() -> None:
    seconds = noise(1500, 4)
    for place in (300, 700, 1100, 1490):
        seconds[place:] *= 1.05
    memory: dict[bytes, list[int]] = {}

    def remembered(window: np.ndarray) -> list[int]:
        return memory.setdefault(window.tobytes(), propose(window))

    for count in range(1400, 1501, 7):
        assert find_changes(seconds[:count], remembered) == find_changes(seconds[:count])


def test_one_more_record_is_all_that_is_read_and_looked_at(planted: tuple[World, Path]) -> None:
    world, folder = planted
    trends, _ = trends_of(folder)
    newest = folder / "20991231T000000Z-new.json"
    document = generated.record(world, len(world.commits) - 1)
    document["context"]["date"] = "2099-12-31T00:00:00+00:00"
    newest.write_text(json.dumps(document), encoding="utf-8")
    with Index(folder) as opened:
        assert opened.update(Refusals()) == 1
        assert opened.update(Refusals()) == 0
    again, looked_at = trends_of(folder)
    assert looked_at <= len(again) == len(trends)
    newest.unlink()
    trends_of(folder)


def points(folder: Path) -> tuple[bytes, list[str]]:
    with Index(folder) as opened:
        opened.update(Refusals())
        return opened.content().points.tobytes(), opened.remarks


def test_the_index_can_be_old_or_missing(few: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, remarks = points(few)
    assert first
    assert not remarks
    with monkeypatch.context() as patch:
        patch.setattr(index, "VERSION", 99)
        again, (remark,) = points(few)
        assert again == first
        assert "of another version" in remark
    shutil.rmtree(few / FOLDER)
    assert points(few) == (first, [])


def test_a_damaged_index_is_told_and_made_anew(
    few: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["history", str(few)]) == 0
    told = capsys.readouterr().out
    path = few / FOLDER / "index"
    whole = path.read_bytes()
    first = points(few)[0]
    offsets = range(0, len(whole), len(whole) // 40)
    flipped = [whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :] for at in offsets]
    for damaged in (b"", b"no index" * 1000, *flipped, *(whole[:at] for at in offsets)):
        path.write_bytes(damaged)
        again, (remark,) = points(few)
        assert again == first
        assert "the index is damaged: it is made anew" in remark
        assert points(few) == (first, [])
    path.write_bytes(flipped[-1])
    assert main(["history", str(few)]) == 0
    output = capsys.readouterr()
    assert output.out == told
    assert output.err.count("\n") == 1


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to(path)])
def test_what_is_no_file_is_no_index(few: Path, make: Callable[[Path], None]) -> None:
    first, _ = points(few)
    path = few / FOLDER / "index"
    path.unlink()
    make(path)
    assert points(few) == (first, [])


def test_what_a_link_leads_to_is_not_written_over(few: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("text")
    (few / FOLDER).mkdir()
    (few / FOLDER / "index").symlink_to(precious)
    points(few)
    assert precious.read_text() == "text"


def test_changed_and_removed_files_are_followed_and_copies_count_once(few: Path) -> None:
    def counts() -> tuple[int, int]:
        with Index(few) as opened:
            read = opened.update(Refusals())
            return read, len(opened.content().entries)

    paths = sorted(few.glob("*.json"))
    assert counts() == (12, 12)
    shutil.copy(paths[0], few / "copy.json")
    assert counts() == (1, 12)
    paths[0].unlink()
    assert counts() == (0, 12)
    (few / "copy.json").unlink()
    assert counts() == (0, 11)
    document = json.loads(paths[1].read_text(encoding="utf-8"))
    document["context"]["date"] = "2030-01-01T00:00:00+00:00"
    paths[1].write_text(json.dumps(document), encoding="utf-8")
    assert counts() == (1, 11)
    with Index(few) as opened:
        assert opened.content().entries[-1].date == "2030-01-01T00:00:00Z"


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
    assert any("link.json: a link to no file: remove it" in line for line in told[0])
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


@pytest.mark.parametrize("cache", ["writable", "read-only"])
def test_where_the_folder_cannot_be_written_history_is_the_same(
    few: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    cache: str,
) -> None:
    assert main(["history", str(few)]) == 0
    told = capsys.readouterr().out
    shutil.rmtree(few / FOLDER)
    # A file where the folder would be: permissions do not stop root, as whom CI may run.
    (few / FOLDER).write_text("", encoding="utf-8")
    home = tmp_path / "cache"
    home.mkdir()
    if cache == "read-only":
        (home / "gemm_report").write_text("", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    for _ in range(2):
        assert main(["history", str(few)]) == 0
        output = capsys.readouterr()
        assert output.out == told
        remarks = output.err.splitlines()
        assert len(remarks) == (cache == "read-only")
        assert all("no place for an index" in remark for remark in remarks)
    assert len(list(home.glob("gemm_report/*.index"))) == (cache == "writable")


def test_what_was_read_before_ctrl_c_is_kept(few: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_some(path: Path, done: list[Path] = []) -> Any:  # noqa: B006
        done.append(path)
        if len(done) > 5:
            raise KeyboardInterrupt
        return read(path)

    with monkeypatch.context() as patch:
        patch.setattr(index, "_read_one", read_some)
        with pytest.raises(KeyboardInterrupt):
            points(few)
    with Index(few) as unfinished:
        assert unfinished.update(Refusals()) == 7
        assert len(unfinished.content().entries) == 12


def test_ctrl_c_of_a_terminal_ends_all_processes(planted: tuple[World, Path]) -> None:
    """Of which each gets the signal."""
    shutil.rmtree(planted[1] / FOLDER, ignore_errors=True)
    code = (
        "import os, time\n"
        "from gemm_report import cli\n"
        "from gemm_report.history import index\n"
        "def read(path):\n"
        "    os.write(1, b'%d\\n' % os.getpid())\n"
        "    time.sleep(0.02)\n"
        "index._read_one = read\n"
        "index.os.sched_getaffinity = lambda process: {0, 1}\n"
        "cli.command()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, "history", str(planted[1])],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
        start_new_session=True,
        # Who starts the tests in the background has them ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as started:
        assert started.stdout
        readers: set[bytes] = set()
        while len(readers) < 2:
            readers.add(started.stdout.readline())
            assert b"" not in readers, "it ended before both had begun"
        os.killpg(started.pid, signal.SIGINT)
        complaint = started.communicate(timeout=60)[1]
    assert (started.returncode, complaint) == (130, b"gemm-report: interrupted\n")


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
    for row in document["benchmarks"]:
        if "gemm" in row:
            row["gemm"]["kernel"] = f"../{name}"
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
    trends, _ = trends_of(folder)
    shown = ~world.interrupted[:, None] | (np.arange(30) < 15)
    assert sum(len(t.series.failed) for t in trends) == (world.failed & shown).sum() > 0
    assert sum(len(t.series.record) for t in trends) == (~world.failed & shown).sum()


def test_every_stored_record_can_be_read() -> None:
    paths = own_files("results/*/*.json")
    assert paths
    for path in paths:
        for timing in read(path).timings:
            assert key_of(identity_of(timing.case)) == timing.case


def test_a_missing_library_is_named(
    few: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ruptures", None)
    searching.cache_clear()
    assert main(["history", str(few)]) == 3
    assert "pip install ruptures" in capsys.readouterr().err


def test_pages_work_in_a_browser(few: Path, tmp_path: Path, chromium: Any) -> None:
    assert main(["history", str(few), "-o", str(tmp_path / "pages")]) == 0
    chromium.get_log("browser")
    chromium.get((tmp_path / "pages/index.html").as_uri())
    bodies = chromium.find_elements("css selector", "main table:last-of-type tbody")
    assert len(bodies) == 30
    chromium.find_element("css selector", "input[type=search]").send_keys("no such kernel")
    assert not any(body.is_displayed() for body in bodies)
    chromium.find_element("css selector", "button.clear").click()
    chromium.find_element("css selector", "tbody a").click()
    chart = chromium.find_element("css selector", "svg.history")
    assert chart.size["width"] > 700
    assert chromium.find_element("css selector", "svg.history .points").get_attribute("d")
    chromium.find_element("link text", "All series").click()
    assert chromium.find_elements("css selector", "svg.spark")
    assert not chromium.get_log("browser")
