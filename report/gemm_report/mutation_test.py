"""Records damaged in many ways, given to every command: one line or a result, never a traceback."""

import contextlib
import copy
import io
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from gemm_report.cli import BAD_INPUT, COMMANDS, main
from gemm_report.conftest import TESTDATA

# One record a side finds little, and some cases have no time: both are accepted.
ENOUGH = ("--require-power=100", "--allow-missing")
# By command: how many damaged records, and what is done with each, with a sound one beside it and
# with the folder of both. A command that draws takes a second.
USES: Mapping[str, tuple[int, Sequence[str]]] = {
    "figures": (2, ["{record}", "-o", "out/figures"]),
    "report": (2, ["{record}", "-o", "out/report"]),
    "readme": (30, ["{record}", "--readme=out/README.md", "--check"]),
    "ratios": (30, ["{record}", "--kernels=."]),
    "tune": (30, ["{record}"]),
    "history": (30, ["in", "-o", "out/history"]),
    "compare": (
        30,
        ["{record}", "good.json", *ENOUGH, "--json=out/verdicts.json", "--markdown=out/comment.md"],
    ),
    "fleet": (30, ["in", "--json=out/f.json", "--html=out/f.html"]),
    "explain": (
        4,
        [
            *("Tiled/tile:16", "1024", "--record={record}", "--versus=Naive"),
            *("-o", "out/explain"),
        ],
    ),
    "export": (30, ["in", "-o", "out/all.csv"]),
    "site": (2, ["in", "-o", "out/site"]),
}
# A row of the record failed, and compare gets it as NEW, too; the page has no region yet.
FAILED = {"fleet": 1, "compare": 5, "readme": 1}
ROWS = (
    "Naive/f32/1024x1024x1024",
    "Tiled/tile:16/f32/1024x1024x1024",
    "cuBLAS/math:pedantic/f32/1024x1024x1024",
    "BlockTile1D/BM:64/BN:128/NR:8/f32/1024x1024x1024",
    "BlockTile1D/BM:64/BN:256/NR:8/f32/4096x4096x4096",
    "EndToEnd/pinned/Naive/f32/1024x1024x1024",
    "NaiveTransposed/transpose:apart/f32/4092x4092x4092",
)
ODD = (
    *(None, True, 0, -1, 2, 1e-60, 1e60, 5e-324, 2**31, 2**63, [], {}, [None], [0], {"": None}),
    *("", "nan", "../../escaped", "<script>", "\x1b[31m\n\x00", "$x_{$", "%s{}{0}", "=1+1"),
    *("a | b ` **c**", "²³", "9" * 5000, "long " * 150),
)


def tiny() -> dict[str, Any]:
    """A record of few rows, one of each kind."""
    document: dict[str, Any] = json.loads((TESTDATA / "ladder.json").read_text(encoding="utf-8"))
    rows = {row["name"].removesuffix("/manual_time"): row for row in document["benchmarks"]}
    document["benchmarks"] = [rows[name] for name in ROWS]
    run = document["context"]["gemm"]
    run["kernels"] = [k for k in run["kernels"] if any(k["name"] in name for name in ROWS)]
    run["measured_ceilings"] = run["measured_ceilings"][:2]
    return document


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each object or list in a document with each of its keys or places."""
    steps = range(len(value)) if isinstance(value, list) else value
    for step in steps if isinstance(value, list | dict) else ():
        yield value, step
        yield from places(value[step])


def damaged(seed: int) -> dict[str, Any]:
    """The tiny record but for one to three of its keys, values and rows."""
    drawn, document = random.Random(seed), tiny()
    for _ in range(drawn.randint(1, 3)):
        holder, step = drawn.choice(list(places(document)))
        value, change = holder[step], drawn.choice(("like", "like", "like", "any", "drop", "twice"))
        if change == "drop":
            del holder[step]
        elif change == "twice" and isinstance(holder, list):
            holder.insert(step, copy.deepcopy(value))
        else:
            alike = [odd for odd in ODD if isinstance(odd, type(value) if value else str)]
            holder[step] = drawn.choice(alike if change == "like" and alike else ODD)
    return document


def code_of(command: str, document: dict[str, Any], folder: Path) -> int:
    """Runs the command on such a record; the exit code. Fails unless it behaves."""
    (folder / "in/device").mkdir(parents=True)
    (folder / "out").mkdir()
    with contextlib.chdir(folder):
        record = Path("in/device/record.json")
        record.write_text(json.dumps(document), encoding="utf-8")
        good = tiny()
        for each in good["benchmarks"]:
            each["gemm"]["samples_seconds"] = [1.001 * s for s in each["gemm"]["samples_seconds"]]
        Path("good.json").write_text(json.dumps(good), encoding="utf-8")
        Path("out/README.md").write_text("".join(
            f"<!-- gemm_report:{edge} {part} -->\n"
            for part in ("picture", "table", "overview") for edge in ("begin", "end")
        ))  # fmt: skip
        before = record.read_bytes()
        complained = io.StringIO()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(complained):
            code = main([command, *(each.format(record=record) for each in USES[command][1])])
        assert code in {0, 1, 2, 3, 5, 6, 7}, "all but a defect"
        complaint = complained.getvalue()
        # Where a folder has nothing else, one more line says so.
        assert code != BAD_INPUT or 1 <= complaint.count("\n") <= 2, complaint
        assert record.read_bytes() == before
        assert {path.name for path in Path().iterdir()} == {"in", "out", "good.json"}
        for path in Path("out").rglob("*.json"):
            json.loads(path.read_text(encoding="utf-8"), parse_constant=pytest.fail)
        return code


@pytest.mark.parametrize("command", COMMANDS)
def test_no_damage_ends_in_a_traceback(command: str, tmp_path: Path) -> None:
    sound = code_of(command, {**tiny(), "surplus": 1}, tmp_path / "sound")
    assert sound == FAILED.get(command, 0)
    for seed in range(USES[command][0]):
        code_of(command, damaged(seed), tmp_path / str(seed))
