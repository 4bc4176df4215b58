"""Logs the start and the end of each API server outage once, regardless of the number of failed requests.

Input: the failures and responses of all clients in a process. Output: two log lines. Each watch and each lease
renewal retries by itself, so that a minute without an API server would otherwise log more than 80 lines.
"""

import asyncio
from typing import Any, Protocol

from kuberuntime.errors import ConnectionFailedError


class Log(Protocol):
    """A logger for outages. Commands that print a table do not import structlog, which implements it."""

    def warning(self, event: str, **fields: Any) -> Any:
        """Report that the API server has stopped responding."""

    def info(self, event: str, **fields: Any) -> Any:
        """Report that the API server has recovered."""


class Outage:
    """The availability of the API server, based on the last request of all clients that share this object."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._since: float | None = None

    @property
    def is_ongoing(self) -> bool:
        """Return whether the API server did not respond to the last request."""
        return self._since is not None

    def record_failure(self, error: ConnectionFailedError) -> None:
        """Record a request without a response."""
        if self._since is None:
            self._since = asyncio.get_running_loop().time()
            self._log.warning("API server does not respond", error=str(error))

    def record_response(self) -> None:
        """Record a response."""
        if self._since is not None:
            seconds, self._since = asyncio.get_running_loop().time() - self._since, None
            self._log.info("API server responds again", after=round(seconds, 1))
