"""A kernel to be judged, and the processes that do it: it is compiled on any CPU, then measured."""

import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, Literal, get_args

from gemm_bench.program import environment, program

Status = Literal[
    "passed", "wrong", "cheats", "impossible", "compile-error", "crashed", "timeout", "unsupported"
]
Language = Literal["cu", "cpp", "py"]
Shape = tuple[int, int, int]

LONGEST_SOURCE = 1 << 20  # characters, of all files together
MOST_SHAPES = 64
LARGEST_SIZE = 1 << 20  # of m, n and k
_MARK = "GEMM_BENCH_JOB"  # in the environment of all processes of a job
_COMPILE_LIMIT = 120.0  # seconds
_MOST_PRINTED = 1 << 20  # bytes that are read of what a process prints


class JobError(Exception):
    """The job itself is at fault, or the machine, not the kernel; its text is one line."""


@dataclass(frozen=True)
class Confinement:
    """What the processes of a job may have. An ordinary process can promise no more than this."""

    network: bool = True
    memory_bytes: int | None = None  # data of each process
    processes: int | None = None

    def command(self) -> list[str]:
        """What goes before a command."""
        limits = []
        if self.memory_bytes is not None:
            limits.append(f"--data={self.memory_bytes}")
        if self.processes is not None:
            limits.append(f"--nproc={self.processes}")
        apart = [] if self.network or not can_cut_network() else _UNSHARE
        return [*apart, *(["prlimit", *limits, "--"] if limits and shutil.which("prlimit") else [])]


_UNSHARE = ["unshare", "--user", "--map-current-user", "--net", "--"]


@cache
def can_cut_network() -> bool:
    """Whether this user may start processes without a network (user namespaces)."""
    try:
        return subprocess.run([*_UNSHARE, "true"], capture_output=True).returncode == 0
    except OSError:
        return False


@dataclass(frozen=True)
class Job:
    """A kernel, the problems to run it on, and how long each may take.

    `source` is the text of a .cu file (kernels/user/gemm_kernel.h), of a .cpp file with the same
    header for a CPU, or of a .py file (kernels/user/run_in_python.py); `files` are further files
    beside it, by their relative paths. `shapes` are (m, n, k). Raises JobError where a field has no
    meaning, so that nothing of it reaches a command line unchecked.
    """

    source: str
    shapes: Sequence[Shape]
    precision: str = "f32"
    layout: str = "nn"
    language: Language = "cu"
    entry: str = ""
    baseline: str | None = "library"
    defines: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    warmup: float = 0.05  # seconds of each
    sampling: float = 0.05
    limit: float = 30.0
    peaks: str = "cached"  # as --gemm_peaks
    seed: int | None = None

    def __post_init__(self) -> None:
        def require(holds: bool, what: str) -> None:
            if not holds:
                raise JobError(what)

        texts = [self.source, *self.files.values()]
        require(all(isinstance(text, str) for text in texts), "a file is no text")
        require(sum(map(len, texts)) <= LONGEST_SOURCE, "the files are too long")
        require(1 <= len(self.shapes) <= MOST_SHAPES, f"shapes: give 1 to {MOST_SHAPES}")
        for shape in self.shapes:
            fits = len(shape) == 3 and all(
                type(size) is int and 1 <= size <= LARGEST_SIZE for size in shape
            )
            require(fits, f"shapes: {shape!r:.80} is not (m, n, k), each 1 to {LARGEST_SIZE}")
        for name, value, pattern in (
            ("precision", self.precision, r"[a-z0-9]{1,20}"),
            ("layout", self.layout, r"[nt]{2}"),
            ("language", self.language, "|".join(get_args(Language))),
            ("peaks", self.peaks, "cached|stored|nominal"),
            ("entry", self.entry, r"([A-Za-z_]\w{0,99})?"),
            ("baseline", self.baseline or "library", r"[A-Za-z][\w/:.,-]{0,199}"),
            *(("defines", each, r"[A-Za-z_]\w{0,99}") for each in self.defines),
            *(("defines", each, r"[\w.-]{1,99}") for each in self.defines.values()),
        ):
            matches = isinstance(value, str) and re.fullmatch(pattern, value, re.ASCII)
            require(bool(matches), f"{name}: {value!r:.80} is none")
        for path in self.files:
            parts = PurePosixPath(path).parts
            safe = re.fullmatch(r"[\w./+-]{1,200}", path, re.ASCII) and ".." not in parts
            require(
                bool(safe) and not path.startswith("/"), f"files: {path!r:.80} is no relative path"
            )
        for name, seconds in (
            ("warmup", self.warmup),
            ("sampling", self.sampling),
            ("limit", self.limit),
        ):
            is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
            require(is_number and 0 < seconds <= 600, f"{name}: give seconds, up to 600")
        whole = self.seed is None or (type(self.seed) is int and 0 <= self.seed < 1 << 63)
        require(whole, "seed: give a whole number")

    @staticmethod
    def from_json(document: Any) -> "Job":
        """Of an object with the names above. Raises JobError."""
        known = Job.__dataclass_fields__
        if not isinstance(document, dict) or not document.keys() <= known.keys():
            unknown = sorted(document.keys() - known.keys()) if isinstance(document, dict) else ""
            raise JobError(f"a job is an object with {', '.join(known)}; unknown: {unknown!r:.80}")
        for name in ("defines", "files"):
            if not isinstance(document.get(name, {}), dict):
                raise JobError(f"{name}: give an object")
        if not isinstance(document.get("shapes"), list):
            raise JobError("shapes: give a list of [m, n, k]")
        shapes = [tuple(each) if isinstance(each, list) else each for each in document["shapes"]]
        if not all(isinstance(each, tuple) for each in shapes):
            raise JobError("shapes: give a list of [m, n, k]")
        try:
            return Job(**{**document, "shapes": shapes})
        except TypeError as error:
            raise JobError(str(error)) from None


class Workplace:
    """A folder of a job, and what runs in it. `stop` ends it from another thread. `include` are
    folders of headers for a .cu file, and `compile_for` the compute capabilities for which it is
    compiled ahead."""

    def __init__(
        self,
        job: Job,
        folder: Path,
        device: str = "auto",
        confinement: Confinement | None = None,
        include: Sequence[str | Path] = (),
        compile_for: Sequence[int] = (),
    ) -> None:
        self.job, self.folder, self.device = job, folder, device
        self._include = [f"--gemm_include={Path(each).absolute()}" for each in include]
        self._compile_for = compile_for
        self.stop = threading.Event()
        self._mark = secrets.token_hex(16)
        self._confined = (confinement or Confinement()).command()
        self._kernel = folder / f"kernel.{job.language}"
        self._kernel.write_text(job.source)
        for path, text in job.files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)

    def compile(self) -> list[dict[str, Any]]:
        """Does what needs no device. The verdicts, if it does not compile. Raises JobError."""
        if self.job.language == "cu":
            return self._compile_ahead()
        if self.job.language != "cpp":
            return []
        made = self.folder / "kernel.so"
        compiler = os.environ.get("CXX", "c++").split()
        options = ["-O3", "-march=native", "-std=c++20", "-shared", "-fPIC", "-w"]
        macros = [f"-D{name}={value}" for name, value in self.job.defines.items()]
        command = [*compiler, *options, *macros, "-I", str(header()), str(self._kernel)]
        done = self._run([*command, "-o", str(made)], _COMPILE_LIMIT)
        if done.returncode == 0:
            self._kernel = made
            return []
        errors = [line for line in done.printed.splitlines() if "error" in line]
        why = (errors or done.printed.splitlines() or ["the compiler ended"])[0]
        why = "the compiler took too long" if done.late else why.replace(f"{self.folder}/", "")
        return [self._lost(shape, "compile-error", why) for shape in self.job.shapes]

    def _compile_ahead(self) -> list[dict[str, Any]]:
        (self.folder / "machine_code").mkdir()
        for capability in self._compile_for:
            ahead = f"--gemm_compile_for={capability}"
            done = self._run([str(program()), *self._options(), ahead], _COMPILE_LIMIT)
            said = done.printed.strip().splitlines() or ["the compiler ended"]
            if done.returncode > 1:
                raise JobError(said[-1].removeprefix("gemm_bench: "))
            if done.returncode:
                why = "the compiler took too long" if done.late else said[-1]
                return [self._lost(shape, "compile-error", why) for shape in self.job.shapes]
        return []

    def _options(self) -> list[str]:
        """What compiling and measuring have in common."""
        job = self.job
        entry = f":{job.entry}" if job.entry else ""
        options = [
            f"--gemm_kernel={self._kernel.name}{entry}",
            f"--gemm_precisions={job.precision}",
        ]
        if job.language == "cu":
            options += [f"--gemm_define={name}:{value}" for name, value in job.defines.items()]
            options += [*self._include, "--gemm_machine_code=machine_code"]
        return options

    def measure(self) -> list[dict[str, Any]]:
        """The verdicts, in the order of the shapes (verdict.schema.json). Raises JobError."""
        job = self.job
        shapes = ",".join("x".join(map(str, shape)) for shape in dict.fromkeys(job.shapes))
        options = [
            *self._options(),
            f"--gemm_shapes={shapes}",
            f"--gemm_layouts={job.layout}",
            f"--gemm_device={self.device}",
            f"--gemm_warmup={job.warmup:g}",
            f"--gemm_sampling={job.sampling:g}",
            f"--gemm_kernel_limit={job.limit:g}",
            f"--gemm_row_budget={job.limit / 2:g}",  # the rest is for compiling and starting
            f"--gemm_peaks={job.peaks}",
            "--gemm_verdict",
        ]
        if job.baseline is None:
            options.append("--gemm_library=omit")
        else:
            options += [f"--gemm_versus={job.baseline}", "--gemm_baselines_cached"]
        if job.seed is not None:
            options.append(f"--gemm_seed={job.seed}")
        # Of the program itself, which ends each case by its limit. Waiting for the device is not
        # counted: whoever has it ends, too.
        limit = (job.limit + 60) * len(job.shapes) + 600
        done = self._run([str(program()), *options], limit)
        lines = [json.loads(line) for line in done.output.splitlines()]
        if not lines and done.returncode not in (0, 1) and done.returncode > 0:
            said = done.printed.strip().splitlines() or [f"exit status {done.returncode}"]
            raise JobError(said[-1].removeprefix("gemm_bench: "))
        found = {(line["m"], line["n"], line["k"]): line for line in lines}
        why = "it ended the program that measures" if not done.late else "it took too long"
        lost: Status = "timeout" if done.late else "crashed"
        return [found.get(shape) or self._lost(shape, lost, why) for shape in job.shapes]

    def _lost(self, shape: Shape, status: Status, reason: str) -> dict[str, Any]:
        """A verdict that the program could not print."""
        m, n, k = shape
        job = self.job
        known = {
            **{"schema": 1, "status": status, "reason": reason[:500], "confidence": 0.95},
            **{"name": f"kernel/{job.precision}/{m}x{n}x{k}", "kernel": "kernel"},
            **{"parameters": dict(job.defines), "precision": job.precision, "layout": job.layout},
            **{"m": m, "n": n, "k": k, "seed": job.seed or 0, "device_kernels": []},
            **{"host_code": job.language != "cu", "departures": [], "device": "", "commit": ""},
        }
        unknown = ["file", "seconds", "flop_per_second", "of_roof", "of_roof_at_clock"]
        unknown += ["versus", "sol_score", "checks", "verification"]
        return known | dict.fromkeys(unknown)

    def _run(self, command: list[str], seconds: float) -> "_Done":
        """Runs it in the folder. Whatever it started has ended when this returns."""
        if self.stop.is_set():
            raise JobError("it was stopped")
        env = {**environment(), _MARK: self._mark}
        env.pop("GEMM_BENCH_TOKEN", None)
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as printed:
            try:
                process = subprocess.Popen(
                    [*self._confined, *command],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=printed,
                    cwd=self.folder,
                    env=env,
                    start_new_session=True,
                )
            except OSError as error:
                raise JobError(f"{command[0]} cannot be started: {error}") from None
            end = time.monotonic() + seconds
            late = False
            try:
                while (status := process.poll()) is None and not late and not self.stop.is_set():
                    late = time.monotonic() > end
                    time.sleep(0.01)
            finally:
                if process.poll() is None:
                    process.send_signal(signal.SIGKILL)
                end_marked(self._mark)
                status = process.wait()
            texts = _tail(output), _tail(printed)
        if self.stop.is_set():
            raise JobError("it was stopped")
        return _Done(status, *texts, late)


@dataclass(frozen=True)
class _Done:
    returncode: int
    output: str
    printed: str
    late: bool


def _tail(file: Any) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _MOST_PRINTED))
    return str(file.read().decode(errors="replace"))


def end_marked(mark: str) -> None:
    """Ends all processes that have inherited the mark, also those of a session of their own. One
    that has replaced its environment is not found."""
    wanted = f"{_MARK}={mark}".encode()
    for _ in range(100):  # one may start another meanwhile
        found = False
        for process in _processes():
            try:
                has = wanted in (process / "environ").read_bytes().split(b"\0")
                if has and (process / "stat").read_text().rsplit(")", 1)[1].split()[0] != "Z":
                    os.kill(int(process.name), signal.SIGKILL)
                    found = True
            except OSError:
                continue
        if not found:
            return
        time.sleep(0.005)


def _processes() -> Iterator[Path]:
    return (each for each in Path("/proc").iterdir() if each.name.isdigit())


def compute_capability(device: str) -> int | None:
    """Of the GPU with this index, such as 90, by nvidia-smi; None without it."""
    query = ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader", "-i", device]
    try:
        said = subprocess.run(query, capture_output=True, text=True, check=False).stdout
    except OSError:
        return None
    return int(said.replace(".", "")) if re.fullmatch(r"\d+\.\d\s*", said) else None


def header() -> Path:
    """The folder of gemm_kernel.h: this package's, or that of the clone around it."""
    inside = Path(__file__).parent / "include"
    return inside if inside.is_dir() else Path(__file__).parents[2] / "kernels" / "user"


@contextmanager
def workplace(job: Job, device: str = "auto", **more: Any) -> Iterator[Workplace]:
    """A folder for the job, and for nothing else; it goes at the end. `more` as of Workplace."""
    with tempfile.TemporaryDirectory(prefix="gemm_bench_", ignore_cleanup_errors=True) as folder:
        yield Workplace(job, Path(folder), device, **more)
