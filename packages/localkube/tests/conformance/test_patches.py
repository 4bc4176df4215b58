"""Tests the results and errors of JSON patches, merge patches, and strategic merge patches."""

import pytest
from testkit.customkind import LEADERWORKERSETS
from tests.conformance.conftest import CheckSame
from tests.conformance.objects import container, lws, named, pod, service, statefulset
from tests.conformance.transcript import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, Session

from kuberuntime.objects.resources import CONFIG_MAPS, PODS, SERVICES, STATEFULSETS

JSON_PATCHES: tuple[object, ...] = (
    [{"op": "add", "path": "/data/c", "value": "3"}],
    [{"op": "replace", "path": "/data/a", "value": "9"}, {"op": "remove", "path": "/data/b"}],
    [{"op": "test", "path": "/data/a", "value": "1"}, {"op": "add", "path": "/data/ok", "value": "y"}],
    [{"op": "test", "path": "/data/a", "value": "2"}],
    [{"op": "remove", "path": "/data/absent"}],
    [{"op": "replace", "path": "/data/absent", "value": "x"}],
    [{"op": "add", "path": "/absent/deep", "value": "x"}],
    [{"op": "move", "from": "/data/a", "path": "/data/z"}],
    [{"op": "copy", "from": "/data/a", "path": "/data/z"}],
    [{"op": "odd", "path": "/data/a"}],
    [{"op": "add", "path": "data", "value": "x"}],
    [{"op": "add", "path": "/metadata/labels", "value": {"a~b/c": "x"}}],
    [{"op": "add", "path": "/metadata/name", "value": "other"}],
    [{"op": "replace", "path": "/data", "value": "text"}],
    [{"op": "replace", "path": "/kind", "value": "Secret"}],
    [{"op": "replace", "path": "", "value": []}],
    [{"op": "remove", "path": "/data"}, {"op": "add", "path": "/data", "value": {}}],
    [{"op": "add", "path": "/unknown", "value": 1}],
    [],
    {"op": "add"},
    "text",
    b"{",
    b"",
)


@pytest.mark.parametrize("patch", JSON_PATCHES, ids=lambda value: str(value)[:60])
def test_json_patches_have_the_same_result(same: CheckSame, patch: object) -> None:
    async def sequence(session: Session) -> None:
        await session.create(CONFIG_MAPS, named("one", data={"a": "1", "b": "2"}))
        await session.patch(CONFIG_MAPS, "one", patch, media=JSON_PATCH)
        await session.patch(CONFIG_MAPS, "absent", [], media=JSON_PATCH)

    same(sequence)


MERGE_PATCHES: tuple[object, ...] = (
    {"data": {"a": None, "c": "3"}},
    {"data": None},
    {"data": {"a": 1}},
    {"data": "text"},
    {"metadata": {"labels": {"x": "y"}, "annotations": None}},
    {"metadata": {"resourceVersion": "1"}},
    {"metadata": {"uid": "11111111-2222-3333-4444-555555555555"}},
    {"metadata": {"name": "other"}},
    {"metadata": {"namespace": "other"}},
    {"metadata": {"finalizers": ["example.com/x"], "generation": 4}},
    {"metadata": None},
    {"metadata": {"managedFields": []}},
    {"metadata": {"managedFields": [{}]}},
    {"kind": "Secret"},
    {"apiVersion": "v2"},
    {"kind": None},
    {"unknown": 1},
    {},
    [],
    b"{",
)


@pytest.mark.parametrize("patch", MERGE_PATCHES, ids=lambda value: str(value)[:60])
def test_merge_patches_have_the_same_result(same: CheckSame, patch: object) -> None:
    async def sequence(session: Session) -> None:
        await session.create(CONFIG_MAPS, named("one", data={"a": "1", "b": "2"}))
        await session.patch(CONFIG_MAPS, "one", patch, media=MERGE_PATCH)
        if not {"kind", "apiVersion"} & set(patch if isinstance(patch, dict) else ()):
            await session.patch(CONFIG_MAPS, "one", patch, media=STRATEGIC_PATCH)
        await session.get(CONFIG_MAPS, "one")

    same(sequence)


SET_PATCHES: tuple[object, ...] = (
    {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "app:2"}]}}}},
    {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "side:1"}]}}}},
    {"spec": {"template": {"spec": {"containers": [{"name": "main", "$patch": "delete"}, {"name": "new", "image": "n"}]}}}},
    {"spec": {"template": {"spec": {"containers": [{"$patch": "replace"}, {"name": "new", "image": "n"}]}}}},
    {"spec": {"template": {"spec": {"$setElementOrder/containers": [{"name": "side"}, {"name": "main"}], "containers": [{"name": "side", "image": "s"}]}}}},
    {"spec": {"template": {"spec": {"containers": [{"image": "nameless"}]}}}},
    {"spec": {"template": {"spec": {"containers": [{"name": "main", "env": [{"name": "A", "value": "2"}, {"name": "C", "value": "3"}]}]}}}},
    {"spec": {"template": {"spec": {"containers": [{"name": "main", "env": [{"name": "A", "$patch": "delete"}]}]}}}},
    {"spec": {"template": {"spec": {"containers": [{"name": "main", "ports": [{"containerPort": 8080, "name": "web"}]}]}}}},
    {"spec": {"template": {"spec": {"volumes": [{"name": "v", "emptyDir": None, "hostPath": {"path": "/x"}}]}}}},
    {"spec": {"template": {"spec": {"volumes": [{"name": "v", "$retainKeys": ["name", "configMap"], "configMap": {"name": "c"}}]}}}},
    {"spec": {"template": {"spec": {"tolerations": [{"key": "a", "operator": "Exists"}]}}}},
    {"spec": {"template": {"spec": {"nodeSelector": {"a": None, "b": "2"}}}}},
    {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a"], "finalizers": ["example.com/c"]}},
    {"metadata": {"ownerReferences": [{"uid": "u", "apiVersion": "v1", "kind": "Pod", "name": "p"}]}},
    {"spec": {"updateStrategy": {"$patch": "replace", "type": "OnDelete"}}},
    {"spec": {"updateStrategy": {"$retainKeys": ["type"], "type": "OnDelete"}}},
    {"spec": {"$patch": "odd"}},
    {"spec": {"template": {"spec": {"containers": "text"}}}},
    {"spec": {"serviceName": "other"}},
    {"spec": {"template": {"spec": {"hostAliases": [{"ip": "1.2.3.4", "hostnames": ["a"]}]}}}},
)  # fmt: skip


@pytest.mark.parametrize("patch", SET_PATCHES, ids=lambda value: str(value)[:80])
def test_strategic_patches_of_pod_templates_have_the_same_result(same: CheckSame, patch: object) -> None:
    spec = {
        "containers": [container(env=[{"name": "A", "value": "1"}, {"name": "B", "value": "1"}], ports=[{"containerPort": 80}]), container(name="side")],
        "volumes": [{"name": "v", "emptyDir": {}}],
        "nodeSelector": {"a": "1"},
    }  # fmt: skip

    async def sequence(session: Session) -> None:
        obj = statefulset("one", template={"metadata": {"labels": {"app": "web"}}, "spec": spec})
        obj["metadata"]["finalizers"] = ["example.com/a", "example.com/b"]
        await session.create(STATEFULSETS, obj)
        await session.patch(STATEFULSETS, "one", patch, media=STRATEGIC_PATCH)
        await session.get(STATEFULSETS, "one")

    same(sequence)


def test_patches_of_other_kinds_have_the_same_result(same: CheckSame) -> None:
    async def sequence(session: Session) -> None:
        await session.create(LEADERWORKERSETS, lws("one"))
        await session.patch(LEADERWORKERSETS, "one", {"spec": {"replicas": 2}}, media=STRATEGIC_PATCH)
        await session.patch(LEADERWORKERSETS, "one", {"spec": {"replicas": 2}}, media="application/json")
        await session.patch(LEADERWORKERSETS, "one", {"spec": {"replicas": 3}})
        await session.patch(LEADERWORKERSETS, "one", {"spec": {"replicas": -3}})
        await session.patch(LEADERWORKERSETS, "one", {"spec": {"unknown": 1}})
        await session.patch(LEADERWORKERSETS, "one", {"spec": {"unknown": 1}}, fieldValidation="Strict")
        await session.patch(LEADERWORKERSETS, "one", {"status": {"replicas": 1}})
        await session.patch(LEADERWORKERSETS, "one", {"status": {"replicas": 1}}, subresource="status")
        await session.patch(LEADERWORKERSETS, "one", {"status": {"replicas": "x"}}, subresource="status")
        await session.create(SERVICES, service("one"))
        await session.patch(
            SERVICES,
            "one",
            {"spec": {"ports": [{"port": 80, "name": "web"}, {"port": 81, "name": "x"}]}},
            media=STRATEGIC_PATCH,
        )
        await session.create(PODS, pod("one", nodeName="n"))
        condition = {"type": "Ready", "status": "True"}
        for _ in range(2):
            await session.patch(
                PODS, "one", {"status": {"conditions": [condition]}}, media=STRATEGIC_PATCH, subresource="status"
            )
        await session.patch(
            PODS,
            "one",
            {"status": {"conditions": [condition | {"type": "Other"}]}},
            media=STRATEGIC_PATCH,
            subresource="status",
        )
        await session.patch(
            PODS, "one", {"spec": {"containers": [{"name": "main", "image": "app:2"}]}}, media=STRATEGIC_PATCH
        )
        await session.patch(PODS, "one", {"spec": {"nodeName": "other"}}, media=STRATEGIC_PATCH)
        await session.patch(PODS, "one", {"spec": {"tolerations": [{"key": "a", "operator": "Exists"}]}})
        await session.patch(PODS, "one", {"metadata": {"labels": {"a": "b"}}}, force="true")
        await session.patch(PODS, "one", {"metadata": {"labels": {"a": "b"}}}, subresource="unknown")

    same(sequence)
