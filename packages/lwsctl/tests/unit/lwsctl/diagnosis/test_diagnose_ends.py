"""Tests explanations of terminated containers: crashes, completions, exit codes, and recorded failures."""

import pytest
from msgspec.structs import replace
from tests.explanations.builders import (
    ago,
    conditions,
    container,
    ended,
    event,
    lws,
    observed,
    placed,
    pod,
    ready,
    recreated,
    running,
)
from tests.explanations.scenarios import SCENARIOS
from tests.unit.lwsctl.diagnosis.test_diagnose import told

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CORE_EVENTS
from leaderworkerset.api import labels
from leaderworkerset.api.recreationrecord import RecreationState
from leaderworkerset.rendezvous.connectionerrors import FailureReason
from lwsctl.diagnosis.document import headline
from lwsctl.diagnosis.observed import Commands
from lwsctl.model.health import Verdict


def test_old_crash_does_not_explain_an_unready_rank() -> None:
    situation = running(container(last=ended(1, 400), restarts=1, running={"startedAt": ago(350)}))
    assert told(situation).code != "LWS-E071"


def test_run_stopped_with_its_node_is_not_a_crash() -> None:
    """A kubelet that recreates containers after its own restart does not count restarts."""
    situation = running(container(last=ended(137, 30, "ClusterRestarted"), restarts=0, running={"startedAt": ago(20)}))
    assert told(situation).code != "LWS-E071"
    again = running(container(last=ended(137, 30), restarts=1, running={"startedAt": ago(20)}))
    assert told(again).code == "LWS-E071"


def completed(rank: int) -> JSONObject:
    """Return a pod whose container exited with code 0 and waits to be restarted."""
    waits: JSONObject = {"reason": "CrashLoopBackOff"}
    status = container(restarts=1, last=ended(0, reason="Completed"), waiting=waits)
    return placed(0, rank, status={"containerStatuses": [status]})


def test_completed_worker_is_not_a_problem_before_its_leader() -> None:
    completes = lws(metadata={"annotations": {labels.RUN_TO_COMPLETION: "true"}})
    found = told(observed([placed(), completed(1)], of=completes))
    assert (found.code, found.verdict) == ("LWS-E078", Verdict.PROGRESSING)
    assert found.sentence == "1 of 2 ranks exited with code 0; not complete: 0/0 (Running)"
    assert found.steps == ("lws -n prod logs web/0/0 --follow",)


@pytest.mark.parametrize(
    ("code", "sentence", "advice"),
    [
        (134, "exit code 134 (Error, killed by SIGABRT)", "SIGABRT: the program or one of its libraries aborted"),
        (135, "exit code 135 (Error, killed by SIGBUS)", "SIGBUS: a memory access failed"),
        (136, "exit code 136 (Error, killed by SIGFPE)", "SIGFPE: the program divided by zero"),
        (139, "exit code 139 (Error, killed by SIGSEGV)", "SIGSEGV: the program accessed invalid memory"),
    ],
)
def test_signal_of_the_program_itself_is_named(code: int, sentence: str, advice: str) -> None:
    found = told(running(container(restarts=1, terminated=ended(code))))
    assert found.sentence.endswith(sentence)
    assert found.steps[0].startswith(advice)


HERE = Commands(kubectl="", lws="lws --local", images=())
UNMAPPED_LWS = lws(
    template={
        "workerTemplate": {
            "spec": {
                "initContainers": [{"name": "fetch", "image": "app:1"}],
                "containers": [{"name": "main", "image": "app:1", "command": ["python3", "serve.py"]}],
            }
        }
    }
)
FAILED_AT_START = "main: exit code 2, Error: python3: can't open file 'serve.py'"


NEW_POD = placed(0, 1, spec=UNMAPPED_LWS["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"])


@pytest.mark.parametrize("pods", [[], [NEW_POD]], ids=["no pod", "a new pod"])
def test_advice_refers_to_the_failed_run_while_restarting(pods: list[JSONObject]) -> None:
    situation = recreated([ready(0, 0), *pods], of=UNMAPPED_LWS, failure=FAILED_AT_START)
    found = told(replace(situation, commands=HERE))
    assert found.code == "LWS-E071"
    assert "map the image with --image app:1=DIR" in found.steps[0]
    assert found.steps[1] == "lws --local -n prod logs web/0/1 -c main --previous"


def test_mapped_image_needs_no_mapping_advice() -> None:
    situation = recreated([ready(0, 0)], of=UNMAPPED_LWS, failure=FAILED_AT_START)
    found = told(replace(situation, commands=replace(HERE, images=("app",))))
    assert found.steps == ("lws --local -n prod logs web/0/1 -c main --previous",)


UNTIL_DONE = Commands(until_done=True)


def test_completed_rank_is_healthy_while_waiting_for_completion() -> None:
    """The ranks of group 0 exited minutes ago as in a batch job, and the ranks of group 1 still run."""
    stays = container(terminated=ended(0, 100, "Completed"))
    pods = [*(placed(0, rank, status={"containerStatuses": [stays]}) for rank in (0, 1)), ready(1, 0), ready(1, 1)]
    situation = observed(pods, of=lws(2))
    assert told(situation).code == "LWS-E075"
    found = told(replace(situation, commands=UNTIL_DONE))
    assert (found.code, found.verdict) == ("LWS-E078", Verdict.PROGRESSING)
    assert found.sentence == "2 of 4 ranks exited with code 0; not complete: 1/0, 1/1 (Running)"
    whole = told(replace(observed([*pods[:2]]), commands=UNTIL_DONE))
    assert (whole.verdict, whole.sentence) == (Verdict.COMPLETE, "2 of 2 ranks exited with code 0")


def test_crash_is_the_cause_while_waiting_for_completion() -> None:
    stays = container(terminated=ended(0, 100, "Completed"))
    pods = [placed(0, 0, status={"containerStatuses": [stays]}), placed(0, 1, status=CRASHED)]
    found = told(replace(observed(pods), commands=UNTIL_DONE))
    assert (found.code, found.verdict) == ("LWS-E071", Verdict.CRASHING)


def test_rank_that_runs_to_completion_need_not_become_ready() -> None:
    """The readiness probe has failed for an hour, because the workload does not have a server."""
    event_of = event("Pod", "web-0-1", "Unhealthy", "Readiness probe failed: connection refused")
    status: JSONObject = {"containerStatuses": [container(running={"startedAt": ago(3500)})]}
    situation = observed([ready(), placed(0, 1, made=3600, status=status)], {CORE_EVENTS: [event_of]})
    assert told(situation).verdict is Verdict.STUCK
    assert told(replace(situation, commands=UNTIL_DONE)).verdict is Verdict.PROGRESSING


def test_exiting_program_is_the_cause_while_its_group_waits() -> None:
    """A recreation does not help. The container exits with code 0 each time, and user action is required."""
    waits = SCENARIOS["LWS-E080"].objects  # group 0 waits because of web-0-1
    found = told(observed([placed(), completed(1)], waits))
    assert (found.code, found.verdict) == ("LWS-E075", Verdict.CRASHING)
    assert "recreated 2 times; pod web-0-1 failed again" in found.evidence[-1]


def test_group_waits_for_the_failed_rank_not_a_completed_one() -> None:
    waits = SCENARIOS["LWS-E080"].objects
    found = told(observed([completed(0), placed(0, 1)], waits))
    assert (found.code, found.verdict) == ("LWS-E080", Verdict.PROGRESSING)


UNREADY: JSONObject = {"containerStatuses": [container(running={"startedAt": ago(5)})]}


CRASHED: JSONObject = {"containerStatuses": [container(restarts=1, terminated=ended(3, message="no such model"))]}


DELETED = {"deletionTimestamp": ago(1)}


MOMENTS: dict[str, list[JSONObject]] = {
    "no pod is there": [],
    "the object is being deleted": [placed(metadata=DELETED), placed(0, 1, metadata=DELETED)],
    "only the leader was created": [pod(made=1)],
    "it is being placed": [pod(made=1), pod(0, 1, made=1)],
    "it loads": [placed(made=5, status=UNREADY), placed(0, 1, made=5, status=UNREADY)],
    "only the leader is ready": [ready(made=5), placed(0, 1, made=5, status=UNREADY)],
    "only the worker is ready": [placed(made=5, status=UNREADY), ready(0, 1, made=5)],
    "it crashed": [placed(), placed(0, 1, status=CRASHED)],
}
"""The pods of a group that crashes repeatedly, by state."""


@pytest.mark.parametrize("pods", MOMENTS.values(), ids=MOMENTS)
def test_repeated_failure_has_the_same_cause_at_every_moment(pods: list[JSONObject]) -> None:
    found = told(recreated(pods, failure="main: exit code 3, Error: no such model"))
    assert headline(found) == (
        "web is crashing (LWS-E071): container main of pod web-0-1 crashed with exit code 3 (Error): no such model"
    )
    assert found.evidence[-1].startswith("group 0 recreated 3 times, last 30s ago because pod web-0-1 failed")


REFUSED_PROBES = {
    "dial tcp 10.0.0.9:8000: connect: connection refused": ": nothing listens on port 8000",
    'Get "http://[fd00:12:34::1]:8080/health": dial tcp [fd00:12:34::1]:8080: connect: connection refused': (
        ": nothing listens on port 8080, its containers declare 8000, 9000"
    ),
    "http://10.88.1.10:8080/: Connection refused; the pod listens on 8000": (
        ": nothing listens on port 8080, its containers declare 8000, 9000; the pod listens on 8000"
    ),
    "http://10.88.1.10:8080/: Connection refused": ": nothing listens on port 8080, its containers declare 8000, 9000",
    "http://10.88.1.10:8080/: HTTP probe failed with statuscode: 503": "",
}


@pytest.mark.parametrize(("message", "said"), REFUSED_PROBES.items())
def test_rejected_probe_port_is_compared_with_declared_ports(message: str, said: str) -> None:
    situation = running(
        container(running={"startedAt": ago(100)}),
        events=[("Unhealthy", f"Readiness probe failed: {message}")],
        spec={"containers": [{"name": "main", "ports": [{"containerPort": 9000}, {"containerPort": 8000}]}]},
    )
    assert told(situation).sentence == f"the readiness probe of pod web-0 fails{said}"


KILLED = "Container main failed liveness probe, will be restarted"


@pytest.mark.parametrize(
    ("code", "finished", "killed", "cause"),
    [
        (3, 20, None, "LWS-E071"),
        (3, 20, 90, "LWS-E071"),
        (137, 20, 21, "LWS-E072"),
        (1, 20, 50, "LWS-E072"),
        (0, 20, 30, "LWS-E072"),
    ],
    ids=["never killed", "killed before", "killed", "handles SIGTERM", "exits with 0"],
)
def test_probe_is_the_cause_only_if_the_run_was_killed(
    code: int, finished: int, killed: int | None, cause: str
) -> None:
    """The container crashes. Its liveness probe failed while it was loading, with empty output."""
    line = "Error: no such model: llama"
    last = ended(code, finished, message=f"loading\n{line}\n") | {"startedAt": ago(60)}
    events = [event("Pod", "web-0", "Unhealthy", "Liveness probe failed: ", seconds=55)]
    events += [event("Pod", "web-0", "Killing", KILLED, seconds=killed)] if killed else []
    leader = placed(status={"containerStatuses": [container(restarts=1, last=last, running={"startedAt": ago(10)})]})
    found = told(observed([leader, ready(0, 1)], {CORE_EVENTS: events}))
    assert found.code == cause
    expected = f"exit code {code} (Error): {line}" if cause == "LWS-E071" else "Liveness probe failed: (no output)"
    assert expected in found.sentence


@pytest.mark.parametrize(
    ("uid", "code", "cause"),
    [("an earlier one", 3, "LWS-E071"), ("former", 137, "LWS-E072"), ("former", 0, "LWS-E072")],
)
def test_recorded_failure_is_a_probe_only_if_it_killed_that_pod(uid: str, code: int, cause: str) -> None:
    kill = event("Pod", "web-0-1", "Killing", KILLED, uid=uid, seconds=40)
    failure = f"main: exit code {code}, Error: no such model"
    found = told(recreated([pod(made=1), pod(0, 1, made=1)], failure=failure, objects={CORE_EVENTS: [kill]}))
    assert found.code == cause


@pytest.mark.parametrize(
    ("reason", "message", "code", "has_events", "cause"),
    [
        ("Killing", KILLED, 0, False, "LWS-E072"),
        ("Killing", KILLED, 143, False, "LWS-E072"),
        ("Killing", KILLED, 3, False, "LWS-E071"),
        ("Killing", KILLED, 0, True, "LWS-E075"),
        ("FailedPostStartHook", "PostStartHook failed", 0, False, "LWS-E115"),
        ("FailedPostStartHook", "PostStartHook failed", 0, True, "LWS-E075"),
    ],
)
def test_kill_is_likely_while_the_kubelet_writes_no_events(
    reason: str, message: str, code: int, has_events: bool, cause: str
) -> None:
    """A former pod was killed, and the current pod exited as after a SIGTERM signal."""
    events = [event("Pod", "web-0", reason, message, uid="former", seconds=60)]
    events += [event("Pod", "web-0", "Pulled", "the image is present", seconds=9)] if has_events else []
    run = ended(code, 20, reason="Completed") | {"startedAt": ago(40)}
    status = container(restarts=1, last=run, waiting={"reason": "CrashLoopBackOff"})
    leader = placed(status={"containerStatuses": [status]})
    assert told(observed([leader, ready(0, 1)], {CORE_EVENTS: events})).code == cause


def test_rejected_liveness_probe_is_compared_with_the_ports() -> None:
    message = "Liveness probe failed: http://10.88.1.10:8080/: Connection refused"
    events = [("Unhealthy", f"{message}; the pod listens on no port"), ("Killing", KILLED)]
    spec = {"containers": [{"name": "main", "ports": [{"containerPort": 8000}]}]}
    found = told(running(container(restarts=1, terminated=ended(137, 5)), events=events, spec=spec))
    assert found.code == "LWS-E072"
    compared = "nothing listens on port 8080, its containers declare 8000; the pod listens on no port"
    assert found.sentence == f"the liveness probe of pod web-0 fails: {message}: {compared}"


@pytest.mark.parametrize(
    ("probe", "existing", "change"),
    [
        ("liveness", {}, "add a startupProbe"),
        ("liveness", {"startupProbe": {}}, "increase failureThreshold of its livenessProbe"),
        ("startup", {"startupProbe": {}}, "increase failureThreshold of its startupProbe"),
    ],
)
def test_advice_for_slow_containers_depends_on_their_probes(probe: str, existing: JSONObject, change: str) -> None:
    name = probe.capitalize()
    events = [("Unhealthy", f"{name} probe failed: "), ("Killing", KILLED.replace("liveness", probe))]
    spec = {"containers": [{"name": "main", **existing}]}
    found = told(running(container(restarts=1, terminated=ended(137, 5)), events=events, spec=spec))
    assert found.steps[-1] == f"if the container needs more time, {change} in the template of web"


@pytest.mark.parametrize(("code", "signal"), [(137, "SIGKILL"), (143, "SIGTERM")])
def test_signal_that_killed_a_program_is_named(code: int, signal: str) -> None:
    found = told(running(container(restarts=1, terminated=ended(code))))
    assert found.sentence == f"container main of pod web-0 crashed with exit code {code} (Error, killed by {signal})"
    memory = ", or by the kernel if node node-0 was out of memory (see dmesg)" if code == 137 else ""
    came = f"{signal} was sent by a user, or because the container was stopped{memory}"
    assert found.steps[0] == f"{came}; it has no liveness or startup probe"
    spec = {"containers": [{"name": "main", "livenessProbe": {"periodSeconds": 5}}]}
    found = told(running(container(restarts=1, terminated=ended(code)), spec=spec))
    assert found.steps[0] == f"{came}, or because of its liveness probe: lws -n prod events web/0/0 --warnings"


@pytest.mark.parametrize(
    ("code", "image", "said"),
    [
        (
            2,
            "host://",
            "if a file is missing, map the image with --image ring=DIR, or use --stub=ring",
        ),
        (
            127,
            "host://",
            "if a file is missing, map the image with --image ring=DIR, or use --stub=ring",
        ),
        (
            127,
            "docker.io/ring",
            "exit code 127 means that an executable was not found in image ring, or is not on PATH",
        ),
        (2, "docker.io/ring", "lws -n prod logs web/0/0"),
        (1, "host://", "lws -n prod logs web/0/0"),
    ],
)
def test_missing_file_advice_starts_with_the_image(code: int, image: str, said: str) -> None:
    spec = {"containers": [{"name": "main", "image": "ring"}]}
    found = told(running(container(restarts=1, terminated=ended(code)) | {"imageID": image}, spec=spec))
    assert found.steps[0] == said
    spec = {"containers": [{"name": "main", "image": "host"}]}
    found = told(running(container(restarts=1, terminated=ended(code)) | {"imageID": "host://"}, spec=spec))
    assert found.steps == ("lws -n prod logs web/0/0",)


@pytest.mark.parametrize("reason", FailureReason)
def test_rendezvous_exit_code_is_explained(reason: FailureReason) -> None:
    means = f"exit code {reason.value} of the rendezvous means that {reason.description}. {reason.advice}"
    command = {"containers": [{"name": "main", "command": ["sh", "-c"], "args": ["sh rendezvous.sh leader && serve"]}]}
    assert told(running(container(terminated=ended(reason.value)), spec=command)).steps[0] == means
    said = ended(reason.value, message="rendezvous: the leader did not respond")
    assert told(running(container(terminated=said))).steps[0] == means
    assert told(running(container(terminated=ended(reason.value)))).steps == ("lws -n prod logs web/0/0",)


def test_local_cluster_quotes_the_log_of_the_previous_pod() -> None:
    situation = recreated([pod(made=1), pod(0, 1, made=1)], failure="main: exit code 9, Error: CUDA")
    elsewhere = told(situation)
    assert elsewhere.code == "LWS-E071"
    assert elsewhere.steps == ("lws -n prod logs web/0/1 --follow",)
    assert elsewhere.log is None
    here = told(replace(situation, commands=Commands(kubectl="", lws="lws --local")))
    assert here.steps == ("lws --local -n prod logs web/0/1 --previous",)
    assert here.log is not None
    assert (here.log.container, here.log.is_previous_run) == ("main", True)


def test_surplus_groups_are_reported_as_being_removed() -> None:
    left = [ready(group, rank, metadata=DELETED) for group in (1, 2) for rank in (0, 1)]
    status = {"readyReplicas": 3, "updatedReplicas": 3, "conditions": conditions(Available="True")}
    found = told(observed([ready(), ready(0, 1), *left], of=lws(1, status=status)))
    assert headline(found) == (
        "web is healthy: 1 of 1 group ready, all at the latest revision; 2 more are being removed"
    )


INITS = {"workerTemplate": {"spec": {"initContainers": [{"name": "download"}]}}}


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        ("main: exit code 137, OOMKilled", "LWS-E070"),
        ("download: exit code 2, Error, last line: half", "LWS-E068"),
        ("main: exit code 137, Error", "LWS-E072"),
        ("main: exit code 0, Completed", "LWS-E075"),
        ("deleted: EvictionByEvictionAPI", "LWS-E081"),
    ],
)
def test_group_record_explains_its_failure(failure: str, code: str) -> None:
    probes = [
        event("Pod", "web-0-1", "Unhealthy", "Liveness probe failed: refused", uid="former"),
        event("Pod", "web-0-1", "Killing", KILLED, uid="former"),
    ]
    objects = {CORE_EVENTS: probes if code == "LWS-E072" else []}
    pods = [pod(made=1), pod(0, 1, made=1)]
    assert told(recreated(pods, failure=failure, objects=objects, of=lws(template=INITS))).code == code
    assert told(recreated(pods, failure=failure, objects=objects, of=lws(template=INITS), due=-700)).code == "LWS-E081"


@pytest.mark.parametrize("due", [-30, 30], ids=["recreated", "waiting"])
def test_explain_names_a_drain_when_a_pod_was_evicted(due: float) -> None:
    state = RecreationState.RECREATED if due < 0 else RecreationState.WAITING
    pods = [pod(made=1), pod(0, 1, made=1)]
    found = told(
        recreated(
            pods,
            failure="deleted: EvictionByEvictionAPI",
            due=due,
            state=state,
            leader="web-0-uid" if due > 0 else "another",
        )
    )
    assert "web-0-1 was evicted, for example by a node drain; the group starts on other nodes" in found.evidence


def test_record_of_a_different_rank_does_not_explain_a_rank() -> None:
    situation = recreated([pod(made=1), pod(0, 1, made=1)], failure="main: exit code 3")
    assert told(situation, "web/0/1").subject == told(situation, "web/0").subject
    assert told(replace(situation, rank=0)).code == "LWS-E081"
