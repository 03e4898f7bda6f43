"""tools/bench with stand-ins for setup, CMake and gemm_bench."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("measured", [0, 1])
@pytest.mark.parametrize("python", ["true", "false"])
def test_the_exit_status_is_that_of_the_measurement(
    tmp_path: Path, python: str, measured: int
) -> None:
    def script(name: str, text: str) -> None:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/bash\n{text}\n")
        path.chmod(0o755)

    script("tools/bench", "")
    shutil.copy(ROOT / "tools" / "bench", tmp_path / "tools" / "bench")
    script("tools/setup", f"echo PRESET=release PYTHON={python}")
    script("bin/cmake", "exit 0")
    script(
        "build/release/gemm_bench",
        'for a in "$@"; do case $a in --gemm_tell_record=*) to=${a#*=};; esac; done\n'
        f"cd '{tmp_path}'\n"
        'echo {} > record.json; echo "$PWD/record.json" > "$to"\n'
        f"exit {measured}",
    )
    done = subprocess.run(
        [tmp_path / "tools" / "bench"],
        env={**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == measured, done.stderr
    assert f"record: {tmp_path}/record.json" in done.stdout
    assert ("no page was made" in done.stderr) == (python == "false")
