"""gemm_bench as a user sees it: exit codes, messages, and what is left on disk."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import pytest
from test_runs import (
    BENCH,
    BUILD,
    NEEDS_BENCH,
    QUICK,
    codes,
    ran,
    record,
    rows,
    run,
    wait_until,
)

WRONG = BUILD / "bench" / "gemm_bench_wrong"
HUGE = "--gemm_shapes=2000000000x2000000000x1,16"
NAIVE = "--benchmark_filter=CpuNaive"

pytestmark = NEEDS_BENCH


def listed(*arguments: str) -> list[str]:
    done = run("--gemm_device=cpu", "--benchmark_list_tests", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_writes_a_valid_record_and_a_table(tmp_path: Path) -> None:
    out, shapes = tmp_path / "new" / "record.json", tmp_path / "shapes.json"
    shapes.write_text('["33x17x65"]')
    document, done = ran(out, f"--gemm_shapes={shapes},64", "--benchmark_filter=Cpu.*/f32")
    for row in document["benchmarks"]:
        assert f"\n{row['name'].removesuffix('/manual_time')} " in done.stdout
        gemm = row["gemm"]
        assert gemm["verification"]["passed"]
        assert 0 <= gemm["verification"]["of_bound"] <= 1
        assert row["real_time"] == pytest.approx(gemm["seconds"]["median"] * 1e6)
        assert row["GFLOP/s"] == pytest.approx(gemm["flop_per_second"] * 1e-9)
        assert not {"not-watched", "not-settled"} & codes(gemm), "a CPU has no such readings"
        for nothing in ("fingerprint", "of_roof_at_clock"):
            assert gemm[nothing] is None, "only a GPU has one"
        assert (gemm["clocks"]["sm_hz"], gemm["device_code"]) == (None, [])
    assert [row["kernel"] for row in rows(document)] == 2 * ["CpuNaive", "CpuBlocked"]
    of_run = document["context"]["gemm"]
    assert of_run["complete"]
    assert of_run["method"]["test"] is None, "it is unknown whether the clocks float"
    assert of_run["method"]["watch"]["why_not"] == "a CPU has no NVML"
    assert 0 < of_run["time"]["kernel_seconds"] < of_run["time"]["wall_seconds"]
    assert {"--gemm_shapes=shapes.json,64", "--benchmark_filter=Cpu.*/f32"} < {*of_run["command"]}
    assert str(tmp_path) not in out.read_text()
    assert list(tmp_path.rglob("*.part*")) == []
    assert re.search(r"\[1/4, \d+:\d\d left\]", done.stdout)
    assert "\x1b" not in done.stdout + done.stderr
    assert "manual_time" not in done.stdout


def test_the_libraries_that_were_used_are_named(tmp_path: Path) -> None:
    if not any("OpenBLAS" in name for name in listed()):
        pytest.skip("built without OpenBLAS")

    def libraries(*arguments: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        document, done = ran(tmp_path / "r.json", "--gemm_shapes=64", *arguments)
        found = document["context"]["gemm"]["libraries"]
        for each in found:
            assert f"{each['name']} {each['version']} ({each['detail']})" in done.stdout
        return found, rows(document)[0]

    ((found,), _) = libraries("--benchmark_filter=OpenBLAS")
    assert found["name"] == "OpenBLAS"
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", found["version"])
    assert re.fullmatch(r"[^/]*blas[^/]*\.so[^/]*", found["file"])
    assert re.fullmatch(r"\w+, 1 thread", found["detail"])
    compared, row = libraries(NAIVE)
    assert compared == [found]
    assert row["library"] == "OpenBLAS"
    assert row["of_library"] > 0
    alone, row = libraries(NAIVE, "--gemm_library=omit", "--gemm_node=n1", "--gemm_peaks=stored")
    assert (alone, row["library"]) == ([], None)
    of_run = record(tmp_path / "r.json")["context"]["gemm"]
    assert of_run["node"] == "n1"


def test_repetitions_interleaving_and_aggregates_keep_their_meaning(tmp_path: Path) -> None:
    options = ["--benchmark_repetitions=3", "--benchmark_enable_random_interleaving"]
    options += ["--benchmark_context=rack=7,operator=me", "--benchmark_time_unit=ns"]
    document, done = ran(
        tmp_path / "r.json", "--gemm_shapes=64", "--benchmark_filter=Cpu", *options
    )
    assert document["context"]["rack"] == "7"
    kinds = [(row["run_type"], row.get("repetition_index")) for row in document["benchmarks"]]
    assert sorted(index for kind, index in kinds if kind == "iteration") == [0, 0, 1, 1, 2, 2]
    for row in document["benchmarks"]:
        if row["run_type"] == "iteration":
            median = row["gemm"]["seconds"]["median"]
            assert row["real_time"] == pytest.approx(median * 1e9), "another repetition's row"
    aggregates = {row.get("aggregate_name") for row in document["benchmarks"]} - {None}
    assert aggregates == {"mean", "median", "stddev", "cv"}
    assert "_median" in done.stdout


def test_only_aggregates_on_the_console_leave_the_record_whole_and_hide_no_failure(
    tmp_path: Path,
) -> None:
    few = ["--gemm_shapes=16", "--benchmark_filter=Naive|WrongN", "--benchmark_repetitions=2"]
    few.append("--benchmark_display_aggregates_only")
    document, done = ran(tmp_path / "r.json", *few, code=1, program=WRONG)
    assert "_median" in done.stdout
    assert "[1/" not in done.stdout
    kinds = [row["run_type"] for row in document["benchmarks"]]
    assert kinds[:3] == ["iteration", "iteration", "aggregate"]
    assert done.stderr.count("FAILED: c[0,0] = nan") == 2


def test_other_formats_go_to_stdout_and_what_does_not_fit_is_skipped(tmp_path: Path) -> None:
    done = run(*QUICK, HUGE, NAIVE, "--benchmark_format=json")
    assert done.returncode == 0, done.stderr
    large, small = rows(json.loads(done.stdout))
    assert "needs 3.2e+10 GB of memory" in large["skipped"]
    assert small["seconds"]
    done = run(*QUICK, HUGE, NAIVE, "--benchmark_format=csv")
    assert done.returncode == 0, done.stderr
    skipped, timed = done.stdout.splitlines()[-2:]
    assert "2000000000" in skipped
    assert skipped.split(",")[2] == "nan"
    assert float(timed.split(",")[2]) > 0
    assert "SKIPPED: needs" in done.stderr


def test_a_pipe_is_written_to_and_a_link_is_followed(tmp_path: Path) -> None:
    target, link = tmp_path / "target.json", tmp_path / "link.json"
    link.symlink_to(target)
    ran(link, "--gemm_shapes=16", NAIVE)
    assert link.is_symlink()
    assert record(target)["benchmarks"]
    arguments = [*QUICK, "--gemm_shapes=16", NAIVE, "--benchmark_out=/dev/null"]
    assert run(*arguments).returncode == 0
    assert Path("/dev/null").is_char_device()


def test_wrong_kernels_fail_without_a_time_and_the_rest_is_kept(tmp_path: Path) -> None:
    few = ["--gemm_shapes=16", "--gemm_layouts=nn,tn", "--benchmark_filter=Wrong[NPLT]|Naive"]
    few.append("--benchmark_repetitions=2")
    document, done = ran(tmp_path / "r.json", *few, code=1, program=WRONG)
    found = {row["gemm"]["kernel"]: row for row in document["benchmarks"] if "gemm" in row}
    assert found["CpuNaive"]["gemm"]["failed"] is None
    expected = {
        "WrongNaN": "c[0,0] = nan",
        "WrongPastTheEnd": "past its end",
        "WrongLater": "c[0,1] = ",
        "WrongThrows": "no plan for this problem",
        "WrongLayout": "expected",  # claims tn, and reads nn
    }
    for kernel, complaint in expected.items():
        row = found[kernel]
        assert complaint in row["gemm"]["failed"], kernel
        assert row["gemm"]["layout"] == ("tn" if kernel == "WrongLayout" else "nn")
        assert "seconds" not in row["gemm"]
        assert row["error_occurred"]
        assert f"FAILED: {row['gemm']['failed']}" in done.stdout
    assert not found["WrongNaN"]["gemm"]["verification"]["passed"]
    assert document["context"]["gemm"]["complete"]
    assert "CpuNaive/f32/16x16x16_mean" in done.stdout
    assert not re.search(r"Wrong\S+_mean", done.stdout)


def test_a_batch_is_verified_as_a_whole_and_only_by_kernels_that_take_one(tmp_path: Path) -> None:
    few = ["--gemm_shapes=batched:3x16,16", "--benchmark_filter=Naive|OpenBLAS|WrongBatch|WrongNaN"]
    document, done = ran(tmp_path / "r.json", *few, code=1, program=WRONG)
    of = {row["name"].removesuffix("/manual_time"): row["gemm"] for row in document["benchmarks"]}
    batch, one = (of[f"CpuNaive/f32/{each}16x16x16"] for each in ("batched:3x", ""))
    assert (batch["batch_count"], batch["flop"]) == (3, 3 * one["flop"])
    assert "batch_count" not in one
    assert batch["flop_per_byte"] == one["flop_per_byte"]
    assert batch["seconds"]
    for name, row in of.items():
        if "OpenBLAS" in name:
            assert row["seconds"]
    at = "f32/batched:3x16x16x16"
    assert "in product 2 the wrong elements were never" in of[f"WrongBatchSkipped/{at}"]["failed"]
    assert "c[0][0,0] = " in of[f"WrongBatchNeighbour/{at}"]["failed"]
    assert of[f"WrongNaN/{at}"]["skipped"] == "takes no batch"
    assert not any(name.startswith("WrongBatch") for name in of if "batched" not in name)
    assert "batched:3x16" in done.stdout


def test_epilogues_are_verified_and_recorded(tmp_path: Path) -> None:
    few = ["--gemm_shapes=70", "--benchmark_filter=Naive|Blocked|WrongN", "--gemm_epilogues="]
    few[2] += "none,bias,bias-gelu,residual"
    document, done = ran(tmp_path / "r.json", *few, code=1, program=WRONG)
    of = {row["name"].removesuffix("/manual_time"): row["gemm"] for row in document["benchmarks"]}
    plain = of["CpuNaive/f32/70x70x70"]
    assert "epilogue" not in plain
    for epilogue, added in (("bias", 70), ("bias-gelu", 70), ("residual", 70 * 70)):
        at = f"epilogue:{epilogue}/f32/70x70x70"
        row = of[f"CpuNaive/{at}"]
        assert row["seconds"], row
        assert (row["epilogue"], row["flop"]) == (epilogue, plain["flop"])
        assert row["bytes_minimum"] == plain["bytes_minimum"] + 4 * added
        assert of[f"CpuBlocked/{at}"]["skipped"] == f"does not support the epilogue {epilogue}"
        assert f"CpuNaive/epilogue:{epilogue}/f32" in done.stdout
    wrong = {name: row for name, row in of.items() if name.startswith("WrongN") and "epi" in name}
    failed = [row["failed"] for row in wrong.values() if row["failed"]]
    assert len(failed) == 6, wrong
    assert all("expected" in text for text in failed)


def test_scales_of_blocks_are_verified(tmp_path: Path) -> None:
    few = ["--gemm_precisions=e4m3block", "--gemm_layouts=nt"]
    few.append("--benchmark_filter=CpuBlockScaled|Scale")
    for fill, shape in (("uniform", "40x300x400"), ("integers", "grouped:8x5x300x400/zipf")):
        few += [f"--gemm_fill={fill}", f"--gemm_shapes={shape}"]
        document, _ = ran(tmp_path / "r.json", *few, code=1, program=WRONG)
        of = {row["kernel"]: row for row in rows(document)}
        assert of["CpuBlockScaled"]["seconds"]
        assert of["CpuBlockScaled"]["precision"] == "e4m3block"
        wrong = {name: row["failed"] for name, row in of.items() if name.startswith("Wrong")}
        assert len(wrong) == 5 + ("WrongScaleOfNextGroup" in wrong)
        assert ("WrongScaleOfNextGroup" in wrong) == ("grouped" in shape)
        for name, text in wrong.items():
            assert "expected" in text, name


def test_groups_are_recorded_with_their_rows(tmp_path: Path) -> None:
    shape = "grouped:8x3x16x24/zipf:2"
    few = [f"--gemm_shapes={shape}", "--benchmark_filter=Naive|OpenBLAS|WrongNaN"]
    document, done = ran(tmp_path / "r.json", *few, program=WRONG)
    of = {row["name"].removesuffix("/manual_time"): row["gemm"] for row in document["benchmarks"]}
    row = of[f"CpuNaive/f32/{shape}"]
    rows = row["group_rows"]
    assert (row["tokens"], row["batch_count"], row["m"]) == ("zipf:2", 8, 3)
    assert (len(rows), sum(rows), min(rows)) == (8, 24, 1)
    assert row["flop"] == 2 * 24 * 16 * 24
    assert row["seconds"]
    assert of[f"WrongNaN/f32/{shape}"]["skipped"] == "takes no groups"
    assert shape in done.stdout


def test_layouts_are_cases_of_the_kernels_that_have_them(tmp_path: Path) -> None:
    plain, every = listed("--gemm_shapes=64"), listed("--gemm_shapes=64", "--gemm_layouts=nn,nt,tn")
    assert every[: len(plain)] == plain, "rows of nn keep their names"
    assert all("/layout:" in name and "Cpu" not in name for name in every[len(plain) :])
    if len(every) == len(plain):
        pytest.skip("built without OpenBLAS")
    document, _ = ran(tmp_path / "r.json", "--gemm_layouts=nt,tt", "--gemm_shapes=33x17x65")
    assert [row["layout"] for row in rows(document)] == ["nt", "tt"]
    name = "OpenBLAS/layout:nt/f32/33x17x65/manual_time"
    assert document["benchmarks"][0]["name"] == name


@pytest.mark.parametrize(
    ("kernel", "options", "said"),
    [
        ("WrongStops", ["30", "--benchmark_min_time=0.01s"], r"c\[0,0\] = |in a sample: "),
        (
            "SlowsDown",
            ["20", "--benchmark_min_time=20x", "--gemm_sample=1e-9", "--gemm_row_budget=1"],
            "not checked: ",
        ),
    ],
)
def test_a_kernel_that_changes_is_found_in_the_repetition_where_it_does(
    kernel: str, options: list[str], said: str, tmp_path: Path
) -> None:
    options = ["--gemm_shapes=16", "--benchmark_repetitions=" + options[0], *options[1:]]
    few = [*options, f"--benchmark_filter={kernel}"]
    document, _ = ran(tmp_path / "r.json", *few, code=1, program=WRONG)
    found = rows(document)
    assert "seconds" in found[0] or kernel == "SlowsDown", "a busy host may be as slow"
    assert re.match(said, found[-1]["failed"])


def test_rows_beyond_a_budget_are_skipped_with_the_reason(tmp_path: Path) -> None:
    slow = ["--gemm_shapes=512x512x4096", "--gemm_row_budget=0.01", NAIVE]
    (row,) = rows(ran(tmp_path / "r.json", *slow)[0])
    assert "--gemm_row_budget" in row["skipped"]
    found = rows(ran(tmp_path / "r.json", "--gemm_shapes=16,32", "--gemm_run_budget=1e-9")[0])
    assert all("run budget" in row["skipped"] for row in found)


@pytest.mark.parametrize(("how", "repetitions"), [(signal.SIGINT, 1), (signal.SIGTERM, 5)])
def test_ctrl_c_keeps_what_is_complete(
    how: signal.Signals, repetitions: int, tmp_path: Path
) -> None:
    out = tmp_path / "record.json"
    options = ["--gemm_shapes=64,96,128", "--benchmark_min_time=0.3s", "--gemm_sampling=0.4"]
    options.append(f"--benchmark_repetitions={repetitions}")
    with subprocess.Popen(
        [BENCH, *QUICK, *options, f"--benchmark_out={out}"], stdout=subprocess.PIPE, text=True
    ) as process:
        wait_until(out.exists, process)
        time.sleep(0.1)  # into the next case
        process.send_signal(how)
        process.communicate(timeout=60)
    assert process.returncode == 130
    assert [path.name for path in tmp_path.iterdir()] == ["record.json"]
    document = record(out)
    assert document["context"]["gemm"]["complete"] is False
    assert rows(document)
    assert all(row["seconds"] for row in rows(document))


@pytest.mark.parametrize(
    ("minimum", "samples", "checked"), [("1x", 1, False), ("7x", 7, True), ("0.2", None, True)]
)
def test_minimum_times_say_how_long_or_how_often_a_row_is_sampled(
    minimum: str, samples: int | None, checked: bool, tmp_path: Path
) -> None:
    few = ["--gemm_shapes=64", NAIVE, f"--benchmark_min_time={minimum}"]
    document, _ = ran(tmp_path / "r.json", *few)
    (row,) = rows(document)
    taken = row["samples_seconds"]
    assert document["benchmarks"][0]["iterations"] == len(taken)
    if samples:
        assert len(taken) == samples
    else:  # a part of the time passes in samples; without it, 0.05 s would be the longest
        assert sum(taken) * row["batch"] > 0.06
    # One sample is for a profiler.
    assert (row["checks"] is not None) == (row["flop_per_second"] is not None) == checked


def test_the_default_suite_runs_if_nothing_else_is_asked_for() -> None:
    nothing = [*QUICK, "--gemm_run_budget=1e-9"]  # all that it has is skipped
    said = re.findall(r"^(Cpu\w+)/f32/(\d+)x.* SKIPPED", run(*nothing).stdout, re.MULTILINE)
    sizes = ["128", "256", "512", "1000", "1024"]
    assert [size for kernel, size in said if kernel == "CpuBlocked"] == sizes
    assert [size for kernel, size in said if kernel == "CpuNaive"] == ["512"]
    for one in ("--gemm_shapes=256,512", "--gemm_layouts=nn", "--benchmark_filter=Cpu"):
        more = run(*nothing, one).stdout
        assert "CpuNaive/f32/256x256x256 " in more, "all kernels at all sizes"


@pytest.mark.parametrize(
    ("options", "expected", "said"),
    [
        (["--gemm_fill=zeros", "--gemm_cache=hot"], {"low-power-operands", "one-operand-set"}, ""),
        (
            ["--gemm_fill=normal", "--gemm_state=burst", "--gemm_cooldown=0.01"],
            {"burst", "other-distribution"},
            r"Measured: off-guideline: 1 of 1 \(burst 1, .*other-distribution 1",
        ),
    ],
)
def test_what_deviates_from_the_guideline_says_so(
    options: list[str], expected: set[str], said: str, tmp_path: Path
) -> None:
    few = ["--gemm_shapes=64", NAIVE, "--benchmark_min_time=5x", "--gemm_row_budget=1"]
    document, done = ran(tmp_path / "r.json", *few, *options)
    assert expected <= codes(rows(document)[0])
    assert re.search(said, done.stdout)


def test_versus_alternates_with_another_kernel(tmp_path: Path) -> None:
    few = ["--gemm_shapes=64", "--benchmark_filter=Cpu", "--benchmark_min_time=20x"]
    few += ["--gemm_sampling=5"]  # on a machine that does other things as well
    document, done = ran(tmp_path / "r.json", *few, "--gemm_versus=CpuNaive")
    naive, blocked = rows(document)
    assert naive["versus"] is None, "no kernel is its own baseline"
    versus = blocked["versus"]
    assert versus["kernel"] == "CpuNaive"
    assert versus["low"] <= versus["ratio"] <= versus["high"]
    assert versus["samples"] == len(blocked["samples_seconds"]) == 20
    # That of the medians is another than the median of the ratios, on a busy host by much.
    of_medians = versus["seconds"] / blocked["seconds"]["median"]
    assert versus["ratio"] == pytest.approx(of_medians, rel=0.5)
    assert "times as fast as CpuNaive" in done.stdout


def test_blocks_compare_a_kernel_with_itself_and_say_what_is_missing(tmp_path: Path) -> None:
    options = ["--gemm_shapes=64", NAIVE, "--gemm_versus=CpuNaive", "--gemm_state=limit"]
    options += ["--gemm_block=0.1", "--gemm_warmup=0.1", "--gemm_library=omit"]
    document, done = ran(tmp_path / "r.json", *options)
    (row,) = rows(document)
    assert document["context"]["gemm"]["method"]["state"] == "limit"
    assert len(row["blocks"]) == len(row["versus"]["blocks"]) == row["versus"]["samples"] == 4
    assert all(block["seconds"] >= 0.1 and not block["energy"]["watts"] for block in row["blocks"])
    ours, theirs = (
        geometric_mean(block["launch_seconds"] for block in its["blocks"])
        for its in (row, row["versus"])
    )
    assert row["versus"]["ratio"] == pytest.approx(theirs / ours)
    assert row["versus"]["low"] <= row["versus"]["ratio"] <= row["versus"]["high"]
    assert "not-at-limit" in codes(row)
    assert "energy not measured" in done.stdout


def test_a_wrong_baseline_is_no_fault_of_the_row(tmp_path: Path) -> None:
    baselines = ["WrongNaN", "WrongPastTheEnd", "WrongThrows"]
    few = ["--gemm_shapes=16,17", NAIVE]
    few += ["--benchmark_repetitions=2", f"--gemm_versus={','.join(baselines)}"]
    document, done = ran(tmp_path / "r.json", *few, program=WRONG)
    assert all(row["versus"] is None and row["seconds"] for row in rows(document))
    for baseline in baselines:
        for size in ("16x16x16", "17x17x17"):
            assert done.stderr.count(f"{baseline}/f32/{size} is not compared with") == 1


def test_a_row_above_its_peak_is_an_error_without_a_time(tmp_path: Path) -> None:
    few = ["--gemm_shapes=64", NAIVE, "--gemm_peak_flops=1e6"]
    document, done = ran(tmp_path / "r.json", *few, code=1)
    (row,) = rows(document)
    assert row["failed"].startswith("impossible: ")
    assert "is --gemm_peak_flops right?" in row["failed"]
    assert not {"samples_seconds", "flop_per_second"} & {*row}
    assert "FAILED: impossible" in done.stdout


def skip_if_busy(errors: str) -> None:
    if "Other programs used the CPU" in errors:
        pytest.skip("the host is busy: its peaks are not kept")


# Its kernel stays below the peaks of a machine that is busy while they are measured.
FIRST_ROW = ["--gemm_device=cpu", "--gemm_shapes=64", "--gemm_warmup=0.001", NAIVE]
FIRST_ROW.append("--benchmark_min_time=5x")
PEAKS = ["--gemm_device=cpu", "--gemm_peaks_only"]


def cached_in(folder: Path) -> dict[str, str]:
    return {**os.environ, "XDG_CACHE_HOME": str(folder)}


FirstRun = tuple[Path, subprocess.CompletedProcess[str], list[dict[str, Any]]]


@pytest.fixture(scope="module")
def first_run(tmp_path_factory: pytest.TempPathFactory) -> FirstRun:
    """Really measured, which takes a while: the cache, the run, and its peaks."""
    cache = tmp_path_factory.mktemp("cache")
    out = tmp_path_factory.mktemp("first") / "record.json"
    done = run(*FIRST_ROW, f"--benchmark_out={out}", env=cached_in(cache))
    assert done.returncode == 0, done.stderr
    skip_if_busy(done.stderr)
    return cache, done, record(out)["context"]["gemm"]["measured_ceilings"]


# Takes more than 5 s: all peaks are measured, by the fixture and one of them once more.
def test_peaks_are_measured_once_and_kept(first_run: FirstRun, tmp_path: Path) -> None:
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
    measured, every = peaks()
    assert measured, "what an earlier run left out"
    assert [one["name"] for one in every] == [one["name"] for one in first]
    # Which of them is a memory's peak depends on all.
    assert [{**one, "roof_of": None} for one in every[:-1]] == [
        {**one, "roof_of": None} for one in some["ceilings"]
    ]
    assert missing not in every
    roofs = {one["roof_of"]: one["bytes_per_second"] for one in every if one["roof_of"]}
    assert roofs == {"DRAM": every[-1]["bytes_per_second"]}


def test_a_row_above_a_stored_peak_is_compared_with_one_measured_beside_it(
    first_run: FirstRun, tmp_path: Path
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


def test_peaks_only_measures_and_keeps_what_the_filter_chooses(tmp_path: Path) -> None:
    few = [*PEAKS, "--benchmark_filter=FMA"]

    def stored(*more: str) -> list[dict[str, Any]]:
        done = run(*few, *more, env=cached_in(tmp_path))
        assert done.returncode == 0, done.stderr
        skip_if_busy(done.stderr)
        assert "\nFP32_FMA " in done.stdout
        assert "DRAM_" not in done.stdout
        (kept,) = (tmp_path / "gemm_bench").iterdir()
        ceilings: list[dict[str, Any]] = json.loads(kept.read_text())["ceilings"]
        return ceilings

    first = stored()
    assert [one["name"] for one in first] == ["FP32_FMA"]
    assert stored() == first
    assert stored("--gemm_peaks=measure") != first
    (tmp_path / "file").write_text("")
    done = run(*few, env=cached_in(tmp_path / "file"))
    assert done.returncode == 0
    skip_if_busy(done.stderr)
    assert "could not be written" in done.stderr


def test_peaks_only_as_json_has_all_that_other_programs_need(first_run: FirstRun) -> None:
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
    assert (compute["measured"], memory["bytes_per_second"]) == (None, None)
    listed = run(*PEAKS, "--benchmark_list_tests").stdout.split()
    assert listed == ["FP32_FMA", "DRAM_read"]


def test_ctrl_c_keeps_the_peaks_so_far(tmp_path: Path) -> None:
    with subprocess.Popen(
        [BENCH, *PEAKS],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=cached_in(tmp_path),
    ) as process:
        wait_until(lambda: process.poll() is not None or any(tmp_path.glob("*/*.json")))
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    skip_if_busy(errors)
    assert process.returncode == 130, errors
    (kept,) = tmp_path.glob("*/*.json")
    assert json.loads(kept.read_text())["ceilings"]


def test_lists_its_kernels_and_options_and_names_its_record() -> None:
    name = run("--gemm_name_record", "--gemm_device=cpu")
    assert name.returncode == 0
    assert re.fullmatch(r"[^/]+/\d{8}T\d{6}Z-[^/]+\.json\.gz\n", name.stdout)
    lines = [line.split("\t") for line in run("--gemm_list_kernels").stdout.splitlines()]
    assert len({name for _, _, name, _ in lines}) == len(lines)
    assert [family for _, family, name, _ in lines if name == "CpuBlocked"] == ["cpu"]
    rungs = [int(rung) for rung, *_ in lines]
    assert rungs == sorted(rungs)
    ours, googles = run("--help").stdout.split("Google Benchmark's own options")
    for part in ("Exit codes", "\nYour kernels:\n", "--gemm_shapes=LIST"):
        assert part in ours
    assert "--benchmark_filter" in googles


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--gemm_bogus=1"], "--gemm_bogus"),
        (["--bogus"], "--bogus"),
        (["--gemm_\x1b[31m\n::x=1"], "--gemm_ [31m ::x"),
        (["--gemm_device=99"], "--gemm_device=99"),
        (["--gemm_node=two\nlines"], "--gemm_node"),
        (["--gemm_shapes=absent.json"], "absent.json"),
        (["--gemm_cublas=libcublas.so"], "--gemm_cublas=libcublas.so: needs a GPU"),
        (["--gemm_precisions=bf16"], "no kernel of this device"),
        (["--gemm_versus=CpuNaive,Nonesuch"], "'Nonesuch' is not a kernel"),
        (["--gemm_state=limit", "--benchmark_min_time=9x"], "omit the number of samples"),
        ([NAIVE, "--gemm_layouts=nt"], "CpuNaive matches no kernel"),
        (["--benchmark_filter=Tiled"], "GPU kernels cannot run: --gemm_device=cpu was given"),
        (["--benchmark_filter=(("], "(("),
        (["--benchmark_min_time=soon"], "soon"),
        (["--benchmark_min_time=0"], "--benchmark_min_time=0"),
        (["--benchmark_min_time=2.5x"], "2.5x"),
        (["--benchmark_format=xml"], "xml"),
        (["--benchmark_repetitions=0"], "whole number from 1 to 1000"),
        (["--benchmark_time_unit=foo"], "one of ns, us, ms, s"),
        (["--benchmark_out="], "--benchmark_out= has no value"),
        (["--benchmark_out=/proc/record.json"], "/proc/record.json"),
        (["--benchmark_out=x", "--benchmark_out_format=csv"], "csv"),
        (["--benchmark_out=x", "--benchmark_report_aggregates_only"], "display_aggregates_only"),
        (["--gemm_peaks_only", "--benchmark_filter=zzz"], "matches no probe"),
        (["--gemm_peaks_only", "--benchmark_repetitions=2"], "does not go with"),
        (["--gemm_peaks_only", "--benchmark_format=csv"], "csv"),
        (["--gemm_peaks_only", "--bogus"], "--bogus"),
    ],
)
def test_bad_input_gets_one_clear_line_and_leaves_an_old_record_alone(
    arguments: list[str], says: str, tmp_path: Path
) -> None:
    out = tmp_path / "record.json"
    out.write_text("old")
    written = [] if "--gemm_peaks_only" in arguments else [f"--benchmark_out={out}"]
    done = run("--gemm_device=cpu", *written, *arguments, env=cached_in(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("gemm_bench: ")
    assert says in line
    assert out.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["record.json"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("mode", ["--help", "--benchmark_format=json"])
def test_what_cannot_be_printed_is_no_success(mode: str, tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    few = [*QUICK, "--gemm_shapes=64", NAIVE, mode, f"--benchmark_out={out}"]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([BENCH, *few], stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 2
    assert b"standard output could not be written" in done.stderr
    assert out.exists() == (mode != "--help"), "nothing measured is lost"
