"""The two kernels of Numba's documentation (examples, matrix multiplication), and a fixed version
of the second. Entries: Numba.py:matmul, Numba.py:fast_matmul, Numba.py:fast_matmul_repaired.

Except for their names both kernels are as printed there. Note:

- `matmul` initialises its sum with 0., which is FP64 in Numba: FP32 products are accumulated in
  FP64. Consecutive threads compute consecutive rows, so that no access is coalesced.
- `fast_matmul` does as many steps along k as the grid is wide (gridDim.x), which is correct only
  if n, rounded up to tiles, is at least k. The documentation enlarges the grid of rectangular
  problems until that holds, with blocks outside C; with the grid that C needs it omits products.
- `fast_matmul_repaired` derives its steps from k. Nothing else differs.
"""

import math

from numba import cuda, float32

TPB = 16


@cuda.jit
def matmul_kernel(A, B, C):  # noqa: N803
    """One thread per element of C."""
    i, j = cuda.grid(2)
    if i < C.shape[0] and j < C.shape[1]:
        tmp = 0.0
        for k in range(A.shape[1]):
            tmp += A[i, k] * B[k, j]
        C[i, j] = tmp


@cuda.jit
def fast_matmul_kernel(A, B, C):  # noqa: N803
    """Tiles in shared memory, as many steps along k as the grid is wide."""
    sA = cuda.shared.array(shape=(TPB, TPB), dtype=float32)  # noqa: N806
    sB = cuda.shared.array(shape=(TPB, TPB), dtype=float32)  # noqa: N806
    x, y = cuda.grid(2)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    bpg = cuda.gridDim.x
    tmp = float32(0.0)
    for i in range(bpg):
        sA[ty, tx] = 0
        sB[ty, tx] = 0
        if y < A.shape[0] and (tx + i * TPB) < A.shape[1]:
            sA[ty, tx] = A[y, tx + i * TPB]
        if x < B.shape[1] and (ty + i * TPB) < B.shape[0]:
            sB[ty, tx] = B[ty + i * TPB, x]
        cuda.syncthreads()
        for j in range(TPB):
            tmp += sA[ty, j] * sB[j, tx]
        cuda.syncthreads()
    if y < C.shape[0] and x < C.shape[1]:
        C[y, x] = tmp


@cuda.jit
def repaired_kernel(A, B, C):  # noqa: N803
    """Tiles in shared memory, as many steps along k as k needs."""
    sA = cuda.shared.array(shape=(TPB, TPB), dtype=float32)  # noqa: N806
    sB = cuda.shared.array(shape=(TPB, TPB), dtype=float32)  # noqa: N806
    x, y = cuda.grid(2)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    tmp = float32(0.0)
    for i in range((A.shape[1] + TPB - 1) // TPB):
        sA[ty, tx] = 0
        sB[ty, tx] = 0
        if y < A.shape[0] and (tx + i * TPB) < A.shape[1]:
            sA[ty, tx] = A[y, tx + i * TPB]
        if x < B.shape[1] and (ty + i * TPB) < B.shape[0]:
            sB[ty, tx] = B[ty + i * TPB, x]
        cuda.syncthreads()
        for j in range(TPB):
            tmp += sA[ty, j] * sB[j, tx]
        cuda.syncthreads()
    if y < C.shape[0] and x < C.shape[1]:
        C[y, x] = tmp


def unsupported(problem):
    """Precisions that the kernels do not support."""
    return (
        None
        if problem.precision == "f32"
        else "supports only f32 (rerun with --gemm_precisions=f32)"
    )


def tiles(*extents):
    """The number of blocks that cover each extent."""
    return tuple(math.ceil(extent / TPB) for extent in extents)


def entry(kernel, grid):
    """Returns a function that prepares launches of the kernel."""

    def prepare(problem, a, b, c):
        arrays = [cuda.as_cuda_array(each, sync=False) for each in (a, b, c)]
        blocks = grid(problem.m, problem.n, problem.k)
        return lambda stream: kernel[blocks, (TPB, TPB), cuda.external_stream(stream)](*arrays)

    return prepare


def grid_by_rows(m, n, k):
    """As printed for matmul: x is the row of C."""
    return tiles(m, n)


def grid_as_printed(m, n, k):
    """As printed for fast_matmul and rectangles: wide enough for k, and higher than C."""
    return tiles(max(k, n), max(m, k))


def grid_of_c(m, n, k):
    """The grid that C needs: x is the column of C."""
    return tiles(n, m)


matmul = entry(matmul_kernel, grid_by_rows)
fast_matmul = entry(fast_matmul_kernel, grid_as_printed)
fast_matmul_repaired = entry(repaired_kernel, grid_of_c)
