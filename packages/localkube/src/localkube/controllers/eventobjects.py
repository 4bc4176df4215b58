"""Builds controller events from the regarding object."""

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.plan import Event


def normal_event(obj: JSONObject, reason: str, action: str, note: str) -> Event:
    """Build a Normal event about `obj`."""
    return Event("Normal", reason, action, note, object_reference(obj))


def warning_event(obj: JSONObject, reason: str, action: str, note: str) -> Event:
    """Build a Warning event about `obj`."""
    return Event("Warning", reason, action, note, object_reference(obj))


def object_reference(obj: JSONObject) -> JSONObject:
    """Return the reference to an object for an event."""
    metadata = meta.metadata(obj)
    fields = ("namespace", "name", "uid", "resourceVersion")
    identity = {"apiVersion": obj["apiVersion"], "kind": obj["kind"]}
    return identity | {field: metadata[field] for field in fields if metadata.get(field)}
