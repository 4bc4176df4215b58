"""Determines the devices of the containers of a pod.

The rules are the same as in Kubernetes. Init containers run in sequence, so that later containers reuse the devices of
earlier containers. A sidecar keeps its devices while other containers run. A pod keeps all devices until it has
terminated.
"""

from collections.abc import Collection, Mapping, Sequence

from kuberuntime.objects import quantity
from kuberuntime.objects.meta import JSONObject
from localkube.kubelet.accelerators.accelerator import device_uuid
from localkube.kubelet.spec import podspec
from localkube.wellknown import GPU


class ShortageError(Exception):
    """The node does not have enough free devices for a pod. The message contains the number of free devices."""


def requested_gpus(container: JSONObject) -> int:
    """Return the number of GPUs that a container requests."""
    resources = container.get("resources") or {}
    amounts = (resources.get("requests") or {}) | (resources.get("limits") or {})
    return int(quantity.parse(str(amounts[GPU])).fraction()) if GPU in amounts else 0


def requests_any(pod: JSONObject) -> bool:
    """Return whether a container of the pod requests a GPU."""
    return any(requested_gpus(container) for container in podspec.all_containers(pod))


def allocate(pod: JSONObject, free: Sequence[str], busy: Collection[str] = ()) -> dict[str, tuple[str, ...]]:
    """Allocate devices from `free` to the containers that request devices. Can raise a `ShortageError`.

    `busy` are the devices of other pods. Shares of the least used GPUs are preferred.
    """
    load = [device_uuid(device) for device in busy]
    remaining, reusable, allocation = list(free), list[str](), dict[str, tuple[str, ...]]()
    for container in podspec.all_containers(pod):
        number = requested_gpus(container)
        if not number:
            continue
        if len(reusable) + len(remaining) < number:
            had = f"the node has {len(free)} available"
            raise ShortageError(f"container {container['name']} requests {GPU}={number}, but {had}")
        own = allocation[container["name"]] = _choose_devices(number, reusable, remaining, load)
        remaining = [device for device in remaining if device not in own]
        if runs_alone(container, pod):
            reusable += [device for device in own if device not in reusable]
        else:
            reusable = [device for device in reusable if device not in own]
    return allocation


def runs_alone(container: JSONObject, pod: JSONObject) -> bool:
    """Return whether a container terminates before the next container starts, as most init containers do."""
    return container in podspec.init_containers(pod) and not podspec.is_sidecar(container, pod)


def _choose_devices(
    number: int, reusable: Sequence[str], remaining: Sequence[str], load: Sequence[str]
) -> tuple[str, ...]:
    """Return `number` devices, from different GPUs if possible, or from the least used GPU.

    Reusable devices are preferred.
    """
    own: list[str] = []
    candidates = [*reusable, *remaining]
    while len(own) < number:
        mine = {device_uuid(device) for device in own}
        best = min(
            (device for device in candidates if device not in own),
            key=lambda device: (device_uuid(device) in mine, device not in reusable, load.count(device_uuid(device))),
        )
        own.append(best)
    return tuple(own)


def fits(pod: JSONObject, recorded: Mapping[str, Sequence[str]]) -> bool:
    """Return whether recorded devices match the requests of the pod's containers without conflicts."""
    requests = {
        container["name"]: requested_gpus(container)
        for container in podspec.all_containers(pod)
        if requested_gpus(container)
    }
    if {name: len(set(devices)) for name, devices in recorded.items()} != requests:
        return False
    concurrent_devices = [
        device
        for container in podspec.all_containers(pod)
        if not runs_alone(container, pod)
        for device in recorded.get(container["name"], ())
    ]
    return len(concurrent_devices) == len(set(concurrent_devices))
