"""The way from `kubectl apply` on the client to server-side apply, without conflicts.

`kubectl apply` keeps what it applied in an annotation. When kubectl then applies server-side, fields that are still as
the annotation has them are its own, whoever the entries of `managedFields` name; and the annotation is kept up to date.
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
    """Return the fields that the manager may take although others own them."""
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
    """Return the object with the annotation, if it has one, telling what was applied now."""
    if manager != MANAGER or _annotation(obj) is None:
        return obj
    metadata = obj["metadata"]
    annotations = metadata["annotations"] | {ANNOTATION: encode(applied).decode() + "\n"}
    return {**obj, "metadata": {**metadata, "annotations": annotations}}


def _annotation(obj: JSONObject) -> str | None:
    annotations = (obj.get("metadata") or {}).get("annotations") or {}
    text: str | None = annotations.get(ANNOTATION)
    return text
