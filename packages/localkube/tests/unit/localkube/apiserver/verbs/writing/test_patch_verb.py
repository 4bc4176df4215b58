"""Tests PATCH requests: accepted patch types, and permitted changes."""

from tests.unit.localkube.apiserver.harness import (
    CONFIG_MAPS,
    PODS,
    Api,
    config_map,
    pod,
)


async def test_version_in_the_patch_is_a_precondition(api: Api) -> None:
    first = await api.create(CONFIG_MAPS, config_map())
    version = first["metadata"]["resourceVersion"]
    patch = {"metadata": {"resourceVersion": version, "labels": {"a": "b"}}}
    assert (await api.patch(f"{CONFIG_MAPS}/settings", patch)).code == 200
    assert (await api.patch(f"{CONFIG_MAPS}/settings", patch)).refusal[:2] == (409, "Conflict")


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
