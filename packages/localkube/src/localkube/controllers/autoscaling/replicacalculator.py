"""Computes the number of replicas for a metric from the usage of pods.

In: a metric of an autoscaler, its pods, and their PodMetrics. Out: a `Proposal`, or a `ReadingError`. Amounts are in
thousandths, as in autoscalers. Percentages refer to the requests of pods.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from msgspec import Struct

from kuberuntime.objects import meta, quantity, timestamps
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.quantity import NANOS, Quantity
from localkube.controllers import podhealth

INITIALIZATION: Final = timedelta(minutes=5)
"""The time after the start of a pod during which its CPU usage counts only if the pod is ready."""

FIRST_READINESS: Final = timedelta(seconds=30)
"""The time after the start of a pod during which it counts as starting if it was never ready."""

MILLI: Final = 1000
WHOLE: Final = 100


class ReadingError(Exception):
    """A metric has no result. `reason` is for the condition."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Proposal(NamedTuple):
    """The number of replicas for a metric, the metric's name in conditions, and its status."""

    replicas: int
    name: str
    status: JSONObject


class Sample(NamedTuple):
    """The mean usage of a pod in thousandths, over an interval until `at`."""

    usage: int
    at: datetime
    window: timedelta


class CurrentUsage(Struct, frozen=True, kw_only=True):
    """The pods of an autoscaler, their current usage, and the number of replicas.

    `tolerances` are the tolerated deviations (below, above) from the target, as fractions.
    """

    pods: Sequence[JSONObject]
    metrics: Sequence[JSONObject]
    current: int
    tolerances: tuple[float, float]
    now: datetime


class TargetUsage(NamedTuple):
    """The measured resource in one container, or in all containers if empty, and the target usage per pod.

    With `is_utilization`, the usage is a percentage of requests. Otherwise it is in thousandths.
    """

    resource: str
    container: str
    amount: int
    is_utilization: bool


def propose_replicas(metric: JSONObject, load: CurrentUsage) -> Proposal:
    """Return the number of replicas for a metric."""
    match metric["type"]:
        case "Resource":
            source, field, reason = metric["resource"], "resource", "FailedGetResourceMetric"
        case "ContainerResource":
            source, field, reason = metric["containerResource"], "containerResource", "FailedGetContainerResourceMetric"
        case other:
            text = f"the embedded cluster supports only resource metrics, not metrics of type {other}"
            raise ReadingError(f"FailedGet{other}Metric", text)
    target = _target(source)
    try:
        replicas, current = _replicas(target, load)
    except ReadingError as error:
        kind = "utilization" if target.is_utilization else "usage"
        raise ReadingError(reason, f"failed to get {target.resource} {kind}: {error}") from error
    words = f"{target.resource} resource"
    name = f"{words} utilization (percentage of request)" if target.is_utilization else words
    identity = {"name": target.resource, "current": current} | (
        {"container": target.container} if target.container else {}
    )
    return Proposal(replicas, name, {"type": metric["type"], field: identity})


def _target(source: JSONObject) -> TargetUsage:
    target, container = source["target"], str(source.get("container") or "")
    share = target.get("averageUtilization")
    if share is not None:
        return TargetUsage(source["name"], container, int(share), is_utilization=True)
    return TargetUsage(source["name"], container, _to_milli(target["averageValue"]), is_utilization=False)


def _replicas(target: TargetUsage, load: CurrentUsage) -> tuple[int, JSONObject]:
    samples = _usage_samples(target, load.metrics)
    if not samples:
        text = f"unable to get metrics for resource {target.resource}: no metrics returned from resource metrics API"
        raise ReadingError("", text)
    groups = _group_pods(target, load, samples)
    usage = {name: sample.usage for name, sample in samples.items() if name in groups.counted}
    if not usage:
        raise ReadingError("", "did not receive metrics for targeted pods (pods might be unready)")
    requests = _requests(target, load.pods) if target.is_utilization else {}
    mean, ratio = _ratio(target, usage, requests)
    average = sum(usage.values()) // len(usage)
    current: JSONObject = {"averageValue": str(Quantity(average * NANOS // MILLI))}
    if target.is_utilization:
        current["averageUtilization"] = mean
    return _count_replicas(target, load, groups, usage, requests, ratio), current


class Groups(NamedTuple):
    """The names of pods by group: measured pods that count, starting pods, and pods without metrics."""

    counted: Collection[str]
    unready: Collection[str]
    missing: Collection[str]


def _group_pods(target: TargetUsage, load: CurrentUsage, samples: Mapping[str, Sample]) -> Groups:
    groups: dict[str, list[str]] = {"counted": [], "unready": [], "missing": []}
    for pod in load.pods:
        name = meta.name(pod)
        if meta.is_deleting(pod) or podhealth.pod_phase(pod) == "Failed":
            continue
        if podhealth.pod_phase(pod) == "Pending":
            groups["unready"].append(name)
        elif name not in samples:
            groups["missing"].append(name)
        elif target.resource == "cpu" and _is_starting(pod, samples[name], load.now):
            groups["unready"].append(name)
        else:
            groups["counted"].append(name)
    return Groups(**groups)


def _is_starting(pod: JSONObject, sample: Sample, now: datetime) -> bool:
    """Return whether the CPU usage of a pod is caused by its start."""
    ready, started = meta.find_condition(pod, "Ready"), meta.status(pod).get("startTime")
    if ready is None or not started:
        return True
    begin, since = timestamps.parse(started), timestamps.parse(ready.get("lastTransitionTime") or started)
    if begin + INITIALIZATION > now:
        return bool(ready["status"] == "False") or sample.at < since + sample.window
    return bool(ready["status"] == "False") and begin + FIRST_READINESS > since


def _count_replicas(
    target: TargetUsage,
    load: CurrentUsage,
    groups: Groups,
    usage: Mapping[str, int],
    requests: Mapping[str, int],
    ratio: float,
) -> int:
    """Return the number of replicas for the target usage. Starting and unmeasured pods count conservatively.

    Such pods count as idle when scaling up, and as busy when scaling down. This never reverses the direction.
    """
    starting = bool(groups.unready) and ratio > 1
    if not starting and not groups.missing:
        return load.current if _is_near(load, ratio) else math.ceil(ratio * len(groups.counted))
    assumed = dict(usage)
    if ratio < 1:
        full = {name: requests.get(name, 0) * max(WHOLE, target.amount) // WHOLE for name in groups.missing}
        assumed |= full if target.is_utilization else dict.fromkeys(groups.missing, target.amount)
    elif ratio > 1:
        assumed |= dict.fromkeys(groups.missing, 0)
    if starting:
        assumed |= dict.fromkeys(groups.unready, 0)
    _, careful = _ratio(target, assumed, requests)
    if _is_near(load, careful) or (ratio < 1 < careful) or (careful < 1 < ratio):
        return load.current
    count = math.ceil(careful * len(assumed))
    is_other_way = count > load.current if careful < 1 else count < load.current
    return load.current if is_other_way else count


def _is_near(load: CurrentUsage, ratio: float) -> bool:
    below, above = load.tolerances
    return 1 - below <= ratio <= 1 + above


def _ratio(target: TargetUsage, usage: Mapping[str, int], requests: Mapping[str, int]) -> tuple[int, float]:
    """Return the mean usage of pods, in the unit of the target, and its ratio to the target."""
    total = sum(usage.values())
    if not target.is_utilization:
        mean = total // len(usage)
        return mean, mean / target.amount
    requested = sum(requests[name] for name in usage if name in requests)
    if not requested:
        raise ReadingError("", "no metrics returned matched known pods")
    share = total * WHOLE // requested
    return share, share / target.amount


def _requests(target: TargetUsage, pods: Iterable[JSONObject]) -> dict[str, int]:
    """Return the requests of pods by name. They include sidecars, which run for the whole lifetime of a pod."""
    return {
        meta.name(pod): sum(_request(target, pod, container) for container in _containers(target, pod)) for pod in pods
    }


def _containers(target: TargetUsage, pod: JSONObject) -> list[JSONObject]:
    spec = meta.spec(pod)
    sidecars = [
        container for container in spec.get("initContainers") or () if container.get("restartPolicy") == "Always"
    ]
    return [container for container in (*spec["containers"], *sidecars) if target.container in {"", container["name"]}]


def _request(target: TargetUsage, pod: JSONObject, container: JSONObject) -> int:
    amount = ((container.get("resources") or {}).get("requests") or {}).get(target.resource)
    if amount is None:
        raise ReadingError(
            "", f"missing request for {target.resource} in container {container['name']} of Pod {meta.name(pod)}"
        )
    return _to_milli(amount)


def _usage_samples(target: TargetUsage, metrics: Iterable[JSONObject]) -> dict[str, Sample]:
    """Return the usage of pods by name, except pods with an unmeasured container."""
    samples = {}
    for pod_metrics in metrics:
        measured = [container for container in pod_metrics["containers"] if target.container in {"", container["name"]}]
        amounts = [container["usage"].get(target.resource) for container in measured]
        if amounts and None not in amounts:
            window = timedelta(seconds=float(pod_metrics["window"].removesuffix("s")))
            milli = sum(map(_to_milli, amounts))
            samples[meta.name(pod_metrics)] = Sample(milli, timestamps.parse(pod_metrics["timestamp"]), window)
    return samples


def _to_milli(amount: str) -> int:
    return (quantity.parse(amount) * MILLI).ceil()
