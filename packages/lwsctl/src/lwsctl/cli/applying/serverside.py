"""Applies an object server-side, and reports whether it was created, changed or unchanged."""

from collections.abc import Mapping

from msgspec import Struct, field

from kuberuntime.client.client import Client
from kuberuntime.errors import ConflictError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource
from lwsctl.rollout import ownfields


class ApplyResult(Struct, frozen=True):
    """The result of an apply: the word to print, the previous and the new object, and fields with a new owner."""

    verb: str
    before: JSONObject | None
    object: JSONObject
    taken_fields: Mapping[str, str] = field(default_factory=dict)
    previous_owners: tuple[str, ...] = ()


async def apply(
    client: Client, resource: Resource, obj: JSONObject, *, manager: str, force: bool, dry_run: bool = False
) -> ApplyResult:
    """Apply an object as `manager`, and compare it with the previous object."""
    before = await client.find(resource, meta.key(obj))
    changes: dict[str, str] = {}
    owners: tuple[str, ...] = ()
    try:
        after = await client.apply(resource, obj, manager=manager, force=force, dry_run=dry_run)
    except ConflictError as error:
        if before is None or not ownfields.has_only_own_conflicts(error):
            raise
        after = await client.apply(resource, obj, manager=manager, force=True, dry_run=dry_run)
        changes = {path: _format_change(path, before, after) for path in ownfields.conflicting_fields(error)}
        owners = ownfields.conflict_owners(error)
    if before is None:
        return ApplyResult("created", None, after)
    word = "unchanged" if _content(before) == _content(after) else "configured"
    return ApplyResult(word, before, after, changes, owners)


def _format_change(path: str, before: JSONObject, after: JSONObject) -> str:
    """Return the previous and the new value of a field, or an empty string if its path contains a list."""
    names = path.strip(".").split(".")
    return "" if "[" in path else f"{meta.at(before, names)} -> {meta.at(after, names)}"


def _content(obj: JSONObject) -> JSONObject:
    """Remove fields that change independently of an apply: the status and, in a dry run, the resource version."""
    own = {
        name: value for name, value in meta.metadata(obj).items() if name not in {"managedFields", "resourceVersion"}
    }
    return {name: value for name, value in obj.items() if name != "status"} | {"metadata": own}
