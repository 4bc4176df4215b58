"""Tests POST requests for a collection."""

from tests.unit.localkube.apiserver.harness import CONFIG_MAPS, PODS, Api, config_map, pod, run


async def test_new_object_receives_its_identity_from_the_server(api: Api) -> None:
    sent = config_map(a="1")
    sent["metadata"] |= {"uid": "mine", "creationTimestamp": "2000-01-01T00:00:00Z", "generation": 7}
    answer = await api.create(CONFIG_MAPS, sent)
    metadata = answer["metadata"]
    assert answer.code == 201
    assert metadata["creationTimestamp"] == "2026-01-02T03:04:05Z"
    assert metadata["namespace"] == "default"
    assert len(metadata["uid"]) == 36
    assert metadata["resourceVersion"].isdecimal()
    assert metadata["generation"] == 7, "kinds whose generation nobody counts keep what was sent"
    assert (await api.get(f"{CONFIG_MAPS}/settings")).body == answer.body


async def test_kind_may_be_omitted_from_the_body(api: Api) -> None:
    answer = await api.create(CONFIG_MAPS, {"metadata": {"name": "a"}})
    assert (answer.code, answer["kind"], answer["apiVersion"]) == (201, "ConfigMap", "v1")


async def test_name_is_generated_from_its_prefix(api: Api) -> None:
    sent = {"metadata": {"generateName": "x" * 70}}
    names = {(await api.create(CONFIG_MAPS, sent))["metadata"]["name"] for _ in range(3)}
    assert len(names) == 3
    assert all(name.startswith("x" * 58) and len(name) == 63 for name in names)


async def test_object_without_a_name_is_invalid(api: Api) -> None:
    answer = await api.create(CONFIG_MAPS, {"metadata": {}})
    text = 'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required'
    assert answer.refusal == (422, "Invalid", text)


async def test_yaml_is_accepted_and_other_formats_are_refused(api: Api) -> None:
    body = b"metadata: {name: a}\ndata: {day: 2026-01-01, on: 'x'}\n"
    answer = await api.send("POST", CONFIG_MAPS, body, headers={"content-type": "application/yaml"})
    assert answer["data"] == {"day": "2026-01-01", "true": "x"}
    form = await api.send("POST", CONFIG_MAPS, b"a=1", headers={"content-type": "application/x-www-form-urlencoded"})
    assert form.refusal[:2] == (415, "UnsupportedMediaType")


def test_pods_beyond_the_limit_are_refused_like_a_quota() -> None:
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
