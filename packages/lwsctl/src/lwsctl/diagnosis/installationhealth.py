"""Evaluates parts of an installation for the causes of `lws explain` and the checks of `lws doctor`. Pure."""

from datetime import datetime, timedelta

from kuberuntime.objects import meta, timestamps
from kuberuntime.objects.meta import JSONObject

USUAL_DURATION = 15
"""The duration of a Lease in seconds if the Lease does not specify one."""


def version_of(definition: JSONObject, name: str) -> JSONObject | None:
    """Return a version of a CRD, or None if the CRD does not serve it."""
    versions = meta.spec(definition).get("versions") or []
    return next((version for version in versions if version.get("name") == name and version.get("served")), None)


def fields(version: JSONObject | None) -> set[str]:
    """Return the field paths in the spec and status, except for pod templates, whose fields Kubernetes defines."""
    schema = ((version or {}).get("schema") or {}).get("openAPIV3Schema") or {}
    paths: set[str] = set()
    queue = [(name, (schema.get("properties") or {}).get(name) or {}) for name in ("spec", "status")]
    while queue:
        path, node = queue.pop()
        if path.endswith(("emplate.spec", "emplate.metadata")):
            continue
        paths.add(path)
        inner = node.get("items") if node.get("type") == "array" else node
        queue += [(f"{path}.{name}", value) for name, value in ((inner or {}).get("properties") or {}).items()]
    return paths


def silence(lease: JSONObject, now: datetime, durations: float = 1.0) -> timedelta | None:
    """Return the time since a Lease was renewed, or None if it is within the permitted number of durations."""
    spec = meta.spec(lease)
    renewed = timestamps.read(str(spec.get("renewTime") or "1970-01-01T00:00:00Z"))
    limit = timedelta(seconds=durations * float(spec.get("leaseDurationSeconds") or USUAL_DURATION))
    age = None if renewed is None else now - renewed
    return age if age is not None and age > limit else None


def holder_of(lease: JSONObject) -> str:
    """Return the identity of the leader, or an empty string if there is no leader."""
    return str(meta.spec(lease).get("holderIdentity") or "")


def replicas_of(deployment: JSONObject) -> tuple[int, int]:
    """Return the number of ready replicas and of desired replicas of the manager."""
    return int(meta.status(deployment).get("readyReplicas") or 0), int(meta.spec(deployment).get("replicas", 1))
