"""Logs an outage of the API server once when it begins and once when it ends, however many requests fail.

In: the failures and responses of the clients of one process. Out: two log lines. Each watch and each renewal of a lease
retries by itself, so a minute without an API server would otherwise write more than eighty lines.
"""

import asyncio
from typing import Any, Protocol

from kuberuntime.errors import ConnectionFailedError


class Log(Protocol):
    """The log of outages: a logger of structlog, which commands that print a table do not import."""

    def warning(self, event: str, **fields: Any) -> Any:
        """Report that the API server stopped answering."""
        ...

    def info(self, event: str, **fields: Any) -> Any:
        """Report that it answers again."""
        ...


class Outage:
    """Whether the API server responds, according to the last request of all clients that share this object."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._since: float | None = None

    @property
    def lasts(self) -> bool:
        """Return whether the API server did not answer the last request."""
        return self._since is not None

    def failed(self, error: ConnectionFailedError) -> None:
        """Record a request without a response."""
        if self._since is None:
            self._since = asyncio.get_running_loop().time()
            self._log.warning("API server does not answer", error=str(error))

    def answered(self) -> None:
        """Record a response."""
        if self._since is not None:
            seconds, self._since = asyncio.get_running_loop().time() - self._since, None
            self._log.info("API server answers again", after=round(seconds, 1))
