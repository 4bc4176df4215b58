"""Code that processes of a cluster share: their namespace, and the log of fatal errors."""

from pathlib import Path

import structlog

from kuberuntime.errors import KubeError
from leaderworkerset.cli import errors

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def namespace(file: Path, otherwise: str) -> str:
    """Return the namespace in which this process of the manager runs (R-MGR-3)."""
    try:
        return file.read_text().strip() or otherwise
    except OSError:
        return otherwise


def log_errors(title: str, error: Exception) -> None:
    """Log every error that ended a process; unexpected errors with their stack trace."""
    for leaf in errors.leaves(error):
        stack = None if isinstance(leaf, KubeError | OSError) else leaf
        log.error(title, logger="setup", error=str(leaf), exc_info=stack)
