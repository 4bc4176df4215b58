"""`lws manager`: run the controllers and webhooks for a Kubernetes cluster (contract section 12).

The flags are the Go manager's, in Go's syntax, so they pass by click. Errors end in the log, as its do: exit code 1
for a configuration that cannot be used or a manager that cannot go on, 2 for flags.
"""

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click
import structlog

from kuberuntime.access import incluster
from kuberuntime.errors import KubeError
from leaderworkerset.cli import errors
from leaderworkerset.manager import buildinfo, goflags, managerflags, managerlog
from leaderworkerset.manager.config import configurationfile
from leaderworkerset.manager.config.configuration import ConfigurationError
from leaderworkerset.manager.goflags import FlagError, HelpRequestedError

NAMESPACE: Final = "lws-system"
ENABLE_WEBHOOKS: Final = "ENABLE_WEBHOOKS"

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class GoCommand(click.Command):
    """A command whose words are not click's to read."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep all words as they are."""
        ctx.params["words"] = tuple(args)
        ctx.args = []
        return []

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click passes it
        """List the flags."""
        with formatter.section("Flags"):
            formatter.write(goflags.usage(managerflags.FLAGS) + "\n")


@click.command("manager", cls=GoCommand)
@click.pass_context
def command(ctx: click.Context, words: Sequence[str]) -> int:
    """Run the controllers and webhooks for a Kubernetes cluster."""
    try:
        given = goflags.parse(words, managerflags.FLAGS)
    except HelpRequestedError:
        click.echo(ctx.get_help())
        return 0
    except FlagError as error:
        raise errors.UsageError(str(error)) from error
    if given.get("version"):
        click.echo(buildinfo.describe())
        return 0
    managerlog.configure(managerflags.log_settings(given))
    kubeconfig = given.get("kubeconfig") or (ctx.obj.kubeconfig if ctx.obj else None) or ""
    return run(given, kubeconfig)


def run(given: Mapping[str, Any], kubeconfig: str) -> int:
    """Run the manager until it is asked to stop; return the exit code."""
    try:
        chosen = managerflags.override(configurationfile.load(given.get("config", "")), given)
        configurationfile.check(chosen)
    except ConfigurationError as error:
        log.error("unable to load the configuration", logger="setup", error=str(error))  # noqa: TRY400 - no stack
        return errors.FAILED
    from leaderworkerset.manager import managerprocess

    settings = managerprocess.Settings(
        configuration=chosen,
        kubeconfig=kubeconfig,
        namespace=namespace(incluster.SERVICE_ACCOUNT / "namespace"),
        webhooks=os.environ.get(ENABLE_WEBHOOKS) != "false",
    )
    try:
        asyncio.run(managerprocess.run_until_stopped(settings))
    except (KubeError, OSError, ExceptionGroup) as error:
        log_errors("problem running manager", error)
        return errors.FAILED
    return 0


def log_errors(title: str, error: Exception) -> None:
    """Log every error that ended a process; those of this program's own making bring their stack."""
    for leaf in errors.leaves(error):
        stack = None if isinstance(leaf, KubeError | OSError) else leaf
        log.error(title, logger="setup", error=str(leaf), exc_info=stack)


def namespace(file: Path, otherwise: str = NAMESPACE) -> str:
    """Return the namespace that this process works in (R-MGR-3)."""
    try:
        return file.read_text().strip() or otherwise
    except OSError:
        return otherwise
