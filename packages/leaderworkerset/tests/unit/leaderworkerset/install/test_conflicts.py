"""Tests configurations that prevent the installed objects from reaching the manager."""

import pytest
import yaml

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.install.installsettings import CONFIGURATION
from leaderworkerset.install.objects import incompatible_values
from leaderworkerset.manager.config import configuration

HEAD = {"apiVersion": "config.lws.x-k8s.io/v1", "kind": "Configuration"}


def test_installed_configuration_fits() -> None:
    assert incompatible_values(configuration.decode(yaml.safe_load(CONFIGURATION))) == []


@pytest.mark.parametrize(
    ("document", "failure"),
    [
        ({"webhook": {"port": 9444}}, 'webhook.port: Unsupported value: 9444: supported values: "9443"'),
        (
            {"metrics": {"bindAddress": ":9000"}},
            'metrics.bindAddress: Unsupported value: ":9000": supported values: ":8443", "0"',
        ),
        (
            {"health": {"livenessEndpointName": "/alive"}},
            'health.livenessEndpointName: Unsupported value: "/alive": supported values: "/healthz"',
        ),
        (
            {"internalCertManagement": {"enable": True, "webhookSecretName": "own"}},
            (
                'internalCertManagement.webhookSecretName: Unsupported value: "own":'
                ' supported values: "lws-webhook-server-cert"'
            ),
        ),
    ],
)
def test_misfit_is_named(document: JSONObject, failure: str) -> None:
    assert [str(error) for error in incompatible_values(configuration.decode(HEAD | document))] == [failure]


def test_metrics_may_be_disabled() -> None:
    assert incompatible_values(configuration.decode(HEAD | {"metrics": {"bindAddress": "0"}})) == []
