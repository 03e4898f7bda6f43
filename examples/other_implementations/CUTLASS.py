"""CUTLASS through its Python interface (nvidia-cutlass), with its default tile and schedule,
compiled by nvcc on the first run.

Version 4.2 imports the modules of cuda-python 12; in 13 they have other names, and the version is
in another module.
"""

import importlib
import sys

import torch

for old, new in {"cuda": "driver", "cudart": "runtime", "nvrtc": "nvrtc"}.items():
    try:
        importlib.import_module(f"cuda.{old}")
    except ImportError:
        sys.modules[f"cuda.{old}"] = importlib.import_module(f"cuda.bindings.{new}")
cuda = importlib.import_module("cuda")
if not hasattr(cuda, "__version__"):
    cuda.__dict__["__version__"] = importlib.import_module("cuda.bindings").__version__
cutlass = importlib.import_module("cutlass_cppgen")
driver = importlib.import_module("cuda.bindings.driver")

ELEMENTS = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


def unsupported(problem):
    """Precisions and layouts that the plan does not support."""
    known = problem.precision in ELEMENTS and problem.layout == "nn"
    return None if known else "supports f32, f16 and bf16 in layout nn"


def prepare(problem, a, b, c):
    """Compiles the plan by running it once."""
    element = ELEMENTS[problem.precision]
    plan = cutlass.op.Gemm(
        element=element,
        element_accumulator=torch.float32,
        layout=cutlass.LayoutType.RowMajor,
    )
    if problem.precision == "f32":  # by default FP32 runs on tensor cores as TF32
        plan.opclass = cutlass.OpcodeClass.Simt
    a, b, c = (torch.as_tensor(each, device="cuda").view(element) for each in (a, b, c))

    def launch(stream):
        plan.run(a, b, c, c, alpha=1, beta=0, sync=False, stream=driver.CUstream(stream))

    launch(torch.cuda.current_stream().cuda_stream)
    torch.cuda.synchronize()
    return launch
