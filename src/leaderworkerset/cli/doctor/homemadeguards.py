"""Loops in manifests by which ranks wait for each other, and what each of them gets wrong. Pure: objects in, results out.

A guard is found where a script has a loop and, in it, a program that asks for a name or a port. What is found is named, not
judged by running it: a guard may be right for its program.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSON, JSONObject
from leaderworkerset.cli.doctor.findings import CheckResult, Level

LONGEST: Final = 1 << 16
"""Characters of a script that are read."""

LOOP: Final = re.compile(r"\b(?:until|while)\b(?P<body>.*?)\bdone\b", re.DOTALL)
BOUND: Final = re.compile(r"\btimeout\b|\bSECONDS\b|\$\(\(|-(?:lt|le|gt|ge)\b|\bexit\s+[1-9]|\bbreak\b")
"""What a loop has that ends at some time."""

FAULTS: Final = {
    "nslookup": "a name resolves before anybody listens there, and an image without nslookup waits for ever",
    "getent": "a name resolves before anybody listens there",
    "dig": "a name resolves before anybody listens there, and dig does not read /etc/hosts",
    "host": "a name resolves before anybody listens there, and host does not read /etc/hosts",
    "ping": "a machine answers before a program listens, and a pod may not be allowed to send such packets",
    "nc": "versions of nc have different options, and one that knows less fails as a closed port does",
    "curl": "it tells no missing name from a closed port, and an image may not have it",
    "wget": "it tells no missing name from a closed port, and an image may not have it",
}
"""What is known of each program as a guard."""

TOOL: Final = re.compile(rf"(?<![-\w./])({'|'.join(FAULTS)})(?=\s)")
NO_DEADLINE: Final = "it has no deadline: a group that does not meet neither fails nor says why"
FIX: Final = (
    "python -m leaderworkerset.rendezvous leader --port PORT, or its form for shells: with a deadline and exact words "
    "(docs/how-to/meet.md)"
)


def findings(objects: Iterable[JSONObject]) -> Iterator[CheckResult]:
    """Yield a warning for each container with a guard, or that there is none."""
    found = [one for obj in objects for one in _of_object(obj)]
    yield from found or [CheckResult("LWS-D010", Level.OK, "guards", "no loop waits for a name or a port")]


def faults_of(script: str) -> list[str]:
    """Return the programs that loops of a script wait with, each with what it gets wrong.

    >>> faults_of("for i in 1 2; do ping -c 1 lead; done; python train.py")
    []
    >>> [fault.split(":")[0] for fault in faults_of("until getent hosts lead; do sleep 1; done")]
    ['getent', 'it has no deadline']
    """
    faults: dict[str, None] = {}
    for loop in LOOP.finditer(script[:LONGEST]):
        tools = dict.fromkeys(TOOL.findall(loop["body"]))
        faults |= dict.fromkeys(f"{tool}: {FAULTS[tool]}" for tool in tools)
        if tools and not BOUND.search(script[: loop.end()]):
            faults[NO_DEADLINE] = None
    return list(faults)


def _of_object(obj: JSONObject) -> Iterator[CheckResult]:
    for container in _containers(obj):
        words = [*_texts(container.get("command")), *_texts(container.get("args"))]
        faults = [fault for word in words for fault in faults_of(word)]
        if faults:
            where = f"{obj.get('kind')} {meta.name(obj)}: container {container.get('name')}"
            text = f"{where} waits by a loop of its own: {'; '.join(dict.fromkeys(faults))}"
            yield CheckResult("LWS-D010", Level.WARNING, "guards", text, FIX)


def _containers(node: JSON) -> Iterator[JSONObject]:
    children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    if isinstance(node, dict):
        for name in ("initContainers", "containers"):
            yield from (one for one in node.get(name) or () if isinstance(one, dict))
    for child in children:
        yield from _containers(child)


def _texts(words: JSON) -> Iterator[str]:
    yield from (word for word in (words if isinstance(words, list) else ()) if isinstance(word, str))
