"""Defines bugs of `spec.scheduling`: leaks, partial starts and deadlocks (contract N-AT-6 to N-AT-25)."""

from typing import Any
from unittest.mock import patch

from msgspec.structs import replace

from kuberuntime.controller.executor import Executor
from leaderworkerset.core.gang import replicas, workloads


def starts_with_the_first() -> Any:
    """Start the pods of a gang when they are created, regardless of their number."""
    real = workloads.build_template

    def build(lws: Any, part: Any) -> Any:
        template = real(lws, part)
        return template if part.min_count is None else workloads.with_min_count(template, 1)

    return patch.object(workloads, "build_template", build)


def compares_minima() -> Any:
    """Treat the minimum of a group with an older size as drift (N-AT-25)."""
    real = workloads.has_drift

    def differs(found: Any, wanted: Any) -> bool:
        return bool(real(found, wanted)) or workloads.min_count(found) != workloads.min_count(wanted)

    def decide(group: Any, scheduling: Any) -> Any:
        with patch.object(workloads, "has_drift", differs):
            return original(replace(group, revised=group.live.lws), scheduling)

    original = replicas.decide
    return patch.object(replicas, "decide", decide)


def reports_own_objects() -> Any:
    """Warn about a managed PodGroup if the response to its creation was lost."""

    async def check_owner(self: Executor, action: Any, error: Exception) -> None:
        raise error

    return patch.object(Executor, "_check_owner", check_owner)
