"""tools/gate as a person meets it, in a repository whose gemm_bench only pretends."""

import fcntl
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECORD = ROOT / "report" / "gemm_report" / "testdata" / "gpu.json"

# Stands in for CMake: what it builds writes the record of its sources,
# a little different each time.
CMAKE = """#!/usr/bin/env bash
case "$*" in
  *--version*) echo "cmake version 3.31.0" ;;
  *--preset*) [[ ! -e broken ]] ;;
  *--build*)
    [[ ! -e results ]] || exit 1
    mkdir -p "$2"
    sed "s|@SOURCES@|$PWD|" measure.py >"$2/gemm_bench"
    chmod +x "$2/gemm_bench" ;;
esac
"""
# Python under any name: a path after #! must not have a space, so sh starts it.
MEASURE = f"""#!/bin/sh
'''exec' "{sys.executable}" "$0" "$@"
' '''
import json, os, pathlib, random, sys
sources = pathlib.Path("@SOURCES@")
if sys.argv[1:] == ["--help"]:
    print("" if (sources / "old").exists() else "  --gemm_plans=FILE")
    sys.exit()
out = next(a.partition("=")[2] for a in sys.argv if a.startswith("--benchmark_out="))
with open(os.environ["LOG"], "a") as log:
    print(out, file=log)
with open(os.environ["LOG"] + ".plans", "a") as log:
    print(*[a.partition("=")[2] for a in sys.argv if a.startswith("--gemm_plans=")], file=log)
with open(os.environ["LOG"] + ".arguments", "a") as log:
    print(*sys.argv[1:], file=log)
kernel = next((a.partition("=")[2] for a in sys.argv if a.startswith("--gemm_kernel=")), None)
if kernel and not pathlib.Path(kernel).is_file():
    sys.exit(2)
document = json.loads((sources / "record.json").read_text())
for benchmark in document["benchmarks"]:
    if benchmark.get("gemm", {{}}).get("seconds"):
        said = pathlib.Path(kernel or sources / "factor").read_text()
        factor = float(said) * random.uniform(0.9999, 1.0001)
        row = benchmark["gemm"]
        row["seconds"] = {{key: factor * value for key, value in row["seconds"].items()}}
        row["samples_seconds"] = [factor * sample for sample in row["samples_seconds"]]
        row["flop_per_second"] /= factor
pathlib.Path(out).write_text(json.dumps(document))
sys.exit(int((sources / "status").read_text()))
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with one commit, in which everything is as fast as in RECORD."""
    root = tmp_path / "project"
    for name in ("tools", "report"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    (root / "tools" / "setup").write_text(
        "#!/bin/sh\necho export CUDA=OFF PYTHON=$PYTHON\n", encoding="utf-8"
    )
    program = tmp_path / "bin" / "cmake"
    program.parent.mkdir()
    program.write_text(CMAKE, encoding="utf-8")
    program.chmod(0o755)
    document = json.loads(RECORD.read_text(encoding="utf-8"))
    benchmarks = document["benchmarks"]
    document["benchmarks"] = [b for b in benchmarks if not (b.get("gemm") or {}).get("failed")]
    (root / "record.json").write_text(json.dumps(document), encoding="utf-8")
    for name, text in {"measure.py": MEASURE, "factor": "1", "status": "0"}.items():
        (root / name).write_text(text, encoding="utf-8")
    (root / ".gitignore").write_text("build\n__pycache__\n", encoding="utf-8")
    git(root, "init", "--quiet", "--initial-branch=main")
    git(root, "add", "--all")
    git(root, "-c", "user.name=n", "-c", "user.email=e", "commit", "--quiet", "-m", "one")
    return root


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", root, *arguments], check=True)


def gate(
    project: Path, *arguments: str, tool: str = "gate", folder: Path | None = None, **more: str
) -> subprocess.CompletedProcess[str]:
    variables = {
        "PATH": f"{project.parent / 'bin'}:{os.environ['PATH']}",
        "LOG": str(project.parent / "log"),
        "PYTHON": sys.executable,
    }
    return subprocess.run(
        [project / "tools" / tool, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **variables, **more},
    )


def runs(project: Path) -> list[str]:
    lines = (project.parent / "log").read_text(encoding="utf-8").splitlines()
    return ["/".join(Path(line).parts[-2:]) for line in lines]


def test_both_sides_are_interleaved(project: Path) -> None:
    done = gate(project, "main", "-n", "2", "-o", str(project.parent / "out"))
    assert done.returncode == 2, done.stderr
    assert "3 runs per side are needed" in " ".join(done.stdout.split())
    assert runs(project) == ["base/1.json", "new/1.json", "new/2.json", "base/2.json"]


def plan_files(project: Path) -> list[str]:
    lines = (project.parent / "log.plans").read_text(encoding="utf-8").splitlines()
    return [Path(line).name for line in lines]


def test_each_side_has_a_file_of_plans_of_its_own(project: Path) -> None:
    gate(project, "main", "-n", "2", "-o", str(project.parent / "out"))
    base, new = "plans-base.json", "plans-new.json"
    assert plan_files(project) == [base, new, new, base]


def test_a_file_of_plans_that_is_given_serves_both_sides(project: Path) -> None:
    gate(project, "main", "-n", "1", "--gemm_plans=mine.json")
    assert plan_files(project) == ["mine.json", "mine.json"]


def test_a_commit_without_files_of_plans_runs(project: Path) -> None:
    (project / "old").touch()
    git(project, "add", "--all")
    git(project, "-c", "user.name=n", "-c", "user.email=e", "commit", "--quiet", "-m", "two")
    (project / "old").unlink()
    gate(project, "main", "-n", "1")
    assert plan_files(project) == ["", "plans-new.json"]


def test_without_options_the_fastest_kernels_run_alone(project: Path) -> None:
    gate(project, "main", "-n", "1")
    gate(project, "main", "-n", "1", "--benchmark_filter=Tiled")
    log = project.parent / "log.arguments"
    given = log.read_text(encoding="utf-8").splitlines()
    assert len(given) == 4
    for arguments in given[:2]:
        assert "--benchmark_filter=^(Best|CpuBlocked)/" in arguments
        assert "--gemm_library=omit" in arguments
    for arguments in given[2:]:
        assert "Best" not in arguments
        assert "--benchmark_filter=Tiled" in arguments
    gate(project, "main", "-n", "1", "--gemm_device=cpu")  # which says not what is measured
    assert "Best" in log.read_text(encoding="utf-8").splitlines()[-1]


def test_a_slower_tree_exits_with_1(project: Path) -> None:
    (project / "factor").write_text("1.5", encoding="utf-8")
    done = gate(project, "main", "-n", "1", "--", "--markdown=-")
    assert done.returncode == 1, done.stderr
    assert "slower" in done.stdout


def test_a_kernel_of_the_tree_is_measured_on_each_side(project: Path) -> None:
    git(project, "mv", "factor", "my.cu")
    git(project, "-c", "user.name=n", "-c", "user.email=e", "commit", "--quiet", "-m", "kernel")
    (project / "my.cu").write_text("1.5", encoding="utf-8")
    done = gate(project, "main", "-n", "3", "--gemm_kernel=my.cu")
    assert done.returncode == 1, done.stderr
    done = gate(project, "main", "-n", "1", "--gemm_kernel=none.cu")
    assert done.returncode == 3


def test_a_kernel_of_another_repository_is_measured_as_it_was(project: Path) -> None:
    """From a folder of it, with a program that is built already."""
    built = project.parent / "built"
    built.mkdir()
    program = MEASURE.replace("@SOURCES@", str(project))
    (built / "gemm_bench").write_text(program, encoding="utf-8")
    (built / "gemm_bench").chmod(0o755)
    theirs = project.parent / "theirs"
    (theirs / "kernels").mkdir(parents=True)
    (theirs / "kernels" / "my.cu").write_text("1", encoding="utf-8")
    git(theirs, "init", "--quiet", "--initial-branch=main")
    git(theirs, "add", "--all")
    git(theirs, "-c", "user.name=n", "-c", "user.email=e", "commit", "--quiet", "-m", "one")

    def compared(*arguments: str) -> subprocess.CompletedProcess[str]:
        more = {"tool": "kernel_gate", "GEMM_BENCH_BUILD": str(built)}
        return gate(project, *arguments, folder=theirs / "kernels", **more)

    assert compared("main", "my.cu").returncode == 0
    (theirs / "kernels" / "my.cu").write_text("1.5", encoding="utf-8")
    markdown = project.parent / "comment.md"
    done = compared("main", "my.cu", "--gemm_shapes=64", "--", f"--markdown={markdown}")
    assert done.returncode == 1, done.stderr
    assert "slower" in markdown.read_text(encoding="utf-8")
    (theirs / "kernels" / "new.cu").write_text("1", encoding="utf-8")
    for arguments, said in (
        (["main"], "give a commit and a kernel"),
        (["main", "none.cu"], "is no file"),
        (["main", "new.cu"], "is not in main"),
        (["nowhere", "my.cu"], "no such commit"),
        (["main", "my.cu", "--gemm_kernel=x"], "give KERNEL"),
    ):
        done = compared(*arguments)
        assert done.returncode == 3, done.stderr
        assert said in done.stderr


def test_one_process_of_a_side_is_not_enough(project: Path) -> None:
    done = gate(project, "main", "-n", "1")
    assert done.returncode == 2, done.stderr
    assert "NOT ENOUGH DATA: " in done.stdout
    assert gate(project, "main", "-n", "1", "--", "--require-power=30").returncode == 0


def test_a_wrong_kernel_is_reported_by_the_comparison(project: Path) -> None:
    (project / "status").write_text("1", encoding="utf-8")
    shutil.copy(RECORD, project / "record.json")
    assert gate(project, "main", "-n", "3").returncode == 5


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no commit"),
        (["nowhere"], "nowhere: no such commit"),
        (["main", "-n", "0"], "from 1 to 99"),
        (["main", "-o", ""], "-o needs a value"),
        (["main", "main"], "a second commit"),
        (["main", "-o", "."], "exists: give another"),
        (["main", "--benchmark_out=x"], "its own record"),
        (["main", "--gemm_kernel=/my.so"], "both sides would measure the same file"),
    ],
)
def test_bad_input_gives_one_line_and_3(project: Path, arguments: list[str], said: str) -> None:
    arguments = [str(project) if each == "." else each for each in arguments]
    done = gate(project, *arguments)
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
    assert said in done.stderr
    assert not (project.parent / "log").exists()


def test_the_base_has_no_records_of_the_project(project: Path) -> None:
    (project / "results").mkdir()
    (project / "results" / "one.json").write_text("{}", encoding="utf-8")
    git(project, "add", "--all")
    git(project, "-c", "user.name=n", "-c", "user.email=e", "commit", "--quiet", "-m", "two")
    (project / "results" / "one.json").unlink()
    (project / "results").rmdir()
    assert gate(project, "main", "-n", "3").returncode == 0


def test_a_tree_that_cannot_be_written_is_named(project: Path) -> None:
    (project / "build").touch()
    done = gate(project, "main")
    assert (done.returncode, done.stderr.count("\n")) == (3, 1)
    assert "build/gate: cannot be written" in done.stderr


def test_a_second_gate_is_refused(project: Path) -> None:
    assert gate(project, "main", "-n", "3").returncode == 0
    with (project / "build" / "gate" / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = gate(project, "main", "-n", "1")
        assert done.returncode == 3
        assert "another gate" in done.stderr
    assert gate(project, "main", "-n", "3").returncode == 0


def test_a_side_that_cannot_be_built_or_run_exits_with_3(project: Path) -> None:
    (project / "broken").touch()
    done = gate(project, "main", "-n", "1")
    assert done.returncode == 3
    assert "cannot be built" in done.stderr.splitlines()[-1]
    (project / "broken").unlink()
    (project / "status").write_text("2", encoding="utf-8")
    done = gate(project, "main", "-n", "1")
    assert done.returncode == 3
    assert "new, process 1 of 1 ended with 2" in done.stderr.splitlines()[-1]
