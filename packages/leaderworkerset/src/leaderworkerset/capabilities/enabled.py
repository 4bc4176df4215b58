"""Lists the capabilities of this project, and their hooks for LeaderWorkerSets and groups.

A new capability adds a row to `ENABLED`, and calls to `SETS` or `GROUPS`. The order of the rows does not matter.
`core/extensions.py` defines the order of the calls. A capability must not change plans if an object has neither a
setting nor a mark of the capability.
"""

from datetime import datetime
from typing import Final

from msgspec.structs import replace

from kuberuntime.objects.podresources import COMPUTE
from kuberuntime.plan import Action
from leaderworkerset.api import labels, runsettings
from leaderworkerset.api.conditions import MOVE_IN_PROGRESS
from leaderworkerset.capabilities import names
from leaderworkerset.capabilities.backoff import backoffsettings
from leaderworkerset.capabilities.completion import runtocompletion
from leaderworkerset.capabilities.disruption import disruptionsettings
from leaderworkerset.capabilities.history import revisionhistory
from leaderworkerset.capabilities.inplace import inplace, inplacegroups, inplacesteps
from leaderworkerset.capabilities.lostnodes import forcedeletion
from leaderworkerset.capabilities.moves import maintenancesettings, moves
from leaderworkerset.capabilities.preferrednodes import previousnodes
from leaderworkerset.capabilities.restartinplace import allcontainers
from leaderworkerset.capabilities.termination import termination
from leaderworkerset.core.extensions import Extensions, GroupHook, SetHook, combine
from leaderworkerset.core.leaderworkerset.decision import LeaderDecision, SetFacts
from leaderworkerset.core.policies.policy import LiveGroup


class Capability(Extensions, frozen=True, kw_only=True):
    """A capability with its name, documentation page, annotations, and rows in the tables of several capabilities.

    If `wakes_groups` is set, a change of its settings triggers a decision about each group of the LeaderWorkerSet. If
    `follows_progress` is not set, its decisions do not depend on the progress of a start or termination.
    `pod_marks` and `statefulset_marks` are annotations. `fields` are optional spec fields that its decisions about
    groups read. `pod_fields` and `statefulset_fields` are paths that only its decisions read, not the core. Caches keep
    these fields and the marks.
    """

    name: str
    page: str
    settings: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    pod_marks: tuple[str, ...] = ()
    statefulset_marks: tuple[str, ...] = ()
    wakes_groups: bool = False
    follows_progress: bool = True
    pod_fields: tuple[str, ...] = ()
    statefulset_fields: tuple[str, ...] = ()


COMPUTE_AMOUNTS: Final = tuple(f"{kind}.{name}" for kind in ("limits", "requests") for name in COMPUTE)
"""CPU and memory, which can be changed in place."""

ENABLED: Final = (
    Capability(
        name=names.BACKOFF,
        page="how-to/restarts.md",
        settings=backoffsettings.ANNOTATIONS,
        wakes_groups=True,
        follows_progress=False,
        errors=(backoffsettings.errors,),
        warnings=(backoffsettings.warnings,),
    ),
    Capability(
        name=names.LOST_NODES,
        page="how-to/restarts.md",
        settings=(labels.RELEASE_LOST_PODS_AFTER,),
        wakes_groups=True,
        errors=(forcedeletion.errors,),
    ),
    Capability(
        name="completion",
        page="how-to/progress.md",
        settings=runsettings.ANNOTATIONS,
        wakes_groups=True,
        pod_marks=(labels.GROUP_ENDED, labels.HANG),
        errors=(runsettings.errors,),
        excuses=(runtocompletion.excuses,),
        fault_finders=(runtocompletion.find_hang,),
    ),
    Capability(
        name="termination",
        page="how-to/places-and-ends.md",
        settings=(labels.POD_TERMINATION_POLICY,),
        fields=(termination.FIELD,),
        wakes_groups=True,
        statefulset_marks=(labels.POD_TERMINATION_POLICY,),
        errors=(termination.errors,),
    ),
    Capability(
        name="update-in-place",
        page="how-to/in-place.md",
        settings=(labels.IN_PLACE,),
        pod_marks=(
            labels.IN_PLACE_REVISION,
            labels.IN_PLACE_STATEFULSET_REVISION,
            labels.IN_PLACE_REFUSED,
            labels.IN_PLACE_BEFORE,
            labels.IN_PLACE_RESOURCES,
        ),
        pod_fields=(
            "spec.containers[].image",
            "status.containerStatuses[].containerID",
            "status.containerStatuses[].state.running",
            *(f"spec.containers[].resources.{amount}" for amount in COMPUTE_AMOUNTS),
            *(f"status.containerStatuses[].resources.{amount}" for amount in COMPUTE_AMOUNTS),
        ),
        errors=(inplace.errors,),
        excuses=(inplacegroups.excuses,),
    ),
    Capability(
        name="restart-in-place",
        page="how-to/in-place.md",
        settings=(labels.IN_PLACE_RESTARTS,),
        wakes_groups=True,
        pod_marks=(labels.RESTARTED_IN_PLACE,),
        errors=(allcontainers.errors,),
        excuses=(allcontainers.excuses,),
        fault_finders=(allcontainers.find_overdue_pod,),
    ),
    Capability(
        name="places",
        page="how-to/places-and-ends.md",
        settings=(labels.STAY_ON_NODES,),
        statefulset_fields=(f"spec.template.metadata.annotations['{labels.STAY_ON_NODES}']",),
        errors=(previousnodes.errors,),
    ),
    Capability(
        name=names.DISRUPTION,
        page="how-to/drain.md",
        settings=(labels.DISRUPTION_BUDGET, labels.DO_NOT_DISRUPT),
        errors=(disruptionsettings.errors,),
        warnings=(disruptionsettings.warnings,),
    ),
    Capability(
        name=names.MOVES,
        page="how-to/drain.md",
        settings=(labels.MOVE_OFF_CLOSED_NODES,),
        errors=(maintenancesettings.errors,),
    ),
    Capability(
        name="history",
        page="how-to/roll-out-and-back.md",
        settings=(labels.REVISION_HISTORY_LIMIT,),
        warnings=(revisionhistory.warnings,),
    ),
)


def _prepare(facts: SetFacts) -> SetFacts:
    route, group_summary = inplace.find_current_route(facts)
    return replace(facts, route=route, group_summary=moves.with_moving_groups(facts, group_summary))


def _complete(facts: SetFacts, leaders: LeaderDecision, now: datetime) -> LeaderDecision:
    return moves.decide(facts, inplace.decide(facts, leaders), now)


SETS: Final = SetHook(
    settings=frozenset(name for capability in ENABLED for name in capability.settings),
    conditions=frozenset({MOVE_IN_PROGRESS.type}),
    prepare=_prepare,
    deletes_leaders=moves.deletes_leaders,
    expire=runtocompletion.expire,
    leader_annotations=previousnodes.gate_annotations,
    complete=_complete,
    retire=revisionhistory.retire_revisions,
)


def _final_actions(group: LiveGroup) -> tuple[Action, ...]:
    return (*inplacesteps.decide(group).actions, *previousnodes.record_nodes(group))


GROUPS: Final = GroupHook(
    policy=previousnodes.POLICY,
    describe=inplacegroups.mark_updating,
    required_nodes=forcedeletion.required_nodes,
    without_set=termination.delete_workers,
    first=forcedeletion.decide,
    before_evidence=runtocompletion.preserve_finished_group,
    before_deletion=termination.delete_workers,
    before_restart=runtocompletion.finish,
    restarts=backoffsettings.group_settings,
    prefer=previousnodes.leader_preferences,
    worker_annotations=previousnodes.worker_annotations,
    last=_final_actions,
)

EXTENSIONS: Final = combine(ENABLED, SETS, GROUPS)
"""The combination of all capabilities."""

WAKING_GROUPS: Final = tuple(name for capability in ENABLED if capability.wakes_groups for name in capability.settings)
"""The LeaderWorkerSet annotations that trigger a reconciliation of each group if they change."""

WAKING_FIELDS: Final = tuple(name for capability in ENABLED if capability.wakes_groups for name in capability.fields)
"""The spec fields that trigger a reconciliation of each group if they change."""
