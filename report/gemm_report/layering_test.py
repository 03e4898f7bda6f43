"""What the package may know: the standard library, a few that a command needs, and itself."""

import ast
import sys
from pathlib import Path

import pytest
from own_files import own_files

PACKAGE = Path(__file__).parent
ALLOWED = {*sys.stdlib_module_names, "gemm_report"}
ALLOWED |= {"jinja2", "markupsafe", "matplotlib", "msgspec", "numpy", "scipy"}
SOURCES = [
    path
    for path in own_files("report/gemm_report/**/*.py")
    if not path.stem.endswith("_test") and path.name != "conftest.py"
]
assert len(SOURCES) > 5


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_nothing_else(path: Path) -> None:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").partition(".")[0])
    assert found <= ALLOWED
