"""What is left of a run that did not end by itself, and what becomes of it.

GEMM_BENCH_KILLS says how often a run is killed, GEMM_BENCH_SEED when.
"""

import fcntl
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

jsonschema = pytest.importorskip("jsonschema")

ROOT = Path(__file__).parents[2]
BENCH = ROOT / os.environ.get("GEMM_BENCH_BUILD", "build/release") / "gemm_bench"
KILLS = int(os.environ.get("GEMM_BENCH_KILLS", "6"))
SEED = int(os.environ.get("GEMM_BENCH_SEED", "5"))
COMPARE = Path("/usr/share/benchmark/compare.py")

QUICK = [
    BENCH,
    "--gemm_device=cpu",
    "--gemm_cache=hot",
    "--gemm_warmup=0.001",
    "--gemm_sample=0.0001",
    "--gemm_sampling=0.002",
    "--gemm_ceilings=queried",
    "--benchmark_min_time=2x",
]
MANY = [*QUICK, "--gemm_shapes=" + ",".join(map(str, range(8, 40)))]
ONE = [*QUICK, "--gemm_shapes=16", "--benchmark_filter=CpuNaive"]
LONG = [*MANY, "--gemm_cooldown=1"]

pytestmark = pytest.mark.skipif(not BENCH.exists(), reason=f"{BENCH} is not built")


def run(command: list[Any], **kwargs: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, **kwargs
    )


def recover(*paths: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "report")}
    return run([sys.executable, "-m", "gemm_report", "recover", *paths], env=environment)


def record(path: Path) -> dict[str, Any]:
    """The record, if the schema and gemm_report have nothing to say against it."""
    document = json.loads(path.read_text())
    jsonschema.validate(document, json.loads((ROOT / "results" / "schema.json").read_text()))
    code = "import sys, pathlib; from gemm_report.record import read_record\n"
    code += "read_record(pathlib.Path(sys.argv[1]))"
    read = run([sys.executable, "-c", code, path], cwd=ROOT / "report")
    assert read.returncode == 0, read.stderr
    return document


def names(document: dict[str, Any]) -> list[str]:
    return [row["name"] for row in document["benchmarks"]]


def shown(console: str) -> list[str]:
    """The rows that a console says are finished; a last line may be torn."""
    lines = console.split("\n")[:-1]
    return [line.split()[0] for line in lines if re.search(r"\[\d+/\d+ ", line)]


def killed(command: list[Any], seconds: float, folder: Path) -> str:
    """What a run showed that was killed after so long."""
    console = folder / "console.txt"
    with console.open("w") as out, subprocess.Popen(command, stdout=out, stderr=out) as process:
        time.sleep(seconds)
        process.kill()
    return console.read_text()


def with_a_row(out: Path) -> subprocess.Popen[bytes]:
    """A run that has finished a row or two of many."""
    process = subprocess.Popen(
        [*LONG, f"--benchmark_out={out}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    journal = Path(f"{out}.journal")
    deadline = time.monotonic() + 60
    # A line without an end is not written yet.
    while not (journal.exists() and '"run_name"' in journal.read_text().rpartition("\n")[0]):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.01)
    return process


def left_behind(out: Path) -> Path:
    """The journal of a run that was killed."""
    with with_a_row(out) as process:
        process.kill()
    assert not out.exists()
    return Path(f"{out}.journal")


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> float:
    """Seconds of the run that is killed at random moments."""
    out = tmp_path_factory.mktemp("whole") / "record.json"
    begin = time.monotonic()
    done = run([*MANY, f"--benchmark_out={out}"])
    seconds = time.monotonic() - begin
    assert done.returncode == 0, done.stderr
    assert shown(done.stdout) == names(record(out))
    assert len(shown(done.stdout)) >= 64
    return seconds


@pytest.mark.parametrize("kill", range(KILLS))
def test_every_row_that_was_shown_outlives_a_kill(
    kill: int, whole_run: float, tmp_path: Path
) -> None:
    moment = random.Random(f"{SEED} {kill}").uniform(0, 1.02) * whole_run
    out = tmp_path / "record.json"
    rows = shown(killed([*MANY, f"--benchmark_out={out}"], moment, tmp_path))
    if kill % 2:  # the next start
        assert run([*ONE, f"--benchmark_out={tmp_path / 'next.json'}"]).returncode == 0
    else:
        done = recover(tmp_path)
        assert done.returncode == 0, done.stderr
    assert list(tmp_path.glob("*.journal")) == []
    assert list(tmp_path.glob("*.part*")) == []
    print(f"killed after {moment:.2f} s: {len(rows)} rows shown")
    if rows or out.exists():
        document = record(out)
        assert names(document)[: len(rows)] == rows
        assert len(names(document)) <= len(rows) + 1, "the row that was about to be shown"
        whole = len(rows) >= 64 and document["context"]["gemm"]["complete"]
        assert whole or not document["context"]["gemm"]["complete"]


@pytest.mark.parametrize("kept", [0, 1, 20])
@pytest.mark.parametrize("by_next_start", [True, False])
def test_a_journal_that_was_just_begun_is_removed(
    kept: int, by_next_start: bool, tmp_path: Path
) -> None:
    journal = left_behind(tmp_path / "record.json")
    journal.write_bytes(journal.read_bytes()[:kept])
    if by_next_start:
        assert run([*ONE, f"--benchmark_out={tmp_path / 'next.json'}"]).returncode == 0
    else:
        assert recover(tmp_path).returncode == 0
    assert list(tmp_path.glob("record*")) == []


def test_both_recoveries_make_the_same_record(tmp_path: Path) -> None:
    journal = left_behind(tmp_path / "record.json")
    other = tmp_path / "other" / "record.json.journal"
    other.parent.mkdir()
    shutil.copy(journal, other)
    done = recover(tmp_path)
    assert done.returncode == 0
    assert done.stdout.splitlines() == [str(other.with_suffix("")), str(journal.with_suffix(""))]
    by_python = [record(path) for path in (tmp_path / "record.json", other.with_suffix(""))]
    shutil.move(other.with_suffix(""), tmp_path / "elsewhere.json")
    lines = [{"context": by_python[0]["context"], "benchmarks": by_python[0]["benchmarks"]}]
    other.write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = run([*ONE, f"--benchmark_out={other.parent / 'next.json'}"])
    assert done.returncode == 0
    assert f"Recovered {other.with_suffix('')} from" in done.stderr
    assert record(other.with_suffix("")) == by_python[0] == by_python[1]


def test_a_recovered_record_is_one_for_googles_tools(tmp_path: Path) -> None:
    left_behind(tmp_path / "record.json")
    recover(tmp_path)
    document = record(tmp_path / "record.json")
    run_keys = document["context"]["gemm"]
    assert not run_keys["complete"]
    assert run_keys["kernels"]
    assert 0 < run_keys["time"]["kernel_seconds"] < run_keys["time"]["wall_seconds"]
    assert run_keys["conformance"].startswith("uniform[-1,1], ")
    if not COMPARE.exists():
        pytest.skip("no compare.py of Google Benchmark here")
    pytest.importorskip("scipy")
    path = str(tmp_path / "record.json")
    compared = run([sys.executable, COMPARE, "--no-utest", "benchmarks", path, path])
    assert compared.returncode == 0, compared.stderr
    assert names(document)[0] in compared.stdout


@pytest.mark.parametrize("torn", [1, 100, -1])
def test_a_torn_last_line_is_left_out(torn: int, tmp_path: Path) -> None:
    journal = left_behind(tmp_path / "record.json")
    content = journal.read_bytes()
    last = content.rstrip(b"\n").rsplit(b"\n", 1)[1]
    rows = content.count(b'"run_name"')
    journal.write_bytes(content + last[:torn])
    assert recover(journal).returncode == 0
    assert len(names(record(tmp_path / "record.json"))) == rows


def test_a_journal_of_a_run_that_lives_is_not_touched(tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    with with_a_row(out) as process:
        done = recover(tmp_path)
        assert done.returncode == 0
        assert "still alive" in done.stdout
        done = run([*ONE, f"--benchmark_out={tmp_path / 'other.json'}"])
        assert done.returncode == 0
        assert "Recovered" not in done.stderr
        assert sorted(path.name for path in tmp_path.iterdir()) == [
            "other.json",
            "record.json.journal",
        ]
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    assert names(record(out))
    assert not Path(f"{out}.journal").exists()


def test_a_second_run_into_the_same_file_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    link = tmp_path / "link.json"
    link.symlink_to(out)
    with with_a_row(out) as process:
        for name in (out, link):
            done = run([*ONE, f"--benchmark_out={name}"])
            assert done.returncode == 2
            (line,) = done.stderr.splitlines()
            assert line.startswith("gemm_bench: ")
            assert "is being written by another gemm_bench" in line
        process.kill()


def test_what_a_killed_run_left_under_the_same_name_is_kept(tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    left_behind(out)
    done = run([*ONE, f"--benchmark_out={out}"])
    assert done.returncode == 0
    assert "Recovered" in done.stderr
    assert names(record(out)) == ["CpuNaive/f32/16x16x16/manual_time"]
    assert record(out)["context"]["gemm"]["complete"]
    assert not record(tmp_path / "record-recovered.json")["context"]["gemm"]["complete"]


def test_a_recovered_record_replaces_none(tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    for _ in range(2):
        journal = left_behind(out)
        out.write_text("old")
        done = recover(journal)
        assert done.returncode == 0, done.stderr
        assert out.read_text() == "old"
        out.unlink()
    assert record(tmp_path / "record-recovered.json")
    assert record(tmp_path / "record-recovered-2.json")


@pytest.mark.parametrize("by_hand", [False, True])
def test_a_journal_whose_record_was_written_makes_no_second_one(
    by_hand: bool, tmp_path: Path
) -> None:
    """As after a power cut, which can undo that it was removed."""
    out = tmp_path / "record.json"
    with with_a_row(out) as process:
        lines = Path(f"{out}.journal").read_bytes()
        process.send_signal(signal.SIGINT)
    written = out.read_bytes()
    journal = Path(f"{out}.journal")
    journal.write_bytes(lines)
    if by_hand:
        assert recover(journal).returncode == 0
    else:
        assert run([*ONE, f"--benchmark_out={tmp_path / 'next.json'}"]).returncode == 0
        (tmp_path / "next.json").unlink()
    assert [path.name for path in tmp_path.iterdir()] == ["record.json"]
    assert out.read_bytes() == written


@pytest.mark.parametrize("content", ["", "x\n", "{}\n", '{"context": {}, "benchmarks": []}\n'])
def test_a_foreign_journal_stays_as_it_is(content: str, tmp_path: Path) -> None:
    foreign = tmp_path / "sqlite.journal"
    foreign.write_text(content)
    done = run([*ONE, f"--benchmark_out={tmp_path / 'record.json'}"])
    assert done.returncode == 0, done.stderr
    done = recover(tmp_path)
    assert done.returncode == 3
    (line,) = done.stderr.splitlines()
    assert "sqlite.journal: is no journal of gemm_bench" in line
    assert foreign.read_text() == content
    assert sorted(path.name for path in tmp_path.iterdir()) == ["record.json", "sqlite.journal"]


def test_recover_says_what_it_cannot_find(tmp_path: Path) -> None:
    assert "nothing to recover" in recover(tmp_path).stdout
    done = recover(tmp_path / "absent.journal")
    assert done.returncode == 3
    assert len(done.stderr.splitlines()) == 1


def test_runs_that_start_at_once_get_a_record_each(tmp_path: Path) -> None:
    told = [tmp_path / f"{i}.txt" for i in range(4)]
    runs = [
        subprocess.Popen(
            [*ONE, f"--benchmark_out={tmp_path / 'results'}/", f"--gemm_tell_record={path}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for path in told
    ]
    errors = [process.communicate(timeout=60)[1] for process in runs]
    assert [process.returncode for process in runs] == [0] * 4, errors
    paths = [Path(path.read_text().strip()) for path in told]
    assert len(set(paths)) == 4
    for path, error in zip(paths, errors, strict=True):
        assert f"Record: {path}" in error
        assert re.fullmatch(r"\d{8}T\d{6}Z-\w+(-dirty)?\.json", path.name)
        assert path.parent.parent == tmp_path / "results"
        assert f"--benchmark_out={path.name}" in record(path)["context"]["gemm"]["command"]
        assert str(tmp_path) not in path.read_text()
    assert set((tmp_path / "results").glob("*/*")) == set(paths)


def test_the_name_of_the_record_can_be_told_to_a_stream(tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    (tmp_path / "errors.txt").write_text("before\n")
    with (tmp_path / "errors.txt").open("a") as errors:
        command = [*ONE, f"--benchmark_out={out}", "--gemm_tell_record=/dev/stderr"]
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=errors, timeout=60, check=True)
    assert (tmp_path / "errors.txt").read_text() == f"before\n{out}\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["errors.txt", "record.json"]


@pytest.mark.parametrize("out", ["/dev/stdout", "/dev/fd/1"])
def test_a_stream_gets_the_record_and_no_journal(out: str, tmp_path: Path) -> None:
    piped = run([*ONE, "--benchmark_format=csv", f"--benchmark_out={out}"]).stdout
    assert json.loads(piped[piped.index("{") :])["benchmarks"]
    with (tmp_path / "console.txt").open("w") as console:
        command = [*ONE, f"--benchmark_out={out}"]
        assert subprocess.run(command, stdout=console, timeout=60, check=False).returncode == 0
    text = (tmp_path / "console.txt").read_text()
    assert shown(text) == names(json.loads(text[text.index("{\n") :]))
    assert [path.name for path in tmp_path.iterdir()] == ["console.txt"]


def test_what_a_full_disk_keeps_is_recovered(tmp_path: Path) -> None:
    out = tmp_path / "record.json"

    def small_files() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))

    done = run([*MANY, f"--benchmark_out={out}"], preexec_fn=small_files)
    assert done.returncode == 2
    rows = shown(done.stdout)
    assert len(rows) >= 64, "the run goes on"
    journaling, writing = done.stderr.splitlines()
    assert "the run goes on" in journaling
    assert "cannot write" in writing
    assert "record.json.journal'" in writing
    assert recover(tmp_path).returncode == 0
    kept = names(record(out))
    assert 5 < len(kept) < len(rows)
    assert kept == rows[: len(kept)]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_disk_that_is_full_for_a_while_costs_nothing(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk]).returncode != 0:
        pytest.skip("mount is refused")
    try:
        filler = disk / "filler"
        filler.write_bytes(b"x" * (900 << 10))
        command = [*MANY, f"--benchmark_out={disk / 'record.json'}"]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stderr
            assert "the run goes on" in process.stderr.readline()
            filler.unlink()
            console, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        assert errors == ""
        assert names(record(disk / "record.json")) == shown(console)
        assert [path.name for path in disk.iterdir()] == ["record.json"]
    finally:
        run(["umount", disk])


def test_a_lock_is_what_says_that_a_run_lives(tmp_path: Path) -> None:
    journal = left_behind(tmp_path / "record.json")
    with journal.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert "still alive" in recover(journal).stdout
        assert journal.exists()
    assert recover(journal).returncode == 0
    assert not journal.exists()
