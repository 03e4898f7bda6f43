"""The console of gemm_bench on a pseudo-terminal, and where there is none."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios

import pytest
from test_runs import BENCH, NEEDS_BENCH

QUICK = [
    "--gemm_device=cpu",
    "--gemm_peaks=nominal",
    "--gemm_peak_flops=1e13",
    "--gemm_peak_bandwidth=1e12",
    "--gemm_warmup=0.001",
    "--gemm_sampling=0.05",
    "--benchmark_min_time=0.001s",
]
# On one core: a busy machine upsets kernels on several.
SIX = [*QUICK, "--gemm_shapes=16,1024x64x8,32,48,64,80", "--benchmark_filter=CpuNaive"]

pytestmark = NEEDS_BENCH


def shown(width: int, *arguments: str, **environment: str) -> str:
    """All that a terminal of this width received."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    parts = []
    with subprocess.Popen(
        [BENCH, *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", **environment},
    ) as process:
        os.close(theirs)
        while True:
            try:
                part = os.read(ours, 1 << 16)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            parts.append(part.decode())
        process.wait(timeout=120)
    os.close(ours)
    assert process.returncode == 0, parts
    return "".join(parts)


def lines_of(text: str) -> list[str]:
    """What stays on the screen: of a line that was cleared, what came after that."""
    return [line.rsplit("\x1b[K", 1)[-1] for line in text.replace("\r\n", "\n").split("\n")]


@pytest.mark.parametrize("width", [60, 120])
def test_no_line_is_longer_than_the_terminal_and_the_last_table_is_there(width: int) -> None:
    text = shown(width, *SIX, NO_COLOR="1")
    lines = lines_of(text)
    assert max(map(len, lines)) <= width, max(lines, key=len)
    drawn = re.findall(r"\r\x1b\[K([^\r\n\x1b]*)", text)
    assert max(map(len, drawn)) < width, "the status line leaves the last column free"
    bar = r"\[#+-+\] " if width > 80 else ""
    start = bar + r"[1-5]/6  0:\d\d left  sampling  CpuN"
    assert any(re.match(start, line) for line in drawn), drawn
    assert any("  verifying  " in line for line in drawn), drawn
    assert re.sub(r"\r\x1b\[K|\r\n", "", text).count("\x1b") == 0, "no other sequences"
    results = [
        line for line in lines if re.match(r"CpuNaive +f32 +\d[\dx]+ .*FLOP/s +\S+( |$)", line)
    ]
    assert len(results) == 6, lines
    sure = [line for line in results if not line.endswith("*")]
    first = next((i for i, line in enumerate(lines) if line.startswith("Type ")), len(lines))
    winners = [line for line in lines[first + 1 :] if line.startswith("f32 ")]
    assert len(winners) == len(sure), "a winner for each size that is not in doubt"
    for line in winners:
        assert re.match(r"f32 +[\dx]+ Cpu\S+ +[\d.]+ [MGT]FLOP/s +[\d.]+ +(-|[\d.]+) ", line), line
    assert "manual_time" not in text


def test_a_dumb_terminal_gets_plain_lines() -> None:
    text = shown(80, *SIX, TERM="dumb")
    assert "\x1b" not in text
    assert "[6/6, 0:00 left]" in text


@pytest.mark.parametrize("form", ["json", "csv"])
def test_other_formats_have_no_status_line(form: str) -> None:
    few = [*QUICK, "--gemm_shapes=16,32", "--benchmark_filter=CpuNaive"]
    text = shown(80, *few, f"--benchmark_format={form}", "--benchmark_color=false")
    assert "\x1b" not in text


def test_messages_of_other_parts_appear_above_the_status_line() -> None:
    text = shown(
        100, *QUICK, "--gemm_shapes=2000000000x2000000000x1,16", "--benchmark_filter=Naive"
    )
    for line in lines_of(text):
        assert not re.search(r"\d+/\d+  .*(FLOP/s|SKIPPED|FAILED)", line), line
