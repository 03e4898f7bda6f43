import dataclasses
import itertools

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_rgb

from gemm_report.figures.palette import (
    LIBRARY_COLORS,
    LIBRARY_LINE,
    PEER_LINE,
    STYLE,
    VARIANT_MARKERS,
    looks,
)
from gemm_report.record import Kernel, Record

# Machado, Oliveira and Fernandes 2009, table 1, severity 1: linear RGB to what is seen of it.
SIGHTS = {
    "everybody": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
}
# In CIELAB, where 2.3 can just be told apart side by side; marks of a figure are not side by side.
FAR_APART = 15


def lab(color: str, sight: np.ndarray) -> np.ndarray:
    """CIELAB (D65) of what is seen of an sRGB colour."""
    rgb = np.array(to_rgb(color))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    to_xyz = np.array(
        [
            [0.4124564, 0.3575761, 0.1804375],
            [0.2126729, 0.7151522, 0.0721750],
            [0.0193339, 0.1191920, 0.9503041],
        ]
    )
    xyz = to_xyz @ np.clip(sight @ linear, 0, 1) / [0.95047, 1, 1.08883]
    x, y, z = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def nearest(colors: list[str], sight: np.ndarray) -> tuple[float, str, str]:
    """The two that are hardest to tell apart, and how far they are from each other."""
    return min(
        (float(np.linalg.norm(lab(a, sight) - lab(b, sight))), a, b)
        for a, b in itertools.combinations(colors, 2)
    )


@pytest.mark.parametrize("who", SIGHTS)
def test_colours_are_told_apart_by(who: str) -> None:
    style = matplotlib.rc_params_from_file(STYLE, use_default_template=False)
    cycle = style["axes.prop_cycle"].by_key()["color"]
    distance, *pair = nearest([*cycle, *LIBRARY_COLORS, "white"], SIGHTS[who])
    assert distance > FAR_APART, pair


def test_colours_that_some_cannot_tell_apart_would_be_found() -> None:
    orange_and_darkened_yellow = ["#E69F00", "#B79F00"]
    assert nearest(orange_and_darkened_yellow, SIGHTS["everybody"])[0] > FAR_APART
    assert nearest(orange_and_darkened_yellow, SIGHTS["protanopia"])[0] < 5
    assert nearest(orange_and_darkened_yellow, SIGHTS["deuteranopia"])[0] < 10


def with_kernels(record: Record, kernels: list[Kernel]) -> Record:
    row = record.rows[0]
    rows = tuple(dataclasses.replace(row, kernel=k.name, family=k.family) for k in kernels)
    return dataclasses.replace(record, kernels=tuple(kernels), rows=rows)


def test_variants_share_the_colour_and_differ_in_the_marker(gpu: Record) -> None:
    looked = looks([gpu])
    variants = [looked[f"Tiled/tile:{tile}"] for tile in (8, 16, 32)]
    assert len({look.color for look in variants}) == 1
    assert [look.marker for look in variants] == ["o", "s", "^"]


def test_kernels_differ_in_colour_or_line_even_when_there_are_many(gpu: Record) -> None:
    kernels = [Kernel(f"Kernel{i}", "simt", 7 * i, "") for i in range(25)]
    looked = looks([with_kernels(gpu, kernels)])
    assert len({(look.color, look.line) for look in looked.values()}) == 25


def test_a_kernel_keeps_its_colour_in_a_record_that_holds_others(gpu: Record) -> None:
    alone = tuple(row for row in gpu.rows if row.kernel == "Tiled")
    kernels = tuple(kernel for kernel in gpu.kernels if kernel.name == "Tiled")
    filtered = looks([dataclasses.replace(gpu, kernels=kernels, rows=alone)])
    assert filtered.items() <= looks([gpu]).items()
    assert len(filtered) == 3


def test_libraries_are_dashed_and_nothing_else_is(gpu: Record) -> None:
    dashed = {label for label, look in looks([gpu]).items() if look.line == LIBRARY_LINE}
    assert dashed == {"cuBLAS/math:default"}


def test_a_kernel_looks_the_same_beside_a_whole_ladder_and_alone(
    h200: Record,
) -> None:
    whole = looks([h200])
    for name in ("Naive", "Tiled", "BlockTile1D", "BlockTile2D"):
        kernels = tuple(kernel for kernel in h200.kernels if kernel.name == name)
        rows = tuple(row for row in h200.rows if row.kernel == name)
        alone = dataclasses.replace(h200, kernels=kernels, rows=rows)
        assert looks([alone]).items() <= whole.items()
    precision = {row.label for row in h200.rows if row.precision == "bf16" and not row.is_library}
    assert len({whole[label].color for label in precision}) == 4, "of four kernels"


def test_kernels_on_one_rung_differ(gpu: Record) -> None:
    kernels = [Kernel(f"Kernel{i}", "simt", 12, "") for i in range(25)]
    looked = looks([with_kernels(gpu, kernels)])
    assert len({(look.color, look.line) for look in looked.values()}) == 25


@pytest.mark.parametrize("step", [0, 1])  # all on rung 0, as files are, and as in old records
def test_peers_are_told_from_every_rung_and_library(h200: Record, step: int) -> None:
    peers = [Kernel(f"Peer{i}", "peer", i * step, "") for i in range(6)]
    rows = with_kernels(h200, peers).rows
    both = dataclasses.replace(h200, kernels=(*h200.kernels, *peers), rows=(*h200.rows, *rows))
    looked = looks([both])
    names = {row.label for row in rows}
    ours = [look for label, look in looked.items() if label not in names]
    theirs = [look for label, look in looked.items() if label in names]
    assert len({look.color for look in theirs}) == 6
    for look in theirs:
        assert look.is_peer
        assert look.line == PEER_LINE
        assert look.marker not in VARIANT_MARKERS
        assert look.bar["hatch"]
    assert not any(look.is_peer or look.line == PEER_LINE or "hatch" in look.bar for look in ours)
    assert looks([h200]).items() <= looked.items(), "rungs look as they do without peers"
