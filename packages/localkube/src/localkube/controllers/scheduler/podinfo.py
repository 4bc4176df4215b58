"""Parses the scheduling requirements of a pod once per object.

Affinity terms are hashable, so that the cluster can keep one count per term, regardless of how many pods have it.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from kuberuntime.objects import meta, placement, podclaims, selectors
from kuberuntime.objects.meta import UID, JSONObject, ObjectKey
from kuberuntime.objects.placement import NodeTerm, Toleration
from kuberuntime.objects.selectors import LabelSelector, Operator, Requirement
from localkube.controllers.scheduler import amounts
from localkube.controllers.scheduler.amounts import Amounts


class Scope(Struct, frozen=True):
    """A selection of pods by label and namespace. If `excludes_terminating` is set, terminating pods are excluded."""

    selector: LabelSelector
    namespaces: frozenset[str]
    namespace_selector: LabelSelector = selectors.NOTHING
    excludes_terminating: bool = False

    def matches(self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]) -> bool:
        """Return whether the scope selects a pod."""
        if not self.selector.matches(labels):
            return False
        return namespace in self.namespaces or self.namespace_selector.matches(namespace_labels)


class Term(Struct, frozen=True):
    """An affinity or anti-affinity term. The `weight` of a required term is 0."""

    scope: Scope
    topology_key: str
    weight: int = 0


def read_terms(pod: JSONObject, kind: str) -> tuple[Term, ...]:
    """Parse the required terms of `podAffinity` or `podAntiAffinity`."""
    terms = _affinity(pod, kind).get("requiredDuringSchedulingIgnoredDuringExecution") or []
    return tuple(_read_term(pod, term) for term in terms)


def read_preferred_terms(pod: JSONObject, kind: str) -> tuple[Term, ...]:
    """Parse the preferred terms of `podAffinity` or `podAntiAffinity`."""
    entries = _affinity(pod, kind).get("preferredDuringSchedulingIgnoredDuringExecution") or []
    return tuple(
        replace(_read_term(pod, entry["podAffinityTerm"]), weight=int(entry.get("weight") or 0)) for entry in entries
    )


def with_own_labels(selector: LabelSelector, pod: JSONObject, keys: Sequence[str], operator: Operator) -> LabelSelector:
    """Extend a selector with the values of `matchLabelKeys` from the pod. Skip missing labels."""
    labels = meta.labels(pod)
    extra = tuple(Requirement(key, operator, (labels[key],)) for key in keys if key in labels)
    return replace(selector, requirements=selector.requirements + extra)


def _read_term(pod: JSONObject, term: JSONObject) -> Term:
    selector = selectors.from_object(term.get("labelSelector"))
    selector = with_own_labels(selector, pod, term.get("matchLabelKeys") or [], Operator.IN)
    selector = with_own_labels(selector, pod, term.get("mismatchLabelKeys") or [], Operator.NOT_IN)
    namespaces = frozenset(term.get("namespaces") or ())
    by_label = term.get("namespaceSelector")
    if not namespaces and by_label is None:
        namespaces = frozenset({meta.namespace(pod)})
    return Term(Scope(selector, namespaces, selectors.from_object(by_label)), term["topologyKey"])


def _affinity(pod: JSONObject, kind: str) -> JSONObject:
    return (meta.spec(pod).get("affinity") or {}).get(kind) or {}


Port: TypeAlias = tuple[str, str, int]
"""The host address (0.0.0.0 for all addresses), the protocol and the port."""

ANY_ADDRESS: Final = "0.0.0.0"  # noqa: S104 - compared with; nothing is bound to it

SCORED_DEFAULTS: Final[Amounts] = {amounts.CPU: 100, amounts.MEMORY: 200 * 1024 * 1024}
"""The assumed requests of a pod without requests in node scores, so that such pods are also distributed."""


class Constraint(Struct, frozen=True):
    """A topology spread constraint."""

    scope: Scope
    topology_key: str
    max_skew: int
    is_hard: bool
    min_domains: int
    honor_affinity: bool
    honor_taints: bool


class PodInfo(Struct, frozen=True, kw_only=True):
    """The fields of a pod that the scheduler uses."""

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
    own_claims: frozenset[str]
    is_deleting: bool


def read_pod(pod: JSONObject) -> PodInfo:
    """Parse a pod."""
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
        claims=tuple(podclaims.claims_by_volume(pod).values()),
        own_claims=frozenset(f"{meta.name(pod)}-{volume}" for volume in podclaims.ephemeral_templates(pod)),
        is_deleting=meta.is_deleting(pod),
    )


def _host_ports(spec: JSONObject) -> Iterator[Port]:
    sidecars = [
        container for container in spec.get("initContainers") or [] if container.get("restartPolicy") == "Always"
    ]
    for container in [*sidecars, *(spec.get("containers") or [])]:
        for port in container.get("ports") or []:
            number = port.get("hostPort") or (port.get("containerPort") if spec.get("hostNetwork") else 0)
            if number:
                yield port.get("hostIP") or ANY_ADDRESS, port.get("protocol") or "TCP", int(number)


def _constraint(pod: JSONObject, entry: JSONObject) -> Constraint:
    selector: LabelSelector = selectors.from_object(entry.get("labelSelector"))
    selector = with_own_labels(selector, pod, entry.get("matchLabelKeys") or [], Operator.IN)
    return Constraint(
        scope=Scope(selector, frozenset({meta.namespace(pod)}), excludes_terminating=True),
        topology_key=entry["topologyKey"],
        max_skew=int(entry["maxSkew"]),
        is_hard=(entry.get("whenUnsatisfiable") or "DoNotSchedule") == "DoNotSchedule",
        min_domains=int(entry.get("minDomains") or 1),
        honor_affinity=(entry.get("nodeAffinityPolicy") or "Honor") == "Honor",
        honor_taints=(entry.get("nodeTaintsPolicy") or "Ignore") == "Honor",
    )
