"""The requirements of a pod for its node, read once from the object."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from kuberuntime.objects import meta, placement, selectors
from kuberuntime.objects.meta import UID, JSONObject, ObjectKey
from kuberuntime.objects.placement import NodeTerm, Toleration
from kuberuntime.objects.selectors import LabelSelector, Operator, Requirement
from localkube.controllers.scheduler import amounts
from localkube.controllers.scheduler.amounts import Amounts
from localkube.controllers.scheduler.terms import Scope, Term, read_preferred_terms, read_terms, with_own_labels

Port: TypeAlias = tuple[str, str, int]
"""Host address (0.0.0.0: all), protocol, port."""

ANY_ADDRESS: Final = "0.0.0.0"  # noqa: S104 - compared with; nothing is bound to it

SCORED_DEFAULTS: Final[Amounts] = {amounts.CPU: 100, amounts.MEMORY: 200 * 1024 * 1024}
"""Requests that are assumed for a pod without requests when nodes are scored, so that such pods spread, too."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """One topology spread constraint."""

    scope: Scope
    topology_key: str
    max_skew: int
    hard: bool
    min_domains: int
    honor_affinity: bool
    honor_taints: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PodInfo:
    """The parts of a pod that the scheduler uses."""

    key: ObjectKey
    uid: UID
    labels: dict[str, str]
    priority: int
    requests: Amounts
    scored: Amounts
    ports: frozenset[Port]
    node_selector: tuple[Requirement, ...]
    node_terms: tuple[NodeTerm, ...] | None
    preferred_nodes: tuple[tuple[int, NodeTerm], ...]
    tolerations: tuple[Toleration, ...]
    affinity: tuple[Term, ...]
    anti_affinity: tuple[Term, ...]
    preferred: tuple[Term, ...]
    constraints: tuple[Constraint, ...]
    claims: tuple[str, ...]
    deleting: bool


def read_pod(pod: JSONObject) -> PodInfo:
    """Read a pod."""
    spec = meta.spec(pod)
    nodes = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    requests = amounts.pod_requests(pod)
    against = tuple(replace(term, weight=-term.weight) for term in read_preferred_terms(pod, "podAntiAffinity"))
    return PodInfo(
        key=meta.key(pod),
        uid=meta.uid(pod),
        labels=meta.labels(pod),
        priority=int(spec.get("priority") or 0),
        requests=requests,
        scored={name: requests.get(name) or default for name, default in SCORED_DEFAULTS.items()},
        ports=frozenset(_host_ports(spec)),
        node_selector=placement.read_node_selector(spec),
        node_terms=placement.read_node_terms(spec),
        preferred_nodes=tuple(
            (int(entry["weight"]), placement.read_node_term(entry["preference"]))
            for entry in nodes.get("preferredDuringSchedulingIgnoredDuringExecution") or []
        ),
        tolerations=placement.read_tolerations(spec),
        affinity=read_terms(pod, "podAffinity"),
        anti_affinity=read_terms(pod, "podAntiAffinity"),
        preferred=read_preferred_terms(pod, "podAffinity") + against,
        constraints=tuple(_constraint(pod, entry) for entry in spec.get("topologySpreadConstraints") or []),
        claims=tuple(_claims(pod)),
        deleting=meta.is_deleting(pod),
    )


def _host_ports(spec: JSONObject) -> Iterator[Port]:
    sidecars = [one for one in spec.get("initContainers") or [] if one.get("restartPolicy") == "Always"]
    for container in [*sidecars, *(spec.get("containers") or [])]:
        for port in container.get("ports") or []:
            number = port.get("hostPort") or (port.get("containerPort") if spec.get("hostNetwork") else 0)
            if number:
                yield port.get("hostIP") or ANY_ADDRESS, port.get("protocol") or "TCP", int(number)


def _constraint(pod: JSONObject, entry: JSONObject) -> Constraint:
    selector: LabelSelector = selectors.from_object(entry.get("labelSelector"))
    selector = with_own_labels(selector, pod, entry.get("matchLabelKeys") or [], Operator.IN)
    return Constraint(
        scope=Scope(selector, frozenset({meta.namespace(pod)}), living=True),
        topology_key=entry["topologyKey"],
        max_skew=int(entry["maxSkew"]),
        hard=(entry.get("whenUnsatisfiable") or "DoNotSchedule") == "DoNotSchedule",
        min_domains=int(entry.get("minDomains") or 1),
        honor_affinity=(entry.get("nodeAffinityPolicy") or "Honor") == "Honor",
        honor_taints=(entry.get("nodeTaintsPolicy") or "Ignore") == "Honor",
    )


def _claims(pod: JSONObject) -> Iterator[str]:
    for volume in meta.spec(pod).get("volumes") or []:
        if volume.get("persistentVolumeClaim"):
            yield volume["persistentVolumeClaim"]["claimName"]
        elif volume.get("ephemeral"):
            yield f"{meta.name(pod)}-{volume['name']}"
