"""Tests exclusive placement, volume claims, and DisaggregatedSet groups on real nodes."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.node.images import OTHER_BUSYBOX
from tests.node.objects import WAIT, container, leaderworkerset, pod
from tests.node.place import Place, is_ready

from kuberuntime.objects.meta import JSONObject

SIZE = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
MOUNT = {"data": "/data"}


def nodes_of(place: Place, name: str, group: int) -> set[str]:
    """Return the nodes on which a group runs."""
    label = "leaderworkerset.sigs.k8s.io/group-index"
    return {one["spec"]["nodeName"] for one in place.pods(name) if one["metadata"]["labels"][label] == str(group)}


def test_exclusive_groups_share_no_node(place: Place) -> None:
    annotations = {"exclusive-topology": "rack"}
    place.ready(leaderworkerset("apart", pod(), replicas=2, size=3, annotations=annotations), 6)
    one, other = nodes_of(place, "apart", 0), nodes_of(place, "apart", 1)
    assert len(one) == len(other) == 1
    assert one != other


def test_third_exclusive_group_waits_for_a_node(place: Place) -> None:
    place.apply(leaderworkerset("third", pod(), replicas=3, annotations={"exclusive-topology": "rack"}))
    place.until(lambda: sum(map(is_ready, place.pods("third"))) == 4, "two groups")
    found = place.lws("explain", "third", code=4)
    assert "rack" in found or "exclusive" in found, found


@pytest.fixture
def volumes(place: Place) -> Iterator[None]:
    """Create persistent volumes for four claims in the namespace."""
    names = [f"{place.name}-{number}" for number in range(4)]
    place.apply(*(volume(name) for name in names))
    yield
    place.cluster.kubectl("delete", "persistentvolume", *names, "--wait=false")


def volume(name: str) -> JSONObject:
    """Return a persistent volume on the disk of a node."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Mi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": name.rpartition("-")[0],
            "hostPath": {"path": f"/var/lib/kubelet/made-by-hand/{name}", "type": "DirectoryOrCreate"},
            "nodeAffinity": {
                "required": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "rack", "operator": "In", "values": ["rack-1"]}]}
                    ]
                }
            },
        },
    }


def claiming(place: Place, when_scaled: str, when_deleted: str) -> JSONObject:
    """Return two groups of two pods, each of which has a volume claim."""
    claim = {"metadata": {"name": "data"}, "spec": {**SIZE, "storageClassName": place.name}}
    template = pod(container(f"echo start >> /data/starts; {WAIT}", mounts=MOUNT))
    policy = {"whenScaled": when_scaled, "whenDeleted": when_deleted}
    obj = leaderworkerset(
        "claims", template, replicas=2, volumeClaimTemplates=[claim], persistentVolumeClaimRetentionPolicy=policy
    )
    obj["spec"]["leaderWorkerTemplate"]["restartPolicy"] = "RecreateGroupOnPodRestart"
    return obj


@pytest.mark.usefixtures("volumes")
def test_volumes_survive_the_pods_that_claim_them(place: Place) -> None:
    place.ready(claiming(place, "Delete", "Retain"), 4)
    before = place.uids("claims")
    place.kubectl("delete", "pod", "claims-0-1", "--wait=false")
    place.until(lambda: set(before.values()).isdisjoint({place.uids("claims").get("claims-0", "")}), "another leader")
    place.await_ready("claims", 2, 4)
    assert place.exec("claims-0-1", "cat", "/data/starts") == "start\nstart\n"


@pytest.mark.usefixtures("volumes")
def test_claims_follow_their_retention_policy(place: Place) -> None:
    place.ready(claiming(place, "Delete", "Retain"), 4)
    place.kubectl("scale", "lws/claims", "--replicas=1")
    place.until(lambda: "data-claims-1" not in claims(place), "the end of the leader's claim")
    place.await_ready("claims", 1, 2)
    # the workers of a group are deleted with it, and not scaled down
    kept = {"data-claims-0", "data-claims-0-1", "data-claims-1-1"}
    assert claims(place) == kept
    place.kubectl("delete", "lws", "claims", "--cascade=foreground")
    place.until(lambda: not place.pods("claims"), "no pod")
    assert claims(place) == kept


def claims(place: Place) -> set[str]:
    """Return the names of the claims that are not being deleted."""
    found = place.items("PersistentVolumeClaim")
    return {one["metadata"]["name"] for one in found if "deletionTimestamp" not in one["metadata"]}


def test_roles_of_a_disaggregated_set_roll_together(place: Place) -> None:
    obj = disaggregated("localhost/busybox:1")
    place.apply(obj)
    place.until(lambda: ready_roles(place) == {"prefill": 4, "decode": 2}, "both roles")
    place.apply(disaggregated(OTHER_BUSYBOX))
    place.until(
        lambda: images(place) == {OTHER_BUSYBOX} and ready_roles(place) == {"prefill": 4, "decode": 2}, "the rollout"
    )
    place.kubectl("delete", "disaggregatedset", "split")
    place.until(lambda: not place.items("Pod"), "no pod")


def disaggregated(image: str) -> JSONObject:
    """Return two roles, one with groups of two pods and one with single pods."""

    def role(name: str, size: int) -> dict[str, Any]:
        template = pod(container(image=image))
        rolling = {"type": "RollingUpdate", "rollingUpdateConfiguration": {"maxSurge": 1, "maxUnavailable": 0}}
        spec = {
            "replicas": 2,
            "rolloutStrategy": rolling,
            "leaderWorkerTemplate": {"size": size, "workerTemplate": template},
        }
        return {"name": name, "spec": spec}

    return {
        "apiVersion": "disaggregatedset.x-k8s.io/v1",
        "kind": "DisaggregatedSet",
        "metadata": {"name": "split"},
        "spec": {"roles": [role("prefill", 2), role("decode", 1)]},
    }


def ready_roles(place: Place) -> dict[str, int]:
    """Return the number of ready pods for each role, including pods with old revisions."""
    found: dict[str, int] = {}
    for one in place.items("Pod"):
        role = one["metadata"]["labels"]["disaggregatedset.x-k8s.io/role"]
        found[role] = found.get(role, 0) + (1 if is_ready(one) else 100)
    return found


def images(place: Place) -> set[str]:
    """Return the images of all pods."""
    return {one["spec"]["containers"][0]["image"] for one in place.items("Pod")}
