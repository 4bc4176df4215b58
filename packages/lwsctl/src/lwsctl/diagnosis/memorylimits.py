"""Containers that use more memory than their limit on an embedded cluster that does not enforce limits. Pure."""

from collections.abc import Iterator
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.texts.masking import masked
from lwsctl.diagnosis.observed import Observed

CONDITION: Final = "MemoryLimitExceeded"
"""The condition with which the embedded kubelet reports such a container."""


def warnings(observed: Observed) -> Iterator[str]:
    """Yield the pods of the view with such a container, and what a node would do."""
    for rank in (rank for group in observed.view.groups for rank in group.ranks):
        condition = meta.find_condition(rank.object or {}, CONDITION) or {}
        if condition.get("status") == "True":
            yield f"pod {rank.pod}: {masked(str(condition.get('message')))}: a node would kill it (OOMKilled)"
