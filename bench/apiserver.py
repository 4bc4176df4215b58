"""Measures the speed of an API server by creations per second and the delay of watch events.

    python -m bench.apiserver [--runs 5] [--seconds 3] [--plain] [--memory]
    python -m bench.apiserver --side-by-side

Three processes: the server, its clients, its watchers (`load.py`), over TLS as in `lws up`. One JSON line per run:

    creates            no watchers
    creates_watched    100 watchers of all pods
    paced_watched      the same, creates paced at 1,500 per second

With `--side-by-side`, the embedded API server and a real kube-apiserver with etcd, without controllers, get the same
load in turn. Neither syncs every write to the disk. The programs are those of `tests/controlplane`.
"""

import argparse
import asyncio
import gc
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench.load import Target, measure, measure_watched, started
from bench.record import report
from tests.controlplane import process

from kuberuntime.clock import SystemClock
from localkube.apiserver.builtin import kinds
from localkube.apiserver.frontend.http import HttpServer
from localkube.apiserver.server import ApiServer
from localkube.apiserver.storage.store import MEMORY, Store
from localkube.certificate import build_certificate, server_context

PACE = 1500
SIDE_BY_SIDE_PACE = 500
WITHOUT_CONTROLLERS = ("--disable-admission-plugins=ServiceAccount",)


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
    parser.add_argument("--memory", action="store_true", help="store in memory, not in a file")
    parser.add_argument("--side-by-side", action="store_true", help="in turn with a real kube-apiserver")
    options = parser.parse_args()
    if options.side_by_side:
        assets = os.environ.get("LWS_CONTROLPLANE_ASSETS")
        if not assets:
            raise SystemExit("LWS_CONTROLPLANE_ASSETS does not say where kube-apiserver and etcd are")
        run_side_by_side(options, Path(assets))
    else:
        run_alone(options)


if __name__ == "__main__":
    main()
