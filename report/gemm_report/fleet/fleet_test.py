"""Planted faults are named, and nothing else; bad input has a line, and nothing is lost."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gemm_report.cli import main
from gemm_report.fleet.judging import judge, others_median
from gemm_report.fleet.reading import BAD, COPIES, LINKS, Gpu, Group, Rate, gpu_of, state_of
from gemm_report.fleet.records_test import BF16, FP32, PRODUCTS, document_of, simulated, write_fleet
from gemm_report.record import record_of

HEALTH = {"before": {"ecc_uncorrected": 1}, "after": {"ecc_uncorrected": 1}}


def healthy(count: int, seed: int = 50) -> list[Gpu]:
    return simulated(seed, count)[0]


def changed(gpu: Gpu, names: Sequence[str], change: Callable[[Rate], Rate]) -> Gpu:
    return replace(gpu, rates={n: change(r) if n in names else r for n, r in gpu.rates.items()})


def slower(gpu: Gpu, names: Sequence[str], by: float) -> Gpu:
    return changed(gpu, names, lambda rate: replace(rate, value=rate.value / (1 + by)))


def at_lower_clock(gpu: Gpu, names: Sequence[str], by: float, *reasons: str) -> Gpu:
    def change(rate: Rate) -> Rate:
        hertz = rate.sm_hz and rate.sm_hz / (1 + by)
        return replace(rate, value=rate.value / (1 + by), sm_hz=hertz, reasons=reasons)

    return changed(gpu, names, change)


def states(gpus: Sequence[Gpu], **how: object) -> list[str]:
    return [state_of(gpu) for gpu in judge(gpus, **how).gpus]  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [2, 8, 64, 400])
@pytest.mark.parametrize("kind", ["more cycles", "lower clock"])
def test_a_loss_of_two_percent_is_found_and_nothing_else(count: int, kind: str) -> None:
    for seed in range(20 if count < 100 else 4):
        assert states(healthy(count, seed)) == ["good"] * count
        gpus, truth = simulated(seed, count, faults=[(kind, 0.02)])
        if seed == 0:
            assert states(gpus, threshold=0.06) == ["good"] * count
        found = [state in BAD for state in states(gpus)]
        assert found == [fault[0] == kind for fault in truth]


@pytest.mark.parametrize("count", [8, 64, 1000])
def test_two_halves_are_unclear_and_a_minority_is_slow(count: int) -> None:
    gpus = healthy(count)
    for i in range(count // 2):
        gpus[i] = slower(gpus[i], PRODUCTS, 0.1)
    fleet = judge(gpus)
    assert {state_of(gpu) for gpu in fleet.gpus} == {"unclear"}
    assert f"two groups: {count // 2} of {count} GPUs are 9." in fleet.unclear[0]
    fewer = judge([*healthy(count)[: count // 4], *gpus[count // 4 :]])
    assert [state_of(gpu) for gpu in fewer.gpus].count("slow") == count // 4
    cold = healthy(count)
    cold[3] = at_lower_clock(cold[3], PRODUCTS, -0.1)
    assert not judge(cold).unclear
    but_one = [
        gpu if i == 3 else slower(gpu, PRODUCTS, 0.1) for i, gpu in enumerate(healthy(count))
    ]
    assert "(in cycles)" in judge(but_one).unclear[0]


def test_a_wide_scatter_and_a_case_that_half_lack_are_unclear() -> None:
    gpus = healthy(16)
    for i, gpu in enumerate(gpus):
        gpus[i] = slower(gpu, [FP32], 0.006 * i)
        if i % 2:
            del gpus[i].rates[BF16]
    fleet = judge(gpus)
    assert {state_of(gpu) for gpu in fleet.gpus} == {"unclear"}
    assert any(f"{BF16}: 8 of 16 GPUs lack it" == each for each in fleet.unclear)
    assert any("scatter by" in each for each in fleet.unclear)


def test_what_was_measured_otherwise_is_not_compared() -> None:
    gpus = healthy(8)
    group = gpus[0].group
    assert group
    for i, gpu in enumerate(gpus[:2]):
        zeros = replace(gpu, group=group._replace(method="zeros, settled", commit="b"))
        gpus[i] = slower(zeros, PRODUCTS, -0.2)
    fleet = judge(gpus)
    assert [state_of(gpu) for gpu in fleet.gpus] == [*["good"] * 2, *["unclear"] * 6]
    (said,) = fleet.unclear
    assert "6 GPUs are 20." in said and "method" in said
    gpus[7] = replace(gpus[7], group=Group("NVIDIA H100", "580.159.04", 700.0))
    assert states(gpus) == [*["good"] * 2, *["unclear"] * 5, "alone"]


def test_time_and_cycles_are_judged_apart() -> None:
    gpus = healthy(16)
    gpus[2] = slower(gpus[2], [FP32], 0.05)
    gpus[4] = at_lower_clock(gpus[4], [FP32], 0.05, "thermal slowdown (hardware)")
    gpus[6] = at_lower_clock(gpus[6], [FP32], 0.05)
    # More cycles at a higher clock: as fast as the others.
    gpus[8] = changed(gpus[8], [FP32], lambda rate: replace(rate, sm_hz=1.05 * (rate.sm_hz or 0)))
    found = {i: gpu.findings for i, gpu in enumerate(judge(gpus).gpus) if gpu.findings}
    assert {i: (f[0].state, f[0].case) for i, f in found.items()} == {
        2: ("slow", FP32),
        4: ("throttled", FP32),
        6: ("slow", FP32),
        8: ("slow", FP32),
    }
    assert "needs 5" in found[2][0].text or "needs 4.9" in found[2][0].text
    assert "thermal slowdown (hardware)" in found[4][0].text
    assert "NVML gives no reason" in found[6][0].text
    assert "more cycles" in found[8][0].text


def test_a_gpu_with_some_slow_samples_is_slow_and_one_with_an_uncertain_median_is_not() -> None:
    gpus = healthy(8)
    gpus[3] = changed(gpus[3], [BF16], lambda rate: replace(rate, mean=0.94 * rate.value))
    # A median that is uncertain is not called slow.
    low = replace(gpus[5].rates[FP32], value=gpus[5].rates[FP32].value / 1.05, error=0.03)
    gpus[5] = changed(gpus[5], [FP32], lambda rate: low)
    judged = judge(gpus).gpus
    assert [i for i, gpu in enumerate(judged) if state_of(gpu) != "good"] == [3]
    assert "on average" in judged[3].findings[0].text


def test_a_case_that_the_others_have_is_missing() -> None:
    gpus = healthy(8)
    del gpus[5].rates["PCIe_to_host"]
    del gpus[6].rates[BF16]
    gpus[6].skipped[BF16] = "too little memory"
    judged = judge(gpus).gpus
    assert judged[5].findings[0][:3] == ("missing", "PCIe_to_host", "the record lacks it")
    assert judged[6].findings[0].text == "too little memory"
    for gpu in gpus:  # none has it: the GPU model cannot
        gpu.rates.pop(BF16, None)
    assert states(gpus).count("missing") == 1


def test_one_link_is_told_from_a_slow_gpu() -> None:
    gpus = [
        replace(gpu, rates={f"{LINKS}to_{j}": Rate(value=4e11) for j in range(4) if j != i})
        for i, gpu in enumerate(healthy(4))
    ]
    gpus[1].rates[f"{LINKS}to_3"] = Rate(value=3e11)
    for gpu in gpus:
        gpu.rates[COPIES] = Rate(value=4e11)
    judged = judge(gpus).gpus
    assert [len(gpu.findings) for gpu in judged] == [0, 1, 0, 0]
    assert judged[1].findings[0].case == f"{LINKS}to_3"


def test_a_gpu_that_got_slower_is_found_though_it_is_within_the_fleet() -> None:
    def capped(gpu: Gpu, by: float) -> Gpu:
        return at_lower_clock(gpu, [BF16], by, "power cap")

    gpus = [capped(gpu, 0.01 * (i % 4)) for i, gpu in enumerate(healthy(40))]
    before = judge(gpus)
    assert {state_of(gpu) for gpu in before.gpus} == {"good"}
    gpus[8] = capped(gpus[8], 0.04)
    assert states(gpus) == ["good"] * 40
    now = judge(gpus, before=[before, before])
    assert [i for i, gpu in enumerate(now.gpus) if gpu.findings] == [8]
    assert "against its earlier runs" in now.gpus[8].findings[0].text
    everywhere = [slower(gpu, PRODUCTS, 0.1) for gpu in gpus[:8]]  # another driver
    assert not any(gpu.findings for gpu in judge(everywhere, before=[before]).gpus)


@pytest.mark.parametrize("count", [2, 3, 4, 7, 50])
def test_the_median_of_the_others(count: int) -> None:
    values = np.random.default_rng(count).integers(0, 10, count).astype(float)
    expected = [np.median(np.delete(values, i)) for i in range(count)]
    assert list(others_median(values)) == expected


@pytest.mark.parametrize(
    ("after", "complete", "state", "text"),
    [
        ({"ecc_uncorrected": 3}, True, "faulty", "2 uncorrected ECC errors"),
        ({"xids": [48, 79]}, True, "faulty", "XID 48, 79"),
        ({"remapping_pending": True}, True, "faulty", "reset the GPU"),
        ({"remapping_failed": True}, True, "faulty", "replace the GPU"),
        ({}, False, "missing", "incomplete"),
        ({"ecc_uncorrected": 1}, True, "good", ""),  # from before the run
    ],
)
def test_the_record_itself_tells_faults(
    after: dict[str, object], complete: bool, state: str, text: str
) -> None:
    document = document_of(healthy(1)[0])
    run = document["context"]["gemm"]
    run |= {"complete": complete, "health": {**HEALTH, "after": after}}
    gpu = gpu_of(record_of(Path("n1.json"), document))
    assert state_of(gpu) == state
    assert state == "good" or text in gpu.findings[0].text


def report(folder: Path, *options: object) -> tuple[int, list[dict[str, object]]]:
    out = folder.with_suffix(".json")
    code = main(["fleet", str(folder), "--json", str(out), *map(str, options)])
    return code, json.loads(out.read_text())["gpus"] if out.exists() else []


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    gpus = healthy(8)
    folder = write_fleet(tmp_path / "run", gpus)
    next(folder.glob(f"*{gpus[2].bus}.json")).unlink()
    code, found = report(folder)
    assert code == 1
    assert (found[0]["pci_bus_id"], found[0]["state"]) == (gpus[2].bus, "missing")
    for options, unlisted in (((), []), (("--gpus", 9), [("n0001", "?")])):
        _, found = report(folder, "--nodes", "n0001,n0002", *options)
        named = [(gpu["node"], gpu["pci_bus_id"]) for gpu in found if gpu["state"] == "missing"]
        assert named == [("n0001", gpus[2].bus), *unlisted, ("n0002", "?")]


def test_bad_input_has_a_line_each_and_loses_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gpus = healthy(16)
    folder = write_fleet(tmp_path / "run", gpus)
    other, future, torn, cpu = map(document_of, gpus[:4])
    other["context"]["date"] = "2026-11-23T12:00:00+00:00"
    future["context"]["gemm"]["schema"] = 99
    cpu["context"]["gemm"]["device"]["kind"] = "cpu"
    for name, document in {"again": other, "future": future, "n9": torn, "cpu": cpu}.items():
        text = json.dumps(document)
        (folder / f"{name}.json").write_text(text[:500] if document is torn else text)
    code, found = report(folder)
    assert (code, len(found), {gpu["state"] for gpu in found}) == (3, 16, {"good"})
    lines = sorted(capsys.readouterr().err.splitlines())
    for part in ("again.json", "schema 99", "is not JSON", "is of a CPU"):
        assert sum(part in line for line in lines) == 1, (part, lines)
    assert len(lines) == 4


def test_exit_codes_and_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gpus = healthy(8)
    good = write_fleet(tmp_path / "good", gpus)
    assert report(good, "--gpus", 8)[0] == 0
    assert main(["fleet", str(good), "--html", str(tmp_path / "good.html")]) == 0
    assert "8 good" in (tmp_path / "good.html").read_text(encoding="utf-8")
    assert report(write_fleet(tmp_path / "one", gpus[:1]))[0] == 2
    halves = [slower(gpu, PRODUCTS, 0.1 * (i % 2)) for i, gpu in enumerate(gpus)]
    assert report(write_fleet(tmp_path / "halves", halves))[0] == 2
    assert "unclear    Best/f32" in capsys.readouterr().out
    gpus[3] = slower(gpus[3], PRODUCTS, 0.1)
    html = tmp_path / "bad.html"
    code, found = report(write_fleet(tmp_path / "bad", gpus), "--before", good, "--html", html)
    page = html.read_text(encoding="utf-8")
    assert 'class="badge bad">slow</span>' in page and "against its earlier runs" in page
    said = capsys.readouterr().out
    assert (code, found[0]["state"], found[0]["pci_bus_id"]) == (1, "slow", gpus[3].bus)
    assert "rerun alone: srun -w n0001" in said
    assert "scontrol update NodeName=n0001 State=DRAIN Reason=" in said
    assert "against its earlier runs" in said
    for folder in (tmp_path / "empty", tmp_path / "none"):
        (tmp_path / "empty").mkdir(exist_ok=True)
        assert main(["fleet", str(folder)]) == 3
        assert len(capsys.readouterr().err.splitlines()) == 1
    wrongs = ["--gpus=0", "--gpus=-1", "--gpus=many", "--threshold=0", "--threshold=100"]
    for wrong in [*wrongs, "--threshold=nan"]:
        with pytest.raises(SystemExit) as ended:
            main(["fleet", str(good), wrong])
        assert ended.value.code == 3 and "' is no " in capsys.readouterr().err
