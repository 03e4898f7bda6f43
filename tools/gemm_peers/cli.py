"""The command tools/peers."""

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from gemm_report.document import InputError
from gemm_report.record import record_of
from gemm_report.terminal import printable, printable_output
from gemm_report.writing.whole_file import whole_file

from gemm_peers import nvbench
from gemm_peers.family import ROOT, device_facts, outcomes, unreadable
from gemm_peers.peer import NAMES, Peer, peer_named
from gemm_peers.plan import Plan
from gemm_peers.problem import PRECISIONS, Problem
from gemm_peers.record import Beside, Done, Run, document, read_beside

FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130
_MOST = 2**31 - 1

EPILOG = """\
Times what a user would pick instead of a kernel of ours, under the plan of gemm_bench: CUDA events,
operand sets past twice the L2, uniform[-1,1], settled by clock and power, every element verified
against an FP64 product before and after. Each peer runs in a process of its own: one that raises,
hangs or dies ends its row, with the cause. What is not installed is skipped with the reason:
tools/requirements-peers.txt has versions that work together.

The record goes to results/<device>/peers/. With --beside=RECORD of gemm_bench, made on the same
device, the new record has its rows and roofs as well, and every figure shows both.

  tools/peers                                     all peers of the device, 1024, 4096 and 8192
  tools/peers --peers=numba,torch --precisions=f32,tf32 --shapes=4096,5x7x23
  tools/peers --peers=mine.py                     PEER in a file of your own (gemm_peers/peer.py)
  tools/peers --beside=results/nvidia-h200/RECORD.json
  tools/peers --device=cpu --shapes=256           NumPy
  tools/peers --against-nvbench                   one kernel timed by us and by nvbench

exit codes:
  0  every row has a time or was skipped
  1  a row failed
  2  bad input or usage, or no device: one line on standard error
  130  Ctrl-C; the rows that were finished are in the record
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"peers: {printable(message)}: see tools/peers --help\n")


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < 1e6:
        raise ValueError
    return value


_positive.__name__ = "positive number"  # as argparse names it


def _parser() -> argparse.ArgumentParser:
    plan = Plan()
    parser = _Parser(
        prog="tools/peers",
        description="Times other people's matrix products by our rules.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--peers", metavar="LIST", help=f"of {','.join(NAMES)}, or files NAME.py")
    add("--precisions", metavar="LIST", help=f"of {','.join(PRECISIONS)}")
    add("--shapes", metavar="LIST", help="sizes, or MxNxK (default 1024,4096,8192; CPU: 512)")
    add("--device", metavar="N", help="number of the GPU, or cpu (default: 0, or cpu without one)")
    add("--beside", type=Path, metavar="RECORD", help="of gemm_bench on this device")
    add("--out", type=Path, metavar="FILE", help="of the record")
    add("--seed", type=int, default=1, metavar="N", help="of the fill (default 1)")
    add("--row-budget", type=_positive, default=plan.budget_seconds, metavar="S", help="seconds")
    add("--timeout", type=_positive, default=180.0, metavar="S", help="until a row is given up")
    add("--against-nvbench", action="store_true", help="compare the two harnesses instead")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    with printable_output():
        try:
            return run(_parser().parse_args(given), given)
        except InputError as error:
            print(f"peers: {error}", file=sys.stderr)
        except BrokenPipeError:
            # Else Python tries again when it ends, and complains in its own words.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        except OSError as error:
            print(f"peers: {error.filename}: {error.strerror}", file=sys.stderr)
        except KeyboardInterrupt:
            print("peers: interrupted: no record was written", file=sys.stderr)
            return INTERRUPTED
        return BAD_INPUT


def run(options: argparse.Namespace, given: Sequence[str]) -> int:
    """What the options ask for; the exit code."""
    if not 0 <= options.seed < 2**32:
        raise InputError(f"--seed={options.seed}: give a number from 0 to {2**32 - 1}")
    with tempfile.TemporaryDirectory(prefix="gemm_peers_") as folder:
        scratch = Path(folder)
        facts = _facts(options, scratch)
        device = facts["device"]
        shapes = _shapes(options.shapes or ("512" if device["kind"] == "cpu" else "1024,4096,8192"))
        if options.against_nvbench:
            if device["kind"] == "cpu":
                raise InputError("--against-nvbench needs a GPU: nvbench times nothing else")
            return nvbench.compare(shapes, options, scratch)
        beside = options.beside and read_beside(options.beside, device, options.seed)
        cases = _cases(options, device["kind"], shapes)
        return _measure(options, given, facts, cases, beside, scratch)


def _measure(
    options: argparse.Namespace,
    given: Sequence[str],
    facts: dict[str, Any],
    cases: Sequence[tuple[str, Peer, list[dict[str, Any]]]],
    beside: Beside | None,
    scratch: Path,
) -> int:
    began, start = datetime.now(UTC), time.monotonic()
    out = options.out or _out(facts["device"]["name"], began)
    plan = Plan(budget_seconds=options.row_budget)
    done: list[Done] = []
    complete = False
    with _record_at(out) as part:
        # What was measured before Ctrl-C is written.
        with contextlib.suppress(KeyboardInterrupt):
            for name, peer, rows in cases:
                task = {
                    "peer": name,
                    "device": options.device,
                    "seed": options.seed,
                    "scratch": str(scratch),
                    "plan": vars(plan),
                }
                for row, said in zip(rows, outcomes(task, rows, options.timeout), strict=True):
                    problem = Problem(*(row[key] for key in ("precision", "layout", "m", "n", "k")))
                    done.append(Done(peer, row["variant"], problem, said))
                    print(line(done[-1]), flush=True)
            complete = True
        if not done:
            raise KeyboardInterrupt
        wall = time.monotonic() - start
        how = Run(_commit(), publishable(given), plan, options.seed, facts, began, wall, complete)
        found = document(how, done, beside)
        record_of(out, found)  # what the report cannot read is not written
        part.write_text(json_text(found), encoding="utf-8")
    print(f"record: {out}")
    if not complete:
        return INTERRUPTED
    return FAILED if any("failed" in one.said for one in done) else 0


def publishable(given: Sequence[str]) -> list[str]:
    """The command line, for a record that is made to be published: files without their folders."""
    kept = [re.sub(r"[^=,]*/", "", each) for each in given]
    return ["peers", *kept]


@contextlib.contextmanager
def _record_at(out: Path) -> Iterator[Path]:
    """Where to write the record. What cannot be written is found before anything is measured."""
    with contextlib.ExitStack() as held:
        try:
            part = held.enter_context(whole_file(out))
            part.touch()
        except OSError as error:
            raise InputError(
                f"the record cannot be written to {out} ({error.strerror}): give another --out=FILE"
            ) from None
        yield part


def json_text(found: dict[str, Any]) -> str:
    """As gemm_bench writes it."""
    return json.dumps(found, indent=1, allow_nan=False) + "\n"


def line(one: Done) -> str:
    """A row for people."""
    if one.median is None or one.flop_per_second is None:
        kind = "failed" if "failed" in one.said else "skipped"
        return f"{one.label}: {kind}: {one.said[kind]}"
    measured = one.said["measured"]
    power = measured["clocks"]["power_w"]
    facts = [
        f"{1e6 * one.median:.4g} us",
        f"{1e-9 * one.flop_per_second:.5g} GFLOP/s",
        f"{power['median']:.0f} W" if power else "",
        f"{len(measured['samples_seconds'])} samples",
        "; ".join(measured["departures"]),
    ]
    return f"{one.label}: " + ", ".join(filter(None, facts))


def _facts(options: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    """Of the device that is meant, whose name is then in the options."""
    if options.device is not None and not re.fullmatch(r"cpu|\d{1,4}", options.device):
        raise InputError(f"--device={options.device}: give the number of a GPU, or cpu")
    asked = options.device or "0"
    facts = device_facts(asked, options.timeout, scratch)
    if "no_device" in facts and options.device is None:
        print(f"peers: on the CPU: {facts['no_device']}", file=sys.stderr)
        asked = "cpu"
        facts = device_facts(asked, options.timeout, scratch)
    if "no_device" in facts:
        raise InputError(f"--device={asked}: {facts['no_device']}")
    options.device = asked
    return facts


def _cases(
    options: argparse.Namespace, kind: str, shapes: Sequence[tuple[int, int, int]]
) -> list[tuple[str, Peer, list[dict[str, Any]]]]:
    """Of each peer its rows: those that share operands together."""
    names = _listed("--peers", options.peers) if options.peers is not None else list(NAMES)
    for name in names:
        if name.endswith(".py") and (why := unreadable(name, options.timeout)):
            raise InputError(why)
    peers = [(name, peer_named(name)) for name in names]
    if options.peers is None:
        peers = [(name, peer) for name, peer in peers if peer.kind == kind]
    precisions = list(PRECISIONS)
    if options.precisions is not None:
        precisions = _listed("--precisions", options.precisions)
        if unknown := [name for name in precisions if name not in PRECISIONS]:
            raise InputError(f"--precisions={unknown[0]}: is none of {', '.join(PRECISIONS)}")
    found = []
    for name, peer in peers:
        rows = [
            {"variant": v, "precision": p, "layout": peer.layouts[p], "m": m, "n": n, "k": k}
            for m, n, k in shapes
            for p in precisions
            if p in peer.layouts
            for v in peer.variants
        ]
        if rows:
            found.append((name, peer, rows))
    if not found:
        raise InputError(
            "no peer computes that: see --peers and --precisions in tools/peers --help"
        )
    return found


def _listed(option: str, text: str) -> list[str]:
    names = list(dict.fromkeys(text.split(",")))
    if not all(names):
        raise InputError(f"{option}={text}: has an empty name")
    return names


def _shapes(text: str) -> list[tuple[int, int, int]]:
    found = []
    for shape in _listed("--shapes", text):
        match = re.fullmatch(r"(\d{1,10})(?:x(\d{1,10})x(\d{1,10}))?", shape)
        sizes = [int(each or match[1]) for each in match.groups()] if match else [0]
        if not all(1 <= size <= _MOST for size in sizes):
            raise InputError(f"--shapes={shape}: give a size or MxNxK, each from 1 to {_MOST}")
        found.append((sizes[0], sizes[1], sizes[2]))
    return found


def _commit() -> str:
    """As cmake/build_info.cmake has it."""
    if given := os.environ.get("GEMM_BENCH_COMMIT"):
        return given
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12"]
    command.append("--exclude=*")
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        said = ""
    return said or "unknown"


def _out(device: str, began: datetime) -> Path:
    slug = re.sub(r"[^a-z0-9]+", "-", device.lower()).strip("-") or "device"
    name = f"{began:%Y%m%dT%H%M%SZ}-{_commit()}.json"
    return ROOT / "results" / slug / "peers" / name


if __name__ == "__main__":
    sys.exit(main())
