"""Limits the number of log lines about requests that any client can cause."""

import logging
from typing import Final

from aiohttp.http_exceptions import HttpProcessingError

LOG_SECONDS: Final = 60.0
"""The minimum interval in seconds between log lines about malformed requests, or about failed accepts."""


class LogRateLimit(logging.Filter):
    """Drops log lines about requests that aiohttp rejects with 400.

    Other lines are written once per `LOG_SECONDS`.
    """

    def __init__(self) -> None:
        super().__init__()
        self._logged_at = float("-inf")

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the line is written."""
        if record.exc_info and isinstance(record.exc_info[1], HttpProcessingError):
            return False
        if record.created < self._logged_at + LOG_SECONDS:
            return False
        self._logged_at = record.created
        return True


def protocol_logger(name: str) -> logging.Logger:
    """Return the logger for aiohttp messages about malformed or incomplete requests, which any client can cause."""
    logger = logging.getLogger(f"aiohttp.server.{name.replace(' ', '-')}")
    if not logger.filters:
        logger.addFilter(LogRateLimit())
    return logger
