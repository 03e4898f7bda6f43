"""tools/fleet with made-up programs."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FLEET = ROOT / "tools" / "fleet"
GPUS = 4

# nvidia-smi and gemm_bench, by the name that it is called by. FAKE_FAULTS is a list of
# NODE:INDEX=FAULT.
FAKE = """\
#!/bin/sh
'''exec' "{python}" "$0" "$@"
' '''
import json, os, signal, sys, time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
sys.path.insert(0, "{root}/report")
name, arguments = Path(sys.argv[0]).name, dict(a.split("=", 1) for a in sys.argv[1:] if "=" in a)
if name == "nvidia-smi":
    if os.environ.get("FAKE_BROKEN"):
        sys.exit("no driver")
    lost = os.environ.get("FAKE_LOST", "")
    for i in range({gpus}):
        bus = f"00000000:{{16 * (i + 1):02X}}:00.0"
        said = f"Unable to determine the device handle for GPU{{bus[4:]}}: Unknown Error"
        print(said if str(i) in lost else f"{{bus}}, GPU-0000000{{i}}")
    sys.exit(15 if lost else 0)
devices = os.environ["CUDA_VISIBLE_DEVICES"]
name = "peaks" if "--gemm_peaks_only" in sys.argv else name
print(name, devices, arguments.get("--benchmark_filter"), f"{{time.time():.2f}}", flush=True)
if name == "peaks":
    sys.exit()
node, i = arguments["--gemm_node"], int(devices[-1])
faults = dict(each.split("=") for each in os.environ.get("FAKE_FAULTS", "").split())
fault = faults.get(f"{{node}}:{{i}}")
if fault == "hangs":
    signal.signal(signal.SIGTERM, lambda *_: (time.sleep(0.5), sys.exit(print("ended"))))
    print("hangs", flush=True)
    time.sleep(60)
from gemm_report.fleet.records_test import document_of, simulated
number = {gpus} * (int(node[1:]) - 1) + i if node[1:].isdecimal() else i
gpu = replace(simulated(7, 12)[0][number], node=node, bus=f"0000:{{16 * (i + 1):02X}}:00.0")
document = document_of(gpu)
document["context"]["gemm"]["complete"] = fault != "killed"
if fault != "missing":
    Path(arguments["--benchmark_out"]).write_text(json.dumps(document))
if fault == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
sys.exit(2 if fault == "missing" else 0)
"""

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """The folder of the programs, for PATH and GEMM_BENCH_BUILD."""
    pytest.importorskip("numpy")
    folder = tmp_path / "programs"
    folder.mkdir()
    for name in ("nvidia-smi", "gemm_bench"):
        (folder / name).write_text(FAKE.format(python=sys.executable, root=ROOT, gpus=GPUS))
        (folder / name).chmod(0o755)
    return folder


@pytest.fixture
def environment(programs: Path) -> Mapping[str, str]:
    """Of tools/fleet, without what a scheduler may have set."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "CUDA_VISIBLE"))}
    path = f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}:/usr/sbin"
    return kept | {"PATH": path, "GEMM_BENCH_BUILD": str(programs)}


@pytest.fixture
def run(environment: Mapping[str, str]) -> Run:
    def called(*arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
        command = [FLEET, *map(str, arguments)]
        env = {**environment, **variables}
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)

    return called


def ran(folder: Path) -> list[list[str]]:
    """Program, devices, filter and time of each program that ran."""
    lines = "".join(path.read_text() for path in sorted(folder.glob("*.log"))).splitlines()
    return [line.split() for line in lines]


def bus(i: int) -> str:
    return f"0000:{i + 1}0:00.0"


def test_every_gpu_has_a_record_and_its_own_process(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = run(out, "--node", "n1")
    assert done.returncode == 0, done.stderr
    buses = [bus(i) for i in range(GPUS)]
    files = [
        f"n1-{each}.{ending}".replace(":", "-") for each in buses for ending in ("json", "log")
    ]
    assert sorted(path.name for path in out.iterdir()) == sorted([*files, "n1.gpus"])
    assert (out / "n1.gpus").read_text().split() == buses
    gpus = [f"GPU-0000000{i}" for i in range(GPUS)]
    links = [devices for _, devices, chosen, _ in ran(out) if "Peer_" in chosen]
    # The GPU itself comes first, and the others are to be seen.
    assert [each.partition(",")[0] for each in links] == gpus
    assert all(len(each.split(",")) == GPUS for each in links)
    assert sorted(devices for name, devices, *_ in ran(out) if name == "gemm_bench") == gpus
    assert "has a run of n1" in run(out, "--node", "n1").stderr


@pytest.mark.parametrize(
    ("variables", "records", "said"),
    [
        ({"FAKE_FAULTS": "n1:0=killed n1:2=missing"}, 3, {0: "ended with 137", 2: "ended with 2"}),
        ({"FAKE_LOST": "2", "CUDA_VISIBLE_DEVICES": "0,1,2,3"}, 3, {2: "is lost"}),
        ({"FAKE_LOST": "0123"}, 0, dict.fromkeys(range(GPUS), "is lost")),
    ],
)
def test_a_gpu_that_fails_does_not_end_the_others(
    run: Run, tmp_path: Path, variables: dict[str, str], records: int, said: dict[int, str]
) -> None:
    out = tmp_path / "out"
    done = run(out, "--node", "n1", **variables)
    assert done.returncode == 1
    for i, text in said.items():
        assert f"n1 {bus(i)}: {text}" in done.stderr
    assert len(list(out.glob("*.json"))) == records
    assert sorted((out / "n1.gpus").read_text().split()) == [bus(i) for i in range(GPUS)]


def test_one_gpu_at_a_time(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(out, "--node", "n1", "--one-at-a-time")
    began = [float(at) for name, _, _, at in ran(out) if name == "gemm_bench"]
    ended = [path.stat().st_mtime for path in sorted(out.glob("*.json"))]
    assert len(began) == len(ended) == GPUS
    assert all(end <= start + 0.02 for end, start in zip(ended, began[1:], strict=False))


@pytest.mark.parametrize(
    ("visible", "chosen", "gpus"),
    [
        ("1,3", [], [1, 3]),
        ("GPU-00000002", [], [2]),
        ("0,1", ["--gpus", "0000:20:00.0"], [1]),
    ],
)
def test_only_the_given_gpus_are_used(
    run: Run, tmp_path: Path, visible: str, chosen: list[str], gpus: list[int]
) -> None:
    done = run(tmp_path / "out", "--node", "n1", *chosen, CUDA_VISIBLE_DEVICES=visible)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "n1.gpus").read_text().split() == [bus(i) for i in gpus]


@pytest.mark.parametrize(
    ("arguments", "variables", "said"),
    [
        ([], {}, "no folder"),
        (["out", "second"], {}, "a second folder"),
        (["out", "--fast"], {}, "unknown option"),
        (["out", "--node", "a b"], {}, "--node a b"),
        (["out", "--gpus", "0000:99:00.0"], {}, "none of 0000:10:00.0"),
        (["out"], {"CUDA_VISIBLE_DEVICES": "0,9"}, "CUDA_VISIBLE_DEVICES=0,9"),
        (["out"], {"CUDA_VISIBLE_DEVICES": ""}, "CUDA_VISIBLE_DEVICES="),
        (["out"], {"FAKE_BROKEN": "1"}, "nvidia-smi finds no GPU"),
        (["out"], {"GEMM_BENCH_BUILD": "/nonexistent"}, "has no gemm_bench"),
    ],
)
def test_bad_input_has_one_line_and_measures_nothing(
    run: Run, tmp_path: Path, arguments: list[str], variables: dict[str, str], said: str
) -> None:
    done = run(*(tmp_path / "out" if each == "out" else each for each in arguments), **variables)
    assert done.returncode == 3, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("fleet: ")]
    assert len(lines) == 1 and said in lines[0]
    assert not (tmp_path / "out").exists()


def test_ctrl_c_reaches_every_process(environment: Mapping[str, str], tmp_path: Path) -> None:
    out, env = tmp_path / "out", {**environment, "FAKE_FAULTS": "n1:1=hangs n1:3=hangs"}
    # A shell cannot trap a signal that was ignored when it started, as in the background.
    command = ["env", "--default-signal=INT", FLEET, out, "--node", "n1"]
    with subprocess.Popen(command, env=env, stderr=subprocess.PIPE) as process:
        end = time.monotonic() + 60
        while ran(out).count(["hangs"]) != 2:
            assert time.monotonic() < end
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    assert ran(out).count(["ended"]) == 2  # it waited for their records
