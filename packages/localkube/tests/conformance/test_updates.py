"""Tests object updates: versions, UIDs, server-managed fields, generations, and subresources."""

from typing import Any

import pytest
from testkit.customkind import LEADERWORKERSETS
from tests.conformance.conftest import CheckSame
from tests.conformance.objects import container, lws, named, pod, service, statefulset
from tests.conformance.transcript import TABLE, Session

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import (
    CONFIG_MAPS,
    LEASES,
    NAMESPACES,
    PODS,
    SECRETS,
    SERVICES,
    STATEFULSETS,
    Resource,
)

OBJECTS: tuple[tuple[Resource, JSONObject], ...] = (
    (CONFIG_MAPS, named("one", data={"a": "1"})),
    (LEADERWORKERSETS, lws("one")),
    (LEASES, named("one", spec={"holderIdentity": "a"})),
    (STATEFULSETS, statefulset("one")),
)
IDS = [resource.plural for resource, _ in OBJECTS]


def with_metadata(obj: JSONObject, **fields: Any) -> JSONObject:
    """Return the object with these metadata changes. A value of None removes a field."""
    metadata = {name: value for name, value in (obj["metadata"] | fields).items() if value is not None}
    return {**obj, "metadata": metadata}


@pytest.mark.parametrize(("resource", "obj"), OBJECTS, ids=IDS)
def test_versions_and_uids_are_compared_with_the_stored_object(
    same: CheckSame, resource: Resource, obj: JSONObject
) -> None:
    async def sequence(session: Session) -> None:
        made = await session.create(resource, obj)
        other = "11111111-2222-3333-4444-555555555555"
        await session.update(resource, with_metadata(made, labels={"a": "b"}))
        await session.update(resource, with_metadata(made, labels={"a": "c"}))
        await session.update(resource, with_metadata(made, resourceVersion=None))
        await session.update(resource, with_metadata(made, resourceVersion="0"))
        await session.update(resource, with_metadata(made, resourceVersion=None, uid=other))
        await session.update(resource, with_metadata(made, uid=other))
        await session.send("PUT", session.path(resource, "two"), with_metadata(made, resourceVersion=None))
        await session.update(resource, with_metadata(made, name="absent", resourceVersion=None, uid=None))
        await session.update(resource, with_metadata(made, name="absent"))
        await session.send("PUT", session.path(resource, "one"), with_metadata(made, namespace="elsewhere"))
        await session.send("PUT", session.path(resource, "one"), with_metadata(made, name=None))

    same(sequence)


@pytest.mark.parametrize(("resource", "obj"), OBJECTS, ids=IDS)
def test_server_managed_fields_cannot_be_written(same: CheckSame, resource: Resource, obj: JSONObject) -> None:
    async def sequence(session: Session) -> None:
        sent = with_metadata(
            obj,
            uid="11111111-2222-3333-4444-555555555555",
            creationTimestamp="2020-01-01T00:00:00Z",
            deletionTimestamp="2020-01-01T00:00:00Z",
            deletionGracePeriodSeconds=3,
            generation=7,
            selfLink="/x",
        )
        await session.create(resource, with_metadata(sent, resourceVersion="5"))
        made = await session.create(resource, sent)
        await session.update(resource, with_metadata(made, creationTimestamp="2020-01-01T00:00:00Z", generation=9))
        await session.update(resource, with_metadata(made, deletionTimestamp="2020-01-01T00:00:00Z"))
        await session.get(resource, "one")

    same(sequence)


BAD_METADATA: tuple[JSONObject, ...] = (
    {"name": "UPPER"}, {"name": "-a"}, {"name": "a" * 254}, {"name": "a_b"}, {"name": "a..b"}, {"name": "."},
    {"name": None}, {"name": "x/y"},
    {"labels": {"a b": "c"}}, {"labels": {"a": "b c"}}, {"labels": {"a": "x" * 64}}, {"labels": {"/a": "b"}},
    {"labels": {"A.B/c": "d"}}, {"labels": {"": "d"}}, {"labels": {"a" * 64: "d"}}, {"labels": {"a/b/c": "d"}},
    {"annotations": {"a b": "c"}}, {"annotations": {"A/B": "c"}}, {"annotations": {"a": "x" * (256 * 1024)}},
    {"finalizers": ["plain"]}, {"finalizers": ["a b/c"]}, {"finalizers": ["example.com/a", "orphan", "foregroundDeletion"]},
    {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "a"}]},
    {"ownerReferences": [{"apiVersion": "v1", "kind": "", "name": "", "uid": ""}]},
    {"ownerReferences": [{"apiVersion": "v1", "kind": "Event", "name": "a", "uid": "b"}]},
    {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": n, "uid": n, "controller": True} for n in "ab"]},
    {"namespace": "elsewhere"}, {"labels": "x"}, {"labels": {"a": 1}}, {"ownerReferences": {}}, {"finalizers": "x"},
    {"generation": -1}, {"creationTimestamp": "yesterday"}, {"managedFields": [{"operation": "Odd"}]},
)  # fmt: skip


@pytest.mark.parametrize("metadata", BAD_METADATA, ids=lambda value: str(value)[:50])
def test_metadata_is_validated(same: CheckSame, metadata: JSONObject) -> None:
    async def sequence(session: Session) -> None:
        for resource, obj in OBJECTS[:2]:
            await session.create(resource, with_metadata(obj, **metadata))

    same(sequence)


@pytest.mark.parametrize("name", ["a.b", "2.web", "Upper", "x" * 64, "-"])
def test_names_are_validated(same: CheckSame, name: str) -> None:
    async def sequence(session: Session) -> None:
        await session.create(NAMESPACES, named(name))
        await session.create(SERVICES, service(name))
        await session.create(STATEFULSETS, statefulset(name))
        await session.create(STATEFULSETS, statefulset("one", serviceName=name))
        await session.create(PODS, pod("one", containers=[container(name=name)], volumes=[{"name": name}]))
        await session.create(PODS, pod("two", hostname=name, subdomain=name))

    same(sequence)


def test_names_are_generated(same: CheckSame) -> None:
    async def sequence(session: Session) -> None:
        await session.create(CONFIG_MAPS, {"metadata": {"generateName": "gen-"}})
        await session.create(CONFIG_MAPS, {"metadata": {"generateName": "g" * 70}})
        await session.create(CONFIG_MAPS, {"metadata": {"generateName": "gen-", "name": "own"}})
        await session.create(CONFIG_MAPS, {"metadata": {}})
        await session.create(CONFIG_MAPS, {})

    same(sequence)


def test_generation_counts_spec_changes(same: CheckSame) -> None:
    async def sequence(session: Session) -> None:
        for resource, obj in ((STATEFULSETS, statefulset("one")), (LEADERWORKERSETS, lws("one")), (PODS, pod("one"))):
            made = await session.create(resource, obj)
            made = await session.update(resource, with_metadata(made, annotations={"a": "b"}))
            if resource is not PODS:
                made = await session.update(resource, {**made, "spec": {**made["spec"], "replicas": 3}})
            made = await session.update(resource, {**made, "status": {"replicas": 9, "phase": "Running"}})
            made = await session.update(resource, {**made, "status": {"replicas": 2}}, subresource="status")
            await session.update(resource, {**made, "spec": {"replicas": 5}}, subresource="status")
            await session.get(resource, "one", fieldSelector="")

    same(sequence)


@pytest.mark.parametrize(("resource", "obj"), OBJECTS[1:2] + OBJECTS[3:], ids=["leaderworkersets", "statefulsets"])
def test_scale_reads_and_writes_replicas(same: CheckSame, resource: Resource, obj: JSONObject) -> None:
    async def sequence(session: Session) -> None:
        await session.create(resource, obj)
        await session.patch(resource, "one", {"status": {"replicas": 2, "hpaPodSelector": "a=b"}}, subresource="status")
        path = session.path(resource, "one", "scale")
        scale = await session.send("GET", path)
        await session.send("PUT", path, {**scale, "spec": {"replicas": 4}})
        await session.send("PUT", path, {**scale, "spec": {"replicas": 5}})
        await session.send(
            "PUT", path, {**scale, "metadata": {"name": "one", "namespace": session.namespace}, "spec": {}}
        )
        await session.patch(resource, "one", {"spec": {"replicas": 2}}, subresource="scale")
        await session.patch(resource, "one", {"spec": {"replicas": -1}}, subresource="scale")
        await session.patch(resource, "one", {"spec": {"replicas": "x"}}, subresource="scale")
        await session.patch(resource, "one", [{"op": "replace", "path": "/spec/replicas", "value": 7}], subresource="scale", media="application/json-patch+json")  # fmt: skip
        await session.patch(resource, "absent", {"spec": {"replicas": 2}}, subresource="scale")
        await session.send("GET", path)
        await session.get(resource, "one")
        await session.get(resource, "one", accept=TABLE, includeObject="None")

    same(sequence)


def test_immutable_objects_cannot_be_changed(same: CheckSame) -> None:
    async def sequence(session: Session) -> None:
        for resource, field in ((CONFIG_MAPS, "data"), (SECRETS, "stringData")):
            await session.create(resource, named("one", immutable=True, **{field: {"a": "1"}}))
            await session.patch(resource, "one", {field: {"a": "2"}})
            await session.patch(resource, "one", {"immutable": False})
            await session.patch(resource, "one", {"metadata": {"labels": {"a": "b"}}})
        await session.create(SECRETS, named("typed", type="kubernetes.io/tls"))
        await session.create(SECRETS, named("two", type="a"))
        await session.patch(SECRETS, "two", {"type": "b"})
        await session.create(CONFIG_MAPS, named("both", data={"a": "1"}, binaryData={"a": "MQ=="}))
        await session.create(CONFIG_MAPS, named("bad", data={"a b": "1"}, binaryData={"c": "%"}))
        await session.create(CONFIG_MAPS, named("bad", data={"a b": "1", "..": "2"}))

    same(sequence)


def test_services_are_validated(same: CheckSame) -> None:
    async def sequence(session: Session) -> None:
        await session.create(SERVICES, service("Upper"))
        await session.create(SERVICES, service("9lives"))
        await session.create(SERVICES, service("a", clusterIP="None", ports=[]))
        await session.create(SERVICES, service("b", ports=[]))
        await session.create(SERVICES, service("c", ports=[{"port": 80}, {"port": 81}]))
        await session.create(SERVICES, service("d", ports=[{"port": 80, "name": "x"}, {"port": 80, "name": "y"}]))
        await session.create(
            SERVICES, service("e", ports=[{"port": 0}, {"port": 70000, "name": "UP", "protocol": "X"}])
        )
        await session.create(SERVICES, service("f", type="Odd", sessionAffinity="Odd"))
        await session.create(SERVICES, service("g", clusterIP="nonsense"))
        await session.create(
            SERVICES, service("h", selector={"a b": "c"}, ports=[{"port": 1, "targetPort": "TOO_LONG_NAME_HERE"}])
        )
        await session.create(
            SERVICES, service("i", clusterIP="None", sessionAffinity="ClientIP", internalTrafficPolicy="Local")
        )
        await session.patch(SERVICES, "a", {"spec": {"clusterIP": "10.0.0.77"}})
        await session.patch(SERVICES, "a", {"spec": {"publishNotReadyAddresses": True}})

    same(sequence)


def test_namespaces_are_created_and_validated(same: CheckSame) -> None:
    async def sequence(session: Session) -> None:
        await session.send(
            "POST", "/api/v1/namespaces", {"metadata": {"name": "test-updates-made", "labels": {"a": "b"}}}
        )
        await session.send("POST", "/api/v1/namespaces", {"metadata": {"name": "Under_score"}})
        await session.send("POST", "/api/v1/namespaces", {"metadata": {"name": "Upper"}})
        await session.get(NAMESPACES, "test-updates-made")
        await session.send("POST", "/api/v1/namespaces/absent/configmaps", {"metadata": {"name": "a"}})
        await session.send("GET", "/api/v1/namespaces/absent/configmaps")
        await session.send("DELETE", "/api/v1/namespaces/default")
        await session.patch(
            NAMESPACES, "test-updates-made", {"metadata": {"labels": {"kubernetes.io/metadata.name": "x"}}}
        )

    same(sequence)


SETS: tuple[JSONObject, ...] = (
    {"replicas": -1}, {"podManagementPolicy": "Odd"}, {"selector": None}, {"selector": {}},
    {"selector": {"matchLabels": {"app": "db"}}}, {"updateStrategy": {"type": "Odd"}}, {"minReadySeconds": -1},
    {"updateStrategy": {"type": "OnDelete", "rollingUpdate": {"partition": 1}}}, {"ordinals": {"start": -1}},
    {"updateStrategy": {"type": "OnDelete"}}, {"updateStrategy": {"rollingUpdate": {"partition": -1}}},
    {"revisionHistoryLimit": -1},
    {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Odd"}}, {"serviceName": "Bad_Name"}, {"serviceName": ""},
    {"template": {"spec": {"containers": [{"name": "a", "image": "b"}]}}}, {"template": {}},
    {"template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [], "restartPolicy": "Never"}}},
    {"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]},
    {"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {}}]},
    {"selector": {"matchExpressions": [{"key": "app", "operator": "Odd", "values": ["web"]}]}},
)  # fmt: skip


@pytest.mark.parametrize("spec", SETS, ids=lambda value: str(value)[:50])
def test_statefulsets_are_validated(same: CheckSame, spec: JSONObject) -> None:
    async def sequence(session: Session) -> None:
        await session.create(STATEFULSETS, statefulset("one", **spec))
        made = await session.create(STATEFULSETS, statefulset("two"))
        await session.update(STATEFULSETS, {**made, "spec": {**made["spec"], **spec}})

    same(sequence)
