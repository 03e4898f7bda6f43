"""CuPy's matmul, to which Numba's documentation sends whoever wants it fast: cuBLAS."""

from typing import Any

from gemm_peers.device import Launch
from gemm_peers.peer import Peer, Prepared, Setting


def prepare(setting: Setting) -> Prepared:
    """On the stream that is given, which stays the current one."""
    import cupy

    cupy.cuda.ExternalStream(setting.stream).use()

    def launch(a: Any, b: Any, c: Any) -> Launch:
        left, right, out = (cupy.asarray(each) for each in (a, b, c))
        return lambda: cupy.matmul(left, right, out=out)

    return launch


PEER = Peer(
    name="CuPy",
    rung=4,
    idea="cupy.matmul with out=: cuBLAS.",
    kind="gpu",
    packages=("cupy-cuda13x",),
    layouts={"f32": "nn", "f16": "nn", "f64": "nn"},
    prepare=prepare,
)
