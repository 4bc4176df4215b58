"""Whether a container that ended starts again: the pod's policy, the container's own, and rules on exit codes. Pure."""

from leaderworkerset.api.meta import JSONObject
from leaderworkerset.embedded.kubelet import podspec


def policy(pod: JSONObject, container: JSONObject) -> str:
    """Return what holds for this container: its own policy before the pod's; init containers end when they succeed."""
    own = container.get("restartPolicy")
    if own:
        return str(own)
    of_pod = podspec.restart_policy(pod)
    is_init = any(other["name"] == container["name"] for other in podspec.init_containers(pod))
    return "OnFailure" if is_init and of_pod == "Always" else of_pod


def starts_again(pod: JSONObject, container: JSONObject, exit_code: int) -> bool:
    """Tell whether the container starts again after this exit code."""
    if any(_matches(rule, exit_code) for rule in container.get("restartPolicyRules") or []):
        return True
    match policy(pod, container):
        case "Always":
            return True
        case "OnFailure":
            return exit_code != 0
        case _:
            return False


def _matches(rule: JSONObject, exit_code: int) -> bool:
    codes = rule.get("exitCodes") or {}
    listed = exit_code in (codes.get("values") or [])
    return rule.get("action") == "Restart" and (listed if codes.get("operator") == "In" else not listed)
