"""`lws operator`: keep the manager installed as the object `cluster` of LeaderWorkerSetOperators specifies (R-OP-9).

The flags are those of the Go operator, in Go's syntax. Errors are logged: exit code 1 for an operator that cannot
continue, 2 for invalid flags.
"""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import click
import structlog

from kuberuntime.access import incluster
from kuberuntime.errors import KubeError
from leaderworkerset.cli import errors, gocommand
from leaderworkerset.cli.gocommand import GoCommand
from leaderworkerset.cli.process import clusterprocess
from leaderworkerset.install import installsettings as installed
from leaderworkerset.manager import managerlog
from leaderworkerset.manager.goflags import Flag
from leaderworkerset.manager.managerflags import choice
from leaderworkerset.manager.managerlog import LogSettings
from leaderworkerset.operator.operatornames import IMAGE_VARIABLE, OPERATOR
from leaderworkerset.operator.verbosity import Verbosity

LISTEN: Final = "0.0.0.0:8443"

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def flags() -> tuple[Flag, ...]:
    """Return the flags; `--terminate-on-files` collects its values."""
    return (
        Flag("kubeconfig", str, "Path to a kubeconfig file. Defaults to the service account of the pod."),
        Flag(
            "namespace",
            str,
            f"Namespace of the operator and the operand. Defaults to the namespace of the pod, or {OPERATOR}.",
        ),
        Flag("listen", str, "Address of the probe and metrics endpoints (HTTPS).", LISTEN),
        Flag("terminate-on-files", _collecting(), "Exit when this file changes. May be repeated."),
        Flag("zap-encoder", choice("console", "json"), "Log encoding. One of: console, json.", "json"),
        Flag("v", int, "Log verbosity, until the object `cluster` sets it.", "2"),
    )


def _collecting() -> Callable[[str], tuple[str, ...]]:
    texts: list[str] = []

    def collect(text: str) -> tuple[str, ...]:
        texts.append(text)
        return tuple(texts)

    return collect


@click.command("operator", cls=GoCommand, flags=flags)
@click.pass_context
def command(ctx: click.Context, words: Sequence[str]) -> int:
    """Run the operator, which installs the manager as specified by the LeaderWorkerSetOperator `cluster`."""
    values = gocommand.read(ctx, words, flags())
    if values is None:
        return 0
    verbosity = Verbosity(values.get("v", 2))
    managerlog.configure(LogSettings(encoder=values.get("zap-encoder", "json"), level="debug"))
    verbosity.install()
    # `lws` reads these two at any position; `lws-operator operator` leaves them here.
    above = {"kubeconfig": ctx.obj.kubeconfig, "namespace": ctx.obj.namespace} if ctx.obj else {}
    return run({**{name: text for name, text in above.items() if text}, **values}, verbosity)


def run(values: Mapping[str, Any], verbosity: Verbosity) -> int:
    """Run the operator until it is asked to stop; return the exit code."""
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
        return errors.FAILED
    return 0
