"""Say which GPUs of a fleet are slow, throttled, wrong, faulty or missing, and why.

DIR has a record for each GPU, as tools/fleet writes them, and a list <node>.gpus for each node.
GPUs of one device name, driver, power limit, library, commit and method are compared, each with the
median of the others.

states, worst first:
  wrong      a result failed its verification
  faulty     uncorrected ECC errors or XIDs during the run, or a memory row that waits for a reset
  missing    no record, an incomplete one, or a case that the others have
  slow       the rate by the median or the mean sample, or the work per cycle, is lower by more than
             the threshold and by more than the fleet's spread explains
  throttled  slow in time but not in cycles, with NVML's reason for the lower clock
  unclear    its group cannot be judged: the GPUs are two groups, scatter widely, or half of them
             lack a case; or another group, of another driver, library or method, is faster
  alone      no other GPU is like it and was measured alike
  good       none of these

examples:
  gemm-report fleet run --nodes n1,n2,n3 --gpus 4 --html fleet.html --json fleet.json
  gemm-report fleet run --before last-week

exit codes:
  0  all GPUs are good
  1  some are bad: wrong, faulty, missing, slow or throttled
  2  not enough to tell: no GPU is bad, but some are unclear or alone
  3  no GPU is bad, but a file could not be used (named on standard error); or wrong usage
"""

import argparse
from contextlib import suppress
from pathlib import Path

from gemm_report.collection import Refusals
from gemm_report.document import InputError

SOME_BAD, NOT_ENOUGH = 1, 2


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number above 0")
    return int(text)


def _threshold(text: str) -> float:
    with suppress(ValueError):
        value = float(text.removesuffix("%"))
        if 0.1 <= value < 50:
            return value / 100
    raise argparse.ArgumentTypeError(f"{text!r} is no percentage from 0.1 to 50")


def add(command: argparse.ArgumentParser) -> None:
    option = command.add_argument
    option("folder", type=Path, metavar="DIR", help="with the records of one run")
    option("--nodes", metavar="LIST", help="nodes that should be there, separated by commas")
    option("--gpus", type=_count, metavar="N", help="GPUs that each node should have")
    said = "smaller losses are never bad (default: 1.5)"
    option("--threshold", type=_threshold, default=0.015, metavar="PERCENT", help=said)
    said = "an earlier run, oldest first if several: a GPU that got slower against the others is "
    said += "bad, too"
    option("--before", type=Path, action="append", default=[], metavar="DIR", help=said)
    option("--json", type=Path, metavar="FILE", help="write everything that was found")
    option("--html", type=Path, metavar="FILE", help="write a page for the browser")


def run(options: argparse.Namespace) -> int:
    from gemm_report.fleet.judging import judge
    from gemm_report.fleet.output import as_json, as_text
    from gemm_report.fleet.reading import BAD, read_fleet, state_of

    refusals = Refusals()
    nodes = list(filter(None, (options.nodes or "").split(",")))
    earlier = [judge(read_fleet(each, refusals, [], 0)) for each in options.before]
    gpus = read_fleet(options.folder, refusals, nodes, options.gpus or 0)
    if not any(gpu.group for gpu in gpus):
        raise InputError(f"{options.folder}: has no record of a GPU: run tools/fleet first")
    fleet = judge(gpus, options.threshold, earlier)
    print(as_text(fleet))
    if options.json:
        options.json.write_text(as_json(fleet), encoding="utf-8")
    if options.html:
        from gemm_report.fleet.html_page import html_page

        options.html.write_text(html_page(fleet), encoding="utf-8")
    states = set(map(state_of, fleet.gpus))
    if states & set(BAD):
        return SOME_BAD
    return NOT_ENOUGH if states & {"unclear", "alone"} else refusals.exit_code
