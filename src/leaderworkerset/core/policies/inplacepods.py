"""A pod that is updated in place: what its containers were before, and whether the new ones have taken over.

The kubelet ends a container whose image was changed and starts it again, which counts as a restart of it. So the patch of
the images also records, in an annotation, the count that this leads to and the container that runs before:
`NAME=COUNT=ID,…`. Restarts up to that count are no failure (R-POD-4), and the pod is ready only by other containers.
"""

from collections.abc import Mapping
from typing import NamedTuple

from kuberuntime.objects import decimals, meta, podstate
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels


class Before(NamedTuple):
    """A container before its image was changed: the restarts that the change leads to, and its ID; empty if none ran."""

    restarts: int
    container: str


def read(pod: JSONObject) -> dict[str, Before]:
    """Return what was recorded of the containers of a pod, by their names; entries that cannot be read count as absent.

    >>> read({"metadata": {"annotations": {labels.IN_PLACE_BEFORE: "main=1=runc://a,broken,other=x="}}})
    {'main': Before(restarts=1, container='runc://a')}
    """
    found = {}
    for entry in meta.annotations(pod).get(labels.IN_PLACE_BEFORE, "").split(","):
        name, _, rest = entry.partition("=")
        count, _, container = rest.partition("=")
        if (restarts := decimals.natural(count)) is not None:
            found[name] = Before(restarts, container)
    return found


def excused(pod: JSONObject) -> Mapping[str, int]:
    """Return how many restarts of each container are no failures."""
    return {name: before.restarts for name, before in read(pod).items()}


def is_settled(pod: JSONObject) -> bool:
    """Return whether no container runs any more that an update in place shall have ended."""
    known = read(pod)
    return not known or not any(_is_left(one, known) for one in podstate.container_statuses(pod))


def record(pod: JSONObject, changed: set[str]) -> str:
    """Return the record of a pod whose containers `changed` are about to be ended; what is known of others stays."""
    known = read(pod)
    for one in podstate.container_statuses(pod):
        if one.get("name") in changed:
            known[one["name"]] = _before(one, known.get(one["name"]))
    return ",".join(f"{name}={before.restarts}={before.container}" for name, before in sorted(known.items()))


def _before(status: JSONObject, known: Before | None) -> Before:
    """Return what is recorded of a container, which may still be the one that an earlier change shall end."""
    container, restarts = str(status.get("containerID") or ""), int(status.get("restartCount") or 0)
    if known is not None and known.container == container:
        return known
    return Before(restarts + bool(container), container)


def _is_left(status: JSONObject, known: Mapping[str, Before]) -> bool:
    before = known.get(str(status.get("name")))
    return before is not None and bool(before.container) and status.get("containerID") == before.container
