import subprocess
from pathlib import Path

import pytest
from own_files import own_files


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A project with a file of its own, one that .gitignore names, and no repository."""
    root = tmp_path / "a project"
    for name in ("results/gpu/1.json", "results/gpu/1/index.html", "build/x.json", "kernel.cu"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    (root / ".gitignore").write_text("/build/\n/results/*/*/\n", encoding="utf-8")
    return root


def names(root: Path, *patterns: str) -> list[str]:
    return [path.relative_to(root).as_posix() for path in own_files(*patterns, root=root)]


def test_without_a_repository_ignored_files_are_left_out(tree: Path) -> None:
    assert names(tree, "**/*.json", "**/*.html", "*.cu") == ["kernel.cu", "results/gpu/1.json"]


def test_in_a_repository_untracked_files_are_left_out(tree: Path) -> None:
    git = ["git", "-C", str(tree)]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "kernel.cu", "results"], check=True)
    (tree / "mine.cu").touch()
    assert names(tree, "*.cu") == ["kernel.cu"]
    assert names(tree, "results/**") == ["results/gpu/1.json"]
    (tree / "kernel.cu").unlink()
    assert names(tree, "*.cu") == []


def test_without_git_all_files_are_taken(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    assert names(tree, "**/*.json") == ["build/x.json", "results/gpu/1.json"]


def test_a_star_ends_at_a_slash(tree: Path) -> None:
    assert names(tree, "*.json", "results/*.json") == []


def test_the_repository_of_the_environment_does_not_matter(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path / "other")], check=True)
    subprocess.run(["git", "-C", str(tree), "init", "-q"], check=True)
    subprocess.run(["git", "-C", str(tree), "add", "kernel.cu"], check=True)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))
    assert names(tree, "*.cu") == ["kernel.cu"]
