"""What ncu prints, and what is wrong with it."""

import pytest

from gemm_report.document import InputError
from gemm_report.explain.metrics import names
from gemm_report.explain.ncu import Launch, base_name, pages, read

# As ncu 2025.3 prints --csv --page raw: a row of units, thousands separators, n/a, its own lines,
# and beside what was asked for what the GPU is and how the kernel was launched.
RAW = """\
==PROF== Connected to process 4711 (/suite/build/release/gemm_bench)
==PROF== Profiling "stream_k" - 0: 0%....50%....100% - 12 passes
StreamK/f32/1024x1024x1024/manual_time 58.7 us
==PROF== Disconnected from process 4711
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size",\
"Grid Size","Device","CC","dram__bytes.sum","gpu__time_duration.sum","lts__t_sectors.sum",\
"smsp__issue_active.avg.pct_of_peak_sustained_active","l1tex__t_bytes_pipe_tma.sum",\
"device__attribute_confidential_computing_mode","device__attribute_limits_max_cta_per_sm",\
"launch__func_cache_config","launch__occupancy_limit_blocks","profiler__pmsampler_interval",\
"sm__cycles_elapsed.avg.per_second"
"","","","","","","","","","","","Mbyte","us","sector","%","byte","","furlong",\
"","block","cycle per furlong","Ghz"
"0","4711","gemm_bench","host","stream_k","1","7","(288, 1, 1)","(132, 1, 1)","0","9.0","9.91",\
"58.69","2,505,914","73.24","n/a","No-CC","32","CachePreferNone","32","auto","1.98"
"1","4711","gemm_bench","host","stream_k","1","7","(288, 1, 1)","(132, 1, 1)","0","9.0",\
"1,009.91","1,058.69","2,505,914","73.24","","No-CC","32","CachePreferNone","32","auto","1.98"
"""

WANTED = names("9.0") | {"lts__t_sectors.sum"}


def launches(text: str) -> list[Launch]:
    """Those of all pages."""
    return [launch for page in pages(text) for launch in read(page, WANTED)]


def test_the_raw_page_is_read_in_base_units() -> None:
    first, second = launches(RAW)
    assert first.kernel == "stream_k"
    assert first.metrics == pytest.approx(
        {
            "dram__bytes.sum": 9.91e6,
            "gpu__time_duration.sum": 58.69e-6,
            "lts__t_sectors.sum": 2505914,
            "smsp__issue_active.avg.pct_of_peak_sustained_active": 73.24,
            "sm__cycles_elapsed.avg.per_second": 1.98e9,
        }
    )
    assert second.metrics["gpu__time_duration.sum"] == pytest.approx(1058.69e-6)


def test_the_details_page_is_refused() -> None:
    details = '"ID","Kernel Name","Metric Name"\n"1","tiled","gpu__time_duration.sum"\n'
    with pytest.raises(InputError, match="use ncu --csv --page raw"):
        launches(details)


def test_no_table_is_no_launch() -> None:
    assert launches("==PROF== Connected\n==WARNING== No kernels were profiled.\n") == []
    assert launches("") == []
    assert read("", WANTED) == []
    header = RAW[RAW.index('"ID"') :].partition('"0"')[0]
    assert launches(header) == []


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ('"Mbyte"', '"furlong"', "dram__bytes.sum in 'furlong'"),
        ('"9.91"', '"many"', "'many', which is no number"),
        ('"Kernel Name"', '"Kern"', "no column 'Kernel Name'"),
        ('"","","",""', '"3","","",""', "no row of units"),
    ],
)
def test_what_is_not_known_gets_one_line(before: str, after: str, says: str) -> None:
    with pytest.raises(InputError, match=says) as error:
        launches(RAW.replace(before, after, 1))
    assert "\n" not in str(error.value)


def test_a_row_that_was_cut_is_left_out() -> None:
    assert len(launches(RAW[: RAW.rindex('"2,505,914"')])) == 1


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("void gemm::simt::(anonymous namespace)::tiled<(int)32>(gemm::Problem)", "tiled"),
        ("gemm::simt::(anonymous namespace)::rasterized<gemm::simt::AsyncTile<64> >", "rasterized"),
        ("simt::<unnamed>::stream_k(simt::Work, CUtensorMap_st)", "stream_k"),
        ("void unnamed>::naive<float, int>(Problem, const T1 *)", "naive"),
        ("sm80_xmma_gemm_f32f32_tn_n", "sm80_xmma_gemm_f32f32_tn_n"),
        ("", ""),
    ],
)
def test_names_agree_without_namespaces_and_arguments(name: str, base: str) -> None:
    assert base_name(name) == base


def test_what_nobody_asked_for_is_not_read() -> None:
    assert {name for launch in launches(RAW) for name in launch.metrics} <= WANTED
    assert not any(name.startswith(("device__", "launch__", "profiler__")) for name in WANTED)


def test_runs_behind_each_other_are_pages_without_the_lines_between() -> None:
    first, second = pages(RAW + RAW)
    assert first.startswith('"ID","Process ID"')
    assert first.count("\n") == 4
    assert "==PROF==" not in first + second
    assert pages(first + second) == [first, second]
