"""Records damaged in every way, given to every command: one line or a result, never a traceback.

HYPOTHESIS_EXAMPLES=20 multiplies the number of examples and draws new ones each time.
"""

import contextlib
import copy
import io
import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

hypothesis = pytest.importorskip("hypothesis")

from hypothesis import strategies as st  # noqa: E402

from gemm_report.cli import BAD_INPUT, COMMANDS, main  # noqa: E402
from gemm_report.conftest import TESTDATA  # noqa: E402

# Where it was never imported, matplotlib makes itself a folder then.
pytest.importorskip("gemm_report.figures.write")

FACTOR = int(os.environ.get("HYPOTHESIS_EXAMPLES", "0"))

# One record a side finds little, and some cases have no time: both are accepted.
ENOUGH = ("--require-power=100", "--allow-missing")
# By command, of a damaged record, a sound one beside it and the folder of both; a command that
# draws takes a second an example.
USES: Mapping[str, tuple[int, Sequence[str]]] = {
    "figures": (4, ["{record}", "-o", "out/figures"]),
    "report": (4, ["{record}", "-o", "out/report"]),
    "readme": (8, ["{record}", "--readme=out/README.md", "--pictures=out"]),
    "ratios": (30, ["{record}", "--kernels=."]),
    "tune": (4, ["{record}", "-o", "out/tune"]),
    "history": (30, ["in", "-o", "out/history"]),
    "compare": (
        30,
        ["{record}", "good.json", *ENOUGH, "--json=out/verdicts.json", "--markdown=out/comment.md"],
    ),
    "fleet": (30, ["in", "--json=out/f.json", "--picture=out/f.png"]),
    "explain": (
        8,
        [
            *("Tiled/tile:16", "1024", "--record={record}", "--versus=Naive"),
            *("-o", "out/explain"),
        ],
    ),
    "export": (30, ["in", "-o", "out/all.csv"]),
    "site": (4, ["in", "-o", "out/site"]),
}


def tiny() -> dict[str, Any]:
    """A record of few rows, one of each kind."""
    document = json.loads((TESTDATA / "ladder.json").read_text(encoding="utf-8"))
    names = (
        "Naive/f32/1024x1024x1024",
        "Tiled/tile:16/f32/1024x1024x1024",
        "cuBLAS/math:pedantic/f32/1024x1024x1024",
        "BlockTile1D/BM:64/BN:128/NR:8/f32/1024x1024x1024",
        "BlockTile1D/BM:64/BN:256/NR:8/f32/4096x4096x4096",
        "EndToEnd/pinned/Naive/f32/1024x1024x1024",
        "NaiveTransposed/transpose:apart/f32/4092x4092x4092",
    )
    rows = {row["name"].removesuffix("/manual_time"): row for row in document["benchmarks"]}
    document["benchmarks"] = [rows[name] for name in names]
    run = document["context"]["gemm"]
    run["kernels"] = [k for k in run["kernels"] if any(k["name"] in name for name in names)]
    run["measured_ceilings"] = run["measured_ceilings"][:2]
    return document


TINY = tiny()
GOOD = json.loads(json.dumps(TINY))
for each in GOOD["benchmarks"]:
    if each["gemm"]["samples_seconds"]:
        each["gemm"]["samples_seconds"][0] *= 1.001
FAILED = {"fleet": 1, "compare": 5}

REGIONS = ("picture", "table", "overview")
TEXTS = ("", "nan", "../../escaped", "a/b\\c:d*?", "<script>", "\x1b[31m\n\x00", "$x_{$", "%s{}{0}")
odd_texts = st.sampled_from((*TEXTS, "a | b ` **c**", "²³", "9" * 5000, "long " * 400, "=1+1"))
odd_numbers = (
    st.sampled_from([0, -1, 1, 2, 7, 1e-60, 1e60, 5e-324, 1e308, 2**31, 2**63 - 1, 2**63])
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
)
odd_values = (
    st.none()
    | st.booleans()
    | odd_texts
    | odd_numbers
    | st.sampled_from([[], {}, [None], [[]], [0], [""], {"": None}, {"a": {}}])
)


def steps(value: Any) -> list[Any]:
    """The keys of an object, the places in a list."""
    if isinstance(value, list):
        return list(range(len(value)))
    return list(value) if isinstance(value, dict) else []


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value in a document."""
    for step in steps(value):
        yield (*place, step)
        yield from places(value[step], (*place, step))


@st.composite
def changed(draw: st.DrawFn) -> dict[str, Any]:
    """The tiny record but for some of its keys, values and rows."""
    document = copy.deepcopy(TINY)
    for _ in range(draw(st.integers(1, 3))):
        *way, step = draw(st.sampled_from(list(places(document))))
        holder: Any = document
        for each in way:
            holder = holder[each]
        value = holder[step]
        change = draw(st.sampled_from(("like", "like", "like", "any", "drop", "twice", "swap")))
        if change == "drop":
            del holder[step]
        elif change == "twice" and isinstance(holder, list):
            holder.insert(step, copy.deepcopy(value))
        elif change == "swap":
            other = draw(st.sampled_from(steps(holder)))
            holder[step], holder[other] = holder[other], value
        else:
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            like = odd_texts if isinstance(value, str) else odd_numbers if is_number else odd_values
            holder[step] = draw(like if change == "like" else odd_values)
    return document


def code_of(command: str, document: dict[str, Any]) -> int:
    """Runs the command on such a record; the exit code. Fails unless it behaves."""
    with tempfile.TemporaryDirectory() as here, contextlib.chdir(here):
        for folder in ("in", "in/device", "out"):
            Path(folder).mkdir()
        record = Path("in/device/record.json")
        record.write_text(json.dumps(document), encoding="utf-8")
        Path("good.json").write_text(json.dumps(GOOD), encoding="utf-8")
        edges = [f"<!-- gemm_report:{e} {p} -->\n" for p in REGIONS for e in ("begin", "end")]
        Path("out", "README.md").write_text("".join(edges), encoding="utf-8")
        before = record.read_bytes()
        complained = io.StringIO()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(complained):
            code = main([command, *(each.format(record=record) for each in USES[command][1])])
        assert code in {0, 1, 2, 3, 5, 6, 7}, "all but a defect"
        complaint = complained.getvalue()
        # Where a folder has nothing else, one more line says so.
        assert "Traceback" not in complaint
        assert code != BAD_INPUT or 1 <= complaint.count("\n") <= 2, complaint
        assert record.read_bytes() == before
        assert {path.name for path in Path().iterdir()} == {"in", "out", "good.json"}
        for path in Path("out").rglob("*.json"):
            json.loads(path.read_text(encoding="utf-8"), parse_constant=pytest.fail)
        return code


@pytest.mark.parametrize("command", COMMANDS)
def test_a_sound_file_is_taken_by(command: str) -> None:
    # A row of the record failed, and compare gets it as NEW, too.
    assert code_of(command, {**TINY, "surplus": 1}) == FAILED.get(command, 0)


@pytest.mark.parametrize("command", COMMANDS)
def test_no_damage_ends_in_a_traceback(command: str) -> None:
    @hypothesis.settings(
        max_examples=USES[command][0] * (FACTOR or 1),
        derandomize=not FACTOR,
        database=None,
        deadline=None,
        phases=(hypothesis.Phase.generate, hypothesis.Phase.shrink),
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(changed())
    def behaves(document: dict[str, Any]) -> None:
        code_of(command, document)

    behaves()
