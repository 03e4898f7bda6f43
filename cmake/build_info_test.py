"""The commit that a build records: of these sources and all of them, or unknown."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

CMAKE = Path(__file__).parent
WHO = ("-c", "user.name=n", "-c", "user.email=e")

pytestmark = pytest.mark.skipif(
    not (shutil.which("cmake") and shutil.which("git")), reason="needs cmake and git"
)


def git(root: Path, *arguments: str) -> str:
    clean = {name: it for name, it in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(
        ["git", "-C", root, *WHO, *arguments], env=clean, text=True, capture_output=True, check=True
    )
    return done.stdout.strip()


def add(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()


def copy(root: Path) -> Path:
    """The sources as of an archive."""
    add(root, "kernels/simt/tiled.cu", "bench/main.cpp", "CMakeLists.txt")
    (root / "cmake").mkdir()
    for name in ("build_info.cmake", "commit.cmake"):
        shutil.copy(CMAKE / name, root / "cmake")
    return root


def commit_all(root: Path) -> str:
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message=One")
    return git(root, "rev-parse", "HEAD")[:12]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    root = copy(tmp_path / "a clone")
    (root / ".gitignore").write_text("/build/\n*.pyc\n", encoding="utf-8")
    commit_all(root)
    return root


def build(root: Path, **variables: str) -> tuple[str, str]:
    """The recorded commit, and what the build says."""
    output = root.parent / "build_info.hpp"
    settings = {"SOURCE_DIR": root, "OUTPUT": output, "OPENMP": "true", "FLAGS": '-DX="a b" -O1'}
    done = subprocess.run(
        [
            *("cmake", *(f"-D{name}={value}" for name, value in settings.items())),
            *("-P", root / "cmake" / "build_info.cmake"),
        ],
        env={**os.environ, **variables},
        text=True,
        capture_output=True,
        check=True,
    )
    text = output.read_text(encoding="utf-8")
    assert 'R"flags(-DX="a b" -O1)flags"' in text
    return text.split('kCommit[] = "')[1].split('"')[0], done.stderr


def test_a_clean_tree_is_its_commit(clone: Path, tmp_path: Path) -> None:
    commit = git(clone, "rev-parse", "HEAD")[:12]
    add(clone, "build/x.cpp", "my_kernel.cu", "notes.txt", "kernels/__pycache__/names_test.pyc")
    (tmp_path / "link").symlink_to(clone)
    git(clone, "worktree", "add", "--quiet", str(tmp_path / "worktree"))
    for root in (clone, tmp_path / "link", tmp_path / "worktree"):
        assert build(root) == (commit, "")


SOURCES = [
    "kernels/simt/mine.cu",
    "kernels/simt/größe.cu",
    "kernels/tensor/deep/er/mine.cpp",
    "kernels/common/mine.cuh",
    "bench/record/build_info.hpp",
    "cmake/FindBLAS.cmake",
    "bench/mine/CMakeLists.txt",
    "cuda_runtime.h",
]


@pytest.mark.parametrize("ignored", [False, True])
def test_an_untracked_source_is_not_of_the_commit(clone: Path, ignored: bool) -> None:
    if ignored:
        with (clone / ".git" / "info" / "exclude").open("a", encoding="utf-8") as exclude:
            exclude.write("".join(f"/{name}\n" for name in SOURCES))
    else:
        git(clone, "config", "status.showUntrackedFiles", "no")
    for name in SOURCES:
        add(clone, name)
        assert build(clone)[0].endswith("-dirty"), name
        (clone / name).unlink()
    assert not build(clone)[0].endswith("-dirty")


def test_nor_is_another_repository_among_the_kernels(clone: Path) -> None:
    add(clone, "kernels/simt/mine/mine.cu")
    commit_all(clone / "kernels" / "simt" / "mine")
    assert build(clone)[0].endswith("-dirty")


@pytest.mark.parametrize("how", ["--assume-unchanged", "--skip-worktree"])
def test_nor_is_a_change_that_git_does_not_look_at(clone: Path, how: str) -> None:
    git(clone, "update-index", how, "kernels/simt/tiled.cu")
    (clone / "kernels" / "simt" / "tiled.cu").write_text("// changed\n", encoding="utf-8")
    assert build(clone)[0].endswith("-dirty")


def test_a_changed_file_is_not_of_the_commit(clone: Path) -> None:
    (clone / "bench" / "main.cpp").write_text("// changed\n", encoding="utf-8")
    assert build(clone)[0].endswith("-dirty")


def test_an_archive_has_no_commit_of_another_repository(tmp_path: Path, clone: Path) -> None:
    add(tmp_path / "theirs", "theirs.c")
    commit_all(tmp_path / "theirs")
    inside = copy(tmp_path / "theirs" / "gemm_bench")
    over = tmp_path / "over"
    add(over, "theirs.c")
    commit_all(over)
    copy(over)
    alone = copy(tmp_path / "alone")
    for root in (inside, over, alone):
        for variables in ({}, {"GIT_DIR": f"{clone}/.git", "GIT_WORK_TREE": str(clone)}):
            commit, said = build(root, **variables)
            assert commit == "unknown"
            assert "GEMM_BENCH_COMMIT" in said
        assert build(root, GEMM_BENCH_COMMIT="0123abc") == ("0123abc", "")


def test_the_repository_of_the_environment_does_not_matter(clone: Path, tmp_path: Path) -> None:
    add(tmp_path / "theirs", "theirs.c")
    commit_all(tmp_path / "theirs")
    commit = git(clone, "rev-parse", "HEAD")[:12]
    assert build(clone, GIT_DIR=f"{tmp_path}/theirs/.git")[0] == commit


def test_a_tree_of_another_owner_has_no_commit(clone: Path) -> None:
    commit, said = build(clone, GIT_TEST_ASSUME_DIFFERENT_OWNER="1")
    assert commit == "unknown"
    assert "safe.directory" in said


def test_a_name_that_is_no_commit_is_refused(clone: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        build(clone, GEMM_BENCH_COMMIT="a/b")
