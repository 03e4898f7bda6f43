"""A ReFrame test that measures all GPUs of some nodes, or of each idle one, and names the bad ones.

    cd examples/fleet
    reframe -C site.py -c reframe_fleet.py --system cluster:gpu -S nodes=16 -r
    reframe -C site.py -c reframe_fleet.py --system cluster:gpu --distribute=idle -r

One task is a node, which measures its GPUs in one process each: their links need the others idle.
"""

import json
from pathlib import Path

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import (
    run_after,
    run_before,
    sanity_function,
    variable,
)

ROOT = Path(__file__).resolve().parents[2]


@rfm.simple_test
class Fleet(rfm.RunOnlyRegressionTest):
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    nodes = variable(int, value=1)
    options = variable(str, value="")  # of tools/fleet
    time_limit = "15m"
    sourcesdir = None
    executable = str(ROOT / "tools" / "fleet")
    keep_files = ["fleet", "fleet.json"]

    @run_after("setup")
    def ask_for_gpus(self):
        self.gpus = self.current_partition.extras["gpus"]
        self.num_tasks, self.num_tasks_per_node = self.nodes, 1
        self.extra_resources = {"gpus": {"n": self.gpus}}
        self.executable_opts = ["fleet", *self.options.split()]

    @run_before("run")
    def report_afterwards(self):
        if self.current_partition.launcher_type.registered_name == "srun":
            self.job.launcher.options = ["--kill-on-bad-exit=0"]
        report = f"{ROOT}/tools/report fleet fleet --gpus {self.gpus} --json fleet.json"
        self.postrun_cmds = [f"{report} || true"]  # the verdict is in the JSON

    def found(self):
        return json.loads((Path(self.stagedir) / "fleet.json").read_text(encoding="utf-8"))["gpus"]

    @sanity_function
    def every_gpu_is_good(self):
        gpus = self.found()
        bad = [
            f"{gpu['node']} {gpu['pci_bus_id']} is {gpu['state']}: {gpu['findings'][0]['text']}"
            for gpu in gpus
            if gpu["state"] not in ("good", "alone")
        ]
        return sn.all(
            [
                sn.assert_eq(len(gpus), self.nodes * self.gpus, "{0} GPUs instead of {1}"),
                sn.assert_false(bad, "; ".join(bad)),
            ]
        )

    @run_before("performance")
    def name_rates(self):
        self.perf_variables = {
            f"{case}@{gpu['node']}.{gpu['pci_bus_id']}": sn.make_performance_function(
                sn.defer(rate["per_second"]), "1/s"
            )
            for gpu in self.found()
            for case, rate in gpu["cases"].items()
        }
