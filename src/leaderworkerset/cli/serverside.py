"""Server-side apply as commands do it: apply one object, and tell whether that created, changed or left it."""

from dataclasses import dataclass

from kuberuntime.client.client import Client
from kuberuntime.errors import NotFoundError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource


@dataclass(frozen=True, slots=True)
class Applied:
    """What one apply came to: a word for people, and the object as it is now."""

    word: str
    object: JSONObject


async def apply(
    client: Client, resource: Resource, obj: JSONObject, *, manager: str, force: bool, dry_run: bool = False
) -> Applied:
    """Apply an object as `manager` and compare with what was there."""
    try:
        before = await client.get(resource, meta.key(obj))
    except NotFoundError:
        before = None
    after = await client.apply(resource, obj, manager=manager, force=force, dry_run=dry_run)
    if before is None:
        return Applied("created", after)
    return Applied("unchanged" if _content(before) == _content(after) else "configured", after)


def _content(obj: JSONObject) -> JSONObject:
    """Leave out what changes beside an apply: the status, and in a dry run the version."""
    own = {
        name: value for name, value in meta.metadata(obj).items() if name not in {"managedFields", "resourceVersion"}
    }
    return {name: value for name, value in obj.items() if name != "status"} | {"metadata": own}
