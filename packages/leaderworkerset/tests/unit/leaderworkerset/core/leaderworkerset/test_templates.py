"""Tests the pod templates and claims of StatefulSets."""

from leaderworkerset.api import labels
from leaderworkerset.api.leaderworkerset import (
    LeaderWorkerTemplate,
    PersistentVolumeClaimRetentionPolicy,
    SubGroupPolicy,
)
from leaderworkerset.api.policytypes import SubGroupPolicyType
from leaderworkerset.core.leaderworkerset import statefulsets

CLAIM = {
    "metadata": {"name": "data", "labels": {"a": "b"}, "annotations": {"c": "d"}},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "fast",
        "volumeMode": "Block",
        "volumeName": "v",
        "selector": {"matchLabels": {"x": "y"}},
        "dataSource": {"kind": "PersistentVolumeClaim", "name": "other"},
        "volumeAttributesClassName": "gold",
        "resources": {"requests": {"storage": "1024Mi"}, "limits": {"storage": "2Gi"}},
    },
}


def test_labels_and_annotations_of_the_controller_win() -> None:
    """The controller's labels and annotations override the user's (R-LSTS-2)."""
    template = {
        "metadata": {"labels": {"own": "x", "mine": "1"}, "annotations": {"note": "n"}},
        "spec": {"containers": [{"name": "c", "unknown": 1}]},
    }

    built = statefulsets.build_pod_template(template, path="t", own_labels={"own": "y"}, own_annotations={"size": "2"})

    assert built == {
        "metadata": {"labels": {"own": "y", "mine": "1"}, "annotations": {"note": "n", "size": "2"}},
        "spec": {"containers": [{"name": "c", "resources": {}}]},
    }


def test_simple_group_is_annotated_with_its_size() -> None:
    """An empty topology key is treated as missing (contract 1.5)."""
    live = {labels.EXCLUSIVE_TOPOLOGY: "", labels.SUBGROUP_EXCLUSIVE_TOPOLOGY: "rack"}

    assert statefulsets.group_annotations(LeaderWorkerTemplate(size=4), live) == {labels.SIZE: "4"}


def test_subgroups_and_topologies_are_annotated() -> None:
    """Annotations describe subgroups and topologies (R-LSTS-2, R-WSTS-3)."""
    policy = SubGroupPolicy(sub_group_policy_type=SubGroupPolicyType.LEADER_EXCLUDED, sub_group_size=2)
    live = {labels.EXCLUSIVE_TOPOLOGY: "rack", labels.SUBGROUP_EXCLUSIVE_TOPOLOGY: "host"}

    assert statefulsets.group_annotations(LeaderWorkerTemplate(size=5, sub_group_policy=policy), live) == {
        labels.SIZE: "5",
        labels.EXCLUSIVE_TOPOLOGY: "rack",
        labels.SUBGROUP_POLICY_TYPE: "LeaderExcluded",
        labels.SUBGROUP_SIZE: "2",
        labels.SUBGROUP_EXCLUSIVE_TOPOLOGY: "host",
    }


def test_unset_fields_of_a_subgroup_policy_have_defaults() -> None:
    """Admission requires a size (R-VAL-20). Without admission, the default prevents an error."""
    annotations = statefulsets.group_annotations(LeaderWorkerTemplate(sub_group_policy=SubGroupPolicy()), {})

    assert annotations == {labels.SIZE: "1", labels.SUBGROUP_POLICY_TYPE: "LeaderWorker"}


def test_claims_keep_the_fields_of_the_go_controller() -> None:
    """Claims have the same fields as in the Go controller (R-LSTS-5)."""
    bare = {"metadata": {"name": "bare"}, "spec": {}}

    fields = statefulsets.claim_fields(LeaderWorkerTemplate(volume_claim_templates=(CLAIM, bare)), "ns")

    assert fields == {
        "volumeClaimTemplates": [
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": "data", "namespace": "ns"},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "storageClassName": "fast",
                    "volumeMode": "Block",
                    "resources": {"requests": {"storage": "1Gi"}, "limits": {"storage": "2Gi"}},
                },
            },
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": "bare", "namespace": "ns"},
                "spec": {"resources": {}},
            },
        ]
    }


def test_both_retention_policies_are_sent_when_one_is_set() -> None:
    """A policy that is not set has the default of the API server (R-LSTS-2)."""
    policy = PersistentVolumeClaimRetentionPolicy(when_scaled="Delete")

    assert statefulsets.claim_fields(LeaderWorkerTemplate(persistent_volume_claim_retention_policy=policy), "ns") == {
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Delete"}
    }
    assert statefulsets.claim_fields(LeaderWorkerTemplate(), "ns") == {}
