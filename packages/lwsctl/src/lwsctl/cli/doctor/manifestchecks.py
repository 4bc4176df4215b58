"""Checks manifests without a cluster. Pure.

A guard is a loop in a script in which ranks use a tool to wait for a name or a port. Guards are only reported as
warnings, because they may be correct. Container restart rules that contradict the restart policy of the group are
also reported. API servers accept such rules, but groups behave differently.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSON, JSONObject
from leaderworkerset.api import labels
from leaderworkerset.api.policytypes import RestartPolicy
from lwsctl.cli.doctor.findings import CheckResult, Level

LONGEST: Final = 1 << 16
"""The maximum number of characters that are read from a script."""

LOOP: Final = re.compile(r"\b(?:until|while)\b(?P<body>.*?)\bdone\b", re.DOTALL)
BOUND: Final = re.compile(r"\btimeout\b|\bSECONDS\b|\$\(\(|-(?:lt|le|gt|ge)\b|\bexit\s+[1-9]|\bbreak\b")
"""Patterns of loops that have a limit."""

FAULTS: Final = {
    "nslookup": "a name can resolve before the peer listens, and a container without nslookup waits forever",
    "getent": "a name can resolve before the peer listens",
    "dig": "a name can resolve before the peer listens, and dig does not read /etc/hosts",
    "host": "a name can resolve before the peer listens, and host does not read /etc/hosts",
    "ping": "a host can respond before the peer listens, and pods might not be permitted to use ping",
    "nc": "nc options differ between versions, and an unknown option is mistaken for a closed port",
    "curl": "it does not distinguish a missing name from a closed port, and might not be in the image",
    "wget": "it does not distinguish a missing name from a closed port, and might not be in the image",
}
"""Known problems of the tools that wait for a peer."""

TOOL: Final = re.compile(rf"(?<![-\w./])({'|'.join(FAULTS)})(?=\s)")
NO_DEADLINE: Final = "it has no timeout, so the group can wait forever without an error"
FIX_GUARD: Final = (
    "use `python -m leaderworkerset.rendezvous leader --port PORT` or its shell variant (docs/how-to/meet.md)"
)


def check_wait_loops(objects: Iterable[JSONObject]) -> Iterator[CheckResult]:
    """Yield a warning for each container that waits in a loop, or a result without problems."""
    results = [result for obj in objects for result in _check_object(obj)]
    yield from results or [CheckResult("LWS-D010", Level.OK, "guards", "no loop waits for a name or a port")]


def wait_loop_errors(script: str) -> list[str]:
    """Return the tools that a script uses to wait in loops, and the problem of each tool.

    >>> wait_loop_errors("for i in 1 2; do ping -c 1 lead; done; python train.py")
    []
    >>> [fault.split(":")[0] for fault in wait_loop_errors("until getent hosts lead; do sleep 1; done")]
    ['getent', 'it has no timeout, so the group can wait forever without an error']
    """
    faults: dict[str, None] = {}
    for loop in LOOP.finditer(script[:LONGEST]):
        tools = dict.fromkeys(TOOL.findall(loop["body"]))
        faults |= dict.fromkeys(f"{tool}: {FAULTS[tool]}" for tool in tools)
        if tools and not BOUND.search(script[: loop.end()]):
            faults[NO_DEADLINE] = None
    return list(faults)


def _check_object(obj: JSONObject) -> Iterator[CheckResult]:
    for container in _containers(obj):
        words = [*_wait_loop_messages(container.get("command")), *_wait_loop_messages(container.get("args"))]
        faults = [fault for word in words for fault in wait_loop_errors(word)]
        if faults:
            where = f"{obj.get('kind')} {meta.name(obj)}: container {container.get('name')}"
            text = f"{where} waits in a loop: {'; '.join(dict.fromkeys(faults))}"
            yield CheckResult("LWS-D010", Level.WARNING, "guards", text, FIX_GUARD)


def _containers(node: JSON) -> Iterator[JSONObject]:
    children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    if isinstance(node, dict):
        for name in ("initContainers", "containers"):
            yield from (container for container in node.get(name) or () if isinstance(container, dict))
    for child in children:
        yield from _containers(child)


def _wait_loop_messages(words: JSON) -> Iterator[str]:
    yield from (word for word in (words if isinstance(words, list) else ()) if isinstance(word, str))


CODE: Final = "LWS-D011"
SUBJECT: Final = "restarts"
RESTART: Final = "Restart"
RESTART_ALL: Final = "RestartAllContainers"

NOT_TOLERATED: Final = "which recreates the group on each restart"
FIX: Final = f"set the annotation {labels.IN_PLACE_RESTARTS} to the maximum duration of a restart, such as 120s, or set restartPolicy to None (docs/how-to/in-place.md)"
FIX_ALONE: Final = (
    f"use action {RESTART_ALL} with the annotation {labels.IN_PLACE_RESTARTS}, or set restartPolicy to None"
)
FIX_UNUSED: Final = f"add a rule with action {RESTART_ALL}, or remove the annotation"


def check_contradictions(objects: Iterable[JSONObject]) -> Iterator[CheckResult]:
    """Yield a warning for each contradiction, or a result without problems."""
    results = [result for obj in objects for spec in _sets(obj) for result in _check_set(obj, spec)]
    yield from results or [
        CheckResult(CODE, Level.OK, SUBJECT, "no restart rule contradicts the restart policy of a group")
    ]


def _sets(node: JSON) -> Iterator[JSONObject]:
    """Yield the parts of an object that define groups.

    These are a LeaderWorkerSet, or the templates in a DisaggregatedSet.
    """
    if isinstance(node, dict) and isinstance(node.get("spec"), dict) and "leaderWorkerTemplate" in node["spec"]:
        yield node
    children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    for child in children:
        yield from _sets(child)


def _check_set(obj: JSONObject, part: JSONObject) -> Iterator[CheckResult]:
    template = part["spec"]["leaderWorkerTemplate"]
    if not isinstance(template, dict):
        return
    policy = template.get("restartPolicy") or RestartPolicy.RECREATE_GROUP_ON_POD_RESTART.value
    recreates = policy in tuple(RestartPolicy) and RestartPolicy(policy).recreates
    tolerates = labels.IN_PLACE_RESTARTS in meta.annotations(part)
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
        text = f"{where}: annotation {labels.IN_PLACE_RESTARTS} has no effect, because no container has a rule with action {RESTART_ALL}"
        yield CheckResult(CODE, Level.WARNING, SUBJECT, text, FIX_UNUSED)


def _actions(template: JSONObject) -> Iterator[tuple[str, str]]:
    """Yield the distinct restart rule actions of all containers. Other parts of the template may be invalid."""
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
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
