"""Restart rules of containers in manifests that the restart policy of their groups contradicts. Pure: objects in, results out.

What is found is allowed: the API server stores it, and groups do something else than the rules say.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSON, JSONObject
from leaderworkerset.api import labels
from leaderworkerset.api.leaderworkerset import RestartPolicy
from leaderworkerset.cli.doctor.findings import CheckResult, Level

CODE: Final = "LWS-D011"
SUBJECT: Final = "restarts"
RESTART: Final = "Restart"
RESTART_ALL: Final = "RestartAllContainers"

NOT_TOLERATED: Final = "which recreates the group each time"
FIX: Final = (
    f"annotation {labels.IN_PLACE_RESTARTS}: 120s (the time to be ready again), or restartPolicy: None"
    " (docs/how-to/restart-in-place.md)"
)
FIX_ALONE: Final = f"action: {RESTART_ALL} with the annotation {labels.IN_PLACE_RESTARTS}, or restartPolicy: None"
FIX_UNUSED: Final = f"add a rule with action: {RESTART_ALL}, or remove the annotation"


def findings(objects: Iterable[JSONObject]) -> Iterator[CheckResult]:
    """Yield a warning for each contradiction, or that there is none."""
    found = [one for obj in objects for spec in _sets(obj) for one in _of_set(obj, spec)]
    yield from found or [
        CheckResult(CODE, Level.OK, SUBJECT, "no restart rule contradicts the restart policy of a group")
    ]


def _sets(node: JSON) -> Iterator[JSONObject]:
    """Yield whatever describes groups in an object: a LeaderWorkerSet itself, or the templates of a DisaggregatedSet."""
    if isinstance(node, dict) and isinstance(node.get("spec"), dict) and "leaderWorkerTemplate" in node["spec"]:
        yield node
    children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    for child in children:
        yield from _sets(child)


def _of_set(obj: JSONObject, found: JSONObject) -> Iterator[CheckResult]:
    template = found["spec"]["leaderWorkerTemplate"]
    if not isinstance(template, dict):
        return
    policy = template.get("restartPolicy") or RestartPolicy.RECREATE_GROUP_ON_POD_RESTART.value
    recreates = policy in tuple(RestartPolicy) and RestartPolicy(policy).recreates
    tolerates = labels.IN_PLACE_RESTARTS in meta.annotations(found)
    where, actions = f"{obj.get('kind')} {meta.name(obj)}", [*_actions(template)]
    for container, action in actions:
        text = (
            f"{where}: container {container} has a rule with action {action}, {NOT_TOLERATED} (restartPolicy {policy})"
        )
        if recreates and action == RESTART_ALL and not tolerates:
            yield CheckResult(CODE, Level.WARNING, SUBJECT, text, FIX)
        elif recreates and action == RESTART:
            yield CheckResult(CODE, Level.WARNING, SUBJECT, text, FIX_ALONE)
    if tolerates and RESTART_ALL not in {action for _, action in actions}:
        text = f"{where}: annotation {labels.IN_PLACE_RESTARTS} has no effect, as no container has a rule with action {RESTART_ALL}"
        yield CheckResult(CODE, Level.WARNING, SUBJECT, text, FIX_UNUSED)


def _actions(template: JSONObject) -> Iterator[tuple[str, str]]:
    """Yield the actions of the rules of all containers, once each; a template may be invalid elsewhere."""
    seen: set[tuple[str, str]] = set()
    for name in ("leaderTemplate", "workerTemplate"):
        spec = _dict(_dict(template.get(name)).get("spec"))
        for container in (*_dicts(spec.get("initContainers")), *_dicts(spec.get("containers"))):
            for rule in _dicts(container.get("restartPolicyRules")):
                entry = (str(container.get("name")), str(rule.get("action")))
                if entry not in seen:
                    seen.add(entry)
                    yield entry


def _dict(value: JSON) -> JSONObject:
    return value if isinstance(value, dict) else {}


def _dicts(value: JSON) -> list[JSONObject]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
