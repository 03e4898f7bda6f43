"""Peers that raise, hang, die, print, exit or are not there: each ends its own row, with its cause
in one line, and the rows after it are as good as ever."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gemm_peers.family import Said, device_facts, outcomes
from gemm_peers.plan import Plan

QUICK = vars(Plan(warmup_seconds=0.01, sampling_seconds=0.01, longest_sampling_seconds=0.05))

HOSTILE = """
import os, signal, sys, time
import numpy as np
from gemm_peers.peer import Peer, UnsupportedError

def prepare(setting):
    what = setting.variant
    if what == "raises":
        raise ValueError("no such thing\\nand more of it")
    if what == "hangs":
        time.sleep(1000)
    if what == "dies":
        os.kill(os.getpid(), signal.SIGSEGV)
    if what == "exits":
        print("cannot go on", file=sys.stderr)
        sys.exit(7)
    if what == "exits well":
        os._exit(0)
    if what == "lacks":
        import no_such_module_anywhere
    if what == "declines":
        raise UnsupportedError("not on a Saturday")
    if what == "prints":
        print('{"measured": 1}' * 3000, flush=True)
    turns = iter(range(1100))  # enough for every operand set, not for what follows
    def launch(a, b, c):
        if what == "wrong":
            return lambda: np.subtract(np.matmul(a, b, out=c), 1, out=c)
        if what == "writes nothing":
            return lambda: None
        if what == "writes outside":
            wide = np.lib.stride_tricks.as_strided(c, (c.shape[0], c.shape[1] + 1), c.strides)
            def both():
                np.matmul(a, b, out=c)
                wide[-1, -1] = 1
            return both
        if what == "raises later":
            return lambda: (next(turns), np.matmul(a, b, out=c))
        return lambda: np.matmul(a, b, out=c)
    return launch

VARIANTS = ("good", "raises", "hangs", "dies", "exits", "exits well", "lacks", "declines",
            "prints", "wrong", "writes nothing", "writes outside", "raises later", "good again")
PEER = Peer("Hostile", 9, "Ends badly.", "cpu", ("numpy",), {"f32": "nn"}, prepare, VARIANTS)
"""
EXPECTED = {
    "raises": "ValueError: no such thing",
    "hangs": "did not end within 4 s (--timeout)",
    "dies": "ended by SIGSEGV",
    "exits": "ended with exit status 7 before its result: cannot go on",
    "exits well": "ended with exit status 0 before its result",
    "wrong": "c[0,0] = ",
    "writes nothing": "c[0,0] = nan, expected ",
    "writes outside": "wrote outside C: byte 1 past its end",
    "raises later": "StopIteration",
}


def hostile(folder: Path, variants: Sequence[str] = ()) -> Path:
    """A file with a peer that has all of them, or these."""
    path = folder / "hostile.py"
    chosen = f"VARIANTS = {tuple(variants)}\nPEER = " if variants else "PEER = "
    path.write_text(HOSTILE.replace("PEER = ", chosen), encoding="utf-8")
    return path


def rows(variants: Sequence[str]) -> list[Said]:
    size = {"precision": "f32", "layout": "nn", "m": 16, "n": 16, "k": 16}
    return [{"variant": variant, **size} for variant in variants]


def said(folder: Path, variants: Sequence[str], patience: float = 60) -> dict[str, Any]:
    task = {
        "peer": str(hostile(folder)),
        "device": "cpu",
        "seed": 1,
        "scratch": str(folder),
        "plan": QUICK,
    }
    return dict(zip(variants, outcomes(task, rows(variants), patience), strict=True))


def test_each_ends_its_own_row_with_its_cause(tmp_path: Path) -> None:
    bad = [name for name in EXPECTED if name != "hangs"]
    found = said(tmp_path, ["good", *bad, "lacks", "declines", "prints", "good again"])
    for name in bad:
        assert found[name]["failed"].startswith(EXPECTED[name]), name
        assert "\n" not in found[name]["failed"]
        assert "measured" not in found[name]
    missing = "no_such_module_anywhere is not installed: see tools/requirements-peers.txt"
    assert found["lacks"]["skipped"] == missing
    assert found["declines"]["skipped"] == "not on a Saturday"
    for name in ("good", "prints", "good again"):
        assert found[name]["measured"]["verification"]["passed"], name
        assert found[name]["measured"]["seconds"]["median"] > 0
    assert not found["wrong"]["verification"]["passed"]
    assert found["writes nothing"]["verification"]["max_error"] is None, "NaN is no number"


def test_one_that_hangs_is_ended_and_the_next_one_runs(tmp_path: Path) -> None:
    found = said(tmp_path, ["hangs", "good"], patience=4)
    assert found["hangs"]["failed"] == EXPECTED["hangs"]
    assert "measured" in found["good"]


def test_a_device_tells_of_itself_or_why_there_is_none(tmp_path: Path) -> None:
    facts = device_facts("cpu", 60, tmp_path)
    assert facts["device"]["kind"] == "cpu"
    assert facts["device"]["cores"] >= 1
    assert facts["card"] is None
    assert "nothing" not in facts
    assert device_facts("x", 60, tmp_path)["no_device"].startswith("the process that asked")


def test_a_row_has_operand_sets_past_the_cache_and_every_sample(tmp_path: Path) -> None:
    task = {"peer": "numpy", "device": "cpu", "seed": 1, "scratch": str(tmp_path), "plan": QUICK}
    row = {"variant": "", "precision": "f32", "layout": "nn", "m": 96, "n": 80, "k": 64}
    (one,) = outcomes(task, [row], 60)
    measured = one["measured"]
    assert measured["rotation_sets"] > 1
    assert measured["launch"] == "call"
    assert len(measured["samples_seconds"]) >= 1
    assert measured["seconds"]["min"] <= measured["seconds"]["q1"] <= measured["seconds"]["median"]
    assert 0 < measured["verification"]["of_bound"] < 1
    assert "clock and power not watched" in measured["departures"]
