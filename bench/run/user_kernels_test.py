"""Shared libraries of a user, good and hostile, through gemm_bench on the CPU, whole."""

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from own_files import own_files

jsonschema = pytest.importorskip("jsonschema")

ROOT = Path(__file__).parents[2]
BENCH = ROOT / os.environ.get("GEMM_BENCH_BUILD", "build/release") / "gemm_bench"
QUICK = [
    "--gemm_device=cpu",
    "--gemm_warmup=0.001",
    "--gemm_sample=0.0001",
    "--gemm_sampling=0.05",
    "--gemm_peaks=nominal",
    "--benchmark_min_time=0.001s",
    "--gemm_shapes=64",
    "--gemm_cache=hot",
]
COMPILER = shutil.which("c++")

pytestmark = [
    pytest.mark.skipif(not BENCH.exists(), reason=f"{BENCH} is not built"),
    pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler"),
]

# Each computes C in the way that its name says; the macro BAD is what it does in addition.
SOURCE = """
#include <csignal>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>
#include "gemm_kernel.h"
namespace {
void product(const gemm::Call& p) {
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
}  // namespace
extern "C" const char* gemm_kernel(const gemm::Call* p, const char*, void*) {
  [[maybe_unused]] float* c = static_cast<float*>(p->c);
  [[maybe_unused]] const long long n = p->n;
  [[maybe_unused]] const auto swap = [&](long long i, long long j) {
    const float kept = c[i * n + j];
    c[i * n + j] = c[j * n + i];
    c[j * n + i] = kept;
  };
  product(*p);
  BAD
  return nullptr;
}
"""
HOSTILE = {
    "hangs": ("for (;;) usleep(1000);", "did not end within 5 s: raise --gemm_kernel_limit"),
    "reads": (
        'char x; if (read(0, &x, 1) != 0) abort(); return "stdin is empty";',
        "stdin is empty",
    ),
    "segfaults": ("*reinterpret_cast<volatile int*>(8) = 1;", "Segmentation fault"),
    "exits": ("exit(0);", "it called exit(0)"),
    "aborts": ("abort();", "it called abort()"),
    "killed": ("raise(SIGKILL);", "memory ran out"),
    "forges": ('dprintf(3, "{}"); _exit(0);', "wrote to the descriptor of the result"),
    "complains_at_length": (
        "static char text[9000]; for (int i = 0; i < 8999; ++i) text[i] = 'x'; return text;",
        "xxx...",
    ),
    "complains": ('return "only multiples of 128\\n\\033[2Jand so on";', "only multiples of 128"),
    "nans": ("for (int i = 0; i < 64 * n; ++i) c[i] = NAN;", "are NaN, everywhere"),
    "is_wrong": ("c[64 * 3 + 5] += 1;", "c[3,5] ="),
    "transposes": (
        "for (int i = 0; i < n; ++i) for (int j = 0; j < i; ++j) swap(i, j);",
        "hold the transpose",
    ),
    "doubles": ("for (int i = 0; i < 64 * n; ++i) c[i] *= 2;", "are 2 times what they should be"),
    "writes_outside": ("c[64 * n] = 1;", "wrote outside C: byte 1 past its end"),
}


def library(folder: Path, name: str, bad: str = "", source: str = SOURCE) -> Path:
    text = folder / f"{name}.cpp"
    text.write_text(source.replace("BAD", bad))
    made = folder / f"{name}.so"
    subprocess.run(
        [
            *(str(COMPILER), "-std=c++20", "-O1", "-w", "-shared", "-fPIC"),
            *("-I", ROOT / "kernels" / "user", text, "-o", made),
        ],
        check=True,
    )
    return made


def run(*arguments: str, **kwargs: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [BENCH, *QUICK, *arguments],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        **kwargs,
    )


def failure(made: Path, *arguments: str) -> str:
    done = run(f"--gemm_kernel={made}", *arguments)
    assert done.returncode == 1, done.stderr
    name = made.name.partition(".so")[0]
    (line,) = [line for line in done.stdout.splitlines() if line.startswith(name)]
    return line


def test_examples_say_how_they_are_called_and_the_first_is_that_of_the_readme() -> None:
    for path in own_files("examples/*.cu"):
        head = path.read_text().partition("#include")[0]
        assert f"//   gemm_bench --gemm_kernel={path.name}" in head, path.name
    naive = (ROOT / "examples" / "naive.cu").read_text()
    code = naive[naive.index("#include") :]
    assert f"```cpp\n{code}```\n" in (ROOT / "README.md").read_text()


def test_a_good_one_is_a_row_like_any_other(tmp_path: Path) -> None:
    made = library(tmp_path, "my kernel")
    out = tmp_path / "record.json"
    done = run(
        f"--gemm_kernel={made}",
        "--gemm_versus=CpuNaive",
        "--benchmark_repetitions=2",
        f"--benchmark_out={out}",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    document = json.loads(out.read_text())
    jsonschema.validate(document, json.loads((ROOT / "results" / "schema.json").read_text()))
    assert str(tmp_path) not in out.read_text()
    rows = [row for row in document["benchmarks"] if row["run_type"] == "iteration"]
    assert len(rows) == 2
    for row in rows:
        gemm = row["gemm"]
        assert (gemm["kernel"], gemm["family"]) == ("my_kernel", "user")
        assert gemm["file"]["name"] == "my kernel.so"
        assert len(gemm["file"]["hash"]) == 16
        assert gemm["verification"]["passed"]
        assert gemm["versus"]["kernel"] == "CpuNaive"
        assert gemm["library"] is None or row["%library"] > 0


def test_a_library_that_only_its_process_used_is_named(tmp_path: Path) -> None:
    if "OpenBLAS" not in run("--benchmark_list_tests").stdout:
        pytest.skip("built without OpenBLAS")
    out = tmp_path / "record.json"
    done = run(
        f"--gemm_kernel={library(tmp_path, 'mine')}",
        "--gemm_library=omit",
        "--gemm_versus=OpenBLAS",
        f"--benchmark_out={out}",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = json.loads(out.read_text())["context"]["gemm"]["libraries"]
    assert found["name"] == "OpenBLAS"


# Takes more than 5 s: one of them hangs until --gemm_kernel_limit ends it.
def test_all_hostile_ones_in_one_run_harm_no_good_row(tmp_path: Path) -> None:
    files = [library(tmp_path, name, bad) for name, (bad, _) in HOSTILE.items()]
    files.insert(3, library(tmp_path, "good"))
    files.append(library(tmp_path, "good_at_last"))
    out = tmp_path / "record.json"
    done = run(
        "--gemm_kernel=" + ",".join(str(file) for file in files),
        "--gemm_kernel_limit=5",
        "--benchmark_filter=CpuNaive|good|" + "|".join(HOSTILE),
        f"--benchmark_out={out}",
    )
    assert done.returncode == 1
    document = json.loads(out.read_text())
    assert document["context"]["gemm"]["complete"]
    rows = {row["gemm"]["kernel"]: row["gemm"] for row in document["benchmarks"]}
    assert set(rows) == {"CpuNaive", "good", "good_at_last", *HOSTILE}
    for name, row in rows.items():
        if name in HOSTILE:
            assert HOSTILE[name][1] in (row["failed"] or ""), name
            assert row["failed"].isprintable(), name
        else:
            assert row["failed"] is None, name
            assert row["verification"]["passed"], name


def test_another_abi_is_refused(tmp_path: Path) -> None:
    other = SOURCE.replace('"gemm_kernel.h"', '"other.h"')
    header = (ROOT / "kernels" / "user" / "gemm_kernel.h").read_text()
    (tmp_path / "other.h").write_text(header.replace("return 1;", "return 2;"))
    said = failure(library(tmp_path, "newer", source=other))
    assert "was built with version 2 of gemm_kernel.h, this program has 1" in said


def test_what_is_no_library_of_ours_is_told_so(tmp_path: Path) -> None:
    assert "has no gemm_kernel_abi" in failure(library(tmp_path, "alien", source="int x;"))
    no_entry = '#include "gemm_kernel.h"\n'
    assert "has no function gemm_kernel" in failure(library(tmp_path, "empty", source=no_entry))
    text = tmp_path / "text.so"
    text.write_text("not a library")
    assert "FAILED: text.so: file too short" in failure(text)


def test_the_entry_may_be_named(tmp_path: Path) -> None:
    source = SOURCE.replace("* gemm_kernel(", "* other(")
    made = library(tmp_path, "two", "if (n < 0) exit(1);", source)
    done = run(f"--gemm_kernel={made}:other")
    assert done.returncode == 0, done.stdout
    assert "two.other/f32/64x64x64" in done.stdout
    # What it only links is not its own.
    assert "two.so has no function exit of its own" in failure(Path(f"{made}:exit"))


def test_what_it_prints_is_shown_apart_from_the_table(tmp_path: Path) -> None:
    talks = 'fprintf(stderr, "from %lld\\n", n); puts("::stop-commands::x\\033[2J");'
    done = run(f"--gemm_kernel={library(tmp_path, 'talks', talks)}", "--benchmark_format=json")
    assert done.returncode == 0, done.stderr
    json.loads(done.stdout)
    assert "talks/f32/64x64x64 printed:" in done.stderr
    assert "\n| from 64\n" in done.stderr
    # No CI runner obeys it, and no terminal is cleared.
    assert "\n| ::stop-commands::x [2J\n" in done.stderr


def test_a_long_name_hides_no_column(tmp_path: Path) -> None:
    done = run(f"--gemm_kernel={library(tmp_path, 200 * 'n')}")
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("nnn")]
    assert len(line.split("[1/1")[0].split()) == 7, line


def test_a_run_budget_that_ends_is_no_fault_of_the_kernel(tmp_path: Path) -> None:
    made = library(tmp_path, "hangs", HOSTILE["hangs"][0])
    done = run(f"--gemm_kernel={made}", "--gemm_run_budget=1.5", "--benchmark_filter=hangs")
    assert done.returncode == 0, done.stdout
    assert "SKIPPED: the run budget of 1.5 s is spent" in done.stdout


def test_a_user_baseline_that_fails_harms_no_row(tmp_path: Path) -> None:
    made = library(tmp_path, "hostile", HOSTILE["segfaults"][0])
    done = run(
        f"--gemm_kernel={made}", "--benchmark_filter=CpuNaive|hostile", "--gemm_versus=hostile"
    )
    assert done.returncode == 1
    lines = [line for line in done.stdout.splitlines() if "x64x64" in line]
    assert "Segmentation fault" in lines[0]
    assert "CpuNaive" in lines[1]
    assert "GFLOP/s" in lines[1]
    assert "is not compared with" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--gemm_kernel=/nowhere/kernel.so"], "cannot be read"),
        (["--gemm_kernel=kernel.c"], "is not FILE.cu"),
        ([f"--gemm_kernel={Path(__file__).with_suffix('.txt')}"], "is not FILE.cu"),
        (["--gemm_kernel="], "is not a list of files"),
        (["--gemm_define=TILE"], "is not NAME:VALUE"),
        (["--gemm_define=TILE:1,,2"], "is not NAME:VALUE"),
        (["--gemm_define=1A:3"], "NAME must be a C identifier"),
        (["--gemm_define=TILE:16,16"], "a value is repeated"),
        (["--gemm_define=TILE:16", "--gemm_define=TILE:32"], "give all its values together"),
        (["--gemm_kernel=/tmp,/dev/null"], "is not FILE.cu"),
        (["--gemm_define=TILE:16"], "needs --gemm_kernel=FILE.cu"),
        (["--gemm_watch"], "needs --gemm_kernel=FILE"),
        (["--gemm_monitor=abc"], "is not 0 or a positive number"),
        (["--gemm_kernel_limit=0"], "is not a positive number"),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], said: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_source_without_a_gpu_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "my.cu").write_text("")
    done = run(f"--gemm_kernel={tmp_path / 'my.cu'}")
    assert done.returncode == 2
    assert "my.cu: needs a GPU: --gemm_device=cpu was given" in done.stderr


def test_watch_runs_again_when_the_file_is_saved(tmp_path: Path) -> None:
    made = library(tmp_path, "watched", HOSTILE["doubles"][0])
    with subprocess.Popen(
        [BENCH, *QUICK, f"--gemm_kernel={made}", "--gemm_watch"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        first = next(line for line in process.stdout if line.startswith("watched"))
        assert "are 2 times" in first
        time.sleep(0.3)
        library(tmp_path, "saved").replace(made)
        second = next(line for line in process.stdout if line.startswith("watched"))
        assert "FAILED" not in second
        process.send_signal(signal.SIGINT)
        process.stdout.read()
    assert process.returncode == 130


def test_a_child_dies_with_its_parent(tmp_path: Path) -> None:
    marker = tmp_path / "pid"
    bad = f'if (FILE* f = fopen("{marker}", "w")) {{ fprintf(f, "%d\\n", getpid()); fclose(f); }}'
    made = library(tmp_path, "orphan", bad + HOSTILE["hangs"][0])
    process = subprocess.Popen(
        [BENCH, *QUICK, f"--gemm_kernel={made}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
    )
    deadline = time.monotonic() + 60
    while not (marker.exists() and marker.read_text().endswith("\n")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.kill()
    process.wait()
    status = Path(f"/proc/{int(marker.read_text())}/stat")
    while status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < deadline
        time.sleep(0.05)
