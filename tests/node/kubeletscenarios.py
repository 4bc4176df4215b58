"""Defines pods whose behavior depends on the kubelet, and the facts that are compared."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tests.node.objects import WAIT, container

from kuberuntime.objects.meta import JSONObject

NOT_COMPARED: Final = {"BackOff", "FailedMount", "Pulled", "Pulling", "Scheduled"}
"""Event reasons that are not compared: from the scheduler, from image pulls, and on a busy machine.

A real kubelet writes `BackOff` when it next looks at a pod: it follows a state that is compared.
"""

BACKING_OFF: Final = ("waiting", "CrashLoopBackOff", None, None)
PAUSE: Final = "first pause of"
"""The prefix of a fact that is known only while a kubelet reports a waiting container."""

NOT_STARTED: Final = ("ContainersReady", "PodReadyToStartContainers", "Ready")
"""The conditions of a pod without started containers."""

Settled = Callable[[JSONObject], bool]


def phase(name: str) -> Settled:
    """Wait until the pod has this phase."""
    return lambda pod: pod["status"].get("phase") == name


def finished(pod: JSONObject) -> bool:
    """Wait until no container is running or restarting.

    If its deadline is exceeded, a pod fails before its containers exit.
    """
    ends = pod["status"].get("phase") in {"Succeeded", "Failed"}
    return ends and not any("running" in one["state"] for one in statuses(pod))


def waiting(reason: str) -> Settled:
    """Wait until a container is waiting with this reason."""

    def settled(pod: JSONObject) -> bool:
        return any(one["state"].get("waiting", {}).get("reason") == reason for one in statuses(pod))

    return settled


def backs_off(pod: JSONObject) -> bool:
    """Wait until a container has exited again and waits for its restart.

    A real kubelet reports it only when it looks at the pod the next time, up to 90 seconds later; until then the last run is
    the state of the container.
    """
    return any(is_backing_off(one) for one in statuses(pod))


def is_backing_off(status: JSONObject) -> bool:
    """Return whether a container was restarted and is not running."""
    reason = status["state"].get("waiting", {}).get("reason")
    return reason == "CrashLoopBackOff" or ("terminated" in status["state"] and status["restartCount"] > 0)


def statuses(pod: JSONObject) -> list[JSONObject]:
    """Return the statuses of all containers of a pod."""
    return [*pod["status"].get("initContainerStatuses", []), *pod["status"].get("containerStatuses", [])]


def has_condition(kind: str) -> Settled:
    """Wait until a condition is true."""
    return lambda pod: any(
        one["type"] == kind and one["status"] == "True" for one in pod["status"].get("conditions", [])
    )


ready = has_condition("Ready")


def has_memory(pod: JSONObject) -> bool:
    """Wait until the container has the memory of a resize, the resize is complete, and the pod is ready."""
    (status,) = pod["status"]["containerStatuses"]
    return status.get("resources") == GROWN and ready(pod) and not has_condition("PodResizeInProgress")(pod)


def is_deleted(pod: JSONObject) -> bool:
    """Wait until the kubelet has stopped a deleted pod that a finalizer preserves."""
    return pod["metadata"].get("deletionGracePeriodSeconds") == 0 and all(
        "terminated" in one["state"] for one in statuses(pod)
    )


@dataclass(frozen=True, slots=True)
class Life:
    """A pod, and the times at which it is observed."""

    spec: JSONObject
    settled: Settled
    known: Mapping[str, str] = field(default_factory=dict)
    """Facts that differ on the embedded kubelet, with the reasons."""

    resized: JSONObject | None = None
    """The new resources that the container receives after the pod becomes ready."""

    deleted: int | None = None
    """The grace period in seconds of the deletion after the pod becomes ready. A finalizer preserves the pod."""

    has_logs: bool = False
    """Whether the logs of the last and the previous run are compared, including the error if a log is missing."""


def spec(*containers: JSONObject, restart: str = "Always", **fields: Any) -> JSONObject:
    """Return the pod spec."""
    return {"restartPolicy": restart, "terminationGracePeriodSeconds": 2, "containers": list(containers), **fields}


def probe(command: str, **fields: Any) -> JSONObject:
    """Return a probe that runs a command, with a timeout that suffices on a busy machine."""
    found = {"exec": {"command": ["sh", "-c", command]}, "timeoutSeconds": 60}
    return {**found, "periodSeconds": 1, "failureThreshold": 1, **fields}


def hooks(**scripts: str) -> JSONObject:
    """Return lifecycle hooks that run scripts."""
    return {name: {"exec": {"command": ["sh", "-c", script]}} for name, script in scripts.items()}


def killed(script: str, grace: int = 2, **fields: Any) -> JSONObject:
    """Return a pod with a container that is killed when its liveness probe fails."""
    probing = probe(FAILS, **fields.pop("probing", {}))
    return spec(container(script, livenessProbe=probing, **fields), terminationGracePeriodSeconds=grace)


def named(name: str, script: str, **fields: Any) -> JSONObject:
    """Return a container with a different name."""
    return {**container(script, **fields), "name": name}


DEAF: Final = "trap '' TERM; touch /tmp/begun; while :; do sleep 1; done"
"""A script that runs until it is killed."""

NOTED: Final = 'trap "echo term >> /dev/termination-log; exit 0" TERM; touch /tmp/begun; sleep 100000 & wait $!'
ENDS: Final = 'trap "exit 0" TERM; touch /tmp/begun; sleep 100000 & wait $!'
BEGUN: Final = "until test -e /tmp/begun; do sleep 0.1; done"
"""A postStart hook that waits until a script has set its trap, because the kernel ignores SIGTERM before."""

FAILS: Final = f"{BEGUN}; exit 1"
"""A probe or postStart hook that fails after a script has set its trap."""

GROWN: Final = {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"cpu": "400m", "memory": "96Mi"}}

LAST_LINES: Final = "The last lines of the log often contain the cause of the failure."

LIVES: Final[Mapping[str, Life]] = {
    "ends-well": Life(spec(container("exit 0"), restart="Never"), finished),
    "ends-badly": Life(spec(container("exit 3"), restart="Never"), finished),
    "ends-twice": Life(spec(container("exit 0"), named("other", "exit 4"), restart="Never"), finished),
    "on-failure-well": Life(spec(container("exit 0"), restart="OnFailure"), finished),
    "on-failure-badly": Life(spec(container("exit 5"), restart="OnFailure"), backs_off),
    "always": Life(spec(container("exit 0")), backs_off),
    "no-program": Life(
        spec({**container(), "command": ["/no/such/program"]}, restart="Never"),
        lambda pod: finished(pod) or waiting("ProgramNotFound")(pod),
        dict.fromkeys(
            ("phase", "main state", "main resources", "events", *(f"condition {name}" for name in NOT_STARTED)),
            "You can install the executable while the container waits. The message of the container describes this step.",
        ),
    ),
    "no-message": Life(
        spec(container("echo last words; exit 9"), restart="Never"),
        finished,
        {"main state": LAST_LINES},
    ),
    "init-fails": Life(spec(container(WAIT), restart="Never", initContainers=[named("first", "exit 6")]), finished),
    "init-fails-again": Life(spec(container(WAIT), initContainers=[named("first", "exit 6")]), backs_off),
    "init-in-order": Life(
        spec(container(WAIT), initContainers=[named("first", "exit 0"), named("second", "exit 0")]), ready
    ),
    "sidecar": Life(
        spec(
            container("sleep 1"),
            restart="Never",
            initContainers=[named("side", ENDS, restartPolicy="Always", lifecycle=hooks(postStart=BEGUN))],
        ),
        finished,
    ),
    "message-in-file": Life(spec(container("echo why > /dev/termination-log; exit 7"), restart="Never"), finished),
    "message-from-log": Life(
        spec(container("echo last words; exit 8", terminationMessagePolicy="FallbackToLogsOnError"), restart="Never"),
        finished,
    ),
    "becomes-ready": Life(spec(container(WAIT, readinessProbe=probe("true"))), ready),
    "never-ready": Life(spec(container(WAIT, readinessProbe=probe("false"))), phase("Running")),
    "not-alive": Life(spec(container(ENDS, livenessProbe=probe(FAILS))), backs_off),
    "starts-too-slowly": Life(spec(container(ENDS, startupProbe=probe(FAILS))), backs_off),
    "after-start-fails": Life(
        spec(container(ENDS, lifecycle=hooks(postStart=FAILS)), restart="Never"),
        finished,
    ),
    "too-late": Life(spec(container(ENDS), activeDeadlineSeconds=45), finished),
    "no-settings": Life(
        spec(container(WAIT, envFrom=[{"configMapRef": {"name": "absent"}}])), waiting("CreateContainerConfigError")
    ),
    "prints-and-ends": Life(spec(container("echo out; exit 0"), restart="Never"), finished, has_logs=True),
    "prints-again": Life(spec(container("echo out; exit 3")), backs_off, {"main last": LAST_LINES}, has_logs=True),
    "init-prints": Life(
        spec(container(WAIT), restart="Never", initContainers=[named("first", "echo first; exit 6")]),
        finished,
        {"first state": LAST_LINES},
        has_logs=True,
    ),
    "after-start": Life(
        spec(
            container(
                "until [ -s /dev/termination-log ]; do sleep 0.1; done; exit 3",
                lifecycle=hooks(postStart="echo started > /dev/termination-log"),
            ),
            restart="Never",
        ),
        finished,
    ),
    "hook-before-term": Life(killed(NOTED, lifecycle=hooks(preStop="echo hook >> /dev/termination-log")), backs_off),
    "hook-fails": Life(killed(NOTED, lifecycle=hooks(preStop="exit 4")), backs_off),
    "hook-takes-the-grace": Life(killed(NOTED, lifecycle=hooks(preStop="sleep 100")), backs_off),
    "ignores-term": Life(killed(DEAF), backs_off),
    "grace-of-the-probe": Life(killed(DEAF, grace=600, probing={"terminationGracePeriodSeconds": 1}), backs_off),
    "resized": Life(
        spec(container(WAIT)),
        has_memory,
        {"events": "Resources are not enforced, so a resize is complete immediately."},
        resized=GROWN,
    ),
    "deleted": Life(spec(container(NOTED, lifecycle=hooks(postStart=BEGUN))), is_deleted, deleted=30),
    "deleted-fails": Life(
        spec(
            container('trap "exit 9" TERM; touch /tmp/begun; sleep 100000 & wait $!', lifecycle=hooks(postStart=BEGUN))
        ),
        is_deleted,
        deleted=30,
    ),
    "deleted-deaf": Life(spec(container(DEAF, lifecycle=hooks(postStart=BEGUN))), is_deleted, deleted=1),
    "deleted-deaf-sidecar": Life(
        spec(
            container(NOTED, lifecycle=hooks(postStart=BEGUN)),
            initContainers=[named("side", DEAF, restartPolicy="Always")],
        ),
        is_deleted,
        deleted=4,
    ),
    "deleted-with-hook": Life(
        spec(container(NOTED, lifecycle=hooks(postStart=BEGUN, preStop="echo hook >> /dev/termination-log"))),
        is_deleted,
        deleted=30,
    ),
    "deleted-in-its-hook": Life(
        spec(container(DEAF, lifecycle=hooks(postStart=BEGUN, preStop="sleep 100"))), is_deleted, deleted=2
    ),
    "not-as-root": Life(
        spec(container(WAIT, securityContext={"runAsNonRoot": True})), waiting("CreateContainerConfigError")
    ),
}


def facts(pod: JSONObject, events: list[JSONObject], printed: Mapping[str, str]) -> dict[str, Any]:
    """Return the compared facts from a pod, its events, and its logs."""
    status = pod["status"]
    reasons = {event["reason"] for event in events} - NOT_COMPARED
    found: dict[str, Any] = {"phase": status["phase"], "reason": status.get("reason"), **printed}
    has_ended = status["phase"] in {"Succeeded", "Failed"}
    for one in statuses(pod):
        ends = not has_ended and is_backing_off(one)
        of_container = {
            "restarts": min(one["restartCount"], 1),
            "ready": one["ready"],
            "started": one.get("started"),
            "state": BACKING_OFF if ends else ended(one["state"]),
            "last": ended(one["state"] if ends and "terminated" in one["state"] else one.get("lastState", {})),
            "resources": one.get("resources"),
        }
        found.update({f"{one['name']} {fact}": value for fact, value in of_container.items()})
        if (pause := first_pause(one)) and "Killing" not in reasons:
            # After a container is killed, a kubelet delays it from the third start, and the embedded cluster from the
            # second.
            found[f"{PAUSE} {one['name']}"] = pause
    for one in status.get("conditions", []):
        if has_ended and one["type"] == "PodReadyToStartContainers":
            continue  # a kubelet resets this condition shortly after the pod terminates
        found[f"condition {one['type']}"] = (one["status"], one.get("reason"))
    found["events"] = sorted(reasons)
    return found


def ended(state: JSONObject) -> tuple[str, Any, Any, Any]:
    """Return the kind, reason, exit code and message of a state. Messages of waiting containers contain times."""
    for kind, one in state.items():
        message = one.get("message") if kind == "terminated" else None
        return kind, one.get("reason"), one.get("exitCode"), message
    return "none", None, None, None


def first_pause(status: JSONObject) -> float | None:
    """Return the delay in seconds before the second restart of a container. The next delay is twice as long."""
    found = re.search(r"back-off (\d+)s", status["state"].get("waiting", {}).get("message", ""))
    return int(found[1]) / 2 ** (status["restartCount"] - 1) if found and status["restartCount"] else None


def differences(real: Mapping[str, Any], embedded: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return the facts that differ between the real kubelet and the embedded kubelet."""
    names = {name for name in {*real, *embedded} if not name.startswith(PAUSE)} | {*real} & {*embedded}
    return {
        name: (real.get(name), embedded.get(name)) for name in sorted(names) if real.get(name) != embedded.get(name)
    }
