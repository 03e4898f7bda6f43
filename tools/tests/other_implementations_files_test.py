"""examples/other_implementations without a GPU: fake PyTorch and CuPy."""

import importlib.util
import sys
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

np = pytest.importorskip("numpy")

FILES = Path(__file__).parents[2] / "examples" / "other_implementations"


def imported(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"other_{name}", FILES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Tensor:
    """An array that knows which element its bits are taken for."""

    def __init__(self, array: Any, element: str) -> None:
        self.array, self.element = array, element

    def view(self, element: str) -> "Tensor":
        return Tensor(self.array, element)


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Products of arrays, and what was asked with them."""
    asked: list[dict[str, Any]] = []
    settings: dict[str, Any] = {}

    def product(name: str) -> Any:
        def call(a: Tensor, b: Tensor, *scales: Any, out: Tensor, **how: Any) -> None:
            elements = (a.element, b.element, out.element)
            asked.append({"name": name, "elements": elements, **settings, **how})
            np.matmul(a.array, b.array, out=out.array, casting="unsafe")

        return call

    def stream(which: int) -> Any:
        settings["stream"] = which
        return nullcontext()

    found = SimpleNamespace(
        asked=asked,
        cuda=SimpleNamespace(
            ExternalStream=lambda stream: stream, stream=stream, synchronize=lambda: None
        ),
        backends=SimpleNamespace(cuda=SimpleNamespace(matmul=SimpleNamespace())),
        set_float32_matmul_precision=lambda name: settings.update(float32=name),
        ones=lambda *size, device: 1,
        as_tensor=lambda matrix, device: Tensor(matrix.array, matrix.element),
        bfloat16="bfloat16",
        float8_e4m3fn="float8_e4m3fn",
        matmul=product("matmul"),
        _int_mm=product("_int_mm"),
        _scaled_mm=product("_scaled_mm"),
    )
    monkeypatch.setitem(sys.modules, "torch", found)
    return found


def problem(precision: str, m: int, n: int, k: int, layout: str = "nn") -> SimpleNamespace:
    return SimpleNamespace(precision=precision, layout=layout, m=m, n=n, k=k)


@pytest.mark.parametrize(
    ("precision", "elements", "expected"),
    [
        ("f32", ("f32", "f32"), {"name": "matmul", "float32": "highest"}),
        ("tf32", ("f32", "f32"), {"name": "matmul", "float32": "high"}),
        ("bf16", ("bf16", "bf16"), {"name": "matmul", "elements": ("bfloat16",) * 3}),
        ("e4m3", ("e4m3", "bf16"), {"name": "_scaled_mm", "use_fast_accum": False}),
        ("e4m3fast", ("e4m3", "bf16"), {"name": "_scaled_mm", "use_fast_accum": True}),
        ("s8", ("s8", "s32"), {"name": "_int_mm", "elements": ("s8", "s8", "s32")}),
    ],
)
def test_pytorch_is_asked_for_the_arithmetic_of_the_precision(
    torch: SimpleNamespace, precision: str, elements: tuple[str, str], expected: dict[str, Any]
) -> None:
    random = np.random.default_rng(1)
    a, b = random.integers(-4, 5, (32, 48)), random.integers(-4, 5, (48, 16))
    c = np.full((32, 16), -1)
    inside, outside = elements
    operands = [
        SimpleNamespace(array=x, element=e) for x, e in ((a, inside), (b, inside), (c, outside))
    ]
    other, what = imported("PyTorch"), problem(precision, 32, 16, 48)
    launch = other.prepare(what, *operands)
    launch(7)
    assert np.array_equal(c, a @ b)
    (asked,) = torch.asked
    assert asked["stream"] == 7
    assert expected.items() <= asked.items()
    flags = vars(torch.backends.cuda.matmul)
    assert flags and not any(flags.values()), "no sums in 16 bits"


def test_what_pytorch_does_not_take_is_unsupported(torch: SimpleNamespace) -> None:
    unsupported = imported("PyTorch").unsupported
    for layout in ("nn", "nt", "tn", "tt"):
        assert unsupported(problem("bf16", 5, 7, 23, layout)) is None
    for precision in ("e4m3", "e4m3fast", "s8"):
        assert unsupported(problem(precision, 32, 32, 32, "nt")) is None
        assert "layout nt" in unsupported(problem(precision, 32, 32, 32))
        assert "multiples" in unsupported(problem(precision, 32, 7, 32, "nt"))
    assert "m > 16" in unsupported(problem("s8", 16, 32, 32, "nt"))
    assert unsupported(problem("e5m2", 32, 32, 32)) == "PyTorch does not support e5m2"


def test_cupy_multiplies_on_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    streams: list[int] = []

    def stream(which: int) -> Any:
        streams.append(which)
        return nullcontext()

    found = SimpleNamespace(
        asarray=np.asarray, matmul=np.matmul, cuda=SimpleNamespace(ExternalStream=stream)
    )
    monkeypatch.setitem(sys.modules, "cupy", found)
    a, b, c = np.ones((2, 3)), np.ones((3, 4)), np.zeros((2, 4))
    imported("CuPy").prepare(problem("f32", 2, 4, 3), a, b, c)(9)
    assert (c == 3).all()
    assert streams == [9]
