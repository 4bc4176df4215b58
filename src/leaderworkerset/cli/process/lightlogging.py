"""structlog without rich: it would load rich to draw tracebacks on terminals, which no log of this program does.

That is 6 MB of memory in every process that logs, the manager's among them, and a tenth of a second of its start.
"""

import sys
from typing import Final

LOGGING: Final = frozenset(
    {"run", "up", "manager", "operator", "wait", "delete", "logs", "rollout", "restart", "install", "uninstall"}
)
"""The commands whose modules log, or follow objects, which does."""


def load() -> None:
    """Import structlog as where rich is not installed; what draws tables may import rich afterwards."""
    if "structlog" in sys.modules or "rich" in sys.modules:
        return
    sys.modules["rich"] = None  # type: ignore[assignment]  # so it is said to be missing
    try:
        import structlog  # noqa: F401 - only loaded
    finally:
        del sys.modules["rich"]
