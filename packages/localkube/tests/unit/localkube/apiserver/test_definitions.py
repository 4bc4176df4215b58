"""Tests the creation, update and deletion of CRDs."""

import asyncio
from pathlib import Path

from tests.unit.localkube.apiserver.harness import CRDS, WIDGETS, Api, definition, run, widget

from localkube.apiserver.storage.store import Store

DEFINITION = f"{CRDS}/widgets.example.org"


async def test_kind_is_served_once_it_is_defined(api: Api) -> None:
    assert (await api.get(WIDGETS)).code == 404
    created = await api.create(CRDS, definition())
    assert {"Established", "NamesAccepted"} <= {one["type"] for one in created["status"]["conditions"]}
    answer = await api.create(WIDGETS, widget(size=2))
    assert answer["spec"] == {"size": 2, "replicas": 1}
    listed = await api.get(WIDGETS)
    assert (listed["kind"], listed["items"][0]["kind"]) == ("WidgetList", "Widget")
    invalid = await api.create(WIDGETS, widget("b", size=0))
    assert invalid.refusal[:2] == (422, "Invalid")


async def test_changed_definition_ends_the_watches_of_its_kind(api: Api) -> None:
    await api.create(CRDS, definition())
    async with api.watch(WIDGETS) as watch:
        ending = asyncio.ensure_future(watch.next())
        await asyncio.sleep(0)
        await api.patch(DEFINITION, {"spec": {"names": {"shortNames": ["wi"]}}})
        assert await ending is None
    assert (await api.get(WIDGETS)).code == 200


async def test_kind_is_rebuilt_only_when_its_definition_changes(api: Api) -> None:
    await api.create(CRDS, definition())
    registry = api.server.backend.registry
    first = registry.find("example.org", "v1", "widgets")
    await api.patch(DEFINITION, {"metadata": {"labels": {"a": "b"}}})
    assert first is not None
    assert registry.find("example.org", "v1", "widgets") is first
    await api.patch(DEFINITION, {"spec": {"names": {"shortNames": ["wi"]}}})
    redefined = registry.find("example.org", "v1", "widgets")
    assert redefined is not None
    assert redefined.kind.short_names == ("wi",)


async def test_definition_is_deleted_after_its_objects(api: Api) -> None:
    await api.create(CRDS, definition())
    held = widget("held")
    held["metadata"]["finalizers"] = ["example.org/hold"]
    await api.create(WIDGETS, held)
    await api.create(WIDGETS, widget("free"))
    await api.delete(DEFINITION)
    assert [item["metadata"]["name"] for item in (await api.get(WIDGETS))["items"]] == ["held"]
    assert (await api.get(DEFINITION))["metadata"]["deletionTimestamp"]
    await api.patch(f"{WIDGETS}/held", {"metadata": {"finalizers": None}})
    assert (await api.get(DEFINITION)).code == 404
    assert (await api.get(WIDGETS)).code == 404


def test_restart_serves_stored_definitions(tmp_path: Path) -> None:
    async def define(api: Api) -> None:
        await api.create(CRDS, definition())
        await api.create(WIDGETS, widget())

    async def use(api: Api) -> None:
        assert (await api.get(f"{WIDGETS}/a")).code == 200

    run(define, Store(tmp_path / "cluster.db"))
    run(use, Store(tmp_path / "cluster.db"))
