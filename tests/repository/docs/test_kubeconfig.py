"""Tests that the page about kubeconfig fields contains each field of kubectl, and describes its effect."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from testkit.repository import ROOT

from kuberuntime.access import kubeconfig
from kuberuntime.access.credentials import ExecConfig
from kuberuntime.errors import ConfigError

PAGE = ROOT / "docs" / "reference" / "kubeconfig.md"

OF_KUBECTL = {
    "": "apiVersion kind preferences extensions current-context",
    "clusters[].": "name",
    "clusters[].cluster.": "server tls-server-name insecure-skip-tls-verify certificate-authority"
    " certificate-authority-data proxy-url disable-compression extensions",
    "users[].": "name",
    "users[].user.": "client-certificate client-certificate-data client-key client-key-data token tokenFile as as-uid"
    " as-groups as-user-extra username password auth-provider extensions",
    "users[].user.exec.": "command args env apiVersion installHint provideClusterInfo interactiveMode",
    "contexts[].": "name",
    "contexts[].context.": "cluster user namespace extensions",
}
"""The fields in the `tools/clientcmd/api/v1` package of client-go."""

STRUCTS: dict[str, Any] = {
    "clusters[].cluster.": kubeconfig.Cluster,
    "users[].user.": kubeconfig.User,
    "users[].user.exec.": ExecConfig,
    "contexts[].context.": kubeconfig.Context,
}


def rows() -> dict[str, str]:
    """Return the effect of each field."""
    lines = [line.split(" | ") for line in PAGE.read_text().split("## Proxy")[0].splitlines() if line.startswith("| `")]
    return {field: what.rstrip(" |") for fields, what in lines for field in re.findall(r"`([^`]+)`", fields)}


def read_fields() -> set[str]:
    return {
        f"{path}{field.encode_name}" for path, struct in STRUCTS.items() for field in msgspec.structs.fields(struct)
    } - {"users[].user.exec"}


def test_page_has_every_field_of_kubectl() -> None:
    assert rows().keys() == {f"{path}{name}" for path, names in OF_KUBECTL.items() for name in names.split()}


def test_ignored_fields_are_those_that_are_not_read() -> None:
    below = {field for field in rows() if field.startswith(tuple(STRUCTS))}
    assert {field for field in below if rows()[field].startswith("Ignored")} == below - read_fields()


VALUES: dict[str, Any] = {"auth-provider": {"name": "gcp"}, "as-groups": ["a"], "as-user-extra": {"a": ["b"]}}


@pytest.mark.parametrize("field", [field for field, what in rows().items() if what.startswith("Rejected")])
def test_rejected_field_is_an_error_that_names_it(field: str, tmp_path: Path) -> None:
    name = field.rpartition(".")[2]
    config = {
        "clusters": [{"name": "x", "cluster": {"server": "https://x:1"}}],
        "users": [{"name": "x", "user": {name: VALUES.get(name, "a")}}],
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        "current-context": "x",
    }
    path = tmp_path / "config"
    path.write_text(json.dumps(config))
    with pytest.raises(ConfigError, match=r"users\[x\]\.user"):
        kubeconfig.load({}, kubeconfig=str(path))
