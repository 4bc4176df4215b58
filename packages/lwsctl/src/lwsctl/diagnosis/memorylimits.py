"""Finds containers that exceed their memory limit in an embedded cluster that does not enforce limits. Pure."""

from collections.abc import Iterator
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.texts.masking import mask_message
from lwsctl.diagnosis.observed import Observed

CONDITION: Final = "MemoryLimitExceeded"
"""The pod condition that the embedded kubelet sets for a container that exceeds its memory limit."""


def warnings(observed: Observed) -> Iterator[str]:
    """Yield each pod with a container that exceeds its limit, and the effect that this has on a real node."""
    for rank in observed.view.ranks:
        condition = meta.find_condition(rank.object or {}, CONDITION) or {}
        if condition.get("status") == "True":
            yield f"pod {rank.pod}: {mask_message(str(condition.get('message')))} (a node would kill it with OOMKilled)"
