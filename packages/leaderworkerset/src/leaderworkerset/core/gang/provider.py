"""Defines how a gang scheduler links pods to group objects, and builds the objects.

A provider is a value, like a policy. The leader pod controls its objects, so that they are deleted with the group. The
objects have the labels that the caches select.
"""

from collections.abc import Callable, Collection, Iterator, Sequence

from msgspec import Struct

from kuberuntime.objects import meta
from kuberuntime.objects.field import FieldError, Kind, invalid
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource
from leaderworkerset.api import labels
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet
from leaderworkerset.api.policytypes import StartupPolicy
from leaderworkerset.core.policies import exclusive
from leaderworkerset.core.policies.gang import GangGroup

TEMPLATE = "spec.leaderWorkerTemplate"

DEFAULT_SCHEDULER = "default-scheduler"

ADVICE = f"or set the annotation {labels.GANG_SCHEDULER}: none"


class Provider(Struct, frozen=True, kw_only=True):
    """A gang scheduler.

    `group_object` is the kind of a group's object, if there is one. `shared` is the kind of objects that the groups of
    one revision share. `schedules` returns whether `auto` may select this scheduler for a pod with its `schedulerName`.
    """

    name: str
    group_object: Resource | None = None
    shared: Resource | None = None
    schedules: Callable[[JSONObject], bool]
    has_pod_group: Callable[[JSONObject], bool]
    """Return whether the user has already linked the pod."""
    link: Callable[[JSONObject, str], JSONObject]
    build: Callable[[GangGroup, str], JSONObject] = lambda _group, _name: {}  # of schedulers with group objects only
    build_shared: Callable[[GangGroup], Sequence[JSONObject]] = lambda _group: ()
    errors: Callable[[LeaderWorkerSet], Sequence[FieldError]] = lambda _lws: ()
    is_named_by_revision: bool = False
    """Whether group objects are named after the group and revision instead of the leader pod."""
    previous_version: "Provider | None" = None
    """The same scheduler with the API version of older clusters."""

    @property
    def versions(self) -> tuple["Provider", ...]:
        """Return the scheduler for each API version, latest first."""
        return (self,) if self.previous_version is None else (self, self.previous_version)

    @property
    def group_objects(self) -> tuple[Resource, ...]:
        """Return the group object kinds. A cluster serves at most one of these kinds."""
        return tuple(edition.group_object for edition in self.versions if edition.group_object is not None)

    @property
    def resources(self) -> tuple[Resource, ...]:
        """Return the kinds that the scheduler uses."""
        kinds = (kind for edition in self.versions for kind in (edition.shared, edition.group_object))
        return tuple(kind for kind in kinds if kind is not None)

    def served_version(self, served: Collection[Resource]) -> "Provider":
        """Return the scheduler with the served API version, or with the latest version if none is served."""
        return next((provider for provider in self.versions if provider.group_object in served), self)


def scheduler_name(pod_spec: JSONObject) -> str:
    """Return the scheduler name in the spec of a pod or a pod template."""
    return str(pod_spec.get("schedulerName") or DEFAULT_SCHEDULER)


def templates(lws: LeaderWorkerSet) -> Iterator[tuple[str, JSONObject]]:
    """Yield the pod specs of a LeaderWorkerSet with their paths."""
    for field, template in lws.pod_templates.items():
        yield f"{TEMPLATE}.{field}.spec", meta.spec(template)


def deadlock_errors(lws: LeaderWorkerSet, scheduler: str) -> Sequence[FieldError]:
    """Return errors for groups whose workers wait for a ready or bound leader, because this causes a deadlock."""
    if lws.size == 1:
        return ()
    errors = []
    awaited = f"{scheduler} gang scheduling binds the leader together with its workers, which would wait for the leader"
    if lws.spec.startup_policy.waits_for_leader:
        text = f"{awaited}. Use {StartupPolicy.LEADER_CREATED}, {ADVICE}"
        errors.append(invalid("spec.startupPolicy", lws.spec.startup_policy, text))
    if exclusive.is_exclusive(lws):
        path = f"metadata.annotations[{labels.EXCLUSIVE_TOPOLOGY}]"
        errors.append(FieldError(Kind.FORBIDDEN, path, detail=f"{awaited}. Remove this annotation, {ADVICE}"))
    return errors


def group_metadata(group: GangGroup, name: str, *, blocks: bool = True) -> JSONObject:
    """Build the metadata of a group object. If `blocks` is set, it blocks foreground deletion of the leader."""
    leader = group.live.leader
    own = meta.labels(leader)
    copied = (labels.NAME, labels.GROUP_INDEX, labels.TEMPLATE_REVISION_HASH)
    reference = meta.controller_reference(leader)
    if not blocks:
        del reference["blockOwnerDeletion"]
    return {
        "name": name,
        "namespace": meta.namespace(leader),
        "labels": {label: own[label] for label in copied if label in own},
        "ownerReferences": [reference],
    }
