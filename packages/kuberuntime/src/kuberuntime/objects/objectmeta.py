"""Validates object metadata, including names, and returns the same errors as Kubernetes (R-VAL-1, R-VAL-2).

Input: `metadata` of an object, with valid types. Output: all errors, in the order of the API server.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from kuberuntime.objects import names
from kuberuntime.objects.field import FieldError, Kind, all_invalid, invalid, required_error
from kuberuntime.objects.meta import JSONObject

ANNOTATIONS_MAX = 256 * 1024
MANAGER_MAX = 128

CONTROLLERS_REPORTED = 8
"""The maximum number of reported extra controllers, because each error lists all owners."""

NameRule = Callable[[str], Sequence[str]]


def validate(metadata: JSONObject, name_rule: NameRule, *, namespaced: bool = True) -> list[FieldError]:
    """Return the metadata errors. `name_rule` returns the errors of a name."""
    return [
        *_validate_name(metadata, name_rule),
        *(_validate_namespace(metadata.get("namespace") or "") if namespaced else ()),
        *_validate_generation(metadata.get("generation") or 0),
        *names.label_errors(metadata.get("labels") or {}, "metadata.labels"),
        *annotation_errors(metadata.get("annotations") or {}, "metadata.annotations"),
        *_validate_owners(metadata.get("ownerReferences") or []),
        *_validate_finalizers(metadata.get("finalizers") or []),
        *_validate_managed_fields(metadata.get("managedFields") or []),
    ]


def _validate_name(metadata: JSONObject, name_rule: NameRule) -> Iterator[FieldError]:
    """Validate the name and the name prefix. A prefix can end with a dash, because a suffix follows."""
    prefix = metadata.get("generateName") or ""
    masked = f"{prefix[:-1]}a" if len(prefix) > 1 and prefix.endswith("-") else prefix
    if prefix:
        yield from all_invalid("metadata.generateName", prefix, name_rule(masked))
    name = metadata.get("name") or ""
    if not name:
        yield required_error("metadata.name", "name or generateName is required")
    else:
        yield from all_invalid("metadata.name", name, name_rule(name))


def _validate_namespace(namespace: str) -> Iterator[FieldError]:
    if not namespace:
        yield required_error("metadata.namespace")
    else:
        yield from all_invalid("metadata.namespace", namespace, names.dns_1123_label(namespace))


def _validate_generation(generation: int) -> Iterator[FieldError]:
    if generation < 0:
        yield invalid("metadata.generation", generation, "must be greater than or equal to 0")


def annotation_errors(annotations: Mapping[str, str], path: str) -> Iterator[FieldError]:
    """Yield the errors of annotations."""
    for key in annotations:
        yield from all_invalid(path, key, names.qualified_name(key.lower()))
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > ANNOTATIONS_MAX:
        yield FieldError(Kind.TOO_LONG, path, detail=f"may not be more than {ANNOTATIONS_MAX} bytes")


def _validate_owners(owners: list[JSONObject]) -> Iterator[FieldError]:
    path = "metadata.ownerReferences"
    for owner in owners:
        for field in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(field):
                yield invalid(f"{path}.{field}", "", f"{'version ' * (field == 'apiVersion')}must not be empty")
        if (owner.get("apiVersion"), owner.get("kind")) == ("v1", "Event"):
            yield invalid(path, owner, "/v1, Kind=Event is disallowed from being an owner")
    first, *others = [f"{owner.get('kind')}/{owner.get('name')}" for owner in owners if owner.get("controller")] or [""]
    for other in others[:CONTROLLERS_REPORTED]:
        detail = f'Found "true" in references for {first} and {other}'
        yield invalid(path, owners, f"Only one reference can have Controller set to true. {detail}")


def _validate_finalizers(finalizers: list[str]) -> Iterator[FieldError]:
    for name in finalizers:
        yield from all_invalid("metadata.finalizers", name, names.qualified_name(name))
    if {"orphan", "foregroundDeletion"} <= set(finalizers):
        yield invalid("metadata.finalizers", finalizers, "finalizer orphan and foregroundDeletion cannot be both set")


def _validate_managed_fields(entries: list[JSONObject]) -> Iterator[FieldError]:
    for i, entry in enumerate(entries):
        path = f"metadata.managedFields[{i}]"
        if entry.get("operation") not in {"Apply", "Update"}:
            yield invalid(f"{path}.operation", entry.get("operation") or "", "must be `Apply` or `Update`")
        if entry.get("fieldsType") not in {None, "", "FieldsV1"}:
            yield invalid(f"{path}.fieldsType", entry["fieldsType"], "must be `FieldsV1`")
        if len((entry.get("manager") or "").encode()) > MANAGER_MAX:
            yield FieldError(Kind.TOO_LONG, f"{path}.manager", detail=f"may not be more than {MANAGER_MAX} bytes")
