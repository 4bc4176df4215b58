"""The order in which documents are applied: dependencies first. Deletion uses the reverse order. Pure.

Objects refer to each other by name, and most references may be created later. Others are needed when the object is
written: a namespace, the definition of a kind, and the policies that admission applies (a priority class, quotas).
"""

from collections.abc import Iterable, Iterator, Sequence
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

AT_ONCE: Final = 10
"""The maximum number of documents that are applied at the same time."""


def ordered(documents: Sequence[Document]) -> list[Document]:
    """Return the documents in the order of applying; those of one rank in the order of their files."""
    return sorted(documents, key=_rank)


def batches(documents: Iterable[Document]) -> Iterator[list[Document]]:
    """Split ordered documents into those that may be applied at once: few, of one rank, and no object twice."""
    batch: dict[tuple[str, str], Document] = {}
    for document in documents:
        own = document.title, document.object["metadata"].get("namespace") or ""
        others = next(iter(batch.values()), document)
        if own in batch or _rank(others) != _rank(document) or len(batch) == AT_ONCE:
            yield list(batch.values())
            batch = {}
        batch[own] = document
    if batch:
        yield list(batch.values())


def _rank(document: Document) -> int:
    return RANKS.get(document.object["kind"], len(FIRST))
