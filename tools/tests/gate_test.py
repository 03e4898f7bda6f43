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
given = dict(a.split("=", 1) for a in sys.argv[1:] if "=" in a)
with open(os.environ["LOG"], "a") as log:
    print(json.dumps(given), file=log)
kernel = given.get("--gemm_kernel")
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
pathlib.Path(given["--benchmark_out"]).write_text(json.dumps(document))
sys.exit(int((sources / "status").read_text()))
"""


def git(root: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=n", "-c", "user.email=e")
    subprocess.run(["git", *identity, "-C", root, *arguments], check=True)


def commit(root: Path) -> None:
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "-m", "one")


def write(path: Path, text: str, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with one commit, in which everything is as fast as in RECORD."""
    root = tmp_path / "project"
    for name in ("tools", "report"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    write(root / "tools/setup", "#!/bin/sh\necho \"export CUDA=OFF PYTHON='$PYTHON'\"\n", 0o755)
    write(tmp_path / "bin" / "cmake", CMAKE, 0o755)
    document = json.loads(RECORD.read_text(encoding="utf-8"))
    benchmarks = document["benchmarks"]
    document["benchmarks"] = [b for b in benchmarks if not (b.get("gemm") or {}).get("failed")]
    files = {"measure.py": MEASURE, "factor": "1", "my.cu": "1", "status": "0"}
    files |= {"record.json": json.dumps(document), ".gitignore": "build\n__pycache__\n"}
    for name, text in {**files, "results/one.json": "{}"}.items():
        write(root / name, text)
    git(tmp_path, "init", "--quiet", "--initial-branch=main", str(root))
    commit(root)
    shutil.rmtree(root / "results")  # with which nothing can be built
    return root


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
        timeout=300,
        check=False,
        env={**os.environ, **variables, **more},
    )


def runs(project: Path) -> list[dict[str, str]]:
    """The options of each run."""
    lines = (project.parent / "log").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_both_sides_are_interleaved(project: Path) -> None:
    done = gate(project, "main", "-n", "2", "-o", str(project.parent / "out"))
    assert done.returncode == 2, done.stderr
    assert "3 runs per side are needed" in " ".join(done.stdout.split())
    ran = runs(project)
    records = ["/".join(Path(one["--benchmark_out"]).parts[-2:]) for one in ran]
    assert records == ["base/1.json", "new/1.json", "new/2.json", "base/2.json"]
    plans = [Path(one["--gemm_plans"]).name for one in ran]
    assert plans == [f"plans-{side}.json" for side in ("base", "new", "new", "base")]
    for one in ran:
        assert one["--benchmark_filter"] == "^(Best|CpuBlocked)/"
        assert one["--gemm_library"] == "omit"


def test_what_is_given_serves_both_sides(project: Path) -> None:
    write(project / "old", "")
    commit(project)
    (project / "old").unlink()
    gate(project, "main", "-n", "1", "--benchmark_filter=Tiled")
    gate(project, "main", "-n", "1", "--gemm_plans=mine.json", "--gemm_device=cpu")
    plans = [Path(one.get("--gemm_plans", "")).name for one in runs(project)]
    assert plans == ["", "plans-new.json", "mine.json", "mine.json"], "the commit knows no plans"
    filters = [one["--benchmark_filter"] for one in runs(project)]
    assert filters[:2] == ["Tiled", "Tiled"] and "Best" in filters[3]


# What the tree has that the commit has not, the options, and what comes out.
OUTCOMES = {
    "equal": ({}, ["-n", "3"], 0, ""),
    "slower": ({"factor": "1.5"}, ["-n", "1", "--", "--markdown=-"], 1, "slower"),
    "one process is not enough": ({}, ["-n", "1"], 2, "NOT ENOUGH DATA: "),
    "unless large changes will do": ({}, ["-n", "1", "--", "--require-power=30"], 0, ""),
    "wrong": ({"status": "1", "record.json": RECORD.read_text("utf-8")}, ["-n", "3"], 5, ""),
    "a kernel of the tree": ({"my.cu": "1.5"}, ["-n", "3", "--gemm_kernel=my.cu"], 1, "slower"),
    "a kernel that is not there": ({}, ["-n", "1", "--gemm_kernel=none.cu"], 3, "ended with 2"),
    "not built": ({"broken": ""}, ["-n", "1"], 3, "cannot be built"),
    "not run": ({"status": "2"}, ["-n", "1"], 3, "new, process 1 of 1 ended with 2"),
}


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_outcomes(project: Path, outcome: str) -> None:
    changed, options, code, said = OUTCOMES[outcome]
    for name, text in changed.items():
        write(project / name, text)
    done = gate(project, "main", *options)
    assert done.returncode == code, done.stderr
    assert said in (done.stderr.splitlines()[-1] if code == 3 else done.stdout)


def test_a_kernel_of_another_repository_is_measured_as_it_was(project: Path) -> None:
    """From a folder of it, with a program that is built already."""
    built, theirs = project.parent / "built", project.parent / "theirs"
    write(built / "gemm_bench", MEASURE.replace("@SOURCES@", str(project)), 0o755)
    write(theirs / "kernels" / "my.cu", "1")
    git(project.parent, "init", "--quiet", "--initial-branch=main", str(theirs))
    commit(theirs)
    write(theirs / "kernels" / "my.cu", "1.5")
    write(theirs / "kernels" / "new.cu", "1")
    markdown = project.parent / "comment.md"
    for arguments, code, said in (
        (["main", "my.cu", "--gemm_shapes=64", "--", f"--markdown={markdown}"], 1, ""),
        (["main"], 3, "give a commit and a kernel"),
        (["main", "none.cu"], 3, "is no file"),
        (["main", "new.cu"], 3, "is not in main"),
        (["nowhere", "my.cu"], 3, "no such commit"),
        (["main", "my.cu", "--gemm_kernel=x"], 3, "give KERNEL"),
    ):
        more = {"tool": "kernel_gate", "GEMM_BENCH_BUILD": str(built)}
        done = gate(project, *arguments, folder=theirs / "kernels", **more)
        assert done.returncode == code, done.stderr
        assert said in done.stderr
    assert "slower" in markdown.read_text(encoding="utf-8")


BAD = (
    ([], "no commit"),
    (["nowhere"], "nowhere: no such commit"),
    (["main", "-n", "0"], "from 1 to 99"),
    (["main", "-o", ""], "-o needs a value"),
    (["main", "main"], "a second commit"),
    (["main", "-o", "."], "exists: give another"),
    (["main", "--benchmark_out=x"], "its own record"),
    (["main", "--gemm_kernel=/my.so"], "both sides would measure the same file"),
    (["main", "-o", "LOCKED"], "another gate"),
    (["main", "-o", "READ-ONLY"], "build/gate: cannot be written"),
)


def test_bad_input_gives_one_line_and_3(project: Path) -> None:
    lock = project / "build" / "gate" / "lock"
    write(lock, "")
    for arguments, said in BAD:
        with lock.open() as held:
            if "LOCKED" in arguments:
                fcntl.flock(held, fcntl.LOCK_EX)
            if "READ-ONLY" in arguments:
                shutil.rmtree(project / "build")
                write(project / "build", "")
            done = gate(project, *arguments, folder=project)
        assert (done.returncode, done.stderr.count("\n")) == (3, 1), arguments
        assert said in done.stderr
        assert not (project.parent / "log").exists()
