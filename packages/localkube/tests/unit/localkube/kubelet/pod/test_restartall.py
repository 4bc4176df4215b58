"""Tests that all containers of a pod restart in place after one container exits."""

from datetime import timedelta

import pytest
from msgspec.structs import replace
from tests.kubeletpods import container, pod
from tests.unit.localkube.kubelet.pods import NOW, after, deleted, ended, launched, running, set_up

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from localkube.kubelet.pod import lifecycle, podstatus, recovery, state
from localkube.kubelet.pod.lifecycle import Decision, Kill, RestartAll, Start, StartOver, StopPod
from localkube.kubelet.pod.state import Phase, PodState
from localkube.kubelet.spec.backoff import Backoff
from localkube.kubelet.spec.fieldref import NodeFacts

ON_88 = [{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [88]}}]
WATCHER = container("watcher", restartPolicy="Always", restartPolicyRules=ON_88)
INIT = container("init")
POD = pod(initContainers=[INIT, WATCHER], restartPolicy="Never")


def steps(current: PodState, seconds: float = 0, found: JSONObject = POD) -> tuple[lifecycle.Step, ...]:
    return lifecycle.next_steps(found, current, after(seconds)).steps


def begun(*, by: str = "watcher") -> PodState:
    """Return the pod after its watcher has terminated and the kubelet has observed the termination."""
    watcher = replace(ended(88, "watcher"), has_passed_startup=True)
    current = set_up(POD, ended(0, "init"), watcher, running("main"))
    return replace(current, restarted_by=by)


def cleared() -> PodState:
    """Return the pod after all its containers have terminated."""
    return begun().with_container(ended(137, "main", after(1)))


def status(current: PodState, found: JSONObject = POD) -> JSONObject:
    return found | {"status": podstatus.build(found, current, after(1), NodeFacts("127.0.0.1", {}))}


def test_exit_of_a_container_kills_all_containers() -> None:
    assert steps(begun(by="")) == (RestartAll("watcher"),)
    assert steps(begun()) == (Kill("main"),)
    killed = replace(running("main"), is_killed=True)
    assert steps(begun().with_container(killed)) == ()
    assert steps(cleared()) == (StartOver(),)


def test_starting_container_is_killed_after_its_start() -> None:
    assert lifecycle.next_steps(POD, begun().with_container(state.record_start(ended(1, "main"))), NOW) == Decision()
    assert steps(begun().with_container(launched("main"))) == (Kill("main"),)


def test_containers_restart_in_order_and_are_counted_once() -> None:
    over = state.record_restart_of_all(cleared(), after(1))
    assert steps(over, 1) == (Start("init"),)
    for name, current in over.containers.items():
        assert (current.phase, current.has_passed_startup, current.restarts) == (Phase.WAITING, False, 1), name
        assert current.last is not None
        assert (current.last.exit_code, current.last.reason) == (137, "RestartingAllContainers")
        assert state.record_launch(state.record_start(current), "id", "", after(1)).restarts == 1
    assert over.containers["main"].waiting is not None
    text = "all containers of the pod restart, because watcher exited with code 88"
    assert over.containers["main"].waiting.message == text


def test_unstarted_container_is_not_counted_as_restarted() -> None:
    waits = begun().with_container(state.ContainerState(name="main"))
    main = state.record_restart_of_all(waits, NOW).containers["main"]
    assert (main.restarts, main.last) == (0, None)


def test_first_restart_is_immediate_and_the_next_backs_off() -> None:
    first = state.record_restart_of_all(cleared(), after(1))
    assert first.containers["watcher"].backoff == Backoff(timedelta(seconds=10), after(1))
    watcher = replace(ended(88, "watcher", after(5)), backoff=first.containers["watcher"].backoff)
    again = state.record_restart_of_all(
        begun().with_container(watcher).with_container(ended(137, "main", after(5))), after(5)
    )
    decision = lifecycle.next_steps(POD, again, after(6))
    assert decision == Decision((), after(15))
    assert steps(again.retry_now(), 6) == ()
    assert steps(again, 15) == (Start("init"),)


def test_pod_is_not_completed_during_a_restart_of_all() -> None:
    for current in (begun(), cleared()):
        assert podstatus.pod_phase(POD, current) in ("Running", "Pending")
    assert podstatus.pod_phase(POD, state.record_restart_of_all(cleared(), after(1))) == "Pending"


def test_condition_is_true_until_all_containers_have_ended() -> None:
    condition = meta.find_condition(status(begun()), "AllContainersRestarting") or {}
    assert (condition["status"], condition["reason"]) == ("True", "RestartAllContainersStarted")
    assert condition["message"] == "container watcher exited with code 88"
    over = status(state.record_restart_of_all(cleared(), after(1)))
    assert (meta.find_condition(over, "AllContainersRestarting") or {})["status"] == "False"
    assert meta.find_condition(status(set_up(pod(), running()), pod()), "AllContainersRestarting") is None


def test_initialized_pod_stays_initialized() -> None:
    before = status(begun(by=""))
    assert meta.is_condition_true(before, "Initialized")
    assert meta.is_condition_true(status(state.record_restart_of_all(cleared(), after(1)), before), "Initialized")


def test_pod_deleted_during_a_restart_ends() -> None:
    assert steps(cleared(), found=deleted(POD)) == (StopPod(after(30)),)


@pytest.mark.parametrize("name", ["watcher", "init", "main"])
def test_any_container_can_restart_the_pod(name: str) -> None:
    found = pod(
        container("main", restartPolicy="Never", restartPolicyRules=ON_88),
        initContainers=[container("init", restartPolicy="Never", restartPolicyRules=ON_88), WATCHER],
    )
    assert steps(set_up(found, ended(88, name)), found=found) == (RestartAll(name),)


def test_interrupted_restart_continues_after_a_cluster_restart() -> None:
    for current in (begun(), cleared()):
        recovered = recovery.recover(status(current), after(60))
        assert recovered.restarted_by == "watcher"
        assert steps(recovered, 60) == (StartOver(),)
        over = state.record_restart_of_all(recovered, after(60))
        assert all(one.phase is Phase.WAITING for one in over.containers.values())
    assert recovery.recover(status(begun(by="")), after(60)).restarted_by == ""
