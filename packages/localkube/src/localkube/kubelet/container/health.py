"""Probes a running container, first for startup, then for liveness and readiness, each with a separate period.

Out: calls of `report` with the probes' verdicts, and of `report_problem` with the error of a failed probe.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, TypeVar

from msgspec import Struct

from kuberuntime.objects.meta import JSONObject
from localkube.kubelet.container import commands
from localkube.kubelet.processes import podconnections
from localkube.kubelet.processes.runner import ProcessRunner, StartError
from localkube.kubelet.spec import podspec, probes
from localkube.kubelet.spec.podspec import SpecError
from localkube.kubelet.spec.probes import Kind, ProbeResults

T = TypeVar("T")

TURNS: Final = 10
"""The number of intervals into which the timeout of a probe is divided.

Each part is two turns of a late event loop; a probe needs about twelve.
"""

OF_THE_MACHINE: Final = "127."
"""The address prefix of pods that share the network of the machine."""


class ProbeTarget(Struct, frozen=True, kw_only=True):
    """The probed run of a container (`pid` is its main process on the host), and the callbacks for results."""

    runner: ProcessRunner
    container: JSONObject
    container_id: str
    ip: str
    pid: int
    report: Callable[[Kind, bool], None]
    report_problem: Callable[[str], None]


async def watch(target: ProbeTarget) -> None:
    """Probe until cancelled, or until all probes have finished."""
    began = asyncio.get_running_loop().time()
    if target.container.get("startupProbe") and not await _repeat(target, "startup", began):
        return
    async with asyncio.TaskGroup() as tasks:
        for kind, _ in podspec.container_probes(target.container):
            if kind == "liveness":
                tasks.create_task(_repeat(target, "liveness", began))
            elif kind == "readiness":
                tasks.create_task(_repeat(target, "readiness", began))


async def _repeat(target: ProbeTarget, kind: Kind, began: float) -> bool:
    """Probe periodically and report each change of the verdict. Return after a final verdict of this probe.

    The initial delay counts from the start of the container.
    """
    probe = target.container[f"{kind}Probe"]
    rules = probes.settings(probe)
    tally = ProbeResults()
    await asyncio.sleep(began + rules.initial_delay - asyncio.get_running_loop().time())
    while True:
        problem = await _probe_once(target, kind, probe, rules.timeout)
        before, tally = tally, probes.observe(tally, rules, good=not problem)
        if problem:
            target.report_problem(problem)
        if tally.verdict is not None and tally.verdict is not before.verdict:
            target.report(kind, tally.verdict)
            if kind == "startup" or (kind == "liveness" and not tally.verdict):
                return tally.verdict
        await asyncio.sleep(rules.period)


async def _probe_once(target: ProbeTarget, kind: Kind, probe: JSONObject, timeout: float) -> str:
    """Probe once. Return the problem, or an empty string if the probe succeeds."""
    try:
        problem = await _wait_within(timeout, perform_probe(target, probe))
    except TimeoutError:
        problem = f"no response within {timeout:g} s"
    except (OSError, StartError, SpecError, ValueError, OverflowError) as error:  # as for hooks
        problem = f"{error}{_listening_ports_note(target) if isinstance(error, ConnectionRefusedError) else ''}"
    return f"{kind.capitalize()} probe failed: {problem}" if problem else ""


async def _wait_within(timeout: float, work: Coroutine[Any, Any, T]) -> T:
    """Await work for `timeout` seconds, excluding delays of timers in this process.

    While many pods start, an answer waits for this process, not this process for the answer.
    """
    task = asyncio.ensure_future(work)
    try:
        for _ in range(TURNS):
            done, _ = await asyncio.wait({task}, timeout=timeout / TURNS)
            if done:
                return task.result()
        raise TimeoutError
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _listening_ports_note(target: ProbeTarget) -> str:
    """Return a message about the ports on which the pod listens, or an empty string in the network of the machine."""
    if target.ip.startswith(OF_THE_MACHINE):
        return ""
    ports = ", ".join(map(str, podconnections.listening_ports(target.pid)))
    return f"; the pod listens on {ports or 'no port'}"


async def perform_probe(target: ProbeTarget, probe: JSONObject) -> str:
    """Perform the probe action once, and return the problem in its result. Connection errors raise OSError."""
    if probe.get("exec"):
        code, output = await commands.run(target.runner, target.container_id, tuple(probe["exec"]["command"]))
        return "" if code == 0 else output.decode(errors="replace").strip() or f"exit code {code}"
    if probe.get("httpGet"):
        request = http_get(target.container, probe["httpGet"], target.ip)
        code, _ = await _add_address_to_errors(request.url, podconnections.get(target.runner, request))
        return "" if 200 <= code < 400 else f"HTTP probe failed with statuscode: {code}"
    action = probe["tcpSocket"]
    address = (str(action.get("host") or target.ip), podspec.resolve_port(target.container, action["port"]))
    _, writer = await _add_address_to_errors(
        f"{address[0]}:{address[1]}", podconnections.connect(target.runner, None, address)
    )
    writer.close()
    return ""


def http_get(container: JSONObject, action: JSONObject, ip: str) -> podconnections.Get:
    """Return the request of an `httpGet` action of a probe or hook."""
    path = str(action.get("path") or "/")
    return podconnections.Get(
        host=str(action.get("host") or ip),
        port=podspec.resolve_port(container, action["port"]),
        path=path if path.startswith("/") else f"/{path}",
        uses_tls=action.get("scheme") == "HTTPS",
        headers={header["name"]: header["value"] for header in action.get("httpHeaders") or []},
    )


async def _add_address_to_errors(address: str, connection: Awaitable[T]) -> T:
    """Await a connection, and add its address to errors."""
    try:
        return await connection
    except OSError as error:
        kind = ConnectionRefusedError if isinstance(error, ConnectionRefusedError) else ConnectionError
        raise kind(f"{address}: {error.strerror or error}") from error
