"""Headless services."""

from tests import builders

from kuberuntime.objects import meta
from leaderworkerset.api import labels
from leaderworkerset.core.leaderworkerset import services

LWS = builders.leaderworkerset_object()


def test_all_groups_share_a_service_owned_by_the_leaderworkerset() -> None:
    """R-SVC-1, R-SVC-3."""
    assert services.build_shared(LWS) == {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "web",
            "namespace": "default",
            "labels": {labels.NAME: "web"},
            "ownerReferences": [meta.controller_reference(LWS)],
        },
        "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {labels.NAME: "web"}},
    }


def test_a_group_has_a_service_owned_by_its_leader() -> None:
    """R-SVC-2, R-SVC-3."""
    leader = builders.leader_pod(LWS, 3)

    service = services.build_for_group(leader, "web")

    assert meta.name(service) == "web-3"
    assert meta.metadata(service)["ownerReferences"] == [meta.controller_reference(leader)]
    assert meta.labels(service) == {labels.NAME: "web"}
    assert service["spec"]["selector"] == {labels.NAME: "web", labels.GROUP_INDEX: "3"}
