"""`lws manager`: run the controllers and webhooks for a Kubernetes cluster (contract section 12).

The flags are the Go manager's, in Go's syntax, so click does not parse them. Errors are logged, as there: exit code 1
for an invalid configuration or a manager that cannot continue, 2 for flags.
"""

import asyncio
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

import click
import structlog

from kuberuntime.access import incluster
from kuberuntime.errors import KubeError
from leaderworkerset.cli import errors, gocommand
from leaderworkerset.cli.gocommand import GoCommand
from leaderworkerset.cli.process import lightaiohttp
from leaderworkerset.manager import buildinfo, managerflags, managerlog
from leaderworkerset.manager.config import configurationfile
from leaderworkerset.manager.config.configuration import API_VERSION, DEPRECATED, ConfigurationError
from leaderworkerset.manager.managerlog import Threshold

NAMESPACE: Final = "lws-system"
ENABLE_WEBHOOKS: Final = "ENABLE_WEBHOOKS"

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@click.command("manager", cls=GoCommand, flags=lambda: managerflags.FLAGS)
@click.pass_context
def command(ctx: click.Context, words: Sequence[str]) -> int:
    """Run the controllers and webhooks for a Kubernetes cluster."""
    given = gocommand.read(ctx, words, managerflags.FLAGS)
    if given is None:
        return 0
    if given.get("version"):
        click.echo(buildinfo.describe())
        return 0
    threshold = managerlog.configure(managerflags.log_settings(given))
    kubeconfig = given.get("kubeconfig") or (ctx.obj.kubeconfig if ctx.obj else None) or ""
    return run(given, kubeconfig, threshold)


def run(given: Mapping[str, Any], kubeconfig: str, threshold: Threshold) -> int:
    """Run the manager until it is asked to stop; return the exit code."""
    try:
        chosen = managerflags.override(configurationfile.load(given.get("config", "")), given)
        configurationfile.check(chosen)
    except ConfigurationError as error:
        log.error("unable to load the configuration", logger="setup", error=str(error))  # noqa: TRY400 - no stack
        return errors.FAILED
    if chosen.api_version == DEPRECATED:
        log.warning("the version of the configuration is deprecated", logger="setup", found=DEPRECATED, use=API_VERSION)
    lightaiohttp.load()
    from leaderworkerset.manager import managerprocess

    settings = managerprocess.ManagerSettings(
        configuration=chosen,
        kubeconfig=kubeconfig,
        namespace=gocommand.namespace(incluster.SERVICE_ACCOUNT / "namespace", NAMESPACE),
        webhooks=os.environ.get(ENABLE_WEBHOOKS) != "false",
    )
    try:
        asyncio.run(managerprocess.run_until_stopped(settings, threshold.toggle_debug))
    except (KubeError, OSError, ExceptionGroup) as error:
        gocommand.log_errors("problem running manager", error)
        return errors.FAILED
    return 0
