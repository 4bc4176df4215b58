"""Tests that drift in added, changed and removed fields is reverted, but not in foreign fields."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import msgspec
import pytest
from testkit import inprocess
from testkit.fakes import failure
from tests.unit.leaderworkerset.operator.clusters import (
    NOW,
    PLACE,
    Echo,
    actions,
    applied,
    cluster,
    installed,
    observed,
    plan,
)

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request, Response
from kuberuntime.clock import SystemClock
from kuberuntime.controller.executor import Executor, NoEvents
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CONFIG_MAPS,
    DEPLOYMENTS,
    NAMESPACES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    Resource,
)
from kuberuntime.plan import Delete, Plan, Put
from leaderworkerset.install import certmanager
from leaderworkerset.install.operatornames import CERTIFICATES
from leaderworkerset.operator import driftcorrection, operatorspec, sync
from leaderworkerset.operator.operatorcontroller import Comparison
from leaderworkerset.operator.operatorstatus import SyncOutcome

Edit: TypeAlias = Callable[[dict[str, Any]], object]

INTERNAL = cluster({CERTIFICATES: "internal"})
METRICS = ObjectKey("operators", "lws-controller-manager-metrics-service")
WEBHOOKS = ObjectKey("operators", "lws-webhook-service")
VALIDATING = ObjectKey("", "lws-validating-webhook-configuration")
MANAGER = ObjectKey("operators", "lws-controller-manager")
CONFIGURATION = ObjectKey("operators", "lws-manager-config")
SECRET = ObjectKey("operators", "lws-webhook-server-cert")


@asynccontextmanager
async def api() -> AsyncIterator[Client]:
    async with inprocess.api() as client:
        await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "operators"}})
        yield client


def wanted(kind: Resource, key: ObjectKey) -> JSONObject:
    obj = installed(INTERNAL)[kind, key]
    return obj | {
        "metadata": {name: value for name, value in obj["metadata"].items() if name not in ("uid", "generation")}
    }


async def sync_once(client: Client, kind: Resource, key: ObjectKey) -> None:
    """Reconcile the only object that is queued."""
    found = await client.get(kind, key)
    live = {(kind, key): found} if meta.labels(found) else {}  # the caches use a label selector
    state = observed(INTERNAL, live)
    target = sync.DesiredOperand(
        desired=operatorspec.read(INTERNAL), outcome=SyncOutcome(), objects=[(kind, wanted(kind, key))]
    )
    differences = await Comparison(client).find_differences(target.objects, live)
    planned = sync.reconcile(state, target, differences, PLACE, NOW)
    writes = [one for one in actions(planned) if getattr(one, "resource", None) == kind]
    await Executor(client, NoEvents(), SystemClock()).execute(Plan(tuple(writes)))


def edited(kind: Resource, key: ObjectKey, edit: Edit) -> tuple[JSONObject, JSONObject, JSONObject]:
    """Return the stored object, the object after a change, and the object after one sync."""

    async def scenario() -> tuple[JSONObject, JSONObject, JSONObject]:
        async with api() as client:
            created = await client.apply(kind, wanted(kind, key), manager="lws-operator")
            changed = await client.get(kind, key)
            edit(changed)
            changed = await client.update(kind, changed)
            await sync_once(client, kind, key)
            return created, changed, await client.get(kind, key)

    return asyncio.run(scenario())


REVERTED: dict[str, tuple[Resource, ObjectKey, Edit]] = {
    "an edited port": (SERVICES, WEBHOOKS, lambda obj: obj["spec"]["ports"][0].update(port=444)),
    "an edited port with a name": (SERVICES, METRICS, lambda obj: obj["spec"]["ports"][0].update(port=444)),
    "another port": (SERVICES, METRICS, lambda obj: obj["spec"]["ports"].append({"name": "more", "port": 445})),
    "a key of a selector": (SERVICES, WEBHOOKS, lambda obj: obj["spec"]["selector"].update(more="x")),
    "another webhook": (
        VALIDATING_WEBHOOK_CONFIGURATIONS,
        VALIDATING,
        lambda obj: obj["webhooks"].append(obj["webhooks"][0] | {"name": "old.example.com"}),
    ),
    "a selector of namespaces": (
        VALIDATING_WEBHOOK_CONFIGURATIONS,
        VALIDATING,
        lambda obj: obj["webhooks"][1].update(namespaceSelector={"matchLabels": {"more": "x"}}),
    ),
    "a key of a ConfigMap": (CONFIG_MAPS, CONFIGURATION, lambda obj: obj["data"].update(more="x")),
    "all labels": (SERVICES, WEBHOOKS, lambda obj: obj["metadata"].pop("labels")),
    "an own label": (CONFIG_MAPS, CONFIGURATION, lambda obj: obj["metadata"]["labels"].update({OWNED: "x"})),
}
OWNED = "operator.openshift.io/owned-by"


@pytest.mark.parametrize(("kind", "key", "edit"), REVERTED.values(), ids=REVERTED)
def test_edit_is_reverted_by_one_sync(kind: Resource, key: ObjectKey, edit: Edit) -> None:
    """A single sync reverts the change without an error (R-OP-25, R-OP-82)."""
    created, changed, after = edited(kind, key, edit)
    assert driftcorrection.content(changed) != driftcorrection.content(created)
    assert driftcorrection.content(after) == driftcorrection.content(created)


def test_immutable_object_is_recreated() -> None:
    """An object that a user marked as immutable becomes mutable again (R-OP-25)."""
    created, _, after = edited(CONFIG_MAPS, CONFIGURATION, lambda obj: obj.update(immutable=True))
    assert meta.uid(after) != meta.uid(created)
    assert {**after, "metadata": None} == {**created, "metadata": None}


def test_immutable_field_causes_a_recreation() -> None:
    """Examples are role aggregation, the role of a binding, and the pod selector of a Deployment (R-OP-25)."""
    live = dict(installed(cluster()))
    role = CLUSTER_ROLES, ObjectKey("", "lws-manager-role")
    live[role] = live[role] | {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}}
    binding, manager = (CLUSTER_ROLE_BINDINGS, ObjectKey("", "lws-manager-rolebinding")), (DEPLOYMENTS, MANAGER)
    live[binding] = live[binding] | {"roleRef": live[binding]["roleRef"] | {"name": "view"}}
    live[manager] = live[manager] | {"spec": live[manager]["spec"] | {"selector": {"matchLabels": {"a": "b"}}}}
    again = plan(observed(cluster(), live))
    names = [
        "ClusterRole/lws-manager-role",
        "ClusterRoleBinding/lws-manager-rolebinding",
        "Deployment/lws-controller-manager",
    ]
    assert [f"{one.resource.kind}/{one.key.name}" for one in actions(again) if isinstance(one, Delete)] == names
    assert applied(again) == names


KEPT: dict[str, tuple[Resource, ObjectKey, Edit]] = {
    "labels and annotations": (
        CONFIG_MAPS,
        CONFIGURATION,
        lambda obj: obj["metadata"].update(
            labels=obj["metadata"]["labels"] | {"theirs": "x"},
            annotations=obj["metadata"]["annotations"] | {"theirs": "x"},
        ),
    ),
    "an authority": (
        VALIDATING_WEBHOOK_CONFIGURATIONS,
        VALIDATING,
        lambda obj: obj["webhooks"][0]["clientConfig"].update(caBundle="YQ=="),
    ),
    "pull secrets": (SERVICE_ACCOUNTS, MANAGER, lambda obj: obj.update(imagePullSecrets=[{"name": "theirs"}])),
    "a certificate": (SECRETS, SECRET, lambda obj: obj.update(data={"tls.crt": "YQ=="})),
    "another owner": (
        CONFIG_MAPS,
        CONFIGURATION,
        lambda obj: obj["metadata"]["ownerReferences"].insert(
            0, {"apiVersion": "v1", "kind": "ConfigMap", "name": "theirs", "uid": "u-3"}
        ),
    ),
}


@pytest.mark.parametrize(("kind", "key", "edit"), KEPT.values(), ids=KEPT)
def test_fields_of_others_are_kept_and_not_a_difference(kind: Resource, key: ObjectKey, edit: Edit) -> None:
    """Neither a foreign field nor an API server default is rewritten (R-OP-18, R-OP-25)."""
    created, changed, after = edited(kind, key, edit)
    assert changed != created
    assert after == changed


def test_fields_of_others_are_kept_when_drift_is_reverted() -> None:
    """An injected CA bundle is never removed (R-OP-18)."""

    def both(obj: dict[str, Any]) -> None:
        obj["webhooks"][0]["clientConfig"]["caBundle"] = "YQ=="
        obj["webhooks"][0]["failurePolicy"] = "Ignore"

    _, _, after = edited(VALIDATING_WEBHOOK_CONFIGURATIONS, VALIDATING, both)
    assert after["webhooks"][0]["clientConfig"]["caBundle"] == "YQ=="
    assert after["webhooks"][0]["failurePolicy"] == "Fail"


def test_injection_of_a_different_issuer_is_removed() -> None:
    """Two issuers of the same CA would overwrite each other (R-OP-22)."""
    kind, key = VALIDATING_WEBHOOK_CONFIGURATIONS, VALIDATING
    live = installed(cluster())[kind, key]
    assert certmanager.INJECT in live["metadata"]["annotations"]
    assert (
        certmanager.INJECT
        not in driftcorrection.merge_live_fields(kind, wanted(kind, key), live)["metadata"]["annotations"]
    )


def pod_spec(deployment: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = deployment["spec"]["template"]["spec"]
    return found


@pytest.mark.parametrize(
    "edit",
    [
        lambda obj: obj["spec"].update(paused=True),
        lambda obj: pod_spec(obj).update(hostNetwork=True),
        lambda obj: pod_spec(obj).update(nodeSelector={"a": "b"}),
        lambda obj: pod_spec(obj)["volumes"].append({"name": "more", "emptyDir": {}}),
        lambda obj: pod_spec(obj)["volumes"][0].update(hostPath={"path": "/tmp"}),
        lambda obj: pod_spec(obj)["containers"][0].update(env=[{"name": "ENABLE_WEBHOOKS", "value": "false"}]),
    ],
    ids=["paused", "the network of the host", "nodes", "a volume", "the source of a volume", "a variable"],
)
def test_deployment_is_replaced_except_a_restart_by_kubectl(edit: Edit) -> None:
    """A restart that a user requested with `kubectl` is retained (R-OP-25)."""
    live = dict(installed(cluster()))
    place = DEPLOYMENTS, MANAGER
    before = msgspec.json.encode(live[place]["spec"])
    changed = msgspec.json.decode(msgspec.json.encode(live[place]))
    changed["spec"]["template"]["metadata"]["annotations"][driftcorrection.RESTARTED] = "2026-01-01T00:00:00Z"
    assert applied(plan(observed(cluster(), {**live, place: changed}))) == []
    edit(changed)
    again = plan(observed(cluster(), {**live, place: changed}))
    (written,) = [one.object for one in actions(again) if isinstance(one, Put)]
    restarted = written["spec"]["template"]["metadata"]["annotations"].pop(driftcorrection.RESTARTED)
    assert restarted == "2026-01-01T00:00:00Z"
    assert written["spec"] == msgspec.json.decode(before)


async def test_dry_run_is_sent_once_for_every_object_version() -> None:
    """In a stable state, no request is sent. After a rejection, the write itself reports the reason (R-OP-13)."""
    place, asked = (CONFIG_MAPS, CONFIGURATION), []

    class Counting(Echo):
        async def request(self, request: Request) -> Response:
            asked.append(dict(request.query)["dryRun"])
            return await super().request(request)

    class Refusing(Echo):
        async def request(self, request: Request) -> Response:
            return failure(422, "Invalid", request.path)

    live = installed(cluster())[place]
    later = live | {"metadata": live["metadata"] | {"resourceVersion": "2"}}

    comparison = Comparison(Client(Counting()))
    for now, count in ((live, 1), (live, 1), (later, 2), (later, 2)):
        assert await comparison.find_differences([(CONFIG_MAPS, live)], {place: now}) == []
        assert asked == ["All"] * count
    (found,) = await Comparison(Client(Refusing())).find_differences([(CONFIG_MAPS, live)], {place: live})
    assert (found.live, found.must_recreate) == (live, False)


def test_hash_does_not_depend_on_the_order_of_fields() -> None:
    assert (
        driftcorrection.digest({"a": 1, "b": 2})
        == driftcorrection.digest({"b": 2, "a": 1})
        != driftcorrection.digest({"a": 1})
    )
