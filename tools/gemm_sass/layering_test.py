"""The package imports only the standard library, gemm_report and itself."""

import sys
from pathlib import Path

import pytest
from gemm_report.layering_test import imported
from own_files import own_files

PACKAGE = Path(__file__).parent
SOURCES = [path for path in own_files("tools/gemm_sass/*.py") if not path.stem.endswith("_test")]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_imports_nothing_else(path: Path) -> None:
    allowed = {*sys.stdlib_module_names, "gemm_report", "gemm_sass"}
    assert imported(path.read_text(encoding="utf-8")) <= allowed
