"""Tests GET requests for a collection."""

from tests.unit.localkube.apiserver.harness import CONFIG_MAPS, Answer, Api, config_map


def names(answer: Answer) -> list[str]:
    return [item["metadata"]["name"] for item in answer["items"]]


async def test_exact_version_lists_the_past_but_not_the_future(api: Api) -> None:
    past = (await api.create(CONFIG_MAPS, config_map("a")))["metadata"]["resourceVersion"]
    await api.delete(f"{CONFIG_MAPS}/a")
    assert names(await api.get(CONFIG_MAPS, resourceVersion=past, resourceVersionMatch="Exact")) == ["a"]
    assert names(await api.get(CONFIG_MAPS, resourceVersion=past, resourceVersionMatch="NotOlderThan")) == []
    code, reason, message = (await api.get(CONFIG_MAPS, resourceVersion="1000")).refusal
    assert (code, reason) == (504, "Timeout")
    assert message.startswith("Too large resource version: 1000, current:")
    odd = await api.get(CONFIG_MAPS, resourceVersionMatch="Exact")
    assert odd.refusal[:2] == (422, "Invalid")


async def test_yaml_is_served_when_accepted(api: Api) -> None:
    await api.create(CONFIG_MAPS, config_map("a", k="v"))
    answer = await api.send("GET", f"{CONFIG_MAPS}/a", headers={"accept": "application/yaml"})
    assert b"k: v" in answer.body
