"""Tests pruning, defaults and validation errors of custom resources with the LeaderWorkerSet CRD."""

import pytest
from testkit.customkind import LEADERWORKERSETS
from tests.conformance.conftest import CheckSame
from tests.conformance.objects import container, lws, named
from tests.conformance.transcript import TABLE, Session

from kuberuntime.objects.meta import JSON, JSONObject
from kuberuntime.objects.resources import CUSTOM_RESOURCE_DEFINITIONS

TEMPLATE: JSONObject = {"spec": {"containers": [container()]}}
GROUPS: JSONObject = {"size": 2, "workerTemplate": TEMPLATE}

SPECS: tuple[JSON, ...] = (
    {}, None, "text", [], 1,
    {"leaderWorkerTemplate": {}}, {"leaderWorkerTemplate": None}, {"leaderWorkerTemplate": {"workerTemplate": TEMPLATE}},
    {"replicas": -1, "leaderWorkerTemplate": GROUPS}, {"replicas": "3", "leaderWorkerTemplate": GROUPS},
    {"replicas": 1.0, "leaderWorkerTemplate": GROUPS}, {"replicas": 1.5, "leaderWorkerTemplate": GROUPS},
    {"replicas": None, "leaderWorkerTemplate": GROUPS}, {"replicas": 2**31, "leaderWorkerTemplate": GROUPS},
    {"replicas": 2**40, "leaderWorkerTemplate": GROUPS}, {"replicas": True, "leaderWorkerTemplate": GROUPS},
    {"startupPolicy": "Odd", "leaderWorkerTemplate": GROUPS}, {"startupPolicy": None, "leaderWorkerTemplate": GROUPS},
    {"startupPolicy": 1, "leaderWorkerTemplate": GROUPS}, {"startupPolicy": "", "leaderWorkerTemplate": GROUPS},
    {"leaderWorkerTemplate": GROUPS | {"size": 0}}, {"leaderWorkerTemplate": GROUPS | {"size": -1}},
    {"leaderWorkerTemplate": GROUPS | {"size": "2"}}, {"leaderWorkerTemplate": GROUPS | {"restartPolicy": "Odd"}},
    {"leaderWorkerTemplate": GROUPS | {"restartPolicy": "None"}}, {"leaderWorkerTemplate": GROUPS | {"unknown": 1}},
    {"leaderWorkerTemplate": GROUPS | {"subGroupPolicy": {}}}, {"leaderWorkerTemplate": GROUPS | {"subGroupPolicy": {"subGroupSize": 1, "type": "Odd"}}},
    {"leaderWorkerTemplate": GROUPS | {"subGroupPolicy": {"subGroupSize": 1}}}, {"leaderWorkerTemplate": GROUPS | {"leaderTemplate": {}}},
    {"leaderWorkerTemplate": GROUPS, "rolloutStrategy": {}}, {"leaderWorkerTemplate": GROUPS, "rolloutStrategy": {"type": "Odd"}},
    {"leaderWorkerTemplate": GROUPS, "rolloutStrategy": {"type": "RollingUpdate", "rollingUpdateConfiguration": {}}},
    {"leaderWorkerTemplate": GROUPS, "rolloutStrategy": {"type": "RollingUpdate", "rollingUpdateConfiguration": {"maxSurge": "x", "maxUnavailable": 1.5}}},
    {"leaderWorkerTemplate": GROUPS, "rolloutStrategy": {"rollingUpdateConfiguration": {"partition": -1, "maxSurge": {}}}},
    {"leaderWorkerTemplate": GROUPS, "networkConfig": {}}, {"leaderWorkerTemplate": GROUPS, "networkConfig": {"subdomainPolicy": "Odd"}},
    {"leaderWorkerTemplate": GROUPS, "networkConfig": {"subdomainPolicy": "UniquePerReplica"}}, {"leaderWorkerTemplate": GROUPS, "networkConfig": "x"},
    {"leaderWorkerTemplate": {"size": 1, "workerTemplate": {"spec": {}}}}, {"leaderWorkerTemplate": {"size": 1, "workerTemplate": {}}},
    {"leaderWorkerTemplate": {"size": 1, "workerTemplate": {"spec": {"containers": [{}]}}}},
    {"leaderWorkerTemplate": {"size": 1, "workerTemplate": {"spec": {"containers": [container(), container()]}}}},
    {"leaderWorkerTemplate": {"size": 1, "workerTemplate": {"spec": {"containers": [container(ports=[{"containerPort": 80}, {"containerPort": "x"}])]}}}},
    {"leaderWorkerTemplate": {"size": 1, "workerTemplate": {"spec": {"containers": [container(resources={"limits": {"cpu": 1, "memory": "1Gi", "bad": "x"}})]}}}},
    {"leaderWorkerTemplate": {"size": 1, "workerTemplate": {"spec": {"containers": [container(env=[{"name": "A", "value": 1}], command="text")]}}}},
    {"leaderWorkerTemplate": {"size": 1, "workerTemplate": {"metadata": {"labels": {"a": "b"}, "odd": 1}, "spec": {"containers": [container(odd=1)], "odd": {}}}}},
    {"leaderWorkerTemplate": {"size": 1, "workerTemplate": {"spec": {"containers": [container()], "terminationGracePeriodSeconds": "x", "hostNetwork": "yes"}}}},
    {"leaderWorkerTemplate": {"size": 1, "workerTemplate": {"spec": {"containers": [container()], "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "ScheduleAnyway"}] * 2}}}},
    {"leaderWorkerTemplate": {"size": 1, "workerTemplate": {"spec": {"containers": [container()], "volumes": [{"name": "v"}, {"emptyDir": {}}, {"name": "w", "hostPath": {}}]}}}},
    {"leaderWorkerTemplate": GROUPS | {"volumeClaimTemplates": [{"metadata": {"name": "d"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]}},
    {"leaderWorkerTemplate": GROUPS | {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Odd"}}},
)  # fmt: skip


@pytest.mark.parametrize("spec", SPECS, ids=lambda value: str(value)[:80])
def test_specs_are_validated(same: CheckSame, spec: JSON) -> None:
    async def sequence(session: Session) -> None:
        await session.create(LEADERWORKERSETS, named("one", spec=spec))
        await session.create(LEADERWORKERSETS, named("two", spec=spec), fieldValidation="Strict")
        made = await session.create(LEADERWORKERSETS, lws("three"))
        await session.update(LEADERWORKERSETS, {**made, "spec": spec})

    same(sequence)


WHOLE: tuple[JSONObject, ...] = (
    {"metadata": {"name": "one"}}, {"metadata": {"name": "one"}, "status": {"replicas": 3}, "unknown": 1},
    {"metadata": "text"}, {},
)  # fmt: skip


@pytest.mark.parametrize("obj", WHOLE, ids=lambda value: str(value)[:80])
@pytest.mark.parametrize("validation", ["Ignore", "Warn", "Strict", "Odd"])
def test_complete_objects_are_validated(same: CheckSame, obj: JSONObject, validation: str) -> None:
    async def sequence(session: Session) -> None:
        await session.create(LEADERWORKERSETS, obj, fieldValidation=validation)

    same(sequence)


STATUSES: tuple[JSON, ...] = (
    {"replicas": 1, "readyReplicas": 1, "updatedReplicas": 1, "hpaPodSelector": "a=b", "observedGeneration": 3, "odd": 1},
    {"replicas": -1}, {"replicas": None}, {}, None, "text",
    {"conditions": [{"type": "Available", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
    {"conditions": [{"type": "Available"}]}, {"conditions": [{"type": "a b", "status": "Odd", "reason": "", "message": "m", "lastTransitionTime": "yesterday"}]},
)  # fmt: skip


@pytest.mark.parametrize("status", STATUSES, ids=lambda value: str(value)[:80])
def test_statuses_are_validated(same: CheckSame, status: JSON) -> None:
    async def sequence(session: Session) -> None:
        made = await session.create(LEADERWORKERSETS, lws("one"))
        made = await session.update(LEADERWORKERSETS, {**made, "status": status}, subresource="status")
        await session.get(LEADERWORKERSETS, "one", accept=TABLE)
        await session.patch(
            LEADERWORKERSETS,
            "one",
            {"metadata": {"labels": {"a": "b"}}, "status": {"replicas": 2}},
            subresource="status",
        )

    same(sequence)


def crd(plural: str, schema: JSONObject, **version: object) -> JSONObject:
    """Return a small CRD."""
    kind = plural.removesuffix("s").capitalize()
    served = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **version}
    names = {"plural": plural, "kind": kind}
    return named(f"{plural}.conformance.example.com", spec={"group": "conformance.example.com", "names": names, "scope": "Namespaced", "versions": [served]})  # fmt: skip


DEFINITIONS: tuple[JSONObject, ...] = (
    crd("goods", {"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": {"type": "integer", "default": 1}}}}}),
    crd("bads", {}), crd("bads", {"type": "string"}), crd("bads", {"type": "object", "properties": {"a": {"type": "odd"}}}),
    crd("bads", {"type": "object", "properties": {"a": {"type": "array"}}}), crd("bads", {"type": "object", "properties": {"a": {}}}),
    crd("bads", {"type": "object"}, storage=False), crd("bads", {"type": "object", "properties": {"a": {"type": "integer", "default": "x"}}}),
    named("wrong.name", spec=crd("bads", {"type": "object"})["spec"]), named("bads.conformance.example.com"),
)  # fmt: skip


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda value: str(value)[:120])
def test_definitions_are_validated(same: CheckSame, definition: JSONObject) -> None:
    async def sequence(session: Session) -> None:
        await session.create(CUSTOM_RESOURCE_DEFINITIONS, definition, dryRun="All")

    same(sequence)
