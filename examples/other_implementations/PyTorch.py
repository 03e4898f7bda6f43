"""PyTorch: torch.matmul, _scaled_mm for FP8 and _int_mm for INT8, each directly into C, without
16-bit accumulation."""

import torch

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
    m, n, k = problem.m, problem.n, problem.k
    if problem.precision in ("e4m3", "e4m3fast"):
        fits, needs = n % 16 == k % 16 == 0, "n and k multiples of 16"
    elif problem.precision == "s8":
        fits, needs = m > 16 and n % 8 == k % 8 == 0, "m > 16, n and k multiples of 8"
    else:
        known = problem.precision in ("f32", "tf32", "bf16", "f16", "f64")
        return None if known else f"PyTorch does not support {problem.precision}"
    return None if fits and problem.layout == "nt" else f"requires layout nt, {needs}"


def prepare(problem, a, b, c):
    """The function of the precision, on views of the operands."""
    matmul = torch.backends.cuda.matmul
    matmul.allow_fp16_reduced_precision_reduction = False
    matmul.allow_bf16_reduced_precision_reduction = False
    fp32 = "high" if problem.precision == "tf32" else "highest"
    a, b, c = tensor(a), tensor(b), tensor(c)
    if problem.precision == "s8":

        def product():
            torch._int_mm(a, b, out=c)

    elif problem.precision in ("e4m3", "e4m3fast"):
        one, fast = torch.ones((), device="cuda"), problem.precision == "e4m3fast"
        torch.cuda.synchronize()  # `one` was written on another stream

        def product():
            torch._scaled_mm(a, b, one, one, out_dtype=torch.bfloat16, use_fast_accum=fast, out=c)

    else:

        def product():
            torch.set_float32_matmul_precision(fp32)
            torch.matmul(a, b, out=c)

    def launch(stream):
        with on(stream):
            product()

    return launch
