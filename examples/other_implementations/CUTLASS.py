"""CUTLASS through its Python interface (nvidia-cutlass): a plan with the tile and schedule that it
takes by default, compiled by nvcc when it is first run.

Version 4.2 asks for the modules of cuda-python 12; under 13 the same ones have other names, and
the version stands elsewhere.
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
    """What the plan is not made for."""
    known = problem.precision in ELEMENTS and problem.layout == "nn"
    return None if known else "computes f32, f16 and bf16 in layout nn"


def prepare(problem, a, b, c):
    """Compiled: run once."""
    element = ELEMENTS[problem.precision]
    plan = cutlass.op.Gemm(
        element=element,
        element_accumulator=torch.float32,
        layout=cutlass.LayoutType.RowMajor,
    )
    if problem.precision == "f32":  # the default takes FP32 to tensor cores as TF32
        plan.opclass = cutlass.OpcodeClass.Simt
    a, b, c = (torch.as_tensor(each, device="cuda").view(element) for each in (a, b, c))

    def launch(stream):
        plan.run(a, b, c, c, alpha=1, beta=0, sync=False, stream=driver.CUstream(stream))

    launch(torch.cuda.current_stream().cuda_stream)
    torch.cuda.synchronize()
    return launch
