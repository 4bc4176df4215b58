"""Affinity terms as values: the pods that a term selects, and the topology in which it counts them.

Terms are hashable, so that the cluster can keep one count per term, however many pods have it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kuberuntime.objects import meta, selectors
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.selectors import LabelSelector, Operator, Requirement


@dataclass(frozen=True, slots=True)
class Scope:
    """Pods by label, in these namespaces and in those whose labels match; with `living`, without terminating ones."""

    selector: LabelSelector
    namespaces: frozenset[str]
    namespace_selector: LabelSelector = selectors.NOTHING
    living: bool = False

    def matches(self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]) -> bool:
        """Return whether the term selects a pod."""
        if not self.selector.matches(labels):
            return False
        return namespace in self.namespaces or self.namespace_selector.matches(namespace_labels)


@dataclass(frozen=True, slots=True)
class Term:
    """One (anti-)affinity term; the `weight` of a required one is 0."""

    scope: Scope
    topology_key: str
    weight: int = 0


def read_terms(pod: JSONObject, kind: str) -> tuple[Term, ...]:
    """Read the required terms of `podAffinity` or `podAntiAffinity`."""
    listed = _affinity(pod, kind).get("requiredDuringSchedulingIgnoredDuringExecution") or []
    return tuple(_read_term(pod, term) for term in listed)


def read_preferred_terms(pod: JSONObject, kind: str) -> tuple[Term, ...]:
    """Read the preferred terms of `podAffinity` or `podAntiAffinity`."""
    listed = _affinity(pod, kind).get("preferredDuringSchedulingIgnoredDuringExecution") or []
    return tuple(
        replace(_read_term(pod, entry["podAffinityTerm"]), weight=int(entry.get("weight") or 0)) for entry in listed
    )


def with_own_labels(selector: LabelSelector, pod: JSONObject, keys: Sequence[str], operator: Operator) -> LabelSelector:
    """Extend a selector by the pod's own values of some labels (`matchLabelKeys`); labels it lacks are skipped."""
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
