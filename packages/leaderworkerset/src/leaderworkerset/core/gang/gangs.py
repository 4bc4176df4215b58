"""Selects a gang scheduler.

An annotation of the LeaderWorkerSet selects a provider. Otherwise, the configured provider is used. The value is a
name, or `auto` for the first provider that the API server serves and that is suitable for the pod's `schedulerName`.
The selection is made once, when a leader pod is admitted, and is recorded on the pod. Its workers and the controllers
use the recorded provider. So a group keeps its scheduler until it is deleted, even if a different scheduler is
installed in the meantime.

If `spec.scheduling` is set, a provider cannot be selected. Either kube-scheduler applies the field with its own objects
(`preparation.py`, `replicas.py`), or Volcano applies it with the same objects as for other sets.

If Volcano is configured, its groups have no record, so that their pods are equal to those of the Go controller.
"""

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from kuberuntime.objects import meta
from kuberuntime.objects.field import FieldError, Kind, not_supported
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource
from kuberuntime.plan import Action, Create, Delete, guarded_delete
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet
from leaderworkerset.core import decisionevents
from leaderworkerset.core.gang import preparation, replicas
from leaderworkerset.core.gang.coscheduling import COSCHEDULING
from leaderworkerset.core.gang.gate import BUILT_IN
from leaderworkerset.core.gang.native import KUBERNETES, NATIVE, POD_GROUPS, WORKLOADS
from leaderworkerset.core.gang.provider import Provider
from leaderworkerset.core.gang.volcano import GROUP_NAME, VOLCANO
from leaderworkerset.core.policies.celmutations import (
    PodRule,
    add_annotation,
    annotation,
    conditional_patches,
    has_annotation,
    label,
    list_literal,
    string_literal,
)
from leaderworkerset.core.policies.gang import CHOICE, NONE, UNSUPPORTED, GangGroup, GangSet, Preparation, Support
from leaderworkerset.core.policies.podedits import with_annotations
from leaderworkerset.core.policies.policy import PolicyDecision

AUTO: Final = "auto"

PROVIDERS: Final[Mapping[str, Provider]] = MappingProxyType(
    {provider.name: provider for provider in (VOLCANO, NATIVE, COSCHEDULING, BUILT_IN)}
)
"""All gang schedulers, in the order of the automatic selection."""

NAMES: Final = (VOLCANO.name, KUBERNETES, *(name for name in PROVIDERS if name != VOLCANO.name))
"""The provider names that are valid besides `auto`. `kubernetes` schedules only groups with `spec.scheduling`."""

FOLLOWED: Final = {
    VOLCANO.name: VOLCANO.name,
    **dict.fromkeys((KUBERNETES, NATIVE.name, AUTO), KUBERNETES),
    **dict.fromkeys((COSCHEDULING.name, BUILT_IN.name), ""),
}
"""The provider of `spec.scheduling` for each configured name, or an empty string if it is not supported."""

DETECTABLE: Final[Mapping[str, Provider]] = MappingProxyType(
    {name: provider for name, provider in PROVIDERS.items() if provider.group_object is not None}
)
"""The providers for `auto`, by the kind that the API server serves. The gate must be selected by name."""

LONGEST_NAME: Final = 63
"""The maximum length of a group name, which is a label value."""

SCHEDULING: Final = (WORKLOADS, POD_GROUPS)
"""The kinds that kube-scheduler requires for `spec.scheduling`."""

NAMING: Final = (labels.NAME, labels.GROUP_INDEX, labels.TEMPLATE_REVISION_HASH)
"""The labels of group objects that are named after the revision."""

_OF_LEADERS: Final = {labels.GROUP_INDEX: "variables.groupIndex"}
_REVISION_NAME: Final = ' + "-" + '.join(_OF_LEADERS.get(key, label(key)) for key in NAMING)

DIGITS: Final = 10
"""The number of hexadecimal digits in a group name that identify the leader pod."""


class Gangs(Struct, frozen=True, kw_only=True):
    """Implements `Gang`. `default` is a provider name or `auto`.

    `served` are the names that `auto` may select, and the kinds for `spec.scheduling` that are served (`served_name`).
    `is_enabled` is the feature gate of `spec.scheduling`.
    """

    default: str
    served: Collection[str] = ()
    is_enabled: bool = False

    @property
    def providers(self) -> Mapping[str, Provider]:
        """Return the providers that can be selected."""
        if self.default == AUTO:
            return DETECTABLE
        return {name: PROVIDERS[name] for name in (self.default,) if name in PROVIDERS}

    @property
    def support(self) -> Support:
        """Return the support for `spec.scheduling`."""
        missing = [kind.kind for kind in SCHEDULING if served_name(kind) not in self.served]
        return Support(self.is_enabled, FOLLOWED[self.default] or self.default, missing)

    @property
    def _follows(self) -> bool:
        return FOLLOWED[self.default] == KUBERNETES

    @property
    def resources(self) -> Sequence[Resource]:
        """Return the kinds that the providers use."""
        own = [resource for provider in self.providers.values() for resource in provider.resources]
        return list(dict.fromkeys([*own, *(SCHEDULING if self._follows else ())]))

    @property
    def uses_gate(self) -> bool:
        """Return whether the built-in gate can be selected."""
        return BUILT_IN.name in self.providers

    @property
    def rule(self) -> PodRule:
        """Return the rule for pods that are scheduled individually, or by Volcano if it is configured."""
        choice = annotation(labels.GANG_SCHEDULER)
        if self.default == VOLCANO.name:
            marked = conditional_patches(
                f"{choice} != {string_literal(NONE)}", add_annotation(GROUP_NAME, _REVISION_NAME)
            )
            covered = f"{choice} in {list_literal(('', NONE, VOLCANO.name))}"
            return PodRule(conditions={"gang-is-of-volcano": covered}, patches=(marked,))
        conditions = {"has-no-gang": f"{choice} == {string_literal(NONE)}"} if self.providers else {}
        if self._follows:
            conditions["is-not-workload-aware"] = f"!({has_annotation(labels.WORKLOAD_AWARE_SCHEDULING)})"
        return PodRule(conditions=conditions)

    def errors(self, lws: LeaderWorkerSet, old: LeaderWorkerSet | None) -> Sequence[FieldError]:
        """Return the errors for an unknown or changed scheduler, and for groups that it cannot schedule.

        Stored values are accepted.
        """
        choice = _selected_scheduler(lws.metadata.annotations)
        if old is not None and _selected_scheduler(old.metadata.annotations) != choice:
            text = "the gang scheduler cannot be changed. Delete and recreate the LeaderWorkerSet"
            return [FieldError(Kind.FORBIDDEN, CHOICE, detail=text)]
        if old is None and choice not in {"", NONE, *self.providers}:
            return [not_supported(CHOICE, choice, (NONE, *self.providers))]
        if lws.spec.scheduling is not None and choice:
            text = (
                "cannot be combined with spec.scheduling, which defines how groups are scheduled. Remove this "
                "annotation"
            )
            return [FieldError(Kind.FORBIDDEN, CHOICE, detail=text)]
        provider = self._provider(choice, {"spec": meta.spec(lws.leader_template)})
        if provider is None or (lws.spec.scheduling is not None and self._follows):
            return ()
        known = [] if old is None else provider.errors(old)
        return [error for error in provider.errors(lws) if error not in known]

    def mark(self, pod: JSONObject, request: str) -> JSONObject:
        """Link the pod to the group object. The leader selects the provider, which the workers also use."""
        if self._follows and labels.WORKLOAD_AWARE_SCHEDULING in meta.annotations(pod):
            return replicas.link_pod(pod, request)
        is_leader = groupname.is_leader(pod)
        choice = _selected_scheduler(meta.annotations(pod))
        if is_leader:
            provider = self._provider(choice, pod)
            return pod if provider is None or provider.has_pod_group(pod) else self._mark_leader(pod, provider, request)
        provider = self.providers.get(choice or self.default)
        name = "" if provider is None else self._group_name(pod, provider)
        return pod if provider is None or not name or provider.has_pod_group(pod) else provider.link(pod, name)

    def decide(self, group: GangGroup) -> PolicyDecision:
        """Create the group object if it does not exist. The object of a previous leader must be deleted first."""
        leader, scheduling = group.live.leader, group.live.lws.spec.scheduling
        if scheduling is not None and self._follows:
            return replicas.decide(group, scheduling)
        scheduler = self.providers.get(_selected_scheduler(meta.annotations(leader)) or self.default)
        provider = None if scheduler is None else scheduler.served_version(group.live.scheduling.kinds)
        name = "" if provider is None else _recorded_group_name(leader, provider)
        kind = None if provider is None else provider.group_object
        if provider is None or kind is None or not name:
            return PolicyDecision()
        known = _find(group.live.scheduling.objects, kind, name)
        if known is None:
            return PolicyDecision(actions=tuple(self._create_objects(group, provider, kind, name)))
        if meta.is_controlled(known, leader) and not meta.is_deleting(known):
            return PolicyDecision()
        holds = f"waits for {kind.kind} {name} of a previous leader to be deleted"
        removal = Delete(resource=kind, key=meta.key(known), uid=meta.uid(known))
        return PolicyDecision(delay_reason=holds, actions=() if meta.is_deleting(known) else (removal,))

    def prepare(self, gang_set: GangSet) -> Preparation:
        """Create the shared objects of groups with `spec.scheduling`. Volcano groups do not have shared objects."""
        scheduling = gang_set.lws.spec.scheduling
        if scheduling is None or not FOLLOWED[self.default]:
            return UNSUPPORTED
        return preparation.prepare(gang_set, scheduling) if self._follows else Preparation(is_done=True)

    def delete_unused(self, observed: Sequence[JSONObject], revisions: Collection[str]) -> Sequence[Delete]:
        """Delete shared objects of unused revisions. The garbage collector deletes the objects of single groups."""
        editions = (edition for provider in self.providers.values() for edition in provider.versions)
        shared = [edition.shared for edition in editions if edition.shared is not None]
        return [
            guarded_delete(resource, obj)
            for obj in observed
            for resource in shared
            if resource.has(obj) and not meta.is_deleting(obj)
            if (revision := groupname.revision_key(obj)) and revision not in revisions
        ]

    def _provider(self, choice: str, pod: JSONObject) -> Provider | None:
        """Return the provider for a leader pod with this annotation."""
        if (choice or self.default) != AUTO:
            return self.providers.get(choice or self.default)
        suiting = (
            provider for provider in DETECTABLE.values() if provider.name in self.served and provider.schedules(pod)
        )
        return next(suiting, None)

    def _mark_leader(self, pod: JSONObject, provider: Provider, request: str) -> JSONObject:
        record = (
            {}
            if provider.name == self.default and provider.is_named_by_revision
            else {labels.GANG_SCHEDULER: provider.name}
        )
        if not provider.is_named_by_revision:
            record[labels.GANG_GROUP] = _incarnation(groupname.hostname(pod), request)
        marked = with_annotations(pod, record) if record else pod
        return provider.link(marked, self._group_name(marked, provider))

    def _group_name(self, pod: JSONObject, provider: Provider) -> str:
        """Return the object name for the pod's group, or an empty string if the leader is not marked."""
        if not provider.is_named_by_revision:
            return meta.annotations(pod).get(labels.GANG_GROUP, "")
        own = meta.labels(pod)
        return "-".join(own.get(key, "") for key in NAMING)

    def _create_objects(self, group: GangGroup, provider: Provider, kind: Resource, name: str) -> Iterator[Action]:
        if (shared := provider.shared) is not None:
            for obj in provider.build_shared(group):
                if _find(group.live.scheduling.objects, shared, meta.name(obj)) is None:
                    yield Create(resource=shared, object=obj, if_absent=True)
        failed = f"Failed to create {kind.kind} for leader pod {meta.name(group.live.leader)}: {{error}}"
        yield Create(
            resource=kind,
            object=provider.build(group, name),
            unless_own=True,
            on_failure=(decisionevents.failed_create(group.live.obj, failed, group.live.leader),),
        )


def served_name(kind: Resource) -> str:
    """Return the entry in `served` for a served `spec.scheduling` kind."""
    return f"{kind.api_version} {kind.kind}"


def _selected_scheduler(annotations: Mapping[str, str]) -> str:
    return annotations.get(labels.GANG_SCHEDULER, "")


def _recorded_group_name(leader: JSONObject, provider: Provider) -> str:
    """Return the group object name in the leader pod, or an empty string if the leader is not linked."""
    own = meta.annotations(leader)
    return own.get(GROUP_NAME if provider.is_named_by_revision else labels.GANG_GROUP, "")


def _incarnation(leader: str, request: str) -> str:
    """Return a group name that no previous leader with the same name used."""
    suffix = hashlib.sha256(request.encode()).hexdigest()[:DIGITS]
    return f"{leader[: LONGEST_NAME - DIGITS - 1].rstrip('-')}-{suffix}"


def _find(observed: Sequence[JSONObject], resource: Resource, name: str) -> JSONObject | None:
    return next((obj for obj in observed if resource.has(obj) and meta.name(obj) == name), None)
