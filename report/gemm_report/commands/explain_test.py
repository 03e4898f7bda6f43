"""gemm-report explain with a gemm_bench and an ncu that say what the test wants."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from gemm_report.cli import BAD_INPUT, main
from gemm_report.commands.explain import WITHOUT_COUNTERS
from gemm_report.earlier import as_today
from gemm_report.explain.metrics import quantities
from gemm_report.explain.ncu import base_name
from gemm_report.record import read_record

H200 = Path(__file__).parents[3] / "results" / "nvidia-h200"
LADDER = H200 / "20261121T131126Z-3c362ff3dc00.json"
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
case $1 in
  --version) cat "$FAKE/version"; exit ;;
  --query-metrics) cat "$FAKE/metrics"; exit ;;
esac
case $* in
  *--benchmark_filter=^cuBLAS*) cat "$FAKE/counted.cuBLAS" 2> /dev/null || cat "$FAKE/counted" ;;
  *) cat "$FAKE/counted" ;;
esac
[[ ! -e $FAKE/status ]] || exit "$(<"$FAKE/status")"
"""

VERSION = "NVIDIA (R) Nsight Compute Command Line Profiler\nVersion {} (build 36398880)\n"
KERNEL = "warp_tile"
COUNTS = {
    "gpu__time_duration.sum": ("us", "3,210.5"),
    "sm__cycles_elapsed.avg.per_second": ("Ghz", "1.98"),
    "sm__cycles_elapsed.avg": ("cycle", "6,356,790"),
    "dram__bytes.sum": ("Mbyte", "612.4"),
    "lts__t_sectors_srcunit_tex.sum": ("sector", "203,423,744"),
    "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum": ("", "335,544,320"),
    "smsp__issue_active.avg.pct_of_peak_sustained_active": ("%", "81.5"),
    "smsp__inst_executed.sum": ("inst", "2,900,000,000"),
    "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum": ("inst", "68,719,476,736"),
    "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio": ("", "15.9"),
    "smsp__average_warps_issue_stalled_short_scoreboard_per_issue_active.ratio": ("", "0.2"),
    "smsp__average_warps_issue_stalled_selected_per_issue_active.ratio": ("", "1"),
    "l1tex__t_sector_hit_rate.pct": ("%", "n/a"),
}


def table(kernel: str = KERNEL, shorter: str = "12.5") -> str:
    """What ncu prints of two launches: the first is on a corner of the problem."""
    names = ["ID", "Process Name", "Kernel Name", "CC", *COUNTS]
    units = ["", "", "", "", *(unit for unit, _ in COUNTS.values())]
    values = [value for _, value in COUNTS.values()]
    rows = [names, units]
    rows += [
        ["0", "gemm_bench", kernel, "9.0", shorter, *values[1:]],
        ["1", "gemm_bench", kernel, "9.0", *values],
    ]
    lines = [",".join(f'"{cell}"' for cell in row) for row in rows]
    return "==PROF== Connected to process 1\nsome row 3.2 ms\n" + "\n".join(lines) + "\n"


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with both programs, and what they say in files of it."""
    document = json.loads(LADDER.read_text(encoding="utf-8"))
    wanted = {f"{name}/manual_time" for name in NAMES}
    document["benchmarks"] = [b for b in document["benchmarks"] if b["name"] in wanted]
    texts = {
        "record.json": json.dumps(document),
        "names": "".join(f"{name}/manual_time\n" for name in NAMES),
        "version": VERSION.format("2025.3.1.0"),
        "metrics": "Device NVIDIA H200 (GH100)\n"
        + "".join(f"{name.partition('.')[0]:<60} Counter  # of it\n" for name in COUNTS),
        "counted": table(),
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    for name, script in {"gemm_bench": GEMM_BENCH, "bin/ncu": NCU}.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(script)
        path.chmod(0o755)
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
    assert seen["l1_hits"] is None, "ncu had n/a"
    assert found["findings"][0]["kind"] == "issue-bound"
    assert {step["rung"] for step in found["steps"]} & {"AsyncCopy", "WarpSpecialized"}


def test_ncu_is_asked_for_the_row_s_kernels_alone(fake: Path, capsys: Capture) -> None:
    explained(capsys)
    version, query, count, source, *imports = (fake / "ncu.log").read_text().splitlines()
    assert "--section SourceCounters" in source
    assert [line.rpartition(" ")[2] for line in imports] == ["sass", "cuda"]
    assert (version, query) == ("--version", "--query-metrics")
    for option in (
        "--clock-control none",
        "--page raw",
        "--kernel-name regex:^(warp_tile)$",
        f"--benchmark_filter=^{NAMES[0]}/",
    ):
        assert option in count
    asked = count.split("--metrics ")[1].split()[0].split(",")
    assert set(asked) == COUNTS.keys(), "what the chip lacks is not asked for"
    assert len(quantities("9.0")) > len(asked)


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
    for command in (listed, timed, *(fake / "ncu.log").read_text().splitlines()[2:4]):
        assert " ".join(own) in command
    assert "--gemm_kernel_limit=3600" in (fake / "ncu.log").read_text()


def test_a_gemm_bench_that_knows_no_ladder_harms_no_stored_record(
    fake: Path, capsys: Capture
) -> None:
    (fake / "gemm_bench").write_text("#!/bin/sh\nexit 2\n")
    assert explained(capsys, "--record", str(LADDER))["explained"]["findings"]


def test_pages_say_what_binds_and_what_is_next(fake: Path, capsys: Capture) -> None:
    for form, head in (((), "WarpTile/f32/4096"), (("--markdown",), "## WarpTile/f32/4096")):
        assert main(["explain", "WarpTile", "4096", *form]) == 0
        said = capsys.readouterr().out
        assert said.startswith(head)
        assert "The issue slots are busy for 81.5 % of the time" in said
        assert "of the instructions are FFMA" in said
        assert "Next:" in said
        assert "no counter of" in said, "the counters that the chip lacks"
        assert "modelled" not in said.splitlines()[2]


def test_the_next_step_names_a_rung_of_the_suite(fake: Path, capsys: Capture) -> None:
    steps = explained(capsys)["explained"]["steps"]
    assert "WarpSpecialized" in [step["rung"] for step in steps]


def test_a_baseline_is_compared_with(fake: Path, capsys: Capture) -> None:
    arguments = ["explain", "WarpTile", "4096", "--versus", "cuBLAS/math:default"]
    record = read_record(fake / "record.json")
    baseline = next(row for row in record.rows if row.label == "cuBLAS/math:default")
    other = table(base_name(baseline.device_kernels[0]), "99.0").splitlines()[-1]
    (fake / "counted").write_text(table() + other + "\n")
    assert main(arguments) == 0
    said = capsys.readouterr().out
    issue = next(line for line in said.splitlines() if line.startswith("issue active"))
    assert issue.split()[2:] == ["81.5", "%", "81.5", "%"]
    assert "cuBLAS/math:default/f32/4096x4096x4096" in said
    assert "--gemm_versus=cuBLAS/math:default" in (fake / "gemm_bench.log").read_text()


def test_what_is_kept_has_the_counted_bytes(fake: Path, capsys: Capture) -> None:
    pytest.importorskip("matplotlib")
    out = fake / "out"
    explained(capsys, "-o", str(out))
    names = {path.name for path in out.iterdir()}
    assert names >= {"explain.txt", "explain.md", "explain.json", "hierarchy.png", "record.json"}
    assert "counters.csv" in names
    drawn = (out / "hierarchy.csv").read_text(encoding="utf-8")
    assert "counted by ncu" in drawn
    row = next(r for r in read_record(out / "record.json").rows if r.kernel == "WarpTile")
    assert row.counted
    assert row.counted.dram_bytes == pytest.approx(612.4e6)
    assert row.traffic != row.counted


def explained_again(fake: Path, capsys: Capture, *arguments: str) -> tuple[dict, dict]:
    """What was said with a GPU, and what is said of what was kept."""
    pytest.importorskip("matplotlib")
    out = fake / "out"
    first = explained(capsys, *arguments, "-o", str(out))
    (fake / "bin" / "ncu").unlink()
    (fake / "gemm_bench.log").unlink()
    stored = ["--record", str(out / "record.json"), "--counters", str(out / "counters.csv")]
    again = explained(capsys, *arguments, *stored)
    assert (fake / "gemm_bench.log").read_text() == "--gemm_list_kernels\n", "and nothing timed"
    for found in (first, again):
        for each in filter(None, found.values()):
            if isinstance(each, dict):
                del each["how"]
    return first, again


def test_what_is_kept_is_explained_again_without_a_gpu(fake: Path, capsys: Capture) -> None:
    first, again = explained_again(fake, capsys)
    assert first == again
    assert again["explained"]["observations"]["kernel_seconds"]
    kept = (fake / "out" / "counters.csv").read_text(encoding="utf-8")
    assert kept.startswith('"ID"')
    assert kept.count("\n") == 4, "header, units, two launches: nothing of what else was printed"


def test_two_pages_are_of_two_rows_though_their_kernels_share_a_name(
    fake: Path, capsys: Capture
) -> None:
    _same_kernels(fake)
    (fake / "counted.cuBLAS").write_text(table(shorter="99.0").replace('"81.5"', '"40"'))
    first, again = explained_again(fake, capsys, "--versus", "cuBLAS/math:default")
    assert first == again
    active = [again[which]["observations"]["issue_active"] for which in ("explained", "versus")]
    assert active == pytest.approx([0.815, 0.4])
    assert (fake / "out" / "counters.csv").read_text().count('"ID"') == 2


def _same_kernels(fake: Path) -> None:
    """Two rows of one kernel, as of its two tiles."""
    document = json.loads((fake / "record.json").read_text(encoding="utf-8"))
    rows = {row["name"]: row["gemm"] for row in document["benchmarks"]}
    rows[f"{NAMES[3]}/manual_time"]["device_kernels"] = rows[f"{NAMES[0]}/manual_time"][
        "device_kernels"
    ]
    (fake / "record.json").write_text(json.dumps(document))


def test_pages_that_fit_no_rows_are_refused_in_one_line(fake: Path, capsys: Capture) -> None:
    (fake / "three.csv").write_text(3 * table())
    arguments = ["--record", str(LADDER), "--counters", str(fake / "three.csv")]
    assert main(["explain", "WarpTile", "4096", *arguments]) == BAD_INPUT
    said = capsys.readouterr()
    assert "has 3 pages of ncu for 1 rows" in said.err
    assert said.err.count("\n") == 1


def test_help_says_what_is_kept_and_how_it_is_explained_again(capsys: Capture) -> None:
    with pytest.raises(SystemExit):
        main(["explain", "--help"])
    said = capsys.readouterr().out
    assert "--counters build/why/counters.csv" in said
    assert "ncu's raw page" in said


def test_what_is_kept_is_what_the_schema_says(fake: Path, capsys: Capture) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    pytest.importorskip("matplotlib")
    out = fake / "out"
    explained(capsys, "-o", str(out))
    schema = json.loads((H200.parent / "schema.json").read_text(encoding="utf-8"))
    kept = json.loads((out / "record.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(as_today(kept))


def test_a_stored_record_is_explained_by_its_models(capsys: Capture) -> None:
    found = explained(capsys, "--record", str(LADDER))["explained"]
    assert found["observations"]["counted_kernel"] is None
    assert all(level["is_modelled"] for level in found["observations"]["levels"])
    assert "Modelled" in found["how"]
    assert found["observations"]["registers"] == 127


def test_stored_counters_go_with_a_stored_record(fake: Path, capsys: Capture) -> None:
    counted, packed = fake / "counted", fake / "counted.csv.gz"
    packed.write_bytes(gzip.compress(counted.read_bytes()))
    for page in (counted, packed):
        arguments = ["--record", str(LADDER), "--counters", str(page)]
        assert explained(capsys, *arguments)["explained"]["findings"][0]["kind"] == "issue-bound"


def _without_permission(fake: Path) -> None:
    (fake / "counted").write_text(
        "==PROF== Connected to process 1\n==ERROR== ERR_NVGPUCTRPERM - The user does not have "
        "permission to access NVIDIA GPU Performance Counters on the target device 0.\n"
    )


def _fails(fake: Path) -> None:
    (fake / "counted").write_text("==PROF== Connected\n==ERROR== The driver is odd.\n")
    (fake / "status").write_text("9")


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda fake: (fake / "bin" / "ncu").unlink(), "no ncu (Nsight Compute) on PATH"),
        (lambda fake: (fake / "version").write_text(VERSION.format("2019.5.0")), "too old"),
        (lambda fake: (fake / "version").write_text("hello\n"), "says no version"),
        (lambda fake: (fake / "metrics").write_text("No device\n"), "names no metric"),
        (_without_permission, "ERR_NVGPUCTRPERM"),
        (_fails, "ncu ended with 9: ==ERROR== The driver is odd."),
        (lambda fake: (fake / "counted").write_text("==PROF== done\n"), "no launch of warp_tile"),
        (lambda fake: (fake / "counted").write_text(table("other")), "no launch of warp_tile"),
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
    assert "(modelled)" in said.out
    assert says in said.out


def test_models_alone_may_be_wanted(fake: Path, capsys: Capture) -> None:
    assert main(["explain", "WarpTile", "4096", "--modelled"]) == 0
    assert capsys.readouterr().err == ""
    assert not (fake / "ncu.log").exists()


def _record(fake: Path, change: Callable[[dict], object]) -> None:
    document = json.loads((fake / "record.json").read_text(encoding="utf-8"))
    change(document)
    (fake / "record.json").write_text(json.dumps(document))


def _on_a_cpu(document: dict) -> None:
    document["context"]["gemm"]["device"]["kind"] = "cpu"


def _skipped(document: dict) -> None:
    for row in document["benchmarks"]:
        row["gemm"] |= {"skipped": "too large", "seconds": None, "flop_per_second": None}


@pytest.mark.parametrize(
    ("arguments", "spoil", "says"),
    [
        (["WarpTil", "4096"], None, "no kernel WarpTil in f32 at 4096: is it WarpTile"),
        (["Tiled", "4096"], None, "give one of Tiled/tile:16, Tiled/tile:32"),
        (["WarpTile", "4096x4096"], None, "is not one shape"),
        (["WarpTile", "default"], None, "is not one shape"),
        (["WarpTile", "4097"], None, "gemm_bench ended with 2: gemm_bench: 4097 is not"),
        (["WarpTile", "4096", "--versus", "Nobody"], None, "no kernel Nobody"),
        (["WarpTile", "4096", "--precision", "bf16"], None, "no kernel WarpTile in bf16"),
        (["WarpTile", "4096", "--counters", "x.csv"], None, "--counters needs --record"),
        (["Nobody", "4096", "--record", str(LADDER)], None, "no row of Nobody"),
        (
            ["WarpTile", "17", "--record", str(LADDER)],
            None,
            "f32 at 17: no row of WarpTile: it has",
        ),
        (["Nobody", "4096", "--gemm_kernel=/n.cu"], None, "--gemm_kernel=/n.cu: there is no such"),
        (["WarpTile", "4096"], lambda fake: (fake / "gemm_bench").unlink(), "no gemm_bench in"),
        (["WarpTile", "4096"], lambda f: _record(f, lambda d: d["benchmarks"].clear()), "no row"),
        (["WarpTile", "4096"], lambda f: _record(f, _on_a_cpu), "was made on a CPU"),
        (["WarpTile", "4096"], lambda f: (f / "no_gpu").touch(), "only GPU kernels are explained"),
        (["WarpTil", "4096"], lambda f: (f / "no_gpu").touch(), "no driver: give the --record"),
        (["WarpTile", "4096", "-o", "/proc/x"], None, "/proc/x: cannot be a folder (No such file"),
        (["WarpTile", "4096", "-o", __file__], None, "cannot be a folder (File exists): give"),
        (["WarpTile", "4096", "--record", str(LADDER), "--counters", "/x.csv"], None, "/x.csv: "),
        (
            ["WarpTile", "4096", "--record", str(LADDER), "--counters", "/dev/null"],
            None,
            "/dev/null: is no file but a device",
        ),
        (
            ["WarpTile", "4096", "--record", str(LADDER), "--counters", str(LADDER)],
            None,
            "has no page of ncu: give what ncu --csv",
        ),
        (["WarpTile", "4096"], lambda f: _record(f, _skipped), "is skipped: too large"),
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
