"""The program gemm_bench: where it is, and the environment in which it finds CUDA's libraries."""

import os
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

_PACKAGE = Path(__file__).parent


class ProgramMissingError(Exception):
    """There is no gemm_bench; its text says where it was looked for, and what to do."""


def program() -> Path:
    """gemm_bench of the folder GEMM_BENCH_BUILD, of this package, or of the clone around it.

    Raises ProgramMissingError.
    """
    if given := os.environ.get("GEMM_BENCH_BUILD"):
        places = [Path(given)]
    else:
        places = [_PACKAGE / "bin", _PACKAGE.parents[1] / "build" / "release"]
    for place in places:
        if (place / "gemm_bench").is_file():
            return place.absolute() / "gemm_bench"
    raise ProgramMissingError(
        f"{places[-1]} has no gemm_bench: build it with tools/bench, or set GEMM_BENCH_BUILD"
    )


def environment() -> dict[str, str]:
    """The environment to run it in: this one, with this Python for kernels in Python, and with the
    folders of NVIDIA's wheels before those in which the loader looks for cuBLAS and NVRTC."""
    result = dict(os.environ)
    result.setdefault("GEMM_BENCH_PYTHON", sys.executable)
    folders = [str(folder) for folder in _cuda_folders()]
    if folders:
        given = result.get("LD_LIBRARY_PATH")
        result["LD_LIBRARY_PATH"] = ":".join([*folders, *([given] if given else [])])
    return result


def _cuda_folders() -> Iterator[Path]:
    """Those with the libraries of nvidia-cublas and nvidia-cuda-nvrtc, each once.

    By the wheels' own lists of files: links and --user put them into other folders than ours.
    """
    seen = set()
    for wheel, library in (("nvidia-cublas", "libcublas.so"), ("nvidia-cuda-nvrtc", "libnvrtc.so")):
        try:
            listed = files(wheel) or []
        except PackageNotFoundError:
            continue
        for each in listed:
            if each.name.startswith(library):
                folder = Path(str(each.locate())).parent
                if folder not in seen:
                    seen.add(folder)
                    yield folder
