"""Tests POST requests for a collection."""

from tests.unit.localkube.apiserver.harness import CONFIG_MAPS, PODS, Api, config_map, pod, run


def test_pods_beyond_the_limit_are_rejected_like_a_quota() -> None:
    async def scenario(api: Api) -> None:
        codes = [answer.code for answer in [await api.create(PODS, pod(name)) for name in ("a", "b", "c")]]
        answer = await api.create(PODS, pod("c"))
        assert codes == [201, 201, 403]
        assert answer["reason"] == "Forbidden"
        assert answer["message"] == (
            'pods "c" is forbidden: exceeded quota: max-pods, requested: count/pods=1, used: count/pods=2, '
            "limited: count/pods=2"
        )
        assert (await api.create(CONFIG_MAPS, config_map(a="1"))).code == 201
        await api.delete(f"{PODS}/a", {"gracePeriodSeconds": 0})
        assert (await api.create(PODS, pod("c"))).code == 201

    run(scenario, max_pods=2)
