"""gemm_bench as a user sees it: exit codes, messages, and what is left on disk.

The programs come from the build folder in GEMM_BENCH_BUILD, relative to the project's root. They
run on the CPU, so that the tests mean the same with and without a GPU.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

jsonschema = pytest.importorskip("jsonschema")

ROOT = Path(__file__).parents[2]
BUILD = ROOT / os.environ.get("GEMM_BENCH_BUILD", "build/release")
BENCH = BUILD / "gemm_bench"
WRONG = BUILD / "bench" / "gemm_bench_wrong"
QUICK = [
    "--gemm_device=cpu",
    "--gemm_warmup=0.001",
    "--gemm_sample=0.0001",
    "--gemm_sampling=0.05",
    "--gemm_peaks=nominal",
    "--benchmark_min_time=0.001s",
]

# Threads that spin at barriers keep each other off the cores of a busy machine.
os.environ["OMP_WAIT_POLICY"] = "passive"

pytestmark = pytest.mark.skipif(not BENCH.exists(), reason=f"{BENCH} is not built")


def run(*arguments: str, program: Path = BENCH, **kwargs: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program, *arguments], capture_output=True, text=True, timeout=120, check=False, **kwargs
    )


def codes(row: dict[str, Any]) -> list[str]:
    """In which points the row deviates from the guideline."""
    return [deviation["code"] for deviation in row["gemm"]["departures"]]


def record(path: Path) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{path} holds {constant}")

    document = json.loads(path.read_text(), parse_constant=refuse)
    jsonschema.validate(document, json.loads((ROOT / "results" / "schema.json").read_text()))
    return document


def test_writes_a_valid_record_and_a_table(tmp_path: Path) -> None:
    out = tmp_path / "new" / "record.json"
    done = run(*QUICK, "--gemm_shapes=33x17x65,64", f"--benchmark_out={out}")
    assert done.returncode == 0, done.stderr
    document = record(out)
    rows = document["benchmarks"]
    assert document["context"]["gemm"]["complete"]
    assert {row["gemm"]["kernel"] for row in rows} >= {"CpuNaive", "CpuBlocked"}
    for row in rows:
        assert f"\n{row['name'].removesuffix('/manual_time')} " in done.stdout
        gemm = row["gemm"]
        assert gemm["verification"]["passed"]
        assert 0 <= gemm["verification"]["of_bound"] <= 1
        assert row["real_time"] == pytest.approx(gemm["seconds"]["median"] * 1e6)
        assert row["GFLOP/s"] == pytest.approx(gemm["flop_per_second"] * 1e-9)
    assert "[1/" in done.stdout
    assert " left]" in done.stdout
    assert "\x1b" not in done.stdout + done.stderr
    assert "manual_time" not in done.stdout
    assert list(tmp_path.rglob("*.part*")) == []
    assert str(tmp_path) not in out.read_text()


def test_filter_runs_the_family_and_still_knows_the_library(tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    done = run(*QUICK, "--gemm_shapes=64", "--benchmark_filter=Blocked", f"--benchmark_out={out}")
    assert done.returncode == 0, done.stderr
    (row,) = record(out)["benchmarks"]
    assert row["gemm"]["kernel"] == "CpuBlocked"
    if "OpenBLAS" in run("--benchmark_list_tests", "--gemm_device=cpu").stdout:
        assert row["gemm"]["library"] == "OpenBLAS"
        assert row["gemm"]["of_library"] > 0


def openblas(out: Path, *arguments: str, **kwargs: Any) -> list[dict[str, Any]]:
    """The libraries in the record of a run with OpenBLAS; skips where the build has none."""
    if "OpenBLAS" not in run("--benchmark_list_tests", "--gemm_device=cpu").stdout:
        pytest.skip("built without OpenBLAS")
    done = run(*QUICK, "--gemm_shapes=64", *arguments, f"--benchmark_out={out}", **kwargs)
    assert done.returncode == 0, done.stderr
    libraries = record(out)["context"]["gemm"]["libraries"]
    for each in libraries:
        assert f"{each['name']} {each['version']} ({each['detail']})" in done.stdout
    return libraries


def test_the_libraries_that_were_used_are_named(tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    (found,) = openblas(out, "--benchmark_filter=OpenBLAS")
    assert found["name"] == "OpenBLAS"
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", found["version"])
    assert re.fullmatch(r"[^/]*blas[^/]*\.so[^/]*", found["file"])
    assert re.fullmatch(r"\w+, \d+ threads?", found["detail"])
    assert openblas(out, "--benchmark_filter=CpuBlocked") == [found], "it is compared with it"
    assert openblas(out, "--benchmark_filter=CpuBlocked", "--gemm_library=omit") == []
    one = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    (alone,) = openblas(out, "--benchmark_filter=OpenBLAS", env=one)
    assert alone == {**found, "detail": f"{found['detail'].split(',')[0]}, 1 thread"}


def test_a_record_of_a_fleet_names_its_node_and_needs_no_library(tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    options = ["--gemm_library=omit", "--gemm_node=n1", "--gemm_peaks=stored"]
    cache = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    chosen = ["--gemm_shapes=64", "--benchmark_filter=Blocked", f"--benchmark_out={out}"]
    done = run(*QUICK, *options, *chosen, env=cache)
    assert done.returncode == 0, done.stderr
    document = record(out)
    assert document["context"]["gemm"]["node"] == "n1"
    assert document["context"]["gemm"]["measured_ceilings"] == []  # none was stored
    assert document["benchmarks"][0]["gemm"]["library"] is None
    assert run("--gemm_node=").returncode == 2
    assert run("--gemm_node=two\nlines").returncode == 2


def test_repetitions_interleaving_and_aggregates_keep_their_meaning(tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    done = run(
        *QUICK,
        "--gemm_shapes=64",
        "--benchmark_filter=Cpu",
        "--benchmark_repetitions=3",
        "--benchmark_enable_random_interleaving",
        "--benchmark_context=rack=7,operator=me",
        "--benchmark_time_unit=ns",
        "--gemm_row_budget=5",
        f"--benchmark_out={out}",
    )
    assert done.returncode == 0, done.stderr
    assert record(out)["context"]["rack"] == "7"
    rows = record(out)["benchmarks"]
    iterations = [row for row in rows if row["run_type"] == "iteration"]
    assert sorted(row["repetition_index"] for row in iterations) == [0, 0, 1, 1, 2, 2]
    for row in iterations:
        median = row["gemm"]["seconds"]["median"]
        assert row["real_time"] == pytest.approx(median * 1e9), "another repetition's row"
    assert {row["aggregate_name"] for row in rows if row["run_type"] == "aggregate"} == {
        "mean",
        "median",
        "stddev",
        "cv",
    }
    assert "_median" in done.stdout


@pytest.mark.parametrize("form", ["json", "csv"])
def test_other_formats_go_to_stdout(form: str) -> None:
    done = run(*QUICK, "--gemm_shapes=64", "--benchmark_filter=Naive", f"--benchmark_format={form}")
    assert done.returncode == 0, done.stderr
    if form == "json":
        assert json.loads(done.stdout)["benchmarks"][0]["gemm"]["kernel"] == "CpuNaive"
    else:
        assert "CpuNaive/f32/64x64x64" in done.stdout


def test_csv_survives_a_skipped_first_row() -> None:
    shapes = "--gemm_shapes=2000000000x2000000000x1,64"
    done = run(*QUICK, shapes, "--benchmark_filter=Naive", "--benchmark_format=csv")
    assert done.returncode == 0, done.stderr
    large, small = done.stdout.splitlines()[-2:]
    assert "2000000000" in large
    assert large.split(",")[2] == "nan"
    assert float(small.split(",")[2]) > 0
    assert "SKIPPED: needs" in done.stderr


def test_a_pipe_is_written_to_and_a_link_is_followed(tmp_path: Path) -> None:
    target, link = tmp_path / "target.json", tmp_path / "link.json"
    link.symlink_to(target)
    arguments = [*QUICK, "--gemm_shapes=16", "--benchmark_filter=Naive"]
    assert run(*arguments, f"--benchmark_out={link}").returncode == 0
    assert link.is_symlink()
    assert record(target)["benchmarks"]
    assert run(*arguments, "--benchmark_out=/dev/null").returncode == 0
    assert Path("/dev/null").is_char_device()


def test_records_keep_no_folder(tmp_path: Path) -> None:
    out, shapes = tmp_path / "record.json", tmp_path / "shapes.json"
    shapes.write_text('["16"]')
    arguments = [f"--gemm_shapes=17,{shapes}", "--benchmark_filter=Naive/f32"]
    assert run(*QUICK, *arguments, f"--benchmark_out={out}").returncode == 0
    command = record(out)["context"]["gemm"]["command"]
    assert "--gemm_shapes=17,shapes.json" in command
    assert "--benchmark_filter=Naive/f32" in command
    assert str(tmp_path) not in out.read_text()


def test_bad_input_leaves_an_old_record_alone(tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    out.write_text("old")
    done = run("--gemm_device=cpu", "--benchmark_filter=Nonesuch", f"--benchmark_out={out}")
    assert done.returncode == 2
    assert out.read_text() == "old"


def test_wrong_kernels_fail_without_a_time_and_the_rest_is_kept(tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    arguments = [
        "--gemm_shapes=16",
        "--benchmark_filter=Wrong[NPLT]|Naive",
        f"--benchmark_out={out}",
    ]
    done = run(*QUICK, *arguments, program=WRONG)
    assert done.returncode == 1
    rows = {row["gemm"]["kernel"]: row for row in record(out)["benchmarks"]}
    assert rows["CpuNaive"]["gemm"]["failed"] is None
    expected = {
        "WrongNaN": "c[0,0] = nan",
        "WrongPastTheEnd": "past its end",
        "WrongLater": "c[0,1] = ",
        "WrongThrows": "no plan for this problem",
    }
    repeated = run(*QUICK, *arguments, "--benchmark_repetitions=3", program=WRONG)
    assert repeated.returncode == 1, repeated.stderr
    assert "16x16x16/repeats:3_mean" not in repeated.stdout
    assert run(*QUICK, *arguments, program=WRONG).returncode == 1
    for kernel, complaint in expected.items():
        row = rows[kernel]
        assert complaint in row["gemm"]["failed"], kernel
        assert "seconds" not in row["gemm"]
        assert row["error_occurred"]
        assert f"FAILED: {row['gemm']['failed']}" in done.stdout
    assert not rows["WrongNaN"]["gemm"]["verification"]["passed"]
    assert record(out)["context"]["gemm"]["complete"]


def test_a_kernel_that_claims_a_layout_and_reads_another_fails(tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    arguments = ["--gemm_layouts=nn,tn", "--gemm_shapes=64,33x17x65", f"--benchmark_out={out}"]
    done = run(*QUICK, "--benchmark_filter=WrongLayout", *arguments, program=WRONG)
    assert done.returncode == 1
    rows = record(out)["benchmarks"]
    assert [row["gemm"]["layout"] for row in rows] == ["tn", "tn"], "it has no other"
    assert all("expected" in row["gemm"]["failed"] for row in rows), rows


def test_layouts_are_cases_of_the_kernels_that_have_them(tmp_path: Path) -> None:
    def listed(*arguments: str) -> list[str]:
        done = run("--gemm_device=cpu", "--benchmark_list_tests", "--gemm_shapes=64", *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    plain, every = listed(), listed("--gemm_layouts=nn,nt,tn,tt")
    assert every[: len(plain)] == plain, "rows of nn keep their names"
    assert all("/layout:" in name and "Cpu" not in name for name in every[len(plain) :])
    if len(every) == len(plain):
        pytest.skip("built without OpenBLAS")
    out = tmp_path / "record.json"
    chosen = ["--gemm_layouts=nt,tt", "--gemm_shapes=33x17x65", f"--benchmark_out={out}"]
    assert run(*QUICK, *chosen).returncode == 0
    rows = record(out)["benchmarks"]
    assert [row["gemm"]["layout"] for row in rows] == ["nt", "tt"]
    assert rows[0]["name"] == "OpenBLAS/layout:nt/f32/33x17x65/manual_time"
    refused = run("--gemm_device=cpu", "--benchmark_filter=CpuNaive", "--gemm_layouts=nt")
    assert refused.returncode == 2
    assert "CpuNaive selects no kernel that computes" in refused.stderr


def test_a_kernel_that_stops_writing_is_found_in_the_repetition_where_it_does(
    tmp_path: Path,
) -> None:
    out = tmp_path / "record.json"
    often = ["--benchmark_repetitions=30", "--benchmark_min_time=0.01s", "--gemm_shapes=16"]
    done = run(
        *QUICK, *often, "--benchmark_filter=WrongStops", f"--benchmark_out={out}", program=WRONG
    )
    assert done.returncode == 1, done.stderr
    rows = [row["gemm"] for row in record(out)["benchmarks"] if row["run_type"] == "iteration"]
    assert len(rows) == 30
    assert rows[0]["seconds"]
    assert rows[-1]["failed"].startswith(("c[0,0] = ", "in a sample: "))


def test_a_repetition_that_is_slower_than_the_first_ends_with_the_budget(tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    often = ["--benchmark_repetitions=20", "--benchmark_min_time=20x", "--gemm_shapes=16"]
    often += ["--gemm_sample=1e-9", "--gemm_row_budget=1", "--benchmark_filter=SlowsDown"]
    started = time.monotonic()
    done = run(*QUICK, *often, f"--benchmark_out={out}", program=WRONG)
    assert time.monotonic() - started < 60
    assert done.returncode == 1, done.stdout
    rows = [row["gemm"] for row in record(out)["benchmarks"] if row["run_type"] == "iteration"]
    assert rows[-1]["failed"].startswith("not checked: ")


def test_rows_beyond_a_budget_are_skipped_with_the_reason(tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    slow = ["--gemm_shapes=512x512x4096", "--gemm_row_budget=0.01", "--benchmark_filter=CpuNaive"]
    done = run(*QUICK, *slow, f"--benchmark_out={out}")
    assert done.returncode == 0
    (row,) = record(out)["benchmarks"]
    assert "--gemm_row_budget" in row["gemm"]["skipped"]
    done = run(*QUICK, "--gemm_shapes=16,32", "--gemm_run_budget=1e-9", f"--benchmark_out={out}")
    assert done.returncode == 0
    assert all("run budget" in row["gemm"]["skipped"] for row in record(out)["benchmarks"])


def test_a_closed_stdout_is_an_error(tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    command = [*map(str, (BENCH, *QUICK)), "--gemm_shapes=64", f"--benchmark_out={out}"]
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *command], stderr=subprocess.PIPE, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith(b"gemm_bench: standard output is closed")
    assert not out.exists()


def test_what_does_not_fit_into_memory_is_skipped_with_the_bytes(tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    done = run(*QUICK, "--gemm_shapes=2000000000x2000000000x1,16", f"--benchmark_out={out}")
    assert done.returncode == 0
    large, *_, small = record(out)["benchmarks"]
    assert "needs 3.2e+10 GB of memory" in large["gemm"]["skipped"]
    assert small["gemm"]["seconds"]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("repetitions", [1, 5])
def test_ctrl_c_keeps_what_is_complete(
    tmp_path: Path, how: signal.Signals, repetitions: int
) -> None:
    out = tmp_path / "record.json"
    arguments = ["--gemm_device=cpu", "--gemm_shapes=64,96", "--benchmark_min_time=0.1s"]
    arguments += ["--gemm_peaks=nominal", "--gemm_sampling=0.2"]
    arguments.append(f"--benchmark_repetitions={repetitions}")
    with subprocess.Popen(
        [BENCH, *arguments, f"--benchmark_out={out}"], stdout=subprocess.PIPE, text=True
    ) as process:
        deadline = time.monotonic() + 60
        while not out.exists():
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.05)
        time.sleep(0.5)  # into the next case
        process.send_signal(how)
        process.communicate(timeout=60)
    assert process.returncode == 130
    assert [path.name for path in tmp_path.iterdir()] == ["record.json"]
    document = record(out)
    assert document["context"]["gemm"]["complete"] is False
    assert document["benchmarks"]
    rows = [row for row in document["benchmarks"] if row["run_type"] == "iteration"]
    assert all(row["gemm"]["seconds"] for row in rows)


def test_minimum_times_say_how_long_or_how_often_a_row_is_sampled(tmp_path: Path) -> None:
    def sampled(minimum: str) -> tuple[int, float]:
        out = tmp_path / "record.json"
        few = [*QUICK, "--gemm_shapes=64", "--benchmark_filter=CpuNaive"]
        assert (
            run(*few, f"--benchmark_min_time={minimum}", f"--benchmark_out={out}").returncode == 0
        )
        (row,) = record(out)["benchmarks"]
        samples = row["gemm"]["samples_seconds"]
        assert row["iterations"] == len(samples)
        return len(samples), sum(samples) * row["gemm"]["batch"]

    assert sampled("7x")[0] == 7
    # A part of the time passes in samples; without it, 0.05 seconds would be the longest.
    assert sampled("0.001s")[1] < 0.1 < sampled("0.6")[1]


def test_rows_say_how_they_were_measured(tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    done = run(*QUICK, "--gemm_shapes=64", "--benchmark_filter=Blocked", f"--benchmark_out={out}")
    document = record(out)
    (row,) = document["benchmarks"]
    assert not {"not-watched", "not-settled"} & {*codes(row)}, "a CPU has no such readings"
    assert row["gemm"]["clocks"]["sm_hz"] is None
    assert row["gemm"]["fingerprint"] is None, "only GPU code has one"
    assert row["gemm"]["device_code"] == []
    assert row["gemm"]["of_roof_at_clock"] is None
    run_keys = document["context"]["gemm"]
    assert f"Measured: {run_keys['conformance']}" in done.stdout
    assert run_keys["method"]["test"] is None, "it is unknown whether the clocks float"
    assert run_keys["method"]["watch"]["why_not"] == "a CPU has no NVML"
    assert 0 < run_keys["time"]["kernel_seconds"] < run_keys["time"]["wall_seconds"]


def test_the_default_suite_runs_if_nothing_else_is_asked_for() -> None:
    nothing = [*QUICK, "--gemm_run_budget=1e-9"]  # all that it has is skipped
    said = re.findall(r"^(Cpu\w+)/f32/(\d+)x.* SKIPPED", run(*nothing).stdout, re.MULTILINE)
    sizes = ["128", "256", "512", "1000", "1024"]
    assert [size for kernel, size in said if kernel == "CpuBlocked"] == sizes
    assert [size for kernel, size in said if kernel == "CpuNaive"] == ["512"]
    for one in ("--gemm_shapes=256,512", "--gemm_layouts=nn", "--benchmark_filter=Cpu"):
        more = run(*nothing, one).stdout
        assert "CpuNaive/f32/256x256x256 " in more, "all kernels at all sizes"


def test_what_deviates_from_the_guideline_says_so(tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    few = [*QUICK, "--gemm_shapes=64", "--benchmark_filter=Blocked", "--benchmark_min_time=5x"]
    run(*few, "--gemm_fill=zeros", "--gemm_cache=hot", f"--benchmark_out={out}")
    (row,) = record(out)["benchmarks"]
    assert row["gemm"]["rotation_sets"] == 1
    assert "low-power-operands" in codes(row)
    assert "one-operand-set" in codes(row)
    burst = ["--gemm_state=burst", "--gemm_cooldown=0.01", "--gemm_row_budget=1"]
    done = run(*few, "--gemm_fill=normal", *burst)
    assert "normal, " in done.stdout
    assert re.search(r"off-guideline: 1 of 1 \(burst 1, .*other-distribution 1", done.stdout)


def test_one_sample_is_for_profilers_and_has_no_rate(tmp_path: Path) -> None:
    few = [*QUICK, "--gemm_shapes=64", "--benchmark_filter=Blocked"]
    for samples, checked in (("1x", False), ("2x", True)):
        out = tmp_path / f"{samples}.json"
        done = run(*few, f"--benchmark_min_time={samples}", f"--benchmark_out={out}")
        assert done.returncode == 0, done.stdout
        (row,) = record(out)["benchmarks"]
        assert row["gemm"]["seconds"]
        assert (row["gemm"]["checks"] is not None) == checked
        assert (row["gemm"]["flop_per_second"] is not None) == checked


def test_versus_alternates_with_another_kernel(tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    few = [*QUICK, "--gemm_shapes=64", "--benchmark_filter=Cpu", "--benchmark_min_time=20x"]
    few += ["--gemm_sampling=5"]  # on a machine that does other things as well
    done = run(*few, "--gemm_versus=CpuNaive", f"--benchmark_out={out}")
    assert done.returncode == 0, done.stderr
    naive, blocked = (row["gemm"] for row in record(out)["benchmarks"])
    assert naive["versus"] is None, "no kernel is its own baseline"
    versus = blocked["versus"]
    assert versus["kernel"] == "CpuNaive"
    assert versus["low"] <= versus["ratio"] <= versus["high"]
    assert versus["samples"] == len(blocked["samples_seconds"]) == 20
    # That of the medians is another than the median of the ratios, but not by much.
    assert versus["ratio"] == pytest.approx(
        versus["seconds"] / blocked["seconds"]["median"], rel=0.2
    )
    assert "times as fast as CpuNaive" in done.stdout


def test_a_row_above_its_peak_is_an_error_without_a_time(tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    few = [*QUICK, "--gemm_shapes=64", "--benchmark_filter=Blocked"]
    done = run(*few, "--gemm_peak_flops=1e6", f"--benchmark_out={out}")
    assert done.returncode == 1
    (row,) = record(out)["benchmarks"]
    assert row["gemm"]["failed"].startswith("impossible: ")
    assert "is --gemm_peak_flops right?" in row["gemm"]["failed"]
    assert "samples_seconds" not in row["gemm"]
    assert "flop_per_second" not in row["gemm"]
    assert "FAILED: impossible" in done.stdout


def skip_if_busy(errors: str) -> None:
    if "Other programs used the CPU" in errors:
        pytest.skip("the host is busy: its peaks are not kept")


# Its kernel stays below the peaks of a machine that is busy while they are measured.
FIRST_ROW = [
    "--gemm_device=cpu",
    "--gemm_shapes=64",
    "--gemm_warmup=0.001",
    "--benchmark_filter=Naive",
    "--benchmark_min_time=5x",
]


def cached_in(folder: Path) -> dict[str, str]:
    return {**os.environ, "XDG_CACHE_HOME": str(folder)}


@pytest.fixture(scope="module")
def first_run(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Path, subprocess.CompletedProcess[str], list[dict[str, Any]]]:
    """Really measured, which takes a while: the cache, the run, and its peaks."""
    cache = tmp_path_factory.mktemp("cache")
    out = tmp_path_factory.mktemp("first") / "record.json"
    done = run(*FIRST_ROW, f"--benchmark_out={out}", env=cached_in(cache))
    assert done.returncode == 0, done.stderr
    skip_if_busy(done.stderr)
    return cache, done, record(out)["context"]["gemm"]["measured_ceilings"]


# Takes more than 5 s: all peaks are measured, by the fixture and once more.
def test_peaks_are_measured_once_and_kept(first_run, tmp_path: Path) -> None:
    cache, done, first = first_run
    assert "Measuring the peaks" in done.stderr
    assert {one["name"] for one in first} == {"FP32_FMA", "DRAM_read"}
    assert all((one["flop_per_second"] or one["bytes_per_second"]) > 0 for one in first)
    assert "(measured)" in done.stdout, "a CPU has no other peaks"

    shutil.copytree(cache, tmp_path, dirs_exist_ok=True)
    out = tmp_path / "record.json"

    def peaks(*more: str) -> tuple[bool, list[dict[str, Any]]]:
        done = run(*FIRST_ROW, *more, f"--benchmark_out={out}", env=cached_in(tmp_path))
        assert done.returncode == 0, done.stderr
        measured = record(out)["context"]["gemm"]["measured_ceilings"]
        return "Measuring the peaks" in done.stderr, measured

    assert peaks() == (False, first)
    assert peaks("--gemm_peaks=nominal") == (False, [])
    (kept,) = (tmp_path / "gemm_bench").iterdir()
    some = json.loads(kept.read_text())
    missing = some["ceilings"].pop()
    kept.write_text(json.dumps(some))
    measured, all_of_them = peaks()
    assert measured, "what an earlier run left out"
    assert [one["name"] for one in all_of_them] == [one["name"] for one in first]
    # Which of them is a memory's peak depends on all.
    assert [{**one, "roof_of": None} for one in all_of_them[:-1]] == [
        {**one, "roof_of": None} for one in some["ceilings"]
    ]
    roofs = {one["roof_of"]: one["bytes_per_second"] for one in all_of_them if one["roof_of"]}
    dram = [one["bytes_per_second"] for one in all_of_them if one["name"].startswith("DRAM_")]
    assert roofs == {"DRAM": max(dram)}
    assert missing not in all_of_them
    measured, again = peaks("--gemm_peaks=measure")
    assert measured
    assert all(one not in again for one in all_of_them)


def test_a_row_above_a_stored_peak_is_compared_with_one_measured_beside_it(
    first_run, tmp_path: Path
) -> None:
    shutil.copytree(first_run[0], tmp_path, dirs_exist_ok=True)
    (kept,) = (tmp_path / "gemm_bench").iterdir()
    low = json.loads(kept.read_text())
    for one in low["ceilings"]:
        for figure in ("flop_per_second", "bytes_per_second"):
            one[figure] = one[figure] and 1e6
    kept.write_text(json.dumps(low))
    done = run(*FIRST_ROW, env=cached_in(tmp_path))
    assert done.returncode == 0, done.stdout
    assert json.loads(kept.read_text()) == low, "a row changes no stored peak"


# Takes more than 5 s: all peaks are measured.
def test_a_cache_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = run(*FIRST_ROW, env=cached_in(tmp_path / "file"))
    assert done.returncode == 0
    skip_if_busy(done.stderr)
    assert "could not be written" in done.stderr


PEAKS = ["--gemm_device=cpu", "--gemm_peaks_only"]


def test_peaks_only_measures_and_keeps_what_the_filter_chooses(tmp_path: Path) -> None:
    few = [*PEAKS, "--benchmark_filter=FMA"]

    def stored(*more: str) -> list[dict[str, Any]]:
        done = run(*few, *more, env=cached_in(tmp_path))
        assert done.returncode == 0, done.stderr
        skip_if_busy(done.stderr)
        assert "\nFP32_FMA " in done.stdout
        assert "DRAM_" not in done.stdout
        (kept,) = (tmp_path / "gemm_bench").iterdir()
        return json.loads(kept.read_text())["ceilings"]

    first = stored()
    assert [one["name"] for one in first] == ["FP32_FMA"]
    assert stored() == first
    assert stored("--gemm_peaks=measure") != first


def test_peaks_only_as_json_has_all_that_other_programs_need(first_run) -> None:
    cache, _, measured = first_run
    done = run(*PEAKS, "--benchmark_format=json", env=cached_in(cache))
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert document["device"]["name"]
    assert document["measured_ceilings"] == measured
    compute, memory = document["ceilings"]
    assert (compute["precision"], compute["origin"]) == ("f32", "measured")
    assert compute["nominal"]["flop_per_second"] is None
    assert compute["flop_per_second"] == compute["measured"]["flop_per_second"] > 0
    assert memory["bytes_per_second"] == memory["measured"]["bytes_per_second"] > 0
    given = [*PEAKS, "--gemm_peaks=nominal", "--gemm_peak_flops=1e12", "--benchmark_format=json"]
    document = json.loads(run(*given, env=cached_in(cache)).stdout)
    assert document["measured_ceilings"] == []
    compute, memory = document["ceilings"]
    assert compute["nominal"]["flop_per_second"] == compute["flop_per_second"] == 1e12
    assert compute["measured"] is None
    assert memory["bytes_per_second"] is None


def test_peaks_only_lists_its_probes() -> None:
    listed = run(*PEAKS, "--benchmark_list_tests").stdout.split()
    assert listed == ["FP32_FMA", "DRAM_read"]


@pytest.mark.parametrize(
    "bad",
    [
        "--gemm_bogus=1",
        "--bogus",
        "--gemm_device=99",
        "--benchmark_filter=zzz",
        "--benchmark_filter=((",
        "--benchmark_format=xml",
        "--benchmark_format=csv",
        "--benchmark_repetitions=2",
        "--benchmark_min_time=1s",
        "--benchmark_out=peaks.json",
        "--benchmark_time_unit=foo",
    ],
)
def test_peaks_only_refuses_what_it_cannot_do(bad: str, tmp_path: Path) -> None:
    done = run(*PEAKS, bad, env=cached_in(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("gemm_bench: ")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("what", ["--gemm_peaks_only", "--gemm_shapes=64"])
def test_ctrl_c_keeps_the_peaks_so_far(what: str, tmp_path: Path) -> None:
    with subprocess.Popen(
        [BENCH, what, "--gemm_device=cpu"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=cached_in(tmp_path),
    ) as process:
        deadline = time.monotonic() + 60
        while not list(tmp_path.glob("*/*.json")) and time.monotonic() < deadline:
            if process.poll() is not None:
                break
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    skip_if_busy(errors)
    assert process.returncode == 130, errors
    (kept,) = tmp_path.glob("*/*.json")
    assert json.loads(kept.read_text())["ceilings"]


@pytest.mark.parametrize("baseline", ["WrongNaN", "WrongPastTheEnd", "WrongThrows"])
def test_a_wrong_baseline_is_no_fault_of_the_row(baseline: str, tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    names = run("--gemm_device=cpu", "--benchmark_list_tests", program=WRONG).stdout
    if baseline not in names:
        pytest.fail(f"{baseline} is not among {names}")
    done = run(
        *QUICK,
        "--gemm_shapes=16",
        "--benchmark_filter=CpuNaive|CpuBlocked",
        "--benchmark_repetitions=2",
        f"--gemm_versus={baseline}",
        f"--benchmark_out={out}",
        program=WRONG,
    )
    assert done.returncode == 0, done.stdout
    rows = [row for row in record(out)["benchmarks"] if row["run_type"] == "iteration"]
    assert all(row["gemm"]["versus"] is None and row["gemm"]["seconds"] for row in rows)
    assert done.stderr.count("is not compared with") == 1


def test_names_its_record_after_device_time_and_commit() -> None:
    done = run("--gemm_name_record", "--gemm_device=cpu")
    assert done.returncode == 0
    folder, name = done.stdout.strip().split("/")
    assert folder
    assert name.endswith(".json.gz")
    assert len(name.split("-")[0]) == len("20260101T000000Z")


def test_lists_every_kernel_with_its_rung() -> None:
    done = run("--gemm_list_kernels")
    assert done.returncode == 0
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert len({name for _, _, name, _ in lines}) == len(lines)
    assert [family for _, family, name, _ in lines if name == "CpuBlocked"] == ["cpu"]
    rungs = [int(rung) for rung, *_ in lines]
    assert rungs == sorted(rungs)


def test_only_aggregates_on_the_console_leave_the_record_whole_and_hide_no_failure(
    tmp_path: Path,
) -> None:
    out = tmp_path / "record.json"
    few = [*QUICK, "--gemm_shapes=16", "--benchmark_filter=Naive|WrongN"]
    few += ["--benchmark_repetitions=2", f"--benchmark_out={out}"]
    shown = run(*few, "--benchmark_display_aggregates_only", program=WRONG)
    assert shown.returncode == 1
    assert "_median" in shown.stdout
    assert "[1/" not in shown.stdout
    rows = record(out)["benchmarks"]
    assert [row["run_type"] for row in rows[:3]] == ["iteration", "iteration", "aggregate"]
    assert shown.stderr.count("FAILED: c[0,0] = nan") == 2


def test_help_lists_our_options_and_googles() -> None:
    done = run("--help")
    assert done.returncode == 0
    assert "--gemm_shapes" in done.stdout
    assert "--benchmark_filter" in done.stdout
    assert "Exit codes" in done.stdout
    assert "\nYour kernels:\n" in done.stdout
    ours = done.stdout.split("Google Benchmark's own options")[0]
    assert max(map(len, ours.splitlines())) <= 100


def test_lists_its_options_as_markdown() -> None:
    done = run("--gemm_list_options")
    assert done.returncode == 0
    options = [line for line in done.stdout.splitlines() if line.startswith("| `--gemm_")]
    assert len(options) == len(set(options)) > 30
    # Three cells; a bar inside one is escaped.
    assert all(len(re.findall(r"(?<!\\)\|", line)) == 4 for line in options)
    listed = {re.match(r"\| `(--gemm_\w+)", line)[1] for line in options}
    assert listed == set(re.findall(r"^  (--gemm_\w+)", run("--help").stdout, re.MULTILINE))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--gemm_bogus=1"], "--gemm_bogus"),
        (["--bogus"], "--bogus"),
        (["--gemm_\x1b[31m\n::x=1"], "--gemm_ [31m ::x"),
        (["--gemm_device=99"], "--gemm_device=99"),
        (["--gemm_shapes=absent.json"], "absent.json"),
        (["--gemm_cublas=libcublas.so"], "--gemm_cublas=libcublas.so: needs a GPU"),
        (["--gemm_precisions=bf16"], "precisions"),
        (["--gemm_versus=CpuNaive,Nonesuch"], "Nonesuch"),
        (["--gemm_versus=bf16:CpuNaive"], "that computes bf16"),
        (["--benchmark_filter=Nonesuch"], "Nonesuch"),
        (["--benchmark_filter=(("], "(("),
        (["--benchmark_filter=Tiled"], "GPU kernels cannot run: --gemm_device=cpu was given"),
        (["--benchmark_filter=CpuNaive|EndToEnd"], "EndToEnd needs a GPU"),
        (["--benchmark_min_time=soon"], "soon"),
        (["--benchmark_min_time=0"], "--benchmark_min_time=0"),
        (["--benchmark_min_time=2.5x"], "2.5x"),
        (["--benchmark_format=xml"], "xml"),
        (["--benchmark_repetitions=0"], "whole number from 1 to 1000"),
        (["--benchmark_repetitions=2000000000"], "from 1 to 1000"),
        (["--benchmark_min_warmup_time=-4"], "below 1000"),
        (["--benchmark_time_unit=foo"], "one of ns, us, ms, s"),
        (["--benchmark_list_tests=foo"], "is not true or false"),
        (["--benchmark_out="], "--benchmark_out= has no value"),
        (["--benchmark_out=/proc/record.json"], "/proc/record.json"),
        (["--benchmark_out=x", "--benchmark_out_format=csv"], "csv"),
        (
            ["--benchmark_out=x", "--benchmark_report_aggregates_only"],
            "display_aggregates_only",
        ),
    ],
)
def test_bad_input_gets_one_clear_line(arguments: list[str], says: str) -> None:
    done = run("--gemm_device=cpu", *arguments)
    assert done.returncode == 2, done.stdout
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("gemm_bench: ")
    assert says in line
    assert "[1/" not in done.stdout, "nothing is measured"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("mode", ["--help", "--benchmark_list_tests", "--benchmark_format=json"])
def test_what_cannot_be_printed_is_no_success(mode: str, tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    few = [*QUICK, "--gemm_shapes=64", "--benchmark_filter=Blocked", mode, f"--benchmark_out={out}"]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([BENCH, *few], stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 2
    assert b"standard output could not be written" in done.stderr
    assert out.exists() == (mode == "--benchmark_format=json"), "nothing measured is lost"


def test_end_to_end_is_no_case_unless_it_is_asked_for() -> None:
    for arguments in ([], ["--benchmark_filter=-EndToEnd"], ["--benchmark_filter=."]):
        done = run("--gemm_device=cpu", "--benchmark_list_tests", *arguments)
        assert done.returncode == 0
        assert "CpuNaive" in done.stdout
        assert "EndToEnd" not in done.stdout
