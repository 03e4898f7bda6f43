"""Whatever file is given: a record, or one line that says what is wrong and what to do."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gemm_report import cli
from gemm_report.cli import BAD_INPUT, DEFECT, main
from gemm_report.document import RecordError
from gemm_report.history.series import read
from gemm_report.record import read_record

FOLDER = Path(__file__).parents[1]


# What is a file, or what becomes of a valid one's text; and what must be said about it.
FILES: list[tuple[bytes, str]] = [
    (b"", "is not JSON"),
    (b"kernel,seconds\n", "is not JSON"),
    (b'["\x80\x81"]', "is not JSON"),
    (b"[" * 200_000, "is not JSON"),
    (b'{"context": ', "is not JSON (Input data was truncated)"),
    (gzip.compress(b"[1, 2]")[:-9], "ends too early"),
    (b"[]", "other JSON"),
    (b'{"context": {"date": ""}, "benchmarks": []}', "plain Google Benchmark output"),
]
CHANGES: list[tuple[str, str, str]] = [
    ('"k": 256', '"k": NaN', "is not JSON"),
    ('"k": 256', '"k": 1.5', "expected `int`, got `float` - at `$.benchmarks[0].gemm.k`"),
    ('"flop_per_byte": ', '"flop_per_byte": 1e-300, "was": ', "expected `float` >= 1e-60"),
    ('"samples_seconds": [', '"samples_seconds": [1e99], "was": [', "gemm.samples_seconds[0]`"),
    ('"median": ', '"median": -', "expected `float` >= 1e-60"),
    ('"kernel": ', '"colonel": ', "missing required field `kernel`"),
    ('"schema": 3', '"schema": 4', "has schema 4, this gemm_report knows 2 to 3: update"),
    ('"Tiled"', f'"{"x" * 1001}"', "expected `str` of length <= 1000"),
    ('"precision": "bf16"', '"precision": "fp8"', "'fp8', not one of f32, tf32"),
    ('"tile": "16"', '"tile": "8"', "has Tiled/tile:8/f32/256x256x256 twice"),
]


@pytest.mark.parametrize("case", range(len(FILES) + len(CHANGES)))
def test_bad_input_gives_one_line_and_exit_3(
    case: int, gpu_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if case < len(FILES):
        content, expected = FILES[case]
    else:
        old, new, expected = CHANGES[case - len(FILES)]
        content = gpu_path.read_text(encoding="utf-8").replace(old, new).encode()
    path = tmp_path / "record.json"
    path.write_bytes(content)
    assert main(["report", str(path)]) == BAD_INPUT
    output = capsys.readouterr()
    assert output.out == "" and output.err.count("\n") == 1
    assert str(path) in output.err and expected in output.err
    assert {each.name for each in tmp_path.iterdir()} == {"record.json"}


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    pipe, loop = tmp_path / "pipe.json", tmp_path / "loop.json"
    os.mkfifo(pipe)
    loop.symlink_to(loop)
    for path, said in (
        (tmp_path / "none.json", "no such file"),
        (tmp_path, "is a folder"),
        (pipe, "is no file but a device or a pipe"),
        (Path("/dev/zero"), "is no file but a device or a pipe"),
        (loop, "symbolic links"),
        (Path(__file__) / "record.json", "Not a directory"),
    ):
        with pytest.raises(RecordError, match=said) as refused:
            read_record(path)
        assert str(path) in str(refused.value)


def test_what_is_packed_tells_the_content_and_not_the_name(gpu_path: Path, tmp_path: Path) -> None:
    plain, packed = tmp_path / "plain.json.gz", tmp_path / "packed.json"
    plain.write_bytes(gpu_path.read_bytes())
    packed.write_bytes(gzip.compress(gpu_path.read_bytes()))
    assert read_record(plain).rows == read_record(packed).rows == read_record(gpu_path).rows


def test_of_a_long_reason_the_beginning_is_kept(gpu_path: Path, tmp_path: Path) -> None:
    document = json.loads(gpu_path.read_text(encoding="utf-8"))
    row = next(b["gemm"] for b in document["benchmarks"] if b.get("gemm", {}).get("failed"))
    row["failed"] = "f" * 1001
    path = tmp_path / "record.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    assert "f" * 997 + "..." in [row.failed for row in read_record(path).rows]
    assert len(read(path)[1]) == len(read(gpu_path)[1])


def shell(script: str, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """What `script` does, in which "$@" is the command."""
    return subprocess.run(
        ["bash", "-c", script, "bash", sys.executable, "-m", "gemm_report", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=FOLDER,
        env={**os.environ, **variables},
    )


@pytest.mark.parametrize(
    ("script", "arguments", "variables", "code", "told"),
    [
        ('"$@" >/dev/full', "export {gpu} -o {out}/a.csv", {}, BAD_INPUT,
         "gemm-report: output: No space left on device: give another path, or see to its folder\n"),
        ('"$@" >/dev/full', "compare --help", {}, BAD_INPUT, "output: No space left on device"),
        ('"$@"', "export {gpu} -o /proc/x.csv", {}, BAD_INPUT, "/proc/x.csv"),
        ('"$@" | true; exit "${PIPESTATUS[0]}"', "--help", {}, None, ""),
        ('"$@"', "compare {named} {gpu}", {"PYTHONIOENCODING": "ascii"}, None, "\\u884c"),
        ('"$@"', "figures {gpu} -o {out} --only=headline", {"MPLBACKEND": "none"}, 0, ""),
    ],
)  # fmt: skip
def test_output_is_written_or_one_line_says_why_not(
    script: str,
    arguments: str,
    variables: dict[str, str],
    code: int | None,
    told: str,
    gpu_path: Path,
    tmp_path: Path,
) -> None:
    named = tmp_path / "name.json"
    named.write_text(gpu_path.read_text().replace("Test GPU", "Test \\u884c GPU"))
    paths = {"gpu": gpu_path, "out": tmp_path, "named": named}
    words = [word.format(**paths) for word in arguments.split()]
    done = shell(script, *words, **variables)
    assert done.stderr == "" if code is None and not told else told in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") <= 1 or code is None
    assert done.returncode in ((code,) if code is not None else (0, 2, 7, 128 + 13))


def test_a_defect_of_ours_is_no_verdict(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cli, "main", lambda: 1 / 0)
    with pytest.raises(SystemExit) as ended:
        cli.command()
    assert ended.value.code == DEFECT
    (tmp_path / "msgspec.py").write_text("1 / 0\n")
    done = shell('"$@"', "--help", PYTHONPATH=str(tmp_path))
    assert done.returncode == DEFECT, "1 would be a regression"
