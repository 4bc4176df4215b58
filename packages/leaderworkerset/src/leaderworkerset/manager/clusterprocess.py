"""Provides shared code for processes in a cluster, such as flag parsing and logging of fatal errors."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import structlog

from kuberuntime.errors import KubeError, flatten
from leaderworkerset.manager import goflags
from leaderworkerset.manager.goflags import Flag, FlagError, HelpRequestedError

FAILED: Final = 1
USAGE: Final = 2
INTERRUPTED: Final = 130
"""The exit codes of a failed process, a process with invalid flags, and a process interrupted by Ctrl-C."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def parse_flags_or_exit(
    program: str, summary: str, arguments: Sequence[str], flags: Sequence[Flag]
) -> Mapping[str, Any] | int:
    """Return the parsed flags. For help or an invalid flag, print a message and return the exit code."""
    try:
        return goflags.parse(arguments, flags)
    except HelpRequestedError:
        sys.stdout.write(f"Usage: {program} [flags]\n\n  {summary}\n\nFlags:\n{goflags.usage(flags)}\n")
        return 0
    except FlagError as error:
        sys.stderr.write(f"error: {error}\n")
        return USAGE


def namespace(file: Path, default: str) -> str:
    """Return the namespace of this manager process (R-MGR-3)."""
    try:
        return file.read_text().strip() or default
    except OSError:
        return default


def log_errors(title: str, error: Exception) -> None:
    """Log all errors that terminated a process. Unexpected errors are logged with their stack trace."""
    for leaf in flatten(error):
        stack = None if isinstance(leaf, KubeError | OSError) else leaf
        log.error(title, logger="setup", error=str(leaf), exc_info=stack)
