"""The project's own files, for tests: no outputs of builds and runs, no user files."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def own_files(*patterns: str, root: Path = ROOT) -> list[Path]:
    """Files that git tracks; outside a repository all that match.

    Patterns are relative to the root: * ends at a slash and ** does not.
    """
    if not (root / ".git").exists():  # an archive, maybe inside another repository
        return sorted({p for pattern in patterns for p in root.glob(pattern) if p.is_file()})
    # GIT_DIR and its like may name another repository: a hook sets them.
    environment = {name: it for name, it in os.environ.items() if not name.startswith("GIT_")}
    git = ["git", "-c", "safe.directory=*", "--glob-pathspecs", "ls-files", "-z", "--", *patterns]
    said = subprocess.check_output(git, cwd=root, env=environment, text=True)
    found = (root / name for name in said.split("\0") if name)
    return sorted(path for path in found if path.is_file())
