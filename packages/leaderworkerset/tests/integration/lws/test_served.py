"""Tests LeaderWorkerSets as API servers store and print them, and the corrections by the controllers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
from tests.integration.clusters.objects import lws, pod_template
from tests.integration.clusters.space import LiveScenario
from tests.integration.clusters.state import State, revision_of, revisions_of, shows
from tests.integration.lws.test_admission import refusal

from kuberuntime.client.transport import Request
from kuberuntime.objects import meta
from kuberuntime.objects.meta import ObjectKey
from kuberuntime.objects.resources import CUSTOM_RESOURCE_DEFINITIONS, PODS, STATEFULSETS
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.core.admission.leaderworkerset import NEWER_DEFAULTS

TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}


async def test_table_has_the_columns_of_kubectl(space: LiveScenario) -> None:
    """The columns of `kubectl get` are correct (R-API-1, R-API-3)."""
    await space.bring_up(lws(replicas=2, size=1))
    path = LEADERWORKERSETS.path(space.namespace)
    answer = await space.client.send(Request("GET", path, headers=TABLE))
    table = msgspec.json.decode(answer.body)
    assert [column["name"] for column in table["columnDefinitions"]] == [
        "Name",
        "Ready",
        "Desired",
        "Up-to-date",
        "Age",
    ]
    (row,) = table["rows"]
    assert row["cells"][:4] == ["web", 2, 2, 2]


async def test_templates_get_defaults_of_ports_and_references_only(space: LiveScenario) -> None:
    """Ports have a default protocol, and references a default name.

    Other pod fields are not set (R-API-7, R-API-5).
    """
    template = pod_template()
    container = template["spec"]["containers"][0]
    container["ports"] = [{"containerPort": 80}]
    container["env"] = [{"name": "A", "valueFrom": {"configMapKeyRef": {"key": "k", "optional": True}}}]
    template["metadata"] = {"creationTimestamp": None, "labels": {"a": "b"}}
    stored = await space.create(lws(replicas=0, template={"workerTemplate": template}))
    found = stored["spec"]["leaderWorkerTemplate"]["workerTemplate"]
    assert found["metadata"] == {"labels": {"a": "b"}}
    (kept,) = found["spec"]["containers"]
    assert kept["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    assert kept["env"][0]["valueFrom"]["configMapKeyRef"] == {"key": "k", "name": "", "optional": True}
    assert "imagePullPolicy" not in kept


async def test_duplicate_variable_is_rejected(space: LiveScenario) -> None:
    """A duplicate variable is rejected (R-API-8, R-ENV-3)."""
    template = pod_template()
    template["spec"]["containers"][0]["env"] = [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]
    error = await refusal(space, lws(template={"workerTemplate": template}))
    assert error.code == 422
    assert "Duplicate value" in error.message


async def test_template_without_containers_is_rejected(space: LiveScenario) -> None:
    """The error is one sentence (Q-34)."""
    error = await refusal(space, lws(template={"workerTemplate": {}}))
    assert "spec.leaderWorkerTemplate.workerTemplate.spec.containers: Required value" in error.message


async def test_name_of_maximum_length_has_workers(space: LiveScenario) -> None:
    """A worker pod label contains the name, the group index and a hash (R-VAL-28)."""
    await space.create(lws("a" * 50, replicas=1, size=2))
    await space.settled("a" * 50)


async def test_differs_from_upstream_too_long_name_is_rejected(space: LiveScenario) -> None:
    """A LeaderWorkerSet is rejected if its name is too long for the names of worker pods.

    The Go webhook accepts the name, but no worker pods can be created (R-VAL-28, ADR 29).
    """
    error = await refusal(space, lws("a" * 53, replicas=1, size=2))
    assert "metadata.name: Invalid value" in error.message
    assert "must be no more than 52 characters" in error.message


async def test_update_without_effect_keeps_the_generation(space: LiveScenario) -> None:
    """The CRD of v0.10 does not include the fields, so the API server prunes the webhook's defaults (N-DEF-1)."""
    async with without_fields(space, *NEWER_DEFAULTS):
        created = await space.create(lws(replicas=0))
        assert not NEWER_DEFAULTS.keys() & meta.spec(created).keys()
        for text in ("a", "b"):
            labeled = await space.patch({"metadata": {"labels": {"team": text}}})
            assert meta.generation(labeled) == 1


@asynccontextmanager
async def without_fields(space: LiveScenario, *fields: str) -> AsyncIterator[None]:
    """Serve LeaderWorkerSets whose CRD does not include these spec fields."""
    key = ObjectKey("", LEADERWORKERSETS.group_resource)
    installed = await space.client.get(CUSTOM_RESOURCE_DEFINITIONS, key)
    properties = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties"

    async def are_served() -> bool:
        tried = await space.create(lws("tried", replicas=0, groupIdentity="Ordinal"), dry_run=True)
        return "groupIdentity" in meta.spec(tried)

    removal = [{"op": "remove", "path": f"{properties}/{field}"} for field in fields]
    await space.client.patch(CUSTOM_RESOURCE_DEFINITIONS, key, removal, kind="json")
    try:
        await space.eventually(are_served, lambda served: not served)
        yield
    finally:
        restored = [{"op": "replace", "path": "/spec", "value": meta.spec(installed)}]
        await space.client.patch(CUSTOM_RESOURCE_DEFINITIONS, key, restored, kind="json")
        await space.eventually(are_served, bool)


async def test_invalid_metadata_is_rejected(space: LiveScenario) -> None:
    """Invalid metadata is rejected (R-VAL-2)."""
    obj = lws()
    obj["metadata"]["labels"] = {"not a key": "x"}
    error = await refusal(space, obj)
    assert error.code in {403, 422}
    assert "metadata.labels" in error.message


async def test_status_has_no_other_fields(space: LiveScenario) -> None:
    """The status does not contain other fields (R-API-9, R-API-10)."""
    state = await space.bring_up(lws(replicas=1, size=1))
    assert meta.status(state.leaderworkersets["web"]).keys() == {
        "conditions",
        "readyReplicas",
        "updatedReplicas",
        "replicas",
        "hpaPodSelector",
        "observedGeneration",
    }


async def test_equivalent_values_start_no_rollout(space: LiveScenario) -> None:
    """A missing network configuration equals the shared one. Quantities have many notations (R-REV-13, R-DEF-4)."""
    template = pod_template()
    template["spec"]["containers"][0]["resources"] = {"requests": {"memory": "1024Mi", "cpu": "1000m"}}
    before = await space.bring_up(lws(replicas=1, size=2, template={"workerTemplate": template}))
    template["spec"]["containers"][0]["resources"] = {"requests": {"memory": "1Gi", "cpu": "1"}}
    await space.patch([{"op": "remove", "path": "/spec/networkConfig"}])
    await space.replace_worker_template(template)
    after = await space.settled()
    assert after.uids("web") == before.uids("web")
    assert [revision_of(one) for one in revisions_of(after, "web")] == [revision_of(before.statefulsets["web"])]


async def test_controller_corrects_the_leader_statefulset_only(space: LiveScenario) -> None:
    """The controller corrects only the leader StatefulSet (Q-26, R-ARC-3)."""
    await space.bring_up(lws(replicas=2, size=2))
    note = {"metadata": {"annotations": {labels.REPLICAS: "7"}}}
    await space.patch(note, "web", resource=STATEFULSETS)
    await space.until(shows(lambda state: meta.annotations(state.statefulsets["web"])[labels.REPLICAS], "2"))
    await space.patch({"spec": {"replicas": 2}}, "web-1", resource=STATEFULSETS)

    def has_one_more(state: State) -> None:
        assert "web-1-2" in state.pods
        assert state.statefulsets["web-1"]["spec"]["replicas"] == 2

    await space.until(has_one_more)


async def test_pod_update_is_always_allowed(space: LiveScenario) -> None:
    """A pod update is always permitted (R-ADM-16)."""
    await space.bring_up(lws(replicas=1, size=1))
    patched = await space.patch({"metadata": {"annotations": {"note": "mine"}}}, "web-0", resource=PODS)
    assert meta.annotations(patched)["note"] == "mine"


async def test_differs_from_upstream_template_leader_name_is_ignored(space: LiveScenario) -> None:
    """The leader-name annotation in a template is ignored (R-POD-6, ADR 29).

    The annotation is present if the template was copied from a worker pod.
    """
    leader = pod_template()
    leader["metadata"] = {"annotations": {labels.LEADER_NAME: "web-9"}}
    state = await space.bring_up(lws(replicas=1, size=2, template={"leaderTemplate": leader}))
    assert state.statefulsets.keys() == {"web", "web-0"}
    assert labels.LEADER_NAME not in meta.annotations(state.pods["web-0"])


async def test_topology_change_replaces_leaders_of_the_same_revision(space: LiveScenario) -> None:
    """The annotation is part of the leader template, but not of the revision (Q-8)."""
    before = await space.bring_up(lws(replicas=2, size=2, annotations={labels.EXCLUSIVE_TOPOLOGY: "rack"}))
    await space.patch({"metadata": {"annotations": {labels.EXCLUSIVE_TOPOLOGY: "kubernetes.io/hostname"}}})

    def are_replaced(state: State) -> None:
        assert not before.uids("web").items() & state.uids("web").items()

    await space.until(are_replaced)
    after = await space.settled()
    assert revision_of(after.statefulsets["web"]) == revision_of(before.statefulsets["web"])
    assert len(revisions_of(after, "web")) == 1
