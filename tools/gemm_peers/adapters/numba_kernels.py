"""The kernels of Numba's documentation as printed there, and one repaired: numba_peer says how.

A module of its own, since Numba's simulator finds `cuda` among the globals of a kernel only.
"""

from numba import cuda, float32

TPB = 16


@cuda.jit
def matmul(A, B, C):  # noqa: N803 - as printed
    """A thread for each element of C."""
    i, j = cuda.grid(2)
    if i < C.shape[0] and j < C.shape[1]:
        tmp = 0.0
        for k in range(A.shape[1]):
            tmp += A[i, k] * B[k, j]
        C[i, j] = tmp


@cuda.jit
def fast_matmul(A, B, C):  # noqa: N803
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
def fast_matmul_repaired(A, B, C):  # noqa: N803
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
