"""gemm-report explain with a gemm_bench and an ncu that say what the test wants."""

import gzip
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gemm_report.cli import BAD_INPUT, main
from gemm_report.commands.explain import WITHOUT_COUNTERS
from gemm_report.explain.metrics import QUANTITIES
from gemm_report.record import read_record

H200 = Path(__file__).parents[3] / "results" / "nvidia-h200"
LADDER = H200 / "20261121T131126Z-3c362ff3dc00.json.gz"
NAMES = ("WarpTile/f32/4096x4096x4096", "Tiled/tile:16/f32/4096x4096x4096")
NAMES += ("Tiled/tile:32/f32/4096x4096x4096", "cuBLAS/math:default/f32/4096x4096x4096")

GEMM_BENCH = """#!/usr/bin/env bash
echo "$*" >> "$FAKE/gemm_bench.log"
for argument; do
  case $argument in
    --gemm_shapes=4097) echo "gemm_bench: 4097 is not for today" >&2; exit 2 ;;
    --gemm_device=0)
      [[ ! -e $FAKE/no_gpu ]] || { echo "gemm_bench: no driver" >&2; exit 2; } ;;
    --benchmark_list_tests) cat "$FAKE/names"; exit ;;
    --gemm_list_kernels) printf '31\\tsimt\\tWarpSpecialized\\tA producer warp.\\n'; exit ;;
    --benchmark_out=*) cp "$FAKE/record.json" "${argument#*=}"; exit ;;
  esac
done
"""

NCU = """#!/usr/bin/env bash
echo "$*" >> "$FAKE/ncu.log"
[[ $1 != --query-metrics ]] || { cat "$FAKE/metrics"; exit; }
cat "$FAKE/said"
while [[ $1 != --export ]]; do shift; done
case $* in
  *--benchmark_filter=^cuBLAS*) cp "$FAKE/counted.cuBLAS" "$2" 2> /dev/null && exit ;;
esac
cp "$FAKE/counted" "$2"
[[ ! -e $FAKE/status ]] || exit "$(<"$FAKE/status")"
"""

# NVIDIA's package, as far as it is used: a report is JSON here.
NCU_REPORT = """
import gzip
import json
class Metric:
    def __init__(self, value): self.value = value
    def as_double(self): return self.value
    def unit(self): return ""
    def has_correlation_ids(self): return False
class Action:
    def __init__(self, kernel, metrics): self.kernel, self.metrics = kernel, metrics
    def name(self): return self.kernel
    def metric_names(self): return list(self.metrics)
    def metric_by_name(self, name):
        return Metric(self.metrics[name]) if name in self.metrics else None
    def source_files(self): return {}
def load_report(path): return [[Action(*launch) for launch in json.load(open(path))]]
"""

KERNEL = "warp_tile"
COUNTS = {
    "gpu__time_duration.sum": 3210.5e-6,
    "sm__cycles_elapsed.avg.per_second": 1.98e9,
    "sm__cycles_elapsed.avg": 6356790,
    "dram__bytes.sum": 612.4e6,
    "lts__t_sectors_srcunit_tex.sum": 203423744,
    "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum": 335544320,
    "smsp__issue_active.avg.pct_of_peak_sustained_active": 81.5,
    "smsp__inst_executed.sum": 2.9e9,
    "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum": 68719476736,
    "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio": 15.9,
    "smsp__average_warps_issue_stalled_short_scoreboard_per_issue_active.ratio": 0.2,
    "smsp__average_warps_issue_stalled_selected_per_issue_active.ratio": 1,
}


def launches(kernel: str = KERNEL, **changed: float) -> str:
    """A report of two launches: the first is on a corner of the problem."""
    shorter = {**COUNTS, "gpu__time_duration.sum": 12.5e-6}
    return json.dumps([[kernel, shorter], [kernel, {**COUNTS, **changed}]])


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with both programs, and what they say in files of it."""
    document = json.loads(gzip.decompress(LADDER.read_bytes()))
    wanted = {f"{name}/manual_time" for name in NAMES}
    document["benchmarks"] = [b for b in document["benchmarks"] if b["name"] in wanted]
    texts = {
        "record.json": json.dumps(document),
        "names": "".join(f"{name}/manual_time\n" for name in NAMES),
        "said": "==PROF== Connected to process 1\n",
        "ncu_report.py": NCU_REPORT,
        "metrics": "Device NVIDIA H200 (GH100)\n"
        + "".join(f"{name.partition('.')[0]:<60} Counter  # of it\n" for name in COUNTS),
        "counted": launches(),
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    for name, script in {"gemm_bench": GEMM_BENCH, "bin/ncu": NCU}.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(script)
        path.chmod(0o755)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "ncu_report", raising=False)
    monkeypatch.setenv("FAKE", str(tmp_path))
    monkeypatch.setenv("GEMM_BENCH_BUILD", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    return tmp_path


Capture = pytest.CaptureFixture[str]


def explained(capsys: Capture, *arguments: str) -> dict:
    """The JSON of WarpTile at 4096."""
    assert main(["explain", "WarpTile", "4096", "--json", *arguments]) == 0
    return json.loads(capsys.readouterr().out)


def test_counters_are_those_of_the_longest_launch(fake: Path, capsys: Capture) -> None:
    found = explained(capsys)["explained"]
    seen = found["observations"]
    assert found["name"] == NAMES[0]
    assert seen["counted_kernel"] == "warp_tile"
    assert seen["kernel_seconds"] == pytest.approx(3.2105e-3, rel=0.01)
    assert [level["counted_bytes"] for level in seen["levels"]] == pytest.approx(
        [612.4e6, 203423744 * 32, 335544320 * 128]
    )
    assert [level["is_modelled"] for level in seen["levels"]] == [False] * 3
    assert seen["ffma_share"] == pytest.approx(68719476736 / 32 / 2.9e9)
    assert seen["counted_flop"] == pytest.approx(2 * 4096**3)
    assert seen["l1_hits"] is None, "ncu had none"
    assert found["findings"][0]["kind"] == "issue-bound"
    assert {step["rung"] for step in found["steps"]} & {"AsyncCopy", "WarpSpecialized"}


def test_ncu_is_asked_for_the_row_s_kernels_alone(fake: Path, capsys: Capture) -> None:
    explained(capsys)
    query, count = (fake / "ncu.log").read_text().splitlines()
    assert query == "--query-metrics"
    for option in (
        "--clock-control none",
        "--section SourceCounters",
        "--kernel-name regex:^(warp_tile)$",
        f"--benchmark_filter=^{NAMES[0]}/",
    ):
        assert option in count
    asked = count.split("--metrics ")[1].split()[0].split(",")
    assert set(asked) == COUNTS.keys(), "what the chip lacks is not asked for"
    assert len(QUANTITIES) > len(asked)


def test_a_kernel_of_the_user_is_named_in_each_run(fake: Path, capsys: Capture) -> None:
    mine = fake / "my.cu"
    mine.touch()
    own = [f"--gemm_kernel={mine}:entry", "--gemm_define=TILE:16", "--gemm_define=N:2"]
    explained(capsys, *own)
    listed, timed = (
        line
        for line in (fake / "gemm_bench.log").read_text().splitlines()
        if "--gemm_shapes" in line
    )
    assert "--benchmark_filter=. --benchmark_list_tests" in listed, "ours can be baselines"
    for command in (listed, timed, *(fake / "ncu.log").read_text().splitlines()[1:]):
        assert " ".join(own) in command
    assert "--gemm_kernel_limit=3600" in (fake / "ncu.log").read_text()


def test_pages_say_what_binds_and_what_is_next(fake: Path, capsys: Capture) -> None:
    for form, head in (((), "WarpTile/f32/4096"), (("--markdown",), "## WarpTile/f32/4096")):
        assert main(["explain", "WarpTile", "4096", *form]) == 0
        said = capsys.readouterr().out
        assert said.startswith(head)
        assert "The issue slots are busy for 81.5 % of the time" in said
        assert "(WarpSpecialized)" in said.partition("Next:")[2]
        assert "no counter of" in said, "the counters that the chip lacks"


def test_what_is_kept_is_explained_again_without_a_gpu(fake: Path, capsys: Capture) -> None:
    pytest.importorskip("matplotlib")
    document = json.loads((fake / "record.json").read_text(encoding="utf-8"))
    rows = {row["name"].removesuffix("/manual_time"): row["gemm"] for row in document["benchmarks"]}
    # Two rows of one kernel, as of its two tiles, whose pages differ.
    rows[NAMES[3]]["device_kernels"] = rows[NAMES[0]]["device_kernels"]
    (fake / "record.json").write_text(json.dumps(document))
    active = {"smsp__issue_active.avg.pct_of_peak_sustained_active": 40.0}
    (fake / "counted.cuBLAS").write_text(launches(**active))
    out, versus = fake / "out", ["--versus", "cuBLAS/math:default"]
    first = explained(capsys, *versus, "-o", str(out))
    assert "--gemm_versus=cuBLAS/math:default" in (fake / "gemm_bench.log").read_text()
    names = {path.name for path in out.iterdir()}
    assert names >= {"explain.txt", "explain.md", "explain.json", "hierarchy.png", "record.json"}
    page = (out / "index.html").read_text(encoding="utf-8")
    for said in ("WarpTile", "What limits it", "<svg ", "Observed", "Next"):
        assert said in page, said
    assert "counted by ncu" in (out / "hierarchy.csv").read_text(encoding="utf-8")
    row = next(r for r in read_record(out / "record.json").rows if r.kernel == "WarpTile")
    assert row.counted
    assert row.counted.dram_bytes == pytest.approx(612.4e6)
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((H200.parent / "schema.json").read_text(encoding="utf-8"))
    kept = json.loads((out / "record.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(kept)

    (fake / "bin" / "ncu").unlink()
    (fake / "gemm_bench.log").unlink()
    stored = ["--record", str(out / "record.json"), "--counters", str(out / "counters.json")]
    again = explained(capsys, *versus, *stored)
    assert (fake / "gemm_bench.log").read_text() == "--gemm_list_kernels\n", "and nothing timed"
    both = [again[which]["observations"]["issue_active"] for which in ("explained", "versus")]
    assert both == pytest.approx([0.815, 0.4])
    for found in (first, again):
        for which in ("explained", "versus"):
            del found[which]["how"]
    assert first == again
    assert main(["explain", "WarpTile", "4096", *stored]) == BAD_INPUT
    assert "has 2 pages of ncu for 1 rows" in capsys.readouterr().err


def test_a_stored_record_is_explained_by_its_models(fake: Path, capsys: Capture) -> None:
    # A gemm_bench that knows no ladder harms it not.
    (fake / "gemm_bench").write_text("#!/bin/sh\nexit 2\n")
    found = explained(capsys, "--record", str(LADDER))["explained"]
    assert found["findings"]
    assert found["observations"]["counted_kernel"] is None
    assert all(level["is_modelled"] for level in found["observations"]["levels"])
    assert "Modelled" in found["how"]
    assert found["observations"]["registers"] == 127
    assert not (fake / "ncu.log").exists()


def test_models_alone_may_be_wanted(fake: Path, capsys: Capture) -> None:
    explained(capsys, "--modelled")
    assert not (fake / "ncu.log").exists()


def _says(text: str, status: int = 0) -> Callable[[Path], object]:
    def spoil(fake: Path) -> None:
        (fake / "said").write_text(f"==PROF== Connected\n==ERROR== {text}\n")
        (fake / "status").write_text(str(status))

    return spoil


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda fake: (fake / "bin" / "ncu").unlink(), "no ncu (Nsight Compute) on PATH"),
        (lambda fake: (fake / "metrics").write_text("No device\n"), "names no metric"),
        (_says("ERR_NVGPUCTRPERM - The user does not have permission"), "ERR_NVGPUCTRPERM"),
        (_says("The driver is odd.", 9), "ncu ended with 9: ==ERROR== The driver is odd."),
        (lambda fake: (fake / "counted").unlink(), "saw none of these kernels"),
        (lambda fake: (fake / "counted").write_text(launches("other")), "no launch of warp_tile"),
    ],
)
def test_without_counters_the_models_speak_and_one_line_says_why(
    fake: Path, capsys: Capture, spoil: Callable[[Path], object], says: str
) -> None:
    spoil(fake)
    assert main(["explain", "WarpTile", "4096"]) == WITHOUT_COUNTERS
    said = capsys.readouterr()
    assert said.err.count("\n") == 1
    assert says in said.err
    assert "Modelled: bytes" in said.out
    assert says in said.out


def _record(change: Callable[[dict], object]) -> Callable[[Path], object]:
    def spoil(fake: Path) -> None:
        document = json.loads((fake / "record.json").read_text(encoding="utf-8"))
        change(document)
        (fake / "record.json").write_text(json.dumps(document))

    return spoil


def _skipped(document: dict) -> None:
    for row in document["benchmarks"]:
        row["gemm"] |= {"skipped": "too large", "seconds": None, "flop_per_second": None}


_NO_ROWS = _record(lambda document: document["benchmarks"].clear())
_ON_A_CPU = _record(lambda document: document["context"]["gemm"]["device"].update(kind="cpu"))


@pytest.mark.parametrize(
    ("arguments", "spoil", "says"),
    [
        (["WarpTil", "4096"], None, "no kernel WarpTil in f32 at 4096: is it WarpTile"),
        (["Tiled", "4096"], None, "give one of Tiled/tile:16, Tiled/tile:32"),
        (["WarpTile", "4096x4096"], None, "is not one shape"),
        (["WarpTile", "4097"], None, "gemm_bench ended with 2: gemm_bench: 4097 is not"),
        (["WarpTile", "4096", "--counters", "x.json"], None, "--counters needs --record"),
        (["Nobody", "4096", "--record", str(LADDER)], None, "no row of Nobody"),
        (["WarpTile", "17", "--record", str(LADDER)], None, "17: no row of WarpTile: it has"),
        (["WarpTile", "4096"], lambda fake: (fake / "gemm_bench").unlink(), "no gemm_bench in"),
        (["WarpTile", "4096"], _NO_ROWS, "no row"),
        (["WarpTile", "4096"], _ON_A_CPU, "was made on a CPU"),
        (["WarpTil", "4096"], lambda f: (f / "no_gpu").touch(), "gemm_bench: no driver"),
        (["WarpTile", "4096", "-o", "/proc/x"], None, "/proc/x: cannot be a folder (No such file"),
        (["WarpTile", "4096", "--record", str(LADDER), "--counters", "/x.json"], None, "/x.json: "),
        (["WarpTile", "4096", "--record", str(LADDER), "--counters", str(LADDER)], None, "array"),
        (["WarpTile", "4096"], _record(_skipped), "is skipped: too large"),
    ],
)
def test_bad_input_gets_one_line(
    fake: Path,
    capsys: Capture,
    arguments: list[str],
    spoil: Callable[[Path], object] | None,
    says: str,
) -> None:
    if spoil:
        spoil(fake)
    assert main(["explain", *arguments]) == BAD_INPUT
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert says in said.err
