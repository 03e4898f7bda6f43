"""A process of a peer's own: it measures rows until one fails, and says of each what came of it.

It is told what to do by JSON in its first argument, and answers with lines of JSON on a pipe, so
that a peer may print what it likes. A row that fails may leave a context in which nothing works
any more: the process ends, and whoever started it starts another for the rows that are left.
"""

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from gemm_report.document import InputError

from gemm_peers import nvbench
from gemm_peers.card import Card, CardError, NvmlCard, Watch
from gemm_peers.device import Device, DeviceError, HostDevice
from gemm_peers.measure import Bench, WrongResultError, facts_of, measured, prepared, verification
from gemm_peers.peer import Peer, UnsupportedError, one_line, peer_named
from gemm_peers.plan import Plan
from gemm_peers.problem import Problem

CPU = "cpu"
OURS = "ours"


def main() -> int:
    """Does what the first argument says."""
    task = json.loads(sys.argv[1])

    def say(**what: Any) -> None:
        os.write(task["pipe"], (json.dumps(what) + "\n").encode())

    if "load" in task:
        try:
            peer_named(task["load"])
            say(unreadable=None)
        except InputError as error:
            say(unreadable=str(error))
        return 0
    try:
        device = open_device(task["device"])
    except DeviceError as error:
        say(no_device=str(error))
        return 0
    card, why_not = _card(device)
    say(
        device=facts_of(device),
        timer=device.timer,
        card=card and {key: getattr(card, key) for key in ("driver", "power_limit_w", "sm_hz_max")},
        why_not=why_not,
    )
    if not task["rows"]:
        return 0
    with contextlib.ExitStack() as stack:
        watch = stack.enter_context(Watch(card)) if card else None
        scratch = Path(task["scratch"])
        bench = Bench(device, Plan(**task["plan"]), task["seed"], watch, scratch)
        peer = peer_named(task["peer"])
        os.chdir(scratch)  # where what it leaves lying, as CUTLASS does, is removed
        for row in task["rows"]:
            say(begun=True)
            said = outcome(bench, peer, row, task.get("harness", OURS))
            say(**said, read_seconds=watch and watch.read_seconds)
            if "failed" in said:
                break
    return 0


def open_device(name: str) -> Device:
    """The CPU, or the GPU of that number; DeviceError where there is none."""
    if name == CPU:
        return HostDevice()
    from gemm_peers.cuda import CudaDevice

    return CudaDevice(int(name))


def outcome(bench: Bench, peer: Peer, row: dict[str, Any], harness: str) -> dict[str, Any]:
    """Of one row: measured, or skipped or failed with its cause in one line. A foreign harness has
    a verified row, too, and its own figures."""
    problem = Problem(row["precision"], row["layout"], row["m"], row["n"], row["k"])
    if peer.kind != bench.device.facts.kind:
        return {"skipped": f"runs on a {peer.kind.upper()} only"}
    try:
        ready = prepared(bench, peer, problem, row["variant"])
        if harness == OURS:
            return {"measured": measured(bench, ready)}
        figures = nvbench.timed(bench.device, ready.launches)
        ready.verdict(len(ready.launches))
        return {"nvbench": figures}
    except UnsupportedError as error:
        return {"skipped": str(error)}
    except ModuleNotFoundError as error:
        return {"skipped": f"{error.name} is not installed: see tools/requirements-peers.txt"}
    except ImportError as error:
        return {"skipped": f"cannot be imported: {one_line(error)}"}
    except WrongResultError as error:
        verdict = error.verdict and verification(error.verdict)
        return {"failed": str(error), "verification": verdict}
    except InputError as error:
        return {"failed": str(error)}
    except Exception as error:  # a peer may raise anything
        return {"failed": one_line(error)}


def _card(device: Device) -> tuple[Card | None, str | None]:
    if device.facts.kind == CPU:
        return None, "a CPU has no NVML"
    if device.facts.pci_bus_id is None:
        return None, "the driver does not say the card's PCI bus id"
    try:
        return NvmlCard(device.facts.pci_bus_id), None
    except CardError as error:
        return None, str(error)


if __name__ == "__main__":
    sys.exit(main())
