"""Commands that run a process of a cluster: flags in Go's syntax, the namespace of the pod, errors in the log."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import structlog

from kuberuntime.errors import KubeError
from leaderworkerset.cli import errors
from leaderworkerset.manager import goflags
from leaderworkerset.manager.goflags import Flag, FlagError, HelpRequestedError

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class GoCommand(click.Command):
    """A command whose arguments click does not parse; `flags` returns its flags, new for each parsing."""

    def __init__(self, *given: Any, flags: Callable[[], Sequence[Flag]], **named: Any) -> None:
        super().__init__(*given, **named)
        self._flags = flags

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep all arguments unchanged."""
        ctx.params["words"] = tuple(args)
        ctx.args = []
        return []

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click passes it
        """List the flags."""
        with formatter.section("Flags"):
            formatter.write(goflags.usage(self._flags()) + "\n")


def read(ctx: click.Context, words: Sequence[str], flags: Sequence[Flag]) -> Mapping[str, Any] | None:
    """Return the given flags, None if help was requested and printed; raise `UsageError` for unknown ones."""
    try:
        return goflags.parse(words, flags)
    except HelpRequestedError:
        click.echo(ctx.get_help())
        return None
    except FlagError as error:
        raise errors.UsageError(str(error)) from error


def namespace(file: Path, otherwise: str) -> str:
    """Return the namespace of this process (R-MGR-3)."""
    try:
        return file.read_text().strip() or otherwise
    except OSError:
        return otherwise


def log_errors(title: str, error: Exception) -> None:
    """Log every error that ended a process; unexpected ones with their stack trace."""
    for leaf in errors.leaves(error):
        stack = None if isinstance(leaf, KubeError | OSError) else leaf
        log.error(title, logger="setup", error=str(leaf), exc_info=stack)
