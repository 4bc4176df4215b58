"""Tests server-side apply with owners, conflicts, forced changes, removed fields, lists, and subresources."""

from typing import Any

import pytest
from testkit.customkind import LEADERWORKERSETS
from tests.conformance.conftest import CheckSame
from tests.conformance.objects import container, lws, named, pod, service, statefulset
from tests.conformance.transcript import APPLY_PATCH, Session

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CONFIG_MAPS, PODS, SERVICES, STATEFULSETS


def test_two_managers_share_an_object(same: CheckSame) -> None:
    async def sequence(session: Session) -> None:
        await session.apply(CONFIG_MAPS, named("one", data={"a": "1", "b": "1"}), manager="first")
        await session.apply(CONFIG_MAPS, named("one", data={"c": "1"}), manager="second")
        await session.apply(CONFIG_MAPS, named("one", data={"a": "2"}), manager="second")
        await session.apply(CONFIG_MAPS, named("one", data={"a": "1"}), manager="second")
        await session.apply(CONFIG_MAPS, named("one", data={"a": "3", "b": "3"}), manager="second")
        await session.apply(CONFIG_MAPS, named("one", data={"a": "3"}), manager="second", force=True)
        await session.apply(CONFIG_MAPS, named("one", data={"b": "1"}), manager="first")
        await session.apply(CONFIG_MAPS, named("one", data={"b": "1"}), manager="first")
        await session.apply(CONFIG_MAPS, named("one"), manager="first")
        await session.apply(CONFIG_MAPS, named("one"), manager="second")
        await session.get(CONFIG_MAPS, "one")

    same(sequence)


def test_updates_take_over_applied_fields(same: CheckSame) -> None:
    async def sequence(session: Session) -> None:
        made = await session.apply(CONFIG_MAPS, named("one", data={"a": "1", "b": "1"}), manager="first")
        await session.update(CONFIG_MAPS, {**made, "data": {"a": "2", "b": "1", "c": "1"}}, fieldManager="editor")
        await session.apply(CONFIG_MAPS, named("one", data={"a": "1"}), manager="first")
        await session.apply(CONFIG_MAPS, named("one", data={"a": "1"}), manager="first", force=True)
        await session.patch(CONFIG_MAPS, "one", {"data": {"c": None}}, fieldManager="editor")
        await session.patch(
            CONFIG_MAPS, "one", {"data": {"b": None}, "metadata": {"labels": {"x": "y"}}}, fieldManager="editor"
        )
        await session.apply(CONFIG_MAPS, {"metadata": {"name": "one", "labels": {"x": "z"}}}, manager="first")

    same(sequence)


def test_created_object_can_be_applied(same: CheckSame) -> None:
    async def sequence(session: Session) -> None:
        await session.create(CONFIG_MAPS, named("one", data={"a": "1", "b": "2"}), fieldManager="maker")
        await session.apply(CONFIG_MAPS, named("one", data={"a": "2"}), manager="first")
        await session.apply(CONFIG_MAPS, named("one", data={"a": "1"}), manager="first")
        await session.apply(CONFIG_MAPS, named("one", data={"a": "2"}), manager="first", force=True)
        await session.patch(CONFIG_MAPS, "one", {"metadata": {"managedFields": [{}]}})
        await session.apply(CONFIG_MAPS, named("one", data={"a": "4"}), manager="second")

    same(sequence)


SET = {
    "serviceName": "web",
    "selector": {"matchLabels": {"app": "web"}},
    "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container(env=[{"name": "A", "value": "1"}])]}},
}  # fmt: skip
POD_SPECS: tuple[JSONObject, ...] = (
    {"containers": [{"name": "main", "image": "app:2"}]},
    {"containers": [{"name": "main", "image": "app:1", "env": [{"name": "B", "value": "2"}]}]},
    {"containers": [{"name": "side", "image": "side:1"}]},
    {"containers": [{"name": "main", "image": "app:1"}, {"name": "side", "image": "side:1", "ports": [{"containerPort": 80}]}]},
    {"containers": [{"name": "main", "image": "app:1", "ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}]}]},
    {"containers": [{"name": "main", "image": "app:1"}], "nodeSelector": {"a": "b"}, "tolerations": [{"key": "x", "operator": "Exists"}]},
    {"containers": [{"name": "main", "image": "app:1"}], "volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "configMap": {"name": "c"}}]},
    {"containers": [{"name": "main", "image": "app:1", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}], "volumes": [{"name": "v"}]},
    {"containers": [{"name": "main", "image": "app:1", "resources": {"limits": {"cpu": "1000m"}}}]},
    {"containers": [{"name": "main", "image": "app:1", "env": [{"name": "A"}, {"name": "A"}]}]},
    {"containers": [{"image": "app:1"}]},
    {"containers": [{"name": "main", "image": "app:1", "unknown": 1}]},
    {"containers": "text"},
    {"containers": [{"name": "main", "image": "app:1"}], "unknown": {}},
    {"containers": []},
    {},
)  # fmt: skip


@pytest.mark.parametrize("spec", POD_SPECS, ids=lambda value: str(value)[:70])
def test_pod_templates_are_applied(same: CheckSame, spec: JSONObject) -> None:
    async def sequence(session: Session) -> None:
        await session.apply(STATEFULSETS, named("one", spec=SET), manager="first")
        change = {"spec": {"template": {"spec": spec}}}
        await session.apply(STATEFULSETS, named("one", **change), manager="second")
        await session.apply(STATEFULSETS, named("one", **change), manager="second", force=True)
        await session.apply(STATEFULSETS, named("one", spec=SET), manager="first", force=True)
        groups = {"leaderWorkerTemplate": {"size": 2, "workerTemplate": {"spec": spec}}}
        await session.apply(LEADERWORKERSETS, named("two", spec=groups), manager="first")

    same(sequence)


def test_subresources_have_their_own_field_managers(same: CheckSame) -> None:
    async def sequence(session: Session) -> None:
        for resource, obj in ((STATEFULSETS, statefulset("one")), (LEADERWORKERSETS, lws("one"))):
            await session.apply(resource, obj, manager="first")
            status = named("one", status={"replicas": 1, "readyReplicas": 1})
            await session.apply(resource, status, manager="second", subresource="status")
            await session.apply(resource, named("one", status={"replicas": 2}), manager="third", subresource="status")
            await session.patch(
                resource, "one", {"status": {"readyReplicas": 0}}, subresource="status", fieldManager="fourth"
            )
            await session.apply(resource, {**obj, "status": {"replicas": 7}}, manager="first")
            await session.apply(resource, named("one", spec={"replicas": 2}), manager="second")
            await session.apply(
                resource, named("absent", status={"replicas": 2}), manager="third", subresource="status"
            )

    same(sequence)


def test_metadata_is_applied(same: CheckSame) -> None:
    owner: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}

    async def sequence(session: Session) -> None:
        first = {"name": "one", "labels": {"a": "b"}, "finalizers": ["example.com/a"], "ownerReferences": [owner]}
        await session.apply(CONFIG_MAPS, {"metadata": first}, manager="first")
        second = {"name": "one", "annotations": {"a": "b"}, "finalizers": ["example.com/b"]}
        await session.apply(
            CONFIG_MAPS, {"metadata": second | {"ownerReferences": [owner | {"uid": "v"}]}}, manager="second"
        )
        await session.apply(
            CONFIG_MAPS, {"metadata": {"name": "one", "ownerReferences": [owner | {"name": "q"}]}}, manager="second"
        )
        await session.apply(CONFIG_MAPS, {"metadata": {"name": "one"}}, manager="first")
        await session.apply(
            CONFIG_MAPS, {"metadata": {"name": "one", "uid": "11111111-2222-3333-4444-555555555555"}}, manager="first"
        )
        await session.apply(CONFIG_MAPS, {"metadata": {"name": "one", "resourceVersion": "1"}}, manager="first")
        await session.apply(
            CONFIG_MAPS, {"metadata": {"name": "one", "managedFields": [{"manager": "x"}]}}, manager="first"
        )
        await session.apply(
            CONFIG_MAPS, {"metadata": {"name": "new", "uid": "11111111-2222-3333-4444-555555555555"}}, manager="first"
        )
        await session.apply(CONFIG_MAPS, {"metadata": {"name": "new", "generateName": "x"}}, manager="first")

    same(sequence)


def test_malformed_applies_are_refused(same: CheckSame) -> None:
    async def sequence(session: Session) -> None:
        path = session.path(CONFIG_MAPS, "one")
        whole = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": {"a": "1"}}
        await session.send("PATCH", path, whole, media=APPLY_PATCH)
        await session.send("PATCH", path, b": : :", media=APPLY_PATCH, fieldManager="m")
        await session.send("PATCH", path, b"- a", media=APPLY_PATCH, fieldManager="m")
        await session.send("PATCH", path, {**whole, "metadata": {"name": "two"}}, media=APPLY_PATCH, fieldManager="m")
        await session.send("PATCH", path, {**whole, "metadata": {}}, media=APPLY_PATCH, fieldManager="m")
        await session.send("PATCH", path, {**whole, "kind": "Secret"}, media=APPLY_PATCH, fieldManager="m")
        await session.send("PATCH", path, {**whole, "data": {"a": 1}}, media=APPLY_PATCH, fieldManager="m")
        await session.send("PATCH", path, {**whole, "data": None}, media=APPLY_PATCH, fieldManager="m")
        await session.send("PATCH", path, whole, media=APPLY_PATCH, fieldManager="m" * 129)
        await session.send("PATCH", path, whole, media=APPLY_PATCH, fieldManager="m", dryRun="All")
        await session.send("PATCH", path, whole, media=APPLY_PATCH, fieldManager="m", dryRun="Some")
        await session.send(
            "PATCH",
            path,
            b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {a: 'yes'}\n",
            media=APPLY_PATCH,
            fieldManager="m",
        )
        await session.send(
            "PATCH", path, {**whole, "unknown": 1}, media=APPLY_PATCH, fieldManager="m", fieldValidation="Ignore"
        )

    same(sequence)


def test_services_and_pods_are_applied(same: CheckSame) -> None:
    async def sequence(session: Session) -> None:
        await session.apply(SERVICES, service("one", clusterIP="None"), manager="first")
        await session.apply(SERVICES, named("one", spec={"ports": [{"port": 81, "name": "b"}]}), manager="second")
        await session.apply(SERVICES, named("one", spec={"ports": [{"port": 80, "name": "a"}]}), manager="first")
        await session.apply(PODS, pod("one", nodeName="n"), manager="first")
        await session.apply(PODS, named("one", metadata={"name": "one", "labels": {"a": "b"}}), manager="second")
        condition = {"type": "example.com/ready", "status": "True"}
        await session.apply(
            PODS, named("one", status={"conditions": [condition]}), manager="third", subresource="status"
        )

    same(sequence)
