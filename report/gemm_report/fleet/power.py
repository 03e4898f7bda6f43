"""What `gemm-report fleet` finds in simulated fleets, beside the rules of other tools.

    PYTHONPATH=report python -m gemm_report.fleet.power

Each fleet has 1,000 GPUs in nodes of eight. Spread: from the slowest to the fastest of four H200s
were 0.1 % in FP32, 0.3 to 1.7 % in BF16 and 0.4 to 1.9 % in FP8, half of that range is a sigma. In
BF16 and FP8 it is the clock at the power cap that differs. The last table has three times the
spread. Memory and links are assumed. Of each fault there are five GPUs in a fleet.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from gemm_report.fleet.judging import judge
from gemm_report.fleet.reading import COPIES, Finding, Gpu, Group, Rate, state_of
from gemm_report.grouping import grouped
from gemm_report.writing.tables import markdown_table

GPUS, PER_NODE, PLANTED = 1000, 8, 5
SEEDS = range(500, 510)  # the rule was tuned on seeds below 200
# Per second; sigma of the clock and of everything else among GPUs; SM clock, power in W.
CASES = {
    "Best/f32/8192x8192x8192": (52e12, 0.0005, 0.0003, 1.98e9, 650),
    "Best/bf16/8192x8192x8192": (680e12, 0.0045, 0.001, 1.35e9, 700),
    "Best/layout:nt/e4m3/8192x8192x8192": (1100e12, 0.005, 0.001, 1.4e9, 700),
    "DRAM_read": (4.7e12, 0, 0.001, None, 400),
    "DRAM_copy": (4.2e12, 0, 0.001, None, 400),
    "L2_read": (9.9e12, 0.0002, 0.001, 1.98e9, 400),
    "PCIe_to_device": (55e9, 0, 0.003, None, 100),
    "PCIe_to_host": (55e9, 0, 0.003, None, 100),
    COPIES: (390e9, 0, 0.002, None, 100),
}
FP32, BF16, _FP8 = PRODUCTS = list(CASES)[:3]
FAULTS = ("more cycles", "lower clock", "DRAM", "PCIe")
SIZES = (0.02, 0.03, 0.05, 0.12)
Fault = tuple[str, float]  # what is slower, and by how much
Rule = Callable[[Sequence[Gpu]], list[bool]]
GOOD: Fault = ("", 0.0)
WRONG: Fault = ("wrong", 0.0)


def simulated(
    seed: int, count: int = GPUS, wider: float = 1, each: int = PLANTED
) -> tuple[list[Gpu], list[Fault]]:
    """GPUs, and what was planted in each; `each` is how many GPUs have the same fault."""
    random = np.random.default_rng(seed)
    truth = [*((kind, size) for kind in FAULTS for size in SIZES), WRONG] * each
    truth += [GOOD] * (count - len(truth))
    truth = [truth[i] for i in random.permutation(count)]
    return [_gpu(i, fault, random, wider) for i, fault in enumerate(truth)], truth


def _gpu(i: int, fault: Fault, random: np.random.Generator, wider: float) -> Gpu:
    kind, loss = fault
    silicon = random.normal()
    temperature = 55 + 5 * random.normal() - 2 * silicon
    rates = {}
    for name, (rate, clock_sigma, sigma, sm_hz, power) in CASES.items():
        clock = np.exp(wider * clock_sigma * silicon)
        work = np.exp(wider * sigma * random.normal())
        capped = name in PRODUCTS[1:]
        held = kind == "lower clock" and name in PRODUCTS
        if held:
            clock /= 1 + loss
        elif name in PRODUCTS if kind == "more cycles" else name.split("_")[0] == kind:
            work /= 1 + loss
        rates[name] = Rate(
            value=float(rate * clock * work),
            error=0.001 if capped else 0.0002,
            sm_hz=sm_hz and float(sm_hz * clock),
            power_w=power,
            temperature_c=float(temperature),
            reasons=("power cap",) if capped or held else (),
        )
    wrong = (Finding("wrong", FP32, "the result is wrong"),) if fault == WRONG else ()
    return Gpu(
        node=f"n{i // PER_NODE + 1:04}",
        bus=f"0000:{16 * (i % PER_NODE + 1):02X}:00.0",
        uuid=f"{i:016x}",
        group=Group("NVIDIA H200", "580.159.04", 700.0),
        rates={n: r for n, r in rates.items() if not (wrong and n == FP32)},
        findings=wrong,
    )


def ours(gpus: Sequence[Gpu]) -> list[bool]:
    """Which are bad."""
    return [state_of(gpu) != "good" for gpu in judge(gpus).gpus]


def _rate(gpu: Gpu, name: str) -> float:
    """A result that nobody verifies is as fast as any."""
    return gpu.rates[name].value if name in gpu.rates else CASES[name][0]


def _below(share: float, name: str, of: Callable[[list[float]], float]) -> Rule:
    """Those whose rate is below a share of a figure of their node."""

    def rule(gpus: Sequence[Gpu]) -> list[bool]:
        nodes = grouped(gpus, lambda gpu: gpu.node)
        figures = {
            node: share * of([_rate(gpu, name) for gpu in its]) for node, its in nodes.items()
        }
        return [_rate(gpu, name) < figures[gpu.node] for gpu in gpus]

    return rule


RULES: dict[str, Rule] = {
    "gemm-report fleet": ours,
    # DCGM 4.6: below 95 % of the target for an H200, 37.5 TFLOP/s of sgemm.
    "DCGM targeted_stress": _below(0.95, FP32, lambda rates: 37.5e12),
    # DCGM 4.6 with a tolerance of 5 % (it is 0 by default, which is off).
    "DCGM diagnostic, 5 %": _below(0.95, FP32, np.mean),
    # Below 90 % of the best GPU of its node (BF16), or thermal throttling.
    "gpu-fryer": _below(0.9, BF16, np.max),
}


def table(seeds: Sequence[int], wider: float = 1) -> str:
    """Found of those planted, for each fault and rule, and false alarms of all good GPUs."""
    judged: list[tuple[Fault, Sequence[bool]]] = []  # of each GPU, and by rule whether it is bad
    for seed in seeds:
        gpus, truth = simulated(seed, wider=wider)
        bad = zip(*(rule(gpus) for rule in RULES.values()), strict=True)
        judged += zip(truth, bad, strict=True)
    found = grouped(judged, lambda each: each[0])
    lines = []
    for kind, size in (*sorted(found.keys() - {GOOD}), GOOD):
        name = f"{kind}, {100 * size:.0f} %" if size else kind or "false alarms"
        of_rules = zip(*(bad for _, bad in found[kind, size]), strict=True)
        lines.append([name, *(f"{sum(bad)} of {len(bad)}" for bad in of_rules)])
    return markdown_table(["planted", *RULES], lines)


def small_fleets(seeds: Sequence[int]) -> str:
    """False alarms of healthy fleets of one host, and how often one GPU that takes 4 % is found."""
    rows = []
    for wider in (1, 3):
        for count in (2, 4, 8, 64):
            alarms = found = 0
            for seed in seeds:
                gpus = simulated(seed, count, wider, each=0)[0]
                alarms += any(ours(gpus))
                rates = gpus[0].rates
                slow = {n: replace(rates[n], value=rates[n].value / 1.04) for n in PRODUCTS}
                found += ours([replace(gpus[0], rates=rates | slow), *gpus[1:]])[0]
            shares = (f"{100 * each / len(seeds):.1f} %" for each in (alarms, found))
            rows.append([str(count), f"x {wider}", *shares])
    return markdown_table(("GPUs", "spread", "fleets with a false alarm", "4 % found"), rows)


def main() -> None:
    """Prints all tables."""
    print(f"Spread of four H200s, {len(SEEDS)} fleets of {GPUS} GPUs:\n\n{table(SEEDS)}\n")
    print(f"Three times that spread:\n\n{table(SEEDS, wider=3)}\n")
    print(f"200 small fleets of each kind:\n\n{small_fleets(range(3000, 3200))}")


if __name__ == "__main__":
    main()
