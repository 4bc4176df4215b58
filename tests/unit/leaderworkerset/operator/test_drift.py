"""Drift in lists, reverted at an API server: server-side apply alone leaves what other managers have added to them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import pytest
from tests import inprocess
from tests.unit.leaderworkerset.operator.clusters import actions, applied, cluster, installed, observed, plan

from kuberuntime.client.client import Client
from kuberuntime.clock import SystemClock
from kuberuntime.controller.executor import Executor, NoEvents
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import (
    DEPLOYMENTS,
    NAMESPACES,
    SERVICE_ACCOUNTS,
    SERVICES,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    Resource,
)
from kuberuntime.plan import Apply, Patch, Plan
from leaderworkerset.operator.operatornames import CERTIFICATES

Edit: TypeAlias = Callable[[dict[str, Any]], object]

METRICS = ObjectKey("operators", "lws-controller-manager-metrics-service")
WEBHOOKS = ObjectKey("operators", "lws-webhook-service")
VALIDATING = ObjectKey("", "lws-validating-webhook-configuration")


@asynccontextmanager
async def api() -> AsyncIterator[Client]:
    async with inprocess.api() as client:
        await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "operators"}})
        yield client


def wanted(kind: Resource, key: ObjectKey) -> JSONObject:
    found = actions(plan(observed(cluster())))
    (obj,) = [
        one.object for one in found if isinstance(one, Apply) and (one.resource, meta.key(one.object)) == (kind, key)
    ]
    return obj


def due(kind: Resource, key: ObjectKey, live: JSONObject) -> Plan:
    """Return the writes to one object, where all others are as they should be."""
    found = plan(observed(cluster(), {**installed(cluster()), (kind, key): live}))
    return Plan(tuple(one for one in actions(found) if isinstance(one, Apply | Patch)))


def move_port(service: dict[str, Any]) -> None:
    service["spec"]["ports"][0]["port"] = 444


def add_port(service: dict[str, Any]) -> None:
    service["spec"]["ports"].append({"name": "more", "port": 445, "protocol": "TCP", "targetPort": 1})


def add_webhook(configuration: dict[str, Any]) -> None:
    first = configuration["webhooks"][0]
    first["clientConfig"]["caBundle"] = "YQ=="
    configuration["webhooks"].append(first | {"name": "old.example.com"})


@pytest.mark.parametrize(
    ("kind", "key", "edit"),
    [
        (SERVICES, WEBHOOKS, move_port),
        (SERVICES, METRICS, move_port),
        (SERVICES, METRICS, add_port),
        (VALIDATING_WEBHOOK_CONFIGURATIONS, VALIDATING, add_webhook),
    ],
    ids=["an edited port", "an edited port with a name", "another port", "another webhook"],
)
def test_an_edited_list_is_as_desired_after_one_sync(kind: Resource, key: ObjectKey, edit: Edit) -> None:
    """R-OP-25, R-OP-82: once, without an error, and then there is nothing to write."""

    async def scenario() -> JSONObject:
        async with api() as client:
            await client.apply(kind, wanted(kind, key), manager="lws-operator")
            live = await client.get(kind, key)
            edit(live)
            edited = await client.update(kind, live)
            await Executor(client, NoEvents(), SystemClock()).execute(due(kind, key, edited))
            return await client.get(kind, key)

    live = asyncio.run(scenario())
    assert due(kind, key, live) == Plan()
    if kind == VALIDATING_WEBHOOK_CONFIGURATIONS:
        assert live["webhooks"][0]["clientConfig"]["caBundle"] == "YQ=="  # R-OP-18: never blanked


def test_owners_that_others_add_stay() -> None:
    """R-OP-25: references are merged, so one more is no difference that would be written at every sync."""
    key = ObjectKey("operators", "lws-controller-manager")
    live = wanted(SERVICE_ACCOUNTS, key)
    theirs = {"apiVersion": "v1", "kind": "ConfigMap", "name": "theirs", "uid": "u-3"}
    own = live["metadata"] | {"ownerReferences": [theirs, *live["metadata"]["ownerReferences"]]}
    assert due(SERVICE_ACCOUNTS, key, live | {"metadata": own}) == Plan()


@pytest.mark.parametrize(
    "found", [cluster(logLevel="Debug"), cluster({CERTIFICATES: "internal"})], ids=["log level", "certificates"]
)
def test_another_version_is_one_write_and_so_one_rollout(found: JSONObject) -> None:
    """R-OP-39: lists are not replaced before, which would be a rollout of its own, or refused as incomplete."""
    again = plan(observed(found, installed(cluster())))
    assert "Deployment/lws-controller-manager" in applied(again)
    assert [one for one in actions(again) if isinstance(one, Patch) and one.resource == DEPLOYMENTS] == []


def test_a_changed_member_of_the_deployment_is_replaced() -> None:
    """R-OP-25: apply would leave both sources of an edited volume, and the API server would refuse that."""
    live = dict(installed(cluster()))
    (kind, key), deployment = next((one, obj) for one, obj in live.items() if one[0].kind == "Deployment")
    volumes = deployment["spec"]["template"]["spec"]["volumes"]
    edited = [one if one["name"] != "tmp" else {"name": "tmp", "hostPath": {"path": "/tmp"}} for one in volumes]
    template = deployment["spec"]["template"]
    pod = template | {"spec": template["spec"] | {"volumes": edited}}
    live[kind, key] = deployment | {"spec": deployment["spec"] | {"template": pod}}
    patch, apply = (one for one in actions(plan(observed(cluster(), live))) if isinstance(one, Apply | Patch))
    assert isinstance(patch, Patch)
    assert patch.patch["spec"] == {"template": {"spec": {"volumes": volumes}}}
    assert patch.patch["metadata"] == {"uid": "u-2"}
    assert isinstance(apply, Apply)
