"""What is asked of PyTorch, by a PyTorch that is made up: the right product of what lies in memory,
into the matrix that is there, in the arithmetic of the precision."""

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gemm_peers.adapters.torch_peer import PEER
from gemm_peers.peer import Setting, UnsupportedError
from gemm_peers.problem import Problem


class Tensor:
    """An array that knows which element its bits are taken for."""

    def __init__(self, array: np.ndarray, element: str | None = None) -> None:
        self.array, self.element = array, element

    def t(self) -> "Tensor":
        return Tensor(self.array.T, self.element)

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
            asked.append({"name": name, "elements": elements, **how})
            np.matmul(a.array, b.array, out=out.array, casting="unsafe")

        return call

    matmul = SimpleNamespace()
    found = SimpleNamespace(
        asked=asked,
        settings=settings,
        cuda=SimpleNamespace(
            ExternalStream=lambda stream: stream,
            set_stream=lambda stream: settings.update(stream=stream),
        ),
        backends=SimpleNamespace(cuda=SimpleNamespace(matmul=matmul)),
        set_float32_matmul_precision=lambda name: settings.update(float32=name),
        ones=lambda *size, device: 1,
        as_tensor=lambda array, device: Tensor(array),
        bfloat16="bfloat16",
        float8_e4m3fn="float8_e4m3fn",
        matmul=product("matmul"),
        _int_mm=product("_int_mm"),
        _scaled_mm=product("_scaled_mm"),
    )
    monkeypatch.setitem(sys.modules, "torch", found)
    return found


def product(precision: str, m: int = 32, n: int = 16, k: int = 48) -> None:
    """Launches one on small integers, which every type holds, and checks it."""
    p = Problem(precision, PEER.layouts[precision], m, n, k)
    rng = np.random.default_rng(1)
    a, b = rng.integers(-4, 5, p.a_stored), rng.integers(-4, 5, p.b_stored)
    c = np.full((m, n), -1)
    PEER.prepare(Setting(p, "", 7))(a, b, c)()
    right = b if p.layout[1] == "n" else b.T
    assert np.array_equal(c, a @ right)


@pytest.mark.parametrize("precision", PEER.layouts)
def test_every_precision_is_the_product_of_its_layout_on_our_stream(
    torch: SimpleNamespace, precision: str
) -> None:
    product(precision)
    assert torch.settings["stream"] == 7
    assert torch.settings["float32"] == ("high" if precision == "tf32" else "highest")
    flags = vars(torch.backends.cuda.matmul)
    assert flags and not any(flags.values()), "no sums in 16 bits"


def test_fp8_and_int8_have_calls_of_their_own(torch: SimpleNamespace) -> None:
    for precision in ("e4m3", "e4m3fast", "s8", "bf16"):
        product(precision)
    promoted, fast, int8, bf16 = torch.asked
    assert (promoted["name"], promoted["use_fast_accum"]) == ("_scaled_mm", False)
    assert (fast["name"], fast["use_fast_accum"]) == ("_scaled_mm", True)
    assert fast["elements"] == ("float8_e4m3fn", "float8_e4m3fn", "bfloat16")
    assert (int8["name"], int8["elements"]) == ("_int_mm", (None, None, None))
    assert (bf16["name"], bf16["elements"]) == ("matmul", ("bfloat16",) * 3)


@pytest.mark.parametrize(
    ("precision", "shape"),
    [("e4m3", (32, 16, 23)), ("e4m3fast", (32, 7, 32)), ("s8", (16, 16, 16)), ("s8", (32, 7, 16))],
)
def test_what_it_does_not_take_is_skipped(
    torch: SimpleNamespace, precision: str, shape: tuple[int, int, int]
) -> None:
    with pytest.raises(UnsupportedError, match="multiples of"):
        product(precision, *shape)
