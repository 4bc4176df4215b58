"""Runs the manager with parsed flags, for `lws manager` and as the entry point of the manager image.

The image does not contain the command line, so that the manager uses no memory for modules that parse and complete
commands. Errors are logged, as by the Go manager: exit code 1 for an invalid configuration or a manager that cannot
continue.
"""

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn

import structlog

from kuberuntime import lightaiohttp, standardstreams
from kuberuntime.access import incluster
from kuberuntime.errors import KubeError
from leaderworkerset.manager import buildinfo, clusterprocess, managerflags, managerlog
from leaderworkerset.manager.clusterprocess import FAILED, INTERRUPTED
from leaderworkerset.manager.config import configurationfile
from leaderworkerset.manager.config.configuration import API_VERSION, DEPRECATED, ConfigurationError

NAMESPACE: Final = "lws-system"
ENABLE_WEBHOOKS: Final = "ENABLE_WEBHOOKS"
SUMMARY: Final = "Run the controllers and webhooks for a Kubernetes cluster."

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def main(arguments: Sequence[str]) -> NoReturn:
    """Run the manager in a container, and exit with its exit code."""
    standardstreams.open_missing_streams()
    values = clusterprocess.parse_flags_or_exit("manager", SUMMARY, arguments, managerflags.FLAGS)
    if isinstance(values, int):
        standardstreams.exit_now(values)
    try:
        code = run(values, values.get("kubeconfig", ""))
    except KeyboardInterrupt:
        code = INTERRUPTED
    standardstreams.exit_now(code)


def run(values: Mapping[str, Any], kubeconfig: str) -> int:
    """Run the manager until it is stopped, or print its version. Return the exit code."""
    if values.get("version"):
        sys.stdout.write(f"{buildinfo.describe()}\n")
        return 0
    threshold = managerlog.configure(managerflags.log_settings(values))
    try:
        configuration = managerflags.override(configurationfile.load(values.get("config", "")), values)
        configurationfile.check(configuration)
    except ConfigurationError as error:
        log.error("unable to load the configuration", logger="setup", error=str(error))  # noqa: TRY400 - no stack
        return FAILED
    if configuration.api_version == DEPRECATED:
        log.warning("the version of the configuration is deprecated", logger="setup", found=DEPRECATED, use=API_VERSION)
    lightaiohttp.load()
    from leaderworkerset.manager import managerprocess

    place = incluster.SERVICE_ACCOUNT / "namespace"
    settings = managerprocess.ManagerSettings(
        configuration=configuration,
        kubeconfig=kubeconfig,
        namespace=clusterprocess.namespace(place, NAMESPACE),
        is_pod=place.exists(),
        serves_webhooks=os.environ.get(ENABLE_WEBHOOKS) != "false",
    )
    try:
        asyncio.run(managerprocess.run_until_stopped(settings, threshold.toggle_debug))
    except (KubeError, OSError, ExceptionGroup) as error:
        clusterprocess.log_errors("problem running manager", error)
        return FAILED
    return 0
