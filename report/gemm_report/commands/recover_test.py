import fcntl
import json
import os
import random
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest

from gemm_report.cli import BAD_INPUT, main
from gemm_report.conftest import TESTDATA
from gemm_report.history.reading import read
from gemm_report.record import read_record

DOCUMENT: dict[str, Any] = json.loads((TESTDATA / "gpu.json").read_text(encoding="utf-8"))
CONTEXT = {**DOCUMENT["context"], "gemm": {**DOCUMENT["context"]["gemm"], "complete": False}}
ROWS = DOCUMENT["benchmarks"][:3]


def lines(rows: list[Any] = ROWS) -> list[str]:
    """As gemm_bench writes them: the context alone, then what changed in it with each row.

    Each behind its CRC-32.
    """
    later = {"gemm": {"time": {"wall_seconds": 2.5}}}
    pieces = [(CONTEXT, []), *((later, [row]) for row in rows)]
    texts = [json.dumps({"context": each, "benchmarks": its}) for each, its in pieces]
    return [f"{zlib.crc32(text.encode()):08x} {text}\n" for text in texts]


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    path = tmp_path / "record.json.journal"
    path.write_text("".join(lines()), encoding="utf-8")
    return path


def recover(*paths: Path) -> int:
    return main(["recover", *map(str, paths)])


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def refused(path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """The one line that is said, where nothing else happens."""
    before, there = path.lstat(), names(path.parent)
    assert recover(path) == BAD_INPUT
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert str(path) in said.err
    assert names(path.parent) == there
    after = path.lstat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    return said.err


def test_a_journal_becomes_the_record_of_an_interrupted_run(
    journal: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (journal.parent / "record.json.part123").write_text("{")
    assert recover(journal.parent) == 0
    path = journal.with_suffix("")
    assert capsys.readouterr().out == f"{path}\n"
    assert names(journal.parent) == ["record.json"]
    record = read_record(path)
    assert not record.complete
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document["benchmarks"] == ROWS
    run = document["context"]["gemm"]
    assert run["time"]["wall_seconds"] == 2.5
    assert run["kernels"] == CONTEXT["gemm"]["kernels"], "what did not change stays"


@pytest.mark.parametrize("length", [1, 100, -1])
def test_a_torn_last_line_is_left_out(length: int, journal: Path) -> None:
    *whole, last = lines()
    journal.write_text("".join([*whole, last[:length]]), encoding="utf-8")
    assert recover(journal) == 0
    assert json.loads(journal.with_suffix("").read_text())["benchmarks"] == ROWS[:-1]


def test_a_journal_without_a_row_is_removed(
    journal: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal.write_text(lines()[0], encoding="utf-8")
    assert recover(journal) == 0
    assert "no row, or none that its record lacks" in capsys.readouterr().out
    assert names(journal.parent) == []


def test_the_journal_of_a_run_that_lives_is_not_touched(
    journal: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = journal.read_bytes()
    code = "import fcntl, sys; file = open(sys.argv[1]); fcntl.flock(file, fcntl.LOCK_EX); "
    code += "print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(journal)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as alive:
        assert alive.stdout and alive.stdout.readline()
        assert recover(journal) == 0
        assert "still alive" in capsys.readouterr().out
        assert journal.read_bytes() == before
        assert names(journal.parent) == [journal.name]
        alive.communicate()
    assert recover(journal) == 0
    assert names(journal.parent) == ["record.json"]


def test_no_record_is_replaced(journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = journal.read_bytes()
    record = journal.with_suffix("")
    record.write_text("old")
    for name in ("record-recovered.json", "record-recovered-2.json"):
        journal.write_bytes(content)
        assert recover(journal) == 0
        assert capsys.readouterr().out == f"{journal.with_name(name)}\n"
        assert read_record(journal.with_name(name)).rows
    assert record.read_text() == "old"
    assert not journal.exists()


@pytest.mark.parametrize(
    "content",
    [b"\n", b"x\n", b"{}\n", b"\x80\n", b'{"context": {}, "benchmarks": []}\n', b"[" * 9000],
    ids=["blank", "text", "object", "bytes", "no gemm", "no end"],
)
def test_what_is_no_journal_stays_as_it_is(
    content: bytes, journal: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal.write_bytes(content)
    assert "is no journal of gemm_bench" in refused(journal, capsys)
    assert journal.read_bytes() == content


@pytest.mark.parametrize("content", [b"", b"2"])
def test_what_was_just_begun_is_ours_by_its_name(
    content: bytes, journal: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = journal.rename(journal.with_name("other.journal"))
    other.write_bytes(content)
    assert "is no journal of gemm_bench" in refused(other, capsys)
    assert other.read_bytes() == content
    other.rename(journal)
    assert recover(journal) == 0
    assert names(journal.parent) == []


def damaged(row: dict[str, Any], **values: Any) -> dict[str, Any]:
    return {**row, "gemm": {**row["gemm"], **values}}


def test_what_no_reader_takes_is_left_out_and_told(
    journal: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = [
        damaged(ROWS[0], m=0),
        damaged(ROWS[0], precision="f31"),
        {**ROWS[0], "name": "\ud800"},
        {**ROWS[0], "real_time": float("inf")},
        ROWS[1],
        None,
    ]
    first, *rest = lines([*ROWS, *bad])
    rest.insert(2, "{\n")
    rest.insert(3, '{"context": {"gemm": {"complete": 0}}, "benchmarks": []}\n')
    journal.write_text("".join([first, *rest]), encoding="utf-8")
    assert recover(journal) == BAD_INPUT
    said = capsys.readouterr()
    assert said.out == f"{journal.with_suffix('')}\n"
    assert said.err.count("\n") == 1
    assert "in 8 places, first line 4 is not as it was written" in said.err
    assert names(journal.parent) == ["record.json"]
    assert json.loads(journal.with_suffix("").read_text())["benchmarks"] == ROWS
    assert read_record(journal.with_suffix("")).rows


def test_a_journal_of_which_no_row_can_be_read_stays(
    journal: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (journal.parent / "record.json.part123").write_text("{")
    # From a version without checks.
    text = "".join(line.partition(" ")[2] for line in lines())
    journal.write_text(text.replace('"device"', '"devise"', 1), encoding="utf-8")
    assert "context.gemm.device is missing" in refused(journal, capsys)
    journal.write_text(lines()[0] + "{\n", encoding="utf-8")
    assert "line 2 is not as it was written" in refused(journal, capsys)


def test_what_is_recovered_of_flipped_bits_can_be_read(
    journal: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = "".join(lines(DOCUMENT["benchmarks"])).encode()
    rows = []
    for seed in range(30):
        chance = random.Random(seed)
        content = bytearray(whole)
        for _ in range(1 + seed // 6):
            content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        journal.write_bytes(content)
        code = recover(journal)
        assert journal.exists() <= (code == BAD_INPUT)
        record = journal.with_suffix("")
        rows.append(0)
        if record.exists():
            rows[-1] = len(read_record(record).rows)
            written = json.loads(record.read_text())["benchmarks"]
            assert all(row in DOCUMENT["benchmarks"] for row in written), "a bit flipped"
            assert read(record).timings
            record.unlink()
        assert capsys.readouterr().err.count("\n") == (code == BAD_INPUT)
    assert sum(count > 0 for count in rows) > 15


def test_what_is_no_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipe = tmp_path / "pipe.journal"
    os.mkfifo(pipe)
    assert "is no file" in refused(pipe, capsys)
    assert "is no file" in refused(Path("/dev/zero"), capsys)
    assert recover(tmp_path) == 0, "what is no file is no journal of a folder"
    assert "nothing to recover" in capsys.readouterr().out
    absent = tmp_path / "absent.journal"
    assert recover(absent) == BAD_INPUT
    assert capsys.readouterr().err.count("\n") == 1


def test_a_pipe_that_has_the_records_name_is_left_alone(journal: Path) -> None:
    os.mkfifo(journal.with_suffix(""))
    command = [sys.executable, "-m", "gemm_report", "recover", str(journal)]
    folder = Path(__file__).parents[2]
    done = subprocess.run(command, check=False, cwd=folder, timeout=20, capture_output=True)
    assert done.returncode == 0
    assert names(journal.parent) == ["record-recovered.json", "record.json"]


def test_the_others_are_recovered_where_one_is_damaged(
    journal: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal.with_name("a.json.journal").write_text("{}\n")
    assert recover(journal.parent) == BAD_INPUT
    assert "a.json.journal" in capsys.readouterr().err
    assert names(journal.parent) == ["a.json.journal", "record.json"]


def test_a_record_that_cannot_be_written_leaves_the_journal(
    journal: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert "No space left on device" in refused(journal, capsys)
    monkeypatch.undo()
    with journal.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert recover(journal) == 0
