"""Server-side apply as commands do it: apply one object, and tell whether that created, changed or left it."""

from collections.abc import Mapping
from dataclasses import dataclass

from kuberuntime.client.client import Client
from kuberuntime.errors import ConflictError, NotFoundError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource
from leaderworkerset.client.scaling import SCALER


@dataclass(frozen=True, slots=True)
class Applied:
    """What one apply came to: a word for people, the object as it is now, and the fields taken from `lws scale`."""

    word: str
    object: JSONObject
    taken: Mapping[str, str]


async def apply(
    client: Client, resource: Resource, obj: JSONObject, *, manager: str, force: bool, dry_run: bool = False
) -> Applied:
    """Apply an object as `manager` and compare with what was there."""
    try:
        before = await client.get(resource, meta.key(obj))
    except NotFoundError:
        before = None
    taken: dict[str, str] = {}
    try:
        after = await client.apply(resource, obj, manager=manager, force=force, dry_run=dry_run)
    except ConflictError as error:
        if before is None or not is_with_scale_only(error):
            raise
        after = await client.apply(resource, obj, manager=manager, force=True, dry_run=dry_run)
        taken = {path: _change(path, before, after) for path in conflicting_fields(error)}
    if before is None:
        return Applied("created", after, taken)
    return Applied("unchanged" if _content(before) == _content(after) else "configured", after, taken)


def is_with_scale_only(error: ConflictError) -> bool:
    """Return whether all fields that an apply conflicts about are owned by `lws scale`."""
    causes = error.details.get("causes") or []
    return bool(causes) and all(
        cause.get("reason") == "FieldManagerConflict"
        and str(cause.get("message", "")).startswith(f'conflict with "{SCALER}"')
        for cause in causes
    )


def conflicting_fields(error: ConflictError) -> list[str]:
    """Return the paths of the fields that an apply conflicts about."""
    return [str(cause.get("field", "")) for cause in error.details.get("causes") or []]


def _change(path: str, before: JSONObject, after: JSONObject) -> str:
    return f"{_value(before, path)} -> {_value(after, path)}"


def _value(obj: JSONObject, path: str) -> object:
    found: object = obj
    for name in path.strip(".").split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return found


def _content(obj: JSONObject) -> JSONObject:
    """Leave out what changes beside an apply: the status, and in a dry run the version."""
    own = {
        name: value for name, value in meta.metadata(obj).items() if name not in {"managedFields", "resourceVersion"}
    }
    return {name: value for name, value in obj.items() if name != "status"} | {"metadata": own}
