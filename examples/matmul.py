"""NumPy's matmul on the CPU, verified and timed like any kernel. Usage:

gemm_bench --gemm_kernel=matmul.py,matmul.py:by_rows --gemm_device=cpu --gemm_versus=CpuBlocked
"""

import numpy as np


def prepare(problem, a, b, c):
    """Untimed, once for each operand set. A transposed operand is a view with swapped strides."""
    a, b, c = (np.asarray(each) for each in (a, b, c))
    return lambda stream: np.matmul(a, b, out=c)


def by_rows(problem, a, b, c):
    """One row of C at a time: another entry of the same file."""
    a, b, c = (np.asarray(each) for each in (a, b, c))

    def launch(stream):
        for row, result in zip(a, c, strict=True):
            np.matmul(row, b, out=result)

    return launch


def unsupported(problem):
    """Why a problem is skipped, or None."""
    return (
        None
        if problem.precision == "f32"
        else "supports only f32 (rerun with --gemm_precisions=f32)"
    )
