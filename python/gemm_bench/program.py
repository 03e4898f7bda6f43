"""The program gemm_bench: where it is, and the environment in which it finds CUDA's libraries."""

import os
import sys
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
    """The environment to run it in: this one, with this Python for kernels in Python, with the
    folders of NVIDIA's wheels before those in which the loader looks for cuBLAS and NVRTC, and with
    the folders of headers that a user's .cu file may include."""
    result = dict(os.environ)
    result.setdefault("GEMM_BENCH_PYTHON", sys.executable)
    _put_before(result, "LD_LIBRARY_PATH", _LIBRARIES)
    _put_before(result, "GEMM_BENCH_INCLUDE", _HEADERS, _PACKAGE / "include")
    return result


# Of each wheel a file, from the folder that is searched.
_LIBRARIES = {"nvidia-cublas": "libcublas.so.*", "nvidia-cuda-nvrtc": "libnvrtc.so.*"}
_HEADERS = {"nvidia-cuda-runtime": "cuda_bf16.h", "nvidia-cuda-cccl": "cuda/std/array"}


def _put_before(
    environment: dict[str, str], variable: str, wheels: dict[str, str], *more: Path
) -> None:
    found = [folder for wheel, file in wheels.items() if (folder := _folder_of(wheel, file))]
    folders = [str(folder) for folder in (*more, *found) if folder.is_dir()]
    if given := environment.get(variable):
        folders.append(given)
    if folders:
        environment[variable] = ":".join(dict.fromkeys(folders))


def _folder_of(wheel: str, file: str) -> Path | None:
    """By the wheel's own list of files: links and --user put it into another folder than ours."""
    try:
        listed = files(wheel) or []
    except PackageNotFoundError:
        return None
    for each in listed:
        if each.match(file):
            return Path(str(each.locate())).parents[file.count("/")]
    return None
