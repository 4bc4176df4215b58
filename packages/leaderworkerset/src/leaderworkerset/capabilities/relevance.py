"""Selects the capabilities that are used by a LeaderWorkerSet or a group.

Signs of use are the settings and fields of a capability, its marks on a leader or worker StatefulSet, the conditions
that it reports, and its configuration or observed state. So a capability that has started is called until it is
finished, even if its setting was removed. Other capabilities have no effect. A property test compares the plans with
all capabilities and with the selected ones.
"""

from functools import lru_cache
from itertools import chain
from typing import Final

from msgspec.structs import replace

from kuberuntime.objects import meta
from leaderworkerset.api import labels
from leaderworkerset.capabilities.enabled import ENABLED, EXTENSIONS
from leaderworkerset.core.extensions import Extensions, together
from leaderworkerset.core.leaderworkerset.decision import ObservedLeaderWorkerSet
from leaderworkerset.core.policies.policy import LiveGroup

STEPS: Final = ("set_ends", "set_folds", "find_route", "set_steps", "group_steps", "fault_finders", "nodes")
"""The extension points of each reconciler. Other extension points are always called for all capabilities."""

POD_MARKS: Final = tuple(mark for capability in ENABLED for mark in capability.pod_marks)

STATEFULSET_MARKS: Final = tuple(mark for capability in ENABLED for mark in capability.statefulset_marks)

FIELDS: Final = tuple(field for capability in ENABLED for field in capability.fields)

CONDITIONS: Final = tuple(kind for capability in ENABLED for kind in capability.conditions)

SIGNS: Final = {
    capability.name: {
        capability.name,
        *capability.settings,
        *capability.fields,
        *capability.pod_marks,
        *capability.statefulset_marks,
        *capability.conditions,
    }
    for capability in ENABLED
}

ALL_SIGNS: Final = frozenset(chain.from_iterable(SIGNS.values()))


def concerning_set(observed: ObservedLeaderWorkerSet) -> Extensions:
    """Return the extensions for reconciling a LeaderWorkerSet."""
    obj, folded = observed.leaderworkerset or {}, observed.folded
    conditions = (kind for kind in CONDITIONS if meta.find_condition(obj, kind) is not None)
    facts = (name for name, value in observed.facts.items() if value)
    marks = (labels.IN_PLACE_REVISION,) if folded is None or folded.updating else ()
    return _with_signs(ALL_SIGNS.intersection(chain(meta.annotations(obj), conditions, facts, marks)))


def concerning_group(group: LiveGroup) -> Extensions:
    """Return the extensions for reconciling a group."""
    of_leader, sets = meta.annotations(group.leader), map(meta.annotations, group.objects.statefulsets)
    spec = meta.spec(group.obj)
    marks = [mark for mark in POD_MARKS if mark in of_leader] + [field for field in FIELDS if field in spec]
    marks += [mark for of_workers in sets for mark in STATEFULSET_MARKS if mark in of_workers]
    return _with_signs(ALL_SIGNS.intersection(chain(group.facts, meta.annotations(group.obj), marks)))


@lru_cache(maxsize=1024)
def _with_signs(signs: frozenset[str]) -> Extensions:
    concerned = together(
        {capability.name: capability for capability in ENABLED if not SIGNS[capability.name].isdisjoint(signs)}
    )
    return replace(EXTENSIONS, **{place: getattr(concerned, place) for place in STEPS})
