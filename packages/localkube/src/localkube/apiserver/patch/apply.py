"""Implements server-side apply, which merges configurations and removes fields that are no longer owned.

In: the kind, the live object (None to create it), the applied configuration, the writer. Out: the object to store with
its `managedFields`, before defaulting and validation, or a 409 error that names the owner of every conflicting field.
If an apply changes nothing, `ownership.drop_unchanged_times` returns the live object.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from kuberuntime.objects.field import render
from kuberuntime.objects.meta import JSON, JSONObject
from localkube.apiserver.model import apierrors
from localkube.apiserver.model.kind import Kind, Schema
from localkube.apiserver.patch import fieldset, objectfields, ownership, pathelements
from localkube.apiserver.patch.fieldset import FieldSet
from localkube.apiserver.patch.ownership import Entry, Writer


def apply(
    kind: Kind, live: JSONObject | None, applied: JSONObject, writer: Writer, *, force: bool = False
) -> JSONObject:
    """Merge the applied configuration into the live object."""
    if (applied.get("metadata") or {}).get("managedFields"):
        raise apierrors.bad_request("metadata.managedFields must be nil")
    before = live if live is not None else kind.empty_object
    entries = _find_entries(kind, live, writer)
    try:
        fields = ownership.ownable_fields(kind, objectfields.applied_fields(kind.schema, applied), writer.subresource)
        merged = _merge(kind.schema, ownership.with_entries(before, ()), applied)
    except pathelements.DuplicateKeysError as error:
        place = pathelements.find_duplicate(kind.schema, applied)
        raise apierrors.bad_request(
            f"failed to create typed patch object: {place}: {error}"
            if place
            else f"failed to create typed patch object: {error}"
        ) from error

    mine = next((entry for entry in entries if entry.is_owned_by(writer)), None)
    others = [entry for entry in entries if entry is not mine]
    if mine is not None:
        merged = _without_abandoned(kind.schema, merged, mine.fields, [fields, *(other.fields for other in others)])
    allowed = ownership.own_fields(kind, before, writer.manager)
    others = _settle_conflicts(kind, (before, merged), others, allowed, force=force)
    merged = ownership.update_annotation(merged, applied, writer.manager)
    if live is not None and merged == ownership.with_entries(live, ()):  # an apply without changes retains the time
        writer = replace(writer, time=mine.writer.time if mine is not None else "")
    return ownership.with_entries(merged, [*others, Entry(writer, fields)])


def _find_entries(kind: Kind, live: JSONObject | None, writer: Writer) -> list[Entry]:
    if live is None:
        return []
    entries = ownership.read(live)
    if entries:
        return entries
    difference = objectfields.compare(kind.schema, kind.empty_object, live)
    fields = ownership.ownable_fields(kind, fieldset.union(difference.added, difference.modified), writer.subresource)
    first = replace(writer, manager=ownership.BEFORE_FIRST_APPLY, operation="Update", subresource="", time="")
    return [Entry(first, fields)]


def _settle_conflicts(
    kind: Kind, change: tuple[JSONObject, JSONObject], others: Sequence[Entry], allowed: FieldSet, *, force: bool
) -> list[Entry]:
    """Return the entries of other managers, without the fields that they no longer own.

    Managers lose the fields that this write changes or removes. Unless `force` is set, a change that is not `allowed`
    is a conflict.
    """
    before, merged = change
    difference = objectfields.compare(kind.schema, ownership.with_entries(before, ()), merged)
    changed = fieldset.union(difference.added, difference.modified)
    disputed = fieldset.difference(changed, allowed)
    conflicts = [Entry(other.writer, fieldset.intersection(other.fields, disputed)) for other in others]
    conflicts = [conflict for conflict in conflicts if conflict.fields]
    if conflicts and not force:
        raise conflict_rejection(conflicts)
    lost = fieldset.union(changed, difference.removed)
    return [replace(other, fields=fieldset.difference(other.fields, lost)) for other in others]


def conflict_rejection(conflicts: Sequence[Entry]) -> apierrors.StatusError:
    """Build the 409 error that lists every conflicting field and its owner."""
    ordered = sorted(conflicts, key=lambda conflict: conflict.writer.manager)
    pairs = [(conflict.writer, path) for conflict in ordered for path in fieldset.paths(conflict.fields)]
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {_describe(writer)}", "field": path}
        for writer, path in pairs
    ]
    if len(pairs) == 1:
        text = f"Apply failed with 1 conflict: conflict with {_describe(pairs[0][0])}: {pairs[0][1]}"
    else:
        lines = []
        for conflict in ordered:
            lines.append(f"conflicts with {_describe(conflict.writer)}:")
            lines += [f"- {path}" for path in fieldset.paths(conflict.fields)]
        text = f"Apply failed with {len(pairs)} conflicts: " + "\n".join(lines)
    return apierrors.StatusError(409, "Conflict", text, {"causes": causes})


def _describe(writer: Writer) -> str:
    text = render(writer.manager)
    if writer.subresource:
        text += f" with subresource {render(writer.subresource)}"
    if writer.operation == "Update":
        text += f" using {writer.api_version}"
    return text


def _merge(schema: Schema, live: JSON, applied: JSON) -> JSON:
    if not pathelements.is_granular(schema, applied):
        return applied
    if isinstance(applied, dict):
        base = live if isinstance(live, dict) else {}
        return base | {
            name: _merge(pathelements.child_schema(schema, name), base.get(name), child)
            for name, child in applied.items()
        }
    return _merge_items(schema, live if isinstance(live, list) else [], applied)


def _merge_items(schema: Schema, live: list[JSON], applied: list[JSON]) -> list[JSON]:
    """Merge by key, in the applied order. Other items of the live list remain between the shared items."""
    desired = pathelements.items_by_key(schema, applied)
    try:
        present = pathelements.items_by_key(schema, live)
    except pathelements.DuplicateKeysError:
        return applied
    items = schema.items or pathelements.OPEN
    result: dict[str, JSON] = {}
    pending = iter(desired.items())
    for element, item in present.items():
        if element not in desired:
            result[element] = item
            continue
        while element not in result:
            name, value = next(pending)
            result[name] = _merge(items, present.get(name), value)
    result.update((name, _merge(items, present.get(name), value)) for name, value in pending)
    return list(result.values())


def _without_abandoned(schema: Schema, merged: JSONObject, last: FieldSet, keep: Sequence[FieldSet]) -> JSONObject:
    """Remove the fields that the manager applied previously and that no longer have an owner."""
    kept: FieldSet = {}
    for fields in keep:
        kept = fieldset.union(kept, fields)
    pruned: JSONObject = _prune_unowned(schema, merged, last, kept)
    return pruned


def _prune_unowned(schema: Schema, value: JSON, last: FieldSet, kept: FieldSet) -> JSON:
    if not fieldset.children(last) or not pathelements.is_granular(schema, value):
        return value
    if isinstance(value, dict):
        children = {
            name: _prune_child(schema, f"f:{name}", child, last, kept, is_named=pathelements.is_named(schema, name))
            for name, child in value.items()
        }
        return {name: rest for name, rest in children.items() if rest is not _GONE}
    try:
        items = pathelements.items_by_key(schema, value)
    except pathelements.DuplicateKeysError:
        return value
    rests = [_prune_child(schema, element, item, last, kept, is_named=False) for element, item in items.items()]
    return [rest for rest in rests if rest is not _GONE]


_GONE = object()


def _prune_child(schema: Schema, element: str, child: JSON, last: FieldSet, kept: FieldSet, *, is_named: bool) -> JSON:
    """Return what remains of a part. A field is retained as long as any part of it has an owner."""
    before, now = last.get(element), kept.get(element)
    if before is None:
        return child
    is_owned = now is not None and (is_named or fieldset.is_member(now))
    if not is_owned and (is_named or fieldset.is_member(before)):
        return _GONE
    rest = _prune_unowned(pathelements.part_schema(schema, element), child, before, now or {})
    return _GONE if child and rest in ({}, []) and not is_owned else rest
