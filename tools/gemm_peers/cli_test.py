"""The whole road on the CPU: NumPy into a record of which figures are made; and bad input."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gemm_report.cli import main as report
from gemm_report.record import read_record

from gemm_peers.cli import BAD_INPUT, FAILED, INTERRUPTED, main
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
        (["--out=/proc/nothing/here.json", "--shapes=1", "--precisions=f32"], "/proc/nothing"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert expected in refused(capsys, "--device=cpu", *arguments)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import no_such_thing", "cannot be read as a peer: ModuleNotFoundError"),
        ("PEER = 3", "has no PEER of type"),
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
    assert expected in refused(capsys, "--device=cpu", f"--peers={path}")


@pytest.mark.skipif(not NO_GPU, reason="there is a GPU")
def test_without_a_gpu_what_was_asked_of_one_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "no NVIDIA driver is installed" in refused(capsys, "--device=0")
    assert "give the number of a GPU" in refused(capsys, "--device=first")


def test_the_command_can_be_run() -> None:
    assert os.access(Path(__file__).parents[1] / "peers", os.X_OK)
