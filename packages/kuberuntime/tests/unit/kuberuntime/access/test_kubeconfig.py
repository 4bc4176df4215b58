"""Tests that kubeconfigs are found, merged and read as in kubectl, and that each error is one sentence."""

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from testkit.virtualtime import run

from kuberuntime.access import incluster, kubeconfig
from kuberuntime.access.access import Access
from kuberuntime.access.credentials import Credentials
from kuberuntime.access.execcredentials import ExecCredentials
from kuberuntime.errors import ConfigError


def document(name: str = "dev", *, user: Any = None, cluster: Any = None, **top: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}:6443"} | (cluster or {})}],
        "users": [{"name": name, "user": {"token": name} if user is None else user}],
    } | top


def write(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


def load(path: Path, context: str = "") -> Access:
    return kubeconfig.load({}, kubeconfig=str(path), context=context)


def credentials(access: Access) -> Credentials:
    return run(access.credentials.get())


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_kubeconfig_resolves_to_an_access(tmp_path: Path) -> None:
    cluster = {
        "server": "https://dev:6443/",
        "certificate-authority-data": b64("CA"),
        "tls-server-name": "kubernetes",
        "proxy-url": "http://proxy:3128",
    }
    contexts = [{"name": "dev", "context": {"cluster": "dev", "user": "dev", "namespace": "prod"}}]
    path = write(tmp_path / "config", document(cluster=cluster, contexts=contexts))

    access = load(path)

    assert (access.server, access.context, access.namespace) == ("https://dev:6443", "dev", "prod")
    assert access.proxy == "http://proxy:3128"
    assert (access.tls.authority, access.tls.server_name, access.tls.insecure) == (b"CA", "kubernetes", False)
    assert credentials(access) == Credentials(token="dev")


def test_context_can_be_selected(tmp_path: Path) -> None:
    both = document("dev")
    other = document("prod")
    for part in ("contexts", "clusters", "users"):
        both[part] += other[part]
    path = write(tmp_path / "config", both)

    assert load(path).server == "https://dev:6443"
    assert load(path, "prod").server == "https://prod:6443"


def test_kubeconfig_variable_names_files_and_the_first_wins(tmp_path: Path) -> None:
    first = write(tmp_path / "1", document("dev") | {"current-context": ""})
    second = write(tmp_path / "2", document("prod"))
    third = write(tmp_path / "3", document("dev", cluster={"server": "https://late:1"}))
    environment = {"KUBECONFIG": f"{first}:{tmp_path / 'missing'}::{second}:{third}"}

    assert kubeconfig.load(environment).server == "https://prod:6443"
    assert kubeconfig.load(environment, context="dev").server == "https://dev:6443"


def test_kubeconfig_in_the_home_directory_is_the_default(tmp_path: Path) -> None:
    write(tmp_path / ".kube" / "config", document())

    assert kubeconfig.load({"HOME": str(tmp_path)}).server == "https://dev:6443"


def test_explicit_kubeconfig_replaces_the_environment(tmp_path: Path) -> None:
    path = write(tmp_path / "given", document("given"))
    other = write(tmp_path / "other", document("other"))

    assert kubeconfig.load({"KUBECONFIG": str(other)}, kubeconfig=str(path)).server == "https://given:6443"


def test_relative_paths_start_at_the_kubeconfig_that_has_them(tmp_path: Path) -> None:
    user = {"client-certificate": "tls/cert", "client-key": "tls/key", "tokenFile": "token"}
    path = write(tmp_path / "sub" / "config", document(user=user, cluster={"certificate-authority": "ca"}))
    for name in ("tls/cert", "tls/key", "token", "ca"):
        write(tmp_path / "sub" / name, name)

    access = load(path)

    assert access.tls.authority == b"ca"
    assert credentials(access) == Credentials("token", b"tls/cert", b"tls/key")


def test_inline_data_overrides_files(tmp_path: Path) -> None:
    user = {
        "client-certificate": "missing",
        "client-certificate-data": b64("CERT"),
        "client-key-data": b64("KEY"),
    }
    path = write(tmp_path / "config", document(user=user))

    assert credentials(load(path)) == Credentials(certificate=b"CERT", key=b"KEY")


def test_nulls_and_unknown_fields_are_ignored(tmp_path: Path) -> None:
    path = write(
        tmp_path / "config",
        document(preferences={}, users=None, extensions=[{}], cluster={"proxy-url": None})
        | {"contexts": [{"name": "dev", "context": {"cluster": "dev", "extensions": []}}]},
    )

    assert credentials(load(path)) == Credentials()


def test_exec_plugin_is_read_from_the_user(tmp_path: Path) -> None:
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "login", "args": None}
    path = write(tmp_path / "config", document(user={"exec": plugin}))

    assert isinstance(load(path).credentials, ExecCredentials)


def test_insecure_skip_tls_verify_disables_verification(tmp_path: Path) -> None:
    path = write(tmp_path / "config", document(cluster={"insecure-skip-tls-verify": True}))

    assert load(path).tls.insecure


ERRORS: dict[str, tuple[Any, str]] = {
    "not YAML": ("a: [", "{file}: invalid YAML: line 2: did not find expected node content"),
    "not a mapping": ("- a", "{file}: invalid kubeconfig: Expected `object`, got `array`"),
    "wrong type": (
        document(cluster={"server": 6443}),
        "{file}: invalid kubeconfig: Expected `str`, got `int` - at `$.clusters[0].cluster.server`",
    ),
    "entry without a name": (
        document(users=[{"user": {}}]),
        "{file}: invalid kubeconfig: Object missing required field `name` - at `$.users[0]`",
    ),
    "empty": ("", "{file}: current-context is not set. Specify --context with one of: none"),
    "no current context": (
        document() | {"current-context": ""},
        "{file}: current-context is not set. Specify --context with one of: dev",
    ),
    "unknown context": (
        document() | {"current-context": "prod"},
        "{file}: context 'prod' does not exist; available: dev",
    ),
    "unknown cluster": (
        document(contexts=[{"name": "dev", "context": {"cluster": "x", "user": "dev"}}]),
        "{file}: contexts[dev].context.cluster: cluster 'x' does not exist; available: dev",
    ),
    "unknown user": (
        document(contexts=[{"name": "dev", "context": {"cluster": "dev", "user": "x"}}]),
        "{file}: contexts[dev].context.user: user 'x' does not exist; available: dev",
    ),
    "no server": (
        document(clusters=[{"name": "dev", "cluster": {}}]),
        "{file}: clusters[dev].cluster.server: Invalid value: '': must be a URL such as https://host:6443",
    ),
    "server without scheme": (
        document(cluster={"server": "dev:6443"}),
        "{file}: clusters[dev].cluster.server: Invalid value: 'dev:6443': must be a URL such as https://host:6443",
    ),
    "certificate authority missing": (
        document(cluster={"certificate-authority": "ca.crt"}),
        "{file}: clusters[dev].cluster.certificate-authority: cannot read {dir}/ca.crt: No such file or directory",
    ),
    "certificate authority not base64": (
        document(cluster={"certificate-authority-data": "%%%"}),
        "{file}: clusters[dev].cluster.certificate-authority-data: invalid base64: ",
    ),
    "token file missing": (
        document(user={"tokenFile": "/nowhere/token"}),
        "{file}: users[dev].user.tokenFile: cannot read /nowhere/token: No such file or directory",
    ),
    "certificate without key": (
        document(user={"client-certificate-data": b64("CERT")}),
        "{file}: users[dev].user.client-key: Required value: a client certificate requires a key, and a key requires a certificate",
    ),
    "key without certificate": (
        document(user={"client-key-data": b64("KEY")}),
        "{file}: users[dev].user.client-certificate: Required value: a client certificate requires a key, and a key requires a certificate",
    ),
    "basic authentication": (
        document(user={"username": "admin", "password": "secret"}),
        (
            "{file}: users[dev].user.username: Kubernetes does not support basic authentication since 1.19. "
            "Use a token, a client certificate or an exec plugin"
        ),
    ),
    "auth provider": (
        document(user={"auth-provider": {"name": "gcp"}}),
        "{file}: users[dev].user.auth-provider: Kubernetes does not support auth providers since 1.26. Use an exec plugin",
    ),
    "impersonation": (
        document(user={"token": "t", "as": "root"}),
        "{file}: users[dev].user.as: impersonation is not supported. Use the credentials of the intended user",
    ),
    "certificate authority and no verification": (
        document(cluster={"insecure-skip-tls-verify": True, "certificate-authority-data": b64("CA")}),
        (
            "{file}: clusters[dev].cluster.insecure-skip-tls-verify: Invalid value: true: specifying a root certificates "
            "file with the insecure flag is not allowed. Remove one of them"
        ),
    ),
    "token over HTTP": (
        document(cluster={"server": "http://dev:6443"}),
        (
            "{file}: clusters[dev].cluster.server: Invalid value: 'http://dev:6443': would send the token of "
            "users[dev].user unencrypted. Use https://"
        ),
    ),
    "plugin over HTTP": (
        document(cluster={"server": "http://dev:6443"}, user={"exec": {"command": "login"}}),
        "{file}: clusters[dev].cluster.server: Invalid value: 'http://dev:6443': would send the token of ",
    ),
    "token over HTTP through a proxy": (
        document(cluster={"server": "http://127.0.0.1:6443", "proxy-url": "http://proxy:3128"}),
        "{file}: clusters[dev].cluster.server: Invalid value: 'http://127.0.0.1:6443': would send the token of ",
    ),
    "token with a line break": (
        document(user={"token": "s3cret\nX-Admin: yes"}),
        (
            "{file}: users[dev].user.token: Invalid value: character 7 of the token is a space, a control character or "
            "not ASCII. Copy the token again"
        ),
    ),
    "token that is not ASCII": (
        document(user={"token": "geheimnisvöll"}),
        "{file}: users[dev].user.token: Invalid value: character 11 of the token is a space",
    ),
    "name with a null character": (
        document(user={"tokenFile": "a\0b"}),
        "{file}: users[dev].user.tokenFile: cannot read {dir}/a\0b: the file name contains a null character",
    ),
    "bomb": (
        "a0: &a0 [x,x]\n" + "\n".join(f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)),
        "{file}: invalid YAML: line 8: alias *a6: aliases must not repeat more than 3145728 characters and nodes",
    ),
    "deep": ("[" * 50_000, "{file}: invalid YAML: line 1: nested more than 100 levels deep"),
    "exec plugin of an old version": (
        document(user={"exec": {"apiVersion": "client.authentication.k8s.io/v1alpha1", "command": "login"}}),
        (
            "{file}: users[dev].user.exec.apiVersion: Unsupported value: 'client.authentication.k8s.io/v1alpha1': "
            "supported values: client.authentication.k8s.io/v1. Update the plugin and its entry"
        ),
    ),
}


@pytest.mark.parametrize(("content", "message"), ERRORS.values(), ids=ERRORS)
def test_malformed_kubeconfig_is_reported_in_one_line(tmp_path: Path, content: Any, message: str) -> None:
    path = write(tmp_path / "config", content)

    with pytest.raises(ConfigError) as caught:
        load(path)

    assert str(caught.value).startswith(message.format(file=path, dir=tmp_path))
    assert "\n" not in str(caught.value)


def test_secrets_are_absent_from_messages_and_representations(tmp_path: Path) -> None:
    path = write(tmp_path / "config", document(user={"token": "s3cret", "client-key-data": b64("s3cret")}))

    with pytest.raises(ConfigError) as caught:
        load(path)

    assert "s3cret" not in str(caught.value)
    assert "s3cret" not in repr(Credentials("s3cret", b"", b"s3cret"))


def test_secrets_of_a_user_are_absent_from_representations(tmp_path: Path) -> None:
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "login",
        "args": ["--password=s3cret"],
        "env": [{"name": "PASSWORD", "value": "s3cret"}],
    }
    user = {"token": "s3cret", "password": "s3cret", "client-key-data": b64("s3cret"), "exec": plugin}
    cluster = {"proxy-url": "http://me:s3cret@proxy:3128"}
    path = write(tmp_path / "config", document(user=user, cluster=cluster))

    shown = repr(kubeconfig.parse(path).users) + repr(load(write(tmp_path / "other", document(cluster=cluster))))

    assert "s3cret" not in shown
    assert b64("s3cret") not in shown


@pytest.mark.parametrize("server", ["http://127.0.0.1:6443", "http://localhost:6443", "http://[::1]:6443"])
def test_token_may_be_sent_unencrypted_within_this_machine(tmp_path: Path, server: str) -> None:
    path = write(tmp_path / "config", document(cluster={"server": server}))

    assert credentials(load(path)) == Credentials("dev")


def test_http_without_a_token_is_allowed(tmp_path: Path) -> None:
    path = write(tmp_path / "config", document(cluster={"server": "http://dev:6443"}, user={}))

    assert load(path).server == "http://dev:6443"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("~nobody-at-all/config", "~nobody-at-all/config: "),
        ("a" * 300, f"{'a' * 300}: cannot read the file: File name too long"),
    ],
    ids=["unknown user", "long name"],
)
def test_unusable_path_is_named_in_the_error(name: str, message: str) -> None:
    for environment, given in (({}, name), ({"KUBECONFIG": name}, "")):
        with pytest.raises(ConfigError) as caught:
            kubeconfig.find(environment, given)
        assert str(caught.value).startswith(message)


def test_endless_file_is_rejected() -> None:
    with pytest.raises(ConfigError, match="/dev/zero: cannot read the file: larger than 16 MiB"):
        kubeconfig.parse(Path("/dev/zero"))


@pytest.mark.parametrize("port", ["x", "99999", "443/../x?y", "4 4"])
def test_invalid_address_in_the_environment_of_a_pod_is_named(tmp_path: Path, port: str) -> None:
    (tmp_path / "token").write_text("t")
    (tmp_path / "ca.crt").write_text("CA")
    with pytest.raises(ConfigError, match="KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT: Invalid value"):
        incluster.access({"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": port}, tmp_path)


def test_explicit_kubeconfig_that_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no such file\. Specify the path of a kubeconfig"):
        load(tmp_path / "missing")


def test_unreadable_kubeconfig_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read the file: Is a directory"):
        load(tmp_path)


def test_missing_kubeconfig_error_lists_where_it_is_searched(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"kubeconfig not found. Set KUBECONFIG, create ~/.kube/config, or specify --kubeconfig"
    ):
        kubeconfig.load({"HOME": str(tmp_path)})


def test_missing_files_of_the_kubeconfig_variable_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"the files in KUBECONFIG do not exist: /absent:/gone"):
        kubeconfig.load({"HOME": str(tmp_path), "KUBECONFIG": "/absent:/gone"})


POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def test_pod_uses_the_credentials_of_its_service_account(tmp_path: Path) -> None:
    for name in ("token", "ca.crt", "namespace"):
        write(tmp_path / name, f"{name}\n")

    access = incluster.access(POD, tmp_path)

    assert (access.server, access.namespace, access.context) == ("https://10.0.0.1:443", "namespace", "in-cluster")
    assert access.tls.authority == b"ca.crt\n"
    assert credentials(access) == Credentials(token="token")


def test_ipv6_address_is_bracketed(tmp_path: Path) -> None:
    for name in ("token", "ca.crt"):
        write(tmp_path / name, name)

    access = incluster.access(POD | {"KUBERNETES_SERVICE_HOST": "fd00::1"}, tmp_path)

    assert (access.server, access.namespace) == ("https://[fd00::1]:443", "default")


def test_pod_without_a_service_account_token_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"token: no such file, although KUBERNETES_SERVICE_HOST is set\. Set automount"
    ):
        kubeconfig.load(POD | {"HOME": str(tmp_path)})


def test_kubeconfig_overrides_the_service_account(tmp_path: Path) -> None:
    path = write(tmp_path / "config", document())

    assert kubeconfig.load(POD | {"KUBECONFIG": str(path)}).server == "https://dev:6443"


def test_exec_plugin_gets_the_extension_of_its_cluster(tmp_path: Path) -> None:
    config = {"kind": "ExecPluginConfig", "shootRef": {"namespace": "garden-x", "name": None}}
    extensions = [{"name": "other", "extension": 1}, {"name": kubeconfig.EXEC_EXTENSION, "extension": config}]
    plugin = tmp_path / "plugin"
    plugin.write_text('#!/bin/sh\nprintf %s "$KUBERNETES_EXEC_INFO" > "$(dirname "$0")/info"\n')
    plugin.chmod(0o700)
    version = "client.authentication.k8s.io/v1"
    user = {"exec": {"apiVersion": version, "command": "./plugin", "provideClusterInfo": True, "args": None}}
    cluster = {"disable-compression": True, "extensions": extensions}
    path = write(tmp_path / "config", document(user=user, cluster=cluster))

    with pytest.raises(ConfigError, match="did not print a valid ExecCredential"):
        asyncio.run(kubeconfig.load({}, kubeconfig=str(path)).credentials.get())

    spec = json.loads((tmp_path / "info").read_text())["spec"]
    assert spec["cluster"] == {"server": "https://dev:6443", "disable-compression": True, "config": config}
