"""Tests the replicas that a metric requires if pods are starting, terminating, or have no metrics."""

from datetime import timedelta
from typing import Any

import pytest
from tests.unit.localkube.controllers.objects import NOW, seconds_ago

from kuberuntime.objects import timestamps
from localkube.controllers.autoscaling import replicacalculator
from localkube.controllers.autoscaling.replicacalculator import CurrentUsage, ReadingError

HALF = {"type": "Utilization", "averageUtilization": 50}


def pod(name: str, *, ready: bool = True, since: float = 600, started: float = 900, **fields: Any) -> Any:
    condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": seconds_ago(since)}
    requests = {"cpu": "1", "memory": "1Gi"}
    return {
        "metadata": {"name": name} | fields.pop("metadata", {}),
        "spec": {"containers": [{"name": "main", "resources": {"requests": requests}}]} | fields.pop("spec", {}),
        "status": {"phase": "Running", "startTime": seconds_ago(started), "conditions": [condition]} | fields,
    }


def measured(name: str, cpu: str, at: float = 0, **more: str) -> Any:
    """Return the PodMetrics of a pod. `more` contains the CPU usage of additional containers."""
    containers = [{"name": one, "usage": {"cpu": amount}} for one, amount in {"main": cpu, **more}.items()]
    moment = timestamps.render(NOW - timedelta(seconds=at))
    return {"metadata": {"name": name}, "timestamp": moment, "window": "15.000s", "containers": containers}


def load(pods: list[Any], metrics: list[Any], current: int | None = None) -> CurrentUsage:
    return CurrentUsage(pods=pods, metrics=metrics, current=current or len(pods), tolerances=(0.1, 0.1), now=NOW)


def metric(target: Any = HALF, name: str = "cpu", container: str = "") -> Any:
    if container:
        return {
            "type": "ContainerResource",
            "containerResource": {"name": name, "container": container, "target": target},
        }
    return {"type": "Resource", "resource": {"name": name, "target": target}}


def replicas(pods: list[Any], metrics: list[Any], target: Any = HALF) -> int:
    return replicacalculator.propose_replicas(metric(target), load(pods, metrics)).replicas


ONE, TWO = pod("a"), pod("b")


@pytest.mark.parametrize(
    ("cpu", "found"), [("500m", 2), ("549m", 2), ("560m", 3), ("451m", 2), ("440m", 2), ("250m", 1), ("1", 4), ("0", 0)]
)
def test_replicas_follow_the_share_of_requests(cpu: str, found: int) -> None:
    """The tolerance is 10 %. At 44 % with a target of 50 %, 1.76 pods would be needed, which also rounds to two."""
    assert replicas([ONE, TWO], [measured("a", cpu), measured("b", cpu)]) == found


def test_status_has_the_mean_in_both_units() -> None:
    found = replicacalculator.propose_replicas(
        metric(), load([ONE, TWO], [measured("a", "300m"), measured("b", "500m")])
    )
    assert found.status == {
        "type": "Resource",
        "resource": {"name": "cpu", "current": {"averageUtilization": 40, "averageValue": "400m"}},
    }
    assert found.name == "cpu resource utilization (percentage of request)"
    average = {"type": "AverageValue", "averageValue": "200m"}
    assert (
        replicacalculator.propose_replicas(metric(average), load([ONE], [measured("a", "300m")])).name == "cpu resource"
    )


def test_container_metric_ignores_other_containers() -> None:
    containers = [{"name": "main", "resources": {"requests": {"cpu": "1"}}}, {"name": "proxy"}]
    both = pod("a", spec={"containers": containers})
    found = replicacalculator.propose_replicas(metric(container="main"), load([both], [measured("a", "1", proxy="9")]))
    assert found.replicas == 2
    assert found.status["containerResource"]["container"] == "main"
    with pytest.raises(ReadingError, match="missing request for cpu in container proxy of Pod a"):
        replicacalculator.propose_replicas(metric(), load([both], [measured("a", "1", proxy="9")]))


def test_sidecar_requests_are_counted() -> None:
    sidecar = {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}
    assert (
        replicas([pod("a", spec={"initContainers": [sidecar, {"name": "once"}], **ONE["spec"]})], [measured("a", "1")])
        == 1
    )


@pytest.mark.parametrize(
    "other",
    [
        pod("b", phase="Failed"),
        pod("b", metadata={"deletionTimestamp": seconds_ago(1)}),
    ],
)
def test_pods_being_deleted_are_not_counted(other: Any) -> None:
    assert replicas([ONE, other], [measured("a", "1"), measured("b", "0")]) == 2


@pytest.mark.parametrize(
    "other",
    [
        pod("b", phase="Pending"),
        pod("b", ready=False, started=60),
        pod("b", ready=False, since=895),
        pod("b", started=60, since=5),
        pod("b", conditions=[]),
        pod("b", startTime=None),
    ],
)
def test_starting_pods_count_as_idle_when_scaling_up(other: Any) -> None:
    """With the starting pod, the average of both pods meets the target. Without it, two more pods would be needed."""
    assert replicas([ONE, other], [measured("a", "2"), measured("b", "0")]) == 4
    assert replicas([ONE, other], [measured("a", "1"), measured("b", "0")]) == 2
    assert replicas([ONE, other], [measured("a", "100m"), measured("b", "0")]) == 1


@pytest.mark.parametrize("other", [pod("b", started=60, since=50), pod("b", ready=False, since=600)])
def test_pod_that_was_ready_is_counted(other: Any) -> None:
    assert replicas([ONE, other], [measured("a", "1"), measured("b", "1")]) == 4


def test_pods_without_metrics_never_reverse_the_direction() -> None:
    assert replicas([ONE, TWO], [measured("a", "250m")]) == 2, "busy, where it would shrink"
    assert replicas([ONE, TWO], [measured("a", "1")]) == 2, "idle, where it would grow"
    assert replicas([ONE, TWO], [measured("a", "2")]) == 4
    assert replicas([ONE, TWO, pod("c")], [measured("a", "0"), measured("b", "0")]) == 2
    average = {"type": "AverageValue", "averageValue": "500m"}
    assert replicas([ONE, TWO], [measured("a", "100m")], average) == 2
    assert replicas([ONE, TWO, pod("c")], [measured("a", "500m"), measured("b", "500m")], average) == 3


def test_high_load_never_scales_down() -> None:
    """The replica count does not change if the proposal is below it although the load exceeds the target."""
    pods = [ONE, TWO]
    found = replicacalculator.propose_replicas(metric(), load(pods, [measured("a", "2")], current=9))
    assert found.replicas == 9


@pytest.mark.parametrize(
    ("pods", "metrics", "text"),
    [
        ([ONE], [], "no metrics returned from resource metrics API"),
        ([pod("a", phase="Pending")], [measured("a", "1")], "pods might be unready"),
        ([pod("a", spec={"containers": []})], [measured("a", "1")], "no metrics returned matched known pods"),
    ],
)
def test_missing_metric_is_named(pods: list[Any], metrics: list[Any], text: str) -> None:
    with pytest.raises(ReadingError, match=text) as raised:
        replicacalculator.propose_replicas(metric(), load(pods, metrics))
    assert raised.value.reason == "FailedGetResourceMetric"
    with pytest.raises(ReadingError, match="not metrics of type Pods") as raised:
        replicacalculator.propose_replicas({"type": "Pods"}, load(pods, metrics))
    assert raised.value.reason == "FailedGetPodsMetric"
    with pytest.raises(ReadingError, match="failed to get memory usage"):
        replicacalculator.propose_replicas(metric({"averageValue": "1Gi"}, "memory"), load([ONE], [measured("a", "1")]))
