"""Measures the speed of an API server by creations per second and the delay of watch events.

    python -m bench.apiserver [--runs 5] [--seconds 3] [--plain] [--memory]
    python -m bench.apiserver --side-by-side

Three processes: the server, its clients, its watchers, over TLS as in `lws up`. The clients are 32 connections of one
process that create pod-sized objects (2 KiB), either as soon as the last one is answered, or at a given pace. The
watchers are 100 connections that watch all pods. Every pod contains the time when it was sent, so ten of the watchers
measure the delay of its event. One JSON line per run:

    creates            no watchers
    creates_watched    100 watchers of all pods
    paced_watched      the same, creates paced at 1,500 per second

With `--side-by-side`, the embedded API server and a real kube-apiserver with etcd, without controllers, get the same
load in turn. Neither syncs every write to the disk. The programs are those of `tests/controlplane`.
"""

import argparse
import asyncio
import gc
import json
import multiprocessing
import os
import re
import secrets
import selectors
import socket
import ssl
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench.processes import cpu_seconds, memory_mib
from bench.record import report
from tests.controlplane import process

from kuberuntime.clock import SystemClock
from localkube.apiserver.builtin import kinds
from localkube.apiserver.frontend.http import HttpServer
from localkube.apiserver.server import ApiServer
from localkube.apiserver.storage.store import MEMORY, Store
from localkube.certificate import build_certificate, server_context

CLIENTS = 32
WATCHERS = 100
SAMPLED = 10
PACE = 1500
SIDE_BY_SIDE_PACE = 500
PODS = "/api/v1/namespaces/default/pods"
LENGTH = re.compile(rb"(?i)content-length: *([0-9]+)")
MARK = re.compile(rb'"bench/sent":"([0-9.]+)"')
WITHOUT_CONTROLLERS = ("--disable-admission-plugins=ServiceAccount",)


@dataclass(frozen=True)
class Target:
    """The address of the server, and the connection settings."""

    processes: tuple[int, ...]
    port: int
    token: str
    tls: bool

    def cpu_seconds(self) -> float:
        """Return the CPU time of the server processes."""
        return sum(map(cpu_seconds, self.processes))

    def memory_mib(self) -> int:
        """Return the current memory of the server processes."""
        return int(sum(map(memory_mib, self.processes)))

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection."""
        context = self.context() if self.tls else None
        return await asyncio.open_connection("127.0.0.1", self.port, ssl=context, limit=2**22)

    def dial(self) -> socket.socket:
        """Open a blocking connection."""
        connection = socket.create_connection(("127.0.0.1", self.port))
        return self.context().wrap_socket(connection) if self.tls else connection

    @staticmethod
    def context() -> ssl.SSLContext:
        """Return TLS settings that trust every certificate, because only the time is measured."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context

    def request(self, method: str, path: str, body: bytes = b"") -> bytes:
        """Build a request."""
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nAuthorization: Bearer {self.token}\r\n"
            f"User-Agent: bench/1\r\nAccept: application/json\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body


def pod(name: str, sent: float) -> bytes:
    """Build a pod with about the size of a LeaderWorkerSet pod (2 KiB)."""
    env = [{"name": f"VARIABLE_{number}", "value": f"value-{number}" * 4} for number in range(12)]
    labels = {f"leaderworkerset.sigs.k8s.io/label-{number}": f"value-{number}" for number in range(8)}
    container = {
        "name": "worker",
        "image": "registry.example/worker:1.2.3",
        "command": ["python", "-m", "program", "--rank", "$(LWS_WORKER_INDEX)"],
        "env": env,
        "ports": [{"containerPort": 8080, "protocol": "TCP"}],
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "1Gi"}},
    }
    metadata = {"name": name, "labels": labels, "annotations": {"bench/sent": f"{sent:.6f}"}}
    spec = {"containers": [container], "subdomain": "group", "hostname": name}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}).encode()


async def current_version(target: Target) -> str:
    """Return the resourceVersion of a list, from which a watch starts."""
    reader, writer = await target.connect()
    writer.write(target.request("GET", f"{PODS}?limit=1"))
    _, body = await read_response(reader)
    writer.close()
    return str(json.loads(body)["metadata"]["resourceVersion"])


async def read_response(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Read one response. Return its status and body."""
    head = await reader.readuntil(b"\r\n\r\n")
    status, length = int(head.split(b" ", 2)[1]), LENGTH.search(head)
    if length is not None:
        return status, await reader.readexactly(int(length[1]))
    body = b""
    while size := int(await reader.readline(), 16):  # chunked
        body += await reader.readexactly(size)
        await reader.readline()
    await reader.readline()
    return status, body


async def create_many(target: Target, prefix: str, seconds: float, pace: float) -> list[float]:
    """Create pods from all clients for `seconds`, at `pace` per second, or as fast as possible if it is 0.

    Returns the seconds of each creation.
    """
    latencies: list[float] = []
    connections = [await target.connect() for _ in range(CLIENTS)]
    begin = time.monotonic()

    async def client(number: int) -> None:
        reader, writer = connections[number]
        count = 0
        while time.monotonic() < begin + seconds:
            if pace:
                due = begin + (count * CLIENTS + number) / pace
                await asyncio.sleep(max(0.0, due - time.monotonic()))
            sent = time.monotonic()
            writer.write(target.request("POST", PODS, pod(f"{prefix}-{number}-{count}", sent)))
            status, body = await read_response(reader)
            if status != 201:
                raise SystemExit(f"create failed with status {status}: {body.decode()}")
            latencies.append(time.monotonic() - sent)
            count += 1
        writer.close()

    async with asyncio.TaskGroup() as group:
        for number in range(CLIENTS):
            group.create_task(client(number))
    return latencies


def pieces(connection: Any, room: bytearray) -> Iterator[bytes]:
    """Yield the received bytes of a connection."""
    while True:
        try:
            count = connection.recv_into(room)
        except (BlockingIOError, ssl.SSLWantReadError):
            return
        if not count:
            raise SystemExit("the server closed a watch")
        yield bytes(memoryview(room)[:count])


def watcher_process(pipe: Connection, target: Target) -> None:
    """Watch over many connections until stopped. Send the event count of each connection, and sampled delays."""
    delays: list[float] = []
    counts = [0] * WATCHERS

    version = asyncio.run(current_version(target))
    room = bytearray(2**20)
    selector = selectors.DefaultSelector()
    selector.register(pipe, selectors.EVENT_READ)
    for number in range(WATCHERS):
        connection = target.dial()
        connection.sendall(target.request("GET", f"{PODS}?watch=true&resourceVersion={version}"))
        connection.setblocking(False)
        selector.register(connection, selectors.EVENT_READ, number)
    pipe.send("ready")
    while True:
        for ready, _ in selector.select():
            if ready.fileobj is pipe:
                pipe.send((counts, delays))
                return
            for chunk in pieces(ready.fileobj, room):
                now = time.monotonic()
                counts[ready.data] += chunk.count(b'{"type":"ADDED"')
                if ready.data < SAMPLED:
                    delays.extend(now - float(mark) for mark in MARK.findall(chunk))


def percentile(values: list[float], share: float) -> float:
    """Return a percentile in milliseconds."""
    ordered = sorted(values)
    return round(1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))], 2)


@contextmanager
def started(process: Callable[..., None], *arguments: object, **options: object) -> Iterator[Connection]:
    """Run a function in a separate process, connected by a pipe."""
    ours, theirs = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    child = context.Process(target=process, args=(theirs, *arguments), kwargs=options)
    child.start()
    try:
        yield ours
    finally:
        child.join(10)
        child.kill()


def measure(target: Target, prefix: str, seconds: float, pace: float = 0) -> dict[str, Any]:
    """Create pods for `seconds`, and return the measurements."""
    before = target.cpu_seconds()
    latencies = asyncio.run(create_many(target, prefix, seconds, pace))
    return {
        "creates_per_second": round(len(latencies) / seconds),
        "answer_p50_ms": percentile(latencies, 0.5),
        "answer_p99_ms": percentile(latencies, 0.99),
        "server_cpu_us_per_create": round(1e6 * (target.cpu_seconds() - before) / len(latencies)),
        "server_memory_mib": target.memory_mib(),
    }


def measure_watched(target: Target, prefix: str, seconds: float, pace: float = 0) -> dict[str, Any]:
    """Measure with watchers. Also return the delay of events in milliseconds after the create request was sent."""
    with started(watcher_process, target) as watchers:
        watchers.recv()
        numbers = measure(target, prefix, seconds, pace)
        time.sleep(0.5)
        watchers.send("stop")
        counts, delays = watchers.recv()
    return numbers | {
        "watchers": WATCHERS,
        "events_each": [min(counts), max(counts)],
        "delivery_p50_ms": percentile(delays, 0.5),
        "delivery_p99_ms": percentile(delays, 0.99),
    }


def server_process(pipe: Connection, path: str, *, tls: bool) -> None:
    """Send the address, and serve requests until a stop signal is received."""

    async def serve() -> None:
        api = ApiServer(Store(path), kinds(), SystemClock())
        await api.start()
        token = secrets.token_urlsafe(32)
        context = server_context(*build_certificate(datetime.now(UTC))) if tls else None
        server = HttpServer(api, token=token, ssl_context=context)
        gc.freeze()  # as in `lws up`
        pipe.send(Target((os.getpid(),), await server.start(), token, tls))
        await asyncio.to_thread(pipe.recv)
        await server.stop()
        await api.close()

    asyncio.run(serve())


@contextmanager
def embedded(*, tls: bool, memory: bool = False) -> Iterator[Target]:
    """Run the embedded API server."""
    with tempfile.TemporaryDirectory() as directory:
        path = MEMORY if memory else str(Path(directory) / "cluster.db")
        with started(server_process, path, tls=tls) as server:
            yield server.recv()
            server.send("stop")


@contextmanager
def kubernetes(assets: Path) -> Iterator[Target]:
    """Run etcd and kube-apiserver."""
    with tempfile.TemporaryDirectory() as name, process.api_server(assets, Path(name), WITHOUT_CONTROLLERS) as plane:
        pids = tuple(child.pid for child in plane.processes.values())
        yield Target(pids, urlsplit(plane.server).port or 0, plane.token, tls=True)


def run_alone(options: argparse.Namespace) -> None:
    """Measure the embedded API server several times, with a new server each time."""
    for run in range(options.runs):
        with embedded(tls=not options.plain, memory=options.memory) as target:
            common = {"run": run, "tls": target.tls}
            report("creates", **common, **measure(target, "alone", options.seconds))
            report("creates_watched", **common, **measure_watched(target, "watched", options.seconds))
            report("paced_watched", **common, **measure_watched(target, "paced", options.seconds, PACE))


def run_side_by_side(options: argparse.Namespace, assets: Path) -> None:
    """Measure both servers alternately."""
    with embedded(tls=True) as ours, kubernetes(assets) as theirs:
        for run in range(options.runs):
            for server, target in (("embedded", ours), ("kube-apiserver", theirs)):
                common: dict[str, Any] = {"server": server, "run": run}
                report("side_by_side_creates", **common, **measure(target, f"alone-{run}", options.seconds))
                watched = measure_watched(target, f"paced-{run}", options.seconds, SIDE_BY_SIDE_PACE)
                report("side_by_side_paced_watched", **common, **watched)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--plain", action="store_true", help="without TLS")
    parser.add_argument("--memory", action="store_true", help="keep the store in memory instead of in a file")
    parser.add_argument("--side-by-side", action="store_true", help="alternate with a real kube-apiserver")
    options = parser.parse_args()
    if options.side_by_side:
        assets = os.environ.get("LWS_CONTROLPLANE_ASSETS")
        if not assets:
            raise SystemExit("set LWS_CONTROLPLANE_ASSETS to the directory of kube-apiserver and etcd")
        run_side_by_side(options, Path(assets))
    else:
        run_alone(options)


if __name__ == "__main__":
    main()
