"""A pod that is updated in place: what its containers were before, and whether the new ones have taken over.

The kubelet ends a container whose image was changed and starts it again, which counts as a restart of it. So the patch of
the images also records, in an annotation, the count that this leads to, the container that runs before, and its image:
`NAME=COUNT=ID=IMAGE,…`. Restarts up to that count are no failure (R-POD-4), and the pod is ready only by other containers.
If the image of a container is taken back before the container ended, it continues: no other one is awaited, and no restart
excused. If it ended, as with a new image that cannot be pulled, it starts again: that restart is excused, and awaited. The
ID does not tell these cases apart: a kubelet reports that of the container that ended until another one starts.
"""

from collections.abc import Mapping
from typing import NamedTuple

from kuberuntime.objects import decimals, meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from leaderworkerset.capabilities.inplace import inplaceresources


class Before(NamedTuple):
    """A container before its image was changed: the restarts that the change leads to; ID and image, if one shall end."""

    restarts: int
    container: str = ""
    image: str = ""

    def __str__(self) -> str:
        return f"{self.restarts}={self.container}={self.image}"


def read(pod: JSONObject) -> dict[str, Before]:
    """Return what was recorded of the containers of a pod, by their names; entries that cannot be read count as absent.

    >>> read({"metadata": {"annotations": {labels.IN_PLACE_BEFORE: "main=1=runc://a=app:1,broken,other=x=="}}})
    {'main': Before(restarts=1, container='runc://a', image='app:1')}
    """
    found = {}
    for entry in meta.annotations(pod).get(labels.IN_PLACE_BEFORE, "").split(","):
        name, count, container, image = [*entry.split("=", 3), "", "", ""][:4]
        if (restarts := decimals.natural(count)) is not None:
            found[name] = Before(restarts, container, image)
    return found


def excused(pod: JSONObject) -> Mapping[str, int]:
    """Return how many restarts of each container are no failures."""
    return {name: before.restarts for name, before in read(pod).items()}


def is_settled(pod: JSONObject) -> bool:
    """Return whether no container runs any more that an update in place shall have ended, and all have their resources."""
    known = read(pod)
    is_left = bool(known) and any(_is_left(one, known) for one in _statuses(pod))
    return not is_left and inplaceresources.is_settled(pod)


def record(pod: JSONObject, changed: Mapping[str, str]) -> str:
    """Return the record of a pod whose containers are about to get the images `changed`; what is known of others stays."""
    known = read(pod)
    images = {one["name"]: str(one.get("image") or "") for one in meta.spec(pod).get("containers") or []}
    for one in _statuses(pod):
        name = str(one.get("name"))
        if name in changed:
            known[name] = _before(one, known.get(name), images.get(name, ""), changed[name])
    return ",".join(f"{name}={before}" for name, before in sorted(known.items()))


def _statuses(pod: JSONObject) -> list[JSONObject]:
    return meta.status(pod).get("containerStatuses") or []


def _before(status: JSONObject, known: Before | None, image: str, wanted: str) -> Before:
    container, restarts = str(status.get("containerID") or ""), int(status.get("restartCount") or 0)
    if known is None or not container or known.container != container:
        return Before(restarts + bool(container), container, image)
    return Before(known.restarts - 1) if known.image == wanted and _runs(status) else known


def _runs(status: JSONObject) -> bool:
    return "running" in (status.get("state") or {})


def _is_left(status: JSONObject, known: Mapping[str, Before]) -> bool:
    before = known.get(str(status.get("name")))
    return before is not None and bool(before.container) and status.get("containerID") == before.container
