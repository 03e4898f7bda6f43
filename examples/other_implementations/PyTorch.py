"""PyTorch: torch.matmul, for groups _grouped_mm, for epilogues addmm and _addmm_activation, for FP8
_scaled_mm, also with scales of blocks, and for INT8 _int_mm, each directly into C, without 16-bit
accumulation."""

import warnings

import torch

takes = ("batches", "groups", "scales", "epilogues")

# Types that NumPy lacks are passed as integers.
TYPES = {"bf16": torch.bfloat16, "e4m3": torch.float8_e4m3fn}


def tensor(matrix):
    """A view of the operand."""
    found = torch.as_tensor(matrix, device="cuda")
    return found.view(TYPES[matrix.element]) if matrix.element in TYPES else found


def on(stream):
    """A context with that current stream."""
    return torch.cuda.stream(torch.cuda.ExternalStream(stream))


def unsupported(problem):
    """Problems that the functions do not support."""
    m, n, k, precision = problem.m, problem.n, problem.k, problem.precision
    if problem.row_starts:
        fits = hasattr(torch, "_grouped_mm") and precision == "bf16" and n % 8 == k % 8 == 0
        fits = fits and problem.layout in ("nn", "nt")
        return None if fits else "_grouped_mm requires bf16, layout nn or nt, n and k in eights"
    if precision in ("e4m3", "e4m3fast"):
        fits, needs = n % 16 == k % 16 == 0, "n and k multiples of 16"
    elif precision == "e4m3block":
        fits = torch.__version__ >= (2, 9) and m % 4 == n % 16 == k % 16 == 0
        needs = "PyTorch 2.9, m a multiple of 4, n and k of 16"
    elif precision == "s8":
        fits, needs = m > 16 and n % 8 == k % 8 == 0, "m > 16, n and k multiples of 8"
    else:
        known = precision in ("f32", "tf32", "bf16", "f16", "f64")
        return None if known else f"PyTorch does not support {precision}"
    fits = fits and problem.layout == "nt" and problem.batch == 1
    return None if fits else f"requires layout nt, no batch, {needs}"


class Placed:
    """Makes C what a function allocates for its result, where the function has no `out`."""

    def __init__(self):
        self.c = None
        self.library = torch.library.Library("aten", "IMPL")
        warnings.filterwarnings("ignore", "Warning only once for all operators")  # that this is so
        self.library.impl("empty_strided", self.allocate, "CUDA", allow_override=True)

    def allocate(self, size, stride, *, dtype=None, layout=None, device=None, pin_memory=None):
        """As torch.empty_strided."""
        c = self.c
        if c is not None and (tuple(size), tuple(stride), dtype) == (c.shape, c.stride(), c.dtype):
            return c
        count = 1 + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
        found = torch.empty(0 if 0 in size else count, dtype=dtype, device=device)
        return found.as_strided(size, stride)

    def run(self, c, function, *arguments, **options):
        """Copies the result if it was allocated in another way."""
        self.c = c
        found = function(*arguments, **options)
        self.c = None
        if found.data_ptr() != c.data_ptr():
            c.copy_(found)


placed = None


def prepare(problem, a, b, c):
    """The function of the problem, on views of the operands."""
    matmul = torch.backends.cuda.matmul
    matmul.allow_fp16_reduced_precision_reduction = False
    matmul.allow_bf16_reduced_precision_reduction = False
    fp32 = "high" if problem.precision == "tf32" else "highest"
    added = c.bias or c.residual
    added = tensor(added) if added else None
    scales = (tensor(a.scales), tensor(b.scales).t()) if a.scales else None
    ends = tensor(a.row_starts)[1:] if a.row_starts else None
    a, b, c = tensor(a), tensor(b), tensor(c)
    if ends is not None:
        global placed
        placed = placed or Placed()

        def product():
            placed.run(c, torch._grouped_mm, a, b, offs=ends)

    elif problem.precision == "s8":

        def product():
            torch._int_mm(a, b, out=c)

    elif problem.precision in ("e4m3", "e4m3fast", "e4m3block"):
        one, fast = torch.ones((), device="cuda"), problem.precision == "e4m3fast"
        scales = scales or (one, one)
        torch.cuda.synchronize()  # `one` was written on another stream

        def product():
            torch._scaled_mm(a, b, *scales, out_dtype=torch.bfloat16, use_fast_accum=fast, out=c)

    else:

        def product():
            torch.set_float32_matmul_precision(fp32)
            if problem.epilogue == "none":
                torch.matmul(a, b, out=c)
            elif problem.epilogue == "bias-gelu":
                torch._addmm_activation(added, a, b, use_gelu=True, out=c)
            else:
                torch.addmm(added, a, b, out=c)

    def launch(stream):
        with on(stream):
            product()

    return launch
