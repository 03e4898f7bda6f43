"""NumPy's matmul on the CPU, through whatever BLAS it was built with: the peer that runs
everywhere, and so carries the tests from end to end. Not in FP64, where it is the reference."""

from typing import Any

from gemm_peers.device import Launch
from gemm_peers.peer import Peer, Prepared, Setting


def prepare(setting: Setting) -> Prepared:
    """Nothing to prepare."""
    import numpy as np

    def launch(a: Any, b: Any, c: Any) -> Launch:
        return lambda: np.matmul(a, b, out=c)

    return launch


PEER = Peer(
    name="NumPy",
    rung=0,
    idea="numpy.matmul with out=, through the BLAS of NumPy's wheel.",
    kind="cpu",
    packages=("numpy",),
    layouts={"f32": "nn"},
    prepare=prepare,
)
