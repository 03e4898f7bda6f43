"""Whatever file is given: a record, or one line that says what is wrong and what to do."""

import copy
import errno
import gzip
import json
import os
import signal
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from gemm_report import document
from gemm_report.cli import BAD_INPUT, INTERRUPTED, main
from gemm_report.document import RecordError
from gemm_report.exchange.foreign import read_run
from gemm_report.history.series import read
from gemm_report.record import read_record

FOLDER = Path(__file__).parents[1]


def without_gemm(text: str) -> str:
    document = json.loads(text)
    del document["context"]["gemm"]
    return json.dumps(document)


# What becomes of a valid record, and what must be said about it.
CASES: dict[str, tuple[Callable[[str], str | bytes | None], str]] = {
    "missing": (lambda text: None, "no such file"),
    "empty": (lambda text: "", "is empty"),
    "blank": (lambda text: " \n", "is empty"),
    "truncated": (lambda text: text[: len(text) // 2], "ends too early"),
    "truncated in a string": (lambda text: text[: text.index("Test GPU") + 3], "ends too early"),
    "not JSON": (lambda text: "kernel,seconds\n", "is not JSON"),
    "not text": (lambda text: b"\x80\x81", "not UTF-8"),
    "NaN": (lambda text: text.replace('"k": 256', '"k": NaN', 1), "has NaN, which is not JSON"),
    "Infinity": (lambda text: text.replace('"k": 256', '"k": -Infinity', 1), "has -Infinity"),
    "a size with a point": (
        lambda text: text.replace('"k": 256', '"k": 256.5', 1),
        "expected `int`, got `float` - at `$.benchmarks[0].gemm.k`",
    ),
    "overflow": (
        lambda text: text.replace('"flop_per_byte": ', '"flop_per_byte": 1e999, "was": ', 1),
        "expected `float` <= 1e+60",
    ),
    "underflow": (
        lambda text: text.replace('"flop_per_byte": ', '"flop_per_byte": 1e-300, "was": ', 1),
        "expected `float` >= 1e-60",
    ),
    "overflow of a sample": (
        lambda text: text.replace('"samples_seconds": [', '"samples_seconds": [1e999, ', 1),
        "expected `float` <= 1e+60 - at `$.benchmarks[0].gemm.samples_seconds[0]`",
    ),
    "an integer beyond all doubles": (
        lambda text: text.replace('"k": 256', f'"k": 1{"0" * 400}', 1),
        "expected `int` <= 9223372036854775807",
    ),
    "an endless integer": (
        lambda text: text.replace('"k": 256', f'"k": 1{"0" * 5000}', 1),
        "thousands of digits",
    ),
    "a list": (lambda text: "[]", "other JSON"),
    "plain Google Benchmark": (without_gemm, "plain Google Benchmark output"),
    "newer": (
        lambda text: text.replace('"schema": 1', '"schema": 3'),
        "record has schema 3, this gemm_report knows up to 2: update gemm_report",
    ),
    "older": (
        lambda text: text.replace('"schema": 1', '"schema": 0'),
        "expected `int` >= 1 - at `$.context.gemm.schema`",
    ),
    "endless name": (
        lambda text: text.replace('"Tiled"', f'"{"x" * 1001}"'),
        "expected `str` of length <= 1000",
    ),
    "new precision": (lambda text: text.replace('"bf16"', '"fp8"'), "'fp8', not one of f32, tf32"),
    "deep": (lambda text: "[" * 200_000, "nested too deeply"),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("command", ["figures", "readme", "report"])
def test_bad_input_gives_one_line_and_exit_3(
    case: str, command: str, gpu_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change, expected = CASES[case]
    content = change(gpu_path.read_text(encoding="utf-8"))
    path = tmp_path / "record.json"
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert main([command, str(path)]) == BAD_INPUT
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.count("\n") == 1
    assert str(path) in output.err
    assert expected in output.err
    assert {each.name for each in tmp_path.iterdir()} <= {"record.json"}


# What is a record all the same.
HARMLESS: dict[str, Callable[[str], bytes]] = {
    "byte order mark": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "Windows line ends": lambda text: text.replace("\n", "\r\n").encode(),
    "keys that nobody knows": lambda text: text.replace("{", '{"surplus": [{}],', 1).encode(),
    "half a character": lambda text: text.replace("Test GPU", "Test \\ud800 GPU").encode(),
    "escape sequences": lambda text: text.replace("Test GPU", "\\u001b[31m\\n\\u0000").encode(),
}


@pytest.mark.parametrize("case", HARMLESS)
def test_what_does_no_harm_is_read(
    case: str, gpu_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "record.json"
    path.write_bytes(HARMLESS[case](gpu_path.read_text(encoding="utf-8")))
    record = read_record(path)
    assert record.device.name.isprintable()
    assert len(record.rows) == len(read_record(gpu_path).rows)
    output = tmp_path / "summary.csv"
    assert main(["export", str(path), "--format", "csv", "-o", str(output)]) == 0
    assert record.device.name in output.read_text(encoding="utf-8")
    assert capsys.readouterr().err == ""


def refusal(path: Path) -> str:
    with pytest.raises(RecordError) as refused:
        read_record(path)
    said = str(refused.value)
    assert str(path) in said
    assert "\n" not in said
    return said


def test_of_a_long_reason_the_beginning_is_kept(gpu_path: Path, tmp_path: Path) -> None:
    document = json.loads(gpu_path.read_text(encoding="utf-8"))
    reasons = {"failed": "f" * 1001, "skipped": "\x1b" * 900}
    for key, reason in reasons.items():
        row = next(b["gemm"] for b in document["benchmarks"] if b.get("gemm", {}).get(key))
        row[key] = reason
    path = tmp_path / "record.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    found = read_record(path).rows
    assert "f" * 997 + "..." in [row.failed for row in found]
    assert [len(row.skipped) for row in found if row.skipped and "x1b" in row.skipped] == [1000]
    assert len(read(path)[1]) == len(read(gpu_path)[1])


def test_google_benchmarks_long_message_is_cut(tmp_path: Path) -> None:
    row = {"name": "a", "error_occurred": True, "error_message": "e" * 5000}
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"context": {}, "benchmarks": [row]}), encoding="utf-8")
    assert read_run(path).untimed == {"a": "e" * 997 + "..."}


def test_what_is_packed_tells_the_content_and_not_the_name(gpu_path: Path, tmp_path: Path) -> None:
    plain, packed = tmp_path / "plain.json.gz", tmp_path / "packed.json"
    plain.write_bytes(gpu_path.read_bytes())
    packed.write_bytes(gzip.compress(gpu_path.read_bytes()))
    rows = read_record(gpu_path).rows
    assert read_record(plain).rows == read_record(packed).rows == rows
    assert main(["export", str(tmp_path), "--format", "csv", "-o", str(tmp_path / "a.csv")]) == 0
    packed.write_bytes(packed.read_bytes()[:-9])
    assert "the compressed file ends too early" in refusal(packed)


def test_a_case_that_comes_twice_is_refused(gpu_path: Path, tmp_path: Path) -> None:
    document = json.loads(gpu_path.read_text(encoding="utf-8"))
    document["benchmarks"].insert(3, document["benchmarks"][0])
    path = tmp_path / "record.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    assert "has NaiveUncoalesced/f32/256x256x256 twice" in refusal(path)


@pytest.mark.parametrize("name", ["record.json", "record.json.gz"])
def test_a_file_that_is_too_large_is_refused_unread(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    with path.open("wb") as file:
        file.truncate(2**30)
    assert peak_memory(path) < 2**20
    assert "has more than 128 MiB" in refusal(path)


def test_a_small_file_that_unpacks_to_much_is_refused_in_little_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document, "LARGEST_FILE", 2**22)
    path = tmp_path / "record.json.gz"
    with gzip.open(path, "wb") as file:
        for _ in range(64):
            file.write(bytes(2**20))
    assert path.stat().st_size < 2**17
    assert peak_memory(path) < 2**24
    assert "has more than 4 MiB" in refusal(path)


def peak_memory(path: Path) -> int:
    tracemalloc.start()
    try:
        refusal(path)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    loop = tmp_path / "loop.json"
    loop.symlink_to(loop)
    dangling = tmp_path / "dangling.json"
    dangling.symlink_to(tmp_path / "nowhere")
    assert "is no file but a device or a pipe" in within_seconds(pipe)
    assert "is no file but a device or a pipe" in within_seconds(Path("/dev/zero"))
    assert "cannot be read (Too many levels of symbolic links)" in refusal(loop)
    assert "no such file" in refusal(dangling)
    assert "no such file" in refusal(dangling / "record.json")
    assert "Not a directory" in refusal(Path(__file__) / "record.json")
    assert "File name too long" in refusal(tmp_path / ("x" * 300))


def within_seconds(path: Path) -> str:
    """Of a process, since one that waits for ever would take the tests with it."""
    done = run(["figures", str(path)])
    assert done.returncode == BAD_INPUT
    assert done.stdout == b""
    return done.stderr.decode()


def run(arguments: list[str], record: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
    """The command with `record` in a pipe as its standard input."""
    command = [sys.executable, "-m", "gemm_report", *arguments]
    return subprocess.run(
        command, input=record, capture_output=True, check=False, timeout=60, cwd=FOLDER
    )


def test_a_record_may_come_through_a_pipe(gpu_path: Path, tmp_path: Path) -> None:
    output = tmp_path / "all.csv"
    arguments = ["export", "/dev/stdin", "--format", "csv", "-o", str(output)]
    assert run(arguments, gpu_path.read_bytes()).returncode == 0
    assert len(output.read_text(encoding="utf-8").splitlines()) > len(read_record(gpu_path).rows)
    assert b"/dev/stdin: the file is empty" in run(arguments, b"").stderr


def test_a_record_from_a_pipe_can_be_explained(ladder_path: Path) -> None:
    arguments = ["explain", "Tiled/tile:16", "1024", "--record", "/dev/stdin"]
    done = run(arguments, ladder_path.read_bytes())
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"Tiled/tile:16/f32/1024x1024x1024 on ")


def test_a_file_that_may_not_be_read_is_refused(
    gpu_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(path: Path, mode: str) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    # Who runs the tests may be allowed to read everything.
    monkeypatch.setattr(Path, "open", forbidden)
    assert "cannot be read (Permission denied)" in refusal(gpu_path)


# What the shell does before it starts the command, and what is then said on standard error.
STREAMS = {
    "a closed standard output": (">&-", "standard output is closed: send it to a file"),
    "no room": (">/dev/full", "output: No space left on device: send it to another place"),
    "closed complaints": (">/dev/full 2>&-", ""),
    "no room for complaints": (">/dev/full 2>/dev/full", ""),
    "all closed": ("<&- >&- 2>&-", ""),
}


@pytest.mark.parametrize("case", STREAMS)
@pytest.mark.parametrize("arguments", [["--help"], ["compare", "{record}", "{other}"]])
def test_output_that_cannot_be_written_is_one_line_and_exit_3(
    case: str, arguments: list[str], gpu_path: Path, rewritten: Callable[..., Path]
) -> None:
    how, expected = STREAMS[case]
    other = rewritten("other.json", 1.1)
    done = in_shell(f'"$@" {how}', [a.format(record=gpu_path, other=other) for a in arguments])
    complaint = done.stderr.decode()
    assert done.returncode == BAD_INPUT
    assert complaint == (f"gemm-report: {complaint[13:-1]}\n" if expected else "")
    assert expected in complaint


def test_a_reader_that_has_gone_is_one_line_and_exit_3(
    gpu_path: Path, rewritten: Callable[..., Path]
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "gemm_report", "compare", str(gpu_path)]
    command.append(str(rewritten("other.json", 1.1)))
    done = subprocess.run(
        command, stdout=writer, stderr=subprocess.PIPE, check=False, timeout=60, cwd=FOLDER
    )
    os.close(writer)
    assert done.stderr == b"gemm-report: output: its reader has gone\n"
    assert done.returncode == BAD_INPUT


def test_with_too_little_memory_it_says_so(gpu_path: Path) -> None:
    done = in_shell('ulimit -v 300000; "$@"', ["compare", str(gpu_path), str(gpu_path)])
    assert done.returncode == BAD_INPUT
    assert done.stdout == b""
    assert done.stderr == (
        b"gemm-report: ulimit -v allows 292 MiB of memory: raise it to 512 MiB\n"
    )


def test_memory_that_does_not_suffice_is_one_line(
    gpu_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(path: Path) -> None:
        raise MemoryError

    monkeypatch.setattr("gemm_report.collection.read_record", read)
    assert main(["report", str(gpu_path)]) == BAD_INPUT
    assert "there is too little memory" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("module", "codes"),
    [
        # Before there is anything to tidy up the signal itself ends it.
        ("argparse", (-signal.SIGINT, INTERRUPTED)),
        ("matplotlib.figure", (INTERRUPTED,)),
    ],
)
def test_ctrl_c_is_no_traceback(
    module: str, codes: Sequence[int], gpu_path: Path, tmp_path: Path
) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "gemm_report"]
    with subprocess.Popen(
        [*command, "report", str(gpu_path), "-o", str(tmp_path)],
        stderr=subprocess.PIPE,
        text=True,
        cwd=FOLDER,
        # Who starts the tests in the background has them ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as started:
        assert started.stderr
        while not started.stderr.readline().endswith(f" {module}\n"):
            assert started.poll() is None
        started.send_signal(signal.SIGINT)
        lines = started.communicate(timeout=60)[1].splitlines()
    assert started.returncode in codes
    said = [line for line in lines if not line.startswith("import time:")]
    assert said == ["gemm-report: interrupted"] * (started.returncode == INTERRUPTED)


def in_shell(script: str, arguments: list[str]) -> "subprocess.CompletedProcess[bytes]":
    """What `script` does, in which "$@" is the command."""
    return subprocess.run(
        ["bash", "-c", script, "bash", sys.executable, "-m", "gemm_report", *arguments],
        capture_output=True,
        check=False,
        timeout=60,
        cwd=FOLDER,
    )


def test_a_folder_is_no_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["readme", str(tmp_path)]) == BAD_INPUT
    assert "is a folder" in capsys.readouterr().err
    assert main(["figures", str(tmp_path)]) == BAD_INPUT
    assert "has no record" in capsys.readouterr().err


def damaged(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """`document` with each of its keys in turn missing or of another type."""

    def paths(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
        if isinstance(value, dict):
            for key in value:
                yield (*path, key)
                yield from paths(value[key], (*path, key))
        elif isinstance(value, list) and value:
            yield from paths(value[0], (*path, 0))

    for path in paths(document):
        for change in ("missing", None, True, "text", -1, [], [None], {}):
            copied = copy.deepcopy(document)
            parent = copied
            for step in path[:-1]:
                parent = parent[step]
            if change == "missing":
                del parent[path[-1]]
            else:
                parent[path[-1]] = change
            yield f"{path} {change}", copied


def test_no_damage_reaches_the_user_as_a_python_error(gpu_path: Path, tmp_path: Path) -> None:
    document = json.loads(gpu_path.read_text(encoding="utf-8"))
    document["benchmarks"] = [
        next(b for b in document["benchmarks"] if b.get("gemm", {}).get("versus"))
    ]
    path = tmp_path / "record.json"
    refused = set()
    for what, changed in damaged(document):
        path.write_text(json.dumps(changed), encoding="utf-8")
        try:
            read_record(path)
        except RecordError as error:
            assert "\n" not in str(error)
            refused.add(what)
        except Exception as error:
            pytest.fail(f"{what}: {error!r}")
    assert "('benchmarks', 0, 'gemm', 'kernel') missing" in refused
    assert "('benchmarks', 0, 'gemm', 'seconds', 'median') -1" in refused
    assert "('context', 'gemm', 'schema') True" in refused
    assert "('benchmarks', 0, 'gemm', 'samples_seconds') [None]" in refused
    assert "('benchmarks', 0, 'gemm', 'clocks', 'sm_hz_by_timer', 'median') -1" in refused
    assert "('context', 'gemm', 'time', 'wall_seconds') text" in refused
    assert "('benchmarks', 0, 'gemm', 'departures') missing" not in refused, "earlier records"
