"""Evaluates parts of an installation for the causes of `lws explain` and the checks of `lws doctor`. Pure."""

from datetime import datetime, timedelta

from kuberuntime.objects import meta, timestamps
from kuberuntime.objects.meta import JSONObject
from lwsctl.views.wording import duration

NOT_TRUSTED = "x509|tls: "
"""The pattern of the API server's errors about the certificate of a webhook."""

USUAL_DURATION = 15
"""The duration of a Lease in seconds if the Lease does not specify one."""


def find_version(definition: JSONObject, name: str) -> JSONObject | None:
    """Return a version of a CRD, or None if the CRD does not serve it."""
    versions = meta.spec(definition).get("versions") or []
    return next((version for version in versions if version.get("name") == name and version.get("served")), None)


def field_paths(version: JSONObject | None) -> set[str]:
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


def missing_fields(version: JSONObject | None, other: JSONObject | None) -> list[str]:
    """Return the topmost fields of a CRD version that the other version does not have."""
    own, theirs = field_paths(version), field_paths(other)
    topmost = (field for field in own - theirs if field.rpartition(".")[0] in theirs)
    return sorted(topmost, key=lambda field: (field.count("."), field))


def lease_state(lease: JSONObject, now: datetime) -> str:
    """Return the reason why a Lease has no leader, or an empty string if it is held.

    A Lease expires after its duration. Twice the duration is permitted, because the clock of this machine can be ahead.
    """
    spec, holder = meta.spec(lease), lease_holder(lease)
    if not holder:
        return f"Lease {meta.key(lease)} has no holder"
    renewed = timestamps.read(str(spec.get("renewTime") or "1970-01-01T00:00:00Z"))
    limit = timedelta(seconds=float(spec.get("leaseDurationSeconds") or USUAL_DURATION))
    if renewed is None or now - renewed <= 2 * limit:
        return ""
    return f"Lease {meta.key(lease)} of {holder} has not been renewed for {duration(now - renewed)}"


def lease_holder(lease: JSONObject) -> str:
    """Return the identity of the leader, or an empty string if there is no leader."""
    return str(meta.spec(lease).get("holderIdentity") or "")


def scale_up_step(deployment: JSONObject, kubectl: str = "kubectl") -> str:
    """Return the next step for a manager whose Deployment is scaled to 0."""
    return f"{kubectl} -n {meta.namespace(deployment)} scale deployment {meta.name(deployment)} --replicas=2"


def replica_counts(deployment: JSONObject) -> tuple[int, int]:
    """Return the number of ready replicas and of desired replicas of the manager."""
    return int(meta.status(deployment).get("readyReplicas") or 0), int(meta.spec(deployment).get("replicas", 1))
