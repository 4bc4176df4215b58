"""Runs the operator with parsed flags, for `lws operator` and as the image entry point (R-OP-9).

The flags are those of the Go operator, in Go's syntax. Errors are logged. The exit code is 1 if the operator cannot
continue, and 2 if flags are invalid.
"""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NoReturn

import structlog

from kuberuntime import lightaiohttp, standardstreams
from kuberuntime.access import incluster
from kuberuntime.errors import KubeError
from leaderworkerset.install import installsettings as installed
from leaderworkerset.install.operatornames import IMAGE_VARIABLE, OPERATOR
from leaderworkerset.manager import clusterprocess, managerlog
from leaderworkerset.manager.clusterprocess import FAILED, INTERRUPTED
from leaderworkerset.manager.goflags import Flag
from leaderworkerset.manager.managerflags import choice
from leaderworkerset.manager.managerlog import LogSettings
from leaderworkerset.operator.verbosity import Verbosity

LISTEN: Final = "0.0.0.0:8443"
SUMMARY: Final = "Run the operator, which installs the manager as specified by the LeaderWorkerSetOperator `cluster`."

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def flags() -> tuple[Flag, ...]:
    """Return the flags. `--terminate-on-files` can be repeated."""
    return (
        Flag("kubeconfig", str, "Path to a kubeconfig file. Defaults to the service account of the pod."),
        Flag(
            "namespace",
            str,
            f"Namespace of the operator and the operand. Defaults to the namespace of the pod, or {OPERATOR}.",
        ),
        Flag("listen", str, "Address of the probe and metrics endpoints (HTTPS).", LISTEN),
        Flag("terminate-on-files", _collect_values(), "Exit when this file changes. May be repeated."),
        Flag("zap-encoder", choice("console", "json"), "Log encoding. One of: console, json.", "json"),
        Flag("v", int, "Log verbosity until the LeaderWorkerSetOperator `cluster` specifies a log level.", "2"),
    )


def _collect_values() -> Callable[[str], tuple[str, ...]]:
    texts: list[str] = []

    def collect(text: str) -> tuple[str, ...]:
        texts.append(text)
        return tuple(texts)

    return collect


def main(arguments: Sequence[str]) -> NoReturn:
    """Run the operator in a container, and exit with its exit code."""
    standardstreams.open_missing_streams()
    values = clusterprocess.parse_flags_or_exit("lws-operator operator", SUMMARY, arguments, flags())
    if isinstance(values, int):
        standardstreams.exit_now(values)
    try:
        code = run(values)
    except KeyboardInterrupt:
        code = INTERRUPTED
    standardstreams.exit_now(code)


def run(values: Mapping[str, Any]) -> int:
    """Run the operator until it is stopped. Return the exit code."""
    verbosity = Verbosity(values.get("v", 2))
    managerlog.configure(LogSettings(encoder=values.get("zap-encoder", "json"), level="debug"))
    verbosity.install()
    lightaiohttp.load()
    from leaderworkerset.operator import operatorprocess

    settings = operatorprocess.OperatorProcessSettings(
        namespace=values.get("namespace")
        or clusterprocess.namespace(incluster.SERVICE_ACCOUNT / "namespace", OPERATOR),
        image=os.environ.get(IMAGE_VARIABLE) or installed.IMAGE,
        kubeconfig=values.get("kubeconfig", ""),
        listen=values.get("listen", LISTEN),
        terminate_on=values.get("terminate-on-files", ()),
    )
    try:
        asyncio.run(operatorprocess.run_until_stopped(settings, verbosity))
    except (KubeError, OSError, ExceptionGroup) as error:
        clusterprocess.log_errors("problem running operator", error)
        return FAILED
    return 0
