"""Files of a user, good and hostile, through gemm_bench, whole: shared libraries and Python on the
CPU, Python with what is there on a GPU."""

import json
import os
import re
import shutil
import signal
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest
import test_runs
from own_files import own_files
from test_runs import BENCH, NEEDS_BENCH, ROOT, has_gpu, is_alive, ran, rows, run, wait_until

pytest.importorskip("numpy")
pytest.importorskip("jsonschema")

COMPILER = shutil.which("c++")
QUICK = [*test_runs.QUICK, "--gemm_cache=hot"]
SMALL = ["--gemm_cache=hot", "--gemm_shapes=64"]
EXAMPLE = ROOT / "examples" / "matmul.py"

pytestmark = [NEEDS_BENCH, pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler")]

CPP = """
#include <csignal>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>
#include "gemm_kernel.h"
static void product(const gemm::Call& p) {
  const float* a = static_cast<const float*>(p.a);
  const float* b = static_cast<const float*>(p.b);
  float* c = static_cast<float*>(p.c);
  for (long long i = 0; i < p.m; ++i)
    for (long long j = 0; j < p.n; ++j) {
      float sum = 0;
      for (long long l = 0; l < p.k; ++l) sum += a[i * p.k + l] * b[l * p.n + j];
      c[i * p.n + j] = sum;
    }
}
"""
ENTRY = """
extern "C" const char* NAME(const gemm::Call* p, const char*, void*) {
  float* c = static_cast<float*>(p->c);
  const long long n = p->n;
  product(*p);
  BAD
  return nullptr;
}
"""
HANGS = "for (;;) usleep(1000);"
# What a kernel does in addition to the product, by the name of its entry, and the message.
HOSTILE_CPP = {
    "hangs": (HANGS, "did not end within 5 s: raise --gemm_kernel_limit"),
    "reads": (
        'char x; if (read(0, &x, 1) != 0) abort(); return "stdin is empty";',
        "stdin is empty",
    ),
    "segfaults": ("*reinterpret_cast<volatile int*>(8) = 1;", "Segmentation fault"),
    "exits": ("exit(0);", r"it called exit\(0\)"),
    "aborts": ("abort();", r"it called abort\(\)"),
    "killed": ("raise(SIGKILL);", "memory ran out"),
    "forges": ('dprintf(3, "{}"); _exit(0);', "wrote to the descriptor of the result"),
    "complains_at_length": (
        "static char text[9000]; for (int i = 0; i < 8999; ++i) text[i] = 'x'; return text;",
        "xxx[.]{3}$",
    ),
    "complains": ('return "only multiples of 128\\n\\033[2Jand so on";', "only multiples of 128"),
    "nans": ("for (int i = 0; i < 64 * n; ++i) c[i] = NAN;", "are NaN, everywhere"),
    "is_wrong": ("c[64 * 3 + 5] += 1;", r"c\[3,5\] ="),
    "transposes": (
        "for (int i = 0; i < n; ++i) for (int j = 0; j < i; ++j) {"
        " const float kept = c[i * n + j]; c[i * n + j] = c[j * n + i]; c[j * n + i] = kept; }",
        "hold the transpose",
    ),
    "doubles": ("for (int i = 0; i < 64 * n; ++i) c[i] *= 2;", "are 2 times what they should be"),
    "writes_outside": ("c[64 * n] = 1;", "wrote outside C: byte 1 past its end"),
}
# The same for entries of one Python file.
HOSTILE_PYTHON = {
    "raises": ("raise ValueError('not a\\n multiple of 8')", r"py\(\d+\): ValueError: not a mul"),
    "exits": ("import sys; sys.exit(3)", r"py\(\d+\): SystemExit: 3"),
    "leaves": ("import os; os._exit(7)", r"it called exit\(7\)"),
    "crashes": ("import ctypes; ctypes.string_at(8)", "Segmentation fault"),
    "overflows": ("f = lambda: f(); f()", "RecursionError"),
    "is_wrong": ("c[3, 5] += 1", r"c\[3,5\] ="),
    "writes_nothing": ("c[:] = np.nan", "are NaN, everywhere"),
}
PYTHON = """\
import numpy as np
def NAME(problem, a, b, c):
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
PREPARE = "def prepare(problem, a, b, c):\n"
# Files that are broken as a whole.
BROKEN = {
    "syntax": (PREPARE + "  return )\n", r"syntax.py\(2\): SyntaxError: "),
    "missing": ("import no_such_module\n", r"missing.py\(1\): ModuleNotFoundError: No module name"),
    "import_hangs": ("while True: pass\n", "did not end within 5 s"),
    "empty": ("", r"empty.py: TypeError: it has no function prepare\(problem, a, b, c\)"),
    "reads_input": ("input()\n", r"reads_input.py\(1\): EOFError"),
    "steals": (
        "import sys\nimport os\n"
        "token = sys.stdin.readline().strip()\n"
        'os.write(3, b\'{"token": "%s"}\' % token.encode())\nos._exit(0)\n',
        "it wrote to the descriptor of the result",
    ),
    "forges_row": (
        "import json, os, sys\nframe = sys._getframe()\n"
        "while 'request' not in frame.f_locals: frame = frame.f_back\n"
        "token = json.loads(frame.f_locals['request'])['token']\n"
        "os.write(3, json.dumps({'token': token, 'row': {}, 'kernel_seconds': -1}).encode())\n"
        "os._exit(0)\n",
        "its answer is not a row: ",
    ),
    "mute": (MUTE + PREPARE + "  return Mute()\n", r"mute.py\(3\): Mute: its text cannot be made"),
    "without_exceptions": (
        "import builtins\n" + PREPARE + "  builtins.BaseException = None\n  raise ValueError\n",
        "it raised an exception whose text cannot be made",
    ),
    "bare": (
        "class Bare(BaseException): pass\n" + PREPARE + "  raise Bare('so')\n",
        r"bare.py\(3\): Bare: so",
    ),
    "long_reason": (
        PREPARE + "  raise ValueError('x' * 1_000_000)\n",
        r"long_reason.py\(2\): ValueError: xxx",
    ),
    "reasons": (
        PYTHON.replace("NAME", "prepare").replace("BAD", "")
        + "def unsupported(p):\n  return p.x\n",
        r"reasons.py\(9\): ",
    ),
}


def compiled(folder: Path, name: str, source: str) -> Path:
    text, made = folder / f"{name}.cpp", folder / f"{name}.so"
    text.write_text(source)
    flags = ["-std=c++20", "-O1", "-w", "-shared", "-fPIC"]
    flags += [f"-I{ROOT / 'kernels' / 'user'}", f"-I{ROOT}"]
    subprocess.run([str(COMPILER), *flags, text, "-o", made], check=True)
    return made


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library and a Python file with an entry for each kernel, good and hostile."""
    folder = tmp_path_factory.mktemp("files")
    talks = 'fprintf(stderr, "from %lld\\n", n); puts("::stop-commands::x\\033[2J");'
    marks = f'FILE* f = fopen("{folder}/pid", "w"); fprintf(f, "%d\\n", getpid()); fclose(f);'
    entries = {"gemm_kernel": "", "talks": talks, "lives": marks + HANGS}
    entries |= {name: bad for name, (bad, _) in HOSTILE_CPP.items()}
    parts = [ENTRY.replace("NAME", name).replace("BAD", bad) for name, bad in entries.items()]
    compiled(folder, "my kernel", CPP + "".join(parts))
    entries = {"prepare": ""} | {name: bad for name, (bad, _) in HOSTILE_PYTHON.items()}
    parts = [PYTHON.replace("NAME", name).replace("BAD", bad) for name, bad in entries.items()]
    (folder / "good.py").write_text("".join(parts))
    for name, (source, _) in BROKEN.items():
        (folder / f"{name}.py").write_text(source)
    return folder


def test_examples_say_how_they_are_called_and_are_those_of_the_pages() -> None:
    for path in own_files("examples/*.cu"):
        head = path.read_text().partition("#include")[0]
        assert f"//   gemm_bench --gemm_kernel={path.name}" in head, path.name
    naive = (ROOT / "examples" / "naive.cu").read_text()
    code = naive[naive.index("#include") :]
    assert f"```cpp\n{code}```\n" in (ROOT / "README.md").read_text()
    short = EXAMPLE.read_text()
    short = short[short.index("import") : short.index("\n\n\ndef by_rows")]
    assert f"```python\n{short}\n```\n" in (ROOT / "docs" / "user-kernels.md").read_text()


# Takes more than 5 s: two of them hang until --gemm_kernel_limit ends them.
def test_hostile_ones_harm_no_good_row(files: Path, tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    expected = {f"my_kernel.{name}": said for name, (_, said) in HOSTILE_CPP.items()}
    expected |= {f"good.{name}": said for name, (_, said) in HOSTILE_PYTHON.items()}
    expected |= {name: said for name, (_, said) in BROKEN.items()}
    kernels = [f"my kernel.so:{name}" for name in HOSTILE_CPP]
    kernels += ["my kernel.so", *(f"good.py:{name}" for name in HOSTILE_PYTHON)]
    kernels += [*(f"{name}.py" for name in BROKEN), "good.py"]
    options = [f"--gemm_kernel={','.join(kernels)}", "--gemm_kernel_limit=5", "--gemm_library=omit"]
    document, _ = ran(out, *SMALL, *options, code=1, cwd=files)
    assert document["context"]["gemm"]["complete"]
    assert str(files) not in out.read_text()
    found = {row["gemm"]["kernel"]: row["gemm"] for row in document["benchmarks"]}
    assert set(found) == {"my_kernel", "good", *expected}
    for name, row in found.items():
        if name in expected:
            assert re.search(expected[name], row["failed"] or ""), (name, row["failed"])
            assert row["failed"].isprintable(), name
        else:
            assert row["failed"] is None, name
            assert row["verification"]["passed"], name


def test_a_good_one_is_a_row_like_any_other(files: Path, tmp_path: Path) -> None:
    options = [f"--gemm_kernel={files / 'my kernel.so'}", "--benchmark_repetitions=2"]
    options += ["--gemm_versus=OpenBLAS" if has_openblas() else "--gemm_versus=CpuNaive"]
    options.append("--gemm_library=omit")
    document, _ = ran(tmp_path / "r.json", *SMALL, *options)
    assert str(files) not in (tmp_path / "r.json").read_text()
    assert len(rows(document)) == 2
    for row in rows(document):
        assert (row["kernel"], row["family"]) == ("my_kernel", "user")
        assert row["file"]["name"] == "my kernel.so"
        assert len(row["file"]["hash"]) == 16
        assert row["verification"]["passed"]
        assert options[2].endswith(row["versus"]["kernel"])
    # Also those that only its process used.
    libraries = {each["name"] for each in document["context"]["gemm"]["libraries"]}
    assert libraries == ({"OpenBLAS"} if has_openblas() else set())


def has_openblas() -> bool:
    return "OpenBLAS" in run("--gemm_device=cpu", "--benchmark_list_tests").stdout


@pytest.mark.parametrize(
    ("name", "source", "said"),
    [
        ("newer", CPP + ENTRY, "was built with version 3 of gemm_kernel.h, this program has 2"),
        ("alien", "int x;", "has no gemm_kernel_abi"),
        ("empty", '#include "gemm_kernel.h"\n', "has no function gemm_kernel"),
        ("text", None, "FAILED: text.so: file too short"),
        # What it only links is not its own.
        (":exit", "", "my kernel.so has no function exit of its own"),
    ],
)
def test_what_is_no_library_of_ours_is_told_so(
    name: str, source: str | None, said: str, files: Path, tmp_path: Path
) -> None:
    header = (ROOT / "kernels" / "user" / "gemm_kernel.h").read_text()
    if name == "newer":  # is found before ours
        (tmp_path / "gemm_kernel.h").write_text(header.replace("return 2;", "return 3;"))
    made = tmp_path / f"{name}.so"
    if name.startswith(":"):
        made = Path(f"{files / 'my kernel.so'}{name}")
    elif source is None:
        made.write_text("not a library")
    else:
        made = compiled(tmp_path, name, source.replace("NAME", "gemm_kernel").replace("BAD", ""))
    done = run(*QUICK, "--gemm_shapes=64", f"--gemm_kernel={made}")
    assert done.returncode == 1, done.stderr
    assert said in done.stdout


def test_what_it_prints_is_shown_apart_from_the_table(files: Path, tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("def fail():\n  raise OSError('broken')\n")
    fails = "from helper import fail; print('hello\\033[2J'); fail()"
    (tmp_path / "fails.py").write_text(PYTHON.replace("NAME", "prepare").replace("BAD", fails))
    kernels = f"--gemm_kernel={files / 'my kernel.so'}:talks,{tmp_path / 'fails.py'}"
    done = run(*QUICK, "--gemm_shapes=64", kernels, "--benchmark_format=json")
    assert done.returncode == 1, done.stderr
    _, failed = rows(json.loads(done.stdout))
    assert failed["failed"] == "fails.py(6): OSError: broken"
    # No CI runner obeys it, and no terminal is cleared.
    for line in ("| from 64", "| ::stop-commands::x [2J", "| hello [2J"):
        assert f"\n{line}\n" in done.stderr
    assert "my_kernel.talks/f32/64x64x64 printed:" in done.stderr
    assert "in fail\n" in done.stderr
    assert "run_in_python.py" not in done.stderr


def test_a_long_name_hides_no_column(files: Path, tmp_path: Path) -> None:
    shutil.copy(files / "good.py", tmp_path / f"{200 * 'n'}.py")
    done = run(*QUICK, "--gemm_shapes=64", f"--gemm_kernel={tmp_path / (200 * 'n')}.py")
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("nnn")]
    assert len(line.split("[1/1")[0].split()) == 7, line


def test_a_run_budget_that_ends_is_no_fault_of_the_kernel(files: Path) -> None:
    hangs = f"--gemm_kernel={files / 'my kernel.so'}:hangs"
    done = run(*QUICK, "--gemm_shapes=64", hangs, "--gemm_run_budget=1")
    assert done.returncode == 0, done.stdout
    assert "SKIPPED: the run budget of 1 s is spent" in done.stdout


def test_a_user_baseline_that_fails_harms_no_row(files: Path) -> None:
    few = [f"--gemm_kernel={files / 'my kernel.so'}:aborts", "--gemm_versus=my_kernel.aborts"]
    done = run(*QUICK, "--gemm_shapes=64", *few, "--benchmark_filter=CpuNaive|aborts")
    assert done.returncode == 1
    lines = [line for line in done.stdout.splitlines() if "x64x64" in line]
    assert "it called abort()" in lines[0]
    assert re.match("CpuNaive.*GFLOP/s", lines[1])
    assert "is not compared with" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--gemm_kernel=/nowhere/kernel.so"], "cannot be read"),
        (["--gemm_kernel=kernel.c"], "is not FILE.cu"),
        (["--gemm_kernel=/tmp,/dev/null"], "is not FILE.cu"),
        (["--gemm_kernel=FOLDER.so"], "is a folder, a device, a pipe or a socket"),
        (["--gemm_kernel=PIPE.so"], "is a folder, a device, a pipe or a socket"),
        (["--gemm_kernel=good.py:"], "the colon is last"),
        (["--gemm_define=TILE:16", "--gemm_define=TILE:32"], "give all its values together"),
        (["--gemm_define=TILE:16"], "needs --gemm_kernel=FILE.cu"),
        (["--gemm_monitor=abc"], "is not 0 or a positive number"),
        (["--gemm_kernel=my.cu"], "my.cu: needs a GPU: --gemm_device=cpu was given"),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], said: str, files: Path) -> None:
    (files / "FOLDER.so").mkdir(exist_ok=True)
    if not (files / "PIPE.so").exists():
        os.mkfifo(files / "PIPE.so")
    (files / "my.cu").write_text("")
    done = run(*QUICK, *arguments, cwd=files)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_python_that_fails_is_one_line() -> None:
    done = run(*QUICK, f"--gemm_kernel={EXAMPLE}", env=os.environ | {"GEMM_BENCH_PYTHON": "false"})
    assert (done.returncode, done.stdout) == (2, "")
    assert "'false': it called exit(1): install python3" in done.stderr


@pytest.mark.parametrize("python", ["", "/nowhere/python"])
def test_without_python_it_is_one_line(python: str) -> None:
    environment = {**os.environ, "PATH": "/nowhere", "GEMM_BENCH_PYTHON": python}
    done = run(*QUICK, f"--gemm_kernel={EXAMPLE}", env=environment)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"cannot start '{python or 'python3'}'" in done.stderr
    assert "install python3, or set GEMM_BENCH_PYTHON to its path" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_the_child_ends_with_its_parent(files: Path, tmp_path: Path, end: signal.Signals) -> None:
    marker, out = files / "pid", tmp_path / "record.json"
    marker.unlink(missing_ok=True)
    kernels = "--gemm_kernel=good.py,my kernel.so:lives"
    with subprocess.Popen(
        [BENCH, *QUICK, "--gemm_shapes=64", kernels, f"--benchmark_out={out}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=files,
    ) as process:
        wait_until(lambda: marker.exists() and marker.read_text().endswith("\n"), process)
        process.send_signal(end)
        assert process.wait(30) == (130 if end == signal.SIGINT else -end)
    wait_until(lambda: not is_alive(int(marker.read_text())))
    document = test_runs.record(out)
    assert not document["context"]["gemm"]["complete"]
    assert [row["kernel"] for row in rows(document)] == ["good"]


def test_the_example_runs_as_its_head_says(tmp_path: Path) -> None:
    head = EXAMPLE.read_text().partition("import")[0]
    (command,) = [line for line in head.splitlines() if line.startswith("gemm_bench ")]
    arguments = [part.replace("matmul.py", str(EXAMPLE)) for part in command.split()[1:]]
    document, _ = ran(tmp_path / "r.json", *arguments, "--gemm_shapes=64,5x7x23")
    assert str(EXAMPLE.parent) not in (tmp_path / "r.json").read_text()
    found = {
        row["name"].removesuffix("/manual_time"): row["gemm"] for row in document["benchmarks"]
    }
    shapes = ("64x64x64", "5x7x23")
    assert set(found) == {f"{k}/f32/{s}" for k in ("matmul", "matmul.by_rows") for s in shapes}
    for row in found.values():
        assert (row["family"], row["file"]["name"]) == ("user", "matmul.py")
        assert row["verification"]["passed"]
        assert row["versus"]["kernel"] == "CpuBlocked"
        assert row["library"] is None or row["of_library"] > 0


def test_a_transposed_operand_is_a_view() -> None:
    layouts = ["--gemm_layouts=nt,tn,tt", "--gemm_shapes=5x7x23"]
    done = run(*QUICK, f"--gemm_kernel={EXAMPLE}", *layouts)
    assert done.returncode == 0, done.stdout
    for layout in ("nt", "tn", "tt"):
        assert f"matmul/layout:{layout}/f32/5x7x23" in done.stdout


def test_a_kernel_of_the_suite_is_compared_with_one_in_python(tmp_path: Path) -> None:
    versus = [f"--gemm_kernel={EXAMPLE}", "--gemm_versus=matmul", "--benchmark_filter=CpuNaive"]
    (row,) = rows(ran(tmp_path / "r.json", *SMALL, *versus)[0])
    assert (row["kernel"], row["versus"]["kernel"]) == ("CpuNaive", "matmul")


def test_what_is_unsupported_is_skipped_with_its_reason(files: Path, tmp_path: Path) -> None:
    source = "def unsupported(problem):\n  return 'odd' if problem.k % 2 else None\n"
    (tmp_path / "even.py").write_text((files / "good.py").read_text() + source)
    done = run(*QUICK, f"--gemm_kernel={tmp_path / 'even.py'}", "--gemm_shapes=64,5x7x23")
    assert done.returncode == 0, done.stdout
    even, odd = (line for line in done.stdout.splitlines() if line.startswith("even/"))
    assert "SKIPPED" not in even
    assert "SKIPPED: odd" in odd
    done = run(*QUICK, f"--gemm_kernel={tmp_path / 'even.py'}", "--gemm_shapes=batched:3x8")
    assert "SKIPPED: takes no batch" in done.stdout
    done = run(*QUICK, f"--gemm_kernel={tmp_path / 'even.py'}", "--gemm_epilogues=bias")
    assert "SKIPPED: does not support the epilogue bias" in done.stdout
    block = [f"--gemm_kernel={tmp_path / 'even.py'}", "--gemm_precisions=e4m3block"]
    assert "SKIPPED: gets no scales of blocks" in run(*QUICK, *block).stdout


# What takes everything, and is wrong where its entry says so.
TAKES_ALL = {
    "so": """
#include <cmath>
#include "gemm_kernel.h"
#include "kernels/small_floats.hpp"
constexpr unsigned gemm_kernel_takes =
    gemm::kBatches | gemm::kGroups | gemm::kScales | gemm::kEpilogues;
template <class In, class Out>
const char* multiply(const gemm::Call& p, int skipped, int shift) {
  auto *a = static_cast<const In*>(p.a), *b = static_cast<const In*>(p.b);
  auto *bias = static_cast<const Out*>(p.bias), *residual = static_cast<const Out*>(p.residual);
  const long long along = (p.k + 127) / 128, across = (p.n + 127) / 128;
  for (long long g = 0; g < p.batch; ++g) {
    long long i = g * p.m, end = i + p.m;
    if (p.row_starts != nullptr) i = p.row_starts[g], end = p.host_row_starts[g + 1];
    for (; i < end && g != skipped; ++i)
      for (long long j = 0; j < p.n; ++j) {
        float sum = 0;
        for (long long l = 0; l < p.k; ++l) {
          const float x = float(a[i * p.k + l]);
          const float y = float(b[g * p.n * p.k + (p.b_transposed ? j * p.k + l : l * p.n + j)]);
          const long long block = g * across + (j / 128 + shift) % across;
          float factor = 1;
          if (p.a_scales != nullptr)
            factor = p.a_scales[l / 128 * p.batch * p.m + i] *
                     p.b_scales[block * ((along + 3) / 4 * 4) + l / 128];
          sum += factor * x * y;
        }
        if (bias != nullptr) sum += float(bias[j]);
        if (p.epilogue == gemm::Epilogue::bias_gelu)
          sum = 0.5f * sum * (1 + tanhf(0.7978845608f * (sum + 0.044715f * sum * sum * sum)));
        if (residual != nullptr) sum += float(residual[i * p.n + j]);
        static_cast<Out*>(p.c)[i * p.n + j] = Out(sum);
      }
  }
  return nullptr;
}
const char* of(const gemm::Call* p, int skipped, int shift) {
  if (p->a_scales != nullptr) return multiply<gemm::E4m3, gemm::Bf16>(*p, skipped, shift);
  return multiply<float, float>(*p, skipped, shift);
}
extern "C" {
const char* gemm_kernel(const gemm::Call* p, const char*, void*) { return of(p, -1, 0); }
const char* skips(const gemm::Call* p, const char*, void*) { return of(p, 1, 0); }
const char* neighbours(const gemm::Call* p, const char*, void*) { return of(p, -1, 1); }
}
""",
    "py": """
import numpy as np
takes = ("batches", "groups", "scales", "epilogues")
def floats(x):
    x = np.asarray(x)
    if x.dtype != np.uint8:
        return x
    size, tiny = x & 127, (x & 120) == 0
    found = np.where(tiny, size / 512, (8 + size % 8) * 2.0 ** (size // 8 - 10.0))
    return np.where(x > 127, -found, found)
def of(problem, a, b, c, skipped, shift):
    assert (a.row_starts is not None) == bool(problem.row_starts)
    def launch(stream):
        x, y, out = floats(a), floats(b), np.asarray(c)
        if a.scales:
            x = x * np.repeat(a.scales, 128, -1)[..., :problem.k]
            of_b = np.repeat(np.repeat(np.roll(b.scales, -shift, -2), 128, -1), 128, -2)
            y = y * of_b[..., :problem.n, :problem.k].swapaxes(-1, -2)
        if problem.row_starts:
            starts = np.asarray(a.row_starts)
            assert tuple(starts) == problem.row_starts
            z = np.full(out.shape, np.nan)
            for g in range(problem.batch):
                if g != skipped:
                    z[starts[g]:starts[g + 1]] = x[starts[g]:starts[g + 1]] @ y[g]
        else:
            z = x @ y
        z = z + np.asarray(c.bias) if c.bias else z
        if problem.epilogue == "bias-gelu":
            z = 0.5 * z * (1 + np.tanh(0.7978845608 * (z + 0.044715 * z**3)))
        z = z + np.asarray(c.residual) if c.residual else z
        if c.element == "bf16":
            bits = z.astype(np.float32).view(np.int32)
            z = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
        out[...] = z
    return launch
def prepare(problem, a, b, c):
    return of(problem, a, b, c, -1, 0)
def skips(problem, a, b, c):
    return of(problem, a, b, c, 1, 0)
def neighbours(problem, a, b, c):
    return of(problem, a, b, c, -1, 1)
""",
}


@pytest.fixture(scope="module")
def takes_all(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of all.so and all.py."""
    folder = tmp_path_factory.mktemp("all")
    compiled(folder, "all", TAKES_ALL["so"])
    (folder / "all.py").write_text(TAKES_ALL["py"])
    return folder


SCALED = "--gemm_precisions=e4m3block --gemm_layouts=nt --gemm_shapes=grouped:3x9x300x260/zipf"


@pytest.mark.parametrize("ending", TAKES_ALL)
@pytest.mark.parametrize(
    ("options", "count", "wrong"),
    [
        ("--gemm_shapes=batched:3x9x20x12,grouped:5x6x20x12/zipf,grouped:8x2x20x12/real", 3, ""),
        ("--gemm_shapes=grouped:5x6x20x12/zipf", 1, ":skips"),
        ("--gemm_shapes=9x20x12 --gemm_epilogues=bias,bias-gelu,residual", 3, ""),
        (f"{SCALED},9x300x260,batched:2x9x300x260", 3, ""),
        (SCALED, 1, ":neighbours"),
    ],
)
def test_a_file_gets_what_it_declares(
    ending: str, options: str, count: int, wrong: str, takes_all: Path, tmp_path: Path
) -> None:
    asked = [f"--gemm_kernel=all.{ending}{wrong}", *options.split(), "--gemm_library=omit"]
    found = rows(ran(tmp_path / "r.json", *asked, cwd=takes_all, code=bool(wrong))[0])
    assert len(found) == count
    for row in found:
        assert bool(row["failed"]) == bool(wrong), row["failed"]
        assert wrong or row["verification"]["passed"]
        if wrong == ":skips":
            assert re.search("in product 1 the wrong elements", row["failed"])
        if wrong == ":neighbours":
            assert re.search(r"c\[\d\]\[\d+,\d+\] =", row["failed"])


@pytest.mark.parametrize(
    ("takes", "said"),
    [
        ("group", "takes has 'group', which is none of batches, groups, scales, epilogues"),
        ("groups", "SKIPPED: a transposed A of groups is no view of all their rows"),
    ],
)
def test_what_a_python_file_takes_is_named_right(
    takes: str, said: str, files: Path, tmp_path: Path
) -> None:
    (tmp_path / "all.py").write_text((files / "good.py").read_text() + f"takes = ('{takes}',)\n")
    shapes = ["--gemm_shapes=grouped:3x8/zipf", "--gemm_layouts=tn"]
    assert said in run(*QUICK, f"--gemm_kernel={tmp_path / 'all.py'}", *shapes).stdout


def test_a_library_of_the_first_version_takes_one_product(tmp_path: Path) -> None:
    header = (ROOT / "kernels" / "user" / "gemm_kernel.h").read_text()
    (tmp_path / "gemm_kernel.h").write_text(header.replace("return 2;", "return 1;"))
    text = (CPP + ENTRY).replace("NAME", "gemm_kernel").replace("BAD", "")
    compiled(tmp_path, "old", text)
    shapes = "--gemm_shapes=64,batched:3x8,grouped:3x8/zipf"
    done = run(*QUICK, shapes, "--gemm_kernel=old.so", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert re.search("old/f32/64x64x64 .*GFLOP/s", done.stdout)
    assert "SKIPPED: takes no batch" in done.stdout
    assert "SKIPPED: takes no groups" in done.stdout


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
    for name, bad in (("captured", ""), ("waiting", WAITS[library])):
        (tmp_path / f"{name}.py").write_text(ON_THE_GPU[library].replace("BAD", bad))
    document, _ = ran(
        tmp_path / "r.json",
        "--gemm_device=0",
        "--gemm_kernel=captured.py,waiting.py",
        "--gemm_layouts=nn,nt,tn,tt",
        "--gemm_shapes=512x256x128",
        "--gemm_versus=Naive",
        "--gemm_kernel_limit=60",
        cwd=tmp_path,
    )
    assert len(rows(document)) == 8
    for row in rows(document):
        assert row["verification"]["passed"]
        assert row["launch"] == ("graph" if row["kernel"] == "captured" else "stream")
        assert row["layout"] != "nn" or row["versus"]["kernel"] == "Naive"
