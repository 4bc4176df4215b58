"""Rules for `metadata`, with the messages of kube-apiserver.

Label keys and values repeat from pod to pod, so the results of their checks are cached.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

from kuberuntime.objects import names
from kuberuntime.objects.field import FieldError, Kind, invalid, required
from kuberuntime.objects.meta import JSONObject

NameRule: TypeAlias = Callable[[str], Sequence[str]]

ANNOTATIONS_MAX = 256 * 1024
STANDARD_FINALIZERS = {"kubernetes", "orphan", "foregroundDeletion"}
MULTIPLE_CONTROLLERS = "Only one reference can have Controller set to true"

label_key = lru_cache(maxsize=4096)(names.label_key)
annotation_key = lru_cache(maxsize=4096)(names.qualified_name)
label_value = lru_cache(maxsize=512)(names.label_value)


def validate(metadata: JSONObject, *, name_rule: NameRule, namespaced: bool) -> Iterator[FieldError]:
    """Yield every error."""
    name, prefix = metadata.get("name", ""), metadata.get("generateName", "")
    for error in name_rule(prefix.rstrip("-") + "a" * prefix.endswith("-")) if prefix else ():
        yield invalid("metadata.generateName", prefix, error)
    if not name:
        yield required("metadata.name", "name or generateName is required")
    else:
        for error in name_rule(name):
            yield invalid("metadata.name", name, error)
    if namespaced and not metadata.get("namespace"):
        yield required("metadata.namespace")
    yield from validate_labels(metadata.get("labels") or {}, "metadata.labels")
    yield from validate_annotations(metadata.get("annotations") or {}, "metadata.annotations")
    if metadata.get("generation", 0) < 0:
        yield invalid("metadata.generation", metadata["generation"], "must be greater than or equal to 0")
    if "ownerReferences" in metadata:
        yield from _validate_owners(metadata["ownerReferences"])
    yield from _validate_finalizers(metadata.get("finalizers") or [])


def validate_labels(labels: Mapping[str, str], path: str) -> Iterator[FieldError]:
    """Yield the errors of a map of labels."""
    for key, value in labels.items():
        for error in label_key(key):
            yield invalid(path, key, error)
        for error in label_value(value):
            yield invalid(path, value, error)


def validate_annotations(annotations: Mapping[str, str], path: str) -> Iterator[FieldError]:
    """Yield the errors of a map of annotations."""
    size = 0
    for key, value in annotations.items():
        for error in annotation_key(key.lower()):
            yield invalid(path, key, error)
        size += len(key) + len(value)
    if size > ANNOTATIONS_MAX:
        yield FieldError(Kind.TOO_LONG, path, detail=f"may not be more than {ANNOTATIONS_MAX} bytes")


def validate_finalizer_names(finalizers: Sequence[str]) -> Iterator[FieldError]:
    """Yield the errors of finalizers that are neither standard ones nor qualified by a domain (built-in kinds)."""
    for index, finalizer in enumerate(finalizers):
        if "/" not in finalizer and finalizer not in STANDARD_FINALIZERS:
            text = "name is neither a standard finalizer name nor is it fully qualified"
            yield invalid(f"metadata.finalizers[{index}]", finalizer, text)


def _validate_finalizers(finalizers: Sequence[str]) -> Iterator[FieldError]:
    for finalizer in finalizers:
        for error in annotation_key(finalizer):
            yield invalid("metadata.finalizers", finalizer, error)
    if {"orphan", "foregroundDeletion"} <= set(finalizers):
        text = "finalizer orphan and foregroundDeletion cannot be both set"
        yield invalid("metadata.finalizers", list(finalizers), text)


def _validate_owners(owners: Sequence[JSONObject]) -> Iterator[FieldError]:
    path = "metadata.ownerReferences"
    for owner in owners:
        for field in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(field):
                yield invalid(f"{path}.{field}", owner.get(field, ""), "must not be empty")
        if (owner.get("apiVersion"), owner.get("kind")) == ("v1", "Event"):
            yield invalid(path, owner, "/v1, Kind=Event is disallowed from being an owner")
    first, *others = [f"{owner['kind']}/{owner['name']}" for owner in owners if owner.get("controller")] or [""]
    for other in others:
        found = f'Found "true" in references for {first} and {other}'
        yield invalid(path, list(owners), f"{MULTIPLE_CONTROLLERS}. {found}")
