"""Bad input of tools/portable; its runs are too long for a test."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[1] / "portable"


def portable(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, TOOL, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize("arguments", [["buster"], []])
def test_bad_input_and_missing_programs_give_one_line(arguments: list[str]) -> None:
    done = portable(*arguments, PATH="/nonexistent")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("portable: ") and done.stderr.count("\n") == 1
