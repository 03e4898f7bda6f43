"""The server as its users see it, on the CPU, and what it does with kernels that misbehave."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

jsonschema = pytest.importorskip("jsonschema")
for module in ("numpy", "starlette", "uvicorn"):
    pytest.importorskip(module)

ROOT = Path(__file__).parents[2]
BUILD = ROOT / os.environ.get("GEMM_BENCH_BUILD", "build/release")
SCHEMA = json.loads((Path(__file__).parent / "verdict.schema.json").read_text())
TOKEN = "a token of the test, long enough"
MEMORY_GIB = 1
QUEUE = 10
HONEST = """
import numpy as np
def prepare(problem, a, b, c):
    a, b, c = (np.asarray(each) for each in (a, b, c))
    return lambda stream: np.matmul(a, b, out=c)
"""

CPP = """
#include "gemm_kernel.h"
extern "C" const char* mine(const gemm::Call* p, const char*, void*) {
  const float *a = (const float*)p->a, *b = (const float*)p->b;
  for (long i = 0; i < p->m * p->n; ++i) {
    float sum = ZERO;
    for (long k = 0; k < p->k; ++k) sum += a[i / p->n * p->k + k] * b[k * p->n + i % p->n];
    ((float*)p->c)[i] = sum;
  }
  return nullptr;
}
"""

pytestmark = pytest.mark.skipif(not (BUILD / "gemm_bench").exists(), reason="not built")


class Client:
    def __init__(self, port: int) -> None:
        self.port = port

    def call(
        self, method: str, path: str, body: Any = None, token: str = TOKEN
    ) -> tuple[int, dict[str, Any]]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=90)
        text = body if isinstance(body, bytes | None) else json.dumps(body)
        connection.request(method, path, text, {"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        said = answer.read()
        connection.close()
        is_json = answer.headers.get_content_type() == "application/json"
        return answer.status, json.loads(said) if is_json else {"text": said.decode()}

    def submit(self, source: str, **fields: Any) -> str:
        document = {"source": source, "language": "py", "shapes": [[64, 64, 64]]}
        quick = {"warmup": 0.01, "sampling": 0.05, "baseline": None, "limit": 20}
        quick["peaks"] = "nominal"
        status, said = self.call("POST", "/jobs", {**document, **quick, **fields})
        assert status == 202, said
        return str(said["id"])

    def result(self, name: str) -> dict[str, Any]:
        end = time.monotonic() + 100
        while time.monotonic() < end:
            status, said = self.call("GET", f"/jobs/{name}?wait=30")
            assert status == 200
            if said["state"] in ("done", "error"):
                for verdict in said["verdicts"]:
                    jsonschema.validate(verdict, SCHEMA)
                return said
        raise AssertionError(f"{name} does not end")

    def status(self, source: str, **fields: Any) -> str:
        said = self.result(self.submit(source, **fields))
        assert said["state"] == "done", said
        return str(said["verdicts"][0]["status"])


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    environment = {
        **os.environ,
        **{"GEMM_BENCH_BUILD": str(BUILD), "GEMM_BENCH_TOKEN": TOKEN},
        **{"PYTHONPATH": str(ROOT / "python"), "OPENBLAS_NUM_THREADS": "1"},
        "OMP_NUM_THREADS": "1",
        "XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache")),
    }
    options = ["--port=0", "--devices=cpu", f"--queue={QUEUE}", f"--memory={MEMORY_GIB}"]
    process = subprocess.Popen(
        [sys.executable, "-m", "gemm_bench", "serve", *options],
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert process.stderr
    lines = iter(process.stderr.readline, "")
    address = next(line for line in lines if line.startswith("http://"))
    yield Client(int(address.rsplit(":", 1)[1]))
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0


def test_an_honest_kernel_passes_and_is_compared(client: Client) -> None:
    shapes = [[64, 64, 64], [96, 32, 16]]
    said = client.result(client.submit(HONEST, shapes=shapes, baseline="CpuNaive"))
    assert [one["status"] for one in said["verdicts"]] == ["passed", "passed"]
    assert [[one[size] for size in "mnk"] for one in said["verdicts"]] == shapes
    assert all(one["versus"]["cached"] for one in said["verdicts"])


def test_a_source_in_cpp_is_compiled(client: Client) -> None:
    assert client.status(CPP, language="cpp", entry="mine", defines={"ZERO": "0"}) == "passed"
    assert client.status(CPP, language="cpp", entry="mine", defines={"ZERO": "1"}) == "wrong"
    assert client.status(CPP + "oops", language="cpp", entry="mine") == "compile-error"


# What bench/run/verdict_test.py does not try: kernels that may disturb others.
MISBEHAVING = {
    "hangs": ("def prepare(*_):\n while True: pass", "timeout"),
    "ends its parent": ("import os\ndef prepare(*_): os.kill(os.getppid(), 9)", "crashed"),
    "fills memory": (
        "held = []\ndef prepare(*_):\n while True: held.append(bytearray(1 << 26))",
        "crashed",
    ),
    "prints without end": (
        "def prepare(*_):\n while True: print('x' * 100000, flush=True)",
        "timeout",
    ),
}


def test_kernels_that_misbehave_get_their_status_and_disturb_no_other(client: Client) -> None:
    """All at once, with honest ones among them."""
    jobs = []
    for kind, (source, status) in MISBEHAVING.items():
        limit = 3 if status == "timeout" else 20
        jobs.append((kind, status, client.submit(source, limit=limit)))
        jobs.append((f"after one that {kind}", "passed", client.submit(HONEST)))
    found = {kind: (status, client.result(name)["verdicts"]) for kind, status, name in jobs}
    assert all([one["status"] for one in got] == [wanted] for wanted, got in found.values()), found
    assert client.call("GET", "/health")[1]["unfinished"] == 0


def left_over(mark: str) -> list[str]:
    """Processes with this word on their command line, that have not ended."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found += [each.parent.name] if mark in each.read_text() else []
    return found


@pytest.mark.parametrize("ends_parent", [False, True])
def test_what_a_kernel_leaves_running_is_ended(client: Client, ends_parent: bool) -> None:
    word = f"left-over-{os.getpid()}-{ends_parent}"
    last = "os.kill(os.getppid(), 9)" if ends_parent else "os._exit(0)"
    source = f"""
import os, subprocess, sys
def prepare(*_):
    sleep = "import time; time.sleep(600)"
    for apart in (False, True):
        subprocess.Popen([sys.executable, "-c", sleep, "{word}"], start_new_session=apart)
    {last}
"""
    assert client.status(source) == "crashed"
    assert left_over(word) == []


def test_jobs_have_no_network(client: Client) -> None:
    from gemm_bench.job import can_cut_network

    if not can_cut_network():
        pytest.skip("no user namespaces")
    source = f"""
import socket
def prepare(*_): socket.create_connection(("127.0.0.1", {client.port}), 2)
"""
    said = client.result(client.submit(source))
    assert "unreachable" in said["verdicts"][0]["reason"]


def test_the_queue_is_bounded_under_hundreds_of_posts(client: Client) -> None:
    document = {"source": HONEST, "language": "py", "shapes": [[16, 16, 16]], "baseline": None}
    document |= {"warmup": 0.001, "sampling": 0.001, "peaks": "nominal"}

    def post(_: int) -> tuple[int, dict[str, Any]]:
        return client.call("POST", "/jobs", document)

    with ThreadPoolExecutor(64) as pool:
        answers = list(pool.map(post, range(200)))
    statuses = Counter(status for status, _ in answers)
    assert statuses.keys() <= {202, 429}
    assert statuses[202] >= QUEUE
    assert statuses[429] > 0
    for status, said in answers:
        if status == 202:
            assert client.result(said["id"])["state"] == "done"
    assert client.call("GET", "/health")[1]["unfinished"] == 0


JOB = {"source": "", "shapes": [[1, 1, 1]]}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 422),
        (b"[" * 100000, 422),
        (b"x" * (5 << 20), 413),
        ([], 422),
        ({"source": "", "shapes": [[1, 1]]}, 422),
        ({"source": "", "shapes": [[1, 1, 1 << 40]]}, 422),
        ({"source": "", "shapes": [64]}, 422),
        ({"source": "", "shapes": [[1, 1, 1]] * 65}, 422),
        ({**JOB, "colour": 1}, 422),
        ({**JOB, "files": {"../x": ""}}, 422),
        ({**JOB, "files": {"/x": ""}}, 422),
        ({**JOB, "baseline": "a --x"}, 422),
        ({**JOB, "defines": {"A": "$(x)"}}, 422),
        ({**JOB, "limit": 1e9}, 422),
        ({"source": "x" * (2 << 20), "shapes": [[1, 1, 1]]}, 422),
    ],
)
def test_what_is_no_job_is_refused(client: Client, body: Any, status: int) -> None:
    got, said = client.call("POST", "/jobs", body)
    assert got == status
    assert said["error"]


def test_without_the_token_nothing_is_open(client: Client) -> None:
    for method, path in (("GET", "/"), ("GET", "/health"), ("POST", "/jobs"), ("GET", "/jobs/x")):
        assert client.call(method, path, token="another")[0] == 401
    assert client.call("GET", "/jobs/none")[0] == 404
    status, page = client.call("GET", "/")
    assert status == 200
    assert "This is no sandbox" in page["text"]


def test_a_fault_of_the_job_is_told(client: Client) -> None:
    said = client.result(client.submit("x", language="cu"))
    assert said["state"] == "error"
    assert re.search("needs a GPU", said["error"])
