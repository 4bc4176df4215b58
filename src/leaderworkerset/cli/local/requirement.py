"""Checks that the package `localkube` is installed; the manager and commands for other clusters do not need it."""

from importlib.util import find_spec

from leaderworkerset.cli.errors import CommandError


def require_localkube(command: str) -> None:
    """Raise a `CommandError` with the package to install if clusters of this machine cannot be started."""
    if find_spec("localkube") is None:
        raise CommandError(
            f"lws {command} needs the package localkube, which is not installed: pip install 'leaderworkerset[local]'"
        )
