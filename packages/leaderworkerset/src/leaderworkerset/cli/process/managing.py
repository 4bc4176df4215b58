"""Runs the manager with parsed flags: for `lws manager`, and for the entry point of its image.

The entry point parses only these flags, so that a manager uses no memory (1 MiB) for modules that parse and complete
other commands. Errors are logged, as by the Go manager: exit code 1 for an invalid configuration or a manager that
cannot continue.
"""

import asyncio
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

import structlog

from kuberuntime.access import incluster
from kuberuntime.errors import KubeError
from leaderworkerset.cli import errors, streams
from leaderworkerset.cli.process import clusterprocess, lightaiohttp
from leaderworkerset.manager import goflags, managerflags, managerlog
from leaderworkerset.manager.config import configurationfile
from leaderworkerset.manager.config.configuration import API_VERSION, DEPRECATED, ConfigurationError

NAMESPACE: Final = "lws-system"
ENABLE_WEBHOOKS: Final = "ENABLE_WEBHOOKS"

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def start(words: Sequence[str]) -> None:
    """Run the manager and end the process; return if `lws` must print a text about the flags."""
    try:
        values = goflags.parse(words, managerflags.FLAGS)
    except (goflags.FlagError, goflags.HelpRequestedError):
        return
    if values.get("version"):
        return
    streams.prepare()
    try:
        code = run(values, values.get("kubeconfig", ""))
    except KeyboardInterrupt:
        code = errors.INTERRUPTED
    streams.leave(code)


def run(values: Mapping[str, Any], kubeconfig: str) -> int:
    """Run the manager until it is asked to stop; return the exit code."""
    threshold = managerlog.configure(managerflags.log_settings(values))
    try:
        configuration = managerflags.override(configurationfile.load(values.get("config", "")), values)
        configurationfile.check(configuration)
    except ConfigurationError as error:
        log.error("unable to load the configuration", logger="setup", error=str(error))  # noqa: TRY400 - no stack
        return errors.FAILED
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
        webhooks=os.environ.get(ENABLE_WEBHOOKS) != "false",
    )
    try:
        asyncio.run(managerprocess.run_until_stopped(settings, threshold.toggle_debug))
    except (KubeError, OSError, ExceptionGroup) as error:
        clusterprocess.log_errors("problem running manager", error)
        return errors.FAILED
    return 0
