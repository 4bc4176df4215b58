"""Checks invariants after every write of a simulation, regardless of the writer and of faults.

In: every change that the API server commits, and every write of a manager as it arrives. Out: `violations`, sentences.

- Identity: managers create objects of owners that exist or existed, delete by UID, replace a status at the version that
  they read, and write nothing that belongs to another owner.
- One failure, one recreation: a manager deletes a leader only if its StatefulSet wants another revision, or a pod of
  this incarnation failed. A group that fails again and again is recreated at most `STORM` times in 90 seconds. Each
  write of a recreation that failed, or before which a manager died, permits one more: a recreation that is due
  immediately is done first and recorded second.
- Bounds: unless something failed, no step leaves fewer groups available than the rollout permits, nor more leaders than
  the surge allows. A group that became available a moment ago, which nobody else can know yet, does not count, nor does
  a group whose replacement was requested before it became available.
- Ends: a manager deletes the workers of a leader only if they must end together, and the leader ends.
- Leadership: no write of a manager arrives while another one holds the lease.
- Budgets: see `budgets.py`.
- One revision: the ready pods of an incarnation have one revision, and run its template.
- Revisions: see `revisions.py`. Broken groups: see `releases.py`.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

import msgspec
from tests.simulation.checks import revisions
from tests.simulation.checks.budgets import Budgets
from tests.simulation.checks.facts import (
    FOREIGN,
    RECREATING,
    Facts,
    Group,
    Index,
    Target,
    has_restarted,
    index_of,
    read_target,
    restarts_in_place,
)
from tests.simulation.checks.releases import Releases
from tests.simulation.cluster import NAMESPACE
from tests.simulation.schedules.podgroups import POD_GROUPS, WORKLOADS

from kuberuntime.client.transport import Request, Response
from kuberuntime.clock import Clock
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import (
    CONTROLLER_REVISIONS,
    DEPLOYMENTS,
    LEASES,
    PODS,
    REPLICA_SETS,
    SERVICES,
    STATEFULSETS,
)
from leaderworkerset.api import groupname, labels, restartannotation
from leaderworkerset.api.recreationrecord import SUFFIX
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.capabilities.inplace import inplacegroups
from localkube.apiserver.storage.store import Change, Store

STORM: Final = 4
WINDOW: Final = 90.0
"""The period in seconds in which a group may be recreated at most `STORM` times."""

KEPT: Final = (LEADERWORKERSETS, STATEFULSETS, DEPLOYMENTS, REPLICA_SETS, PODS, SERVICES, CONTROLLER_REVISIONS,
               WORKLOADS, POD_GROUPS)  # fmt: skip
"""The kinds whose existing objects are recorded when a schedule starts."""

CREATED: Final = {STATEFULSETS.group_resource, SERVICES.group_resource, CONTROLLER_REVISIONS.group_resource}
PATCHED: Final = {STATEFULSETS.group_resource, CONTROLLER_REVISIONS.group_resource}
LIMITED: Final = {PODS.group_resource, LEADERWORKERSETS.group_resource}
"""The kinds that managers may patch if restarts are limited, for evidence and counts."""

DELETED: Final = {PODS.group_resource, CONTROLLER_REVISIONS.group_resource, STATEFULSETS.group_resource}


class Invariants:
    """Checks during a simulation. `excuse` and `tolerate` record damage by users and machines."""

    created = CREATED
    """The kinds that managers may create."""
    deleted = DELETED
    """The kinds that managers may delete."""
    patched = PATCHED
    """The kinds that managers may patch."""
    has_lost_revision = False
    """Whether a user deleted a managed revision."""
    events: Sequence[str] = ()
    """The messages of events about replaced leaders."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.violations: list[str] = []
        self.steps = 0
        self.recreations = 0
        self.facts = Facts()
        self.budgets = Budgets(self.facts)
        self.releases = Releases(self.facts)
        self.lost: Callable[[str, float], int] = lambda leader, since: 0
        """Returns the number of writes for a leader and its recreation records that have failed since then."""
        self.interrupted: Callable[[float, float], bool] = lambda begin, end: False
        """Returns whether a manager was interrupted between two points in time."""
        self.refused: Callable[[str, float], bool] = lambda path, since: False
        """Returns whether a controller's write to the object at a path failed with a conflict since then."""
        self._clock = clock
        self.lag = 0.0
        """The delay of observers in seconds.

        A manager may not have observed groups that became available more recently.
        """
        self._available: set[Index] = set()
        self._available_since: dict[Index, float] = {}
        self._excused: set[Index] = set()
        self._is_tolerant = False
        self._recent: dict[tuple[Index, str], deque[float]] = defaultdict(deque)
        self._unrecorded: dict[str, list[float]] = defaultdict(list)
        """The times at which interrupted managers deleted leaders without recording it."""
        self._recorded: set[str] = set()
        self._deleting: dict[int, tuple[str, Target, JSONObject]] = {}
        for resource in KEPT:
            for value in store.list(resource.group_resource):
                self.facts.put(resource.group_resource, msgspec.json.decode(value))
        self._available = self._now_available()
        self._holder = ""
        for value in store.list(LEASES.group_resource):
            self._holder = _holder(msgspec.json.decode(value))
        store.subscribe(self._committed)

    @property
    def is_ambiguous(self) -> bool:
        """Return whether the original revision of groups is unknown.

        A lost revision is recreated from the spec (R-REV-10).
        """
        return self.has_lost_revision and self.facts.has_rolled

    def excuse(self, *uids: str) -> None:
        """Do not check the limits for the groups of these pods until the groups are complete again."""
        self.facts.hurt.update(uids)
        self._excused |= {index for index, group in self.facts.groups().items() if group.is_hurt}

    def tolerate(self) -> None:
        """Stop checking availability limits, because a user changes managed objects."""
        self._is_tolerant = True
        self.budgets.is_meddled = True

    def unanswered_failures(self) -> list[str]:
        """Return the groups that were not recreated in a stable state although a container was restarted."""
        policies = {spec["leaderWorkerTemplate"].get("restartPolicy") for spec in self.facts.specs}
        if policies != {"RecreateGroupOnPodRestart"}:
            return []
        groups = sorted(self.facts.groups().items())
        return [f"group {index} was not recreated, though a container of it restarted"
                for index, group in groups if any(map(has_restarted, (group.leader, *group.workers)))
                and not groupname.is_exhausted(group.leader)]  # fmt: skip

    def wrong_notes(self) -> list[str]:
        """Return the pods with incorrect annotations of in-place restarts, and the late remaining pods.

        The system is in a stable state.

        Deleted pods of exhausted groups are kept, and get no notes any more.
        """
        policies = {spec["leaderWorkerTemplate"].get("restartPolicy") for spec in self.facts.specs}
        pods = self.facts.objects.get(PODS.group_resource, {}) if self.facts.has_tolerated else {}
        if not policies <= RECREATING:
            return []
        found = [
            (name, pod, restartannotation.read(pod))
            for name, pod in sorted(pods.items())
            if FOREIGN not in meta.annotations(pod) and not meta.is_deleting(pod)
        ]
        return [f"the note {note} of {name} is wrong at rest" for name, pod, note in found
                if note.started_at is not None or note.restarts < restarts_in_place(pod)]  # fmt: skip

    def closed_gates(self) -> list[str]:
        """Return the leaders that still wait for their nodes in a stable state."""
        pods = self.facts.objects.get(PODS.group_resource, {}) if self.facts.has_stayed else {}
        return [f"the gate of {name} was not opened" for name, pod in sorted(pods.items())
                if isinstance(index_of(pod), int) and meta.spec(pod).get("schedulingGates")
                and FOREIGN not in meta.annotations(pod)]  # fmt: skip

    # The changes that the API server commits.

    def _committed(self, changes: Sequence[Change]) -> None:
        try:
            for change in changes:
                self.steps += 1
                self._step(change)
                for text in () if self.has_lost_revision else revisions.without_content(self.facts, change):
                    self._violate(text)
        except Exception as error:  # noqa: BLE001 - the store would only log it
            self.violations.append(f"the check itself broke: {error!r}")

    def _step(self, change: Change) -> None:
        facts = self.facts
        if change.key.namespace != NAMESPACE:
            return
        if change.type == "DELETED":
            facts.remove(change.key.resource, change.object)
        else:
            facts.put(change.key.resource, change.object)
            if change.key.resource == PODS.group_resource:
                for text in self.budgets.kept(change.object):
                    self._violate(text)
        if change.key.resource == LEASES.group_resource:
            self._holder = _holder(change.object)
        elif change.key.resource == LEADERWORKERSETS.group_resource:
            self._new_spec(change)
            for text in self.budgets.counted(change.object):
                self._violate(text)
        elif change.key.resource in (PODS.group_resource, STATEFULSETS.group_resource):
            self._check_groups(change)

    def _new_spec(self, change: Change) -> None:
        if change.type == "DELETED" or meta.is_deleting(change.object):
            self.facts.specs.clear()
            self._excused.clear()
            self._available.clear()
            self._recent.clear()
            self.budgets.ended()

    def _check_groups(self, change: Change) -> None:
        self._judge(self.facts.groups(), change)

    def _judge(self, groups: dict[Index, Group], change: Change) -> None:
        now = self._clock.monotonic()
        self._check_revisions(groups, change)
        self.releases.observe(groups.values(), now)
        groups = {index: group for index, group in groups.items() if self.facts.is_current(group)}
        available = {index for index, group in groups.items() if self._is_up(group)}
        self._excused |= {index for index, group in groups.items() if group.is_hurt}
        known = {index for index in self._available if self._available_since.get(index, 0.0) <= now - self.lag}
        lost = known - available - self._excused
        begun = {index for index in available - self._available if not self.facts.is_released(groups[index])}
        self._available_since |= dict.fromkeys(begun, now)
        self._available = self._available & available | begun
        self._excused -= {index for index in available if index in groups and not groups[index].is_hurt}
        if not self.facts.specs or self._is_tolerant:
            return
        starting = {index for index, group in groups.items() if self.facts.may_be_broken(group)}
        if lost and len(available | self._excused | starting) < self.facts.floor():
            self._violate(
                f"groups {sorted(lost, key=str)} were taken down by {what(change)}: {len(available)} available,"
                f" {self.facts.floor()} must be"
            )
        leaders = self._leaders(groups.values())
        if leaders > self._ceiling():
            self._violate(f"{leaders} leaders after {what(change)}, at most {self._ceiling()} may be")

    def _ceiling(self) -> int:
        """Return the maximum number of leaders."""
        return self.facts.ceiling()

    def _leaders(self, groups: Iterable[Group]) -> int:
        """Return the number of leaders that are not being deleted."""
        return sum(not meta.is_deleting(group.leader) for group in groups)

    def _check_revisions(self, groups: dict[Index, Group], change: Change) -> None:
        for index, group in groups.items():
            ready = [pod for pod in (group.leader, *group.workers) if is_ready(pod)]
            found = {meta.labels(pod).get(labels.TEMPLATE_REVISION_HASH) for pod in ready}
            if len(found) > 1:
                self._violate(f"group {index} has ready pods of {sorted(map(str, found))} after {what(change)}")
            images = {meta.spec(pod)["containers"][0]["image"] for pod in ready}
            if len(images) > 1 and not self.facts.has_leader_templates and not self.is_ambiguous:
                self._violate(f"group {index} has ready pods that run {sorted(images)} after {what(change)}")

    def _now_available(self) -> set[Index]:
        return {index for index, group in self.facts.groups().items() if self._is_up(group)}

    def _is_up(self, group: Group) -> bool:
        """Return whether a group is available with respect to the rollout limits."""
        return group.is_available

    # What managers write.

    def arriving(self, actor: str, request: Request) -> None:
        """Check a write of a manager against the current objects of the API server."""
        if not actor.startswith("manager"):
            return
        target = read_target(request)
        if target is None:
            return
        for text in () if self._is_tolerant else self.releases.given_up(target, request, self._clock.monotonic()):
            self._violate(text)
        if self._holder not in ("", actor):
            self._violate(f"{actor} writes {target} while {self._holder} leads")
        known = self.facts.find(target)
        if known is not None and FOREIGN in meta.annotations(known) and request.method == "DELETE":
            self._violate(f"{actor} deletes {target}, which is not ours")
        if request.method == "DELETE":
            self._check_deletion(actor, target, request, known)
        elif request.method == "POST":
            self._check_creation(actor, target, request)
        elif request.method == "PUT":
            self._check_status(actor, target, request)
        elif target.resource not in self._patchable():
            self._violate(f"{actor} patches {target}")

    def _patchable(self) -> Collection[str]:
        """Return the kinds that managers may patch, for evidence, restart annotations and leader gates."""
        pods = {PODS.group_resource} if self.facts.has_stayed or self.facts.has_tolerated else set[str]()
        return self.patched | pods | (LIMITED if self.facts.has_limited else set[str]())

    def answered(self, actor: str, request: Request, response: Response) -> None:
        """Count a completed deletion of a leader, and record a write to a foreign object."""
        target = read_target(request) if actor.startswith("manager") else None
        if target is None:
            return
        pending = self._deleting.pop(id(request), None)
        if response.status < 300 and pending is not None:
            self._note_recreation(*pending)
        if request.method == "PATCH" and response.status < 300:
            self._recorded.add(target.name.removesuffix(SUFFIX))
            answer = msgspec.json.decode(response.body)
            if FOREIGN in meta.annotations(answer):
                self._violate(f"{actor} took over {target}, which is not ours")

    def _check_deletion(self, actor: str, target: Target, request: Request, known: JSONObject | None) -> None:
        options = msgspec.json.decode(request.body) if request.body else {}
        uid = (options.get("preconditions") or {}).get("uid")
        if target.resource not in self.deleted:
            self._violate(f"{actor} deletes {target}")
        if not uid:
            self._violate(f"{actor} deletes {target} whatever its UID")
        if known is None or meta.uid(known) != uid or meta.is_deleting(known):
            return
        if target.resource == STATEFULSETS.group_resource:
            self._check_workers_deletion(actor, target, known)
        if target.resource == PODS.group_resource:
            self._check_leader_deletion(actor, target, request, known)
            if options.get("gracePeriodSeconds") == 0:
                self._violate(f"{actor} deletes {target} without waiting for its processes")

    def _check_workers_deletion(self, actor: str, target: Target, workers: JSONObject) -> None:
        leader = self.facts.objects.get(PODS.group_resource, {}).get(
            (meta.controller_of(workers) or {}).get("name", "")
        )
        if leader is not None and meta.is_controlled(workers, leader) and not meta.is_deleting(leader):
            self._violate(f"{actor} deletes {target}, whose leader lives")
        sets = self.facts.objects.get(LEADERWORKERSETS.group_resource, {}).values()
        known = {meta.annotations(obj).get(labels.POD_TERMINATION_POLICY) for obj in (workers, *sets)}
        if "Parallel" not in known | {meta.spec(obj).get("podTerminationPolicy") for obj in sets}:
            self._violate(f"{actor} deletes {target}, which shall end after its leader")

    def _check_leader_deletion(self, actor: str, target: Target, request: Request, leader: JSONObject) -> None:
        group = self.facts.group_of(leader)
        if group is None:
            self._violate(f"{actor} deletes {target}, which leads no group")
            return
        if self.facts.is_outdated(leader) or inplacegroups.is_rejected(leader):
            return
        if not group.has_failed:
            self._violate(f"{actor} recreates group {group.index}, none of whose pods failed: {target}")
        if not self.facts.has_recreated:
            self._violate(f"{actor} recreates group {group.index} against the restart policy")
        self._deleting[id(request)] = (actor, target, leader)

    def _note_recreation(self, actor: str, target: Target, leader: JSONObject) -> None:
        self.recreations += 1
        for text in self.budgets.restarted(leader):
            self._violate(text)
        index = index_of(leader)
        recent = self._recent[index, meta.labels(leader).get(labels.TEMPLATE_REVISION_HASH, "")]
        now = self._clock.monotonic()
        if recent and target.name not in self._recorded and self.interrupted(recent[-1], now):
            self._unrecorded[target.name].append(now)
        self._recorded.discard(target.name)
        recent.append(now)
        while recent[0] < now - WINDOW:
            recent.popleft()
        unrecorded = sum(at >= recent[0] for at in self._unrecorded[target.name])
        if len(recent) > STORM + unrecorded + self.lost(target.name, recent[0]):
            self._violate(f"{actor} recreated {target} {len(recent)} times in {WINDOW:.0f} s")

    def _check_creation(self, actor: str, target: Target, request: Request) -> None:
        if target.resource not in self.created:
            self._violate(f"{actor} creates {target}")
            return
        sent = msgspec.json.decode(request.body)
        owner = meta.controller_of(sent)
        if owner is None or self.facts.identities.get(owner["uid"]) != (owner["kind"], owner["name"]):
            self._violate(f"{actor} creates {target} for {owner}, which never was")

    def _check_status(self, actor: str, target: Target, request: Request) -> None:
        sent = msgspec.json.decode(request.body)
        if target.resource != LEADERWORKERSETS.group_resource or target.subresource != "status":
            self._violate(f"{actor} replaces {target}")
        elif not meta.resource_version(sent):
            self._violate(f"{actor} replaces the status of {target} whatever its version")

    def _violate(self, text: str) -> None:
        self.violations.append(f"{self._clock.monotonic():.3f}  {text}")


def is_ready(pod: JSONObject) -> bool:
    """Return whether a pod is ready and not being deleted."""
    return meta.is_condition_true(pod, "Ready") and not meta.is_deleting(pod)


def _holder(lease: JSONObject) -> str:
    return str(meta.spec(lease).get("holderIdentity") or "")


def what(change: Change) -> str:
    """Return a description of a change."""
    return f"{change.type} {change.key.resource} {change.key.name}"
