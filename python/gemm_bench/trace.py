"""Reads jobs: as JSON, and in the FlashInfer-Trace family (definition.json and solution.json).

Of that, GEMM operations alone: op_type "gemm", two inputs and an output of one type. Solutions in
Python and Triton run as they are; their tensors are PyTorch's, or NumPy's on a CPU without it.
Solutions in C++ and CUDA are bound to TVM or PyTorch by host code of their own, and are refused.
"""

import json
from pathlib import Path
from typing import Any

from gemm_bench.job import Job, JobError

PRECISIONS = {"float32": "f32", "float16": "f16", "bfloat16": "bf16", "float64": "f64"}

# Behind the constants that it uses; it calls a solution.
_ADAPTER = """
import importlib.util
import pathlib
import sys

FOLDER = pathlib.Path(__file__).parent
sys.path.insert(0, str(FOLDER))
spec = importlib.util.spec_from_file_location("solution", FOLDER / FILE)
solution = sys.modules["solution"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(solution)
run = getattr(solution, FUNCTION)


def tensor(matrix, device):
    try:
        import torch
    except ImportError:
        if device == "gpu":
            raise
        import numpy

        return numpy.asarray(matrix)
    made = torch.as_tensor(matrix, device="cuda" if device == "gpu" else "cpu")
    return made.view(torch.bfloat16) if matrix.element == "bf16" else made


def prepare(problem, a, b, c):
    a, b, c = (tensor(each, problem.device) for each in (a, b, c))
    inputs = [a.T if TRANSPOSED[0] else a, b.T if TRANSPOSED[1] else b]
    if B_IS_FIRST:
        inputs.reverse()

    def compute():
        if WRITES_C:
            run(*inputs, c)
        else:
            c[...] = run(*inputs)

    def launch(stream):
        if problem.device == "cpu":
            return compute()
        import torch

        with torch.cuda.stream(torch.cuda.ExternalStream(stream)):
            compute()

    return launch
"""


def job_of(body: bytes) -> Job:
    """A job as JSON: that of Job.from_json, or one with `definition`, `solution`, `shapes` as in
    read_trace, and other fields of Job. Raises JobError."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        raise JobError("the body is no JSON") from None
    if not isinstance(document, dict) or "definition" not in document:
        return Job.from_json(document)
    parts = [document.pop(key, None) for key in ("definition", "solution", "shapes")]
    return read_trace(*parts, **document)


def read_trace(definition: Any, solution: Any, shapes: Any, **options: Any) -> Job:
    """The job of a definition and a solution, each a Path or what is in the file. `shapes` are the
    sizes of the variable axes, as [{"M": 1024}, {"M": 4096}]; `options` are other fields of Job.
    Raises JobError."""
    definition, solution = _document(definition), _document(solution)
    try:
        job = _from(definition, solution, shapes)
    except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
        why = f"{type(error).__name__}: {error}"
        raise JobError(f"no definition, solution and shapes of a GEMM: {why:.200}") from None
    return Job.from_json({**options, **job})


def _document(given: Any) -> Any:
    if not isinstance(given, Path):
        return given
    try:
        return json.loads(given.read_text())
    except (OSError, ValueError) as error:
        raise JobError(f"{given}: {error}") from None


def _from(definition: Any, solution: Any, shapes: Any) -> dict[str, Any]:
    spec = solution["spec"]
    if spec["language"] not in ("python", "triton"):
        raise JobError(f"a solution in {spec['language']} is bound by host code: give a .cu file")
    if definition["op_type"] != "gemm" or len(definition["inputs"]) != 2:
        raise JobError("the definition is no GEMM of two inputs")
    (c,) = definition["outputs"].values()
    first, second = definition["inputs"].values()
    types = {first["dtype"], second["dtype"], c["dtype"]}
    if len(types) != 1 or not types <= PRECISIONS.keys():
        raise JobError(f"types {', '.join(sorted(types))}: give one of {', '.join(PRECISIONS)}")
    rows, columns = c["shape"]
    b_is_first = rows not in first["shape"]
    a, b = (second, first) if b_is_first else (first, second)
    (inner,) = set(a["shape"]) - {rows} or {rows}
    stored = {"A": [[rows, inner], [inner, rows]], "B": [[inner, columns], [columns, inner]]}
    transposed = [stored["A"].index(a["shape"]) == 1, stored["B"].index(b["shape"]) == 1]

    axes = definition["axes"]

    def size(axis: str, sizes: dict[str, int]) -> int:
        return int(axes[axis]["value"] if axes[axis]["type"] == "const" else sizes[axis])

    file, function = spec["entry_point"].split("::")
    constants = {
        **{"FILE": file, "FUNCTION": function, "TRANSPOSED": transposed},
        "B_IS_FIRST": b_is_first,
        "WRITES_C": bool(spec.get("destination_passing_style", True)),
    }
    return {
        "source": "".join(f"{name} = {each!r}\n" for name, each in constants.items()) + _ADAPTER,
        "files": {each["path"]: each["content"] for each in solution["sources"]},
        "language": "py",
        "precision": PRECISIONS[c["dtype"]],
        "layout": "".join("nt"[each] for each in transposed),
        "shapes": [[size(axis, each) for axis in (rows, columns, inner)] for each in shapes],
    }
