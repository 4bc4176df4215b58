"""Implements lifecycle hooks after the start of a container (postStart) and before its stop signal (preStop)."""

import asyncio

from kuberuntime.objects.meta import JSONObject
from localkube.kubelet.container import commands, health
from localkube.kubelet.processes import podconnections
from localkube.kubelet.processes.runner import ProcessRunner, StartError
from localkube.kubelet.spec.podspec import SpecError


class HookError(Exception):
    """The hook failed. The message contains the reason."""


async def run(runner: ProcessRunner, hook: JSONObject, container: JSONObject, container_id: str, ip: str) -> None:
    """Run one hook to completion."""
    try:
        if hook.get("exec"):
            await _run_command(runner, container_id, tuple(hook["exec"].get("command") or ()))
        elif hook.get("httpGet"):
            await _request(runner, health.http_get(container, hook["httpGet"], ip))
        elif hook.get("sleep"):
            await asyncio.sleep(float(hook["sleep"].get("seconds") or 0))
        else:
            raise HookError(f"must be exec, httpGet or sleep, not {', '.join(hook) or 'empty'}")
    except (OSError, StartError, SpecError, ValueError, OverflowError) as error:  # no such port, or NUL in a host name
        raise HookError(str(error)) from error


async def _run_command(runner: ProcessRunner, container_id: str, argv: tuple[str, ...]) -> None:
    code, output = await commands.run(runner, container_id, argv)
    if code != 0:
        raise HookError(f"{' '.join(argv)}: exit code {code}: {output.decode(errors='replace').strip()}")


async def _request(runner: ProcessRunner, request: podconnections.Get) -> None:
    code, _ = await podconnections.get(runner, request)
    if not 200 <= code < 400:
        raise HookError(f"{request.url}: status {code}")
