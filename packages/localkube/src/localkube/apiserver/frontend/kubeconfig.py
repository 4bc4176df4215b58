"""Builds the kubeconfig of an embedded cluster, which clients of this user need to connect and authenticate."""

import base64
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from kuberuntime.objects.meta import JSONObject
from localkube.statedirectory import write_private


@dataclass(frozen=True, slots=True)
class Access:
    """The address of a cluster, its token, and its certificate (PEM, or empty for plain HTTP)."""

    name: str
    server: str
    token: str = field(repr=False)
    certificate: bytes = b""


def build_kubeconfig(access: Access) -> JSONObject:
    """Build a kubeconfig with one cluster, one user and one context of the same name."""
    cluster: JSONObject = {"server": access.server}
    if access.certificate:
        cluster["certificate-authority-data"] = base64.b64encode(access.certificate).decode()
    context = {"cluster": access.name, "user": access.name, "namespace": "default"}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": access.name, "cluster": cluster}],
        "users": [{"name": access.name, "user": {"token": access.token}}],
        "contexts": [{"name": access.name, "context": context}],
        "current-context": access.name,
    }


def write_kubeconfig(path: Path, access: Access) -> None:
    """Write the kubeconfig atomically, so that only this user can read it."""
    write_private(path, yaml.safe_dump(build_kubeconfig(access), sort_keys=False).encode())
