"""Values of matrices: the uniform fill of bench/verification/fill.hpp, and elements that NumPy has no type for.

BF16 and FP8 are kept as the integers of their bits. as_in_cpp_test.py compiles bench/verification/fill.hpp and
compares.
"""

import numpy as np
from numpy.typing import NDArray

# What an element is stored as.
STORAGE = {
    "f32": np.float32,
    "bf16": np.int16,
    "f16": np.float16,
    "e4m3": np.uint8,
    "f64": np.float64,
    "s32": np.int32,
    "s8": np.int8,
}
FILL = "uniform[-1,1]"
_CHUNK = 1 << 22  # elements that are made at a time


def filled(element: str, count: int, seed: int) -> NDArray:
    """Element i depends on the seed and i alone."""
    found = np.empty(count, STORAGE[element])
    for start in range(0, count, _CHUNK):
        index = np.arange(start, min(count, start + _CHUNK), dtype=np.uint64)
        found[start : start + len(index)] = _uniform(element, random_bits(seed, index))
    return found


def random_bits(seed: int, index: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finalizer of SplitMix64 over a counter."""
    first = np.uint64((seed + 1) * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF)
    z = first + index * np.uint64(0xD1342543DE82EF95)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def as_double(element: str, stored: NDArray) -> NDArray[np.float64]:
    """The values of what is stored, exactly."""
    if element == "bf16":
        bits = stored.view(np.uint16).astype(np.uint32) << 16
        return bits.view(np.float32).astype(np.float64)
    if element == "e4m3":
        return _E4M3[stored]
    return stored.astype(np.float64)


def _uniform(element: str, bits: NDArray[np.uint64]) -> NDArray:
    if element == "f64":
        return ((bits >> np.uint64(10)).astype(np.int64) - (1 << 53)) * 2.0**-53
    if element == "s8":
        return ((bits >> np.uint64(56)).astype(np.int16) - 128).astype(np.int8)
    value = ((bits >> np.uint64(40)).astype(np.float32) - np.float32(2**23)) * np.float32(2**-23)
    if element == "bf16":
        return _to_bf16(value)
    return _to_e4m3(value) if element == "e4m3" else value.astype(STORAGE[element])


def _to_bf16(value: NDArray[np.float32]) -> NDArray[np.int16]:
    """To the nearest, ties to even."""
    bits = value.view(np.uint32)
    rounded = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    return (rounded >> np.uint32(16)).astype(np.uint16).view(np.int16)


def _e4m3_values() -> NDArray[np.float64]:
    """Of all 256 codes: four bits of exponent with a bias of 7, three of fraction, no infinity."""
    code = np.arange(256)
    exponent, fraction = (code >> 3) & 15, code & 7
    value = np.where(exponent == 0, fraction * 2.0**-9, (8 + fraction) * 2.0 ** (exponent - 10.0))
    value[(code & 127) == 127] = np.nan
    return np.where(code & 128, -value, value)


_E4M3 = _e4m3_values()
_E4M3_MIDDLES = (_E4M3[:126] + _E4M3[1:127]) / 2


def _to_e4m3(value: NDArray[np.float32]) -> NDArray[np.uint8]:
    """To the nearest, ties to even, which is the even code; |value| is at most 1 here."""
    size = np.abs(value).astype(np.float64)
    code = np.searchsorted(_E4M3_MIDDLES, size)
    tie = _E4M3_MIDDLES[np.minimum(code, 125)] == size
    code += tie & (code % 2 == 1)
    return (code | np.where(np.signbit(value), 128, 0)).astype(np.uint8)
