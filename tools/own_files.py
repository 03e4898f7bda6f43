"""The project's own files, for tests and linters: no outputs of builds and runs, no user files.

`python tools/own_files.py 'kernels/*/*.cu'` prints them, each followed by a NUL.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def own_files(*patterns: str, root: Path = ROOT) -> list[Path]:
    """Files that git tracks; without a repository, those that .gitignore does not match.

    Patterns are relative to the root: * ends at a slash and ** does not.
    """
    with tempfile.TemporaryDirectory() as empty:
        if (root / ".git").exists():
            # root may read a user's repository
            which, git = ["--cached"], ["git", "-c", "safe.directory=*"]
        else:
            which, git = ["--others", "--exclude-standard"], ["git", f"--git-dir={empty}"]
            git += [f"--work-tree={root}"]
        try:
            if "--others" in which:
                subprocess.run(["git", "init", "-q", "--bare", empty], check=True)
            said = subprocess.run(
                [*git, "ls-files", "-z", *which, "--", *patterns],
                cwd=root,
                env={**os.environ, "GIT_GLOB_PATHSPECS": "1"},
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            found = [root / name for name in said.split("\0") if name]
        except (OSError, subprocess.CalledProcessError):  # no git, or it cannot read this
            found = [path for pattern in patterns for path in root.glob(pattern)]
    return sorted(path for path in found if path.is_file())


if __name__ == "__main__":
    print(*own_files(*sys.argv[1:]), sep="\0", end="\0")
