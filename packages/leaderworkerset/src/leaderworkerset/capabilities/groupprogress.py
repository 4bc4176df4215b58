"""Finds groups whose decisions do not depend on the progress of their start or termination.

A capability that has neither a setting nor a mark on an object does not change a plan (`enabled.py`). The upstream rules
that depend on progress are listed here. A property test compares the plans before and after progress.
"""

from collections.abc import Collection, Iterable
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.policytypes import RestartPolicy
from leaderworkerset.capabilities.enabled import ENABLED

AFTER_START: Final = RestartPolicy.RECREATE_GROUP_AFTER_START.value

FOLLOWING: Final = tuple(capability for capability in ENABLED if capability.follows_progress)
NAMES: Final = frozenset(capability.name for capability in FOLLOWING)
SETTINGS: Final = frozenset(name for capability in FOLLOWING for name in capability.settings)
FIELDS: Final = frozenset(field for capability in FOLLOWING for field in capability.fields)
POD_MARKS: Final = tuple(mark for capability in ENABLED for mark in capability.pod_marks)
STATEFULSET_MARKS: Final = tuple(mark for capability in ENABLED for mark in capability.statefulset_marks)


def ignores_progress(
    obj: JSONObject, leader: JSONObject, statefulsets: Iterable[JSONObject], configured: Collection[str]
) -> bool:
    """Return whether decisions about a group do not depend on the progress of its start or termination."""
    annotations, spec, of_leader = meta.annotations(obj), meta.spec(obj), meta.annotations(leader)
    policy = (spec.get("leaderWorkerTemplate") or {}).get("restartPolicy")
    awaits_start = policy == AFTER_START or labels.RECREATE_GROUP_AFTER_START in annotations
    reports = meta.spec(leader).get("readinessGates") or groupname.is_exhausted(leader)
    if not obj or awaits_start or reports or spec.get("scheduling") is not None or not NAMES.isdisjoint(configured):
        return False
    if not SETTINGS.isdisjoint(annotations) or not FIELDS.isdisjoint(spec):
        return False
    marks = [meta.annotations(statefulset) for statefulset in statefulsets]
    return not any(mark in of_leader for mark in POD_MARKS) and not any(
        mark in of_workers for of_workers in marks for mark in STATEFULSET_MARKS
    )
