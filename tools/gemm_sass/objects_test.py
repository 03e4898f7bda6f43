"""Names for people, and finding kernels by a part of one."""

from pathlib import Path

import pytest
from gemm_report.document import InputError

from gemm_sass.cubin import Kernel
from gemm_sass.objects import Named, matching, readable, shortened, source_of


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("kernel", "kernel"),
        ("kernel(float*, int)", "kernel"),
        ("gemm::simt::(anonymous namespace)::prefetch(gemm::Problem)", "prefetch"),
        ("void f<gemm::simt::Tile<64, 128> >(gemm::Problem, float const*)", "f<Tile<64, 128>>"),
        ("void a::f<a::T<a::U<1> >, true>(a::Grid<a::T<1>::kBM>)", "f<T<U<1>>, true>"),
        ("void f<(gemm::Precision)2, -1>(int)", "f<2, -1>"),
        ("void f<double, long>(long)", "f<double, long>"),
    ],
)
def test_functions_lose_namespaces_and_parameters(name: str, short: str) -> None:
    assert shortened(name) == short


def test_symbols_are_read_as_the_compiler_mangles_them() -> None:
    file = "_GLOBAL__N__497c070a_13_rasterized_cu_340dede6_13868"
    symbol = f"_ZN4gemm4simt{len(file)}{file}10rasterizedINS0_4TileILi64ELb1EEEEEvPf"
    assert readable([symbol, "plain"]) == ["rasterized<Tile<64, true>>", "plain"]
    assert readable([]) == []


def test_without_a_demangler_it_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match=r"c\+\+filt"):
        readable(["k"])


def test_an_object_of_the_build_is_named_by_its_source() -> None:
    assert source_of(Path("build/x/kernels.dir/simt/tiled.cu.o")) == "simt/tiled"
    assert source_of(Path("/tmp/attempt.cubin")) == "attempt.cubin"
    assert source_of(Path("other.cu.o")) == "other.cu.o"


def test_a_word_is_found_in_source_or_function_whatever_its_case() -> None:
    kernel = Kernel("", "sm_90a", "13.0", 1, b"")
    copy = Named("simt/async_copy", "async_copy<AsyncTile<64, 128>>", kernel)
    tiled = Named("simt/tiled", "tiled<float, 32>", kernel)
    for words, found in (
        ([], [copy, tiled]),
        (["AsyncCopy"], [copy]),
        (["AsyncTile<64,128>"], [copy]),
        (["tiled/tiled"], [tiled]),
        (["Tile"], [copy, tiled]),
        (["tiled", "async"], [copy, tiled]),
        (["absent"], []),
    ):
        assert matching([copy, tiled], words) == found, words
