"""The shape of a policy, and the facts that policies decide from.

A policy acts in up to three places, and its module holds all of them:

- `annotations`: what the pod templates of the StatefulSets must carry, so that admission needs no look-up;
- `admit`: how a pod that is about to be created is changed, from what the pod carries alone;
- `decide`: what a live group needs now: actions, edits of its workers' template, or a reason to create no workers yet.

`core/leaderworkerset/templates.py`, `core/admission/pod.py` and `core/pod/reconcile.py` ask the policies in these places,
in an order that they fix. Pure.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from kuberuntime.objects.meta import JSONObject
from kuberuntime.plan import Action
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet, LeaderWorkerTemplate
from leaderworkerset.core.restarts.settings import DEFAULTS, RestartSettings


@dataclass(frozen=True, slots=True)
class Template:
    """What pod templates are made from: the revision's template and the annotations of the LeaderWorkerSet as it lives."""

    spec: LeaderWorkerTemplate
    live: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """The place of a pod at admission: the size of its group, its index there, and whether it leads it."""

    size: int
    worker_index: int
    is_leader: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveGroup:
    """A live group whose LeaderWorkerSet has been read.

    `obj` is the LeaderWorkerSet as it came, `lws` the same, typed. `gone` are pods deleted since the last reconcile, in
    their last state; `node` is the leader's, where exclusive placement needs it; `record` describes the last recreation,
    `restarts` how the next ones are made.
    """

    obj: JSONObject
    lws: LeaderWorkerSet
    leader: JSONObject
    now: datetime
    pods: Sequence[JSONObject] = ()
    gone: Sequence[JSONObject] = ()
    statefulsets: Sequence[JSONObject] = ()
    gang_objects: Sequence[JSONObject] = ()
    node: JSONObject | None = None
    record: JSONObject | None = None
    restarts: RestartSettings = DEFAULTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What a policy wants for a group now.

    `holds` says why nothing further is built, empty where building goes on; `node_selector` is added to the template of
    the workers. `requeue_after` is in seconds.
    """

    holds: str = ""
    actions: tuple[Action, ...] = ()
    requeue_after: float | None = None
    node_selector: Mapping[str, str] = field(default_factory=dict)


def add_nothing(_template: Template) -> dict[str, str]:
    """Return no annotations: the default of a policy that templates need not carry."""
    return {}


def keep_pod(pod: JSONObject, _member: Member) -> JSONObject:
    """Return the pod unchanged: the default of a policy that changes no pods."""
    return pod


def go_on(_group: LiveGroup) -> Decision:
    """Want nothing of a live group: the default of a policy that acts on templates and pods alone."""
    return Decision()


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """One policy as a value: its name, and its three functions."""

    name: str
    annotations: Callable[[Template], dict[str, str]] = add_nothing
    admit: Callable[[JSONObject, Member], JSONObject] = keep_pod
    decide: Callable[[LiveGroup], Decision] = go_on
