"""Controls the log verbosity of this process in klog levels, which can change at runtime.

Debug logs start at level 4.
"""

import logging
from typing import Final

import structlog
from msgspec import Struct
from structlog.typing import EventDict

from leaderworkerset.manager.managerlog import LEVELS

DEBUG: Final = 4


class Verbosity(Struct):
    """The current verbosity, as a structlog processor that filters log lines."""

    level: int = 2

    def __call__(self, _logger: object, method: str, event: EventDict) -> EventDict:
        """Drop a log line that exceeds the current verbosity."""
        if LEVELS.get(method, logging.INFO) <= logging.DEBUG and self.level < DEBUG:
            raise structlog.DropEvent
        return event

    def install(self) -> None:
        """Filter all subsequent log lines. The log configuration must enable debug logs."""
        structlog.configure(processors=[self, *structlog.get_config()["processors"]])
