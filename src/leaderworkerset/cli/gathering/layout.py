"""The path of a gathered object, and its content: the tree of `oc adm inspect`, without secrets."""

import base64
import binascii
from pathlib import PurePosixPath
from typing import Any, Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS, SECRETS, Resource
from leaderworkerset.webhooks import certificates
from leaderworkerset.webhooks.certificates import CertificateError

CLUSTER: Final = PurePosixPath("cluster-scoped-resources")
NAMESPACES: Final = PurePosixPath("namespaces")
NOTES: Final = PurePosixPath("gather.log")
HISTORY: Final = PurePosixPath("history")
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


def place(kind: Resource, obj: JSONObject) -> PurePosixPath:
    """Return the path of an object.

    >>> str(place(PODS, {"metadata": {"namespace": "lws-system", "name": "web-0"}}))
    'namespaces/lws-system/pods/web-0/web-0.yaml'
    """
    name = meta.name(obj)
    if kind == PODS:
        return NAMESPACES / meta.namespace(obj) / kind.plural / name / f"{name}.yaml"
    folder = NAMESPACES / meta.namespace(obj) if kind.namespaced else CLUSTER
    return folder / (kind.group or "core") / kind.plural / f"{name}.yaml"


def log_place(pod: JSONObject, container: str, *, previous: bool) -> PurePosixPath:
    """Return the path of a container's log."""
    folder = NAMESPACES / meta.namespace(pod) / PODS.plural / meta.name(pod) / container / container / "logs"
    return folder / ("previous.log" if previous else "current.log")


def shown(kind: Resource, obj: JSONObject) -> JSONObject:
    """Return an object without managed fields; of secrets only names and certificate ends."""
    annotations = {name: text for name, text in meta.annotations(obj).items() if name != LAST_APPLIED}
    own = {name: value for name, value in meta.metadata(obj).items() if name not in {"managedFields", "annotations"}}
    head: dict[str, Any] = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": own}
    if annotations:
        own["annotations"] = annotations
    if kind == SECRETS:
        return head | {"type": obj.get("type", ""), "keys": _keys(obj.get("data") or {})}
    return head | {name: value for name, value in obj.items() if name not in head}


def _keys(data: dict[str, str]) -> dict[str, str]:
    """Return what is written of each key: the end of a certificate, otherwise nothing but its name."""
    return {name: _end(name, text) for name, text in sorted(data.items())}


def _end(name: str, text: str) -> str:
    if not name.endswith(".crt"):
        return "not shown"
    try:
        return f"a certificate until {certificates.expires_at(base64.b64decode(text)).isoformat()}"
    except (CertificateError, binascii.Error):
        return "no certificate"
