"""Expresses pod admission as CEL expressions that kube-apiserver evaluates.

A module of a policy holds both forms of its decision: `admit` in Python, for the webhook, and a `PodRule` with the same
names of labels and annotations. `core/admission/podpolicy.py` joins the rules to a MutatingAdmissionPolicy. A pod for
which a condition is false, or an expression has an error, is left to the webhook.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct, field

from leaderworkerset.api import labels

LABELS: Final = "object.metadata.labels"
ANNOTATIONS: Final = "object.metadata.annotations"


class PodRule(Struct, frozen=True, kw_only=True):
    """The expressions of one policy. All expressions read the original pod.

    `conditions` (by name) hold for the pods that the rule covers. `variables` (by name) may use those of earlier
    policies, conditions may not. `patches` are lists of `JSONPatch`.
    """

    conditions: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    patches: tuple[str, ...] = ()


def string_literal(value: str) -> str:
    """Return a string literal.

    >>> string_literal("a b")
    '"a b"'
    """
    return json.dumps(value, ensure_ascii=False)


def list_literal(values: Iterable[str]) -> str:
    """Return a literal for a list of strings."""
    return f"[{', '.join(map(string_literal, values))}]"


def has_label(key: str) -> str:
    """Return whether the pod has a label. Each pod of a LeaderWorkerSet has labels."""
    return f"{string_literal(key)} in {LABELS}"


def label(key: str) -> str:
    """Return the value of a label, or an empty string if it is absent."""
    return f'{LABELS}[?{string_literal(key)}].orValue("")'


def has_annotation(key: str) -> str:
    """Return whether the pod has an annotation. The webhook handles pods that have no annotations."""
    return f"{string_literal(key)} in {ANNOTATIONS}"


def annotation(key: str) -> str:
    """Return the value of an annotation, or an empty string if it is absent."""
    return f'{ANNOTATIONS}[?{string_literal(key)}].orValue("")'


def number(key: str) -> str:
    """Return the number in an annotation."""
    return f"int({ANNOTATIONS}[{string_literal(key)}])"


def add(path: str, value: str) -> str:
    """Return a patch that adds or replaces a value. `path` and `value` are expressions.

    The value may contain texts of the pod, but no objects: Kubernetes 1.37 cannot convert them.
    """
    return f'JSONPatch{{op: "add", path: {path}, value: {value}}}'


def remove(path: str) -> str:
    """Return a patch that removes a value. `path` is an expression."""
    return f'JSONPatch{{op: "remove", path: {path}}}'


def add_label(key: str, value: str) -> str:
    """Return a patch that adds or replaces a label."""
    return _add_entry("labels", key, value)


def add_annotation(key: str, value: str) -> str:
    """Return a patch that adds or replaces an annotation. Each pod of a LeaderWorkerSet has annotations."""
    return _add_entry("annotations", key, value)


def _add_entry(part: str, key: str, value: str) -> str:
    return add(string_literal(f"/metadata/{part}/{key.replace('~', '~0').replace('/', '~1')}"), value)


def conditional_patches(condition: str, *patches: str) -> str:
    """Return the list of patches if a condition is true, or otherwise an empty list."""
    return f"({condition} ? [{', '.join(patches)}] : [])"


IS_LEADER: Final = f"({label(labels.WORKER_INDEX)} == {string_literal(labels.LEADER_WORKER_INDEX)})"
"""Whether the pod is a leader, for use in conditions (R-ADM-2)."""

LEADER: Final = "variables.isLeader"
