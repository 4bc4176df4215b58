"""Bugs of `spec.scheduling`: leaks, partial starts, and waiting for what never happens (contract N-AT-6 to N-AT-25)."""

from typing import Any
from unittest.mock import patch

from msgspec.structs import replace

from kuberuntime.controller.executor import Executor
from leaderworkerset.core.gang import preparation, replicas, workloads
from leaderworkerset.core.policies import workloadnames


def leaves_pod_groups() -> Any:
    """Never delete unused PodGroups (N-AT-6)."""
    return patch.object(preparation, "_cleaned", lambda whole, needed: ())


def starts_with_the_first() -> Any:
    """Start the pods of a gang as they are created, regardless of their number."""
    real = workloads.build_template

    def build(lws: Any, part: Any) -> Any:
        template = real(lws, part)
        return template if part.min_count is None else workloads.with_min_count(template, 1)

    return patch.object(workloads, "build_template", build)


def asks_for_all_at_once() -> Any:
    """Request all pods of the new size before they can exist (N-AT-10)."""
    return patch.object(preparation, "_reachable", lambda whole, part: part.min_count)


def reuses_names() -> Any:
    """Name the PodGroup of a recreated leader like the previous one, which is deleted with its pods (N-AT-12)."""
    return patch.object(workloadnames, "incarnated", lambda name, request: name)


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


def serves_leaders_of_before() -> Any:
    """Create PodGroups that no pod names, for leaders of an earlier LeaderWorkerSet."""
    return patch.object(replicas, "_is_of_another", lambda leader, begin, level: False)


def reports_own_objects() -> Any:
    """Warn of an own PodGroup whose creation had no answer."""

    async def check_owner(self: Executor, action: Any, error: Exception) -> None:
        raise error

    return patch.object(Executor, "_check_owner", check_owner)
