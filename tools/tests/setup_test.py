"""tools/setup with a Python without modules and with empty wheels."""

import re
import shutil
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not find_spec("pip"), reason="this Python has no pip")

ROOT = Path(__file__).parents[2]
PINS = dict(
    re.findall(r"^([\w-]+)==(\S+)", (ROOT / "tools" / "requirements.lock").read_text("utf-8"), re.M)
)
# The commands that the script calls; PATH has no other Python, no apt-get and no uv.
CALLED = ("bash", "cat", "cut", "dirname", "env", "grep", "head", "ln", "mv", "readlink", "rm")
CALLED += ("sed", "sort")
MODULES = ("msgspec", "matplotlib", "jinja2", "numpy", "scipy")
OF_TESTS = ("pytest", "jsonschema", "selenium", "syrupy", "pytest-xdist", "mypy")
OF_TESTS += ("codespell", "mkdocs-material")
PYTHON = f"""case "$*" in
  *"-m pip"* | *"-m venv"*) echo "$@" >>"$CALLS" ;;
esac
case "$*" in
  # Its own pip takes seconds to install; this one's can install into it.
  *"-m venv"*) [ "$WITH_PIP" ] || set -- "$@" --without-pip; exec "{sys.executable}" "$@" ;;
  *"-m pip"*) exec "{sys.executable}" "$@" ;;
esac
exec "{sys.executable}" -S "$@"
"""


def wheel(folder: Path, name: str, version: str, *files: str) -> None:
    stem = f"{name.replace('-', '_')}-{version}"
    texts = dict.fromkeys((f"{name}.py", *files, f"{stem}.dist-info/RECORD"), "")
    says = {"METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"}
    says["WHEEL"] = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as archive:
        for file, text in (texts | {f"{stem}.dist-info/{k}": v for k, v in says.items()}).items():
            archive.writestr(file, text)


def quoted(path: Path) -> str:
    """As printf %q prints it."""
    return str(path).replace(" ", "\\ ")


class Machine:
    """A checkout in a folder with a space, a PATH and wheels of some modules."""

    def __init__(self, folder: Path) -> None:
        self.root, self.wheels, self.calls = folder / "a clone", folder / "wheels", folder / "calls"
        shutil.copytree(
            ROOT / "tools", self.root / "tools", ignore=shutil.ignore_patterns("gemm_*")
        )
        self.wheels.mkdir()
        self.bin = folder / "bin"
        self.bin.mkdir()
        for name in CALLED:
            (self.bin / name).symlink_to(shutil.which(name) or "")
        self.program("python3", PYTHON)

    def program(self, name: str, does: str) -> None:
        (self.bin / name).write_text(f"#!/bin/sh\n{does}\n", encoding="utf-8")
        (self.bin / name).chmod(0o755)

    def programs(self, nvcc: str) -> None:
        """What building and linting need, and an nvcc of this release."""
        for name in ("c++", "ninja", "git", "chromedriver"):
            self.program(name, "true")
        self.program("cmake", "echo cmake version 3.31.10")
        self.program("nvcc", f"echo release {nvcc}")
        for linter in ("ruff", "clang-format"):
            self.program(linter, f"echo {linter} {PINS[linter]}")

    def add_wheels(self, *modules: str) -> None:
        for name in modules:
            wheel(self.wheels, name, PINS.get(name, "1.0"))

    def setup(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": str(self.bin), "CALLS": str(self.calls), "HOME": str(self.bin)}
        environment |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": self.wheels.as_uri(), **variables}
        return subprocess.run(
            [self.root / "tools" / "setup", *arguments],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
        )

    def venv(self, *options: str) -> Path:
        subprocess.run([sys.executable, "-m", "venv", *options, self.root / ".venv"], check=True)
        return self.root / ".venv"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_help_needs_no_modules(machine: Machine) -> None:
    for arguments in (["history", "--help"], ["-h"]):
        done = machine.setup("report", *arguments)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("export PYTHON=/")
    assert not machine.calls.exists()


def test_missing_modules_are_listed_and_installed_once(machine: Machine) -> None:
    machine.add_wheels(*MODULES)
    # What else PYTHON and PIP variables say does not reach it.
    odd = {
        "WITH_PIP": "1",
        "PYTHONHOME": "/nonexistent",
        "PYTHONPATH": str(machine.bin),
        "PIP_USER": "1",
    }
    (machine.bin / "random.py").write_text("raise SystemExit(9)\n", encoding="utf-8")
    done = machine.setup("report", "compare", **odd)
    assert done.stdout == f"export PYTHON={quoted(machine.root)}/.venv/bin/python3\n", done.stderr
    assert f"pip installs into .venv: {' '.join(MODULES)}" in done.stderr
    done = machine.setup("report", "compare", **odd)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_users_venv_is_used_and_kept(machine: Machine) -> None:
    machine.add_wheels(*MODULES)
    mine = machine.venv("--without-pip") / "mine"
    mine.touch()
    done = machine.setup("report", "figures")
    assert "/.venv/bin/python" in done.stdout, done.stderr
    assert mine.exists()
    assert f"--python {machine.root}/.venv/bin/python install" in machine.calls.read_text("utf-8")
    for python in (machine.root / ".venv" / "bin").glob("python*"):
        python.unlink()
    done = machine.setup("report", "figures")
    assert ".venv, which tools/setup did not make, has no working Python 3.11" in done.stderr
    assert mine.exists()


@pytest.mark.parametrize("can_be_made", [True, False])
def test_its_own_venv_is_replaced_only_if_another_can_be_made(
    machine: Machine, can_be_made: bool
) -> None:
    machine.add_wheels(*MODULES)
    venv = machine.venv("--without-pip")
    (venv / "made_by_tools_setup").write_text("/elsewhere/.venv\n", encoding="utf-8")
    (venv / "old").touch()
    if not can_be_made:
        (machine.bin / "python3").unlink()
        for program in (venv / "bin").glob("python*"):
            program.unlink()
    done = machine.setup("report", "figures")
    assert (venv / "old").exists() != can_be_made, done.stderr
    assert not (machine.root / ".venv.old").exists()
    assert ("could not be made" in done.stderr) != can_be_made


NO_NETWORK = {"PIP_NO_INDEX": "0", "PIP_INDEX_URL": "http://127.0.0.1:9/simple"}


@pytest.mark.parametrize(
    ("variables", "lacking", "said"),
    [
        # There is a wheel of matplotlib of another version, and none of scipy.
        ({}, "scipy", ""),
        (NO_NETWORK, " ".join(MODULES), "pip cannot reach its index: not installed: "),
    ],
)
def test_what_cannot_be_installed_is_named_and_does_not_prevent_the_others(
    machine: Machine, variables: dict[str, str], lacking: str, said: str
) -> None:
    machine.venv("--without-pip")
    if not variables:
        wheel(machine.wheels, "matplotlib", "99.0")
        machine.add_wheels("msgspec", "jinja2", "numpy")
    done = machine.setup("report", "compare", **variables)
    assert done.returncode == 0
    *_, before, last = done.stderr.splitlines()
    assert last == f"setup: not installed: {lacking}: commands that need them will fail"
    assert not said or before == f"setup: {said}{lacking}"


def test_matplotlib_gets_a_cache_folder_if_home_is_read_only(machine: Machine) -> None:
    done = machine.setup("report", "-h", HOME="/nonexistent")
    folder = f"{quoted(machine.root)}/build/matplotlib"
    assert done.stdout.splitlines()[1:] == [f"export MPLCONFIGDIR={folder}"]
    assert "MPLCONFIGDIR" not in machine.setup("report", "-h").stdout


def test_a_toolkit_without_a_disassembler_gets_one_for_tests(machine: Machine) -> None:
    machine.programs("13.0")
    cuda, both = machine.root.parent / "cuda" / "bin", ("cuobjdump", "nvdisasm")
    cuda.mkdir(parents=True)
    machine.add_wheels(*MODULES, *OF_TESTS)
    for name in both:
        (cuda / name).touch(0o755)
        pin = PINS[f"nvidia-cuda-{name}"]
        wheel(machine.wheels, f"nvidia-cuda-{name}", pin, f"nvidia/cu13/bin/{name}")
    for is_whole in (True, False):
        done = machine.setup("test", CUDA_HOME=str(cuda.parent))
        assert done.returncode == 0, done.stderr
        assert "export CUDA=ON\n" in done.stdout
        assert f"export CUDACXX={quoted(machine.bin / 'nvcc')}\n" in done.stdout
        assert ("nvidia-cuda-nvdisasm" in done.stderr) != is_whole, done.stderr
        for name in both:
            assert (machine.root / ".venv" / "bin" / name).exists() != is_whole
            (cuda / name).unlink(missing_ok=True)


@pytest.mark.parametrize("named", ["/nonexistent/nvcc", "nvcc"])
def test_a_named_compiler_that_cannot_be_used_stops(machine: Machine, named: str) -> None:
    machine.programs("12.0")
    done = machine.setup("bench", CUDACXX=named)
    assert done.returncode == 1
    assert f"CUDACXX={named}: " in done.stderr.splitlines()[-1]
    assert done.stdout == ""


@pytest.mark.skipif(shutil.which("nvidia-smi") is not None, reason="this machine has a driver")
def test_without_a_driver_gpu_kernels_are_built_where_they_are_asked_for(machine: Machine) -> None:
    machine.add_wheels(*MODULES)
    machine.programs("13.0")
    done = machine.setup("bench")
    assert "export CUDA=OFF\n" in done.stdout, done.stderr
    assert "no NVIDIA driver" in done.stderr.splitlines()[0], "before anything else"
    assert "export CUDA=ON\n" in machine.setup("bench", GEMM_BENCH_CUDA="ON").stdout
    cache = machine.root / "build" / "release" / "CMakeCache.txt"
    cache.parent.mkdir(parents=True)
    cache.write_text("GEMM_BENCH_CUDA:BOOL=ON\n", encoding="utf-8")
    assert "export CUDA=ON\n" in machine.setup("bench").stdout, "as they were before"
    (machine.bin / "nvcc").unlink()
    done = machine.setup("bench", GEMM_BENCH_CUDA="ON", CUDA_HOME="/nonexistent", PIP_NO_INDEX="1")
    if "GEMM_BENCH_CUDA=ON: there is no nvcc" not in done.stderr:
        assert Path("/usr/local/cuda/bin/nvcc").exists()
