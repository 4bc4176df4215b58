"""Decides whether a container is restarted: by the pod's policy, its own policy, and rules on exit codes. Pure."""

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from localkube import wellknown
from localkube.kubelet.spec import podspec


def policy(pod: JSONObject, container: JSONObject) -> str:
    """Return the policy of this container: its own, else the pod's; init containers are not restarted on success."""
    own = container.get("restartPolicy")
    if own:
        return str(own)
    of_pod = podspec.restart_policy(pod)
    is_init = any(other["name"] == container["name"] for other in podspec.init_containers(pod))
    return "OnFailure" if is_init and of_pod == "Always" else of_pod


def starts_again(pod: JSONObject, container: JSONObject, exit_code: int) -> bool:
    """Return whether the container starts again after this exit code."""
    if any(_matches(rule, exit_code) for rule in container.get("restartPolicyRules") or []):
        return True
    match policy(pod, container):
        case "Always":
            return exit_code != 0 or not holds_completed(pod)
        case "OnFailure":
            return exit_code != 0
        case _:
            return False


def holds_completed(pod: JSONObject) -> bool:
    """Return whether completed containers of the pod are not restarted."""
    names = (wellknown.HOLD_COMPLETED, wellknown.FORMER_HOLD_COMPLETED)
    return any(meta.annotations(pod).get(name) == "true" for name in names)


def hold_completed(pod: JSONObject) -> JSONObject:
    """Return the pod with the annotation by which completed containers are not restarted."""
    metadata = meta.metadata(pod)
    return {**pod, "metadata": {**metadata, "annotations": {**meta.annotations(pod), wellknown.HOLD_COMPLETED: "true"}}}


def _matches(rule: JSONObject, exit_code: int) -> bool:
    codes = rule.get("exitCodes") or {}
    listed = exit_code in (codes.get("values") or [])
    return rule.get("action") == "Restart" and (listed if codes.get("operator") == "In" else not listed)
