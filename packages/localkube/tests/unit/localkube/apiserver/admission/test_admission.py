"""Tests that webhooks are called according to the stored webhook configurations."""

from typing import Any

from tests.unit.localkube.apiserver.harness import CONFIG_MAPS, Api, config_map

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


def configuration(**changes: Any) -> dict[str, Any]:
    """Build a configuration with an unreachable webhook."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE", "DELETE"]}
    webhook = {
        "name": "check.example.org",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"url": "https://127.0.0.1:1/check"},
        "rules": [rule],
    }
    return {"metadata": {"name": "check"}, "webhooks": [webhook | changes]}


async def test_webhook_is_called_while_its_configuration_exists(api: Api) -> None:
    await api.create(CONFIG_MAPS, config_map("before"))
    assert (await api.create(CONFIGURATIONS, configuration())).code == 201
    code, reason, message = (await api.create(CONFIG_MAPS, config_map("a"))).refusal
    assert (code, reason) == (500, "InternalError")
    assert message.startswith('Internal error occurred: failed calling webhook "check.example.org"')
    assert (await api.delete(f"{CONFIG_MAPS}/before")).code == 500
    assert (await api.update(f"{CONFIG_MAPS}/before", config_map("before", k="v"))).code == 200
    await api.delete(f"{CONFIGURATIONS}/check")
    assert (await api.create(CONFIG_MAPS, config_map("a"))).code == 201


async def test_ignored_webhook_failure_does_not_fail_the_request(api: Api) -> None:
    await api.create(CONFIGURATIONS, configuration(failurePolicy="Ignore"))
    assert (await api.create(CONFIG_MAPS, config_map("a"))).code == 201
