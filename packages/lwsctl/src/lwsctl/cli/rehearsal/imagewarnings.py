"""Reports mismatches between manifest images and the mappings of `--image NAME=DIR` before a pod fails.

The input is original objects, which may be invalid. The output is notes.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from kuberuntime.objects.meta import JSON, JSONObject
from lwsctl.diagnosis import exits
from lwsctl.views.wording import join_names

NAMED: Final = 5


def notes(objects: Iterable[JSONObject], mapped: Collection[str], *, is_typed: bool) -> Iterator[str]:
    """Yield a note for each unused mapping, and for unmapped images.

    `is_typed` means that the mappings are from this command.
    """
    containers = [container for obj in objects for container in _containers(obj)]
    used = dict.fromkeys(str(container["image"]) for container in containers)
    for name in mapped if is_typed else ():
        if not any(exits.is_mapped(name, image) for image in used):
            yield f"note: --image {name}: no container uses this image (images: {join_names([*used], NAMED)})"
    running = dict.fromkeys(str(container["image"]) for container in containers if container.get("command"))
    mapped = (*mapped, exits.ON_PURPOSE)
    if free := [image for image in running if not any(exits.is_mapped(name, image) for name in mapped)]:
        few = len(free) == 1
        yield (
            f"note: {'image' if few else 'images'} {join_names(free, NAMED)} {'is' if few else 'are'} not mapped, so {'its' if few else 'their'} containers run in "
            f"the root file system of this machine; use --image {free[0]}=DIR"
        )


def _containers(node: JSON) -> Iterator[JSONObject]:
    if isinstance(node, list):
        for child in node:
            yield from _containers(child)
    elif isinstance(node, dict):
        for key, child in node.items():
            if key in {"containers", "initContainers"} and isinstance(child, list):
                yield from (container for container in child if isinstance(container, dict) and container.get("image"))
            else:
                yield from _containers(child)
