"""Is a result right? Every element of C against an FP64 product of the stored operands."""

import contextlib
import math
import tempfile
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gemm_peers.elements import as_double, filled
from gemm_peers.problem import Problem, bound_for

REFERENCE = "FP64 product of the stored operands"
_ROWS = 1024  # that are judged at a time


@dataclass(frozen=True)
class Operands:
    """A and B as they lie in memory, and what C must be."""

    a: NDArray
    b: NDArray
    expected: NDArray[np.float64]
    magnitude: NDArray[np.float64]


_MATRICES = [each.name for each in fields(Operands)]


@dataclass(frozen=True)
class Verdict:
    """What a whole C looks like; errors that are not finite are NaN."""

    wrong: int
    max_error: float
    max_of_bound: float
    bound_at_max: float
    complaint: str | None

    @property
    def passed(self) -> bool:
        """Whether every element does."""
        return self.wrong == 0


def operands(p: Problem, seed: int, scratch: Path | None = None) -> Operands:
    """Of the problem; kept in `scratch` for whoever comes next."""
    kept = scratch and scratch / f"{p.traits.input}-{p.layout}-{p.shape}-{seed}"
    if kept and kept.exists():
        return Operands(*(np.load(kept / f"{name}.npy", mmap_mode="r") for name in _MATRICES))
    made = _made(p, seed)
    if kept:
        # Without room for it the next one makes it again.
        with contextlib.suppress(OSError), tempfile.TemporaryDirectory(dir=scratch) as folder:
            part = Path(folder, "part")
            part.mkdir()
            for name in _MATRICES:
                np.save(part / f"{name}.npy", getattr(made, name))
            part.replace(kept)
    return made


def _made(p: Problem, seed: int) -> Operands:
    traits = p.traits
    a = filled(traits.input, p.m * p.k, 2 * seed).reshape(p.a_stored)
    b = filled(traits.input, p.k * p.n, 2 * seed + 1).reshape(p.b_stored)
    left, right = as_double(traits.input, a), as_double(traits.input, b)
    left = left if p.layout[0] == "n" else left.T
    right = right if p.layout[1] == "n" else right.T
    return Operands(a, b, left @ right, np.abs(left) @ np.abs(right))


def judge(p: Problem, c: NDArray, which: Operands) -> Verdict:
    """Of C as it is stored, m x n."""
    bound = bound_for(p)
    wrong, max_error, max_of_bound, bound_at_max = 0, 0.0, 0.0, 0.0
    complaint = None
    for top in range(0, p.m, _ROWS):
        rows = slice(top, top + _ROWS)
        value, expected = as_double(p.traits.output, c[rows]), which.expected[rows]
        limit = bound.of_magnitude * which.magnitude[rows]
        limit = limit + bound.of_expected * np.abs(expected) + bound.absolute
        with np.errstate(invalid="ignore", divide="ignore"):
            error = np.abs(value - expected)
            of_bound = np.where(error == 0, 0.0, error / limit)
            bad = ~(error <= limit)  # so that NaN fails
        if bad.any() and complaint is None:
            row, column = divmod(int(np.argmax(bad)), p.n)
            complaint = (
                f"c[{top + row},{column}] = {value[row, column]:.9g}, expected "
                f"{expected[row, column]:.9g} +- {limit[row, column]:.2g}"
            )
        wrong += int(bad.sum())
        # np.max keeps NaN, and so does this.
        worst = float(np.max(of_bound))
        if not math.isnan(max_of_bound) and not worst <= max_of_bound:
            max_of_bound = worst
            bound_at_max = float(limit.flat[int(np.argmax(of_bound))])
        largest = float(np.max(error))
        if not math.isnan(max_error) and not largest <= max_error:
            max_error = largest
    if complaint:
        complaint += f" ({wrong} of {p.m * p.n} elements are wrong)"
    return Verdict(wrong, max_error, max_of_bound, bound_at_max, complaint)
