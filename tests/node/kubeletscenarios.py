"""Lives of single pods that a kubelet decides about, and what of them is compared."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tests.node.objects import WAIT, container

from kuberuntime.objects.meta import JSONObject

NOT_COMPARED: Final = {"FailedMount", "Pulled", "Pulling", "Scheduled"}
"""Reasons of events of the scheduler, of images, which the embedded kubelet does not pull, and of a busy machine."""

NOT_STARTED: Final = ("ContainersReady", "PodReadyToStartContainers", "Ready")
"""Conditions of a pod none of whose containers has started."""

Settled = Callable[[JSONObject], bool]


def phase(name: str) -> Settled:
    """Wait for a phase."""
    return lambda pod: pod["status"].get("phase") == name


def finished(pod: JSONObject) -> bool:
    """Wait until no container will start again."""
    return pod["status"].get("phase") in {"Succeeded", "Failed"}


def ready(pod: JSONObject) -> bool:
    """Wait until the pod is ready."""
    return any(one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions", []))


def waiting(reason: str) -> Settled:
    """Wait until a container waits for a reason."""

    def settled(pod: JSONObject) -> bool:
        status = pod["status"]
        found = [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]
        return any(one["state"].get("waiting", {}).get("reason") == reason for one in found)

    return settled


@dataclass(frozen=True, slots=True)
class Life:
    """A pod, and when it is looked at."""

    spec: JSONObject
    settled: Settled
    known: Mapping[str, str] = field(default_factory=dict)
    """Facts that the embedded kubelet has otherwise, and why that stays."""


def pod(*containers: JSONObject, restart: str = "Always", **fields: Any) -> JSONObject:
    """Return a pod's spec."""
    return {"restartPolicy": restart, "terminationGracePeriodSeconds": 2, "containers": list(containers), **fields}


def probe(command: str, **fields: Any) -> JSONObject:
    """Return a probe that runs a command."""
    return {"exec": {"command": ["sh", "-c", command]}, "periodSeconds": 1, "failureThreshold": 1, **fields}


def named(name: str, script: str, **fields: Any) -> JSONObject:
    """Return a container of another name."""
    return {**container(script, **fields), "name": name}


LIVES: Final[Mapping[str, Life]] = {
    "ends-well": Life(pod(container("exit 0"), restart="Never"), finished),
    "ends-badly": Life(pod(container("exit 3"), restart="Never"), finished),
    "ends-twice": Life(pod(container("exit 0"), named("other", "exit 4"), restart="Never"), finished),
    "on-failure-well": Life(pod(container("exit 0"), restart="OnFailure"), finished),
    "on-failure-badly": Life(pod(container("exit 5"), restart="OnFailure"), waiting("CrashLoopBackOff")),
    "always": Life(pod(container("exit 0")), waiting("CrashLoopBackOff")),
    "no-program": Life(
        pod({**container(), "command": ["/no/such/program"]}, restart="Never"),
        lambda pod: finished(pod) or waiting("ProgramNotFound")(pod),
        dict.fromkeys(
            ("phase", "main", "events", *(f"condition {name}" for name in NOT_STARTED)),
            "the program may be installed later: the container waits, and says what to do",
        ),
    ),
    "no-message": Life(
        pod(container("echo last words; exit 9"), restart="Never"),
        finished,
        {"main": "a container that fails without a message gets the last lines of its log"},
    ),
    "init-fails": Life(pod(container(WAIT), restart="Never", initContainers=[named("first", "exit 6")]), finished),
    "init-fails-again": Life(
        pod(container(WAIT), initContainers=[named("first", "exit 6")]), waiting("CrashLoopBackOff")
    ),
    "init-in-order": Life(
        pod(container(WAIT), initContainers=[named("first", "exit 0"), named("second", "exit 0")]), ready
    ),
    "sidecar": Life(
        pod(container("sleep 1"), restart="Never", initContainers=[named("side", WAIT, restartPolicy="Always")]),
        finished,
    ),
    "message-in-file": Life(pod(container("echo why > /dev/termination-log; exit 7"), restart="Never"), finished),
    "message-from-log": Life(
        pod(container("echo last words; exit 8", terminationMessagePolicy="FallbackToLogsOnError"), restart="Never"),
        finished,
    ),
    "becomes-ready": Life(pod(container(WAIT, readinessProbe=probe("true"))), ready),
    "never-ready": Life(pod(container(WAIT, readinessProbe=probe("false"))), phase("Running")),
    "not-alive": Life(pod(container(WAIT, livenessProbe=probe("false"))), waiting("CrashLoopBackOff")),
    "starts-too-slowly": Life(pod(container(WAIT, startupProbe=probe("false"))), waiting("CrashLoopBackOff")),
    "after-start-fails": Life(
        pod(container(WAIT, lifecycle={"postStart": {"exec": {"command": ["false"]}}}), restart="Never"),
        finished,
    ),
    "too-late": Life(pod(container(WAIT), activeDeadlineSeconds=2), finished),
    "no-settings": Life(
        pod(container(WAIT, envFrom=[{"configMapRef": {"name": "absent"}}])), waiting("CreateContainerConfigError")
    ),
    "not-as-root": Life(
        pod(container(WAIT, securityContext={"runAsNonRoot": True})), waiting("CreateContainerConfigError")
    ),
}


def facts(pod: JSONObject, events: list[JSONObject]) -> dict[str, Any]:
    """Return what is compared of a pod."""
    status = pod["status"]
    found: dict[str, Any] = {"phase": status["phase"], "reason": status.get("reason")}
    for one in [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]:
        found[one["name"]] = {
            "restarts": min(one["restartCount"], 1),
            "ready": one["ready"],
            "started": one.get("started"),
            "state": ended(one["state"]),
            "last": ended(one.get("lastState", {})),
        }
    has_ended = status["phase"] in {"Succeeded", "Failed"}
    for one in status.get("conditions", []):
        if has_ended and one["type"] == "PodReadyToStartContainers":
            continue  # a kubelet takes it back a moment after the end
        found[f"condition {one['type']}"] = (one["status"], one.get("reason"))
    reasons = {event["reason"] for event in events} - NOT_COMPARED
    found["events"] = sorted(reasons)
    return found


def ended(state: JSONObject) -> tuple[str, Any, Any, Any]:
    """Return the kind of a state, its reason, exit code and message; messages of waiting have times in them."""
    for kind, one in state.items():
        message = one.get("message") if kind == "terminated" else None
        return kind, one.get("reason"), one.get("exitCode"), message
    return "none", None, None, None


def differences(real: Mapping[str, Any], embedded: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return the facts that are not the same, on the real and on the embedded kubelet."""
    names = sorted({*real, *embedded})
    return {name: (real.get(name), embedded.get(name)) for name in names if real.get(name) != embedded.get(name)}
