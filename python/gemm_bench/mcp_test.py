"""The tool for agents, called as a client of the protocol would."""

import asyncio
import os
from pathlib import Path

import pytest

pytest.importorskip("mcp")
pytest.importorskip("numpy")

ROOT = Path(__file__).parents[2]
BUILD = ROOT / os.environ.get("GEMM_BENCH_BUILD", "build/release")


@pytest.mark.skipif(not (BUILD / "gemm_bench").exists(), reason="not built")
def test_an_agent_gets_a_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    from gemm_bench import mcp

    monkeypatch.setenv("GEMM_BENCH_BUILD", str(BUILD))
    monkeypatch.setattr(mcp, "devices", ["cpu"])
    (tool,) = asyncio.run(mcp.server.list_tools())
    assert tool.name == "judge_kernel"
    arguments = {"source": "def prepare(:", "shapes": [[64, 64, 64]], "language": "py"}
    said = asyncio.run(mcp.server.call_tool("judge_kernel", arguments))
    assert "compile-error" in str(said)
