"""Tests GET requests for a collection."""

from typing import Any

import pytest
from tests.unit.localkube.apiserver.harness import CONFIG_MAPS, NAMESPACES, PODS, Answer, Api, config_map


def names(answer: Answer) -> list[str]:
    return [item["metadata"]["name"] for item in answer["items"]]


async def test_list_without_a_namespace_covers_all_namespaces(api: Api) -> None:
    await api.create(NAMESPACES, {"metadata": {"name": "other"}})
    await api.create(CONFIG_MAPS, config_map("a"))
    await api.create(f"{NAMESPACES}/other/configmaps", config_map("b"))
    assert names(await api.get("/api/v1/configmaps")) == ["a", "b"]
    assert names(await api.get(CONFIG_MAPS)) == ["a"]


@pytest.mark.parametrize(
    ("path", "query", "text"),
    [
        (PODS, {"fieldSelector": "spec.color=red"}, "field label not supported: spec.color"),
        (
            CONFIG_MAPS,
            {"fieldSelector": "data.a=b"},
            '"data.a" is not a known field selector: only "metadata.name", "metadata.namespace"',
        ),
        (PODS, {"labelSelector": "a=,,"}, "unable to parse label selector"),
        (PODS, {"limit": "many"}, 'limit: Invalid value: "many": must be a whole number'),
        (PODS, {"continue_": "nonsense"}, "continue key is not valid"),
    ],
    ids=["pod field", "other field", "labels", "limit", "continue"],
)
async def test_malformed_options_are_refused(api: Api, path: str, query: dict[str, Any], text: str) -> None:
    code, reason, message = (await api.get(path, **query)).refusal
    assert (code, reason) == (400, "BadRequest")
    assert message.startswith(text)


async def test_pages_show_one_snapshot(api: Api) -> None:
    for name in ("a", "b", "c", "d"):
        await api.create(CONFIG_MAPS, config_map(name, v="1"))
    first = await api.get(CONFIG_MAPS, limit=2)
    assert (names(first), first["metadata"]["remainingItemCount"]) == (["a", "b"], 2)
    await api.delete(f"{CONFIG_MAPS}/c")
    await api.create(CONFIG_MAPS, config_map("bb"))
    await api.update(f"{CONFIG_MAPS}/d", config_map("d", v="2"))
    second = await api.get(CONFIG_MAPS, limit=2, continue_=first["metadata"]["continue"])
    assert names(second) == ["c", "d"]
    assert second["items"][1]["data"] == {"v": "1"}
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    assert "continue" not in second["metadata"]


async def test_page_with_a_selector_is_full_if_more_exist(api: Api) -> None:
    for number in range(6):
        await api.create(CONFIG_MAPS, config_map(f"m{number}", labels={"odd": str(number % 2)}))
    first = await api.get(CONFIG_MAPS, limit=2, labelSelector="odd=1")
    assert names(first) == ["m1", "m3"]
    assert "remainingItemCount" not in first["metadata"]
    rest = await api.get(CONFIG_MAPS, limit=2, labelSelector="odd=1", continue_=first["metadata"]["continue"])
    assert names(rest) == ["m5"]


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
