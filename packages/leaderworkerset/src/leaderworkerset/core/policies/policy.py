"""Defines the policies and their inputs.

A policy acts in up to four places, and its module holds all of them:

- `annotations`: annotations for the pod templates of the StatefulSets, so that admission reads no other object
- `admit`: the changes of a pod that is about to be created, from the fields of that pod alone
- `rule`: the same changes as expressions for kube-apiserver (`celmutations.py`)
- `decide`: the needs of a live group: actions, edits of its workers' template, or a reason to create no workers yet

`core/leaderworkerset/statefulsets.py` and `core/admission/pod.py` call the policies of a table in order.
`core/pod/reconcile.py` calls `decide` of the modules that define it. Pure.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any, Final, TypeAlias

from msgspec import Struct, field

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource
from kuberuntime.plan import Action
from leaderworkerset.api import groupname, leaderworkerset
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet, LeaderWorkerTemplate
from leaderworkerset.core.policies.celmutations import PodRule


class DeniedError(Exception):
    """The object must not be stored. The error message is returned to the user."""


class Template(Struct, frozen=True):
    """The source of pod templates, which is the template of a revision with the current annotations."""

    spec: LeaderWorkerTemplate
    live: Mapping[str, str]


class Member(Struct, frozen=True, kw_only=True):
    """The position of a pod at admission, with the group size, its index, and whether the pod is the leader.

    `request` is unique to this admission, and is the source of values that must differ between two pods.
    """

    size: int
    worker_index: int
    is_leader: bool
    request: str = ""


class SchedulingFailure(Struct, frozen=True):
    """The reason and message of the `WorkloadSchedulingCreated` condition if scheduling fails (N-K8S-10)."""

    reason: str
    message: str


Nodes: TypeAlias = Mapping[str, JSONObject | None]
"""The nodes by name. The value is None for nodes that do not exist."""

Parent: TypeAlias = JSONObject | SchedulingFailure | None
"""The Workload of an owner, or the reason why it is missing. It is None if it is not required (`delegation.py`)."""


class SchedulingObjects(Struct, frozen=True, kw_only=True):
    """The gang scheduler objects of one group, or the shared objects of a LeaderWorkerSet.

    `unused` are the PodGroups of groups that no pod names. `kinds` are the kinds of these objects that the API server
    serves. If scheduling is delegated, `parent` is the Workload of an owner, or the reason why it is missing
    (`delegation.py`).
    """

    objects: Sequence[JSONObject] = ()
    unused: Sequence[JSONObject] = ()
    kinds: Collection[Resource] = ()
    parent: Parent = None


NOT_SCHEDULED: Final = SchedulingObjects()
"""No gang scheduler objects."""


class HeadlessService(Struct, frozen=True):
    """The state of the Service with the required name."""

    is_settled: bool = False
    conflict: str = ""
    orphan: JSONObject | None = None


NO_SERVICE: Final = HeadlessService()
"""The Service does not exist."""


class GroupObjects(Struct, frozen=True, kw_only=True):
    """The objects with the name and index labels of a group, including objects of a previous leader.

    `deleted` are the pods that were deleted since the last reconcile, in their last state.
    """

    pods: Sequence[JSONObject] = ()
    deleted: Sequence[JSONObject] = ()
    statefulsets: Sequence[JSONObject] = ()


NO_OBJECTS: Final = GroupObjects()
"""There are no objects with the name and index labels."""


class LiveGroup(Struct, frozen=True, kw_only=True, dict=True):
    """The observed state of a group, with its leader pod, its LeaderWorkerSet, and the objects with its labels.

    `obj` is the LeaderWorkerSet as read, empty if it does not exist. The decision depends on `nodes`. `record`
    describes the last recreation. `service` is the group's own Service. `facts` contains the observed state and
    configuration of capabilities, by name.
    """

    leader: JSONObject
    obj: JSONObject = field(default_factory=dict)
    now: datetime
    objects: GroupObjects = NO_OBJECTS
    revisions: Sequence[JSONObject] = ()
    service: HeadlessService = NO_SERVICE
    nodes: Nodes = field(default_factory=dict)
    record: JSONObject | None = None
    scheduling: SchedulingObjects = NOT_SCHEDULED
    facts: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def lws(self) -> LeaderWorkerSet:
        """Return the decoded LeaderWorkerSet. Raise `DecodeError` if a field has an invalid type."""
        return leaderworkerset.decode(self.obj)

    @cached_property
    def workers(self) -> JSONObject | None:
        """Return the worker StatefulSet, or a previous StatefulSet with the same name."""
        return groupname.find_workers(self.leader, self.objects.statefulsets)


class PolicyDecision(Struct, frozen=True, kw_only=True):
    """The decision of a policy for a group.

    `delay_reason` is the reason why no more objects are created, or empty. `node_selector` is added to the worker template.
    `requeue_after` is in seconds.
    """

    delay_reason: str = ""
    actions: tuple[Action, ...] = ()
    requeue_after: float | None = None
    node_selector: Mapping[str, str] = field(default_factory=dict)


NOTHING: Final = PolicyDecision()
"""The decision of a policy without effect on a group."""


class Policy(Struct, frozen=True, kw_only=True):
    """The functions of a policy for pod templates and for pod admission.

    `rule` must have the same effect as `admit`, or exclude the pod with a condition.
    """

    annotations: Callable[[Template], dict[str, str]] = lambda _template: {}
    admit: Callable[[JSONObject, Member], JSONObject] = lambda pod, _member: pod
    rule: PodRule = PodRule()
