"""Runs gemm_bench inside a Python process, for kernels from Python files:

    python3 -u run_in_python.py LIBRARY

gemm_bench starts this for each benchmark of a --gemm_kernel=FILE.py, with the case as a JSON object
at standard input (bench/run/exchange.hpp). Such a file defines

    def prepare(problem, a, b, c):  # or another name, for FILE.py:NAME
        ...                         # untimed, once per operand set; a, b, c are Matrix
        return launch               # launch(stream) enqueues c = a @ b and returns

and may define `unsupported(problem)`: why a problem is skipped, or None. `problem` is a
Problem. A file is given one plain product at a time, unless it says what else it takes:

    takes = ("batches", "groups", "scales", "epilogues")  # or some of them

`stream` is a cudaStream_t as an integer; None on the CPU, where launch computes.
Everything here is for one process and one thread. It needs Python 3.10 and nothing else.
"""

import ctypes
import importlib.util
import itertools
import json
import math
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

PR_SET_PDEATHSIG = 1  # of linux/prctl.h

LONGEST_REASON = 4096  # characters; a record keeps fewer

# NumPy type strings; types that NumPy lacks are passed as integers of the same size.
TYPES = {"f32": "<f4", "f64": "<f8", "f16": "<f2", "s32": "<i4", "s8": "|i1"}
TYPES |= {"bf16": "<i2", "e4m3": "|u1", "e5m2": "|u1"}

TAKES = ("batches", "groups", "scales", "epilogues")  # as the bits of gemm_kernel_takes

SCALE_BLOCK = 128  # elements along k, and for B also along n, that share a factor


@dataclass(frozen=True)
class Problem:
    """C (m x n) = A (m x k) * B (k x n)."""

    m: int
    n: int
    k: int
    precision: str  # "f32", "tf32", "bf16", ...
    layout: str  # "nn", "nt", "tn", "tt": how A and B are stored, t for transposed
    device: str  # "cpu" or "gpu"
    batch: int = 1  # products of a batch, or groups, of m rows on average
    # Of groups: the first row of each, and at last the number of all rows.
    row_starts: tuple[int, ...] = ()
    epilogue: str = "none"  # "bias", "bias-gelu" or "residual"


class Matrix:
    """A, B or C in place: `shape` as in the product, `strides` in bytes (a transposed operand is a
    view), `pointer`, an integer, and `element`, such as "bf16". numpy.asarray accepts it on the
    CPU; torch.as_tensor, cupy.asarray and numba.cuda.as_cuda_array do on the GPU.

    A batch has the product as its first dimension. Groups have all their rows in A and C, and their
    B as those of a batch. What a problem does not have is None:
    a.row_starts                problem.row_starts in the device's memory, "s32"
    a.scales, b.scales          factors, "f32": of blocks of 1 x 128 of A; of 128 x 128 of B, whose
                                columns are the rows of scales
    c.bias, c.residual          n elements; a matrix like C
    """

    row_starts: "Matrix | None" = None
    scales: "Matrix | None" = None
    bias: "Matrix | None" = None
    residual: "Matrix | None" = None

    def __init__(
        self,
        pointer: int,
        shape: tuple[int, ...],
        element: str,
        device: str,
        steps: tuple[int, ...] | None = None,  # in elements; None: row-major
    ) -> None:
        self.pointer, self.shape, self.element = pointer, shape, element
        size = int(TYPES[element][-1])
        self.strides = tuple(size * each for each in steps or row_major(shape))
        interface = {
            "version": 3,
            "shape": shape,
            "strides": self.strides if steps else None,
            "typestr": TYPES[element],
            "data": (pointer, False),
        }
        setattr(self, f"__{'' if device == 'cpu' else 'cuda_'}array_interface__", interface)


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides in elements."""
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))


Launch = Callable[[int | None], object]


class Call(ctypes.Structure):
    """PythonCall of kernels/user/python.hpp."""

    _fields_ = [
        *((name, ctypes.c_char_p) for name in ("file", "entry", "precision", "layout", "device")),
        *((name, ctypes.c_char_p) for name in ("input", "output", "epilogue")),
        # From here on gemm::Call.
        *((name, ctypes.c_void_p) for name in "abc"),
        *((name, ctypes.c_int64) for name in "mnk"),
        *((name, ctypes.c_bool) for name in ("a_transposed", "b_transposed")),
        ("epilogue_number", ctypes.c_int),
        ("batch", ctypes.c_int64),
        ("row_starts", ctypes.c_void_p),
        ("host_row_starts", ctypes.POINTER(ctypes.c_int)),
        *((name, ctypes.c_void_p) for name in ("a_scales", "b_scales", "bias", "residual")),
    ]

    @property
    def path(self) -> str:
        """The path of the file."""
        return os.fsdecode(self.file)

    def problem(self) -> Problem:
        """The argument of a file's functions."""
        return Problem(
            *(self.m, self.n, self.k),
            self.precision.decode(),
            self.layout.decode(),
            self.device.decode(),
            self.batch,
            tuple(self.host_row_starts[: self.batch + 1]) if self.host_row_starts else (),
            self.epilogue.decode(),
        )

    def operands(self) -> tuple[Matrix, Matrix, Matrix]:
        """A, B and C."""
        inside, outside, device = (x.decode() for x in (self.input, self.output, self.device))
        groups = bool(self.host_row_starts)
        each = (self.batch,) if groups or self.batch > 1 else ()
        rows = (self.batch * self.m,) if groups else (*each, self.m)  # of A and C

        def matrix(pointer: int, shape: tuple[int, ...], transposed: bool) -> Matrix:
            *outer, across, down = row_major((*shape[:-2], shape[-1], shape[-2]))
            steps = (*outer, down, across) if transposed else None
            return Matrix(pointer, shape, inside, device, steps)

        a = matrix(self.a, (*rows, self.k), self.a_transposed)
        b = matrix(self.b, (*each, self.k, self.n), self.b_transposed)
        c = Matrix(self.c, (*rows, self.n), outside, device)
        if groups:
            a.row_starts = Matrix(self.row_starts, (self.batch + 1,), "s32", device)
        if self.a_scales:
            along, across = (-(-size // SCALE_BLOCK) for size in (self.k, self.n))
            padded = -(-along // 4) * 4
            steps = (*row_major(rows), math.prod(rows))
            a.scales = Matrix(self.a_scales, (*rows, along), "f32", device, steps)
            steps = row_major((*each, across, padded))
            b.scales = Matrix(self.b_scales, (*each, across, along), "f32", device, steps)
        if self.bias:
            c.bias = Matrix(self.bias, (self.n,), outside, device)
        if self.residual:
            c.residual = Matrix(self.residual, c.shape, outside, device)
        return a, b, c


class Files:
    """The modules of the files, called as PythonFunctions of kernels/user/python.hpp."""

    def __init__(self, files: list[str]) -> None:
        self._numbers = itertools.count(1)
        self._launches: dict[int, tuple[Launch, str]] = {}
        self._said: Any = None  # kept until the next call
        self.raised = ctypes.c_void_p()  # PythonFunctions::raised
        self.not_loaded = ctypes.c_bool()  # and ::not_loaded
        # Before LIBRARY is loaded: of two libraries of the same name the files' one is used.
        self._modules = {file: imported(file) for file in files}

    def takes(self, call: Any, takes: Any) -> None:
        """Sets `takes` to the bits of what the file takes besides one plain product."""
        self._guarded(call.contents.path, self._takes, call.contents, takes)

    def unsupported(self, call: Any, reason: Any) -> None:
        """Sets `reason` to why a problem is skipped."""
        self._guarded(call.contents.path, self._unsupported, call.contents, reason)

    def prepare(self, call: Any, launch: Any) -> None:
        """Sets `launch` to the number of a new launch."""
        self._guarded(call.contents.path, self._prepare, call.contents, launch)

    def launch(self, number: int, stream: int | None) -> None:
        """Runs it."""
        launch, file = self._launches[number]
        self._guarded(file, launch, stream)

    def release(self, number: int) -> None:
        """Forgets it."""
        self._guarded(self._launches[number][1], self._launches.pop, number)

    def _guarded(self, file: str, function: Callable[..., object], *arguments: Any) -> None:
        """Calls it; sets `raised` to the exception's message, in one line, or None. If even that
        raises, `raised` stays what the caller has set it to."""
        try:
            function(*arguments)
        except BaseException as error:
            self.raised.value = self._say(one_line(error, file))
            print_traceback(error, file)
        else:
            self.raised.value = None

    def _say(self, text: str) -> int:
        self._said = ctypes.create_string_buffer(text.encode(errors="replace"))
        return ctypes.addressof(self._said)

    def _module(self, call: Call) -> ModuleType:
        module = self._modules[call.path]
        self.not_loaded.value = isinstance(module, BaseException)
        if isinstance(module, BaseException):
            raise module
        return module

    def _takes(self, call: Call, takes: Any) -> None:
        names = set(getattr(self._module(call), "takes", ()))
        if unknown := names - set(TAKES):
            raise ValueError(f"takes has {unknown.pop()!r}, which is none of {', '.join(TAKES)}")
        takes[0] = sum(1 << TAKES.index(name) for name in names)

    def _unsupported(self, call: Call, reason: Any) -> None:
        if call.host_row_starts and call.a_transposed:
            reason[0] = self._say("a transposed A of groups is no view of all their rows")
            return
        function = getattr(self._module(call), "unsupported", None)
        if function and (why := function(call.problem())):
            reason[0] = self._say(str(why))

    def _prepare(self, call: Call, launch: Any) -> None:
        name = call.entry.decode()
        function = getattr(self._module(call), name, None)
        self.not_loaded.value = not callable(function)
        if not callable(function):
            raise TypeError(f"it has no function {name}(problem, a, b, c)")
        found = function(call.problem(), *call.operands())
        if not callable(found):
            raise TypeError(f"{name} returned {found!r:.80}, and no function launch(stream)")
        launch[0] = next(self._numbers)
        self._launches[launch[0]] = found, call.path


def imported(file: str) -> ModuleType | BaseException:
    """The module, or the exception that its import raised."""
    path = Path(file)
    sys.path.append(str(path.parent))  # last, so that a file does not shadow a package of its name
    name = f"gemm_kernel_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        return error
    return module


def print_traceback(error: BaseException, file: str) -> None:
    """From the file on, if it can be printed."""
    frame = error.__traceback__
    while frame and frame.tb_frame.f_code.co_filename != file:
        frame = frame.tb_next
    try:
        traceback.print_exception(type(error), error, frame)
    except BaseException:
        print(f"a traceback of {type(error).__name__} that cannot be printed", file=sys.stderr)


def one_line(error: BaseException, file: str) -> str:
    """`my.py(7): ValueError: message`, with the last line of the file in the traceback."""
    lines: list[int | None] = []
    frame = error.__traceback__
    while frame:
        if frame.tb_frame.f_code.co_filename == file:
            lines.append(frame.tb_lineno)
        frame = frame.tb_next
    said: object = error
    if isinstance(error, SyntaxError) and error.filename == file:
        lines, said = [error.lineno], error.msg
    where = Path(file).name + (f"({lines[-1]})" if lines else "")
    try:
        text = " ".join(str(said)[:LONGEST_REASON].split())
    except BaseException:
        text = "its text cannot be made"
    return f"{where}: {type(error).__name__}: {text}".removesuffix(": ")


def take_request() -> bytes:
    """As take_request() in C++: what is at standard input, which is empty from then on."""
    request = sys.stdin.buffer.read()
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    return request


def main(library: str) -> None:
    """Runs gemm_bench; does not return."""
    # As become_child() in C++, before a file is imported.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    request = take_request()
    sys.path[:] = [folder for folder in sys.path if folder != str(Path(__file__).parent)]
    modules = Files(json.loads(request)["python"])
    call, number, text = ctypes.POINTER(Call), ctypes.c_int64, ctypes.c_void_p
    functions = (
        ctypes.CFUNCTYPE(None, call, ctypes.POINTER(ctypes.c_uint))(modules.takes),
        ctypes.CFUNCTYPE(None, call, ctypes.POINTER(text))(modules.unsupported),
        ctypes.CFUNCTYPE(None, call, ctypes.POINTER(number))(modules.prepare),
        ctypes.CFUNCTYPE(None, number, ctypes.c_void_p)(modules.launch),
        ctypes.CFUNCTYPE(None, number)(modules.release),
    )
    addresses = [ctypes.cast(each, text).value for each in functions]
    addresses += [ctypes.addressof(each) for each in (modules.raised, modules.not_loaded)]
    table = (text * len(addresses))(*addresses)
    ctypes.CDLL(library).gemm_bench_in_python(table, request)


if __name__ == "__main__":
    main(*sys.argv[1:])
