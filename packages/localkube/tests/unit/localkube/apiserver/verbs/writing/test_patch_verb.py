"""PATCH: accepted patch types, and their permitted changes."""

import pytest
from tests.unit.localkube.apiserver.harness import (
    CONFIG_MAPS,
    CRDS,
    PODS,
    WIDGETS,
    Api,
    config_map,
    definition,
    pod,
    widget,
)


@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        ("merge-patch+json", {"metadata": {"labels": {"a": "b"}}}),
        ("strategic-merge-patch+json", {"metadata": {"labels": {"a": "b"}}}),
        ("json-patch+json", [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]),
    ],
    ids=["merge", "strategic", "json"],
)
async def test_every_patch_type_changes_the_object(api: Api, kind: str, patch: object) -> None:
    await api.create(CONFIG_MAPS, config_map(k="v"))
    answer = await api.patch(f"{CONFIG_MAPS}/settings", patch, kind)
    assert (answer.code, answer["metadata"]["labels"], answer["data"]) == (200, {"a": "b"}, {"k": "v"})


async def test_strategic_patch_merges_containers_by_name(api: Api) -> None:
    await api.create(PODS, pod())
    patch = {"spec": {"containers": [{"name": "main", "image": "newer"}]}}
    answer = await api.patch(f"{PODS}/web", patch, "strategic-merge-patch+json")
    assert answer["spec"]["containers"][0]["image"] == "newer"
    assert answer["spec"]["containers"][0]["imagePullPolicy"] == "Always"


async def test_custom_resource_refuses_a_strategic_patch(api: Api) -> None:
    await api.create(CRDS, definition())
    await api.create(WIDGETS, widget())
    answer = await api.patch(f"{WIDGETS}/a", {}, "strategic-merge-patch+json")
    text = (
        "the body of the request was in an unknown format - accepted media types include:"
        " application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    )
    assert answer.refusal == (415, "UnsupportedMediaType", text)


async def test_version_in_the_patch_is_a_precondition(api: Api) -> None:
    first = await api.create(CONFIG_MAPS, config_map())
    version = first["metadata"]["resourceVersion"]
    patch = {"metadata": {"resourceVersion": version, "labels": {"a": "b"}}}
    assert (await api.patch(f"{CONFIG_MAPS}/settings", patch)).code == 200
    assert (await api.patch(f"{CONFIG_MAPS}/settings", patch)).refusal[:2] == (409, "Conflict")


async def test_patch_cannot_rename(api: Api) -> None:
    await api.create(CONFIG_MAPS, config_map())
    answer = await api.patch(f"{CONFIG_MAPS}/settings", {"metadata": {"name": "other"}})
    assert answer.refusal[:2] == (400, "BadRequest")


async def test_status_is_patched_separately(api: Api) -> None:
    await api.create(PODS, pod())
    answer = await api.patch(f"{PODS}/web/status", {"status": {"phase": "Running"}, "spec": {"nodeName": "x"}})
    assert answer["status"]["phase"] == "Running"
    assert "nodeName" not in answer["spec"]


async def test_unknown_field_in_a_patch_is_warned_of_or_refused(api: Api) -> None:
    await api.create(PODS, pod())
    patch = {"spec": {"colour": "red"}}
    warned = await api.patch(f"{PODS}/web", patch)
    assert warned.headers["warning"] == '299 - "unknown field \\"spec.colour\\""'
    code, reason, message = (await api.patch(f"{PODS}/web", patch, fieldValidation="Strict")).refusal
    assert (code, reason) == (422, "Invalid")
    assert message.endswith('strict decoding error: unknown field "spec.colour"')


async def test_apply_creates_the_object_and_owns_its_fields(api: Api) -> None:
    created = await api.apply(f"{CONFIG_MAPS}/settings", config_map(a="1", b="2"), "one")
    assert created.code == 201
    again = await api.apply(f"{CONFIG_MAPS}/settings", config_map(a="1", b="2"), "one")
    assert (again.code, again.body) == (200, created.body)
    less = await api.apply(f"{CONFIG_MAPS}/settings", config_map(a="1"), "one")
    assert less["data"] == {"a": "1"}


async def test_field_of_another_manager_is_a_conflict_unless_forced(api: Api) -> None:
    await api.apply(f"{CONFIG_MAPS}/settings", config_map(a="1"), "one")
    conflict = await api.apply(f"{CONFIG_MAPS}/settings", config_map(a="2"), "two")
    text = 'Apply failed with 1 conflict: conflict with "one": .data.a'
    assert conflict.refusal == (409, "Conflict", text)
    forced = await api.apply(f"{CONFIG_MAPS}/settings", config_map(a="2"), "two", force="true")
    assert (forced.code, forced["data"]) == (200, {"a": "2"})
    assert [entry["manager"] for entry in forced["metadata"]["managedFields"]] == ["two"]


async def test_apply_requires_a_manager_and_known_fields(api: Api) -> None:
    unnamed = await api.patch(f"{CONFIG_MAPS}/settings", config_map(), "apply-patch+yaml")
    text = 'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch'
    assert unnamed.refusal == (422, "Invalid", text)
    unknown = await api.apply(f"{CONFIG_MAPS}/settings", config_map() | {"colour": "red"})
    text = "failed to create typed patch object (/settings; /v1, Kind=ConfigMap): .colour: field not declared in schema"
    assert unknown.refusal == (500, "", text)
    forced = await api.patch(f"{CONFIG_MAPS}/settings", {}, force="true")
    assert forced.refusal[:2] == (422, "Invalid")


async def test_apply_accepts_yaml(api: Api) -> None:
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: '1'}\n"
    answer = await api.apply(f"{CONFIG_MAPS}/settings", body)
    assert (answer.code, answer["data"]) == (201, {"a": "1"})


async def test_patch_of_a_missing_object_is_not_found(api: Api) -> None:
    assert (await api.patch(f"{CONFIG_MAPS}/settings", {})).code == 404
    assert (await api.apply(f"{PODS}/web/status", {"metadata": {"name": "web"}})).code == 404
