"""The two kernels of Numba's documentation (examples, matrix multiplication), and the second one
repaired. Each is an entry: Numba.py:matmul, Numba.py:fast_matmul, Numba.py:fast_matmul_repaired.

But for their names both kernels stand here as printed there. What is printed has three properties
to know of:

- `matmul` begins its sum with 0., which Numba takes for FP64: FP32 products are added in FP64. And
  neighbouring threads take neighbouring rows, so that nothing they read or write coalesces.
- `fast_matmul` takes as many steps along k as the grid is wide (gridDim.x), which is right only
  where n, rounded up to tiles, is at least k. Its text says to enlarge the grid of rectangular
  problems until that holds, at the price of blocks outside C; with the grid that C needs it leaves
  products out.
- `fast_matmul_repaired` takes its steps from k. Nothing else differs.
"""

import math

from numba import cuda, float32

TPB = 16


@cuda.jit
def matmul_kernel(A, B, C):  # noqa: N803
    """A thread for each element of C."""
    i, j = cuda.grid(2)
    if i < C.shape[0] and j < C.shape[1]:
        tmp = 0.0
        for k in range(A.shape[1]):
            tmp += A[i, k] * B[k, j]
        C[i, j] = tmp


@cuda.jit
def fast_matmul_kernel(A, B, C):  # noqa: N803
    """Tiles in shared memory, as many along k as the grid is wide."""
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
    """Tiles in shared memory, as many along k as k has."""
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
    """What the kernels are not written for."""
    return None if problem.precision == "f32" else "computes f32"


def tiles(*extents):
    """So many blocks cover them."""
    return tuple(math.ceil(extent / TPB) for extent in extents)


def entry(kernel, grid):
    """A function that prepares launches of the kernel."""

    def prepare(problem, a, b, c):
        arrays = [cuda.as_cuda_array(each, sync=False) for each in (a, b, c)]
        blocks = grid(problem.m, problem.n, problem.k)
        return lambda stream: kernel[blocks, (TPB, TPB), cuda.external_stream(stream)](*arrays)

    return prepare


def grid_by_rows(m, n, k):
    """As printed for matmul: x goes down C."""
    return tiles(m, n)


def grid_as_printed(m, n, k):
    """As printed for fast_matmul and rectangles: wide enough for k, and too high."""
    return tiles(max(k, n), max(m, k))


def grid_of_c(m, n, k):
    """What C needs: x goes along its rows."""
    return tiles(n, m)


matmul = entry(matmul_kernel, grid_by_rows)
fast_matmul = entry(fast_matmul_kernel, grid_as_printed)
fast_matmul_repaired = entry(repaired_kernel, grid_of_c)
