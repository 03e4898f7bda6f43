"""The version is in pyproject.toml, and CHANGELOG.md tells what it has."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def disagreement(version: str, changes: str) -> str | None:
    """What is wrong with the newest headings of CHANGELOG.md for this version, if anything."""
    newest, *released = re.findall(r"^## (.+)$", changes, re.MULTILINE)
    if ".dev" not in version:
        return None if newest == version else f"the newest heading is not {version}"
    if newest != "Unreleased":
        return "the newest heading is not Unreleased"
    return f"{version} was released" if version.partition(".dev")[0] in released else None


def test_changelog_has_the_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert disagreement(project["version"], changes) is None


def test_a_version_that_is_not_there_is_found() -> None:
    assert disagreement("0.2.0", "## 0.2.0\n## 0.1.0\n") is None
    assert disagreement("0.2.0", "## Unreleased\n## 0.1.0\n") is not None
    assert disagreement("0.2.0.dev0", "## Unreleased\n## 0.1.0\n") is None
    assert disagreement("0.2.0.dev0", "## 0.1.0\n") is not None
    assert disagreement("0.1.0.dev0", "## Unreleased\n## 0.1.0\n") is not None
