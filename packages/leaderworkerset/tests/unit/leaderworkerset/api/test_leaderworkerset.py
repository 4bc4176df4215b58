"""Tests the typed LeaderWorkerSet (contract 1.2, 1.3)."""

from typing import Any

import pytest

from kuberuntime.objects.meta import UID, ObjectKey
from leaderworkerset.api import leaderworkerset as api
from leaderworkerset.api.leaderworkerset import DecodeError, LeaderWorkerSet, ObjectMeta, decode, encode

POD = {"spec": {"containers": [{"name": "c"}]}}


def test_minimal_object_has_default_values() -> None:
    """The fields have their defaults (contract 1.2)."""
    lws = decode({"metadata": {"name": "a"}, "spec": {"leaderWorkerTemplate": {"workerTemplate": POD}}})
    assert (lws.spec.replicas, lws.size, lws.spec.startup_policy) == (1, 1, "LeaderCreated")
    assert lws.spec.leader_worker_template.restart_policy == "RecreateGroupOnPodRestart"
    assert lws.spec.network_config.subdomain_policy == "Shared"
    rolling = lws.spec.rollout_strategy.rolling_update_configuration
    assert rolling == api.RollingUpdateConfiguration(partition=0, max_unavailable=1, max_surge=0)
    assert lws.spec.leader_worker_template.sub_group_policy is None
    assert lws.leader_template == POD
    assert lws.status == api.LeaderWorkerSetStatus()


def test_null_equals_absent() -> None:
    """Null settings do not cause an error (Q-23)."""
    absent = {"spec": {"leaderWorkerTemplate": {"workerTemplate": POD}}}
    with_nulls = {
        "metadata": None,
        "status": None,
        "spec": {
            "replicas": None,
            "startupPolicy": None,
            "networkConfig": {"subdomainPolicy": None},
            "rolloutStrategy": {"type": None, "rollingUpdateConfiguration": {"partition": None, "maxSurge": None}},
            "leaderWorkerTemplate": {
                "workerTemplate": POD,
                "leaderTemplate": None,
                "size": None,
                "subGroupPolicy": None,
                "volumeClaimTemplates": None,
            },
        },
    }
    assert decode(with_nulls) == decode(absent)
    assert decode({"spec": None}) == decode({})


def test_metadata_is_decoded() -> None:
    metadata = {"name": "a", "namespace": "n", "uid": "u", "generation": 3, "labels": {"x": "y"}, "annotations": None}
    lws = decode({"metadata": metadata})
    assert (lws.name, lws.namespace, lws.key) == ("a", "n", ObjectKey("n", "a"))
    assert lws.metadata == ObjectMeta(name="a", namespace="n", uid=UID("u"), generation=3, labels={"x": "y"})
    assert (LeaderWorkerSet().name, LeaderWorkerSet().namespace, LeaderWorkerSet().metadata.labels) == ("", "", {})


def test_leader_template_is_decoded() -> None:
    template = {"leaderTemplate": {"metadata": {}}, "workerTemplate": POD}
    assert decode({"spec": {"leaderWorkerTemplate": template}}).leader_template == {"metadata": {}}


def test_templates_keep_every_field() -> None:
    template = {"spec": {"containers": [], "unheardOf": [None, 1]}}
    lws = decode({"spec": {"leaderWorkerTemplate": {"workerTemplate": template}}})
    assert lws.spec.leader_worker_template.worker_template == template


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        ({"spec": {"replicas": "3"}}, 'spec.replicas: Invalid value: "3": expected `int`, got `str`'),
        ({"spec": {"replicas": 2**31}}, "spec.replicas: Invalid value: 2147483648: expected `int` <= 2147483647"),
        ({"spec": []}, "spec: Invalid value: []: expected `object`, got `array`"),
        (
            {"spec": {"leaderWorkerTemplate": {"volumeClaimTemplates": [{}, 3]}}},
            "spec.leaderWorkerTemplate.volumeClaimTemplates[1]: Invalid value: 3: expected `object`, got `int`",
        ),
        (
            {"spec": {"leaderWorkerTemplate": {"workerTemplate": {1: "a"}}}},
            'spec.leaderWorkerTemplate.workerTemplate: Invalid value: {"1":"a"}: expected `str`, got `int`',
        ),
        (
            {"status": {"conditions": [{"type": "A"}]}},
            'status.conditions[0]: Invalid value: {"type":"A"}: object missing required field `status`',
        ),
        (
            {"spec": {"rolloutStrategy": {"rollingUpdateConfiguration": {"maxSurge": 1.5}}}},
            (
                "spec.rolloutStrategy.rollingUpdateConfiguration.maxSurge: Invalid value: 1.5:"
                " expected `int | str`, got `float`"
            ),
        ),
    ],
)
def test_wrong_type_raises_an_error_with_field_and_value(obj: Any, message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(obj)
    assert str(caught.value) == message


def test_value_that_is_not_an_object_raises_an_error() -> None:
    with pytest.raises(DecodeError, match=r"\(root\): Invalid value: \[\]: expected `object`, got `array`"):
        decode([])  # type: ignore[arg-type]  # a wrong document of a user


def test_encoded_object_omits_defaults_and_decodes_again() -> None:
    lws = LeaderWorkerSet(
        metadata=ObjectMeta(name="a"),
        spec=api.LeaderWorkerSetSpec(
            replicas=3,
            leader_worker_template=api.LeaderWorkerTemplate(
                worker_template=POD, size=4, sub_group_policy=api.SubGroupPolicy(sub_group_size=2)
            ),
        ),
    )
    body = encode(lws)
    assert body == {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "a"},
        "spec": {
            "replicas": 3,
            "leaderWorkerTemplate": {"workerTemplate": POD, "size": 4, "subGroupPolicy": {"subGroupSize": 2}},
        },
    }
    assert decode(body) == lws


def test_status_omits_zero_counts() -> None:
    """Zero counts are omitted from the status (R-API-10)."""
    status = api.LeaderWorkerSetStatus(ready_replicas=2, updated_replicas=0, hpa_pod_selector="a=b")
    assert api.encode_status(status) == {"readyReplicas": 2, "hpaPodSelector": "a=b"}


def test_status_has_exactly_these_fields() -> None:
    """The status has exactly these fields (R-API-9, R-API-10)."""
    status = api.LeaderWorkerSetStatus(
        conditions=(), ready_replicas=1, updated_replicas=1, replicas=1, hpa_pod_selector="s", observed_generation=1
    )

    assert api.encode_status(status).keys() == {
        "readyReplicas",
        "updatedReplicas",
        "replicas",
        "hpaPodSelector",
        "observedGeneration",
    }
