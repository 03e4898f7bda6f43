"""What the package may know: the standard library, a few that a command needs, and itself."""

import ast
import sys
from pathlib import Path

import pytest
from own_files import own_files

PACKAGE = Path(__file__).parent
ALLOWED = {
    *sys.stdlib_module_names,
    "gemm_report",
    "jinja2",
    "markupsafe",
    "matplotlib",
    "msgspec",
    "numpy",
    "scipy",
}
SOURCES = [
    path
    for path in own_files("report/gemm_report/**/*.py")
    if not path.stem.endswith("_test") and path.name != "conftest.py"
]


def imported(source: str) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module if node.module and not node.level else "gemm_report")
    return {name.partition(".")[0] for name in found}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_nothing_else(path: Path) -> None:
    assert imported(path.read_text(encoding="utf-8")) <= ALLOWED


def test_an_import_of_something_else_would_be_seen() -> None:
    assert imported("def f():\n  import pandas.io") - ALLOWED == {"pandas"}
    assert len(SOURCES) > 5
