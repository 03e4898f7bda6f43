"""The numbers of the model of a plan's time (kernels/parts/cost.hpp): each with unit and meaning.

A number that was chosen to make one GPU's times come out right is wrong on the next GPU, in
silence. So the model has at most twelve, which describe a machine, and the code that makes and
weighs plans has none besides: a literal there is 0, 1, 2, a size of tiles (a multiple of 8 up to
256), or one that this test names.
"""

import re
from pathlib import Path

import pytest

KERNELS = Path(__file__).parent

# Where plans are made and weighed: the functions, or all of the file, and its other literals.
OTHERS: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "gemm.hpp": (("clusters",), {}),
    "best/best.cpp": ((), {"99": "rung"}),
    "parts/tile_schedule.hpp": ((), {"1023": "keeps sums of sizes in 32 bits"}),
    "parts/tile_traffic.hpp": (("tile_traffic",), {}),
    "parts/specialized_tile.cuh": (
        ("packing_bytes", "specialized_traffic", "specialized_work"),
        {},
    ),
    "parts/packed_operand.cuh": (("packed_pitch", "lines_touched", "packing_bytes"), {}),
    "parts/wgmma_launch.cuh": (
        ("wgmma_traffic",),
        {
            "1.25": "sectors of 128 bytes stored at any even element",
            "1.5": "the same at any element",
            "4": "sectors of an element of 16 bits stored alone, by its share of bytes",
        },
    ),
    "best/fp32/split_plan.hpp": ((), {}),
    "best/fp32/split_reduction.cuh": (
        ("split_traffic", "add_candidates"),
        {"4.0": "bytes of an element"},
    ),
    "best/fp32/split_k.cu": (("unsupported", "candidates"), {}),
    "best/fp32/gemv.cu": (("unsupported", "candidates"), {}),
    "best/tensor/stream_k_plan.cuh": (
        (),
        {
            **dict.fromkeys(("3", "4", "5", "6", "7", "12"), "stages and consumers of tiles"),
            "2048": "the most rows of A for which C^T is looked at",
            "30": "the most columns of all B, as a power of two",
        },
    ),
    "best/tensor/swapped_plan.hpp": (
        (),
        {
            "3": "blocks per SM; the least stages; plans kept of a tile",
            "4": "blocks per SM and of a cluster; bytes of an accumulator",
            "10": "KiB in bytes",
            "228": "KiB of an SM's shared memory",
        },
    ),
    "best/tensor/wgmma_swapped.cu": (
        ("roles_of", "shape_for", "traffic_of", "candidates"),
        {"4": "bytes of an accumulator"},
    ),
    "best/tensor/mma_sync_unaligned.cu": (
        ("work_of", "plans_of", "add_candidates"),
        {"3": "two loads and a store of each chunk"},
    ),
    "best/tensor/mma_f64_stream_k.cu": (("stream_k",), {}),
}

_LITERAL = re.compile(r"(?<![\w.])\d[\d']*(?:\.\d+)?(?:e[+-]?\d+)?(?![\w.])")


def code(path: str) -> str:
    text = re.sub(r'"(?:\\.|[^"\\\n])*"', '""', (KERNELS / path).read_text("utf-8"))
    return re.sub(r"//.*", "", text)


def bodies(text: str, names: tuple[str, ...]) -> str:
    """The functions of these names, or all of the text without any."""
    found = []
    for name in names:
        begins = [m.start() for m in re.finditer(rf"\b{name}\([^;{{]*\)\s*(?:const\s*)?{{", text)]
        assert begins, f"no function {name}"
        for begin in begins:
            depth, at = 0, text.index("{", text.index(")", begin))
            for end in range(at, len(text)):
                depth += {"{": 1, "}": -1}.get(text[end], 0)
                if depth == 0:
                    found.append(text[begin:end])
                    break
    return "\n".join(found) if names else text


def literals(text: str) -> set[str]:
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    return {number for line in lines for number in _LITERAL.findall(line)}


def plain(number: str) -> bool:
    """0, 1, 2 or a size of tiles."""
    value = float(number)
    return value in {0, 1, 2} or (value % 8 == 0 and value <= 256)


def test_the_model_has_twelve_numbers_each_with_its_unit() -> None:
    text = code("parts/cost.hpp")
    (declared,) = re.findall(r"inline constexpr double (k\w+ = [^;]*);", text)
    found = re.findall(r"(k\w+) = [^,;\s]+", declared)
    assert len(found) <= 12
    rest = text.replace(declared, "")
    assert literals(rest) <= {"0", "1", "2"}
    used = rest + code("best/tensor/mma_sync_unaligned.cu")
    commented = (KERNELS / "parts" / "cost.hpp").read_text("utf-8")
    for name in found:
        assert re.search(rf"\b{name}\b", used), name
        assert re.search(rf"\b{name} = [^/\n]*// +\w", commented), name


@pytest.mark.parametrize("path", OTHERS)
def test_plans_have_no_other_numbers(path: str) -> None:
    functions, named = OTHERS[path]
    found = {number for number in literals(bodies(code(path), functions)) if not plain(number)}
    assert found == set(named), "name a literal with its meaning, or remove it"


def test_a_fitted_number_is_found() -> None:
    text = "double f() { return 1.07 * g(64) + 3e-7 * 0x10; }\ndouble h() { return 0.3; }"
    assert {n for n in literals(bodies(text, ("f",))) if not plain(n)} == {"1.07", "3e-7"}
