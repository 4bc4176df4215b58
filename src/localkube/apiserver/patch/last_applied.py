"""Migrates fields from client-side `kubectl apply` to server-side apply, without conflicts.

`kubectl apply` stores the applied configuration in an annotation. When kubectl then applies server-side, it owns the
fields that still have the values of the annotation, whatever `managedFields` says; and the annotation is kept up to
date.
"""

from typing import Final

import msgspec

from kuberuntime.manifests import nesting
from kuberuntime.objects.meta import JSONObject
from localkube.apiserver.model.kind import Kind
from localkube.apiserver.patch import fieldset, fieldsof, granularity
from localkube.apiserver.patch.fieldset import FieldSet
from localkube.apiserver.storage.encoding import encode

ANNOTATION: Final = "kubectl.kubernetes.io/last-applied-configuration"
MANAGER: Final = "kubectl"


def own_fields(kind: Kind, live: JSONObject, manager: str) -> FieldSet:
    """Return the fields that the manager may change without conflict although others own them."""
    text = _annotation(live)
    if manager != MANAGER or text is None:
        return {}
    try:
        applied = nesting.decode(text)
        if not isinstance(applied, dict):
            return {}
        fields = fieldsof.of_applied(kind.schema, applied)
    except (msgspec.DecodeError, granularity.DuplicateKeysError):
        return {}
    found = fieldsof.compare(kind.schema, applied, live)
    return fieldset.difference(fields, fieldset.union(found.modified, fieldset.union(found.added, found.removed)))


def updated(obj: JSONObject, applied: JSONObject, manager: str) -> JSONObject:
    """Return the object; its annotation, if it has one, is set to the configuration applied now."""
    if manager != MANAGER or _annotation(obj) is None:
        return obj
    metadata = obj["metadata"]
    annotations = metadata["annotations"] | {ANNOTATION: encode(applied).decode() + "\n"}
    return {**obj, "metadata": {**metadata, "annotations": annotations}}


def _annotation(obj: JSONObject) -> str | None:
    annotations = (obj.get("metadata") or {}).get("annotations") or {}
    text: str | None = annotations.get(ANNOTATION)
    return text
