"""The order in which documents are applied: dependencies first. Deletion uses the reverse order. Pure.

Objects refer to each other by name, and most references may be created later. Others are needed when the object is
written: a namespace, the definition of a kind, and the policies that admission applies (a priority class, quotas).
"""

from collections.abc import Sequence
from typing import Final

from leaderworkerset.cli.reading.manifests import Document

FIRST: Final = (
    ("Namespace",),
    ("CustomResourceDefinition",),
    ("PriorityClass", "StorageClass", "RuntimeClass", "ResourceQuota", "LimitRange"),
    ("ServiceAccount", "Secret", "ConfigMap", "ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding"),
    ("PersistentVolume", "PersistentVolumeClaim", "Service"),
)
LAST: Final = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
"""Kinds that may refuse later objects as long as their webhook does not run."""

RANKS: Final = {kind: rank for rank, kinds in enumerate(FIRST) for kind in kinds} | dict.fromkeys(LAST, len(FIRST) + 1)


def ordered(documents: Sequence[Document]) -> list[Document]:
    """Return the documents in the order of applying; those of one rank in the order of their files."""
    return sorted(documents, key=lambda document: RANKS.get(document.object["kind"], len(FIRST)))
