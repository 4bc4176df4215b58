"""Evaluates the node selector, required affinity and tolerations of a pod for a node.

Input: the spec of a pod. Output: values that compare and hash by content, so that equal pods are evaluated once.
"""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from kuberuntime.objects import selectors
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.selectors import Operator, Requirement, SelectorError

REPELLING: Final = ("NoSchedule", "NoExecute")
"""The taint effects that repel pods. The third effect, PreferNoSchedule, is only a preference."""

CORDONED: Final[JSONObject] = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
"""The taint that corresponds to `spec.unschedulable`."""


class Toleration(Struct, frozen=True):
    """A toleration. Empty fields match any value. `seconds` limits NoExecute tolerations (None for no limit)."""

    key: str
    operator: str
    value: str
    effect: str
    seconds: float | None = None

    def tolerates(self, taint: JSONObject) -> bool:
        """Return whether the toleration matches the taint."""
        if self.effect and self.effect != taint.get("effect"):
            return False
        if self.key and self.key != taint.get("key"):
            return False
        return self.operator == "Exists" or (bool(self.key) and self.value == (taint.get("value") or ""))


class NodeTerm(Struct, frozen=True):
    """A node selector term with requirements for labels and the node name. An empty term does not match any node.

    `error` is the reason if a term is invalid. API servers store such terms (`Gt` with a text), which match no nodes.
    """

    labels: tuple[Requirement, ...]
    fields: tuple[Requirement, ...]
    error: str = ""

    def matches(self, name: str, labels: dict[str, str]) -> bool:
        """Return whether the term matches a node."""
        if not self.labels and not self.fields:
            return False
        node_fields = {"metadata.name": name}
        return all(label.matches(labels) for label in self.labels) and all(
            field.matches(node_fields) for field in self.fields
        )


def read_tolerations(spec: JSONObject) -> tuple[Toleration, ...]:
    """Return the tolerations of a pod."""
    return tuple(map(_read_toleration, spec.get("tolerations") or []))


def tolerate_all(tolerations: Iterable[Toleration], taints: Iterable[JSONObject]) -> bool:
    """Return whether the tolerations match all taints."""
    all_tolerations = tuple(tolerations)
    return all(any(toleration.tolerates(taint) for toleration in all_tolerations) for taint in taints)


def repelling_taints(spec: JSONObject) -> list[JSONObject]:
    """Return the taints in the spec of a node that repel pods, including the taint of a cordoned node."""
    taints = [taint for taint in spec.get("taints") or () if taint.get("effect") in REPELLING]
    return [*taints, CORDONED] if spec.get("unschedulable") else taints


def read_node_selector(spec: JSONObject) -> tuple[Requirement, ...]:
    """Return the node selector of a pod."""
    return tuple(Requirement(key, Operator.IN, (value,)) for key, value in (spec.get("nodeSelector") or {}).items())


def read_node_terms(spec: JSONObject) -> tuple[NodeTerm, ...] | None:
    """Return the required terms, one of which a node must match, or None if the pod has no required node affinity."""
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return None if required is None else tuple(map(read_node_term, required.get("nodeSelectorTerms") or []))


def read_node_term(term: JSONObject) -> NodeTerm:
    """Read one node selector term."""
    try:
        on_labels = tuple(map(selectors.parse_expression, term.get("matchExpressions") or []))
    except SelectorError as error:
        return NodeTerm((), (), error=str(error))
    return NodeTerm(on_labels, tuple(map(_read_field, term.get("matchFields") or [])))


def _read_toleration(entry: JSONObject) -> Toleration:
    return Toleration(
        entry.get("key") or "",
        entry.get("operator") or "Equal",
        entry.get("value") or "",
        entry.get("effect") or "",
        entry.get("tolerationSeconds"),
    )


def _read_field(entry: JSONObject) -> Requirement:
    return Requirement(entry["key"], Operator(entry["operator"]), tuple(entry.get("values") or ()))
