"""The type of a policy, and the facts that policies decide from.

A policy acts in up to three places, and its module holds all of them:

- `annotations`: what the pod templates of the StatefulSets must carry, so that admission reads no other object;
- `admit`: the changes of a pod that is about to be created, from what the pod carries alone;
- `decide`: what a live group needs now: actions, edits of its workers' template, or a reason to create no workers yet.

`core/leaderworkerset/templates.py` and `core/admission/pod.py` call the policies of a table in its order;
`core/pod/reconcile.py` calls `decide` of the modules that have one. Pure.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource
from kuberuntime.plan import Action
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet, LeaderWorkerTemplate
from leaderworkerset.core.restarts.settings import DEFAULTS, RestartSettings


@dataclass(frozen=True, slots=True)
class Template:
    """The source of pod templates: the revision's template and the current annotations of the LeaderWorkerSet."""

    spec: LeaderWorkerTemplate
    live: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """The position of a pod at admission: the size of its group, its index, and whether it is the leader."""

    size: int
    worker_index: int
    is_leader: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveGroup:
    """A live group whose LeaderWorkerSet has been read.

    `obj` is the LeaderWorkerSet as read, `lws` the same, decoded. `gone` are pods deleted since the last reconcile, in
    their last state; `node` is the leader's, if exclusive placement needs it; `record` describes the last recreation,
    `restarts` are the settings of the next ones. `gang_kinds` are the kinds of gang schedulers that are served.
    """

    obj: JSONObject
    lws: LeaderWorkerSet
    leader: JSONObject
    now: datetime
    pods: Sequence[JSONObject] = ()
    gone: Sequence[JSONObject] = ()
    statefulsets: Sequence[JSONObject] = ()
    gang_objects: Sequence[JSONObject] = ()
    gang_kinds: Collection[Resource] = ()
    node: JSONObject | None = None
    record: JSONObject | None = None
    restarts: RestartSettings = DEFAULTS


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyDecision:
    """The decision of one policy about a group.

    `holds` is the reason why nothing further is created, empty if there is none; `node_selector` is added to the template
    of the workers. `requeue_after` is in seconds.
    """

    holds: str = ""
    actions: tuple[Action, ...] = ()
    requeue_after: float | None = None
    node_selector: Mapping[str, str] = field(default_factory=dict)


def add_nothing(_template: Template) -> dict[str, str]:
    """Return no annotations: the default of a policy that needs none."""
    return {}


def keep_pod(pod: JSONObject, _member: Member) -> JSONObject:
    """Return the pod unchanged: the default of a policy that changes no pods."""
    return pod


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What a policy adds to pod templates, and to pods at their admission."""

    annotations: Callable[[Template], dict[str, str]] = add_nothing
    admit: Callable[[JSONObject, Member], JSONObject] = keep_pod
