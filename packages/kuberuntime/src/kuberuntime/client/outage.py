"""Logs an API server outage once when it starts and once when it ends, regardless of how many requests fail.

In: the failures and responses of all clients in a process. Out: two log lines. Each watch and each lease renewal
retries by itself, so that a minute without an API server would otherwise log more than 80 lines.
"""

import asyncio
from typing import Any, Protocol

from kuberuntime.errors import ConnectionFailedError


class Log(Protocol):
    """The log for outages. It is a structlog logger, which commands that print a table do not import."""

    def warning(self, event: str, **fields: Any) -> Any:
        """Report that the API server stopped responding."""
        ...

    def info(self, event: str, **fields: Any) -> Any:
        """Report that the API server responds again."""
        ...


class Outage:
    """Whether the API server responds, according to the last request of all clients that share this object."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._since: float | None = None

    @property
    def lasts(self) -> bool:
        """Return whether the API server did not respond to the last request."""
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
