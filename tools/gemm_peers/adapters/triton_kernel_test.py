"""The Triton kernel is compiled for the precisions and cards that it is meant for; without a GPU
nothing runs."""

import pytest

triton = pytest.importorskip("triton", reason="triton is not installed")

TYPES = {"f32": "fp32", "tf32": "fp32", "bf16": "bf16", "f16": "fp16"}


@pytest.mark.parametrize("capability", [80, 90])
@pytest.mark.parametrize("precision", TYPES)
def test_every_tile_becomes_machine_code(precision: str, capability: int) -> None:
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from gemm_peers.adapters.triton_kernel import CONFIGS, product

    config = CONFIGS[-1]
    given = {"GROUP": 8, "PRECISION": "tf32" if precision == "tf32" else "ieee"}
    constants = {**config.kwargs, **given}
    pointer = f"*{TYPES[precision]}"
    signature = dict.fromkeys("abc", pointer) | dict.fromkeys("mnk", "i32")
    signature |= dict.fromkeys(constants, "constexpr")
    source = ASTSource(fn=product.fn, signature=signature, constexprs=constants)
    built = triton.compile(
        source, target=GPUTarget("cuda", capability, 32), options={"num_warps": 4}
    )
    ptx = built.asm["ptx"]
    assert built.asm["cubin"]
    if precision == "f32":
        assert "fma.rn" in ptx and "mma" not in ptx, "FP32 stays on CUDA cores"
    else:
        assert "mma" in ptx, "tensor cores"
