"""Starts the processes of peers and hears what they say: one that raises, hangs or dies ends only
its row, with its cause."""

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

Said = dict[str, Any]
ROOT = Path(__file__).resolve().parents[2]
_GIVEN = os.environ.get("PYTHONPATH")
_PYTHONPATH = [str(ROOT / "report"), str(ROOT / "tools"), *([_GIVEN] if _GIVEN else [])]


class SilenceError(Exception):
    """The process says nothing more, and why."""


class Child:
    """One process, and the lines that it says."""

    def __init__(self, task: Said, patience_seconds: float) -> None:
        self._patience = patience_seconds
        reading, writing = os.pipe()
        self._pipe = reading
        self._printed = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        command = [sys.executable, "-m", "gemm_peers.child", json.dumps({**task, "pipe": writing})]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=self._printed,
            stderr=self._printed,
            pass_fds=(writing,),
            env={**os.environ, "PYTHONPATH": os.pathsep.join(_PYTHONPATH)},
            start_new_session=True,  # so that what it starts ends with it
        )
        os.close(writing)
        self._heard = b""
        self._selector = selectors.DefaultSelector()
        self._selector.register(reading, selectors.EVENT_READ)

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, *_: object) -> None:
        self._kill()
        self._selector.close()
        os.close(self._pipe)
        self._printed.close()

    def hear(self) -> Said:
        """The next line; SilenceError where none comes any more."""
        deadline = time.monotonic() + self._patience
        while b"\n" not in self._heard:
            left = deadline - time.monotonic()
            if left <= 0 or not self._selector.select(left):
                self._kill()
                raise SilenceError(f"did not end within {self._patience:g} s (--timeout)")
            more = os.read(self._pipe, 1 << 16)
            if not more:
                raise SilenceError(self._epitaph())
            self._heard += more
        line, _, self._heard = self._heard.partition(b"\n")
        return json.loads(line)

    def _epitaph(self) -> str:
        try:
            status = self._process.wait(10)
        except subprocess.TimeoutExpired:
            return "closed its pipe without a result"
        if status < 0:
            name = signal.Signals(-status).name
            return f"ended by {name}" + (" (out of memory?)" if name == "SIGKILL" else "")
        self._printed.seek(0)
        lines = self._printed.read().decode(errors="replace").strip().splitlines()
        last = f": {lines[-1].strip()[:300]}" if lines else ""
        return f"ended with exit status {status} before its result{last}"

    def _kill(self) -> None:
        # Its own group, which it leads: whatever it started is meant, too.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def device_facts(device: str, patience_seconds: float, scratch: Path) -> Said:
    """What a process that measures nothing says of the device: device, or no_device."""
    task = {"device": device, "rows": [], "scratch": str(scratch)}
    with Child(task, patience_seconds) as child:
        try:
            return child.hear()
        except SilenceError as silence:
            return {"no_device": f"the process that asked for the device {silence}"}


def unreadable(file: str, patience_seconds: float) -> str | None:
    """Why a file of somebody's cannot be read as a peer, as a process found that only did that:
    what is imported may hang, or end whoever imports it."""
    with Child({"load": file}, patience_seconds) as child:
        try:
            return child.hear()["unreadable"]
        except SilenceError as silence:
            return f"{file}: its import {silence}"


def outcomes(task: Said, rows: Sequence[Said], patience_seconds: float) -> Iterator[Said]:
    """Of each row in turn: measured, skipped or failed. `task` is that of the child, less rows."""
    left = list(rows)
    while left:
        with Child({**task, "rows": left}, patience_seconds) as child:
            try:
                facts = child.hear()
                if "no_device" in facts:
                    raise SilenceError(facts["no_device"])
                while left:
                    child.hear()  # begun
                    said = child.hear()
                    left.pop(0)
                    yield said
                    if "failed" in said:
                        break
            except SilenceError as silence:
                left.pop(0)
                yield {"failed": str(silence)}
