"""Tests the installed webhook configurations (contract 12.3, R-WHC-1)."""

import base64

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.kinds.managedkinds import MANAGED
from leaderworkerset.webhooks.configurations import at_service, at_url, build_configurations, with_authority
from leaderworkerset.webhooks.handlers import allow
from leaderworkerset.webhooks.spec import NOT_DELETING, NOTHING_TO_CHECK, ClientConfig
from localkube.apiserver.admission import match_conditions

MEMBERS = {"matchExpressions": [{"key": "leaderworkerset.sigs.k8s.io/name", "operator": "Exists"}]}


def rule(group: str, plural: str, *operations: str) -> list[dict[str, list[str]]]:
    return [{"apiGroups": [group], "apiVersions": ["v1"], "operations": list(operations), "resources": [plural]}]


def built(client_config: ClientConfig) -> dict[str, JSONObject]:
    return {obj["kind"]: obj for _, obj in build_configurations(MANAGED.webhooks, client_config)}


def test_mutating_configuration_equals_the_contract() -> None:
    found = built(at_service("lws-system", "lws-webhook-service"))["MutatingWebhookConfiguration"]
    common = {"admissionReviewVersions": ["v1"], "failurePolicy": "Fail", "sideEffects": "None"}
    service = {"namespace": "lws-system", "name": "lws-webhook-service"}
    assert found == {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "lws-mutating-webhook-configuration"},
        "webhooks": [
            common
            | {
                "name": "mleaderworkerset.kb.io",
                "clientConfig": {"service": service | {"path": "/mutate-leaderworkerset-x-k8s-io-v1-leaderworkerset"}},
                "rules": rule("leaderworkerset.x-k8s.io", "leaderworkersets", "CREATE", "UPDATE"),
                "matchConditions": [NOT_DELETING],
            },
            common
            | {
                "name": "mpod.kb.io",
                "clientConfig": {"service": service | {"path": "/mutate--v1-pod"}},
                "rules": rule("", "pods", "CREATE"),
                "objectSelector": MEMBERS,
            },
        ],
    }


def test_terminating_objects_are_exempt_from_webhooks() -> None:
    """Otherwise, a foreground deletion waits for an unavailable manager (ADR 29)."""
    webhooks = [one for obj in built(at_url("https://a", b"PEM")).values() for one in obj["webhooks"]]
    exempting = {one["name"] for one in webhooks if NOT_DELETING in one.get("matchConditions", ())}
    assert exempting == {one["name"] for one in webhooks if "UPDATE" in one["rules"][0]["operations"]}
    assert NOT_DELETING["expression"] in match_conditions.SUPPORTED


def test_differs_from_upstream_pod_validation_is_not_called() -> None:
    """The validating webhook for pods is never called, because it would admit every pod (R-ADM-16, ADR 41)."""
    uncalled = {one.name: one.decide for one in MANAGED.webhooks if not one.is_called}
    webhooks = [one for obj in built(at_url("https://a", b"PEM")).values() for one in obj["webhooks"]]
    assert {one["name"] for one in webhooks if NOTHING_TO_CHECK in one.get("matchConditions", ())} == uncalled.keys()
    assert uncalled == {"vpod.kb.io": allow}
    assert NOTHING_TO_CHECK["expression"] in match_conditions.SUPPORTED


def test_validating_configuration_equals_the_contract() -> None:
    found = built(at_url("https://127.0.0.1:9443", b"PEM"))["ValidatingWebhookConfiguration"]
    assert found["metadata"]["name"] == "lws-validating-webhook-configuration"
    assert [(w["name"], w["rules"], w.get("objectSelector")) for w in found["webhooks"]] == [
        (
            "vleaderworkerset.kb.io",
            rule("leaderworkerset.x-k8s.io", "leaderworkersets", "CREATE", "UPDATE"),
            None,
        ),
        ("vpod.kb.io", rule("", "pods", "CREATE", "UPDATE"), MEMBERS),
        (
            "vdisaggregatedset.kb.io",
            rule("disaggregatedset.x-k8s.io", "disaggregatedsets", "CREATE", "UPDATE"),
            None,
        ),
    ]
    assert found["webhooks"][1]["clientConfig"] == {
        "url": "https://127.0.0.1:9443/validate--v1-pod",
        "caBundle": base64.b64encode(b"PEM").decode(),
    }


def test_client_configuration_can_include_the_authority() -> None:
    config = at_service("ns", "svc", b"PEM")("/p")
    assert config == {"service": {"namespace": "ns", "name": "svc", "path": "/p"}, "caBundle": "UEVN"}


def test_every_webhook_of_a_configuration_gets_the_authority() -> None:
    configuration: JSONObject = build_configurations(MANAGED.webhooks, at_service("lws-system", "lws-webhook-service"))[
        0
    ][1]
    foreign: JSONObject = {"name": "other", "clientConfig": {"caBundle": "b2xk", "url": "https://x"}}
    configuration["webhooks"].append(foreign)
    trusting = with_authority(configuration, "cGVt")
    bundles = {webhook["clientConfig"]["caBundle"] for webhook in trusting["webhooks"]}
    assert bundles == {"cGVt"}
    assert trusting["webhooks"][0]["clientConfig"]["service"]["name"] == "lws-webhook-service"
    assert with_authority(trusting, "cGVt") is trusting
    assert foreign["clientConfig"]["caBundle"] == "b2xk"
