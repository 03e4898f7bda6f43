"""PyTorch's products: torch.matmul, _scaled_mm in FP8 and _int_mm in INT8, each into a matrix that
is there already."""

from typing import Any

from gemm_peers.device import Launch
from gemm_peers.peer import Peer, Prepared, Setting, UnsupportedError
from gemm_peers.problem import Problem

# Memory without a type in NumPy is handed on as integers.
_VIEWS = {"bf16": "bfloat16", "e4m3": "float8_e4m3fn"}


def prepare(setting: Setting) -> Prepared:
    """TF32 only where it is asked for, and no sums in 16 bits."""
    import torch

    p = setting.problem
    _require_aligned(p)
    torch.cuda.set_stream(torch.cuda.ExternalStream(setting.stream))
    torch.set_float32_matmul_precision("high" if p.precision == "tf32" else "highest")
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    one = torch.ones((), device="cuda")

    def launch(a: Any, b: Any, c: Any) -> Launch:
        left, right, out = (
            view(a, p.traits.input),
            view(b, p.traits.input),
            view(c, p.traits.output),
        )
        left = left if p.layout[0] == "n" else left.t()
        right = right if p.layout[1] == "n" else right.t()
        if p.precision == "s8":
            return lambda: torch._int_mm(left, right, out=out)
        if p.traits.input == "e4m3":
            fast = p.precision == "e4m3fast"
            return lambda: torch._scaled_mm(
                left, right, one, one, out_dtype=torch.bfloat16, use_fast_accum=fast, out=out
            )
        return lambda: torch.matmul(left, right, out=out)

    return launch


def view(matrix: Any, element: str) -> Any:
    """The memory as a tensor of that element."""
    import torch

    tensor = torch.as_tensor(matrix, device="cuda")
    return tensor.view(getattr(torch, _VIEWS[element])) if element in _VIEWS else tensor


def _require_aligned(p: Problem) -> None:
    if p.precision in ("e4m3", "e4m3fast") and (p.k % 16 or p.n % 16):
        raise UnsupportedError("_scaled_mm takes k and n that are multiples of 16")
    if p.precision == "s8" and (p.m <= 16 or p.k % 8 or p.n % 8):
        raise UnsupportedError("_int_mm takes m above 16, and k and n that are multiples of 8")


PEER = Peer(
    name="PyTorch",
    rung=5,
    idea="torch.matmul, _scaled_mm and _int_mm with out=: cuBLAS and cublasLt, sums never in 16 "
    "bits.",
    kind="gpu",
    packages=("torch",),
    layouts={
        **dict.fromkeys(("f32", "tf32", "bf16", "f16", "f64"), "nn"),
        **dict.fromkeys(("e4m3", "e4m3fast", "s8"), "nt"),
    },
    prepare=prepare,
)
