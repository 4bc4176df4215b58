"""`lws operator`: keep the manager installed as the object `cluster` of LeaderWorkerSetOperators asks for (R-OP-9).

The flags are those of the Go operator, in Go's syntax. Errors end in the log: exit code 1 for an operator that cannot go
on, 2 for flags.
"""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import click
import structlog

from kuberuntime.access import incluster
from kuberuntime.errors import KubeError
from leaderworkerset.cli import errors
from leaderworkerset.cli.commands.manager import GoCommand, log_errors, namespace
from leaderworkerset.install import settings as installed
from leaderworkerset.manager import goflags, managerlog
from leaderworkerset.manager.goflags import Flag, FlagError, HelpRequestedError
from leaderworkerset.manager.managerlog import LogSettings
from leaderworkerset.operator.operatornames import IMAGE_VARIABLE, OPERATOR
from leaderworkerset.operator.verbosity import Verbosity

LISTEN: Final = "0.0.0.0:8443"

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def flags() -> tuple[Flag, ...]:
    """Return the flags; `--terminate-on-files` collects its values."""
    return (
        Flag("kubeconfig", str, "The kubeconfig; otherwise the service account of the pod."),
        Flag("namespace", str, f"The namespace of operator and operand; otherwise the pod's, or {OPERATOR}."),
        Flag("listen", str, "Where probes and metrics are served over HTTPS.", LISTEN),
        Flag("terminate-on-files", _collecting(), "End when this file changes; may be given several times."),
        Flag("v", int, "The verbosity of the logs until the object cluster sets one.", "2"),
    )


def _collecting() -> Callable[[str], tuple[str, ...]]:
    found: list[str] = []

    def collect(text: str) -> tuple[str, ...]:
        found.append(text)
        return tuple(found)

    return collect


class OperatorCommand(GoCommand):
    """A command with the operator's flags."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click passes it
        """List the flags."""
        with formatter.section("Flags"):
            formatter.write(goflags.usage(flags()) + "\n")


@click.command("operator", cls=OperatorCommand)
@click.pass_context
def command(ctx: click.Context, words: Sequence[str]) -> int:
    """Keep the manager installed as the object `cluster` of LeaderWorkerSetOperators asks for."""
    try:
        given = goflags.parse(words, flags())
    except HelpRequestedError:
        click.echo(ctx.get_help())
        return 0
    except FlagError as error:
        raise errors.UsageError(str(error)) from error
    verbosity = Verbosity(given.get("v", 2))
    managerlog.configure(LogSettings(encoder="json", level="debug"))
    verbosity.install()
    return run(given, (ctx.obj.kubeconfig if ctx.obj else None) or "", verbosity)


def run(given: Mapping[str, Any], kubeconfig: str, verbosity: Verbosity) -> int:
    """Run the operator until it is asked to stop; return the exit code."""
    from leaderworkerset.operator import operatorprocess

    settings = operatorprocess.Settings(
        namespace=given.get("namespace") or namespace(incluster.SERVICE_ACCOUNT / "namespace", OPERATOR),
        image=os.environ.get(IMAGE_VARIABLE) or installed.IMAGE,
        kubeconfig=given.get("kubeconfig") or kubeconfig,
        listen=given.get("listen", LISTEN),
        terminate_on=given.get("terminate-on-files", ()),
    )
    try:
        asyncio.run(operatorprocess.run_until_stopped(settings, verbosity))
    except (KubeError, OSError, ExceptionGroup) as error:
        log_errors("problem running operator", error)
        return errors.FAILED
    return 0
