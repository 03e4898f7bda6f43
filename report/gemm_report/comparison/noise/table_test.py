import dataclasses

from own_files import own_files

from gemm_report.comparison.noise import table
from gemm_report.comparison.run import run_of
from gemm_report.record import Record


def test_the_table_is_that_of_the_stored_calibrations() -> None:
    assert own_files("results/*/calibration/*.json")
    made = table.made(table.RESULTS)
    stored = {key: {of: tuple(v) for of, v in each.items()} for key, each in table.stored().items()}
    assert stored == made, "run python -m gemm_report.comparison.noise.table results"


def test_a_gpu_takes_what_its_capability_has(gpu: Record) -> None:
    def of(capability: str | None) -> set[str]:
        device = dataclasses.replace(gpu.device, compute_capability=capability)
        return set(table.table_of([run_of(dataclasses.replace(gpu, device=device))]))

    assert {"f32 large", "throttled", "bf16 throttled"} <= of("9.0")
    assert of("1.0") == of(None) == set()
