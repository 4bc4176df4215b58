"""Tests the StatefulSet of a group's workers."""

from typing import Any

from tests import builders

from kuberuntime.objects import meta
from leaderworkerset.api import labels, leaderworkerset
from leaderworkerset.core.leaderworkerset import revisions
from leaderworkerset.core.pod import statefulset

PLAIN = builders.leaderworkerset_object(size=4, metadata={"labels": {"team": "x"}, "annotations": {"note": "n"}})
LEADER = builders.leader_pod(PLAIN, 1, key="k")


def build(
    live: dict[str, Any],
    leader: dict[str, Any],
    *,
    recorded: dict[str, Any] | None = None,
    selector: dict[str, str] | None = None,
) -> dict[str, Any]:
    revised = revisions.restore(live, builders.revision(recorded or live))
    return statefulset.build(leaderworkerset.decode(live), leaderworkerset.decode(revised), leader, selector or {})


def test_worker_statefulset_equals_the_contract() -> None:
    """A worker StatefulSet equals the contract (R-WSTS-3)."""
    group = {labels.NAME: "web", labels.GROUP_INDEX: "1", labels.GROUP_KEY: "group-key-1"}

    assert build(PLAIN, LEADER) == {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {
            "name": "web-1",
            "namespace": "default",
            "labels": {"team": "x", labels.TEMPLATE_REVISION_HASH: "k", labels.ROLE: "worker"} | group,
            "annotations": {"note": "n"},
            "ownerReferences": [meta.controller_reference(LEADER)],
        },
        "spec": {
            "replicas": 3,
            "ordinals": {"start": 1},
            "podManagementPolicy": "Parallel",
            "serviceName": "web",
            "selector": {"matchLabels": group},
            "template": {
                "metadata": {
                    "labels": group | {labels.TEMPLATE_REVISION_HASH: "k"},
                    "annotations": {
                        labels.SIZE: "4",
                        labels.LEADER_NAME: "web-1",
                        labels.LEADER_ADDRESS: "web-1.web.default",
                    },
                },
                "spec": {"containers": [{"name": "main", "image": "app:1", "resources": {}}]},
            },
        },
    }


HASHED = LEADER | {
    "metadata": LEADER["metadata"] | {"annotations": {labels.GROUP_IDENTITY: "Hash"}},
    "spec": LEADER["spec"] | {"hostname": "web-a1b2c3d4", "subdomain": "web-a1b2c3d4"},
}


def test_workers_reach_their_leader_by_its_host_name() -> None:
    """The leader's own subdomain is used, not the subdomain of the current LeaderWorkerSet."""
    built = build(PLAIN, HASHED)

    assert built["spec"]["serviceName"] == "web-a1b2c3d4"
    annotations = built["spec"]["template"]["metadata"]["annotations"]
    assert annotations[labels.LEADER_ADDRESS] == "web-a1b2c3d4.web-a1b2c3d4.default"
    assert annotations[labels.GROUP_IDENTITY] == "Hash"


def test_pods_follow_the_revision_and_metadata_the_set() -> None:
    """A group that is recreated during an update retains its revision (R-WSTS-4)."""
    live = builders.leaderworkerset_object(
        size=2,
        image="app:2",
        metadata={"annotations": {labels.EXCLUSIVE_TOPOLOGY: "rack"}},
        spec={"networkConfig": {"subdomainPolicy": "UniquePerReplica"}},
    )

    built = build(live, LEADER, recorded=PLAIN)

    assert built["spec"]["replicas"] == 3
    assert built["spec"]["serviceName"] == "web"
    template = built["spec"]["template"]
    assert template["spec"]["containers"][0]["image"] == "app:1"
    assert template["metadata"]["annotations"][labels.SIZE] == "4"
    assert template["metadata"]["annotations"][labels.EXCLUSIVE_TOPOLOGY] == "rack"


def test_groups_with_their_own_subdomain_have_a_service() -> None:
    """Groups with a separate subdomain have a separate Service (R-WSTS-3)."""
    own = builders.leaderworkerset_object(spec={"networkConfig": {"subdomainPolicy": "UniquePerReplica"}})

    assert build(own, LEADER)["spec"]["serviceName"] == "web-1"


def test_empty_annotations_are_omitted() -> None:
    """Empty annotations are omitted (R-WSTS-3)."""
    assert "annotations" not in build(builders.leaderworkerset_object(), LEADER)["metadata"]


def test_workers_are_annotated_when_their_leader_uses_tpus() -> None:
    """Workers have annotations if their leader uses TPUs (R-WSTS-3, R-TPU-1)."""
    leader = builders.leader_pod(PLAIN, 1, resources={"limits": {"google.com/tpu": "4"}})

    annotations = build(PLAIN, leader)["spec"]["template"]["metadata"]["annotations"]

    assert annotations[labels.LEADER_REQUESTS_TPUS] == "true"


def test_domain_is_added_to_the_node_selector_of_the_user() -> None:
    """The domain is added to the user's node selector (R-WSTS-6)."""
    template = builders.pod_template()
    template["spec"]["nodeSelector"] = {"gpu": "h100", "rack": "mine"}
    live = builders.leaderworkerset_object(template={"workerTemplate": template})

    spec = build(live, LEADER, selector={"rack": "r7"})["spec"]["template"]["spec"]

    assert spec["nodeSelector"] == {"gpu": "h100", "rack": "r7"}


def test_claims_follow_the_revision() -> None:
    """Claims are taken from the revision (R-WSTS-3, R-WSTS-4)."""
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    live = builders.leaderworkerset_object(template={"volumeClaimTemplates": [claim]})

    assert build(live, LEADER)["spec"]["volumeClaimTemplates"][0]["metadata"]["name"] == "data"
    assert "volumeClaimTemplates" not in build(live, LEADER, recorded=PLAIN)["spec"]
