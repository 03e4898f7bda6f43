"""gemm-bench serve: verdicts over HTTP on this machine's loopback, for programs that write kernels.

One job at a time is measured on a device, while others compile on CPUs. It needs starlette and
uvicorn (the extra [serve]).
"""

import argparse
import asyncio
import hmac
import os
import secrets
import signal
import sys
from collections import OrderedDict
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from gemm_bench.job import (
    Confinement,
    Job,
    JobError,
    Workplace,
    can_cut_network,
    compute_capability,
    workplace,
)
from gemm_bench.program import ProgramMissingError, program
from gemm_bench.trace import job_of

LARGEST_BODY = 4 << 20  # bytes
LONGEST_WAIT = 60.0  # seconds of a poll
MOST_KEPT = 2000  # finished jobs

PAGE = """gemm-bench serve

POST /jobs       a job as JSON (gemm_bench.Job, or a FlashInfer-Trace definition and solution)
                 202 and its id; 429 if the queue is full: try again after Retry-After seconds
GET /jobs/ID     its state; with ?wait=SECONDS (at most 60) once it is done
GET /health      devices, and how many jobs wait

Each request has the header "Authorization: Bearer TOKEN".

This is no sandbox. A job runs code with the rights of the user who started the server: it can read
and change what that user can, this server too. Run it as a user of its own, or in a container, and
give the token only to programs whose kernels you would run yourself.

{confined}
"""


@dataclass
class _Entry:
    """A job that was accepted."""

    job: Job
    state: str = "queued"  # then "compiling", "measuring", and "done" or "error"
    verdicts: list[dict[str, Any]] = field(default_factory=list)
    error: str | None = None
    done: asyncio.Event = field(default_factory=asyncio.Event)

    def document(self) -> dict[str, Any]:
        return {"state": self.state, "verdicts": self.verdicts, "error": self.error}


class Judge:
    """The queue, and who works on it."""

    def __init__(
        self,
        devices: list[str],
        waiting: int,
        compilers: int,
        confinement: Confinement,
        include: list[str],
    ) -> None:
        self.devices, self.waiting, self.confinement = devices, waiting, confinement
        self._include = include
        found = {compute_capability("0" if each == "auto" else each) for each in devices}
        self._compile_for = sorted(each for each in found if each)
        self.unfinished = 0
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._places: set[Workplace] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._compilers = asyncio.Semaphore(compilers)
        # Compiled ones wait for a device: no more than keep it busy, as each has a folder.
        self._ahead = asyncio.Semaphore(compilers + 2 * len(devices))
        self._threads = ThreadPoolExecutor(compilers + len(devices))
        self._free: asyncio.Queue[str] = asyncio.Queue()
        for device in devices:
            self._free.put_nowait(device)

    def submit(self, job: Job) -> str | None:
        """Its id; None if the queue is full."""
        if self.unfinished >= self.waiting:
            return None
        name = secrets.token_hex(8)
        entry = self._entries[name] = _Entry(job)
        self.unfinished += 1
        task = asyncio.create_task(self._work(entry))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        while len(self._entries) - self.unfinished > MOST_KEPT:
            finished = next(name for name, each in self._entries.items() if each.done.is_set())
            del self._entries[finished]
        return name

    def entry(self, name: str) -> _Entry | None:
        """Of a job that is kept."""
        return self._entries.get(name)

    async def close(self) -> None:
        """Ends all jobs and their processes."""
        for task in self._tasks:
            task.cancel()
        for place in list(self._places):
            place.stop.set()
        self._threads.shutdown(wait=True, cancel_futures=True)
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _work(self, entry: _Entry) -> None:
        run = asyncio.get_running_loop().run_in_executor
        try:
            async with self._ahead:
                with workplace(
                    entry.job,
                    confinement=self.confinement,
                    include=self._include,
                    compile_for=self._compile_for,
                ) as place:
                    self._places.add(place)
                    try:
                        async with self._compilers:
                            entry.state = "compiling"
                            entry.verdicts = await run(self._threads, place.compile)
                        if not entry.verdicts:
                            place.device = await self._free.get()
                            try:
                                entry.state = "measuring"
                                entry.verdicts = await run(self._threads, place.measure)
                            finally:
                                self._free.put_nowait(place.device)
                    finally:
                        self._places.discard(place)
            entry.state = "done"
        except (JobError, ProgramMissingError, OSError, ValueError, KeyError) as error:
            entry.state, entry.error = "error", f"{error}"
        finally:
            self.unfinished -= 1
            entry.done.set()


def app(judge: Judge, token: str) -> Starlette:
    """The application. `token` opens everything but nothing is open without it."""

    def refused(request: Request) -> Response | None:
        given = request.headers.get("authorization", "")
        if hmac.compare_digest(given.encode(), f"Bearer {token}".encode()):
            return None
        return JSONResponse({"error": "give the header Authorization: Bearer TOKEN"}, 401)

    async def page(request: Request) -> Response:
        cut = not judge.confinement.network and can_cut_network()
        network = "Jobs have no network." if cut else "Jobs have this user's network."
        memory = judge.confinement.memory_bytes
        limit = f" A process may have {memory / 2**30:.3g} GiB of data." if memory else ""
        return refused(request) or PlainTextResponse(PAGE.format(confined=network + limit))

    async def health(request: Request) -> Response:
        return refused(request) or JSONResponse(
            {"devices": judge.devices, "unfinished": judge.unfinished, "queue": judge.waiting}
        )

    async def submit(request: Request) -> Response:
        if refusal := refused(request):
            return refusal
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > LARGEST_BODY:
                return JSONResponse({"error": f"more than {LARGEST_BODY} bytes"}, 413)
        try:
            job = job_of(body)
        except JobError as error:
            return JSONResponse({"error": str(error)}, 422)
        name = judge.submit(job)
        if name is None:
            full = {"error": f"{judge.waiting} jobs wait: try again later"}
            return JSONResponse(full, 429, headers={"Retry-After": "1"})
        return JSONResponse({"id": name}, 202)

    async def look(request: Request) -> Response:
        if refusal := refused(request):
            return refusal
        entry = judge.entry(request.path_params["name"])
        if entry is None:
            return JSONResponse({"error": "no such job, or it ended long ago"}, 404)
        try:
            wait = float(request.query_params.get("wait", 0))
        except ValueError:
            return JSONResponse({"error": "wait: give seconds"}, 422)
        if 0 < wait < float("inf"):
            with suppress(TimeoutError):
                await asyncio.wait_for(entry.done.wait(), min(wait, LONGEST_WAIT))
        return JSONResponse(entry.document())

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await judge.close()

    routes = [
        Route("/", page),
        Route("/health", health),
        Route("/jobs", submit, methods=["POST"]),
        Route("/jobs/{name}", look),
    ]
    return Starlette(routes=routes, lifespan=lifespan)


def _token(file: str | None) -> str:
    if file:
        token = Path(file).read_text().strip()
    else:
        token = os.environ.pop("GEMM_BENCH_TOKEN", "")
        if not token:
            token = secrets.token_urlsafe(24)
            print(f"token: {token}", file=sys.stderr, flush=True)
    if len(token) < 16 or not token.isascii() or not token.isprintable():
        raise JobError("the token needs 16 or more printable ASCII characters")
    return token


def main(arguments: list[str]) -> int:
    """The command; its exit status."""
    cpus = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser("gemm-bench serve", description=__doc__)
    parser.add_argument("--port", type=int, default=8765, help="on 127.0.0.1; 0: any free one")
    parser.add_argument("--devices", default="auto", help="GPUs by index, as 0,1; or cpu")
    parser.add_argument("--queue", type=int, default=64, help="most jobs that are not finished")
    parser.add_argument("--compilers", type=int, default=max(1, cpus - 1), help="at a time")
    parser.add_argument("--token-file", help="else GEMM_BENCH_TOKEN, else one is printed")
    parser.add_argument("--memory", type=float, help="GiB of data of a process; on GPUs untested")
    parser.add_argument("--processes", type=int, help="of this user's in a job; needs no root")
    parser.add_argument("--include", action="append", default=[], help="folder of headers for .cu")
    parser.add_argument("--network", action="store_true", help="leave jobs the network")
    options = parser.parse_args(arguments)
    try:
        if min(options.queue, options.compilers, options.memory or 1, options.processes or 1) <= 0:
            raise JobError("numbers must be positive")
        program()
        token = _token(options.token_file)
        memory = int(options.memory * 2**30) if options.memory else None
        confinement = Confinement(options.network, memory, options.processes)
        if not options.network and not can_cut_network():
            print("gemm-bench: jobs keep the network: no user namespaces here", file=sys.stderr)
    except (JobError, ProgramMissingError, OSError) as error:
        print(f"gemm-bench: {error}", file=sys.stderr)
        return 2
    return asyncio.run(_serve(options, token, confinement))


async def _serve(options: argparse.Namespace, token: str, confinement: Confinement) -> int:
    judge = Judge(
        *(options.devices.split(","), options.queue, options.compilers),
        *(confinement, options.include),
    )
    config = uvicorn.Config(
        app(judge, token),
        host="127.0.0.1",
        port=options.port,
        log_level="warning",
        timeout_keep_alive=65,
        limit_concurrency=2048,
        timeout_graceful_shutdown=5,
    )
    server = uvicorn.Server(config)
    loop = asyncio.get_running_loop()
    serving = asyncio.create_task(server.serve())
    while not server.started and not serving.done():
        await asyncio.sleep(0.01)
    if server.started:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, lambda: setattr(server, "should_exit", True))
        port = server.servers[0].sockets[0].getsockname()[1]
        print(f"http://127.0.0.1:{port}", file=sys.stderr, flush=True)
    await serving
    return 0 if server.started else 2
