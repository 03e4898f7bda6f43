"""Python files of a user, good and hostile, through gemm_bench, whole: on the CPU with NumPy, on a
GPU with what is there."""

import json
import os
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numpy")
jsonschema = pytest.importorskip("jsonschema")

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "matmul.py"
BENCH = ROOT / os.environ.get("GEMM_BENCH_BUILD", "build/release") / "gemm_bench"
QUICK = [
    "--gemm_warmup=0.001",
    "--gemm_sample=0.0001",
    "--gemm_sampling=0.05",
    "--gemm_peaks=nominal",
    "--benchmark_min_time=0.001s",
    "--gemm_shapes=64",
    "--gemm_cache=hot",
]
pytestmark = pytest.mark.skipif(not BENCH.exists(), reason=f"{BENCH} is not built")

# What a launch does in addition to the product, or the file to its functions, and the message.
GOOD = """\
import numpy as np
def prepare(problem, a, b, c):
    a, b, c = (np.asarray(each) for each in (a, b, c))
    def launch(stream):
        np.matmul(a, b, out=c)
        BAD
    return launch
"""
MUTE = """\
class Mute(Exception):
    def __repr__(self):
        raise Mute
    __str__ = __repr__
"""
HOSTILE = {
    "raises": ("raise ValueError('not a\\n multiple of 8')", "raises.py(6): ValueError: not a mul"),
    "exits": ("import sys; sys.exit(3)", "exits.py(6): SystemExit: 3"),
    "leaves": ("import os; os._exit(7)", "it called exit(7)"),
    "crashes": ("import ctypes; ctypes.string_at(8)", "Segmentation fault"),
    "overflows": ("f = lambda: f(); f()", "RecursionError"),
    "hangs": ("while True: pass", "did not end within 5 s"),
    "is_wrong": ("c[3, 5] += 1", "c[3,5] ="),
    "transposes": ("c[:] = c.T.copy()", "hold the transpose"),
    "writes_nothing": ("c[:] = np.nan", "are NaN, everywhere"),
}
BROKEN = {
    "syntax": ("def prepare(problem, a, b, c):\n  return )\n", "syntax.py(2): SyntaxError: "),
    "missing": ("import no_such_module\n", "missing.py(1): ModuleNotFoundError: No module named"),
    "import_hangs": ("while True: pass\n", "did not end within 5 s"),
    "empty": ("", "empty.py: TypeError: it has no function prepare(problem, a, b, c)"),
    "reads": ("input()\n", "reads.py(1): EOFError"),
    "steals": (
        "import sys\nimport os\n"
        "token = sys.stdin.readline().strip()\n"
        'os.write(3, b\'{"token": "%s"}\' % token.encode())\nos._exit(0)\n',
        "it wrote to the descriptor of the result",
    ),
    "forges": (
        "import json, os, sys\nframe = sys._getframe()\n"
        "while 'request' not in frame.f_locals: frame = frame.f_back\n"
        "token = json.loads(frame.f_locals['request'])['token']\n"
        "os.write(3, json.dumps({'token': token, 'row': {}, 'kernel_seconds': -1}).encode())\n"
        "os._exit(0)\n",
        "its answer is not a row: ",
    ),
    "mute_launch": (
        MUTE + GOOD.replace("BAD", "raise Mute"),
        "mute_launch.py(10): Mute: its text cannot be made",
    ),
    "mute_repr": (
        MUTE + "def prepare(problem, a, b, c):\n  return Mute()\n",
        "mute_repr.py(3): Mute: its text cannot be made",
    ),
    "without_exceptions": (
        "import builtins\ndef prepare(problem, a, b, c):\n"
        "  builtins.BaseException = None\n  raise ValueError\n",
        "it raised an exception whose text cannot be made",
    ),
    "bare_exception": (
        "class Bare(BaseException): pass\ndef prepare(problem, a, b, c):\n  raise Bare('so')\n",
        "bare_exception.py(3): Bare: so",
    ),
    "long_reason": (
        "def prepare(problem, a, b, c):\n  raise ValueError('x' * 1_000_000)\n",
        "long_reason.py(2): ValueError: xxx",
    ),
    "reasons": (GOOD.replace("BAD", "") + "def unsupported(p):\n  return p.x\n", "reasons.py(9): "),
}


def file(folder: Path, name: str, bad: str = "", source: str = GOOD) -> Path:
    path = folder / f"{name}.py"
    path.write_text(source.replace("BAD", bad), encoding="utf-8")
    return path


def run(
    *arguments: str, device: str = "cpu", **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [BENCH, *QUICK, f"--gemm_device={device}", *arguments],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        env={**os.environ, "GEMM_BENCH_PYTHON": sys.executable, **environment},
    )


def rows(out: Path) -> dict[str, dict[str, Any]]:
    document = json.loads(out.read_text(encoding="utf-8"))
    jsonschema.validate(document, json.loads((ROOT / "results" / "schema.json").read_text()))
    assert document["context"]["gemm"]["complete"]
    return {row["name"].removesuffix("/manual_time"): row["gemm"] for row in document["benchmarks"]}


def test_the_example_runs_as_its_head_and_the_readme_say(tmp_path: Path) -> None:
    head = EXAMPLE.read_text(encoding="utf-8").partition("import")[0]
    (command,) = [line for line in head.splitlines() if line.startswith("gemm_bench ")]
    out = tmp_path / "record.json"
    arguments = [part.replace("matmul.py", str(EXAMPLE)) for part in command.split()[1:]]
    done = run(*arguments, "--gemm_shapes=64,5x7x23", f"--benchmark_out={out}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert str(EXAMPLE.parent) not in out.read_text(encoding="utf-8")
    found = rows(out)
    assert set(found) == {
        f"{name}/f32/{shape}"
        for name in ("matmul", "matmul.by_rows")
        for shape in ("64x64x64", "5x7x23")
    }
    for row in found.values():
        assert row["family"] == "user"
        assert row["file"]["name"] == "matmul.py"
        assert row["verification"]["passed"]
        assert row["versus"]["kernel"] == "CpuBlocked"
        assert row["library"] is None or row["of_library"] > 0
    short = EXAMPLE.read_text(encoding="utf-8")
    short = short[short.index("import") : short.index("\n\n\ndef by_rows")]
    assert f"```python\n{short}\n```\n" in (ROOT / "docs" / "user-kernels.md").read_text(
        encoding="utf-8"
    )


@pytest.mark.parametrize("layout", ["nt", "tn", "tt"])
def test_a_transposed_operand_is_a_view(layout: str) -> None:
    done = run(f"--gemm_kernel={EXAMPLE}", f"--gemm_layouts={layout}", "--gemm_shapes=5x7x23")
    assert done.returncode == 0, done.stdout
    assert f"matmul/layout:{layout}/f32/5x7x23" in done.stdout


def test_a_kernel_of_the_suite_is_compared_with_one_in_python(tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    versus = f"--gemm_kernel={EXAMPLE}", "--gemm_versus=matmul", "--benchmark_filter=CpuNaive"
    done = run(*versus, f"--benchmark_out={out}")
    assert done.returncode == 0, done.stdout + done.stderr
    (row,) = rows(out).values()
    assert (row["kernel"], row["versus"]["kernel"]) == ("CpuNaive", "matmul")


# Takes more than 5 s: one of them hangs until --gemm_kernel_limit ends it.
def test_hostile_ones_harm_no_good_row(tmp_path: Path) -> None:
    files = [file(tmp_path, name, bad) for name, (bad, _) in HOSTILE.items()]
    files += [file(tmp_path, name, source=source) for name, (source, _) in BROKEN.items()]
    files.insert(3, file(tmp_path, "good"))
    files.append(file(tmp_path, "good_at_last"))
    out = tmp_path / "record.json"
    kernels = ",".join(str(each) for each in files)
    done = run(f"--gemm_kernel={kernels}", "--gemm_kernel_limit=5", f"--benchmark_out={out}")
    assert done.returncode == 1
    found = {name.partition("/")[0]: row for name, row in rows(out).items()}
    expected = {name: said for name, (_, said) in (HOSTILE | BROKEN).items()}
    assert set(found) == {"good", "good_at_last", *expected}
    for name, row in found.items():
        if name in expected:
            assert expected[name] in (row["failed"] or ""), name
            assert row["failed"].isprintable(), name
            assert str(tmp_path) not in row["failed"], name
        else:
            assert row["failed"] is None, name
            assert row["verification"]["passed"], name


def test_what_is_unsupported_is_skipped_with_its_reason(tmp_path: Path) -> None:
    source = GOOD + "def unsupported(problem):\n  return 'odd' if problem.k % 2 else None\n"
    done = run(f"--gemm_kernel={file(tmp_path, 'even', source=source)}", "--gemm_shapes=64,5x7x23")
    assert done.returncode == 0, done.stdout
    even, odd = (line for line in done.stdout.splitlines() if line.startswith("even/"))
    assert "SKIPPED" not in even
    assert "SKIPPED: odd" in odd


def test_what_it_prints_and_the_traceback_are_quoted(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("def fail():\n  raise OSError('broken')\n")
    bad = "from helper import fail; print('hello\\033[2J'); fail()"
    done = run(f"--gemm_kernel={file(tmp_path, 'talks', bad)}")
    assert done.returncode == 1
    assert "FAILED: talks.py(6): OSError: broken" in done.stdout
    assert "\n| hello [2J\n" in done.stderr
    assert "run_in_python.py" not in done.stderr
    assert "in fail\n" in done.stderr


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"PATH": "/nowhere", "GEMM_BENCH_PYTHON": ""}, "no program 'python3': install python3"),
        ({"GEMM_BENCH_PYTHON": "/nowhere/python"}, "or set GEMM_BENCH_PYTHON to its path"),
    ],
)
def test_without_python_it_is_one_line(environment: dict[str, str], said: str) -> None:
    done = run(f"--gemm_kernel={EXAMPLE}", **environment)
    assert done.returncode == 2
    assert done.stdout == ""
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def is_alive(process: int) -> bool:
    status = Path(f"/proc/{process}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_the_child_ends_with_its_parent(tmp_path: Path, end: signal.Signals) -> None:
    marker, out = tmp_path / "pid", tmp_path / "record.json"
    hangs = f"import os\nopen('{marker}', 'w').write(f'{{os.getpid()}}\\n')\nwhile True: pass\n"
    kernels = f"{EXAMPLE},{file(tmp_path, 'hangs', source=hangs)}"
    with subprocess.Popen(
        [BENCH, *QUICK, "--gemm_device=cpu", f"--gemm_kernel={kernels}", f"--benchmark_out={out}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "GEMM_BENCH_PYTHON": sys.executable},
    ) as process:
        deadline = time.monotonic() + 60
        while not (marker.exists() and marker.read_text().endswith("\n")):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(end)
        assert process.wait(30) == (130 if end == signal.SIGINT else -end)
    while is_alive(int(marker.read_text())):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    if end == signal.SIGINT:
        document = json.loads(out.read_text(encoding="utf-8"))
        assert not document["context"]["gemm"]["complete"]
        assert [row["gemm"]["kernel"] for row in document["benchmarks"]][:1] == ["matmul"]


def has_gpu() -> bool:
    name = [BENCH, "--gemm_device=0", "--gemm_name_record"]
    return BENCH.exists() and subprocess.run(name, capture_output=True).returncode == 0


# Of each library what makes a tensor, launches on a stream, and waits for it.
ON_THE_GPU = {
    "torch": """\
import torch
def prepare(problem, a, b, c):
    a, b, c = (torch.as_tensor(each, device="cuda") for each in (a, b, c))
    def launch(stream):
        with torch.cuda.stream(torch.cuda.ExternalStream(stream)):
            torch.matmul(a, b, out=c)
            BAD
    return launch
""",
    "cupy": """\
import cupy
def prepare(problem, a, b, c):
    a, b, c = (cupy.asarray(each) for each in (a, b, c))
    def launch(stream):
        with cupy.cuda.ExternalStream(stream) as current:
            cupy.matmul(a, b, out=c)
            BAD
    return launch
""",
}
WAITS = {"torch": "torch.cuda.current_stream().synchronize()", "cupy": "current.synchronize()"}


@pytest.mark.parametrize("library", ON_THE_GPU)
def test_launches_are_captured_where_they_can_be_on_the_gpu(library: str, tmp_path: Path) -> None:
    if not has_gpu():
        pytest.skip("no GPU")
    if find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    source, out = ON_THE_GPU[library], tmp_path / "record.json"
    captured = file(tmp_path, f"captured_{library}", source=source)
    waiting = file(tmp_path, f"waiting_{library}", WAITS[library], source)
    done = run(
        f"--gemm_kernel={captured},{waiting}",
        "--gemm_layouts=nn,nt,tn,tt",
        "--gemm_shapes=512x256x128",
        "--gemm_versus=Naive",
        "--gemm_kernel_limit=60",
        f"--benchmark_out={out}",
        device="0",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = rows(out)
    assert len(found) == 8
    for name, row in found.items():
        assert row["verification"]["passed"], name
        assert row["launch"] == ("graph" if name.startswith("captured") else "stream"), name
        assert row["layout"] != "nn" or row["versus"]["kernel"] == "Naive", name
