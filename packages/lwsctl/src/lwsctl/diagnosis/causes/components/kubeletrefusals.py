"""Finds pods that the kubelet rejects at admission because of devices, NUMA nodes, resources or labels. Pure.

The StatefulSet controller immediately replaces a rejected pod, under the same name. Therefore, recent Warning events
about any pod with that name are considered.
"""

import re
from collections.abc import Sequence
from datetime import timedelta
from re import Match
from typing import Final

from kuberuntime.objects import meta
from lwsctl.diagnosis import ranks
from lwsctl.diagnosis.causes.components.containerrefusals import CreationError
from lwsctl.diagnosis.finding import Finding, cause
from lwsctl.diagnosis.observed import Observed
from lwsctl.diagnosis.patterns import READ
from lwsctl.model.diagnosis import Person
from lwsctl.model.events.eventrecord import WarningEvent
from lwsctl.model.groups import Rank
from lwsctl.model.health import Verdict
from lwsctl.views.wording import format_count

RECENT: Final = timedelta(minutes=2)
"""The maximum age of the rejection of an earlier pod."""

REPEATED: Final = 3
"""The number of rejected pods with the same name after which a rank is considered stuck."""

REASONS: Final = re.compile(
    r"UnexpectedAdmissionError|TopologyAffinityError|SMTAlignmentError|NodeAffinity|NodeName|NodePorts|AppArmor|"
    r"SysctlForbidden|PodOS\w+|UnsupportedPodOS|InvalidNodeInfo|(?:Outof|OutOf)[\w./-]+"
)


DEVICE_PLUGIN: Final = "restart the device plugin of node {node}, and check for containers that use unrequested devices"
MESSAGES: Final = (
    CreationError(
        r"devices unavailable for (?P<resource>\S+?)\.? Requested: (?P<requested>\d+), Available: (?P<available>\d+)",
        "it requests {requested} {resource}, but only {available} are available on the node",
        DEVICE_PLUGIN,
    ),
    CreationError(
        r"no healthy devices present|unhealthy devices? (?P<resource>\S+)",
        "its devices are not healthy",
        "check the devices and the device plugin of node {node}; to prevent pods on this node: {lws} drain {node}",
    ),
    CreationError(r"Allocate failed", "the device plugin did not allocate devices to it", DEVICE_PLUGIN),
    CreationError(
        r"TopologyAffinityError|Topology locality",
        "no NUMA node has enough devices, CPUs and memory for it",
        "reduce the requests to fit on one NUMA node, or relax topologyManagerPolicy in the kubelet configuration",
    ),
    CreationError(
        r"SMTAlignmentError|SMT Alignment",
        "its CPU request does not consist of full cores",
        "request a multiple of the threads per core, or disable the CPU manager option full-pcpus-only",
    ),
    CreationError(
        r"NodeAffinity",
        "the node no longer has the labels that it requires",
        "restore the labels of node {node}, or correct nodeSelector in {template}",
    ),
    CreationError(
        r"enough resource: (?P<resource>[^,\s]+), requested: (?P<requested>\d+), used: (?P<used>\d+), capacity: (?P<capacity>\d+)",
        "it requests {requested} {resource}, and {used} of {capacity} are in use",
        "check node {node} for pods that kube-scheduler did not assign: {lws} nodes {node}",
    ),
    CreationError(
        r"AppArmor|SysctlForbidden|sysctl",
        "the kubelet does not allow one of its settings",
        "allow the setting in the kubelet configuration, or remove it from {template}",
    ),
)
OTHERWISE: Final = CreationError(r"", "{message}", "{lws} nodes {node}")


@cause(
    code="LWS-E110",
    title="a kubelet rejects a pod",
    meaning="The kubelet rejected a pod after scheduling, for example because the node has too few devices. The replacement pod might also be rejected.",
    person=Person.ADMINISTRATOR,
    remedy="Fix the problem that the kubelet reports. After three consecutive rejections, the verdict is `stuck`.",
)
def find_rejected_pod(observed: Observed) -> Finding | None:
    """Find a rank whose current or latest pods were rejected by a kubelet."""
    for _, rank in observed.unready_ranks:
        rejections = _rejections(observed, rank)
        if not rejections:
            continue
        newest = max(rejections, key=lambda rejection: rejection.last)
        node = newest.host or rank.node or "its node"
        words = {"node": node, "template": observed.template, "lws": observed.commands.lws}
        words["message"] = ranks.quote_message(newest.message)
        entry, match = _entry(newest)
        words |= {name: value or "" for name, value in (match.groupdict() if match else {}).items()}
        return Finding(
            subject=ranks.pod_subject(rank),
            sentence=f"the kubelet of node {node} rejected pod {rank.pod} ({newest.reason}): {entry.meaning.format(**words)}",
            evidence=(
                f"{rank.pod}: {words['message']}",
                f"{format_count(len(rejections), 'rejection')} in {format_count(int(RECENT.total_seconds()) // 60, 'minute')}",
            ),
            steps=(entry.next_step.format(**words), f"{observed.commands.lws} nodes {node}"),
            verdict=None if len(rejections) >= REPEATED else Verdict.PROGRESSING,
        )
    return None


def _rejections(observed: Observed, rank: Rank) -> Sequence[WarningEvent]:
    """Return the rejections of pods with this name. If there are no events, use the pod status."""
    events = [
        event
        for event in observed.warnings.about(observed.view.namespace, "Pod", rank.pod)
        if REASONS.fullmatch(event.reason) and observed.now - event.last <= RECENT
    ]
    status = meta.status(rank.object or {})
    reason = str(status.get("reason") or "")
    if events or status.get("phase") != "Failed" or not REASONS.fullmatch(reason):
        return events
    message = ranks.quote_message(str(status.get("message") or reason))
    return [
        WarningEvent(
            kind="Pod", name=rank.pod, uid=rank.uid, reason=reason, message=message, last=observed.now, related=""
        )
    ]


def _entry(rejection: WarningEvent) -> tuple[CreationError, Match[str] | None]:
    text = f"{rejection.reason}: {rejection.message[:READ]}"
    return next(((entry, match) for entry in MESSAGES if (match := re.search(entry.pattern, text))), (OTHERWISE, None))
