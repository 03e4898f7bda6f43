"""Records damaged in every way, given to every command: one line or a result, never a traceback.

HYPOTHESIS_EXAMPLES=20 multiplies the number of examples and draws new ones each time.
"""

import contextlib
import copy
import io
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

hypothesis = pytest.importorskip("hypothesis")

from hypothesis import strategies as st  # noqa: E402

from gemm_report.cli import BAD_INPUT, COMMANDS, main  # noqa: E402
from gemm_report.conftest import TESTDATA  # noqa: E402
from gemm_report.exchange.foreign_test import (  # noqa: E402
    GOOGLE,
    nvbench,
    samples,
    state,
    summary,
)

# Where it was never imported, matplotlib makes itself a folder then.
pytest.importorskip("gemm_report.figures.write")

FACTOR = int(os.environ.get("HYPOTHESIS_EXAMPLES", "0"))


@dataclass(frozen=True)
class Place:
    """Where a command runs: what it may read, and the one folder in which it may write."""

    record: str
    good: str
    folder: str
    out: str


@dataclass(frozen=True)
class Use:
    """How a command is called, and how often; one that draws takes a second."""

    arguments: Callable[[Place], Sequence[str]]
    examples: int
    # Of complaints: one about the record, and where a folder has nothing else, one about that.
    lines: int = 1


# One record a side finds little, and some cases have no time: both are accepted.
ENOUGH = ("--require-power=100", "--allow-missing")

# By command and, where it has several ways, a word for the way. A new command is a line here.
USES: Mapping[str, Use] = {
    "figures": Use(lambda at: [at.record, "-o", f"{at.out}/figures"], 4),
    "report": Use(lambda at: [at.record, "-o", f"{at.out}/report"], 4),
    "readme": Use(
        lambda at: [
            *(at.record, "--readme", f"{at.out}/README.md"),
            *("--results", f"{at.out}/results.md", "--pictures", at.out),
        ],
        4,
    ),
    "kernels": Use(
        lambda at: [at.record, "--readme", f"{at.out}/LADDER.md", "--pictures", at.out], 4
    ),
    "ratios": Use(lambda at: [at.record, "--kernels", ".", "-o", f"{at.out}/ratios"], 4),
    "tune": Use(
        lambda at: [at.record, "-o", f"{at.out}/tune", "--write", f"{at.out}/tuned.inc"], 4
    ),
    "history": Use(
        lambda at: [at.folder, "-o", f"{at.out}/history", "--json", f"{at.out}/h.json"], 30, 2
    ),
    "compare": Use(
        lambda at: [at.record, at.good, *ENOUGH, "--json", f"{at.out}/verdicts.json"], 30
    ),
    "gate": Use(
        lambda at: [
            at.folder,
            "--baseline",
            at.good,
            *ENOUGH,
            "--markdown",
            f"{at.out}/comment.md",
        ],
        30,
        2,
    ),
    "fleet": Use(
        lambda at: [at.folder, "--json", f"{at.out}/f.json", "--picture", f"{at.out}/f.png"], 30, 2
    ),
    "explain": Use(
        lambda at: [
            *("Tiled/tile:16", "1024", "--record", at.record),
            *("--versus", "Naive", "-o", f"{at.out}/explain"),
        ],
        8,
    ),
    "export": Use(lambda at: [at.folder, "--format", "csv", "-o", f"{at.out}/all.csv"], 30),
    "export parquet": Use(
        lambda at: [at.record, "--format", "parquet", "-o", f"{at.out}/all.parquet"], 30
    ),
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
FAILED = {"fleet": 1, "compare": 5, "gate": 5}

# What a command also reads: other tools' files.
OTHERS = [
    json.loads(GOOGLE),
    nvbench(
        state(1, [summary("nv/cold/time/gpu/mean", "1e-3"), samples("good.json", 3)]),
        state(2, None, is_skipped=True, skip_reason="too small"),
    ),
]

PAGES = {
    "README.md": ("picture", "table"),
    "results.md": ("kernels",),
    "LADDER.md": ("overview", "rung Naive", "rung NaiveTransposed", "rung Tiled"),
}

EDGES = ("begin", "end")

# JSON has no word for these: they are written as texts first.
NUMBERS = ("1e999", "-1e999", "NaN", "Infinity", "1" * 400, "1" * 5000, "-0.0")
TEXTS = (
    "",
    " ",
    "nan",
    "../../../../tmp/escaped",
    "/tmp/escaped",
    "..",
    "a/b\\c:d*?",
    "<script>alert(1)</script>",
    "]]>-->\"'&amp;",
    "\x1b[31mred\x1b]0;title\x07",
    "two\nlines\r\n",
    "\x00",
    "\ud800 alone",
    "\u202eright to left\u2066",
    "$x_{$",
    "%s{}{0}",
    "a | b ` **c** [d](e)",
    "²³",
    "٣",
    "9" * 5000,
    "long " * 400,
    "🙂",
    "=1+1",
    '"}, // */ \\',
)
odd_texts = st.sampled_from(TEXTS) | st.text(max_size=8)
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
    | st.sampled_from(NUMBERS).map(lambda number: f"@{number}@")
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


class Damaged:
    """What a file holds; in the report of a failure, what is wrong with it."""

    def __init__(self, content: bytes, what: Sequence[str]) -> None:
        self.content = content
        self.what = what

    def __repr__(self) -> str:
        return "; ".join(self.what)


@st.composite
def changed(draw: st.DrawFn, documents: Sequence[dict[str, Any]]) -> Damaged:
    """One of these but for some of its keys, values and rows."""
    document = copy.deepcopy(draw(st.sampled_from(documents)))
    what = []
    for _ in range(draw(st.integers(1, 3))):
        ways = list(places(document))
        if not ways:
            break
        *way, step = draw(st.sampled_from(ways))
        holder = document
        for each in way:
            holder = holder[each]
        value = holder[step]
        change = draw(st.sampled_from(("like", "like", "like", "any", "drop", "twice", "swap")))
        if change == "drop":
            del holder[step]
        elif change == "twice" and isinstance(holder, list):
            holder.insert(step, copy.deepcopy(value))
        elif change == "twice":
            holder[draw(odd_texts)] = copy.deepcopy(value)
        elif change == "swap":
            other = draw(st.sampled_from(steps(holder)))
            holder[step], holder[other] = holder[other], value
            change += f" {other}"
        else:
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            like = odd_texts if isinstance(value, str) else odd_numbers if is_number else odd_values
            holder[step] = draw(like if change == "like" else odd_values)
            change += f" {holder[step]!r:.40}"
        what.append(f"{'.'.join(map(str, (*way, step)))}: {change}")
    text = json.dumps(document, ensure_ascii=draw(st.booleans()))
    for number in NUMBERS:
        text = text.replace(f'"@{number}@"', number)
    return Damaged(text.encode("utf-8", "surrogatepass"), what)


@st.composite
def damaged_bytes(draw: st.DrawFn) -> Damaged:
    """A record's bytes, cut, overwritten, repeated."""
    content = json.dumps(TINY).encode()
    start, end = sorted(draw(st.tuples(*[st.integers(0, len(content))] * 2)))
    piece = draw(st.binary(max_size=8) | st.sampled_from([b"\xef\xbb\xbf", b"\r\n", b"\0", b"["]))
    ways = {
        "cut": content[:start],
        "tail": content[start:],
        "inserted": content[:start] + piece + content[start:],
        "overwritten": content[:start] + piece + content[start + len(piece) :],
        "replaced": content[:start] + piece + content[end:],
        "repeated": content[:end] + content[start:],
        "before": piece + content,
        "alone": piece,
        "lines": content.replace(b"{", b"\r\n{"),
    }
    way = draw(st.sampled_from(list(ways)))
    return Damaged(ways[way], [f"{way} {piece!r} {start} to {end}"])


names = st.sampled_from(
    ["record.json"] * 4
    + ["a b.json", "\x1b[31m.json", "two\nlines.json", "$x_{.json", "<b>&|`.json", "\udcff.json"]
)


class Writes:
    """The files that this process opens for writing, makes, moves or removes."""

    def __init__(self) -> None:
        self._seen: list[str] | None = None
        sys.addaudithook(self._hear)

    @contextlib.contextmanager
    def watched(self) -> Iterator[list[str]]:
        """Until it ends, what was written is added to the list."""
        self._seen = seen = []
        try:
            yield seen
        finally:
            self._seen = None

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._seen is None:
            return
        if event == "open":
            path, _, flags = arguments
            if isinstance(path, int) or not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
                return
            self._seen.append(os.fsdecode(path))
        elif event in ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink"):
            self._seen += [os.fsdecode(path) for path in arguments[:2] if not isinstance(path, int)]


WRITES = Writes()


def code_of(command: str, content: bytes, name: str) -> int:
    """Runs the command on such a record; the exit code. Fails unless it behaves."""
    with tempfile.TemporaryDirectory() as here:
        root = Path(os.path.realpath(here))
        for folder in ("in", "in/device", "out"):
            (root / folder).mkdir()
        (root / "in" / "device" / name).write_bytes(content)
        (root / "good.json").write_text(json.dumps(GOOD), encoding="utf-8")
        for page, parts in PAGES.items():
            edges = [f"<!-- gemm_report:{edge} {part} -->\n" for part in parts for edge in EDGES]
            (root / "out" / page).write_text("".join(edges), encoding="utf-8")
        at = Place(
            record=str(root / "in" / "device" / name),
            good=str(root / "good.json"),
            folder=str(root / "in"),
            out=str(root / "out"),
        )
        before = files(root)
        said, complained = io.StringIO(), io.StringIO()
        with (
            contextlib.chdir(root),
            contextlib.redirect_stdout(said),
            contextlib.redirect_stderr(complained),
            WRITES.watched() as written,
        ):
            code = main([command.split()[0], *USES[command].arguments(at)])
        assert code in {0, 1, 2, 3, 5, 6, 7}, "all but a defect"
        complaint = complained.getvalue()
        assert "Traceback" not in complaint
        if code == BAD_INPUT:
            assert 1 <= complaint.count("\n") <= USES[command].lines, complaint
        for text in (said.getvalue(), complaint):
            assert all(line.isprintable() for line in text.split("\n"))
            text.encode("utf-8")
        assert files(root) == before
        for path in written:
            full = (root / path).resolve()
            # Beside what it imports, Python keeps what it compiled.
            caches = {"__pycache__"} & set(full.parts)
            allowed = full.is_relative_to(root / "out") or caches
            assert allowed or path == os.devnull, path
        for path in (root / "out").rglob("*.json"):
            json.loads(path.read_text(encoding="utf-8"), parse_constant=pytest.fail)
        return code


def files(root: Path) -> dict[str, bytes]:
    """All that lies beside the output."""
    outside = (path for path in root.rglob("*") if "out" not in path.relative_to(root).parts)
    return {str(path): path.read_bytes() for path in outside if path.is_file()}


def test_every_command_is_tried() -> None:
    assert {command.split()[0] for command in USES} == COMMANDS.keys()


@pytest.mark.parametrize("command", USES)
def test_a_sound_file_is_taken_by(command: str) -> None:
    content = json.dumps({**TINY, "surplus": 1}).encode()
    # A row of the record failed, and compare gets it as NEW, too.
    assert code_of(command, content, "record.json") == FAILED.get(command, 0)


@pytest.mark.parametrize("command", USES)
@pytest.mark.parametrize(
    "damage",
    [changed([TINY]), damaged_bytes(), changed(OTHERS)],
    ids=["values", "bytes", "others"],
)
def test_no_damage_ends_in_a_traceback(command: str, damage: st.SearchStrategy[Damaged]) -> None:
    examples = USES[command].examples

    @hypothesis.settings(
        max_examples=examples * (FACTOR or 1),
        derandomize=not FACTOR,
        database=None,
        deadline=None,
        phases=(hypothesis.Phase.generate, hypothesis.Phase.shrink),
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(damage, names)
    def behaves(damaged: Damaged, name: str) -> None:
        code_of(command, damaged.content, name)

    behaves()
