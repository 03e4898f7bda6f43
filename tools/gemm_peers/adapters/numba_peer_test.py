"""Numba's kernels in Numba's own simulator: the outputs that its documentation prints, the defect,
and the repair."""

import importlib.util
import json
import os
import subprocess
import sys
from typing import Any

import pytest

from gemm_peers.adapters.numba_peer import GRIDS, grid_as_printed, grid_of_c
from gemm_peers.family import ROOT

# What the documentation prints for arange(4 x 4) and arange(5 x 23) times ones.
SQUARE = [[6.0] * 4, [22.0] * 4, [38.0] * 4, [54.0] * 4]
RECTANGLE = [[253.0] * 7, [782.0] * 7, [1311.0] * 7, [1840.0] * 7, [2369.0] * 7]

SIMULATED = """
import json, sys
import numpy as np
from gemm_peers.adapters import numba_kernels, numba_peer
kernel, grid, m, n, k = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
a = np.arange(m * k).reshape(m, k)
b, c = np.ones((k, n)), np.zeros((m, n))
tiles = getattr(numba_peer, grid)(a.shape, b.shape)
getattr(numba_kernels, kernel)[tiles, (16, 16)](a, b, c)
print(json.dumps(c.tolist()))
"""


def simulated(kernel: str, grid: str, m: int, n: int, k: int) -> Any:
    """The product, in a process of its own: the simulator is chosen when Numba is imported."""
    if importlib.util.find_spec("numba") is None:
        pytest.skip("numba is not installed: see tools/requirements-peers.txt")
    done = subprocess.run(
        [sys.executable, "-c", SIMULATED, kernel, grid, *map(str, (m, n, k))],
        env={
            **os.environ,
            "NUMBA_ENABLE_CUDASIM": "1",
            "PYTHONPATH": f"{ROOT / 'report'}{os.pathsep}{ROOT / 'tools'}",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("kernel", GRIDS)
def test_the_printed_outputs_come_out(kernel: str) -> None:
    grid = GRIDS[kernel].__name__
    assert simulated(kernel, grid, 4, 4, 4) == SQUARE
    assert simulated(kernel, grid, 5, 7, 23) == RECTANGLE


def test_the_printed_loop_leaves_products_out_with_the_grid_that_c_needs() -> None:
    found = simulated("fast_matmul", "grid_of_c", 5, 7, 23)
    assert found[0] == [120.0] * 7, "the sum of the first 16 of 23 products: 0 + 1 + ... + 15"
    assert simulated("fast_matmul_repaired", "grid_of_c", 5, 7, 23) == RECTANGLE


def test_the_printed_grid_is_larger_than_c_where_k_is() -> None:
    a, b = (5, 230), (230, 7)
    assert grid_of_c(a, b) == (1, 1)
    assert grid_as_printed(a, b) == (15, 15), "224 of 225 blocks only to make the loop long enough"
    assert grid_as_printed((32, 32), (32, 32)) == grid_of_c((32, 32), (32, 32))
