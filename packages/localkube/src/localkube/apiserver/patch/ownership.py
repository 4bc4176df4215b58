"""Implements field ownership (`metadata.managedFields`), and how each write changes it.

Entries are identified by manager, operation, subresource and, for updates, apiVersion. An update owns the fields that
it adds or changes. Other managers lose the fields that a write changes or removes. Objects of lazily owned kinds have
no entries until they are applied. At the first apply, `before-first-apply` owns all existing fields, as in
kube-apiserver for objects without entries.

`kubectl apply` stores the applied configuration in an annotation. When kubectl later applies server-side, it owns the
fields whose values equal the annotation, regardless of `managedFields`. The annotation is kept up to date.
"""

from collections.abc import Iterable
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from kuberuntime.manifests import nesting
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from localkube.apiserver.model.kind import Kind
from localkube.apiserver.patch import fieldset, objectfields, pathelements
from localkube.apiserver.patch.fieldset import FieldSet, FieldSetError
from localkube.apiserver.storage.encoding import encode

WriteType: TypeAlias = Literal["Apply", "Update"]

BEFORE_FIRST_APPLY = "before-first-apply"

UNTRACKED_METADATA = {
    "f:name", "f:namespace", "f:creationTimestamp", "f:selfLink", "f:uid", "f:generation", "f:managedFields",
    "f:resourceVersion",
}  # fmt: skip


class Writer(msgspec.Struct, frozen=True):
    """The writer of a change, with its manager, operation, version, subresource and time (as in JSON)."""

    manager: str
    operation: WriteType
    api_version: str
    time: str
    subresource: str = ""


class Entry(msgspec.Struct, frozen=True):
    """One entry in `managedFields`."""

    writer: Writer
    fields: FieldSet

    def is_owned_by(self, writer: Writer) -> bool:
        """Return whether writes of this writer belong to this entry."""
        own = self.writer
        return (
            (own.manager, own.operation, own.subresource) == (writer.manager, writer.operation, writer.subresource)
        ) and (own.operation == "Apply" or own.api_version == writer.api_version)


def track_fields(
    kind: Kind, old: JSONObject | None, new: JSONObject, writer: Writer, *, anew: bool = False
) -> JSONObject:
    """Return `new` with its entries after a create or update. With `anew`, ignore existing entries."""
    before = old if old is not None else kind.empty_object
    entries = [] if anew else _sent_entries(new, before) or read(before)
    if not entries and (old is not None or kind.is_lazily_owned):  # no entries until the first apply
        return with_entries(new, ())
    difference = objectfields.compare(kind.schema, before, new)
    changed_fields = ownable_fields(kind, fieldset.union(difference.added, difference.modified), writer.subresource)
    lost = fieldset.union(changed_fields, difference.removed)
    kept = [replace(entry, fields=fieldset.difference(entry.fields, lost)) for entry in entries]
    if changed_fields:
        mine = next((entry for entry in kept if entry.is_owned_by(writer)), None)
        kept = [entry for entry in kept if entry is not mine]
        kept.append(Entry(writer, fieldset.union(mine.fields, changed_fields) if mine else changed_fields))
    return with_entries(new, kept)


def drop_unchanged_times(old: JSONObject, new: JSONObject) -> JSONObject:
    """Return `old` if `new` differs only in the times of its entries, because such a write has no effect."""
    new_metadata, old_metadata = new["metadata"], old["metadata"]
    if new_metadata.get("managedFields") == old_metadata.get("managedFields"):
        return new
    if {**new, "metadata": None} != {**old, "metadata": None}:
        return new
    return old if _without_times(new_metadata) == _without_times(old_metadata) else new


def _without_times(metadata: JSONObject) -> JSONObject:
    entries = metadata.get("managedFields") or []
    return metadata | {"managedFields": [entry | {"time": None} for entry in entries]}


def ownable_fields(kind: Kind, fields: FieldSet, subresource: str = "") -> FieldSet:
    """Return the fields that can be owned, except identity fields and fields that the operation cannot write."""
    unwritable = {"f:spec"} if subresource == "status" else {"f:status"} if kind.has_status else set()
    ignored = {"f:apiVersion", "f:kind"} | unwritable
    result = {element: node for element, node in fields.items() if element not in ignored}
    metadata = fieldset.children(result.pop("f:metadata", {}))
    kept = {element: node for element, node in metadata.items() if element not in UNTRACKED_METADATA}
    return result | {"f:metadata": kept} if kept else result


def read(obj: JSONObject) -> list[Entry]:
    """Return the entries of a stored object."""
    return [_decode(entry, entry.get("fieldsV1") or {}) for entry in _entries(obj)]


def _entries(obj: JSONObject) -> list[JSONObject]:
    return (obj.get("metadata") or {}).get("managedFields") or []


def _sent_entries(new: JSONObject, before: JSONObject) -> list[Entry]:
    """Return the entries that a client sent, or an empty list if an entry is invalid."""
    entries = _entries(new)
    if entries == _entries(before):
        return read(before)
    if not all(entry.get("operation") in {"Apply", "Update"} for entry in entries):
        return []
    try:
        return [_decode(entry, fieldset.parse(entry.get("fieldsV1"))) for entry in entries]
    except FieldSetError:
        return []


def _decode(entry: JSONObject, fields: FieldSet) -> Entry:
    operation = entry["operation"]
    writer = Writer(
        manager=entry.get("manager", ""),
        operation=operation,
        api_version=entry.get("apiVersion", ""),
        time=entry.get("time", ""),
        subresource=entry.get("subresource", ""),
    )
    return Entry(writer, fields)


def with_entries(obj: JSONObject, entries: Iterable[Entry]) -> JSONObject:
    """Return the object with these entries, except entries without fields."""
    present = sorted((entry for entry in entries if entry.fields), key=_entry_sort_key)
    metadata = obj.get("metadata") or {}
    if not present and "managedFields" not in metadata:
        return obj
    rest = {name: value for name, value in metadata.items() if name != "managedFields"}
    return {**obj, "metadata": rest | {"managedFields": [_encode(entry) for entry in present]} if present else rest}


def _entry_sort_key(entry: Entry) -> tuple[str, str, str, str, str]:
    writer = entry.writer
    return writer.operation, writer.time, writer.manager, writer.api_version, writer.subresource


def _encode(entry: Entry) -> JSONObject:
    writer = entry.writer
    encoded: JSONObject = {
        "manager": writer.manager,
        "operation": writer.operation,
        "apiVersion": writer.api_version,
        "time": writer.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": fieldset.to_json(entry.fields),
    }
    if writer.subresource:
        encoded["subresource"] = writer.subresource
    return {name: value for name, value in encoded.items() if value != ""}


ANNOTATION: Final = "kubectl.kubernetes.io/last-applied-configuration"
MANAGER: Final = "kubectl"


def own_fields(kind: Kind, live: JSONObject, manager: str) -> FieldSet:
    """Return fields of other owners that the manager may change without a conflict."""
    text = meta.annotations(live).get(ANNOTATION)
    if manager != MANAGER or text is None:
        return {}
    try:
        applied = nesting.decode(text)
        if not isinstance(applied, dict):
            return {}
        fields = objectfields.applied_fields(kind.schema, applied)
    except (msgspec.DecodeError, pathelements.DuplicateKeysError):
        return {}
    difference = objectfields.compare(kind.schema, applied, live)
    return fieldset.difference(
        fields, fieldset.union(difference.modified, fieldset.union(difference.added, difference.removed))
    )


def update_annotation(obj: JSONObject, applied: JSONObject, manager: str) -> JSONObject:
    """Return the object. If it has the annotation for the applied configuration, update the annotation."""
    if manager != MANAGER or ANNOTATION not in meta.annotations(obj):
        return obj
    metadata = obj["metadata"]
    annotations = metadata["annotations"] | {ANNOTATION: encode(applied).decode() + "\n"}
    return {**obj, "metadata": {**metadata, "annotations": annotations}}
