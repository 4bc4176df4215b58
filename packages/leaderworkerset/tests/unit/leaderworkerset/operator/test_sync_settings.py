"""Tests the cluster-wide settings and overrides in the `cluster` object."""

from msgspec.structs import replace
from tests.unit.leaderworkerset.operator.clusters import (
    actions,
    applied,
    cluster,
    conditions,
    deleted,
    installed,
    observed,
    plan,
    status_of,
)

from kuberuntime.objects.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
)
from kuberuntime.plan import Apply, Patch, Plan, Put

MODERN = {"metadata": {"name": "cluster"}, "spec": {"tlsSecurityProfile": {"type": "Modern"}}}
SINGLE = {"metadata": {"name": "cluster"}, "status": {"controlPlaneTopology": "SingleReplica"}}


def text_of(found: Plan) -> str:
    (config,) = [one for one in actions(found) if isinstance(one, Apply | Put) and one.resource == CONFIG_MAPS]
    (text,) = config.object["data"].values()
    return str(text)


def test_tls_profile_is_recorded_and_then_applied() -> None:
    """Each step is one write. If the profile is already recorded, there is no write (R-OP-28)."""
    state = replace(observed(cluster()), api_server=MODERN)
    (noted,) = actions(plan(state))
    assert isinstance(noted, Patch)
    assert noted.patch["spec"]["observedConfig"]["tls"] == {"minVersion": "VersionTLS13", "cipherSuites": None}
    known = cluster(observedConfig={"tls": {"minVersion": "VersionTLS13"}})
    assert "minVersion: VersionTLS13" in text_of(plan(replace(observed(known), api_server=MODERN)))
    assert "tls" not in text_of(plan(observed(cluster())))


def test_overrides_reach_the_configuration_and_block_upgrades() -> None:
    """Overrides are merged into the configuration, and block upgrades (R-OP-41)."""
    again = plan(observed(cluster(unsupportedConfigOverrides={"clientConnection": {"qps": 20}})))
    assert "qps: 20" in text_of(again)
    assert conditions(status_of(again))["Upgradeable"] == ("False", "UnsupportedConfigOverrides")


def test_invalid_overrides_change_nothing() -> None:
    """The status contains the manager's error, and a running operand continues (R-OP-41, R-OP-6)."""
    found = cluster(unsupportedConfigOverrides={"replicas": 3})
    again = plan(observed(found, installed(cluster())))
    assert (applied(again), deleted(again)) == ([], [])
    (condition,) = [one for one in status_of(again)["conditions"] if one["type"] == "TargetConfigControllerDegraded"]
    assert (condition["status"], condition["reason"]) == ("True", "SyncError")
    assert 'unknown field "replicas"' in condition["message"]


def test_single_node_has_one_manager_and_no_budget() -> None:
    """A budget of one would prevent draining the node (R-OP-73)."""
    again = plan(replace(observed(cluster(), installed(cluster())), infrastructure=SINGLE))
    assert "PodDisruptionBudget/lws-controller-manager" in deleted(again)
    (deployment,) = [
        one.object for one in actions(again) if isinstance(one, Apply | Put) and one.resource == DEPLOYMENTS
    ]
    assert deployment["spec"]["replicas"] == 1
    assert "topologySpreadConstraints" not in deployment["spec"]["template"]["spec"]
