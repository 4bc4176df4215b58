"""Tests the leader StatefulSet."""

from typing import Any

import pytest
from tests import builders

from kuberuntime.objects import meta
from leaderworkerset.api import labels, leaderworkerset
from leaderworkerset.core.leaderworkerset import budget, outdatedleaders, rollingupdate, statefulsets
from leaderworkerset.core.leaderworkerset.outdatedleaders import StatefulSetProgress
from leaderworkerset.core.leaderworkerset.rollingupdate import RolloutCase, RolloutStep


def build(obj: dict[str, Any], *, partition: int = 0, replicas: int = 2) -> dict[str, Any]:
    lws = leaderworkerset.decode(obj)
    step = RolloutStep(RolloutCase.ROLLING, partition, replicas)
    return statefulsets.build(obj, lws, key="k", limits=budget.read(lws.spec), step=step)


def test_leader_statefulset_equals_the_contract() -> None:
    """A leader StatefulSet equals the contract (R-LSTS-2)."""
    metadata = {"labels": {"team": "x", labels.NAME: "lies"}, "annotations": {"note": "n"}}
    obj = builders.leaderworkerset_object(metadata=metadata, rollout={"maxSurge": 1})

    assert build(obj, partition=1, replicas=3) == {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {
            "name": "web",
            "namespace": "default",
            "labels": {
                "team": "x",
                labels.NAME: "web",
                labels.TEMPLATE_REVISION_HASH: "k",
                labels.ROLE: "leader",
            },
            "annotations": {"note": "n", labels.REPLICAS: "2"},
            "ownerReferences": [meta.controller_reference(obj)],
        },
        "spec": {
            "serviceName": "web",
            "replicas": 3,
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": {labels.NAME: "web", labels.WORKER_INDEX: "0"}},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1, "maxUnavailable": 2}},
            "template": {
                "metadata": {
                    "labels": {labels.NAME: "web", labels.TEMPLATE_REVISION_HASH: "k", labels.WORKER_INDEX: "0"},
                    "annotations": {labels.SIZE: "2"},
                },
                "spec": {"containers": [{"name": "main", "image": "app:1", "resources": {}}]},
            },
        },
    }


COPIED = {
    "labels": dict.fromkeys(labels.POD_LABELS, "copied") | {"team": "x"},
    "annotations": dict.fromkeys(labels.POD_ANNOTATIONS, "copied") | {"note": "n"},
}


def test_differs_from_upstream_labels_of_a_pod_are_not_copied() -> None:
    """Labels that the controllers set on pods are not copied from a template.

    With the Go controller, all workers would have the index of the copied pod (ADR 29).
    """
    template = builders.pod_template() | {"metadata": COPIED}
    plain = builders.pod_template() | {"metadata": {"labels": {"team": "x"}, "annotations": {"note": "n"}}}

    copied, clean = (
        build(builders.leaderworkerset_object(template={"workerTemplate": one})) for one in (template, plain)
    )

    assert copied["spec"]["template"] == clean["spec"]["template"]


def test_leader_template_is_preferred() -> None:
    """A leader template overrides the worker template (R-LSTS-2)."""
    obj = builders.leaderworkerset_object(template={"leaderTemplate": builders.pod_template("leader:1")})

    assert build(obj)["spec"]["template"]["spec"]["containers"][0]["image"] == "leader:1"


@pytest.mark.parametrize("field", ["leaderTemplate", "workerTemplate"])
def test_unreadable_template_is_named_by_its_path(field: str) -> None:
    """The path in the error is the path in the spec (R-LSTS-2)."""
    broken = {"spec": {"containers": "none"}}

    with pytest.raises(ValueError, match=rf"^spec\.leaderWorkerTemplate\.{field}\.spec\.containers"):
        build(builders.leaderworkerset_object(template={field: broken}))


def test_subdomain_policy_reaches_the_pods_only() -> None:
    """Only pods have the subdomain policy (R-LSTS-2)."""
    obj = builders.leaderworkerset_object(spec={"networkConfig": {"subdomainPolicy": "UniquePerReplica"}})

    spec = build(obj)["spec"]

    assert spec["serviceName"] == "web"
    assert spec["template"]["metadata"]["annotations"][labels.SUBDOMAIN_POLICY] == "UniquePerReplica"


def test_rollout_position_is_read_from_the_statefulset() -> None:
    built = build(builders.leaderworkerset_object(replicas=4), partition=3, replicas=5)

    assert outdatedleaders.read_progress(built) == StatefulSetProgress(5, 3, "4", "k")
    assert outdatedleaders.read_progress({"metadata": {}, "spec": {}}) == StatefulSetProgress(1, 0, "")


@pytest.mark.parametrize(
    ("status", "is_behind"),
    [
        ({}, False),
        ({"observedGeneration": 0}, False),
        ({"observedGeneration": 2}, True),
        ({"observedGeneration": 3}, False),
    ],
    ids=["never", "never, as zero", "before the change", "as it is"],
)
def test_statefulset_controller_is_behind_until_it_observes(status: dict[str, Any], *, is_behind: bool) -> None:
    """If no StatefulSet controller reports a status, the controller does not wait for one (R-ROLL-7)."""
    built = build(builders.leaderworkerset_object(replicas=4), partition=3, replicas=5)
    living = built | {"metadata": built["metadata"] | {"generation": 3}, "status": status}

    assert outdatedleaders.read_progress(living).is_behind is is_behind


@pytest.mark.parametrize(
    ("status", "key", "expected"),
    [
        ({}, "k", False),
        ({}, "next", True),
        ({"observedGeneration": 3, "currentRevision": "a", "updateRevision": "a"}, "k", False),
        ({"observedGeneration": 3, "currentRevision": "a", "updateRevision": "a"}, "next", True),
        ({"observedGeneration": 3, "currentRevision": "a", "updateRevision": "b"}, "k", True),
        ({"observedGeneration": 2, "currentRevision": "a", "updateRevision": "a"}, "k", True),
    ],
    ids=["never reported", "not applied", "rolled", "to be applied", "rolling", "not observed"],
)
def test_older_pods_are_possible_until_the_controller_is_done(
    status: dict[str, Any], key: str, *, expected: bool
) -> None:
    """Until then, the revisions of older pods are required (R-REV-14)."""
    built = build(builders.leaderworkerset_object(replicas=4))
    living = built | {"metadata": built["metadata"] | {"generation": 3}, "status": status}

    assert rollingupdate.may_create_older(living, key) is expected
