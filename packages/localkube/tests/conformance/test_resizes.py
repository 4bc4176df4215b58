"""Tests which fields `pods/resize` writes, ignores, and rejects."""

import pytest
from tests.conformance.conftest import CheckSame
from tests.conformance.objects import container, pod
from tests.conformance.transcript import JSON_PATCH, STRATEGIC_PATCH, Session

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS

SIZED = pod(
    "one",
    containers=[
        container(resources={"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "1Gi"}}),
        container(name="side", resources={"limits": {"cpu": "1", "example.com/device": "1"}}),
    ],
    initContainers=[container(name="first", resources={"requests": {"cpu": "1"}})],
)


def of(name: str = "main", **resources: JSONObject) -> JSONObject:
    """Return a strategic merge patch of the resources of one container."""
    return {"spec": {"containers": [{"name": name, "resources": resources}]}}


@pytest.mark.parametrize(
    "change",
    [
        of(requests={"cpu": "2"}),
        of(requests={"cpu": "2500m"}, limits={"memory": "2Gi", "cpu": "3"}),
        of("side", limits={"cpu": "2"}),
        of("side", limits={"cpu": "2"}, requests={"cpu": "2"}),
        of(requests={"memory": "2Gi"}),
        of(requests={"cpu": "-1"}),
        of(requests={"cpu": None}),
        of(limits={"memory": None}),
        of("side", limits={"example.com/device": "2"}, requests={"example.com/device": "2"}),
        of("other", requests={"cpu": "1"}),
        {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}} | of(requests={"cpu": "3"}),
        {"spec": {"containers": [{"name": "main", "image": "app:2", "resources": {"requests": {"cpu": "3"}}}]}},
        {"spec": of(requests={"cpu": "3"})["spec"] | {"activeDeadlineSeconds": 5}, "status": {"phase": "Running"}},
        {"spec": {"initContainers": [{"name": "first", "resources": {"requests": {"cpu": "2"}}}]}},
        {},
    ],
    ids=lambda value: str(value)[:90],
)
def test_resize_changes_only_cpu_and_memory(same: CheckSame, change: JSONObject) -> None:
    async def sequence(session: Session) -> None:
        await session.create(PODS, SIZED)
        await session.patch(PODS, "one", change, media=STRATEGIC_PATCH, subresource="resize")
        await session.get(PODS, "one")

    same(sequence)


def test_resize_keeps_the_qos_class(same: CheckSame) -> None:
    async def sequence(session: Session) -> None:
        await session.create(PODS, pod("one"))
        await session.patch(PODS, "one", of(requests={"cpu": "1"}), media=STRATEGIC_PATCH, subresource="resize")
        guaranteed = {"limits": {"cpu": "1", "memory": "1Gi"}}
        await session.create(PODS, pod("two", containers=[container(resources=guaranteed)]))
        await session.patch(PODS, "two", of(limits={"cpu": "2"}), media=STRATEGIC_PATCH, subresource="resize")
        both = of(limits={"cpu": "2"}, requests={"cpu": "2"})
        await session.patch(PODS, "two", both, media=STRATEGIC_PATCH, subresource="resize")

    same(sequence)


def test_node_without_resources_does_not_resize(same: CheckSame) -> None:
    async def sequence(session: Session) -> None:
        await session.create(PODS, SIZED)
        for resources in ({}, {"resources": {"requests": {"cpu": "1"}}}):
            status = {"name": "main", "image": "", "imageID": "", "ready": True, "restartCount": 0} | resources
            running = status | {"state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}
            await session.patch(PODS, "one", {"status": {"containerStatuses": [running]}}, subresource="status")
            change = of(requests={"cpu": "2"})
            await session.patch(PODS, "one", change, media=STRATEGIC_PATCH, subresource="resize")

    same(sequence)


def test_resize_is_read_and_replaced_completely(same: CheckSame) -> None:
    async def sequence(session: Session) -> None:
        await session.create(PODS, SIZED)
        found = await session.send("GET", session.path(PODS, "one", "resize"))
        found["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "4"
        await session.update(PODS, found, subresource="resize")
        await session.update(PODS, found, subresource="resize")
        turned = [{"op": "move", "from": "/spec/containers/1", "path": "/spec/containers/0"}]
        await session.patch(PODS, "one", turned, media=JSON_PATCH, subresource="resize")
        removed = [{"op": "remove", "path": "/spec/containers/1"}]
        await session.patch(PODS, "one", removed, media=JSON_PATCH, subresource="resize")
        await session.patch(PODS, "absent", {}, subresource="resize")
        await session.send("POST", session.path(PODS, "one", "resize"), {})

    same(sequence)
