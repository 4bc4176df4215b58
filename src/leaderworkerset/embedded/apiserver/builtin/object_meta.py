"""What is wrong with `metadata`, in the words of kube-apiserver.

Label keys and values repeat from pod to pod, so their verdicts are remembered.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

from leaderworkerset.api import names
from leaderworkerset.api.field import FieldError, Kind, invalid, required
from leaderworkerset.api.meta import JSONObject

NameRule: TypeAlias = Callable[[str], Sequence[str]]

ANNOTATIONS_MAX = 256 * 1024
MULTIPLE_CONTROLLERS = "Only one reference can have Controller set to true"

label_key = lru_cache(maxsize=4096)(names.qualified_name)
label_value = lru_cache(maxsize=4096)(names.label_value)


def validate(metadata: JSONObject, *, name_rule: NameRule, namespaced: bool) -> Iterator[FieldError]:
    """Yield every fault."""
    name = metadata.get("name", "")
    if not name:
        yield required("metadata.name", "name or generateName is required")
    else:
        for fault in name_rule(name):
            yield invalid("metadata.name", name, fault)
    if namespaced and not metadata.get("namespace"):
        yield required("metadata.namespace")
    yield from validate_labels(metadata.get("labels") or {}, "metadata.labels")
    yield from validate_annotations(metadata.get("annotations") or {}, "metadata.annotations")
    if "ownerReferences" in metadata:
        yield from _validate_owners(metadata["ownerReferences"])
    for finalizer in metadata.get("finalizers") or ():
        for fault in label_key(finalizer):
            yield invalid("metadata.finalizers", finalizer, fault)


def validate_labels(labels: Mapping[str, str], path: str) -> Iterator[FieldError]:
    """Yield the faults of a map of labels."""
    for key, value in labels.items():
        for fault in label_key(key):
            yield invalid(path, key, fault)
        for fault in label_value(value):
            yield invalid(path, value, fault)


def validate_annotations(annotations: Mapping[str, str], path: str) -> Iterator[FieldError]:
    """Yield the faults of a map of annotations."""
    size = 0
    for key, value in annotations.items():
        for fault in label_key(key.lower()):
            yield invalid(path, key, fault)
        size += len(key) + len(value)
    if size > ANNOTATIONS_MAX:
        yield FieldError(Kind.TOO_LONG, path, detail=f"may not be more than {ANNOTATIONS_MAX} bytes")


def _validate_owners(owners: Sequence[JSONObject]) -> Iterator[FieldError]:
    controllers = []
    for index, owner in enumerate(owners):
        path = f"metadata.ownerReferences[{index}]"
        for field, word in (("apiVersion", "version"), ("kind", "kind"), ("name", "name"), ("uid", "uid")):
            if not owner.get(field):
                yield invalid(f"{path}.{field}", owner.get(field, ""), f"{word} must not be empty")
        if owner.get("controller"):
            controllers.append(owner.get("name", ""))
    if len(controllers) > 1:
        found = f'Found "true" in references for {controllers[0]} and {controllers[1]}'
        yield invalid("metadata.ownerReferences", list(owners), f"{MULTIPLE_CONTROLLERS}. {found}")
