"""Tests the pod state after a restart of the whole cluster."""

from typing import Any

from tests.kubeletpods import container, pod
from tests.unit.localkube.kubelet.pods import NODE, NOW, after, ended, running, set_up

from kuberuntime.objects.meta import JSONObject
from localkube.kubelet.pod import lifecycle, podstatus, recovery, state
from localkube.kubelet.pod.lifecycle import Start
from localkube.kubelet.pod.state import Phase, PodState


def remembered(found: JSONObject, *containers: state.ContainerState, **fields: Any) -> JSONObject:
    """Return the pod with the status that it had when the cluster stopped."""
    return {**found, "status": podstatus.build(found, set_up(found, *containers, **fields), NOW, NODE)}


def recover(found: JSONObject) -> PodState:
    return recovery.recover(found, after(60))


def test_unknown_pod_is_new() -> None:
    assert recover(pod()) == state.initial_state(pod(), after(60))


def test_running_container_restarts_without_being_counted() -> None:
    current = recover(remembered(pod(), running()))
    main = current.containers["main"]
    assert (main.phase, main.restarts) == (Phase.WAITING, 0)
    assert main.last is not None
    assert (main.last.reason, main.last.exit_code) == ("ClusterRestarted", 137)
    assert recovery.interrupted_containers(current, recovery.CLUSTER_RESTARTED) == ["main"]
    again = state.record_launch(state.record_start(main), "id", "", after(61))
    assert (again.restarts, again.attempts) == (0, 1)


def test_earlier_restarts_are_remembered() -> None:
    twice = state.record_running(state.record_launch(ended(1), "id", "", NOW), frozenset(), is_sidecar=False)
    assert recover(remembered(pod(), twice)).containers["main"].restarts == 1


def test_init_containers_run_again() -> None:
    found = remembered(pod(initContainers=[container("init")]), ended(0, "init"), running())
    current = recover(found)
    assert not current.containers["init"].has_passed_startup
    ready = set_up(found, *current.containers.values())
    assert lifecycle.next_steps(found, ready, after(60)).steps == (Start("init"),)


def test_completed_pod_stays_completed_with_its_address() -> None:
    found = remembered(pod(restartPolicy="Never"), ended(0))
    current = recover(found)
    assert current.containers["main"].phase is Phase.TERMINATED
    assert podstatus.build(found, current, after(60), NODE)["phase"] == "Succeeded"
    assert current.ip == "10.0.0.1"


def test_failed_pod_keeps_its_reason() -> None:
    failure = state.Waiting("DeadlineExceeded", "too long")
    found = remembered(pod(), ended(143), failure=failure)
    assert recover(found).failure == failure


def test_completed_container_of_a_running_pod_stays_completed() -> None:
    two = pod(container("a"), container("b"), restartPolicy="OnFailure")
    current = recover(remembered(two, ended(0, "a"), running("b")))
    assert current.containers["a"].phase is Phase.TERMINATED
    assert current.containers["b"].phase is Phase.WAITING


def test_container_that_must_not_run_twice_has_failed() -> None:
    found = remembered(pod(restartPolicy="Never"), running())
    current = recover(found)
    assert podstatus.build(found, current, after(60), NODE)["phase"] == "Failed"


def test_start_time_is_remembered() -> None:
    assert recover(remembered(pod(), running())).start_time == NOW


def test_pod_started_by_a_fast_clock_keeps_its_deadline() -> None:
    found = remembered(pod(activeDeadlineSeconds=600), running())
    current = recovery.recover(found, after(-86400))
    assert current.start_time == NOW
    assert lifecycle.active_deadline(found, current) == after(-86400 + 600)
    assert lifecycle.active_deadline(found, recover(found)) == after(600)
