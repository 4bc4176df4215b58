"""Finds pods that wait in queues or have scheduling gates, or whose scheduler is not running. Pure."""

from datetime import timedelta
from typing import Final

from kuberuntime.objects import meta, placement
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from leaderworkerset.decisions.nodefit import DEFAULT_SCHEDULER, GANG_PROVIDERS, linked_pod_group, scheduler_name
from lwsctl.diagnosis import ranks
from lwsctl.diagnosis.finding import Finding, cause
from lwsctl.diagnosis.observed import QUEUED_WORKLOADS, SERVED_BY_KUEUE, Observed
from lwsctl.model.diagnosis import Person
from lwsctl.model.groups import Rank
from lwsctl.model.health import Verdict
from lwsctl.views.wording import duration

GROUPED: Final = tuple((provider, kind) for provider in GANG_PROVIDERS.values() for kind in provider.group_objects)
"""The providers that use one object per group, and the kind of this object."""

IGNORED: Final = timedelta(seconds=5)
"""The time without a scheduler report on a pod after which no scheduler is considered responsible for it.

Usually, this takes a second.
"""

IDLE: Final = timedelta(minutes=1)
"""The time that the default scheduler may need to report on a pod in a busy cluster."""

STARTED: Final = frozenset({"Running", "Finished", "Completed"})
"""The PodGroup phases in which pods are allowed to start."""


def gate_names(rank: Rank) -> list[str]:
    """Return the scheduling gates of a rank's pod."""
    return [str(gate.get("name")) for gate in meta.spec(rank.object or {}).get("schedulingGates") or []]


@cause(
    code="LWS-E030",
    title="Kueue has not admitted the group",
    meaning="Kueue admits a group only if its queue has enough quota for the whole group.",
    person=Person.ADMINISTRATOR,
    remedy="If an admission check is pending, wait. Otherwise, increase the quota, or wait until quota is available. The Workload shows the missing resources.",
)
def find_queued_pods(observed: Observed) -> Finding | None:
    """Find pods that wait in a Kueue queue, and report the state of their Workloads."""
    gated = [
        rank
        for rank in observed.ranks_at(ranks.is_unscheduled)
        if any(gate.startswith(f"{SERVED_BY_KUEUE}/") for gate in gate_names(rank))
    ]
    if not gated:
        return None
    rank = gated[0]
    queue = meta.labels(observed.view.object).get(labels.QUEUE_NAME, "")
    messages = [text for workload in observed.get(QUEUED_WORKLOADS) if (text := _workload_wait_reason(workload, rank))]
    checks = [
        check
        for workload in observed.get(QUEUED_WORKLOADS)
        if _workload_wait_reason(workload, rank)
        for check in _pending_admission_checks(workload)
    ]
    reason = messages[0] if messages else "the Workload of the group does not exist"
    return Finding(
        subject=ranks.pod_subject(rank),
        sentence=f"Kueue has not admitted pod {rank.pod}{ranks.others_suffix(len(gated))} (queue {queue or 'none'}): {reason}",
        evidence=(f"{rank.pod} has scheduling gate {', '.join(gate_names(rank))}", *messages[:3]),
        steps=(
            observed.kubectl("get workloads.kueue.x-k8s.io"),
            observed.kubectl(f"describe localqueue {queue}".strip()),
        ),
        verdict=Verdict.PROGRESSING if checks and all(check.get("state") == "Pending" for check in checks) else None,
    )


def _pending_admission_checks(workload: JSONObject) -> list[JSONObject]:
    """Return pending admission checks of a Workload that has reserved quota, for example a ProvisioningRequest."""
    if not meta.is_condition_true(workload, "QuotaReserved"):
        return []
    return [check for check in meta.status(workload).get("admissionChecks") or [] if check.get("state") != "Ready"]


def _workload_wait_reason(workload: JSONObject, rank: Rank) -> str:
    """Return what a pod's Workload waits for. It is empty if the Workload is admitted or belongs to another pod."""
    pod_metadata = {**meta.annotations(rank.object or {}), **meta.labels(rank.object or {})}
    own = pod_metadata.get(f"{SERVED_BY_KUEUE}/prebuilt-workload-name")
    condition = meta.find_condition(workload, "Finished")
    if meta.name(workload) != own or (condition is None and meta.is_condition_true(workload, "Admitted")):
        return ""
    if condition is not None:
        return f"Workload {own} is finished; delete it, so that Kueue creates a new one"
    if checks := _pending_admission_checks(workload):
        texts = [
            f"admission check {check.get('name')} is {check.get('state')}: {ranks.quote_message(str(check.get('message') or 'no message'))}"
            for check in checks
        ]
        return f"Workload {own} has quota, and {'; '.join(texts)}"
    reservation = meta.find_condition(workload, "QuotaReserved") or {}
    text = ranks.quote_message(str(reservation.get("message") or "it is waiting in its queue"))
    return f"Workload {meta.name(workload)}: {text}"


@cause(
    code="LWS-E031",
    title="a scheduling gate blocks the pods",
    meaning="The pods have scheduling gates. The scheduler ignores a pod until all its gates are removed.",
    remedy="Find out which component should remove the gate. If the pod template contains the gate, remove it from the template.",
)
def find_gated_pods(observed: Observed) -> Finding | None:
    """Find pods whose scheduling gates must be removed by another component."""
    gated = [
        rank
        for rank in observed.ranks_at(ranks.is_unscheduled)
        if gate_names(rank) and not _waits_as_expected(observed, rank)
    ]
    if not gated:
        return None
    names = ", ".join(gate_names(gated[0]))
    search = f"find out which component removes scheduling gate {names}, and why it has not done so"
    return Finding(
        subject=ranks.pod_subject(gated[0]),
        sentence=f"scheduling gate {names} blocks pod {gated[0].pod}{ranks.others_suffix(len(gated))}",
        evidence=(f"{gated[0].pod}: spec.schedulingGates: {names}", *_invalid_node_terms(gated)[:3]),
        steps=(f"{observed.commands.lws} doctor" if names == labels.REPLACEMENT_GATE else search,),
    )


def _waits_as_expected(observed: Observed, rank: Rank) -> bool:
    """Return whether a pod waits as expected for other groups, or until the replaced group is deleted."""
    if gate_names(rank) != [labels.REPLACEMENT_GATE]:
        return False
    age = observed.time_since(rank.created)
    waits = labels.REPLACES in meta.annotations(rank.object or {}) or observed.view.is_updating
    return waits or age is None or age < IDLE


def _invalid_node_terms(gated: list[Rank]) -> list[str]:
    """Return the invalid node selector terms. They match no node and therefore block the built-in gate."""
    return [
        f"{rank.pod}: spec.affinity.nodeAffinity: {ranks.quote_message(term.error)}; no node matches this term"
        for rank in gated
        for term in placement.read_node_terms(meta.spec(rank.object or {})) or ()
        if term.error
    ]


@cause(
    code="LWS-E032",
    title="the whole group does not fit on the nodes",
    meaning="A gang scheduler starts a group only if all required pods fit at the same time.",
    person=Person.ADMINISTRATOR,
    remedy="Free resources for the whole group, or reduce the group size.",
)
def find_incomplete_gang(observed: Observed) -> Finding | None:
    """Find a group that its gang scheduler does not start, and report the state of its PodGroup."""
    for rank in observed.ranks_at(ranks.is_unscheduled):
        for provider, kind in GROUPED:
            for pod_group in observed.get(kind):
                if _is_of_group(pod_group, rank) and (reason := _missing_members_text(pod_group)):
                    name = f"{kind.kind} {meta.name(pod_group)}"
                    return Finding(
                        subject=ranks.pod_subject(rank),
                        sentence=f"{provider.name} does not start group {rank.group} as a whole: {reason}",
                        evidence=(f"{name}: {reason}", f"{rank.pod}: {ranks.quote_message(rank.why)}"),
                        steps=(
                            observed.kubectl(f"describe {kind.group_resource} {meta.name(pod_group)}"),
                            "free resources for the whole group",
                        ),
                    )
    return None


def _is_of_group(podgroup: JSONObject, rank: Rank) -> bool:
    """Return whether a PodGroup belongs to the group of the pod, or is referenced by the pod."""
    if name := linked_pod_group(rank.object or {}):
        return name == meta.name(podgroup)
    own = meta.labels(rank.object or {})
    marks = meta.labels(podgroup)
    return all(marks.get(key) == own.get(key) for key in (labels.NAME, labels.GROUP_INDEX)) and bool(marks)


def _missing_members_text(podgroup: JSONObject) -> str:
    status = meta.status(podgroup)
    phase = str(status.get("phase") or "")
    least = meta.spec(podgroup).get("minMember")
    rejections = [
        ranks.quote_message(str(condition.get("message") or condition.get("reason") or condition["type"]))
        for condition in status.get("conditions") or []
        if (condition.get("type") == "Unschedulable" and condition.get("status") == "True")
        or (
            condition.get("type") in {"Scheduled", "PodGroupScheduled", "PodGroupInitiallyScheduled"}
            and condition.get("status") == "False"
        )
    ]
    if rejections:
        return ranks.quote_message(rejections[-1])
    if not phase or phase in STARTED:
        return ""
    return f"phase {phase}" + (f", {least} pods must fit at the same time" if least else "")


def pods_without_report(observed: Observed) -> list[tuple[Rank, timedelta]]:
    """Return the pods without a scheduler report, and the time since they were created."""
    idle_ranks = []
    for rank in observed.ranks_at(ranks.is_unscheduled):
        age = observed.time_since(rank.created)
        is_unreported = meta.find_condition(rank.object or {}, "PodScheduled") is None and not rank.why
        if is_unreported and age is not None and age >= IGNORED:
            idle_ranks.append((rank, age))
    return idle_ranks


@cause(
    code="LWS-E033",
    title="the specified scheduler is not running",
    meaning="The pod template specifies a scheduler that is not running in the cluster.",
    remedy="Start the scheduler, or correct schedulerName.",
)
def find_unknown_scheduler(observed: Observed) -> Finding | None:
    """Find pods whose `schedulerName` refers to a scheduler that is not running."""
    ignored_ranks = [
        (rank, age, _scheduler_name(rank))
        for rank, age in pods_without_report(observed)
        if _scheduler_name(rank) != DEFAULT_SCHEDULER
    ]
    if not ignored_ranks:
        return None
    rank, age, scheduler = ignored_ranks[0]
    return Finding(
        subject=ranks.pod_subject(rank),
        sentence=f"no scheduler named {scheduler} has processed pod {rank.pod}{ranks.others_suffix(len(ignored_ranks))} for {duration(age)}",
        evidence=(f"{rank.pod}: spec.schedulerName {scheduler}, no condition PodScheduled",),
        steps=(f"start scheduler {scheduler}, or correct schedulerName in {observed.template}",),
    )


@cause(
    code="LWS-E034",
    title="the scheduler is not running",
    meaning="Pods are pending, but the scheduler has not tried to schedule them.",
    person=Person.ADMINISTRATOR,
    remedy="Make sure that kube-scheduler is running and is the leader.",
)
def find_missing_scheduler(observed: Observed) -> Finding | None:
    """Find pods that the default scheduler does not process."""
    ignored_ranks = [(rank, age) for rank, age in pods_without_report(observed) if age >= IDLE]
    if not ignored_ranks:
        return None
    rank, age = ignored_ranks[0]
    return Finding(
        subject=ranks.pod_subject(rank),
        sentence=f"the scheduler has not processed pod {rank.pod}{ranks.others_suffix(len(ignored_ranks))} for {duration(age)}",
        evidence=(f"{rank.pod} has no condition PodScheduled",),
        steps=(
            f"{observed.commands.lws} doctor",
            f"{observed.plain_kubectl} -n kube-system get pods -l component=kube-scheduler",
        ),
    )


def _scheduler_name(rank: Rank) -> str:
    return scheduler_name(meta.spec(rank.object or {}))
