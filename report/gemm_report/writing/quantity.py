"""Numbers as people read them: records hold SI units without prefixes, only pages have prefixes."""

from collections.abc import Iterable

# T is the last: tensor cores, too, are counted in TFLOP/s, next to what is 30 times slower.
_PREFIXES = {"p": -12, "n": -9, "µ": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12}


def significant(value: float) -> str:
    """Three significant digits, or all digits before the point."""
    return f"{value:.0f}" if abs(value) >= 999.5 else f"{value:#.3g}".removesuffix(".")


def prefix_for(values: Iterable[float]) -> str:
    """The prefix under which the largest of `values` lies between 1 and 1000, if there is one."""
    # Rounding first: 999.9e9 is written 1.00 T, not 1000 G.
    largest = max((float(f"{value:.3g}") for value in values), default=1.0)
    fitting = [prefix for prefix, power in _PREFIXES.items() if largest >= 10.0**power]
    return fitting[-1] if fitting else next(iter(_PREFIXES))


def scaled(value: float, prefix: str) -> float:
    """`value` counted in units of `prefix`."""
    return value / 10.0 ** _PREFIXES[prefix]


def quantity(value: float, unit: str) -> str:
    """For example 66.9 TFLOP/s."""
    prefix = prefix_for([value]) if value else ""
    return f"{significant(scaled(value, prefix))} {prefix}{unit}"


def megahertz(value: float) -> str:
    """For example 1980 MHz, since clocks move in steps of 15 MHz."""
    return f"{value / 1e6:.0f} MHz"


def times(factor: float | None) -> str:
    """For example ×1.31, and nothing where there is nothing to compare with."""
    if factor is None:
        return ""
    return f"×{factor:.2f}" if 0.095 <= factor < 9.995 else f"×{significant(factor)}"


def percent(fraction: float | None) -> str:
    """For example 73.1 %, and a dash where nothing is known."""
    return "-" if fraction is None else f"{100 * fraction:.1f} %"


def change(ratio: float) -> str:
    """For example +3.10 %; of what is far off, the factor."""
    if not 0.1 < ratio < 10:
        return f"×{ratio:.3g}"
    # Not -0.00.
    return f"{round(100 * (ratio - 1), 2) + 0.0:+.2f} %"
