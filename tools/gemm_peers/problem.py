"""A product, and how exact it must be: kernels/precision.hpp and the bound of bench/verification/verdict.hpp in
Python. as_in_cpp_test.py compiles those and compares."""

import math
from dataclasses import dataclass

_INFINITE = 2**63 - 1
_PROMOTION = 128


@dataclass(frozen=True)
class Precision:
    """A row of kernels/precision.hpp: element types, and unit round-offs as relative errors."""

    name: str
    input: str
    output: str
    accumulate_error: float
    input_error: float = 0.0
    output_error: float = 0.0
    output_smallest: float = 0.0
    coarse_error: float = 0.0
    coarse_length: int = 1
    longest_sum: int = _INFINITE


_FP8 = (2**-24, 0.0, 2**-8, 0.0, 2**-13)

PRECISIONS = {
    row.name: row
    for row in (
        Precision("f32", "f32", "f32", 2**-24),
        Precision("tf32", "f32", "f32", 2**-23, 2**-9),
        Precision("bf16", "bf16", "bf16", 2**-23, 0.0, 2**-8),
        Precision("f16", "f16", "f16", 2**-23, 0.0, 2**-11, 2**-25),
        Precision("e4m3", "e4m3", "bf16", *_FP8, _PROMOTION),
        Precision("e4m3fast", "e4m3", "bf16", *_FP8, _INFINITE),
        Precision("f64", "f64", "f64", 2**-52),
        Precision("s8", "s8", "s32", 0.0, longest_sum=2**31 // (128 * 128) - 1),
    )
}
ELEMENT_BYTES = {"f32": 4, "bf16": 2, "f16": 2, "e4m3": 1, "f64": 8, "s32": 4, "s8": 1}


@dataclass(frozen=True)
class Problem:
    """C (m x n) = A (m x k) * B (k x n), stored as `layout` says: t is the transpose, by rows."""

    precision: str
    layout: str
    m: int
    n: int
    k: int

    @property
    def traits(self) -> Precision:
        """Of its precision."""
        return PRECISIONS[self.precision]

    @property
    def a_stored(self) -> tuple[int, int]:
        """Rows and columns of A in memory."""
        return (self.m, self.k) if self.layout[0] == "n" else (self.k, self.m)

    @property
    def b_stored(self) -> tuple[int, int]:
        """Rows and columns of B in memory."""
        return (self.k, self.n) if self.layout[1] == "n" else (self.n, self.k)

    @property
    def flop(self) -> float:
        """Of the mathematics."""
        return 2.0 * self.m * self.n * self.k

    @property
    def input_bytes(self) -> int:
        """A and B."""
        return ELEMENT_BYTES[self.traits.input] * self.k * (self.m + self.n)

    @property
    def output_bytes(self) -> int:
        """C."""
        return ELEMENT_BYTES[self.traits.output] * self.m * self.n

    @property
    def bytes_minimum(self) -> float:
        """A and B read once, C written once."""
        return float(self.input_bytes + self.output_bytes)

    @property
    def shape(self) -> str:
        """As in a benchmark's name."""
        return f"{self.m}x{self.n}x{self.k}"


@dataclass(frozen=True)
class Bound:
    """For an element with the exact value `expected` and the sum of |a*b| `magnitude`."""

    of_magnitude: float
    of_expected: float
    absolute: float


def bound_for(p: Problem) -> Bound:
    """bench/verification/verdict.hpp says why."""
    traits, k = p.traits, float(p.k)
    coarse = float(min(p.k, traits.coarse_length))
    sums = math.ceil(k / coarse)
    coarse_error = traits.coarse_error * min(k + 2, 4 * math.sqrt(k)) * coarse / k
    of_magnitude = traits.accumulate_error * min(sums + 2, 8 * math.sqrt(sums))
    of_magnitude += coarse_error / math.sqrt(coarse)
    of_expected = traits.output_error + coarse_error
    share = 8 / math.sqrt(k)
    if share < 1:
        of_magnitude += traits.input_error * share
        of_expected += traits.input_error
    else:
        of_magnitude += traits.input_error
    return Bound(of_magnitude, of_expected, traits.output_smallest)
