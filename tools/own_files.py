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
    # Nothing of GIT_DIR and its like, which a hook or a script sets for another repository.
    environment = {name: it for name, it in os.environ.items() if not name.startswith("GIT_")}
    environment["GIT_GLOB_PATHSPECS"] = "1"
    try:
        with tempfile.TemporaryDirectory() as empty:
            if (root / ".git").exists():
                # root may read a user's repository
                git = ["git", "-c", "safe.directory=*", "ls-files", "--cached"]
            else:
                git = ["git", "init", "-q", "--bare", empty]
                subprocess.run(git, check=True, env=environment)
                git = ["git", f"--git-dir={empty}", f"--work-tree={root}", "ls-files"]
                git += ["--others", "--exclude-standard"]
            command = [*git, "-z", "--", *patterns]
            options = {"cwd": root, "env": environment, "text": True}
            said = subprocess.check_output(command, stderr=subprocess.DEVNULL, **options)
        found = [root / name for name in said.split("\0") if name]
    except (OSError, subprocess.CalledProcessError):  # no git, or it cannot read this
        found = [path for pattern in patterns for path in root.glob(pattern)]
    return sorted(path for path in found if path.is_file())


if __name__ == "__main__":
    print(*own_files(*sys.argv[1:]), sep="\0", end="\0")
