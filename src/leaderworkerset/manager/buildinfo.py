"""What was built, when and from what: the version, and what the image's build says of itself in the environment."""

import os
import platform
from collections.abc import Mapping
from typing import Final

import leaderworkerset

COMMIT: Final = "LWS_GIT_COMMIT"
DATE: Final = "LWS_BUILD_DATE"
UNKNOWN: Final = "unknown"
ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}


def version() -> str:
    """Return the version as tags have it."""
    return f"v{leaderworkerset.__version__}"


def commit(environment: Mapping[str, str] = os.environ) -> str:
    """Return the commit that was built."""
    return environment.get(COMMIT, UNKNOWN)


def describe(environment: Mapping[str, str] = os.environ) -> str:
    """Return the three lines of `--version`."""
    return f"Version: {version()}\nBuild Date: {environment.get(DATE, UNKNOWN)}\nGit Commit: {commit(environment)}"


def user_agent(environment: Mapping[str, str] = os.environ) -> str:
    """Return how the manager names itself to the API server (R-MGR-7): `lws/<version> (<os>/<arch>) <commit>`."""
    machine = platform.machine()
    system = f"{platform.system().lower()}/{ARCHITECTURES.get(machine, machine)}"
    return f"lws/{version()} ({system}) {commit(environment)[:7]}"
