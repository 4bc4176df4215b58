"""Determines the state of a pod for workload controllers (such as `isRunningAndReady` and `isHealthy`)."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject


def min_ready_seconds(workload: JSONObject) -> int:
    """Return `spec.minReadySeconds`, or 0 if it is absent."""
    return int(meta.spec(workload).get("minReadySeconds") or 0)


def pod_phase(pod: JSONObject) -> str:
    """Return `status.phase`, or an empty string if it is not set."""
    return str(meta.status(pod).get("phase") or "")


def is_ready(pod: JSONObject) -> bool:
    """Return whether the pod is running and ready."""
    return pod_phase(pod) == "Running" and meta.is_condition_true(pod, "Ready")


def available_at(pod: JSONObject, min_ready_seconds: int) -> datetime | None:
    """Return the time at which the pod becomes available, or None if it is not ready."""
    condition = meta.find_condition(pod, "Ready")
    if not is_ready(pod) or condition is None:
        return None
    since = condition.get("lastTransitionTime")
    if min_ready_seconds and not since:
        return None
    ready_since = datetime.fromisoformat(since) if since else datetime.fromtimestamp(0).astimezone()
    return ready_since + timedelta(seconds=min_ready_seconds)


def is_available(pod: JSONObject, min_ready_seconds: int, now: datetime) -> bool:
    """Return whether the pod has been ready for at least the required time."""
    if min_ready_seconds == 0:
        return is_ready(pod)
    at = available_at(pod, min_ready_seconds)
    return at is not None and not will_become_available(at, min_ready_seconds, now)


def will_become_available(at: datetime, min_ready_seconds: int, now: datetime) -> bool:
    """Return whether the pod becomes available later, even if the clock was set back since it became ready."""
    return now < at <= now + timedelta(seconds=min_ready_seconds)


def seconds_until_available(pods: Iterable[JSONObject], min_ready_seconds: int, now: datetime) -> float | None:
    """Return the seconds until the next ready pod becomes available."""
    moments = [available_at(pod, min_ready_seconds) for pod in pods] if min_ready_seconds else []
    waits = [
        (at - now).total_seconds()
        for at in moments
        if at is not None and will_become_available(at, min_ready_seconds, now)
    ]
    return min(waits, default=None)
