"""A matrix product in Triton, written for this comparison, with tiles and warps that Triton tunes:
triton_kernel has it."""

from typing import Any

from gemm_peers.adapters.torch_peer import view
from gemm_peers.device import Launch
from gemm_peers.peer import Peer, Prepared, Setting


def prepare(setting: Setting) -> Prepared:
    """On the stream that is given, which stays PyTorch's current one."""
    import torch
    import triton

    from gemm_peers.adapters.triton_kernel import product

    p = setting.problem
    torch.cuda.set_stream(torch.cuda.ExternalStream(setting.stream))
    arithmetic = "tf32" if p.precision == "tf32" else "ieee"

    def grid(tile: dict[str, int]) -> tuple[int]:
        return (triton.cdiv(p.m, tile["ROWS"]) * triton.cdiv(p.n, tile["COLUMNS"]),)

    def launch(a: Any, b: Any, c: Any) -> Launch:
        left, right, out = (
            view(a, p.traits.input),
            view(b, p.traits.input),
            view(c, p.traits.output),
        )
        return lambda: product[grid](left, right, out, p.m, p.n, p.k, GROUP=8, PRECISION=arithmetic)

    return launch


PEER = Peer(
    name="Triton",
    rung=2,
    idea="Tiles in groups of rows, masked at the edges, tuned by Triton.",
    kind="gpu",
    packages=("triton", "torch"),
    layouts=dict.fromkeys(("f32", "tf32", "bf16", "f16"), "nn"),
    prepare=prepare,
)
