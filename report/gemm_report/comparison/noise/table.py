"""The noise of fresh processes on GPUs that were calibrated, for those that were not.

    python -m gemm_report.comparison.noise.table results

After a new calibration this writes table.json.

By compute capability and group (precision with size or, where something limited the clocks, with
that): the variance around levels that a case of the group has, with its degrees of freedom.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from gemm_report.collection import record_paths
from gemm_report.comparison.noise.between import Model, groups_of, priors
from gemm_report.comparison.noise.calibration import read_calibration
from gemm_report.comparison.noise.moderation import Variance
from gemm_report.comparison.run import Run
from gemm_report.record import read_record

_PATH = Path(__file__).with_name("table.json")
RESULTS = Path(__file__).parents[4] / "results"


def table_of(runs: Sequence[Run]) -> Mapping[str, Variance]:
    """By group, for the GPU of these; nothing where none of its capability was calibrated."""
    record = runs[0].record
    capability = record and record.device.compute_capability
    return {
        group: Variance(sd**2, degrees)
        for group, (sd, degrees) in stored().get(capability or "", {}).items()
    }


def made(results: Path) -> dict[str, dict[str, tuple[float, float]]]:
    """By capability and group: standard deviation and degrees, of all calibrations there."""
    found: dict[str, list[Any]] = {}
    for path in sorted(results.glob("*/calibration/*.json")):
        calibration = read_calibration(path)
        record = read_record(record_paths(path.parents[1])[-1])
        model = Model(calibration, {}, {}, {})
        rows = [(groups_of([row]), model.own[row.name]) for row in calibration.rows]
        found.setdefault(record.device.compute_capability or "cpu", []).extend(rows)
    return {
        capability: {
            group: (round(each.value**0.5, 6), round(each.degrees, 1))
            for group, each in sorted(priors(rows).items())
        }
        for capability, rows in found.items()
    }


@cache
def stored() -> dict[str, dict[str, tuple[float, float]]]:
    """What comes with the tool: standard deviation and degrees, by capability and group."""
    return json.loads(_PATH.read_text(encoding="utf-8"))


if __name__ == "__main__":
    (folder,) = sys.argv[1:]
    _PATH.write_text(json.dumps(made(Path(folder)), indent=1) + "\n", encoding="utf-8")
