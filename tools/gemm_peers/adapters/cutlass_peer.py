"""CUTLASS through its Python interface (nvidia-cutlass): a plan with the defaults that it chooses,
compiled by nvcc when it is first run.

Version 4.2 asks for the modules of cuda-python 12; under 13 the same ones have other names, and
the version stands elsewhere.
"""

import importlib
import sys
from typing import Any

from gemm_peers.adapters.torch_peer import view
from gemm_peers.device import Launch
from gemm_peers.peer import Peer, Prepared, Setting

_OLD_NAMES = {"cuda": "driver", "cudart": "runtime", "nvrtc": "nvrtc"}


def import_cutlass() -> Any:
    """The interface, under either cuda-python."""
    for old, new in _OLD_NAMES.items():
        try:
            importlib.import_module(f"cuda.{old}")
        except ImportError:
            sys.modules[f"cuda.{old}"] = importlib.import_module(f"cuda.bindings.{new}")
    cuda = importlib.import_module("cuda")
    if not hasattr(cuda, "__version__"):
        cuda.__dict__["__version__"] = importlib.import_module("cuda.bindings").__version__
    return importlib.import_module("cutlass_cppgen")


def prepare(setting: Setting) -> Prepared:
    """A plan for the element types of the problem, on the stream that is given."""
    import torch

    cutlass = import_cutlass()
    driver = importlib.import_module("cuda.bindings.driver")
    stream = driver.CUstream(setting.stream)
    p = setting.problem
    element = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}[p.precision]
    plan = cutlass.op.Gemm(
        element=element,
        element_accumulator=torch.float32,
        layout=cutlass.LayoutType.RowMajor,
    )
    if p.precision == "f32":  # the default takes FP32 to tensor cores as TF32
        plan.opclass = cutlass.OpcodeClass.Simt

    def launch(a: Any, b: Any, c: Any) -> Launch:
        left, right, out = (
            view(a, p.traits.input),
            view(b, p.traits.input),
            view(c, p.traits.output),
        )
        return lambda: plan.run(left, right, out, out, alpha=1, beta=0, sync=False, stream=stream)

    return launch


PEER = Peer(
    name="CUTLASS",
    rung=3,
    idea="cutlass_cppgen.op.Gemm with the tile and schedule that it takes by default.",
    kind="gpu",
    packages=("nvidia-cutlass", "torch"),
    layouts=dict.fromkeys(("f32", "bf16", "f16"), "nn"),
    prepare=prepare,
)
