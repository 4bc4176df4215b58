"""Finds pods that fit on no node, based on the scheduler's message, and calculates the missing resources. Pure.

For each node, kube-scheduler reports the first rule that rejects it. Later rules (resources, other pods) apply to
nodes that pass earlier rules (taints, labels), so causes for later rules are first in this module.
"""

import re
from collections.abc import Sequence
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.quantity import ZERO, Quantity, QuantityError
from kuberuntime.objects.resources import PODS
from leaderworkerset.api import labels
from leaderworkerset.decisions.nodefit import demand_of_pod
from lwsctl.diagnosis import ranks
from lwsctl.diagnosis.causes.closednodes import taint_text, untolerated_taints
from lwsctl.diagnosis.causes.components import nodetaints
from lwsctl.diagnosis.causes.components.autoscalers import with_autoscaler_note
from lwsctl.diagnosis.finding import Cause, Find, Finding, cause
from lwsctl.diagnosis.observed import Observed
from lwsctl.diagnosis.patterns import READ, StageMessage
from lwsctl.diagnosis.ranks import is_unscheduled
from lwsctl.model.diagnosis import Person
from lwsctl.model.groups import Rank
from lwsctl.model.nodestate import nodes_of
from lwsctl.views import devices
from lwsctl.views.wording import join_names

SHORT: Final = re.compile(r"Insufficient (?P<resource>[^\s,.]+(?:\.[^\s,.]+)*)")
NATIVE: Final = frozenset({"cpu", "memory", "ephemeral-storage", "pods"})

IN_BYTES: Final = frozenset({"memory", "ephemeral-storage"})
BYTES: Final = {2**30: "Gi", 2**20: "Mi"}

PROCESSES: Final = "processes://"
"""The container runtime version of nodes in a local cluster. These nodes have the configured accelerators."""
GPU: Final = "nvidia.com/gpu"
HOLDERS_NAMED: Final = 4


def insufficient_resources(rank: Rank) -> list[str]:
    """Return the resources that are insufficient on nodes, based on the scheduler's message.

    >>> insufficient_resources(Rank(group=0, index=0, pod="p", state="Pending", why="0/2 nodes: 2 Insufficient nvidia.com/gpu, 1 Insufficient cpu."))
    ['nvidia.com/gpu', 'cpu']
    """
    return list(dict.fromkeys(match["resource"] for match in SHORT.finditer(rank.why[:READ])))


def short_of(resource: str) -> Find:
    """Return a function that finds pods for which a resource is insufficient. `extended` matches any accelerator."""

    def find(observed: Observed) -> Finding | None:
        shortages = [
            (rank, name)
            for rank in observed.ranks_at(is_unscheduled)
            for name in insufficient_resources(rank)
            if name == resource or (resource == "extended" and name not in NATIVE)
        ]
        if not shortages:
            return None
        rank, name = shortages[0]
        closed = closing_taint(observed, rank, name)
        by_component = nodetaints.find_component_taint(closed[1]) if closed else None
        return Finding(
            subject=ranks.pod_subject(rank),
            sentence=(
                f"no node has enough {name} for pod {rank.pod}{ranks.others_suffix(len(shortages))}{shortfall(observed, rank, name)}"
                + (f"; {_rejection_reason(observed, *closed)}" if closed else "")
            ),
            evidence=(f"{rank.pod}: {ranks.quote_message(rank.why)}", *failing_devices(observed, name)),
            steps=(
                *(
                    (by_component.next_step.format(node=closed[0], kubectl=observed.plain_kubectl),)
                    if closed and by_component
                    else (f"to use node {closed[0]}, add a toleration for its taint to {observed.template}",)
                    if closed
                    else ()
                ),
                *simulation_command(observed, rank, name),
                f"add nodes with {name}, delete pods that use it, or reduce the requests in {observed.template}",
                f"{observed.commands.lws} nodes",
            ),
        )

    return find


def _rejection_reason(observed: Observed, name: str, taint: JSONObject) -> str:
    """Return the reason why a node rejects the pod although its resources are sufficient."""
    entry = nodetaints.find_component_taint(taint)
    if entry is None:
        return f"node {name} has enough resources, but the pod does not tolerate its taint: {taint_text(taint)}"
    return f"{nodetaints.describe_taint(entry, observed.nodes[name])}, but would have enough resources"


def failing_devices(observed: Observed, name: str) -> tuple[str, ...]:
    """Return a line for each node with failing devices, which are not allocatable."""
    if name in NATIVE:
        return ()
    return tuple(f"node {at}: {why}" for at, node in observed.nodes.items() if (why := devices.failing_devices(node)))


def simulation_command(observed: Observed, rank: Rank, name: str) -> tuple[str, ...]:
    """Return the command for a local cluster with more accelerators.

    If no node has accelerators, use a node per rank.
    """
    nodes = observed.nodes.values()
    runtimes = (str((meta.status(node).get("nodeInfo") or {}).get("containerRuntimeVersion")) for node in nodes)
    if name in NATIVE or not nodes or not all(runtime.startswith(PROCESSES) for runtime in runtimes):
        return ()
    if any(name in (meta.status(node).get("allocatable") or {}) for node in nodes):
        more = "start the cluster with more GPUs (--gpus N), or share each GPU between N containers (--gpus host:N)"
        return (more,) if name == GPU else ()
    try:
        amount = format_amount(demand_of_pod(meta.spec(rank.object or {})).get(name, ZERO))
    except QuantityError:
        return ()
    count = sum(len(group.ranks) for group in observed.view.groups)
    several = f"--nodes {count} " if count > 1 else ""
    return (
        f"to simulate nodes with {name}, use {several}--node-capacity {name}={amount} for the cluster, or run the manifest with --nodes auto --gpus auto",
        *(("to use the GPUs of this machine, start the cluster with --gpus host",) if name == GPU else ()),
    )


def shortfall(observed: Observed, rank: Rank, name: str) -> str:
    """Return the request of the pod, the largest free amount on a node, and the difference, if they are known."""
    try:
        request = demand_of_pod(meta.spec(rank.object or {})).get(name, ZERO)
        nodes = nodes_of(observed.nodes.values(), observed.running_pods)
        largest = max((node.allocatable.get(name, ZERO) for node in nodes), default=None)
        if largest is None:
            return f": it requests {format_amount(request, name)}"
        if largest < request:
            return f": it requests {format_amount(request, name)}, and the largest node has {format_amount(largest, name)} ({format_amount(request - largest, name)} missing)"
        if observed.running_pods is None:
            return f": it requests {format_amount(request, name)}, and the largest node has {format_amount(largest, name)}, but most of it is in use"
        most = max(node.free(name) for node in nodes)
    except QuantityError:
        return ""
    if most >= request:  # another rule excludes the nodes with this label
        return f": it requests {format_amount(request, name)}, and no suitable node has this amount free"
    return f": it requests {format_amount(request, name)}, and at most {format_amount(most, name)} is free on one node ({format_amount(request - most, name)} missing)"


def closing_taint(observed: Observed, rank: Rank, name: str) -> tuple[str, JSONObject] | None:
    """Return a node with a sufficient resource and the taint that repels the pod, or None if there is none."""
    if observed.running_pods is None:
        return None
    try:
        request = demand_of_pod(meta.spec(rank.object or {})).get(name, ZERO)
        nodes = nodes_of(observed.nodes.values(), observed.running_pods)
        suitable = [node for node in nodes if request <= node.free(name)]
    except QuantityError:
        return None
    repelling = ((node.name, taints[0]) for node in suitable if (taints := untolerated_taints(rank, node.object)))
    return next(repelling, None)


def format_amount(amount: Quantity, name: str = "") -> str:
    """Format a resource amount for users. Bytes are in Mi or Gi.

    >>> from kuberuntime.objects.quantity import parse
    >>> format_amount(parse("4000")), format_amount(parse("47093746742"), "ephemeral-storage")
    ('4000', '43.9Gi')
    """
    for unit, suffix in BYTES.items() if name in IN_BYTES else ():
        if amount.ceil() >= unit:
            return f"{amount.ceil() / unit:.1f}".removesuffix(".0") + suffix
    text = str(amount)
    return str(amount.ceil()) if text.endswith("k") else text


@cause(
    code="LWS-E041",
    title="no topology domain is free",
    meaning="Each group requires its own topology domain, such as a rack, and all domains are in use.",
    remedy="Add nodes in another topology domain, or reduce the number of groups.",
)
@with_autoscaler_note
def find_occupied_domains(observed: Observed) -> Finding | None:
    """Find groups for which no topology domain is free, and the groups that use the domains."""
    key = meta.annotations(observed.view.object).get(labels.EXCLUSIVE_TOPOLOGY, "")
    waiting = [
        rank
        for rank in observed.ranks_at(is_unscheduled)
        if key and rank.index == 0 and re.search(r"affinity rules|anti-affinity", rank.why)
    ]
    if not waiting:
        return None
    if not is_label_present(observed, key):
        return _missing_labels(
            observed, waiting[0], (key,), f"annotation {labels.EXCLUSIVE_TOPOLOGY} of {observed.view.name}"
        )
    holders = sorted(_domain_users(observed, key).items())
    domains = [f"{domain} by {owner}" for domain, owner in holders]
    occupancy = f"in use: {join_names(domains, HOLDERS_NAMED)}" if domains else "their groups are unknown"
    return Finding(
        subject=ranks.pod_subject(waiting[0]),
        sentence=f"no domain of {key} is free for group {waiting[0].group}{ranks.others_suffix(len(waiting))} ({occupancy})",
        evidence=(
            f"{waiting[0].pod}: {ranks.quote_message(waiting[0].why)}",
            *(f"{key} {domain}: {owner}" for domain, owner in holders[:20]),
        ),
        steps=(
            f"add nodes in another domain of {key}, or reduce the number of groups",
            observed.lws(f"scale {observed.view.name} --replicas=N"),
        ),
    )


def is_label_present(observed: Observed, key: str) -> bool:
    """Return whether a node has this label, or the nodes are unknown."""
    return not observed.nodes or any(key in meta.labels(node) for node in observed.nodes.values())


def _missing_labels(observed: Observed, rank: Rank, keys: Sequence[str], where: str) -> Finding:
    """Return the finding that no node has the topology labels that the pod requires."""
    return Finding(
        subject=ranks.pod_subject(rank),
        sentence=f"pod {rank.pod} cannot be scheduled, because no node has the label {', '.join(keys)} that {where} requires",
        evidence=(f"{rank.pod}: {ranks.quote_message(rank.why)}",),
        steps=(
            f"label the nodes of each domain: {observed.plain_kubectl} label nodes NODE {keys[0]}=VALUE",
            f"or correct {where}",
            f"{observed.commands.lws} nodes --show-labels",
        ),
    )


def _topology_keys(rank: Rank) -> list[str]:
    """Return the node labels that the topology constraints of a pod require."""
    spec = meta.spec(rank.object or {})
    affinity = spec.get("affinity") or {}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    terms = [
        *((affinity.get("podAffinity") or {}).get(required) or ()),
        *((affinity.get("podAntiAffinity") or {}).get(required) or ()),
    ]
    hard = [
        rule
        for rule in spec.get("topologySpreadConstraints") or ()
        if rule.get("whenUnsatisfiable") != "ScheduleAnyway"
    ]
    return list(dict.fromkeys(str(rule["topologyKey"]) for rule in (*terms, *hard) if rule.get("topologyKey")))


def _domain_users(observed: Observed, key: str) -> dict[str, str]:
    holders = {}
    for pod in observed.get(PODS) or observed.view.pods:
        node = observed.nodes.get(str(meta.spec(pod).get("nodeName") or ""))
        domain = meta.labels(node).get(key) if node else None
        if domain:
            own = meta.labels(pod)
            holders[domain] = f"{own.get(labels.NAME)}/{own.get(labels.GROUP_INDEX)}"
    return holders


@cause(
    code="LWS-E087",
    title="no node has enough resources for an additional group",
    meaning="If maxUnavailable is 0, a rollout creates an additional group before it replaces a group. No node has enough free resources for this group.",
    remedy="Free resources for the additional group, or set maxUnavailable to at least 1.",
)
@with_autoscaler_note
def find_unplaceable_surge(observed: Observed) -> Finding | None:
    """Find a rollout with maxUnavailable 0 whose surge groups do not fit on any node."""
    strategy = (meta.spec(observed.view.object).get("rolloutStrategy") or {}).get("rollingUpdateConfiguration") or {}
    view = observed.view
    extra = {group.name for group in view.groups if group.index >= view.desired}
    more_live = any(group.key for group in view.groups) and len(view.groups) > view.desired
    surge = [rank for rank in observed.ranks_at(is_unscheduled) if (more_live or rank.group in extra) and rank.why]
    if not surge or str(strategy.get("maxUnavailable")) not in {"0", "0%"}:
        return None
    first = surge[0]
    return Finding(
        subject=ranks.pod_subject(first),
        sentence=(
            f"the rollout must first create an extra group (maxUnavailable {strategy.get('maxUnavailable')}), but pod {first.pod} of group {first.group} does "
            "not fit on any node"
        ),
        evidence=(f"{first.pod}: {ranks.quote_message(first.why)}",),
        steps=("free resources for one more group, or set maxUnavailable to 1",),
    )


ACCELERATORS: Final = Cause(
    code="LWS-E035",
    title="no node has enough free accelerators",
    meaning="No node has enough free GPUs, TPUs or other extended resources for a pod.",
    remedy="Add nodes with the resource, delete other pods that use the resource, or reduce the requests. If a node has the devices but does not report the resource, check the device plugin.",
    find=with_autoscaler_note(short_of("extended")),
)
MEMORY: Final = Cause(
    code="LWS-E037",
    title="no node has enough free memory",
    meaning="No node has enough free memory for the request of a pod. Memory that other pods requested is not free, even if it is unused.",
    remedy="Add nodes, delete other pods, or reduce the memory request.",
    find=with_autoscaler_note(short_of("memory")),
)
CPU: Final = Cause(
    code="LWS-E036",
    title="no node has enough free CPU",
    meaning="No node has enough free CPU for the request of a pod. CPU that other pods requested is not free, even if it is unused.",
    remedy="Add nodes, delete other pods, or reduce the CPU request.",
    find=with_autoscaler_note(short_of("cpu")),
)
STORAGE: Final = Cause(
    code="LWS-E048",
    title="no node has enough free ephemeral storage",
    meaning="No node has enough free ephemeral storage for the request of a pod. Storage that other pods requested is not free.",
    remedy="Add nodes, delete other pods, or reduce the storage request.",
    find=with_autoscaler_note(short_of("ephemeral-storage")),
)
TOO_MANY_PODS: Final = Cause(
    code="LWS-E038",
    title="all nodes have reached their pod limit",
    meaning="Each node accepts a limited number of pods, independent of their requests. All nodes have reached this limit.",
    person=Person.ADMINISTRATOR,
    remedy="Add nodes, or delete pods.",
    find=with_autoscaler_note(
        StageMessage(
            is_unscheduled,
            r"Too many pods",
            "no node accepts more pods, so {pod} is pending{others}",
            ("{anywhere} nodes",),
        )
    ),
)
SPREAD_TEXT: Final = StageMessage(
    is_unscheduled,
    r"(?P<rule>pod topology spread constraints|pod anti-affinity rules|pod affinity rules|existing pods anti-affinity rules)",
    "no node satisfies the {rule} of pod {pod}{others}",
    ("relax the constraint in {template}, or add nodes in other domains",),
)


@cause(
    code="LWS-E042",
    title="no node satisfies the spread or affinity rules",
    meaning="No node satisfies the affinity rules and topologySpreadConstraints of the pod template, and the anti-affinity rules of the running pods.",
    remedy="If no node has the label in topologyKey, add the label to nodes or correct topologyKey. Otherwise, relax the rule, or add nodes in other topology domains.",
)
@with_autoscaler_note
def find_unsatisfied_constraint(observed: Observed) -> Finding | None:
    """Find pods that cannot be scheduled because of other pods, or of a constraint whose label no node has."""
    finding = SPREAD_TEXT(observed)
    if finding is None:
        return None
    rank = ranks.find_rank(observed, finding.subject)
    missing = [key for key in _topology_keys(rank) if not is_label_present(observed, key)]
    return _missing_labels(observed, rank, missing, f"topologyKey in {observed.template}") if missing else finding


PORTS: Final = Cause(
    code="LWS-E047",
    title="a host port is in use",
    meaning="Other pods use the requested host port on all suitable nodes.",
    remedy="Remove the `hostPort` field, or add nodes.",
    find=with_autoscaler_note(
        StageMessage(
            is_unscheduled,
            r"free ports",
            "the requested host port is in use on all nodes that could run pod {pod}{others}",
            ("remove hostPort from {template}",),
        )
    ),
)
UNSCHEDULABLE: Final = Cause(
    code="LWS-E049",
    title="no node is suitable for a pod",
    meaning="The scheduler does not find a suitable node, for a reason that has no separate code.",
    person=Person.AUTHOR,
    remedy="Fix the problem that the message describes.",
    find=with_autoscaler_note(
        StageMessage(
            is_unscheduled,
            r"\S",
            "no node is suitable for pod {pod}{others}",
            ("{lws} describe {place}", "{anywhere} nodes"),
        )
    ),
)
