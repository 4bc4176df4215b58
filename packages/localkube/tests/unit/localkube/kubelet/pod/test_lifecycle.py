"""Tests the next steps for a pod with tables of states."""

import copy
from datetime import timedelta

import pytest
from msgspec.structs import replace
from tests.kubeletpods import container, pod
from tests.unit.localkube.kubelet.pods import NOW, after, deleted, ended, launched, running, set_up, waiting

from kuberuntime.objects.meta import JSONObject
from localkube.kubelet.pod import lifecycle, state
from localkube.kubelet.pod.lifecycle import (
    CreateSandbox,
    Decision,
    Delay,
    Fail,
    Finish,
    Kill,
    PrepareVolumes,
    RemoveSandbox,
    Start,
    Step,
    Stop,
    StopPod,
    Terminate,
)
from localkube.kubelet.pod.state import ContainerState, PodState, Waiting
from localkube.kubelet.processes.runner import Exit
from localkube.kubelet.spec.backoff import Backoff

TWO = pod(container("a"), container("b"))
INIT = pod(initContainers=[container("init-1"), container("init-2")])
SIDECAR = container("proxy", restartPolicy="Always")
WITH_SIDECAR = pod(initContainers=[SIDECAR, container("init")])
STOPPING = "Stopping container main"


def steps(found: JSONObject, current: PodState, seconds: float = 0) -> tuple[Step, ...]:
    return lifecycle.next_steps(found, current, after(seconds)).steps


def test_volumes_precede_the_sandbox_and_the_sandbox_containers() -> None:
    fresh = state.initial_state(pod(), NOW)
    assert steps(pod(), fresh) == (PrepareVolumes(),)
    assert steps(pod(), replace(fresh, has_volumes=True)) == (CreateSandbox(),)
    assert steps(pod(), replace(fresh, has_volumes=True, has_sandbox=True)) == (Start("main"),)


def test_failed_setup_is_retried_at_its_time() -> None:
    put_off = replace(state.initial_state(pod(), NOW), not_before=after(10))
    assert lifecycle.next_steps(pod(), put_off, NOW) == Decision((), after(10))
    assert steps(pod(), put_off, 10) == (PrepareVolumes(),)


def test_containers_start_one_at_a_time() -> None:
    assert steps(TWO, set_up(TWO)) == (Start("a"),)
    assert steps(TWO, set_up(TWO, launched("a"))) == ()
    assert steps(TWO, set_up(TWO, running("a"))) == (Start("b"),)


def test_init_containers_run_to_completion_in_sequence() -> None:
    assert steps(INIT, set_up(INIT)) == (Start("init-1"),)
    assert steps(INIT, set_up(INIT, running("init-1"))) == ()
    assert steps(INIT, set_up(INIT, ended(0, "init-1"))) == (Start("init-2"),)
    assert steps(INIT, set_up(INIT, ended(0, "init-1"), ended(0, "init-2"))) == (Start("main"),)


def test_failed_init_container_restarts_unless_policy_is_never() -> None:
    assert steps(INIT, set_up(INIT, ended(1, "init-1"))) == (Start("init-1"),)
    never = pod(initContainers=[container("init-1")], restartPolicy="Never")
    assert steps(never, set_up(never, ended(1, "init-1"))) == (StopPod(after(30)),)


def test_started_sidecar_allows_the_next_container() -> None:
    unstarted = state.record_running(launched("proxy"), frozenset({"startup"}), is_sidecar=True)
    assert steps(WITH_SIDECAR, set_up(WITH_SIDECAR, unstarted)) == ()
    started = state.record_probe(unstarted, "startup", frozenset({"startup"}), good=True, is_sidecar=True)
    assert steps(WITH_SIDECAR, set_up(WITH_SIDECAR, started)) == (Start("init"),)


def test_exited_sidecar_restarts_while_the_others_run() -> None:
    proxy = replace(ended(0, "proxy"), has_passed_startup=True)
    assert steps(WITH_SIDECAR, set_up(WITH_SIDECAR, proxy, running("init"))) == (Start("proxy"),)


@pytest.mark.parametrize(
    ("policy", "code", "again"),
    [
        ("Always", 0, True),
        ("Always", 1, True),
        ("OnFailure", 0, False),
        ("OnFailure", 1, True),
        ("Never", 0, False),
        ("Never", 1, False),
    ],
)
def test_restart_policy_applies_to_a_terminated_container(policy: str, code: int, again: bool) -> None:
    found = pod(restartPolicy=policy)
    expected: Step = Start("main") if again else StopPod(after(30))
    assert steps(found, set_up(found, ended(code))) == (expected,)


def test_second_restart_waits_ten_seconds() -> None:
    second = state.record_exit(state.record_launch(ended(1), "id", "", NOW), Exit(1), "", after(1))
    assert steps(pod(), set_up(pod(), second), 2) == (Delay("main", after(11), timedelta(seconds=10)),)
    delayed = state.record_delay(second, Waiting(state.CRASH_LOOP), after(11))
    assert lifecycle.next_steps(pod(), set_up(pod(), delayed), after(2)).wake_at == after(11)
    assert steps(pod(), set_up(pod(), delayed), 11) == (Start("main"),)


def test_setting_the_clock_back_by_a_day_stops_all_waits() -> None:
    """A back-off lasts at most five minutes, so a back-off until the next day indicates a clock error."""
    day = -24 * 3600
    put_off = replace(state.initial_state(pod(), NOW), not_before=after(10))
    second = state.record_exit(state.record_launch(ended(1), "id", "", NOW), Exit(1), "", after(1))
    delayed = state.record_delay(second, Waiting(state.CRASH_LOOP), after(11))
    stopped = replace(set_up(pod()), kill_at=after(30))

    assert steps(pod(), put_off, day) == (PrepareVolumes(),)
    assert steps(pod(), set_up(pod(), second), day) == (Start("main"),)
    assert steps(pod(), set_up(pod(), delayed), day) == (Start("main"),)
    assert steps(deleted(pod()), stopped, day) == (StopPod(after(day + 30)),)


def test_unhealthy_container_stops_with_the_grace_of_its_probe() -> None:
    found = pod(container(livenessProbe={"terminationGracePeriodSeconds": 5}))
    sick = replace(running(), unhealthy="liveness probe")
    message = "Container main failed liveness probe, will be restarted"
    assert steps(found, set_up(found, sick)) == (Stop("main", after(5), message),)


def test_pod_fails_after_its_active_deadline() -> None:
    found = pod(activeDeadlineSeconds=60)
    assert lifecycle.next_steps(found, set_up(found, running()), NOW).wake_at == after(60)
    (step,) = steps(found, set_up(found, running()), 60)
    assert isinstance(step, Fail)
    assert step.reason == "DeadlineExceeded"


def test_deleted_pod_first_records_its_end() -> None:
    assert steps(deleted(pod(), 7), set_up(pod(), running())) == (StopPod(after(7)),)


def test_second_deletion_can_only_shorten_the_time() -> None:
    current = set_up(pod(), running(), kill_at=after(7))
    assert steps(deleted(pod(), 2), current) == (StopPod(after(2)),)
    assert steps(deleted(pod(), 20), current) == (Stop("main", after(7), STOPPING),)


def stopping(hook: state.Hook, kill_at: float = 30) -> ContainerState:
    return state.record_stop(running(), after(kill_at), hook)


@pytest.mark.parametrize(
    ("current", "seconds", "expected"),
    [
        (running(), 0, (Stop("main", after(30), STOPPING),)),
        (stopping("running"), 1, ()),
        (stopping("done"), 1, (Terminate("main", after(30)),)),
        (stopping("done", 1), 1, (Terminate("main", after(3)),)),
        (stopping("running"), 30, (Terminate("main", after(32)),)),
        (stopping(""), 29, ()),
        (stopping(""), 30, (Kill("main"),)),
        (replace(stopping(""), is_killed=True), 31, ()),
        (ended(0), 5, (RemoveSandbox(),)),
    ],
    ids=[
        "asked to stop",
        "hook runs",
        "hook is done",
        "hook took all the time",
        "hook takes too long",
        "signalled",
        "time is over",
        "killed",
        "ended",
    ],
)
def test_container_is_stopped_by_hook_signal_and_kill(
    current: ContainerState, seconds: float, expected: tuple[Step, ...]
) -> None:
    assert steps(deleted(pod()), set_up(pod(), current, kill_at=after(30)), seconds) == expected


def test_zero_grace_period_kills_immediately() -> None:
    current = set_up(pod(), stopping("done", 0), kill_at=NOW)
    assert steps(deleted(pod(), 0), current) == (Kill("main"),)


def test_sidecars_stop_last_in_reverse_order() -> None:
    found = deleted(pod(initContainers=[SIDECAR, container("logger", restartPolicy="Always")]))
    live = [running("proxy", is_sidecar=True), running("logger", is_sidecar=True)]
    both = set_up(found, *live, running(), kill_at=after(30))
    assert [step.name for step in steps(found, both) if isinstance(step, Stop)] == ["main"]
    alone = both.with_container(ended(0))
    assert [step.name for step in steps(found, alone) if isinstance(step, Stop)] == ["logger"]
    last = alone.with_container(ended(0, "logger"))
    assert [step.name for step in steps(found, last) if isinstance(step, Stop)] == ["proxy"]


def test_late_sidecar_still_has_two_seconds() -> None:
    found = deleted(pod(initContainers=[SIDECAR]))
    current = set_up(found, running("proxy", is_sidecar=True), ended(0), kill_at=after(30))
    assert steps(found, current, 30) == (Stop("proxy", after(32), "Stopping container proxy"),)


def test_object_is_deleted_when_nothing_remains() -> None:
    current = replace(set_up(pod(), ended(0), kill_at=after(30)), has_sandbox=False)
    assert steps(deleted(pod()), current) == (Finish(),)


def test_completed_pod_releases_its_sandbox_and_stays() -> None:
    found = pod(restartPolicy="Never")
    done = set_up(found, ended(0), kill_at=after(30))
    assert steps(found, done) == (RemoveSandbox(),)
    assert lifecycle.next_steps(found, replace(done, has_sandbox=False), NOW) == Decision()


def test_pod_without_an_object_is_removed_without_grace() -> None:
    gone = set_up(pod(), running(), is_deleted=True)
    assert steps(pod(), gone) == (RemoveSandbox(),)
    assert steps(pod(), replace(gone, has_sandbox=False)) == (Finish(),)


def test_running_pod_needs_no_step() -> None:
    assert lifecycle.next_steps(TWO, set_up(TWO, running("a"), running("b")), NOW) == Decision()


def test_stop_waits_for_a_container_that_is_starting() -> None:
    current = set_up(pod(), state.record_start(waiting()), kill_at=after(30))
    assert steps(deleted(pod()), current) == ()


@pytest.mark.parametrize("seconds", [2**62, -(2**62), 10**15])
def test_huge_periods_are_limited_to_centuries(seconds: int) -> None:
    found = pod(terminationGracePeriodSeconds=seconds, activeDeadlineSeconds=abs(seconds))
    assert steps(deleted(found), set_up(found, running("main")))
    assert lifecycle.active_deadline(found, set_up(found, running("main"))) is not None


@pytest.mark.parametrize("days", [400, -400])
def test_clock_jump_changes_no_wait(days: float) -> None:
    jump = timedelta(days=days)
    limited = pod(activeDeadlineSeconds=600)
    stopping = state.record_stop(running(), after(30), "")
    crashed = state.record_delay(ended(1), Waiting(state.CRASH_LOOP), after(10))
    for found, current, seconds, step in (
        (limited, set_up(limited, running()), 600, Fail),
        (deleted(pod()), replace(set_up(pod(), stopping), kill_at=after(30)), 30, Kill),
        (pod(), set_up(pod(), crashed), 10, Start),
        (pod(), replace(state.initial_state(pod(), NOW), not_before=after(10)), 10, PrepareVolumes),
    ):
        moved = current.after_jump(jump)
        early = lifecycle.next_steps(found, moved, after(seconds - 1) + jump)
        assert early == Decision((), after(seconds) + jump), step
        late = lifecycle.next_steps(found, moved, after(seconds) + jump)
        assert [type(it) for it in late.steps] == [step]


def test_clock_jump_keeps_the_back_off_of_a_container() -> None:
    crashed = replace(running(), backoff=Backoff(timedelta(seconds=40), NOW))
    moved = set_up(pod(), crashed).after_jump(timedelta(days=400)).containers["main"]
    assert moved.backoff.wait(after(5) + timedelta(days=400)) == timedelta(seconds=40)


def test_changed_image_restarts_a_container_with_any_policy() -> None:
    """The message equals the message of Kubernetes.

    The restart policy applies to a container that has already terminated.
    """
    found = pod(containers=[container("main") | {"image": "app:2"}], restartPolicy="Never")
    runs = replace(running("main"), image="app:1")
    text = "Container main definition changed, will be restarted"
    assert steps(found, set_up(found, runs)) == (Stop("main", after(30), text, is_replaced=True),)
    assert steps(found, set_up(found, replace(runs, image="app:2"))) == ()
    ending = state.record_stop(runs, after(30), "done", replaced=True)
    assert state.record_stop(ending, after(30), "").is_replaced
    over = state.record_exit(ending, Exit(143), "", after(1))
    assert steps(found, set_up(found, over), 1) == (Start("main"),)
    assert not state.record_launch(over, "id", "", NOW, "app:2").is_replaced
    assert steps(found, set_up(found, replace(over, is_replaced=False)), 1) == (StopPod(after(31)),)


def test_changed_image_restarts_a_sidecar_but_no_init_container() -> None:
    def named(name: str) -> JSONObject:
        found: JSONObject = copy.deepcopy(WITH_SIDECAR)
        for one in found["spec"]["initContainers"]:
            one["image"] = "app:2" if one["name"] == name else "app:1"
        return found

    proxy, init = (replace(running(name), image="app:1") for name in ("proxy", "init"))
    proxy = replace(proxy, has_passed_startup=True)
    assert steps(named("init"), set_up(WITH_SIDECAR, proxy, init)) == ()
    (stop,) = steps(named("proxy"), set_up(WITH_SIDECAR, proxy, init))
    assert isinstance(stop, Stop)
    assert stop.name == "proxy"
