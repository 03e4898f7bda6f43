import dataclasses
import itertools

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from gemm_report.figures.palette import DARK, LIGHT, Colors, looks
from gemm_report.record import Record
from gemm_report.rows import drawn_rows

# Machado, Oliveira and Fernandes 2009, table 1, severity 1: linear RGB to what is seen of it.
SIGHTS = {
    "everybody": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
         [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
         [-0.011820, 0.042940, 0.968881]]
    ),
}  # fmt: skip
# sRGB to XYZ, over the white of D65.
TO_XYZ = np.array(
    [[0.433953, 0.376219, 0.189828], [0.212673, 0.715152, 0.072175],
     [0.017759, 0.109477, 0.872766]]
)  # fmt: skip
# In CIELAB, where 2.3 can just be told apart side by side; marks of a figure are not side by side.
FAR_APART = 15


def linear(color: str) -> np.ndarray:
    rgb = np.array(to_rgb(color))
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def lab(color: str, sight: np.ndarray) -> np.ndarray:
    """CIELAB (D65) of what is seen of an sRGB colour."""
    xyz = TO_XYZ @ np.clip(sight @ linear(color), 0, 1)
    x, y, z = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def nearest(colors: list[str], sight: np.ndarray) -> tuple[float, str, str]:
    """The two that are hardest to tell apart, and how far they are from each other."""
    return min(
        (float(np.linalg.norm(lab(a, sight) - lab(b, sight))), a, b)
        for a, b in itertools.combinations(colors, 2)
    )


def luminance(color: str) -> float:
    """As WCAG 2.2 defines it."""
    return float(linear(color) @ [0.2126, 0.7152, 0.0722])


def contrast(color: str, paper: str) -> float:
    low, high = sorted([luminance(color), luminance(paper)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colors", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("sight", SIGHTS)
def test_what_is_told_apart_can_be_by_everybody_and_has_contrast(
    sight: str, colors: Colors
) -> None:
    roles = [colors.ours, colors.worse, colors.library, colors.tie, colors.paper]
    distance, *pair = nearest(roles, SIGHTS[sight])
    assert distance > FAR_APART, pair
    for color in (*roles[:-1], colors.soft, colors.ink, colors.other):
        assert contrast(color, colors.paper) >= 3, color
    assert contrast(colors.ink, colors.track) > 7 and contrast(colors.soft, colors.paper) >= 4.5
    assert contrast(colors.paper, colors.ours) >= 4.5, "letters on a bar"


def test_colours_that_some_cannot_tell_apart_would_be_found() -> None:
    orange_and_darkened_yellow = ["#E69F00", "#B79F00"]
    assert nearest(orange_and_darkened_yellow, SIGHTS["everybody"])[0] > FAR_APART
    assert nearest(orange_and_darkened_yellow, SIGHTS["protanopia"])[0] < 5
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21)


def test_what_answers_has_a_look_of_its_own(h200: Record) -> None:
    rows = [row for row in drawn_rows(h200) if row.precision == "f32" and row.m == 4096]
    other = dataclasses.replace(rows[0], kernel="Numba", family="peer")
    found = looks([*rows, other], LIGHT)
    out = {label: (look.color, look.marker) for label, look in found.items() if look.stands_out}
    assert out == {
        "StreamK": (LIGHT.ours, "o"),
        "cuBLASLt/algo:best": (LIGHT.library, "s"),
        other.label: (LIGHT.other, "x"),
    }
