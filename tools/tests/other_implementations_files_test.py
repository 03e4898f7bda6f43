"""examples/other_implementations/PyTorch.py without a GPU: a fake PyTorch."""

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

    def t(self) -> "Tensor":
        return Tensor(self.array.T, self.element)

    def __getitem__(self, which: slice) -> "Tensor":
        return Tensor(self.array[which], self.element)

    def stride(self) -> tuple[int, ...]:
        return tuple(step // self.array.itemsize for step in self.array.strides)

    shape = property(lambda self: self.array.shape)
    dtype = property(lambda self: self.element)
    data_ptr = property(lambda self: lambda: self.array.ctypes.data)


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

    def of_groups(a: Tensor, b: Tensor, *, offs: Tensor) -> Tensor:
        asked.append({"name": "_grouped_mm", **settings})
        size = (a.array.shape[0], b.array.shape[2])
        out = settings["allocate"](size, (size[1], 1), dtype=a.element, device="cuda")
        for first, end, one in zip((0, *offs.array), offs.array, b.array, strict=False):
            out.array[first:end] = a.array[first:end] @ one
        return out

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
        _grouped_mm=of_groups,
        addmm=lambda added, a, b, **how: product("addmm")(a, b, added, **how),
        _addmm_activation=lambda added, a, b, **how: product("activation")(a, b, added, **how),
        library=SimpleNamespace(
            Library=lambda *_: SimpleNamespace(
                impl=lambda name, function, *_, **how: settings.update(allocate=function)
            )
        ),
        __version__=(2, 11),
    )
    monkeypatch.setitem(sys.modules, "torch", found)
    return found


def problem(
    precision: str, m: int, n: int, k: int, layout: str = "nn", **more: Any
) -> SimpleNamespace:
    plain = {"batch": 1, "row_starts": (), "epilogue": "none"}
    return SimpleNamespace(precision=precision, layout=layout, m=m, n=n, k=k, **plain | more)


def operand(array: Any, element: str, **more: Any) -> SimpleNamespace:
    nothing = dict.fromkeys(("row_starts", "scales", "bias", "residual"))
    return SimpleNamespace(array=array, element=element, **nothing | more)


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
    operands = [operand(x, e) for x, e in ((a, inside), (b, inside), (c, outside))]
    other, what = imported("PyTorch"), problem(precision, 32, 16, 48)
    launch = other.prepare(what, *operands)
    launch(7)
    assert np.array_equal(c, a @ b)
    (asked,) = torch.asked
    assert asked["stream"] == 7
    assert expected.items() <= asked.items()
    flags = vars(torch.backends.cuda.matmul)
    assert flags and not any(flags.values()), "no sums in 16 bits"


def test_pytorch_puts_the_result_of_groups_into_c(torch: SimpleNamespace) -> None:
    a, b, c = np.ones((6, 8)), np.ones((3, 8, 16)) * [[[1]], [[2]], [[3]]], np.zeros((6, 16))
    starts = operand(np.array([0, 2, 2, 6]), "s32")
    operands = operand(a, "bf16", row_starts=starts), operand(b, "bf16"), operand(c, "bf16")
    what = problem("bf16", 2, 16, 8, batch=3, row_starts=(0, 2, 2, 6))
    imported("PyTorch").prepare(what, *operands)(5)
    assert (c[:2] == 8).all()
    assert (c[2:] == 24).all()
    assert [each["name"] for each in torch.asked] == ["_grouped_mm"]


@pytest.mark.parametrize(
    ("epilogue", "name"), [("bias", "addmm"), ("bias-gelu", "activation"), ("residual", "addmm")]
)
def test_pytorch_is_asked_for_the_epilogue(
    torch: SimpleNamespace, epilogue: str, name: str
) -> None:
    added = {epilogue.partition("-")[0]: operand(np.ones(16), "bf16")}
    a, b = operand(np.ones((4, 8)), "bf16"), operand(np.ones((8, 16)), "bf16")
    c = operand(np.zeros((4, 16)), "bf16", **added)
    imported("PyTorch").prepare(problem("bf16", 4, 16, 8, epilogue=epilogue), a, b, c)(5)
    (asked,) = torch.asked
    assert asked["name"] == name
    assert asked.get("use_gelu", False) == (epilogue == "bias-gelu")


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
    assert unsupported(problem("e4m3block", 32, 32, 32, "nt")) is None
    assert "m a multiple of 4" in unsupported(problem("e4m3block", 33, 32, 32, "nt"))
    assert "no batch" in unsupported(problem("s8", 32, 32, 32, "nt", batch=2))
    assert unsupported(problem("f32", 5, 7, 23, batch=2)) is None
    groups = {"batch": 2, "row_starts": (0, 3, 8)}
    assert unsupported(problem("bf16", 4, 16, 8, "nt", **groups)) is None
    assert "n and k in eights" in unsupported(problem("bf16", 4, 12, 8, "nt", **groups))
    assert "requires bf16" in unsupported(problem("f16", 4, 16, 8, "nt", **groups))
