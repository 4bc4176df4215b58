"""The episodes that a command can read: those of a cluster of this machine, whether it runs or not."""

import os
from pathlib import Path
from typing import Final

from leaderworkerset.cli.cluster import places
from leaderworkerset.cli.cluster.places import ClusterDirectory
from leaderworkerset.cli.cluster.target import Target
from leaderworkerset.cli.errors import CommandError
from leaderworkerset.recording import store
from leaderworkerset.recording.shelf import Place
from leaderworkerset.views.selection import Selection

NAMESPACE: Final = "default"
"""The namespace of a kubeconfig of this machine's clusters."""


def directory(target: Target) -> Path | None:
    """Return where the episodes of the addressed cluster are; None if it is not one of this machine."""
    if target.local:
        found = places.place(target.local)
    else:
        config = Path(target.kubeconfig or os.environ.get("KUBECONFIG", ""))
        if config.name != "kubeconfig":
            return None
        found = ClusterDirectory(config.parent.name, config.parent)
    return found.history if found.is_cluster else None


def require(target: Target) -> Path:
    """Return where the episodes are; raise if nothing records them."""
    found = directory(target)
    if found is None and target.local:
        raise CommandError(
            f"there is no cluster {target.local} on this machine; `lws clusters` lists those that there are"
        )
    if found is None:
        raise CommandError("failures are recorded on clusters of this machine only: choose one with --local")
    return found


def of(root: Path, namespace: str, chosen: Selection | None = None) -> list[Place]:
    """Return where the episodes of a namespace (empty: of all) are, or those of one set or group; the newest last."""
    return [
        place
        for place in store.places(root)
        if namespace in ("", place.namespace)
        and (chosen is None or chosen.name == place.lws)
        and (chosen is None or chosen.group is None or str(chosen.group) == place.group)
    ]
