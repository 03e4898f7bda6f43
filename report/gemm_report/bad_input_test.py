"""Whatever file is given: a record, or one line that says what is wrong and what to do."""

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gemm_report.cli import BAD_INPUT, main
from gemm_report.document import RecordError
from gemm_report.record import read_record


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
    "a size with a point": (lambda text: text.replace('"k": 256', '"k": 256.5', 1), "wrong type"),
    "overflow": (
        lambda text: text.replace('"flop_per_byte": ', '"flop_per_byte": 1e999, "was": ', 1),
        "is inf, not a positive number",
    ),
    "underflow": (
        lambda text: text.replace('"flop_per_byte": ', '"flop_per_byte": 1e-300, "was": ', 1),
        "is 1e-300, not a positive number",
    ),
    "overflow of a sample": (
        lambda text: text.replace('"samples_seconds": [', '"samples_seconds": [1e999, ', 1),
        "something other than positive numbers",
    ),
    "an integer beyond all doubles": (
        lambda text: text.replace('"k": 256', f'"k": 1{"0" * 400}', 1),
        "not a number of 64 bits",
    ),
    "an endless integer": (
        lambda text: text.replace('"k": 256', f'"k": 1{"0" * 5000}', 1),
        "thousands of digits",
    ),
    "a list": (lambda text: "[]", "other JSON"),
    "plain Google Benchmark": (without_gemm, "plain Google Benchmark output"),
    "newer": (
        lambda text: text.replace('"schema": 1', '"schema": 2'),
        "record has schema 2, this gemm_report knows up to 1: update gemm_report",
    ),
    "older": (lambda text: text.replace('"schema": 1', '"schema": 0'), "the first is 1"),
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


def test_a_folder_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["figures", str(tmp_path)]) == BAD_INPUT
    assert "is a folder" in capsys.readouterr().err


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
