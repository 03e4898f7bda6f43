"""No two files that may share a translation unit define the same constant in the same namespace.

Small kernel files of a folder are compiled as one (GEMM_BENCH_GROUP_KERNELS). Which files these are
depends on the architectures of the build, so a build for only some does not find every collision.
"""

import collections
import pathlib
import re

import pytest

KERNELS = pathlib.Path(__file__).parent
# What is compiled by itself.
(SLOWEST,) = re.findall(r'INCLUDE REGEX "(.+)"\)', (KERNELS / "CMakeLists.txt").read_text())[:1]
SOURCES = [
    path
    for path in sorted(KERNELS.rglob("*.cu"))
    if "_test" not in path.name and not re.search(SLOWEST, path.as_posix())
]
INCLUDE = re.compile(r'^#include "kernels/(.+)"', re.M)
NAMESPACE = re.compile(r"^namespace (gemm[\w:]*) \{", re.M)
CONSTANTS = re.compile(r"^(?:inline |static )*constexpr [^;(){}]*?k[A-Z][^;{(]*[;{(]", re.M)


def definitions(text):
    """(namespace, name) of each constant at namespace scope."""
    starts = [(m.start(), m.group(1)) for m in NAMESPACE.finditer(text)]
    for statement in CONSTANTS.finditer(text):
        namespace = [name for at, name in starts if at < statement.start()]
        for name in re.findall(r"\b(k[A-Z]\w*)(?:\[\w*\])? =", statement.group()):
            yield (namespace[-1] if namespace else "", name)


def test_definitions_are_found():
    text = """namespace gemm::a {
inline constexpr double kOne = 1,
                        kTwo = 2;
constexpr int kThree[] = {1};
"""
    assert list(definitions(text)) == [
        ("gemm::a", "kOne"),
        ("gemm::a", "kTwo"),
        ("gemm::a", "kThree"),
    ]


def with_headers(paths):
    """The files, and those that they include, directly or not."""
    found, left = set(), list(paths)
    while left:
        path = left.pop()
        if path not in found and path.exists():
            found.add(path)
            left += [KERNELS / name for name in INCLUDE.findall(path.read_text())]
    return found


@pytest.mark.parametrize(
    "folder", sorted({path.parent for path in SOURCES}), ids=lambda folder: folder.name
)
def test_files_of_a_folder_can_be_compiled_together(folder):
    where = collections.defaultdict(set)
    for path in with_headers(path for path in SOURCES if path.parent == folder):
        for name in definitions(path.read_text()):
            where[name].add(path.relative_to(KERNELS).as_posix())
    assert {name: files for name, files in where.items() if len(files) > 1} == {}
