"""Whether the package `localkube` is there: the manager and the commands for a Kubernetes cluster do without."""

from importlib.util import find_spec

from leaderworkerset.cli.errors import CommandError


def require_localkube(command: str) -> None:
    """Raise a `CommandError` that says what to install where clusters of this machine cannot be started."""
    if find_spec("localkube") is None:
        raise CommandError(
            f"lws {command} needs the package localkube, which is not installed: pip install 'leaderworkerset[local]'"
        )
