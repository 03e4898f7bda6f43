import sys
from pathlib import Path

import pytest

from gemm_bench.program import environment


def wheel(folder: Path, name: str, *files: str) -> None:
    """A package as pip installs it: its list of files, and these."""
    about = folder / f"{name.replace('-', '_')}-13.1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 13.1.0\n")
    (about / "RECORD").write_text("".join(f"{file},,\n" for file in files))
    for file in files:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).touch()


def test_the_loader_looks_into_nvidias_wheels_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", "/mine")
    monkeypatch.delenv("GEMM_BENCH_INCLUDE", raising=False)
    monkeypatch.delenv("GEMM_BENCH_PYTHON", raising=False)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "a"), str(tmp_path / "b"), *sys.path])
    folder = "nvidia/cu13/lib"
    wheel(tmp_path / "a", "nvidia-cublas", f"{folder}/libcublas.so.13")
    wheel(tmp_path / "b", "nvidia-cuda-nvrtc", f"{folder}/libnvrtc.so.13", f"{folder}/x")
    headers = "nvidia/cu13/include"
    wheel(tmp_path / "b", "nvidia-cuda-runtime", f"{headers}/x/y.h", f"{headers}/cuda_bf16.h")
    wheel(tmp_path / "b", "nvidia-cuda-cccl", f"{headers}/cccl/cuda/std/array")
    found = environment()
    places = [str(tmp_path / each / folder) for each in "ab"]
    assert found["LD_LIBRARY_PATH"] == ":".join([*places, "/mine"])
    there = tmp_path / "b" / headers
    assert found["GEMM_BENCH_INCLUDE"] == f"{there}:{there}/cccl"
    assert found["GEMM_BENCH_PYTHON"] == sys.executable


def test_without_them_the_environment_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gemm_bench.program.files", lambda _: None)
    monkeypatch.setenv("LD_LIBRARY_PATH", "/mine")
    monkeypatch.setenv("GEMM_BENCH_PYTHON", "/python")
    assert environment()["LD_LIBRARY_PATH"] == "/mine"
    assert environment()["GEMM_BENCH_PYTHON"] == "/python"
