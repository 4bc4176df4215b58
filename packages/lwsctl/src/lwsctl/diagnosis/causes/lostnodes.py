"""Finds missing or unready nodes, and pods that do not terminate. Pure."""

from datetime import timedelta
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import NODES
from leaderworkerset.api import labels
from lwsctl.diagnosis import ranks
from lwsctl.diagnosis.finding import Finding, cause
from lwsctl.diagnosis.observed import Observed
from lwsctl.model.diagnosis import Person
from lwsctl.model.groups import Rank
from lwsctl.model.health import Verdict
from lwsctl.views.wording import duration

OVERDUE: Final = timedelta(seconds=30)
"""The maximum time that a pod may exist after the end of its grace period."""

SLOW: Final = timedelta(seconds=10)
"""The time after which the termination of a pod is reported as slow."""

EXPLAINED: Final = frozenset({"foregroundDeletion", "orphan", labels.GROUP_RESTART_BUDGET_CLEANUP})
"""Finalizers with separate causes, which are finalizers of the garbage collector and of exhausted groups."""


@cause(
    code="LWS-E050",
    title="the node of a pod does not exist",
    meaning="Pods are bound to a node that no longer exists.",
    person=Person.ADMINISTRATOR,
    remedy="Kubernetes deletes pods of missing nodes after a delay. To delete a pod immediately, use `kubectl delete pod --force`.",
)
def find_missing_node(observed: Observed) -> Finding | None:
    """Find pods on a node that no longer exists."""
    if not observed.was_read(NODES):
        return None
    lost = [rank for _, rank in observed.unready_ranks if rank.node and rank.node not in observed.nodes]
    if not lost:
        return None
    rank = lost[0]
    return Finding(
        subject=ranks.pod_subject(rank),
        sentence=f"node {rank.node} of pod {rank.pod} no longer exists{ranks.others_suffix(len(lost))}",
        evidence=(f"{rank.pod}: spec.nodeName {rank.node}; the Node does not exist",),
        steps=(
            "wait until the cluster deletes the pods of this node",
            f"or delete the pod now: {observed.kubectl(f'delete pod {rank.pod} --force --grace-period=0')}",
        ),
    )


@cause(
    code="LWS-E051",
    title="the node of a pod is not ready",
    meaning="The kubelet does not report the status of a node, or reports that the node cannot run pods.",
    person=Person.ADMINISTRATOR,
    remedy="Repair or restart the node. If the node is switched off permanently, delete its Node object. To recover groups on other nodes automatically, set the annotation release-lost-pods-after.",
)
def find_unready_node(observed: Observed) -> Finding | None:
    """Find pods on a node whose kubelet does not send heartbeats, or reports that the node is not ready."""
    sick = [
        (rank, why) for _, rank in observed.unready_ranks if (why := _unready_reason(observed.nodes.get(rank.node)))
    ]
    if not sick:
        return None
    rank, why = sick[0]
    return Finding(
        subject=ranks.pod_subject(rank),
        sentence=f"node {rank.node} of pod {rank.pod} is not ready{ranks.others_suffix(len(sick))}: {why}",
        evidence=(f"Node {rank.node}: {why}", f"{rank.pod}: {rank.state}"),
        steps=(
            f"{observed.commands.lws} nodes {rank.node}",
            f"if the node is switched off permanently: {observed.plain_kubectl} delete node {rank.node}",
        ),
    )


def _unready_reason(node: JSONObject | None) -> str:
    if node is None:
        return ""
    ready = meta.find_condition(node, "Ready")
    if ready is None or ready.get("status") == "True":
        return ""
    message = ranks.quote_message(str(ready.get("message") or ready.get("reason") or "no reason reported"))
    return f"Ready is {ready.get('status')}: {message}"


@cause(
    code="LWS-E052",
    title="a finalizer blocks the deletion of a pod",
    meaning="A pod is terminating, but a finalizer blocks its deletion. The replacement pod cannot be created until the pod is deleted.",
    remedy="Find out which component should remove the finalizer, and why the finalizer still exists.",
)
def find_blocking_finalizer(observed: Observed) -> Finding | None:
    """Find a pod whose deletion a finalizer blocks."""
    for rank in observed.ranks_at(ranks.is_terminating):
        names = [name for name in meta.metadata(rank.object or {}).get("finalizers") or [] if name not in EXPLAINED]
        late = _overdue_time(observed, rank)
        if names and late is not None:
            finalizers = ", ".join(names)
            return Finding(
                subject=ranks.pod_subject(rank),
                sentence=f"pod {rank.pod} is terminating, and finalizer {finalizers} has blocked its deletion for {duration(late)}",
                evidence=(f"{rank.pod}: metadata.finalizers: {finalizers}",),
                steps=(f"find out which component removes {finalizers}, and why it has not done so",),
            )
    return None


@cause(
    code="LWS-E053",
    title="a pod does not terminate",
    meaning="The grace period of a pod has expired, but the node has not terminated the containers.",
    person=Person.ADMINISTRATOR,
    remedy="Repair the node. Force the deletion of the pod only if you are sure that its processes have stopped.",
)
def find_overdue_termination(observed: Observed) -> Finding | None:
    """Find a pod that still exists long after the end of its grace period."""
    for rank in observed.ranks_at(ranks.is_terminating):
        late = _overdue_time(observed, rank)
        foreground = meta.metadata(rank.object or {}).get("finalizers")
        if late is not None and late >= OVERDUE and not foreground:
            return Finding(
                subject=ranks.pod_subject(rank),
                sentence=f"the grace period of pod {rank.pod} expired {duration(late)} ago, but node {rank.node or '(none)'} has not terminated it",
                evidence=(
                    f"{rank.pod}: deletionTimestamp {meta.metadata(rank.object or {}).get('deletionTimestamp')}",
                ),
                steps=(
                    f"{observed.commands.lws} nodes {rank.node}",
                    "only if you are sure that its processes have stopped: "
                    + observed.kubectl(f"delete pod {rank.pod} --force --grace-period=0"),
                ),
            )
    return None


@cause(
    code="LWS-E121",
    title="a pod is terminating",
    meaning="A pod is terminating, but its container is still running. The kubelet kills the container when the grace period expires.",
    remedy="Wait. To terminate pods faster, handle SIGTERM in the program, or reduce terminationGracePeriodSeconds in the pod template.",
    verdict=Verdict.PROGRESSING,
)
def find_slow_termination(observed: Observed) -> Finding | None:
    """Find a pod that terminates slowly but is still within its grace period."""
    for rank in observed.ranks_at(ranks.is_terminating):
        metadata = meta.metadata(rank.object or {})
        grace = timedelta(seconds=int(metadata.get("deletionGracePeriodSeconds") or 0))
        late = observed.time_since(metadata.get("deletionTimestamp"))
        if late is None or late >= timedelta() or grace + late < SLOW or not rank.node:
            continue
        return Finding(
            subject=ranks.pod_subject(rank),
            sentence=f"pod {rank.pod} has been terminating for {duration(grace + late)} (grace period {duration(grace)}); node {rank.node} kills its containers "
            f"in {duration(-late)}",
            evidence=(f"{rank.pod}: terminating, until {metadata.get('deletionTimestamp')} at the latest",),
            steps=(
                observed.lws(f"wait {observed.view.name}"),
                f"handle SIGTERM in the program, or reduce terminationGracePeriodSeconds in {observed.template}",
                f"to terminate it now: {observed.kubectl(f'delete pod {rank.pod} --grace-period=1')}",
            ),
        )
    return None


def _overdue_time(observed: Observed, rank: Rank) -> timedelta | None:
    late = observed.time_since(meta.metadata(rank.object or {}).get("deletionTimestamp"))
    return late if late is not None and late > timedelta() else None
