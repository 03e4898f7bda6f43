"""The two kernels of Numba's documentation (examples, matrix multiplication), and the second one
repaired.

Both kernels stand here as printed there. What is printed has three properties to know of:

- `matmul` begins its sum with 0., which Numba takes for FP64: FP32 products are added in FP64. And
  neighbouring threads take neighbouring rows, so that nothing they read or write coalesces.
- `fast_matmul` takes as many steps along k as the grid is wide (gridDim.x), which is right only
  where n, rounded up to tiles, is at least k. Its text says to enlarge the grid of rectangular
  problems until that holds, at the price of blocks outside C; with the grid that C needs it leaves
  products out.
- `fast_matmul_repaired` takes its steps from k. Nothing else differs.
"""

import math
from collections.abc import Callable
from typing import Any

from gemm_peers.device import Launch
from gemm_peers.peer import Peer, Prepared, Setting

TPB = 16  # as in numba_kernels
Shape = tuple[int, int]


def grid_by_rows(a: Shape, b: Shape) -> Shape:
    """As printed for matmul: x goes down C."""
    return math.ceil(a[0] / TPB), math.ceil(b[1] / TPB)


def grid_of_c(a: Shape, b: Shape) -> Shape:
    """What C needs: x goes along its rows."""
    return math.ceil(b[1] / TPB), math.ceil(a[0] / TPB)


def grid_as_printed(a: Shape, b: Shape) -> Shape:
    """As printed for fast_matmul and rectangles: wide enough for k, and too high."""
    return math.ceil(max(a[1], b[1]) / TPB), math.ceil(max(a[0], b[0]) / TPB)


GRIDS: dict[str, Callable[[Shape, Shape], Shape]] = {
    "matmul": grid_by_rows,
    "fast_matmul": grid_as_printed,
    "fast_matmul_repaired": grid_of_c,
}


def prepare(setting: Setting) -> Prepared:
    """On the stream that is given."""
    from numba import cuda

    from gemm_peers.adapters import numba_kernels

    p, stream = setting.problem, cuda.external_stream(setting.stream)
    kernel = getattr(numba_kernels, setting.variant)
    configured = kernel[GRIDS[setting.variant]((p.m, p.k), (p.k, p.n)), (TPB, TPB), stream]

    def launch(a: Any, b: Any, c: Any) -> Launch:
        views = [cuda.as_cuda_array(each, sync=False) for each in (a, b, c)]
        return lambda: configured(*views)

    return launch


PEER = Peer(
    name="Numba",
    rung=1,
    idea="The kernels of Numba's documentation: naive with sums in FP64, and 16 x 16 tiles in "
    "shared memory, as printed with steps by the width of the grid, and repaired.",
    kind="gpu",
    packages=("numba", "numba-cuda", "numpy"),
    layouts={"f32": "nn"},
    prepare=prepare,
    variants=tuple(GRIDS),
)
