"""Definitions and solutions of the FlashInfer-Trace family become jobs; others are refused."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from gemm_bench import JobError, judge
from gemm_bench.trace import job_of, read_trace

ROOT = Path(__file__).parents[2]
BUILD = ROOT / os.environ.get("GEMM_BENCH_BUILD", "build/release")


def definition(**changed: Any) -> dict[str, Any]:
    return {
        "name": "gemm_n48_k32",
        "op_type": "gemm",
        "axes": {
            "M": {"type": "var"},
            "N": {"type": "const", "value": 48},
            "K": {"type": "const", "value": 32},
        },
        "inputs": {
            "A": {"shape": ["M", "K"], "dtype": "float32"},
            "B": {"shape": ["N", "K"], "dtype": "float32"},
        },
        "outputs": {"C": {"shape": ["M", "N"], "dtype": "float32"}},
        "reference": "import torch\ndef run(A, B):\n    return A @ B.T",
        **changed,
    }


def solution(text: str, **spec: Any) -> dict[str, Any]:
    return {
        "name": "mine",
        "definition": "gemm_n48_k32",
        "author": "me",
        "spec": {"language": "python", "entry_point": "src/main.py::run", **spec},
        "sources": [{"path": "src/main.py", "content": text}],
    }


INTO_C = solution("import numpy\ndef run(A, B, C):\n    numpy.matmul(A, B.T, out=C)\n")
RETURNS = solution("def run(A, B):\n    return A @ B.T\n", destination_passing_style=False)
B_FIRST = solution("import numpy\ndef run(B, A, C):\n    numpy.matmul(A, B.T, out=C)\n")
WRONG = solution("def run(A, B, C):\n    C[...] = 0\n")


def test_what_a_definition_says() -> None:
    job = read_trace(definition(), INTO_C, [{"M": 1}, {"M": 64}], limit=5)
    assert (job.precision, job.layout, job.language) == ("f32", "nt", "py")
    assert (job.shapes, job.limit) == ([(1, 48, 32), (64, 48, 32)], 5)
    transposed = definition()
    transposed["inputs"] = {
        "A": {"shape": ["K", "M"], "dtype": "bfloat16"},
        "B": {"shape": ["K", "N"], "dtype": "bfloat16"},
    }
    transposed["outputs"] = {"C": {"shape": ["M", "N"], "dtype": "bfloat16"}}
    job = read_trace(transposed, INTO_C, [{"M": 1}])
    assert (job.precision, job.layout) == ("bf16", "tn")


def test_files_and_bodies_are_read(tmp_path: Path) -> None:
    for name, document in (("definition", definition()), ("solution", INTO_C)):
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    files = (tmp_path / "definition.json", tmp_path / "solution.json")
    body = {"definition": definition(), "solution": INTO_C, "shapes": [{"M": 4}]}
    assert read_trace(*files, [{"M": 4}]) == job_of(json.dumps(body).encode())
    with pytest.raises(JobError, match=r"none\.json"):
        read_trace(tmp_path / "none.json", INTO_C, [{"M": 4}])


@pytest.mark.parametrize(
    ("changed", "given", "shapes", "why"),
    [
        ({"op_type": "rmsnorm"}, INTO_C, [{"M": 1}], "no GEMM"),
        ({}, solution("", language="cuda"), [{"M": 1}], "host code"),
        ({}, solution("", entry_point="main.py"), [{"M": 1}], "no definition"),
        (
            {"outputs": {"C": {"shape": ["M", "N"], "dtype": "float16"}}},
            INTO_C,
            [{"M": 1}],
            "types",
        ),
        ({}, INTO_C, [{"N": 1}], "no definition"),
        ({}, INTO_C, None, "no definition"),
        ({}, None, [{"M": 1}], "no definition"),
        ({"axes": {}}, INTO_C, [{"M": 1}], "no definition"),
        ({}, INTO_C, [{"M": -1}], "shapes"),
    ],
)
def test_what_is_none_is_refused(changed: Any, given: Any, shapes: Any, why: str) -> None:
    with pytest.raises(JobError, match=why):
        read_trace(definition(**changed), given, shapes)


@pytest.mark.skipif(not (BUILD / "gemm_bench").exists(), reason="not built")
def test_solutions_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """With NumPy, or PyTorch where that is installed."""
    pytest.importorskip("numpy")
    monkeypatch.setenv("GEMM_BENCH_BUILD", str(BUILD))
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    b_first = definition()
    b_first["inputs"] = dict(reversed(b_first["inputs"].items()))
    quick = {"baseline": None, "peaks": "nominal", "warmup": 0.01, "sampling": 0.05}
    for document, given, status in (
        (definition(), INTO_C, "passed"),
        (definition(), RETURNS, "passed"),
        (b_first, B_FIRST, "passed"),
        (definition(), WRONG, "wrong"),
    ):
        (verdict,) = judge(read_trace(document, given, [{"M": 24}], **quick), "cpu")
        assert verdict.status == status, verdict.reason
