"""Determines whether a container or its whole pod restarts, by rules on exit codes and restart policies.

Pure.
"""

from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from localkube import wellknown
from localkube.kubelet.spec import podspec

RESTART_ALL: Final = "RestartAllContainers"
"""The action of a rule that restarts all containers of the pod in place."""

ALL_RESTARTING: Final = "AllContainersRestarting"
"""The condition that is True while all containers of a pod are stopped for a restart."""


def restart_policy(pod: JSONObject, container: JSONObject) -> str:
    """Return the restart policy of this container, or of the pod. Init containers do not restart after success."""
    own = container.get("restartPolicy")
    if own:
        return str(own)
    of_pod = podspec.restart_policy(pod)
    is_init = any(other["name"] == container["name"] for other in podspec.init_containers(pod))
    return "OnFailure" if is_init and of_pod == "Always" else of_pod


def is_restarted(pod: JSONObject, container: JSONObject, exit_code: int) -> bool:
    """Return whether the container restarts after this exit code."""
    if _action(container, exit_code) in ("Restart", RESTART_ALL):
        return True
    match restart_policy(pod, container):
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
    """Return the pod with the annotation that prevents restarts of completed containers."""
    metadata = meta.metadata(pod)
    return {**pod, "metadata": {**metadata, "annotations": {**meta.annotations(pod), wellknown.HOLD_COMPLETED: "true"}}}


def requires_restart_of_all(container: JSONObject, exit_code: int) -> bool:
    """Return whether all containers of the pod restart if one container exits with this code."""
    return _action(container, exit_code) == RESTART_ALL


def may_restart_all(pod: JSONObject) -> bool:
    """Return whether any exit code would restart all containers of the pod."""
    rules = (rule for container in podspec.all_containers(pod) for rule in container.get("restartPolicyRules") or [])
    return any(rule.get("action") == RESTART_ALL for rule in rules)


def _action(container: JSONObject, exit_code: int) -> str:
    """Return the action of the first rule that matches an exit code, or an empty string if no rule matches."""
    rules: list[JSONObject] = container.get("restartPolicyRules") or []
    return next((str(rule.get("action")) for rule in rules if _matches(rule, exit_code)), "")


def _matches(rule: JSONObject, exit_code: int) -> bool:
    codes = rule.get("exitCodes") or {}
    is_listed = exit_code in (codes.get("values") or [])
    return is_listed if codes.get("operator") == "In" else not is_listed
