"""Tests DELETE requests for an object."""

from tests.unit.localkube.apiserver.harness import CONFIG_MAPS, PODS, Api, config_map, pod


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


async def test_background_propagation_removes_the_foreground_finalizer(api: Api) -> None:
    await api.create(CONFIG_MAPS, config_map())
    await api.delete(f"{CONFIG_MAPS}/settings", propagationPolicy="Foreground")
    await api.delete(f"{CONFIG_MAPS}/settings", propagationPolicy="Background")
    assert (await api.get(f"{CONFIG_MAPS}/settings")).code == 404


async def test_matching_precondition_permits_the_deletion(api: Api) -> None:
    uid = (await api.create(CONFIG_MAPS, config_map()))["metadata"]["uid"]
    assert (await api.delete(f"{CONFIG_MAPS}/settings", {"preconditions": {"uid": uid}})).code == 200
