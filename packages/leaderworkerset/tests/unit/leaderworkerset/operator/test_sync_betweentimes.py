"""Tests reconciles while a version is being applied, and a TLS profile next to foreign fields."""

from typing import Any

import pytest
from msgspec.structs import replace
from tests.unit.leaderworkerset.operator.clusters import (
    LATER,
    PLACE,
    actions,
    applied,
    cluster,
    conditions,
    installed,
    observed,
    plan,
    status_of,
)

from kuberuntime.objects.resources import CONFIG_MAPS
from kuberuntime.plan import Apply

MODERN = {"metadata": {"name": "cluster"}, "spec": {"tlsSecurityProfile": {"type": "Modern"}}}


def test_version_is_not_reported_while_it_is_applied() -> None:
    """Before that time, the observed rollout belongs to the previous version (R-OP-6, R-OP-8)."""
    found = cluster()
    live = installed(found)
    found["status"] = status_of(plan(observed(found, live)))
    later = replace(PLACE, version="2.0.0", image="registry.example/lws@sha256:4567")
    again = plan(observed(found, live), later, LATER)
    assert applied(again) == ["Deployment/lws-controller-manager"]
    assert status_of(again)["version"] == PLACE.version
    assert conditions(status_of(again))["Progressing"] == ("True", "RollingOut")


@pytest.mark.parametrize("noted", [{"servingInfo": {"a": 1}}, {"tls": {"more": 1}}], ids=["beside", "within"])
def test_foreign_observed_config_does_not_block_the_profile(noted: dict[str, Any]) -> None:
    """Other fields in `observedConfig` are retained. Only the profile is compared (R-OP-4, R-OP-28)."""
    found = cluster(observedConfig=noted | {"tls": {"minVersion": "VersionTLS13", **noted.get("tls", {})}})
    again = plan(replace(observed(found), api_server=MODERN))
    (config,) = [one for one in actions(again) if isinstance(one, Apply) and one.resource == CONFIG_MAPS]
    assert "minVersion: VersionTLS13" in str(config.object["data"])
