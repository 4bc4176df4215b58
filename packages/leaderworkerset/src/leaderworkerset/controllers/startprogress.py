"""Finds changes that only report the progress of a start.

Most groups ignore them (`capabilities/groupprogress.py`).
"""

from typing import Final

from kuberuntime.cache.projection import Projection
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.controllers import cachedfields
from leaderworkerset.core.policies.failures import RESTARTING_PHASES, has_failed


def _annotations(projection: Projection) -> tuple[str, ...]:
    return tuple(path[2] for path in projection.paths if path[:2] == ("metadata", "annotations"))


POD_ANNOTATIONS: Final = _annotations(cachedfields.POD)
STATEFULSET_ANNOTATIONS: Final = _annotations(cachedfields.WORKER_STATEFULSET)


def is_pod_start(old: JSONObject | None, new: JSONObject | None) -> bool:
    """Return whether a pod was only created, scheduled or started, so that it cannot be a reason for a recreation."""
    states = [pod for pod in (old, new) if pod is not None]
    if new is None or any(has_failed(pod) or meta.status(pod).get("phase") not in RESTARTING_PHASES for pod in states):
        return False
    return old is None or _has_same_metadata(old, new, POD_ANNOTATIONS)


def is_status_change(old: JSONObject | None, new: JSONObject | None) -> bool:
    """Return whether only the status of a worker StatefulSet changed, which counts its pods."""
    if old is None or new is None or meta.is_deleting(new) or meta.generation(old) != meta.generation(new):
        return False
    return _has_same_metadata(old, new, STATEFULSET_ANNOTATIONS)


def _has_same_metadata(old: JSONObject, new: JSONObject, annotations: tuple[str, ...]) -> bool:
    """Return whether the objects have the same labels, owner and annotations."""
    if meta.labels(old) != meta.labels(new) or meta.controller_of(old) != meta.controller_of(new):
        return False
    before, after = meta.annotations(old), meta.annotations(new)
    return all(before.get(name) == after.get(name) for name in annotations)
