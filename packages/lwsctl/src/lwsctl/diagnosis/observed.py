"""Defines the input for a diagnosis, which is a view and related objects that the user may read. Pure."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import Final

from msgspec import Struct, field

from kuberuntime.objects import meta, timestamps
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CORE_EVENTS, NODES, STATEFULSETS, Resource
from kuberuntime.texts.masking import mask_message
from leaderworkerset.api.disaggregatedset import ROLE, SET_NAME
from leaderworkerset.api.groupname import GroupName
from lwsctl.model import rankstarts
from lwsctl.model.disaggregatedset import SetView
from lwsctl.model.events.scaleups import NODE_PATIENCE
from lwsctl.model.events.warningevents import Warnings
from lwsctl.model.failurehistory import Startup
from lwsctl.model.groups import MISSING, Group, Rank
from lwsctl.model.leaderworkerset import View

SERVED_BY_KUEUE: Final = "kueue.x-k8s.io"
RESOURCE_QUOTAS: Final = Resource("", "v1", "resourcequotas", "ResourceQuota")
QUEUED_WORKLOADS: Final = Resource(SERVED_BY_KUEUE, "v1beta1", "workloads", "Workload")
"""The Kueue resource for Workloads, in the version that all supported releases serve."""


REJECTED_POD: Final = re.compile(r'pods "(?P<pod>[^"]+)"')
"""The pattern of the name of the rejected pod in the API server's message."""

KUBECTL: Final = "kubectl"


class Commands(Struct, frozen=True, kw_only=True):
    """The kubectl and lws commands for next steps, with options that select the same cluster.

    For a local cluster, steps that call kubectl are omitted. If `until_done` is set, the command waits until all
    ranks complete, so a rank that exited with code 0 is not an error. `images` are the images that a local cluster
    maps to directories, or None if unknown. `node_patience` is the maximum time to wait for a node from an
    autoscaler.
    """

    kubectl: str = KUBECTL
    lws: str = "lws"
    until_done: bool = False
    images: tuple[str, ...] | None = None
    node_patience: timedelta = NODE_PATIENCE


class Observed(Struct, frozen=True, kw_only=True, dict=True):
    """A LeaderWorkerSet and its related objects at a point in time.

    `objects` contains the objects that were read, by kind. A missing kind was not required, or is in `unread_kinds` because
    the user does not have permission. If the API server does not serve a kind, its list is empty. `running_pods` are the
    pods on all nodes, or None if there are too many or they cannot be read.
    """

    view: View
    now: datetime
    rank: int | None = None
    """The selected rank, or None. The view contains the whole group of the rank."""
    objects: Mapping[Resource, Sequence[JSONObject]] = field(default_factory=dict)
    unread_kinds: frozenset[Resource] = frozenset()
    running_pods: Sequence[JSONObject] | None = None
    set_view: SetView | None = None
    """The selected DisaggregatedSet, if any. The view then has its name and object but no groups."""
    commands: Commands = field(default_factory=Commands)
    leader_deployment: JSONObject | None = None
    """The Deployment for leaders with random keys, if it was read."""
    namesake: JSONObject | None = None
    """The pod that has the name of an unexplained missing rank, if it was read."""

    def get(self, resource: Resource) -> Sequence[JSONObject]:
        """Return the objects of a kind, or an empty list if the kind was not read."""
        return self.objects.get(resource, ())

    def was_read(self, resource: Resource) -> bool:
        """Return whether a kind was read, which means that unlisted objects do not exist."""
        return resource in self.objects

    def by_name(self, resource: Resource, name: str) -> JSONObject | None:
        """Return the object with this name, or None if it does not exist or its kind was not read."""
        return next((obj for obj in self.get(resource) if meta.name(obj) == name), None)

    @cached_property
    def runs_to_completion(self) -> bool:
        """Return whether ranks run to completion because the set or the command requires this."""
        return self.commands.until_done or self.view.runs_to_completion

    @cached_property
    def unready_ranks(self) -> tuple[tuple[Group, Rank], ...]:
        """Return the selected ranks that are not ready, with their groups, in order. A rejected leader is last.

        Ranks that ran to completion are omitted.
        """
        groups = (*self.view.groups, *self._rejected_groups)
        return tuple(
            (group, rank)
            for group in groups
            for rank in group.ranks
            if not rank.is_ready
            and self.rank in (None, rank.index)
            and not (self.runs_to_completion and group.is_complete(rank))
        )

    @property
    def _rejected_groups(self) -> Iterator[Group]:
        """Yield a group without a key if the leader Deployment reports that its leader is rejected."""
        failure = meta.find_condition(self.leader_deployment or {}, "ReplicaFailure") or {}
        if self.view.more and failure.get("status") == "True":
            message = mask_message(str(failure.get("message") or ""))
            match = REJECTED_POD.search(message)
            pod = match["pod"] if match else self.view.name
            yield Group(index=-1, ranks=(Rank(group="", index=0, pod=pod, state=MISSING, why=message),))

    def ranks_at(self, stage: Callable[[Rank], bool]) -> Sequence[Rank]:
        """Return the selected unready ranks at a stage. The results are cached."""
        if stage not in self._stages:
            self._stages[stage] = tuple(rank for _, rank in self.unready_ranks if stage(rank))
        return self._stages[stage]

    @cached_property
    def _stages(self) -> dict[Callable[[Rank], bool], Sequence[Rank]]:
        return {}

    def startup(self, rank: Rank) -> Startup | None:
        """Return the start of a rank that was never ready, or None if it exceeds its time limit."""
        return rankstarts.current_start(rank, self._longest_starts, self.now)

    @cached_property
    def _longest_starts(self) -> Mapping[bool, timedelta]:
        return rankstarts.longest_starts(self.view.ranks)

    @cached_property
    def warnings(self) -> Warnings:
        """Return the events by the object that they involve."""
        return Warnings(self.get(CORE_EVENTS))

    @cached_property
    def nodes(self) -> Mapping[str, JSONObject]:
        """Return the nodes by name."""
        return {meta.name(node): node for node in self.get(NODES)}

    @property
    def leader_statefulset(self) -> JSONObject | None:
        """Return the leader StatefulSet."""
        return self.by_name(STATEFULSETS, self.view.name)

    @property
    def template(self) -> str:
        """Return the object whose pod template users must edit. Edits to a generated LeaderWorkerSet are reverted."""
        own = meta.labels(self.view.object)
        if own.get(SET_NAME) and own.get(ROLE):
            return f"the template of role {own[ROLE]} in DisaggregatedSet {own[SET_NAME]}"
        return f"the template of {self.view.name}"

    def kubectl(self, words: str) -> str:
        """Return a kubectl command with the namespace."""
        return f"{self.plain_kubectl} -n {self.view.namespace} {words}"

    @property
    def plain_kubectl(self) -> str:
        """Return a kubectl command without a namespace."""
        return self.commands.kubectl or KUBECTL

    def lws(self, words: str) -> str:
        """Return an lws command with the namespace."""
        return f"{self.commands.lws} -n {self.view.namespace} {words}"

    def kept_log_step(self, group: GroupName) -> str:
        """Return the next step that shows the logs of a failed group whose pods are kept by a finalizer.

        A Kubernetes node deletes the log together with the containers. A manager that records failures reads it
        earlier.
        """
        name = f"{self.view.name}/{group}"
        if self.commands.kubectl:
            return f"if failure recording is enabled, view the logs with {self.lws(f'history {name}')}"
        return self.lws(f"logs {name}")

    def time_since(self, stamp: str | None) -> timedelta | None:
        """Return the time since an API timestamp, or None if there is no timestamp."""
        moment = timestamps.read(stamp or "")
        return None if moment is None else self.now - moment
