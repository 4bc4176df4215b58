"""DELETE of an object."""

import pytest
from tests.unit.localkube.apiserver.harness import CONFIG_MAPS, NAMESPACES, PODS, Api, config_map, pod


async def test_deletion_returns_a_status_that_names_the_object(api: Api) -> None:
    uid = (await api.create(CONFIG_MAPS, config_map()))["metadata"]["uid"]
    answer = await api.delete(f"{CONFIG_MAPS}/settings")
    assert answer.code == 200
    assert answer.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {"name": "settings", "kind": "configmaps", "uid": uid},
    }
    assert (await api.delete(f"{CONFIG_MAPS}/settings")).refusal[:2] == (404, "NotFound")


async def test_pod_without_a_node_is_removed_immediately(api: Api) -> None:
    created = await api.create(PODS, pod())
    async with api.watch(PODS, resourceVersion=created["metadata"]["resourceVersion"]) as watch:
        answer = await api.delete(f"{PODS}/web")
        assert answer["kind"] == "Pod"
        assert answer["metadata"]["deletionGracePeriodSeconds"] == 0
        assert await watch.seen(2) == [("MODIFIED", "web"), ("DELETED", "web")]
    assert (await api.get(f"{PODS}/web")).code == 404


async def running_pod(api: Api) -> None:
    await api.create(PODS, pod(terminationGracePeriodSeconds=20))
    await api.create(f"{PODS}/web/binding", {"target": {"kind": "Node", "name": "node-0"}})


async def test_running_pod_has_a_grace_period_that_can_be_shortened(api: Api) -> None:
    await running_pod(api)
    first = (await api.delete(f"{PODS}/web"))["metadata"]
    assert (first["deletionTimestamp"], first["deletionGracePeriodSeconds"]) == ("2026-01-02T03:04:25Z", 20)
    assert first["generation"] == 2
    longer = (await api.delete(f"{PODS}/web", gracePeriodSeconds=60))["metadata"]
    assert longer == first
    shorter = (await api.delete(f"{PODS}/web", gracePeriodSeconds=5))["metadata"]
    assert (shorter["deletionTimestamp"], shorter["deletionGracePeriodSeconds"]) == ("2026-01-02T03:04:10Z", 5)
    assert (await api.delete(f"{PODS}/web", {"gracePeriodSeconds": 0})).code == 200
    assert (await api.get(f"{PODS}/web")).code == 404


async def test_ended_pod_is_removed_without_a_grace_period(api: Api) -> None:
    await running_pod(api)
    await api.patch(f"{PODS}/web/status", {"status": {"phase": "Failed"}})
    await api.delete(f"{PODS}/web")
    assert (await api.get(f"{PODS}/web")).code == 404


@pytest.mark.parametrize(
    ("options", "finalizers"),
    [
        ({"propagationPolicy": "Foreground"}, ["foregroundDeletion"]),
        ({"propagationPolicy": "Orphan"}, ["orphan"]),
        ({"orphanDependents": True}, ["orphan"]),
    ],
    ids=["foreground", "orphan", "orphanDependents"],
)
async def test_propagation_policy_adds_its_finalizer(
    api: Api, options: dict[str, object], finalizers: list[str]
) -> None:
    await api.create(CONFIG_MAPS, config_map())
    answer = await api.delete(f"{CONFIG_MAPS}/settings", options)
    assert answer["metadata"]["finalizers"] == finalizers
    assert answer["metadata"]["deletionTimestamp"]


async def test_background_propagation_removes_the_foreground_finalizer(api: Api) -> None:
    await api.create(CONFIG_MAPS, config_map())
    await api.delete(f"{CONFIG_MAPS}/settings", propagationPolicy="Foreground")
    await api.delete(f"{CONFIG_MAPS}/settings", propagationPolicy="Background")
    assert (await api.get(f"{CONFIG_MAPS}/settings")).code == 404


async def test_preconditions_must_match(api: Api) -> None:
    uid = (await api.create(CONFIG_MAPS, config_map()))["metadata"]["uid"]
    answer = await api.delete(f"{CONFIG_MAPS}/settings", {"preconditions": {"uid": "other"}})
    text = (
        'Operation cannot be fulfilled on ConfigMap "settings": the UID in the precondition (other) does not match'
        f" the UID in record ({uid}). The object might have been deleted and then recreated"
    )
    assert answer.refusal == (409, "Conflict", text)
    stale = await api.delete(f"{CONFIG_MAPS}/settings", {"preconditions": {"resourceVersion": "1"}})
    assert stale.refusal[:2] == (409, "Conflict")
    assert (await api.delete(f"{CONFIG_MAPS}/settings", {"preconditions": {"uid": uid}})).code == 200


async def test_dry_run_deletes_nothing(api: Api) -> None:
    await api.create(CONFIG_MAPS, config_map())
    assert (await api.delete(f"{CONFIG_MAPS}/settings", dryRun="All")).code == 200
    assert (await api.delete(f"{CONFIG_MAPS}/settings", {"dryRun": ["All"]})).code == 200
    assert (await api.get(f"{CONFIG_MAPS}/settings")).code == 200


async def test_options_are_validated(api: Api) -> None:
    await api.create(CONFIG_MAPS, config_map())
    answer = await api.delete(f"{CONFIG_MAPS}/settings", propagationPolicy="Sideways")
    text = (
        'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "Sideways":'
        ' supported values: "Foreground", "Background", "Orphan", "nil"'
    )
    assert answer.refusal == (422, "Invalid", text)
    both = await api.delete(f"{CONFIG_MAPS}/settings", {"propagationPolicy": "Orphan", "orphanDependents": True})
    assert both.refusal[:2] == (422, "Invalid")


async def test_namespace_is_deleted_when_it_is_finalized(api: Api) -> None:
    await api.create(NAMESPACES, {"metadata": {"name": "old"}})
    marked = await api.delete(f"{NAMESPACES}/old")
    assert (marked.code, marked["status"]["phase"]) == (200, "Terminating")
    assert (await api.get(f"{NAMESPACES}/old")).code == 200
    finalized = await api.update(f"{NAMESPACES}/old/finalize", marked.body | {"spec": {"finalizers": []}})
    assert finalized.code == 200
    assert (await api.get(f"{NAMESPACES}/old")).code == 404


async def test_default_namespaces_cannot_be_deleted(api: Api) -> None:
    answer = await api.delete(f"{NAMESPACES}/default")
    assert answer.refusal == (
        403,
        "Forbidden",
        'namespaces "default" is forbidden: this namespace may not be deleted',
    )
