"""What is read of ncu's report, and what is wrong with it."""

import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from gemm_report.document import InputError
from gemm_report.explain import ncu
from gemm_report.explain.metrics import LIMITS, WAVES, names
from gemm_report.explain.ncu import Instruction, Launch, base_name, read_kept, read_report

CODE = {  # address: text, samples, executed, place
    16: ("      FFMA R1, R2, R3, R1 ;", 0, 30, None),
    32: ("@P0   STL.64 [R7+0x8],  R5 ;", 0, 30, None),
    48: ("      LDG R5, [R2] ;", 90, 10, ("/home/someone/my.cu", 2)),
}


def metric(value: float, unit: str = "", each: Mapping[int, int] | None = None) -> object:
    """As NVIDIA's class of that kind; `each` has its values by address."""
    each = each or {}
    return SimpleNamespace(
        as_double=lambda i=None: float(value if i is None else list(each.values())[i]),
        as_uint64=lambda i: list(each)[i],
        unit=lambda: unit,
        has_correlation_ids=lambda: bool(each),
        correlation_ids=lambda: metric(0, "", each),
        num_instances=lambda: len(each),
    )


METRICS = {
    "gpu__time_duration.sum": metric(58690, "ns"),
    "sm__cycles_elapsed.avg.per_second": metric(1.98e9, "hz"),
    "dram__bytes.sum": metric(9.91e6, "byte"),
    "lts__t_sector_hit_rate.pct": metric(float("nan"), "%"),
    "launch__occupancy_limit_registers": metric(3),
    "launch__waves_per_multiprocessor": metric(1.5),
    "device__attribute_warp_size": metric(32),
    "smsp__pcsamp_sample_count": metric(90, "", {a: n for a, (_, n, _, _) in CODE.items() if n}),
    "inst_executed": metric(70, "inst", {a: n for a, (_, _, n, _) in CODE.items()}),
}


def source(address: int) -> object:
    place = CODE[address][3]
    return place and SimpleNamespace(file_name=lambda: place[0], line=lambda: place[1])


ACTION = SimpleNamespace(
    name=lambda: "stream_k",
    metric_names=lambda: list(METRICS),
    metric_by_name=METRICS.get,
    sass_by_pc=lambda address: CODE[address][0],
    source_info=source,
    source_files=lambda: {"/home/someone/my.cu": "for (;;)\n  sum += a[l];\n"},
)


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A report, and an ncu_report that finds one launch in it."""
    module = ModuleType("ncu_report")
    module.load_report = lambda path: [[ACTION]]  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ncu_report", module)
    path = tmp_path / "counters.ncu-rep"
    path.touch()
    return path


def test_a_report_is_read_in_base_units_with_its_code(report: Path) -> None:
    (launch,) = read_report(report, names())
    assert launch.kernel == "stream_k"
    assert launch.metrics == pytest.approx(
        {
            "gpu__time_duration.sum": 58.69e-6,
            "sm__cycles_elapsed.avg.per_second": 1.98e9,
            "dram__bytes.sum": 9.91e6,
            LIMITS["registers"]: 3,
            WAVES: 1.5,
        }
    )
    assert launch.code == (
        Instruction("@P0 STL.64 [R7+0x8], R5 ;", 0, 30),
        Instruction("LDG R5, [R2] ;", 90, 10, "my.cu:2", "sum += a[l];"),
    )
    assert read_kept(report, names()) == [[launch]]


def test_without_nvidias_package_or_report_one_line_says_so(
    report: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match="none of these kernels"):
        read_report(report.with_name("other.ncu-rep"), ())
    monkeypatch.setitem(sys.modules, "ncu_report", None)
    with pytest.raises(InputError, match="python -m pip install ncu-report") as error:
        read_report(report, ())
    assert "\n" not in str(error.value)


def test_the_package_of_ncu_itself_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "ncu_report", raising=False)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if "site-packages" not in p])
    for file in ("bin/ncu", "nsight-compute-2025.3/extras/python/ncu_report.py"):
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert ncu.package().__file__ == str(tmp_path / file)
    monkeypatch.delitem(sys.modules, "ncu_report")


@pytest.mark.parametrize("text", ["", "[", "{}", '[{"kernel": "a"}]', '[[{"kernel": "a"}]]'])
def test_kept_counters_that_are_none_are_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "counters.json"
    path.write_text(text)
    with pytest.raises(InputError, match=str(path)):
        read_kept(path, ())
    path.write_text('[[{"kernel": "a", "metrics": {"b": 1}}]]')
    assert read_kept(path, ()) == [[Launch("a", {"b": 1.0})]]


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
