"""gemm-bench mcp: judging a kernel as a tool of the Model Context Protocol, on standard input and
output. It needs mcp (the extra [mcp]). Run it only for agents whose code you would run yourself."""

import argparse
from typing import Any

from mcp.server import MCPServer

from gemm_bench.evaluate import judge
from gemm_bench.job import Job

devices = ["auto"]


def judge_kernel(
    source: str,
    shapes: list[list[int]],
    precision: str = "f32",
    layout: str = "nn",
    language: str = "cu",
    entry: str = "",
) -> list[dict[str, Any]]:
    """Verifies and times a matrix multiplication kernel, C (m x n) = A (m x k) * B (k x n), and
    compares it with the libraries of this machine.

    `source` is a .cu file whose function launch(gemm::Call) describes the launch of a __global__
    function, or (language "py") a Python file with prepare(problem, a, b, c) that returns a
    function launch(stream). `shapes` lists [m, n, k]. Returns for each shape its status ("passed"
    or what is wrong), the reason, seconds, ratio to the library (above 1: faster) and reward (the
    lower end of the ratio's interval; 0 unless it passed).
    """
    fields = {"precision": precision, "layout": layout, "language": language, "entry": entry}
    job = Job.from_json({"source": source, "shapes": shapes, **fields})
    return [
        {
            **{key: one.line[key] for key in ("m", "n", "k", "status", "reason", "seconds")},
            **{"versus": one.line["versus"], "of_roof": one.line["of_roof"]},
            "reward": one.reward,
        }
        for one in judge(job, devices[0])
    ]


server = MCPServer("gemm-bench")
server.add_tool(judge_kernel)


def main(arguments: list[str]) -> int:
    """The command; its exit status."""
    parser = argparse.ArgumentParser("gemm-bench mcp", description=__doc__)
    parser.add_argument("--device", default="auto", help="cpu, or the index of a GPU")
    devices[0] = parser.parse_args(arguments).device
    server.run("stdio")
    return 0
