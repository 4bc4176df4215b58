"""The HTTP application for liveness and readiness probes.

This process is live if its event loop responds, and ready if every check passes. The response names the checks that
failed, so that `kubectl describe pod` shows them.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from aiohttp import web

Check: TypeAlias = Callable[[], bool]


def application(*, liveness: str, readiness: str, checks: Mapping[str, Check]) -> web.Application:
    """Build the application; `liveness` and `readiness` are its paths."""

    async def alive(_request: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def ready(_request: web.Request) -> web.Response:
        missing = [name for name, passes in checks.items() if not passes()]
        if missing:
            return web.Response(status=503, text=f"not ready: {', '.join(missing)}")
        return web.Response(text="ok")

    served = web.Application()
    served.add_routes([web.get(path_of(liveness), alive), web.get(path_of(readiness), ready)])
    return served


def path_of(name: str) -> str:
    """Return an endpoint's path, also where it was written without its slash.

    >>> path_of("readyz"), path_of("/healthz")
    ('/readyz', '/healthz')
    """
    return f"/{name.lstrip('/')}"
