"""Tests volume claim templates for leaders and workers, and the retention of claims (K-622)."""

from tests.integration.clusters.objects import lws, pod_template
from tests.integration.clusters.space import LiveScenario
from tests.integration.clusters.state import State, assert_statefulsets

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject

STORAGE = "tests"


def with_claims(**template: object) -> JSONObject:
    """Return two groups of two pods, each of which mounts a claim."""
    pod = pod_template()
    pod["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    claim = {
        "metadata": {"name": "data", "labels": {"dropped": "yes"}},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": STORAGE,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    return lws(replicas=2, size=2, template={"workerTemplate": pod, "volumeClaimTemplates": [claim]} | template)


async def test_every_pod_gets_its_own_claim(space: LiveScenario) -> None:
    """Claims belong to the leader or the worker StatefulSet. Other templates are removed (R-LSTS-5, R-WSTS-3)."""
    await space.provide_volumes(STORAGE, 4)
    state = await space.bring_up(with_claims())
    assert state.claims.keys() == {"data-web-0", "data-web-0-1", "data-web-1", "data-web-1-1"}
    assert {meta.status(claim)["phase"] for claim in state.claims.values()} == {"Bound"}
    for name in ("web", "web-0"):
        (claim,) = state.statefulsets[name]["spec"]["volumeClaimTemplates"]
        assert (claim["kind"], claim["apiVersion"]) == ("PersistentVolumeClaim", "v1")
        assert meta.name(claim) == "data"
        assert "labels" not in claim["metadata"]
        assert claim["spec"]["resources"] == {"requests": {"storage": "1Gi"}}
        assert claim["spec"]["storageClassName"] == STORAGE
    mounted = state.pods["web-1-1"]["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"]
    assert mounted == "data-web-1-1"


async def test_claims_outlive_pods_by_default(space: LiveScenario) -> None:
    """Without a policy, the same claims are used after scaling down and up (R-LSTS-2)."""
    await space.provide_volumes(STORAGE, 4)
    before = await space.bring_up(with_claims())
    await space.edit(replicas=1)
    state = await space.settled()
    assert state.claims.keys() == before.claims.keys()
    await space.edit(replicas=2)
    after = await space.settled()
    assert meta.uid(after.claims["data-web-1"]) == meta.uid(before.claims["data-web-1"])


async def test_claims_are_deleted_when_the_policy_requests_it(space: LiveScenario) -> None:
    """StatefulSets of leaders and workers have the persistentVolumeClaimRetentionPolicy (R-LSTS-2, R-WSTS-3)."""
    await space.provide_volumes(STORAGE, 4)
    policy = {"whenDeleted": "Delete", "whenScaled": "Delete"}
    state = await space.bring_up(with_claims(persistentVolumeClaimRetentionPolicy=policy))
    for name in ("web", "web-0"):
        assert state.statefulsets[name]["spec"]["persistentVolumeClaimRetentionPolicy"] == policy
    await space.edit(replicas=1)

    def are_gone(state: State) -> None:
        assert state.claims.keys() == {"data-web-0", "data-web-0-1"}
        assert_statefulsets(state, "web", replicas=1, size=2)

    await space.until(are_gone)
    await space.delete("web")

    def is_empty(state: State) -> None:
        assert not state.claims

    await space.until(is_empty)
