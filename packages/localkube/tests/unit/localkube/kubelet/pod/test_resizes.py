"""Tests resizes. The kubelet performs feasible resizes, rejects others, and reports the result in the status."""

from tests.kubeletpods import container, pod, status_of
from tests.unit.localkube.kubelet.pods import NODE, after, ended, running, set_up

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from localkube.kubelet.pod import podstatus


def sized(cpu: str, status: JSONObject | None = None) -> JSONObject:
    found = pod(container(resources={"requests": {"cpu": cpu}, "limits": {"memory": "1Gi"}}))
    return found | {"status": status or {}}


def built(found: JSONObject) -> JSONObject:
    return found | {"status": podstatus.build(found, set_up(found, running()), after(5), NODE)}


def test_running_container_has_its_requested_resources() -> None:
    status = status_of(built(sized("1")))
    assert status["resources"] == {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}}
    assert status["allocatedResources"] == {"cpu": "1"}
    assert status_of(built(pod()))["resources"] == {}


def test_terminated_container_has_its_requested_resources() -> None:
    """A real kubelet reports the same status. `tests/node` compares both."""
    found = sized("1")
    status = status_of(found | {"status": podstatus.build(found, set_up(found, ended(3)), after(5), NODE)})
    assert status["resources"] == {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}}


def test_waiting_container_has_no_resources() -> None:
    found = sized("1")
    waiting = found | {"status": podstatus.build(found, set_up(found), after(5), NODE)}
    assert "resources" not in status_of(waiting)


def test_feasible_resize_is_done_immediately() -> None:
    found = built(sized("8", meta.status(built(sized("1")))))
    assert status_of(found)["resources"]["requests"] == {"cpu": "8"}
    assert meta.find_condition(found, "PodResizePending") is None


def test_impossible_resize_is_infeasible_until_reverted() -> None:
    found = built(sized("9", meta.status(built(sized("1")))))
    assert status_of(found)["resources"]["requests"] == {"cpu": "1"}
    condition = meta.find_condition(found, "PodResizePending") or {}
    assert (condition["status"], condition["reason"]) == ("True", "Infeasible")
    assert condition["message"] == "Node didn't have enough capacity: cpu, requested: 9, capacity: 8"
    assert built(found) == found
    back = built(sized("2", meta.status(found)))
    assert status_of(back)["resources"]["requests"] == {"cpu": "2"}
    assert meta.find_condition(back, "PodResizePending") is None
