"""Each command of gemm-report imports what tools/requirements.txt lists for it."""

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from gemm_report.cli import COMMANDS

ROOT = Path(__file__).parents[2]
TESTDATA = ROOT / "report" / "gemm_report" / "testdata"
CPU, GPU, LADDER = (str(TESTDATA / f"{name}.json") for name in ("cpu", "gpu", "ladder"))
# A short run of each command; {} is a folder with a record.
RUNS = {
    "figures": ["figures", CPU, "-o", "{}", "--only=headline"],
    "report": ["report", CPU, "-o", "{}"],
    "history": ["history", "{}"],
    "fleet": ["fleet", "{}", "--nodes=n2"],
    "fleet/--picture": ["fleet", "{}", "--nodes=n2", "--picture", "{}/map.png"],
    "readme": [
        "readme",
        LADDER,
        "--readme={}/README.md",
        "--results={}/results.md",
        "--pictures={}",
    ],
    "kernels": ["kernels", LADDER, "--readme={}/kernels.md", "--pictures={}"],
    "ratios": ["ratios", GPU, "--kernels=.", "-o", "{}"],
    "tune": ["tune", LADDER, "-o", "{}"],
    "calibrate": ["calibrate", GPU, "{}/gpu.json", "-o", "{}/noise.json"],
    "compare": ["compare", GPU, "{}/gpu.json"],
    "gate": ["gate", "{}", f"--baseline={GPU}", "--new={}/gpu.json"],
    "explain": ["explain", "Naive", "4096", "--modelled", f"--record={LADDER}"],
    "explain/-o": ["explain", "Naive", "4096", "--modelled", f"--record={LADDER}", "-o", "{}/x"],
    "export": ["export", GPU, "--format=csv", "-o", "{}/all.csv"],
    "export/parquet": ["export", GPU, "--format=parquet", "-o", "{}/all.parquet"],
}
# Runs a command that can import only the given modules, and prints those that it imported.
PROGRAM = """
import sys
from importlib.abc import MetaPathFinder
known, allowed, *arguments = sys.argv[1:]
class Nothing(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        top = name.partition(".")[0]
        if top in known.split(",") and top not in allowed.split(","):
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Nothing())
from gemm_report.cli import main
code = main(arguments)
print(*sorted({name.partition(".")[0] for name in sys.modules} & set(known.split(","))), sep=",")
sys.exit(code)
"""


def declared() -> dict[str, list[str]]:
    """The commands after each module."""
    lines = (ROOT / "tools" / "requirements.txt").read_text(encoding="utf-8").splitlines()
    pins = [line.partition("#") for line in lines if "==" in line and "#" in line]
    return {pin.partition("==")[0]: users.split() for pin, _, users in pins}


def test_every_command_has_a_run() -> None:
    assert {run.partition("/")[0] for run in RUNS} == COMMANDS.keys()
    users = {user for users in declared().values() for user in users}
    assert users - {"explain/--output", "sass"} <= RUNS.keys()


@pytest.mark.parametrize("run", RUNS)
def test_a_command_imports_what_is_listed_for_it(run: str, tmp_path: Path) -> None:
    needs = {module for module, users in declared().items() if run in users}
    if missing := [module for module in needs if not find_spec(module)]:
        pytest.skip(f"pip install {' '.join(missing)}")
    another = Path(GPU).read_text(encoding="utf-8").replace("2025-", "2024-")
    (tmp_path / "gpu.json").write_text(another, encoding="utf-8")
    shutil.copy(ROOT / "README.md", tmp_path)
    shutil.copy(ROOT / "docs" / "results.md", tmp_path)
    shutil.copy(ROOT / "kernels" / "README.md", tmp_path / "kernels.md")
    command = [sys.executable, "-c", PROGRAM, ",".join(declared()), ",".join(needs)]
    done = subprocess.run(
        [*command, *(argument.format(tmp_path) for argument in RUNS[run])],
        env={**os.environ, "PYTHONPATH": str(ROOT / "report")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1, 2), done.stderr
    assert set(filter(None, done.stdout.splitlines()[-1].split(","))) == needs, done.stderr
