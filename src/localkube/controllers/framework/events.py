"""Building the events of the embedded controllers."""

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.plan import Event


def normal(obj: JSONObject, reason: str, action: str, note: str) -> Event:
    """Build the event of something that went as it should, about `obj`."""
    return Event("Normal", reason, action, note, reference(obj))


def warning(obj: JSONObject, reason: str, action: str, note: str) -> Event:
    """Build the event of something that someone should look at, about `obj`."""
    return Event("Warning", reason, action, note, reference(obj))


def reference(obj: JSONObject) -> JSONObject:
    """Return the object reference by which an event names what it is about."""
    metadata = meta.metadata(obj)
    fields = ("namespace", "name", "uid", "resourceVersion")
    identity = {"apiVersion": obj["apiVersion"], "kind": obj["kind"]}
    return identity | {field: metadata[field] for field in fields if metadata.get(field)}
