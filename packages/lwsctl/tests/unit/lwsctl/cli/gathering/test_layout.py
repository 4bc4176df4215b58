"""Tests the files with gathered objects, which must not contain a secret."""

import base64
from datetime import UTC, datetime, timedelta

from kuberuntime.objects.resources import CLUSTER_ROLES, CONFIG_MAPS, DEPLOYMENTS, PODS, SECRETS
from leaderworkerset.webhooks import certificates
from lwsctl.cli.commands.inspect import must_gather

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def test_objects_are_placed_like_those_of_inspect() -> None:
    """Tools for must-gather archives find the files (R-OP-42)."""
    own = {"metadata": {"namespace": "lws-system", "name": "x"}}
    assert str(must_gather.file_path(DEPLOYMENTS, own)) == "namespaces/lws-system/apps/deployments/x.yaml"
    assert str(must_gather.file_path(CONFIG_MAPS, own)) == "namespaces/lws-system/core/configmaps/x.yaml"
    cluster = {"metadata": {"name": "x"}}
    rbac = "cluster-scoped-resources/rbac.authorization.k8s.io"
    assert str(must_gather.file_path(CLUSTER_ROLES, cluster)) == f"{rbac}/clusterroles/x.yaml"
    log = must_gather.log_file_path(own, "manager", previous=True)
    assert str(log) == "namespaces/lws-system/pods/x/manager/manager/logs/previous.log"


def test_secret_shows_only_key_names_and_expiry() -> None:
    """Only the key names and the expiry of a Secret are shown (R-OP-42)."""
    authority = certificates.create_authority(NOW, validity=timedelta(days=3))
    data = {"tls.crt": authority.certificate, "tls.key": authority.key, "ca.crt": b"broken", "password": b"hunter2"}
    secret = {
        "metadata": {"name": "x", "annotations": {must_gather.LAST_APPLIED: "hunter2"}, "managedFields": [{}]},
        "type": "kubernetes.io/tls",
        "data": {name: base64.b64encode(value).decode() for name, value in data.items()},
        "stringData": {"password": "hunter2"},
    }
    assert must_gather.without_secrets(SECRETS, secret) == {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "x"},
        "type": "kubernetes.io/tls",
        "keys": {
            "ca.crt": "no certificate",
            "password": "not shown",
            "tls.crt": "a certificate that expires at 2026-01-05T00:00:00+00:00",
            "tls.key": "not shown",
        },
    }


def test_invalid_base64_is_reported_for_its_key() -> None:
    found = must_gather.without_secrets(SECRETS, {"metadata": {"name": "x"}, "data": {"tls.crt": "%"}})
    assert found["keys"] == {"tls.crt": "no certificate"}


def test_other_objects_are_shown_without_bookkeeping() -> None:
    annotations = {"a": "b", must_gather.LAST_APPLIED: "{}"}
    role = {"metadata": {"name": "x", "managedFields": [{}], "annotations": annotations}, "rules": [{"verbs": ["get"]}]}
    assert must_gather.without_secrets(CLUSTER_ROLES, role) == {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "x", "annotations": {"a": "b"}},
        "rules": [{"verbs": ["get"]}],
    }


def test_objects_are_shown_without_suspected_secrets() -> None:
    pod = {
        "metadata": {"name": "x", "annotations": {"note": "redis://:hunter2@db"}},
        "spec": {
            "containers": [{"env": [{"name": "API_TOKEN", "value": "hunter2"}], "args": ["--password", "hunter2"]}]
        },
    }
    config = {"metadata": {"name": "x"}, "data": {"password": "hunter2", "a.yaml": "token: hunter2", "port": "80"}}
    shown = must_gather.without_secrets(PODS, pod), must_gather.without_secrets(CONFIG_MAPS, config)
    assert "hunter2" not in str(shown)
    assert shown[1]["data"]["port"] == "80"
    authority = certificates.create_authority(NOW, validity=timedelta(days=3)).certificate.decode()
    roots = {"metadata": {"name": "kube-root-ca.crt"}, "data": {"ca.crt": authority}}
    assert must_gather.without_secrets(CONFIG_MAPS, roots)["data"] == {"ca.crt": authority}
