"""Provides the version and the build variables of the image."""

import os
import platform
from collections.abc import Mapping
from typing import Final

from prometheus_client import CollectorRegistry, Gauge

import leaderworkerset

COMMIT: Final = "LWS_GIT_COMMIT"
DATE: Final = "LWS_BUILD_DATE"
UNKNOWN: Final = "unknown"
ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}


def version() -> str:
    """Return the version in Git tag format."""
    return f"v{leaderworkerset.__version__}"


def commit(environment: Mapping[str, str] = os.environ) -> str:
    """Return the Git commit of the build."""
    return environment.get(COMMIT, UNKNOWN)


def describe(environment: Mapping[str, str] = os.environ) -> str:
    """Return the three lines of the `--version` output."""
    return f"Version: {version()}\nBuild Date: {environment.get(DATE, UNKNOWN)}\nGit Commit: {commit(environment)}"


def metric(environment: Mapping[str, str] = os.environ) -> Gauge:
    """Return the build information metric, which has the constant value 1 and labels."""
    gauge = Gauge(
        "lws_build_info",
        "Build information of the manager.",
        ("version", "commit", "python"),
        registry=CollectorRegistry(),
    )
    gauge.labels(version(), commit(environment), platform.python_version()).set(1)
    return gauge


def user_agent(environment: Mapping[str, str] = os.environ) -> str:
    """Return the `User-Agent` header of the manager (R-MGR-7).

    The format is `lws/<version> (<os>/<arch>) <commit>`.
    """
    machine = platform.machine()
    system = f"{platform.system().lower()}/{ARCHITECTURES.get(machine, machine)}"
    return f"lws/{version()} ({system}) {commit(environment)[:7]}"
