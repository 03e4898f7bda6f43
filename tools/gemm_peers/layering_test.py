"""What the package may know: the standard library, NumPy, gemm_report and itself. What a peer needs
is imported by its adapter alone, and there not before it prepares."""

import ast
import sys
from pathlib import Path

import pytest
from gemm_report.layering_test import imported
from own_files import own_files

from gemm_peers.peer import NAMES, peer_named

PACKAGE = Path(__file__).parent
SOURCES = [path for path in own_files("tools/gemm_peers/*.py") if not path.stem.endswith("_test")]
ADAPTERS = own_files("tools/gemm_peers/adapters/*_peer.py")
OWN = {*sys.stdlib_module_names, "numpy", "gemm_report", "gemm_peers"}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_imports_nothing_else(path: Path) -> None:
    # nvbench is imported where it is run.
    allowed = OWN | ({"cuda"} if path.name == "nvbench.py" else set())
    assert imported(path.read_text(encoding="utf-8")) <= allowed


@pytest.mark.parametrize("path", [*ADAPTERS, PACKAGE / "nvbench.py"], ids=lambda path: path.name)
def test_what_may_be_missing_is_not_imported_with_the_file(path: Path) -> None:
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            assert imported(ast.unparse(node)) <= OWN, path


def test_every_adapter_is_a_peer_that_is_listed_and_they_differ() -> None:
    assert sorted(NAMES) == [path.stem.removesuffix("_peer") for path in ADAPTERS]
    peers = [peer_named(name) for name in NAMES]
    assert [peer.rung for peer in peers] == sorted(peer.rung for peer in peers)
    assert len({peer.name for peer in peers}) == len({peer.rung for peer in peers}) == len(peers)


def test_what_peers_need_is_pinned_to_versions_that_work_together() -> None:
    text = (PACKAGE.parent / "requirements-peers.txt").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    pins = dict(line.split("==") for line in lines)
    needed = {package for name in NAMES for package in peer_named(name).packages}
    assert needed <= set(pins)
    assert tuple(map(int, pins["numpy"].split(".")[:2])) < (2, 5), "numba-cuda needs np.row_stack"
