"""Defines the state of a group and its ranks, which all commands and pages show.

The input is the pods of a group. The output is immutable values. Pure.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import Final

from msgspec import Struct

from kuberuntime.objects import meta, podstate, terminations, timestamps
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.quantity import Quantity
from kuberuntime.objects.terminations import REMEMBERED, ContainerFailure
from kuberuntime.texts import errorboundary
from kuberuntime.texts.masking import mask_message
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.groupname import GroupEnd, GroupName, group_and_rank
from leaderworkerset.api.policytypes import AWAITS_LEADER
from leaderworkerset.api.progressannotations import Hang, Progress, parse_annotation, parse_hang
from lwsctl.model.admission import gate_reason
from lwsctl.model.failurehistory import Crashes, Recreations, Startup

MISSING: Final = "Missing"
"""The state of a rank that has no pod."""

COMPLETED: Final = "Completed"
"""The state of a rank that exited with code 0, and of all ranks of a complete group."""

UNREADABLE: Final = "Unreadable"
"""The state of a rank if its pod cannot be parsed."""

NOT_CREATED: Final = "not created yet"
"""The default reason for a missing pod."""


PASSING: Final = frozenset({MISSING, "Pending", "ContainerCreating", "PodInitializing", "Running", COMPLETED})
"""States that occur in every normal start and stop. Other states, and Pending with a reason, are problems."""

UNREADY: Final = "containers with "
"""The prefix of the kubelet's message about unready containers, which is not shown as a reason."""


class Readiness(StrEnum):
    """The readiness of a rank or a group, which pages show as a color and a symbol."""

    READY = "ready"
    COMPLETED = "completed"
    STARTING = "starting"
    ENDING = "ending"
    MISSING = "missing"
    PROBLEM = "problem"


class Usage(Struct, frozen=True):
    """The measured usage of a resource, and its limit, or its request if no limit is set."""

    amount: Quantity
    limit: Quantity | None = None


class Rank(Struct, frozen=True, kw_only=True):
    """A rank in a group. If it has no pod, `state` is `Missing` and `why` describes what the rank waits for."""

    group: GroupName
    index: int
    pod: str
    state: str
    why: str = ""
    is_ready: bool = False
    restarts: int = 0
    node: str = ""
    address: str = ""
    created: str = ""
    uid: str = ""
    is_stub: bool = False
    deaths: tuple[ContainerFailure, ...] = ()
    """The failed container runs that are still relevant or that caused a recreation of the group."""
    startup: Startup | None = None
    """The startup progress of the rank, if it has never been ready and its startup deadline has not passed."""
    object: JSONObject | None = None
    usage: Mapping[str, Usage] | None = None
    """The usage of each resource, or None if the pod has no metrics or they were not read."""

    @property
    def place(self) -> str:
        """Return the rank as `group/rank`."""
        return f"{self.group}/{self.index}"

    @property
    def is_fine(self) -> bool:
        """Return whether the rank is ready or complete."""
        return self.is_ready or self.state == COMPLETED

    @property
    def is_problem(self) -> bool:
        """Return whether the rank has a reason that does not occur in normal starts."""
        if self.is_ready or self.why in {"", NOT_CREATED, podstate.ENDING}:
            return False
        if self.state == MISSING:
            return self.why != AWAITS_LEADER
        return self.state not in PASSING or not self.why.startswith(UNREADY)

    @property
    def has_succeeded(self) -> bool:
        """Return whether all containers exited with code 0 in their current or previous run."""
        statuses = meta.status(self.object or {}).get("containerStatuses") or []
        return bool(statuses) and all(0 in _exit_codes(status) for status in statuses)

    @property
    def ready_since(self) -> datetime | None:
        """Return the time since which the rank has been ready, or None if it is not ready."""
        if not self.is_ready:
            return None
        ready = meta.find_condition(self.object or {}, "Ready") or {}
        return timestamps.read(str(ready.get("lastTransitionTime") or self.created))

    @property
    def terminates_normally(self) -> bool:
        """Return whether the pod is being deleted and its containers run or were terminated by a signal."""
        if self.object is None or not meta.is_deleting(self.object):
            return False
        statuses = meta.status(self.object).get("containerStatuses") or ()
        ends = (status.get("state", {}).get("terminated") for status in statuses)
        return all(end.get("exitCode") in podstate.STOPPED for end in ends if end)

    @property
    def readiness(self) -> Readiness:
        """Return the readiness of the rank."""
        if self.is_ready:
            return Readiness.READY
        if self.state == COMPLETED:
            return Readiness.COMPLETED
        if self.terminates_normally:
            return Readiness.ENDING
        if self.startup is not None and self.state == "Running" and not self.deaths:
            return Readiness.STARTING  # a probe that fails before the first success is not a problem yet
        if self.is_problem:
            return Readiness.PROBLEM
        return Readiness.MISSING if self.state == MISSING else Readiness.STARTING


class Group(Struct, frozen=True, kw_only=True):
    """A leader and its workers. `ranks` contains all ranks of the group size, with or without a pod.

    `index` is a sequence number. With random keys, the youngest group is first, and groups with a terminating leader
    are last.
    """

    index: int
    ranks: tuple[Rank, ...]
    revision: str = ""
    recreations: Recreations | None = None
    crashes: Crashes | None = None
    key: str = ""

    @property
    def name(self) -> GroupName:
        """Return the name of the group."""
        return self.key or self.index

    @property
    def is_ready(self) -> bool:
        """Return whether all ranks are ready and no recreation is pending."""
        return not self.is_condemned and all(rank.is_ready for rank in self.ranks)

    @property
    def ready_since(self) -> datetime | None:
        """Return the time at which the last rank became ready, or None if the group is not ready."""
        moments = [moment for rank in self.ranks if (moment := rank.ready_since) is not None]
        return max(moments, default=None) if self.is_ready else None

    @property
    def is_done(self) -> bool:
        """Return whether the group is ready or ran to completion, so that a rollout does not wait for it."""
        return self.is_ready or self.end is GroupEnd.COMPLETE

    @property
    def is_fine(self) -> bool:
        """Return whether all ranks are ready or complete."""
        return all(rank.is_fine for rank in self.ranks)

    @property
    def readiness(self) -> Readiness:
        """Return the readiness that all ranks have in common.

        Otherwise, return a problem if a rank has one, or starting.
        """
        states = {rank.readiness for rank in self.ranks}
        if len(states) == 1:
            return states.pop()
        return Readiness.PROBLEM if Readiness.PROBLEM in states else Readiness.STARTING

    @property
    def restarts(self) -> int:
        """Return the total number of restarts of all ranks."""
        return sum(rank.restarts for rank in self.ranks)

    @property
    def is_condemned(self) -> bool:
        """Return whether the group failed. Its pods exist only until it is recreated or recovered."""
        return self.recreations is not None and (self.recreations.is_waiting or self.recreations.is_exhausted)

    @property
    def is_exhausted(self) -> bool:
        """Return whether the group was terminated because it has no remaining restarts.

        Its pods are kept for diagnosis.
        """
        return groupname.is_exhausted(self._leader)

    @property
    def is_over(self) -> bool:
        """Return whether the group is terminated permanently, because it is exhausted or complete."""
        return groupname.is_finished(self._leader)

    def has_recovered(self, now: datetime) -> bool:
        """Return whether past recreations are irrelevant, because the group is ready and they are not recent."""
        return self.recreations is None or (self.is_ready and now - self.recreations.due >= REMEMBERED)

    def is_complete(self, rank: Rank) -> bool:
        """Return whether a rank of the group or the whole group ran to completion."""
        return self.end is GroupEnd.COMPLETE or rank.has_succeeded

    @property
    def end(self) -> GroupEnd | None:
        """Return the result of a group that is complete or reached its deadline."""
        return groupname.group_result(self._leader)

    @property
    def progress(self) -> Progress | None:
        """Return the last progress report of the leader, or None if there is none."""
        return parse_annotation(meta.annotations(self._leader).get(labels.PROGRESS, ""))

    @property
    def hang(self) -> Hang | None:
        """Return details about the hang of a group, or None if the group makes progress or is not monitored."""
        return None if self.end is not None else parse_hang(meta.annotations(self._leader).get(labels.HANG, ""))

    @property
    def leader(self) -> Rank | None:
        """Return the first rank, with or without a pod, or None if the view does not contain this rank."""
        return next((rank for rank in self.ranks if rank.index == 0), None)

    @property
    def _leader(self) -> JSONObject:
        return (self.leader.object if self.leader else None) or {}

    @property
    def ready_ranks(self) -> int:
        """Return the number of ready ranks."""
        return sum(rank.is_ready for rank in self.ranks)


def root_cause_rank(ranks: Iterable[Rank]) -> Rank | None:
    """Return the rank whose problem explains the other problems, which is the rank at the earliest stage.

    A rank without a pod or a node explains a rank that does not start. A rank that does not start explains a crash, and
    a crash explains an unready rank. If several ranks crashed, it is the same rank as in the diagnosis.
    """
    problems = [rank for rank in ranks if rank.is_problem]
    crashes = terminations.in_order(run for rank in problems for run in rank.deaths)
    return min(problems, key=lambda rank: (_stage(rank), bool(crashes) and rank.pod != crashes[0].pod), default=None)


def _stage(rank: Rank) -> int:
    if rank.deaths:
        return 3
    if rank.node:
        return 4 if rank.state == "Running" else 2
    return 0 if rank.object is None else 1


def _exit_codes(status: JSONObject) -> set[int]:
    """Return the exit codes of the current and previous run in a container status."""
    ended = ((status.get(when) or {}).get("terminated") or {} for when in ("state", "lastState"))
    return {end["exitCode"] for end in ended if "exitCode" in end}


def rank_of(pod: JSONObject) -> Rank:
    """Convert a pod of a group to a rank. If the pod cannot be parsed, the error is the reason of the rank."""
    return errorboundary.attempt(partial(_read_rank, pod), partial(_unreadable_rank, pod))


def _unreadable_rank(pod: JSONObject, error: str) -> Rank:
    group, index = group_and_rank(pod) or (-1, -1)
    return Rank(group=group, index=index, pod=meta.name(pod), state=UNREADABLE, why=error, uid=meta.uid(pod))


def _read_rank(pod: JSONObject) -> Rank:
    place = group_and_rank(pod) or (-1, -1)
    status = meta.status(pod)
    return Rank(
        group=place[0],
        index=place[1],
        pod=meta.name(pod),
        state=podstate.state(pod),
        why=mask_message(gate_reason(pod) or podstate.waiting_reason(pod)),
        is_ready=podstate.stays_ready(pod),
        restarts=podstate.restart_count(pod),
        node=meta.spec(pod).get("nodeName", ""),
        address=status.get("podIP", ""),
        created=meta.metadata(pod).get("creationTimestamp", ""),
        uid=meta.metadata(pod).get("uid", ""),
        is_stub=any(
            container.get("imageID", "").startswith("stub://") for container in status.get("containerStatuses") or []
        ),
        object=pod,
    )
