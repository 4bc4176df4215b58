"""Tracks the containers of a pod during an in-place update, and whether the new containers are running.

The kubelet restarts a container whose image was changed, which increases the restart count. So the patch of the images
also records, in an annotation, the resulting count, the ID of the running container, and its image:
`NAME=COUNT=ID=IMAGE,…`. Restarts up to that count are not a failure (R-POD-4). The pod is ready only when containers
with other IDs are running. If the image is reverted after the container terminated, for example because the new image
cannot be pulled, the container starts again. That restart is expected and is not a failure. The ID does not show
whether the container terminated, because a kubelet keeps the ID of a terminated container in the status until the next
container starts.

If the image changes again while the container runs, the kubelet may be stopping it, or may not know of the change yet.
In the first case, it starts the container with the first image, stops it, and starts it with the second image. So after
an image was reverted, the update does not wait for a different container, and two restarts are excused if the container
starts soon. In this case, the record is `NAME=COUNT=ID=IMAGE=UNTIL`.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from kuberuntime.objects import decimals, meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from leaderworkerset.capabilities.inplace import inplaceresources

TURNS: Final = 2
"""The number of restarts if the image of a container changes twice while the kubelet stops the container."""


class PreviousContainer(NamedTuple):
    """A container before its image change, with the expected restart count, and with the ID and image to stop.

    If the image changed again while the kubelet stopped the container, `until` is the latest time of its start.
    """

    restarts: int
    container: str = ""
    image: str = ""
    until: str = ""

    def __str__(self) -> str:
        return f"{self.restarts}={self.container}={self.image}{self.until and f'={self.until}'}"


def read(pod: JSONObject) -> dict[str, PreviousContainer]:
    """Return the container records of a pod by container name. Invalid entries are ignored.

    >>> read({"metadata": {"annotations": {labels.IN_PLACE_BEFORE: "main=1=runc://a=app:1,broken,other=x=="}}})
    {'main': PreviousContainer(restarts=1, container='runc://a', image='app:1', until='')}
    """
    entries = {}
    for entry in meta.annotations(pod).get(labels.IN_PLACE_BEFORE, "").split(","):
        name, count, container, image, until = [*entry.split("=", 4), "", "", "", ""][:5]
        if (restarts := decimals.natural(count)) is not None:
            entries[name] = PreviousContainer(restarts, container, image, until)
    return entries


def expected_restarts(pod: JSONObject) -> Mapping[str, int]:
    """Return the number of expected restarts for each container."""
    known = read(pod)
    counts = {name: before.restarts for name, before in known.items()}
    for status in _statuses(pod) if any(before.until for before in known.values()) else ():
        before = known.get(str(status.get("name")))
        started = (((status.get("state") or {}).get("running")) or {}).get("startedAt") or ""
        if before is not None and before.until and started <= before.until:
            counts[str(status["name"])] += TURNS
    return counts


def is_update_complete(pod: JSONObject) -> bool:
    """Return whether the previous containers have terminated, and all containers have their target resources."""
    known = read(pod)
    is_left = bool(known) and any(_is_left(status, known) for status in _statuses(pod))
    return not is_left and inplaceresources.is_resize_complete(pod)


def record(pod: JSONObject, changed: Mapping[str, str], until: str) -> str:
    """Return the record of a pod before the images of `changed` containers are updated. Other entries are preserved.

    `until` is the time by which the kubelet has restarted a container that it is stopping now.
    """
    known = read(pod)
    images = {
        container["name"]: str(container.get("image") or "") for container in meta.spec(pod).get("containers") or []
    }
    for status in _statuses(pod):
        name = str(status.get("name"))
        if name in changed:
            before = _previous_container(status, known.get(name), images.get(name, ""))
            if before == known.get(name) and "running" in (status.get("state") or {}):
                is_taken_back = before.image == changed[name]
                before = (
                    PreviousContainer(before.restarts - 1, until=until)
                    if is_taken_back
                    else before._replace(until=until)
                )
            known[name] = before
    return ",".join(f"{name}={before}" for name, before in sorted(known.items()))


def _statuses(pod: JSONObject) -> list[JSONObject]:
    return meta.status(pod).get("containerStatuses") or []


def _previous_container(status: JSONObject, known: PreviousContainer | None, image: str) -> PreviousContainer:
    container, restarts = str(status.get("containerID") or ""), int(status.get("restartCount") or 0)
    if known is None or not container or known.container != container:
        return PreviousContainer(restarts + bool(container), container, image)
    return known


def _is_left(status: JSONObject, known: Mapping[str, PreviousContainer]) -> bool:
    before = known.get(str(status.get("name")))
    return before is not None and bool(before.container) and status.get("containerID") == before.container
