"""The whole road on the CPU: NumPy into a record of which figures are made; and bad input."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gemm_report.cli import main as report
from gemm_report.record import read_record

from gemm_peers import cli
from gemm_peers.cli import BAD_INPUT, FAILED, INTERRUPTED, main, publishable
from gemm_peers.family_test import hostile

NO_GPU = not Path("/dev/nvidiactl").exists()


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that does other things as well makes two threads wait for each other."""
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line that a run ends with."""
    try:
        status: object = main(arguments)
    except SystemExit as end:
        status = end.code
    assert status == BAD_INPUT
    said = capsys.readouterr().err
    assert said.count("\n") == 1, said
    assert said.startswith("peers: ")
    return said


def test_a_record_says_which_sources_it_is_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMM_BENCH_COMMIT", "0123456789ab")
    assert cli._commit() == "0123456789ab"
    monkeypatch.delenv("GEMM_BENCH_COMMIT")
    root = Path(__file__).parents[2]
    monkeypatch.setattr(cli, "ROOT", root)
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12"]
    said = subprocess.run([*command, "--exclude=*"], capture_output=True, text=True, check=False)
    assert cli._commit() == (said.stdout.strip() or "unknown")


def test_numpy_becomes_a_record_that_figures_are_made_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "records" / "numpy.json"
    options = ["--device=cpu", "--shapes=64,5x7x23", "--precisions=f32", f"--out={out}"]
    assert main(options) == 0
    said = capsys.readouterr().out
    assert said.count("NumPy/f32/") == 2
    assert f"record: {out}" in said
    record = read_record(out)
    assert [row.shape for row in record.rows] == ["64x64x64", "5x7x23"]
    assert all(row.is_peer and row.status == "timed" for row in record.rows)
    jsonschema = pytest.importorskip("jsonschema")
    schema = Path(__file__).parents[2] / "results" / "schema.json"
    document = json.loads(out.read_text(encoding="utf-8"))
    jsonschema.validate(document, json.loads(schema.read_text(encoding="utf-8")))

    pictures = tmp_path / "pictures"
    assert report(["figures", str(out), "-o", str(pictures), "--only", "throughput"]) == 0
    assert "NumPy" in (pictures / "throughput.csv").read_text(encoding="utf-8")
    picture = (pictures / "throughput.svg").read_text(encoding="utf-8")
    assert "hatched bars: peers" in picture
    assert report(["figures", str(out), "-o", str(tmp_path / "all")]) == 0
    assert "Peers in f32" in (tmp_path / "all" / "summary.md").read_text(encoding="utf-8")


# Takes more than 5 s: one of them hangs until --timeout ends it.
def test_a_row_that_fails_is_told_and_the_others_are_in_the_record(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "record.json"
    options = ["--device=cpu", "--shapes=16", "--timeout=4", f"--out={out}"]
    mine = hostile(tmp_path, ("good", "dies", "hangs", "lacks", "good again"))
    assert main([*options, f"--peers={mine},numpy"]) == FAILED
    record = read_record(out)
    assert {row.kernel for row in record.rows} == {"Hostile", "NumPy"}
    statuses = [row.status for row in record.rows if row.kernel == "Hostile"]
    assert statuses == ["timed", "failed", "failed", "skipped", "timed"]
    assert all(row.status == "timed" for row in record.rows if row.kernel == "NumPy")
    said = capsys.readouterr().out
    assert "Hostile/kernel:hangs/f32/16x16x16: failed: did not end within 4 s (--timeout)" in said


def test_what_was_measured_before_ctrl_c_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(task: Any, rows: Any, patience: float) -> Iterator[Any]:
        yield {"skipped": "for a test"}
        raise KeyboardInterrupt

    monkeypatch.setattr("gemm_peers.cli.outcomes", interrupted)
    out = tmp_path / "record.json"
    assert main(["--device=cpu", "--shapes=16,32", f"--out={out}"]) == INTERRUPTED
    record = read_record(out)
    assert not record.complete
    assert [row.skipped for row in record.rows] == ["for a test"]


def test_what_is_for_a_gpu_is_skipped_on_the_cpu(tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    options = ["--device=cpu", "--shapes=16", "--precisions=f32", f"--out={out}"]
    assert main([*options, "--peers=torch,numba"]) == 0
    rows = read_record(out).rows
    assert {row.skipped for row in rows} == {"runs on a GPU only"}
    assert len(rows) == 4


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--shapes=0"], "give a size or MxNxK"),
        (["--shapes=4x5"], "give a size or MxNxK"),
        (["--shapes=3000000000"], "give a size or MxNxK"),
        (["--shapes=4,,5"], "has an empty name"),
        (["--precisions=f31"], "is none of f32, tf32"),
        (["--precisions=s8"], "no peer computes that"),
        (["--peers=blas"], "is none of numpy, numba"),
        (["--peers=nobody.py"], "there is no such file"),
        (["--beside=nowhere.json"], "nowhere.json"),
        (["--seed=-1"], "give a number from 0"),
        (["--row-budget=0"], "see tools/peers --help"),
        (["--timeout=soon"], "see tools/peers --help"),
        (["--frequency=3"], "see tools/peers --help"),
        (["--against-nvbench"], "needs a GPU"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert expected in refused(capsys, "--device=cpu", *arguments)


@pytest.mark.parametrize("out", ["/proc/nothing/here.json", "/proc/here.json", "/proc"])
def test_a_record_that_cannot_be_written_is_refused_before_anything_is_measured(
    out: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("gemm_peers.cli.outcomes", lambda *_: pytest.fail("it was measured"))
    assert f"{out}" in refused(capsys, "--device=cpu", "--shapes=1", f"--out={out}")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import no_such_thing", "cannot be read as a peer: ModuleNotFoundError"),
        ("PEER = 3", "has no PEER of type"),
        ("import sys; print('x' * 10**7); sys.exit(0)", "cannot be read as a peer: SystemExit"),
        ("import os; os._exit(0)", "its import ended with exit status 0 before its result"),
        ("import time; time.sleep(60)", "its import did not end within 4 s (--timeout)"),
        (
            "from gemm_peers.peer import Peer\n"
            "PEER = Peer('X', 1, 'x', 'cpu', (), {'f31': 'nn'}, print)",
            "has unknown precisions: f31",
        ),
    ],
)
def test_a_file_that_holds_no_peer_is_refused(
    tmp_path: Path, text: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.py"
    path.write_text(text, encoding="utf-8")
    assert expected in refused(capsys, "--device=cpu", "--timeout=4", f"--peers={path}")


@pytest.mark.skipif(not NO_GPU, reason="there is a GPU")
def test_without_a_gpu_what_was_asked_of_one_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "no NVIDIA driver is installed" in refused(capsys, "--device=0")
    assert "give the number of a GPU" in refused(capsys, "--device=first")


def test_a_record_names_files_without_their_folders() -> None:
    given = ["--beside=/home/me/a.json", "--peers=numba,/home/me/mine.py", "--out", "/tmp/b.json"]
    kept = ["peers", "--beside=a.json", "--peers=numba,mine.py", "--out", "b.json"]
    assert publishable(given) == kept


def test_what_a_file_prints_is_no_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "talks.py").write_text(
        "from gemm_peers.adapters.numpy_peer import PEER\nprint('x' * 10**7)\n", encoding="utf-8"
    )
    options = ["--device=cpu", "--shapes=16", f"--out={tmp_path / 'record.json'}"]
    assert main([*options, f"--peers={tmp_path / 'talks.py'}"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


def _command(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """tools/peers of a checkout in that folder, where PATH has a python3 without NumPy."""
    (folder / "tools").mkdir()
    (folder / "bin").mkdir()
    (folder / "bin" / "python3").write_text("#!/bin/sh\nexit 1\n")
    (folder / "bin" / "python3").chmod(0o755)
    path = f"{folder / 'bin'}:/usr/bin:/bin"
    return subprocess.run(
        [shutil.copy(Path(__file__).parents[1] / "peers", folder / "tools"), *arguments],
        env={"PATH": path, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_command_takes_the_python_of_the_set_up(tmp_path: Path) -> None:
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\necho "$@"\n')
    python.chmod(0o755)
    assert _command(tmp_path, "--help").stdout.endswith("-m gemm_peers.cli --help\n")


def test_the_command_without_numpy_is_told_so_in_one_line(tmp_path: Path) -> None:
    done = _command(tmp_path, "--device=cpu", PYTHON="/nowhere/python")
    assert done.returncode == BAD_INPUT
    assert done.stderr.startswith("peers: /nowhere/python is no Python 3.11 with NumPy")
    assert done.stderr.count("\n") == 1
