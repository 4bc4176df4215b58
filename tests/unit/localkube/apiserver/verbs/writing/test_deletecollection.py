"""DELETE of a collection."""

from tests.unit.localkube.apiserver.harness import CONFIG_MAPS, Api, config_map, run


def test_the_selected_objects_are_deleted_and_shown() -> None:
    async def scenario(api: Api) -> None:
        for name in ("a", "b", "c"):
            await api.create(CONFIG_MAPS, config_map(name, labels={"keep": "yes" if name == "b" else "no"}))
        answer = await api.delete(CONFIG_MAPS, labelSelector="keep=no")
        assert answer["kind"] == "ConfigMapList"
        assert [item["metadata"]["name"] for item in answer["items"]] == ["a", "c"]
        left = await api.get(CONFIG_MAPS)
        assert [item["metadata"]["name"] for item in left["items"]] == ["b"]

    run(scenario)


def test_options_hold_for_each_object() -> None:
    async def scenario(api: Api) -> None:
        await api.create(CONFIG_MAPS, config_map("a"))
        await api.delete(CONFIG_MAPS, {"propagationPolicy": "Foreground"})
        assert (await api.get(f"{CONFIG_MAPS}/a"))["metadata"]["finalizers"] == ["foregroundDeletion"]

    run(scenario)
