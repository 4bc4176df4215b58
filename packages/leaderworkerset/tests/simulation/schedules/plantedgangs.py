"""Bugs of `spec.scheduling`: leaks, partial starts, and waiting for what never happens (contract N-AT-6 to N-AT-25)."""

from typing import Any
from unittest.mock import patch

from msgspec.structs import replace

from kuberuntime.controller.executor import Executor
from leaderworkerset.core.gang import replicas, workloads


def starts_with_the_first() -> Any:
    """Start the pods of a gang as they are created, regardless of their number."""
    real = workloads.build_template

    def build(lws: Any, part: Any) -> Any:
        template = real(lws, part)
        return template if part.min_count is None else workloads.with_min_count(template, 1)

    return patch.object(workloads, "build_template", build)


def compares_minima() -> Any:
    """Mistake the minimum of a group of an older size for drift (N-AT-25)."""
    real = workloads.differs

    def differs(found: Any, wanted: Any) -> bool:
        return bool(real(found, wanted)) or workloads.min_count(found) != workloads.min_count(wanted)

    def decide(group: Any, scheduling: Any) -> Any:
        with patch.object(workloads, "differs", differs):
            return original(replace(group, revised=group.live.lws), scheduling)

    original = replicas.decide
    return patch.object(replicas, "decide", decide)


def reports_own_objects() -> Any:
    """Warn of an own PodGroup whose creation had no answer."""

    async def check_owner(self: Executor, action: Any, error: Exception) -> None:
        raise error

    return patch.object(Executor, "_check_owner", check_owner)
