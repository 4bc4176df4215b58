"""Finds pods for which an autoscaler adds nodes, or reports why it cannot add nodes. Pure.

While an autoscaler adds nodes, the verdict is progress. Later, the cause is based on the scheduler's message. `with_autoscaler_note`
adds the autoscaler's reason and the next step.
"""

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from msgspec.structs import replace

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource
from kuberuntime.texts.masking import mask_message
from lwsctl.diagnosis import ranks
from lwsctl.diagnosis.finding import Find, Finding, cause
from lwsctl.diagnosis.observed import Observed
from lwsctl.diagnosis.patterns import READ
from lwsctl.diagnosis.ranks import is_unscheduled
from lwsctl.model.events.scaleups import NODE_PATIENCE, NodeRequest, added_text, node_request
from lwsctl.model.groups import Rank
from lwsctl.model.health import Verdict
from lwsctl.views.wording import duration, format_count

NODE_CLAIMS: Final = Resource("karpenter.sh", "v1", "nodeclaims", "NodeClaim", namespaced=False)

REMEDIES: Final = (
    (r"max node group size reached", "increase the maximum size of a node group of {component}"),
    (
        r"exceed limits? for nodepool \"(?P<pool>[^\"]+)\"|would exceed limit",
        "increase spec.limits of NodePool {pool}, or delete pods that use its nodes",
    ),
    (r"max total nodes|max cluster .* limit", "increase the limits of {component} for the whole cluster"),
    (r"(?i)ip space exhausted", "increase the pod address range of the node pool"),
    (
        r"(?i)quota|vcpulimit",
        "increase the quota of the cloud account, or use a machine type for which quota is available",
    ),
    (
        r"(?i)out of resources|capacity|stockout|pool_exhausted",
        "allow other zones, machine types or capacity types, or wait until the cloud provider has capacity",
    ),
    (
        r"in backoff after failed scale-up",
        "read the log of {component} and the node group errors, because the cloud provider rejected a node",
    ),
    (
        r"Insufficient ([^\s,.]+)",
        "add a node group with a larger machine type, or reduce the requests of the pod",
    ),
    (r"taint", "add a toleration for the taint of the node group to {template}"),
    (
        r"(?i)no instance type|incompatible|known values|node affinity|selector",
        "allow a suitable machine type in a NodePool or node group, or change the requirements of the pod",
    ),
)
"""Next steps for patterns in the autoscaler's reason. The first match applies."""

REMEMBERED: Final = timedelta(minutes=20)
"""The period in which a deleted pod and node can explain the state of a group."""

OTHERWISE: Final = "read the log of {component} to find the reason why it does not add a node"


def node_requests(observed: Observed) -> Iterator[tuple[Rank, NodeRequest]]:
    """Yield the latest response of the autoscaler for each rank that waits for a node."""
    for rank in observed.ranks_at(is_unscheduled):
        request = node_request(observed.warnings.of_pod(observed.view.namespace, rank))
        if request is not None:
            yield rank, request


def nominated_node_claims(observed: Observed) -> set[str]:
    """Return the names of the NodeClaims that were created for waiting ranks."""
    return {name for _, request in node_requests(observed) for name in request.claims}


@cause(
    code="LWS-E108",
    title="an autoscaler is adding nodes",
    meaning="An autoscaler is adding nodes, which can take several minutes. If no node is added within 15 minutes (`--node-patience`), the diagnosis reports the message of the scheduler.",
    remedy="Wait.",
    verdict=Verdict.PROGRESSING,
    patience=NODE_PATIENCE,
)
def find_scale_up(observed: Observed) -> Finding | None:
    """Find ranks that wait for nodes if autoscalers add nodes in time for all of these ranks."""
    known = list(node_requests(observed))
    late = [request for _, request in known if request.is_refused or _age(observed, request) >= _patience(observed)]
    if not known or late:
        return None
    rank, request = max(known, key=lambda pair: pair[1].last)
    return Finding(
        subject=ranks.pod_subject(rank),
        sentence=f"{added_text(request, observed.now)} for pod {rank.pod}{ranks.others_suffix(len(known))}",
        evidence=(f"{rank.pod}: {ranks.quote_message(rank.why)}", *_claim_states(observed, request)),
        steps=(
            f"wait; if no node is added within {duration(_patience(observed) - _age(observed, request))}, the group is reported as stuck",
            observed.lws(f"wait {observed.view.name}"),
        ),
    )


def _age(observed: Observed, request: NodeRequest) -> timedelta:
    return observed.now - request.last


def _patience(observed: Observed) -> timedelta:
    return observed.commands.node_patience


def _claim_states(observed: Observed, request: NodeRequest) -> tuple[str, ...]:
    """Return the states of the requested NodeClaims, if they were read."""
    if not observed.was_read(NODE_CLAIMS):
        return ()
    return tuple(f"NodeClaim {name}: {_claim_state(observed.by_name(NODE_CLAIMS, name))}" for name in request.claims)


def _claim_state(claim: JSONObject | None) -> str:
    """Return the progress of a NodeClaim, whose conditions become True in sequence."""
    if claim is None:
        return "no longer exists"
    for kind in ("Launched", "Registered", "Initialized"):
        condition = meta.find_condition(claim, kind) or {}
        if condition.get("status") != "True":
            message = mask_message(str(condition.get("message") or condition.get("reason") or ""))
            return f"not {kind} yet" + (f": {ranks.quote_message(message)}" if message else "")
    return f"node {meta.status(claim).get('nodeName')} exists"


REMOVALS: Final = frozenset({"ScaleDown", "Disrupted", "Evicted"})


def removing_autoscaler(observed: Observed, pod: str) -> str:
    """Return the autoscaler that recently removed the node of the named pod, or an empty string if none did."""
    events = [
        event
        for event in observed.warnings.of_any_type(observed.view.namespace, "Pod", pod)
        if event.reason in REMOVALS and not event.is_warning and observed.now - event.last <= REMEMBERED
    ]
    newest = max(events, key=lambda event: event.last, default=None)
    if newest is None:
        return ""
    text = f"{newest.component or 'an autoscaler'} removed the node of {pod} ({ranks.quote_message(newest.message)})"
    return f"{text}; use a PodDisruptionBudget or a pod annotation to prevent this"


def with_autoscaler_note(find: Find) -> Find:
    """Return a function that adds to a finding why the autoscaler does not add a node, and the next step."""

    def with_reason(observed: Observed) -> Finding | None:
        finding = find(observed)
        known = list(node_requests(observed)) if finding else []
        rejected = next((request for _, request in known if request.is_refused), None)
        if finding is None or not known:
            return finding
        return _with_rejection(observed, finding, rejected) if rejected else _with_delay(observed, finding, known[0][1])

    return with_reason


def _with_rejection(observed: Observed, finding: Finding, request: NodeRequest) -> Finding:
    reason = ranks.quote_message(request.what)
    return replace(
        finding,
        sentence=f"{finding.sentence}; {request.component} did not add a node: {reason}",
        evidence=(*finding.evidence, f"{request.component}, {duration(_age(observed, request))} ago: {reason}"),
        steps=(remedy(observed, request), *finding.steps),
    )


def remedy(observed: Observed, request: NodeRequest) -> str:
    """Return the next step for an autoscaler's reason."""
    for pattern, step in REMEDIES:
        if match := re.search(pattern, request.what[:READ]):
            pool = match.groupdict().get("pool") or "of the pod"
            return step.format(component=request.component, pool=pool, template=observed.template)
    return OTHERWISE.format(component=request.component)


def _with_delay(observed: Observed, finding: Finding, request: NodeRequest) -> Finding:
    began = f"{request.component} started to add nodes ({request.what}) {duration(_age(observed, request))} ago, but the pod is still pending"
    step = f"check {format_count(len(request.claims), 'NodeClaim')}, " if request.claims else ""
    return replace(
        finding,
        sentence=f"{finding.sentence}; {began}",
        evidence=(*finding.evidence, *_claim_states(observed, request)),
        steps=(
            f"{step or 'check '}the log of {request.component}, and the errors of the cloud provider (quota, capacity) to find out why no node was added",
            *finding.steps,
        ),
    )
