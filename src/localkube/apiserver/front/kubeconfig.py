"""The kubeconfig of an embedded cluster: how clients of this user reach it and authenticate."""

import base64
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from kuberuntime.objects.meta import JSONObject


@dataclass(frozen=True, slots=True)
class Access:
    """The address of a cluster, its token, and its certificate (PEM; empty over plain HTTP)."""

    name: str
    server: str
    token: str = field(repr=False)
    certificate: bytes = b""


def build_kubeconfig(access: Access) -> JSONObject:
    """Build the content of the kubeconfig: one cluster, one user, one context of the same name."""
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
    """Write the kubeconfig atomically, readable by this user only."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # created with mode 0600
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            yaml.safe_dump(build_kubeconfig(access), file, sort_keys=False)
        os.replace(temporary, path)  # noqa: PTH105 - atomic, over an existing file
    except BaseException:
        os.unlink(temporary)  # noqa: PTH108 - the counterpart of mkstemp
        raise
