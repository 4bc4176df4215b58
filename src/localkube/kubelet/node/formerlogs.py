"""Keeps the logs of pods that are gone for the pods of the same name that follow them, as when a group is recreated.

Kubernetes deletes the logs of a pod with the pod; on one machine the last lines of the program that failed are worth more.
"""

from pathlib import Path
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from localkube.kubelet.node.trash import Trash

MOST: Final = 200
"""The number of pods whose logs are kept, the newest ones; those of before a start of the cluster are deleted."""


class FormerLogs:
    """The directories of logs by the name of the pod that had them."""

    def __init__(self, directory: Path, trash: Trash) -> None:
        self._directory = directory
        self._trash = trash
        self._kept: dict[str, Path] = {}

    def clear(self) -> None:
        """Delete what an earlier process kept."""
        self._trash.add(self._directory)

    def keep(self, pod: JSONObject, logs: Path) -> None:
        """Take over the logs of a pod that is gone, in place of those of its predecessor."""
        if not logs.exists():
            return
        key, kept = str(meta.key(pod)), self._directory / meta.uid(pod)
        if key in self._kept:
            self._trash.add(self._kept.pop(key))
        self._directory.mkdir(parents=True, exist_ok=True)
        logs.rename(kept)
        self._kept[key] = kept
        if len(self._kept) > MOST:
            self._trash.add(self._kept.pop(next(iter(self._kept))))

    def of(self, pod: JSONObject) -> Path | None:
        """Return the directory of the logs of the pod that had this name before, None if there are none."""
        return self._kept.get(str(meta.key(pod)))
