"""What a peer is: a name, the precisions that it computes with the layout of each, and how it is
made to launch. Its own packages are imported in `prepare` alone, so that a list of peers costs
nothing and what is missing is told of one row."""

import contextlib
import importlib
import importlib.util
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from gemm_report.document import InputError

from gemm_peers.device import Launch
from gemm_peers.problem import PRECISIONS, Problem

# Of one set of operands, as the device hands them out, to what launches the product on them.
Prepared = Callable[[Any, Any, Any], Launch]


class UnsupportedError(Exception):
    """The peer cannot run this here, and says why: its row is skipped."""


@dataclass(frozen=True)
class Setting:
    """For what a peer prepares. The stream is a CUstream, or 0 on the CPU."""

    problem: Problem
    variant: str
    stream: int


@dataclass(frozen=True)
class Peer:
    """One of them."""

    name: str
    rung: int
    idea: str
    kind: str  # of the device: gpu or cpu
    packages: tuple[str, ...]  # distributions, whose versions are recorded
    layouts: Mapping[str, str]  # precision to layout
    prepare: Callable[[Setting], Prepared]
    variants: tuple[str, ...] = ("",)

    @property
    def versions(self) -> str:
        """Of its packages, as the record has them."""
        found = []
        for package in self.packages:
            try:
                found.append(f"{package} {version(package)}")
            except PackageNotFoundError:
                found.append(f"{package} (not installed)")
        return ", ".join(found)


# In the order of the figures. A file of somebody else's, with a PEER in it, does as well.
NAMES = ("numpy", "numba", "triton", "cutlass", "cupy", "torch")


def peer_named(name: str) -> Peer:
    """Of this project, or in a file whose name ends in .py; InputError if there is none."""
    if name in NAMES:
        return importlib.import_module(f"gemm_peers.adapters.{name}_peer").PEER
    if not name.endswith(".py"):
        raise InputError(f"--peers={name}: is none of {', '.join(NAMES)}, and no file NAME.py")
    path = Path(name)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise InputError(f"{name}: there is no such file: give one with a PEER in it")
    module = importlib.util.module_from_spec(spec)
    try:
        # What it prints is nobody's result.
        with contextlib.redirect_stdout(io.StringIO()):
            spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # it is anybody's
        raise InputError(f"{name}: cannot be read as a peer: {one_line(error)}") from error
    peer = getattr(module, "PEER", None)
    if not isinstance(peer, Peer):
        raise InputError(f"{name}: has no PEER of type gemm_peers.peer.Peer")
    if unknown := set(peer.layouts) - set(PRECISIONS):
        raise InputError(f"{name}: has unknown precisions: {', '.join(sorted(unknown))}")
    return peer


def one_line(error: BaseException) -> str:
    """The kind of an exception and the first line of what it says."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0].strip()[:300]}" if lines else type(error).__name__
