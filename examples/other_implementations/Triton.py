"""A GEMM in Triton, written for this comparison: rasterization in groups of rows for L2 reuse,
masks at every edge, FP32 accumulation; tiles and warps are autotuned."""

import torch
import triton
import triton.language as tl

# Rows, columns and depth of a tile, stages of the pipeline, warps.
TILES = ((128, 256, 64, 3, 8), (128, 128, 64, 4, 4), (64, 128, 32, 4, 4), (64, 64, 32, 3, 4))
CONFIGS = [
    triton.Config({"ROWS": m, "COLUMNS": n, "DEPTH": k}, num_stages=stages, num_warps=warps)
    for m, n, k, stages, warps in TILES
]


@triton.autotune(configs=CONFIGS, key=["m", "n", "k", "PRECISION"])
@triton.jit
def product(
    a,
    b,
    c,
    m,
    n,
    k,
    ROWS: tl.constexpr,  # noqa: N803
    COLUMNS: tl.constexpr,  # noqa: N803
    DEPTH: tl.constexpr,  # noqa: N803
    GROUP: tl.constexpr,  # noqa: N803
    PRECISION: tl.constexpr,  # noqa: N803
):
    """C = A * B, row-major; one program per tile."""
    tiles_down = tl.cdiv(m, ROWS)
    tiles_across = tl.cdiv(n, COLUMNS)
    place = tl.program_id(0)
    group = place // (GROUP * tiles_across)
    height = min(tiles_down - group * GROUP, GROUP)
    within = place - group * GROUP * tiles_across
    row = (group * GROUP + within % height) * ROWS + tl.arange(0, ROWS)
    column = (within // height) * COLUMNS + tl.arange(0, COLUMNS)
    # 64 bits: the offsets of large matrices do not fit into 32.
    row = row.to(tl.int64)[:, None]
    column = column.to(tl.int64)[None, :]
    acc = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for start in range(0, k, DEPTH):
        depth = start + tl.arange(0, DEPTH)
        down, along = depth[:, None], depth[None, :]
        left = tl.load(a + row * k + along, mask=(row < m) & (along < k), other=0.0)
        right = tl.load(b + down * n + column, mask=(down < k) & (column < n), other=0.0)
        acc = tl.dot(left, right, acc, input_precision=PRECISION)
    value = acc.to(c.dtype.element_ty)
    tl.store(c + row * n + column, value, mask=(row < m) & (column < n))


def unsupported(problem):
    """Precisions and layouts that the kernel does not support."""
    known = problem.precision in ("f32", "tf32", "bf16", "f16") and problem.layout == "nn"
    return None if known else "supports f32, tf32, bf16 and f16 in layout nn"


def tensor(matrix):
    """A view of the operand; bf16 is passed as integers, since NumPy has no type for it."""
    found = torch.as_tensor(matrix, device="cuda")
    return found.view(torch.bfloat16) if matrix.element == "bf16" else found


def prepare(problem, a, b, c):
    """Autotunes by launching once."""
    m, n, k = problem.m, problem.n, problem.k
    a, b, c = tensor(a), tensor(b), tensor(c)
    arithmetic = "tf32" if problem.precision == "tf32" else "ieee"

    def grid(tile):
        return (triton.cdiv(m, tile["ROWS"]) * triton.cdiv(n, tile["COLUMNS"]),)

    def run():
        product[grid](a, b, c, m, n, k, GROUP=8, PRECISION=arithmetic)

    def launch(stream):
        with torch.cuda.stream(torch.cuda.ExternalStream(stream)):
            run()

    run()
    torch.cuda.synchronize()
    return launch
