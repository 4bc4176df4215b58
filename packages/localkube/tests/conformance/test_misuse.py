"""Tests that both servers reject invalid requests with the same code and reason.

Of a refusal only the code, the reason and the fields are compared, because the words are those of decoders.
"""

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

import pytest
from testkit.customkind import LEADERWORKERSETS
from tests.conformance.conftest import CheckSame
from tests.conformance.objects import container, lws, named, pod, statefulset
from tests.conformance.transcript import MERGE_PATCH, Session, identified

from kuberuntime.objects.meta import JSON, JSONObject
from kuberuntime.objects.resources import CONFIG_MAPS, NODES, PODS, STATEFULSETS, Resource

CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TOLD_APART: Final = ("<nil>", "patch")
"""Fields that only one server reports, or that the servers report differently."""

HUGE: Final[tuple[JSON, ...]] = (
    2**31,
    2**62,
    2**63 - 1,
    2**63,
    10**30,
    -(2**31) - 1,
    -(2**63) - 1,
    1.5,
    1e300,
    "1",
    True,
    [],
)


async def outcome(session: Session, method: str, path: str, body: object = None, **options: Any) -> None:
    """Send a request. Record only the code, the reason and the fields of the error."""
    answer = await session.send(method, path, body, **options)
    entry = session.entries.pop()
    sent = body.decode(errors="replace") if isinstance(body, bytes) else json.dumps(body)
    words = f"{entry.request} {options.get('media', '')} {options.get('accept', '')} {sent[:300]}"
    session.entries.append(replace(entry, request=words, warnings="", body=_refusal(answer)))


def _refusal(answer: Any) -> JSON:
    if not isinstance(answer, dict) or answer.get("kind") != "Status" or answer.get("status") == "Success":
        return None
    causes = (answer.get("details") or {}).get("causes") or ()
    fields = {
        cause["field"].replace("spec.versions[0].schema", "spec.validation") for cause in causes if "field" in cause
    }
    return {
        "reason": answer.get("reason"),
        "fields": sorted(one for one in fields if one not in TOLD_APART and one[0] != "."),
    }


def bent(base: JSONObject, path: str, value: JSON) -> JSONObject:
    """Return an object with this value at a dotted path."""
    name, _, rest = path.partition(".")
    return {**base, name: bent(base.get(name) or {}, rest, value) if rest else value}


async def create_each(session: Session, resource: Resource, objects: Iterable[JSONObject]) -> None:
    for index, obj in enumerate(objects):
        whole = identified(resource, obj)
        if isinstance(whole.get("metadata"), dict):
            whole = bent(whole, "metadata.name", f"{obj['metadata'].get('name', 'one')}-{index}")
        await outcome(session, "POST", session.path(resource), whole)


NUMBERS: Final = (
    "spec.terminationGracePeriodSeconds",
    "spec.activeDeadlineSeconds",
    "spec.priority",
    "metadata.generation",
    "metadata.deletionGracePeriodSeconds",
)


@pytest.mark.parametrize("path", NUMBERS)
def test_integers_of_pods_are_limited_alike(same: CheckSame, path: str) -> None:
    async def sequence(session: Session) -> None:
        await create_each(session, PODS, (bent(pod("one"), path, value) for value in HUGE))

    same(sequence)


def test_integers_of_sets_are_limited_alike(same: CheckSame) -> None:
    async def sequence(session: Session) -> None:
        for path in ("spec.replicas", "spec.minReadySeconds", "spec.revisionHistoryLimit", "spec.ordinals.start"):
            await create_each(session, STATEFULSETS, (bent(statefulset("one"), path, value) for value in HUGE))
        await create_each(session, LEADERWORKERSETS, (bent(lws("one"), "spec.replicas", value) for value in HUGE))

    same(sequence)


def test_texts_with_unusual_characters_are_stored_alike(same: CheckSame) -> None:
    async def sequence(session: Session) -> None:
        for text in ("a\x00b", "\x00", "\x7f", "\ufeff", "\u2028", "\U0001f600"):
            await create_each(
                session,
                PODS,
                (
                    pod("one", containers=[container(command=[text])]),
                    pod("one", containers=[container(args=[text], env=[{"name": "A", "value": text}])]),
                    pod("one", containers=[container(env=[{"name": text, "value": "a"}])]),
                    pod("one", containers=[container(workingDir=text)]),
                    bent(pod("one"), "metadata.labels", {"a": text}),
                    bent(pod("one"), "metadata.annotations", {"a": text}),
                    bent(pod("one"), "metadata.annotations", {text: "a"}),
                ),
            )

    same(sequence)


BINDING: Final[JSONObject] = {
    "apiVersion": "v1",
    "kind": "Binding",
    "metadata": {"name": "one"},
    "target": {"kind": "Node", "name": "n"},
}
BINDINGS: Final[tuple[JSONObject, ...]] = (
    {"target": "n"}, {"target": {"name": 7}}, {"metadata": 5}, {"metadata": {"annotations": {"a": 1}}}, {"target": []},
    {"kind": "Pod"}, {"kind": ""}, {"apiVersion": "v2"}, {"apiVersion": 1}, {"target": None}, {"target": {"name": ""}},
    {"target": {"kind": "Pod", "name": "n"}}, {"metadata": {}}, {"metadata": {"name": "other"}}, {"metadata": {"name": "one", "uid": "odd"}},
)  # fmt: skip


def test_malformed_bindings_are_refused_alike(same: CheckSame) -> None:
    async def sequence(session: Session) -> None:
        for index, change in enumerate(BINDINGS):
            name = f"one-{index}"
            await session.create(PODS, pod(name))
            sent = {**BINDING, "metadata": {"name": name}, **change}
            await outcome(session, "POST", session.path(PODS, name, "binding"), sent)
        for body in (b"", b"null", b"[]", b"1", b"{"):
            await outcome(session, "POST", session.path(PODS, "one-0", "binding"), body)

    same(sequence)


EVICTION: Final[JSONObject] = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "one"}}
EVICTIONS: Final[tuple[JSONObject, ...]] = (
    {"deleteOptions": 5}, {"deleteOptions": {"gracePeriodSeconds": "x"}}, {"deleteOptions": {"gracePeriodSeconds": 2**63}}, {"metadata": []},
    {"kind": "Pod"}, {"apiVersion": "v2"}, {"deleteOptions": {"propagationPolicy": "Odd"}}, {"deleteOptions": {"dryRun": ["Odd"]}},
    {"deleteOptions": {"preconditions": {"uid": 5}}}, {"deleteOptions": {"preconditions": {"uid": "odd"}}}, {"metadata": {"name": "other"}},
    {"deleteOptions": {"gracePeriodSeconds": -1}},
)  # fmt: skip


def test_malformed_evictions_are_refused_alike(same: CheckSame) -> None:
    async def sequence(session: Session) -> None:
        for index, change in enumerate(EVICTIONS):
            name = f"one-{index}"
            await session.create(PODS, pod(name, nodeName="n"))
            sent = {**EVICTION, "metadata": {"name": name}, **change}
            await outcome(session, "POST", session.path(PODS, name, "eviction"), sent)

    same(sequence)


SCALE: Final[JSONObject] = {
    "apiVersion": "autoscaling/v1",
    "kind": "Scale",
    "metadata": {"name": "one"},
    "spec": {"replicas": 1},
}
SCALES: Final[tuple[JSONObject, ...]] = (
    {"metadata": 5}, {"metadata": "x"}, {"metadata": []}, {"metadata": {}}, {"metadata": {"name": "other"}}, {"kind": "Odd"}, {"apiVersion": "v9"},
    {"spec": 5}, {"spec": []}, {"spec": {"replicas": "1"}}, {"spec": {"replicas": -1}}, {"spec": {"replicas": 1.5}}, {"spec": {"replicas": 2**31}},
    {"spec": {"replicas": 2**63}}, {"spec": {"replicas": None}}, {"spec": None}, {"metadata": {"name": "one", "resourceVersion": "odd"}},
    {"metadata": {"name": "one", "resourceVersion": "1"}}, {"metadata": {"name": "one", "uid": "odd"}},
)  # fmt: skip


@pytest.mark.parametrize("resource", [STATEFULSETS, LEADERWORKERSETS], ids=["StatefulSet", "LeaderWorkerSet"])
def test_malformed_scales_are_refused_alike(same: CheckSame, resource: Resource) -> None:
    async def sequence(session: Session) -> None:
        await session.create(resource, (lws if resource == LEADERWORKERSETS else statefulset)("one"))
        path = session.path(resource, "one", "scale")
        for change in SCALES:
            await outcome(session, "PUT", path, {**SCALE, **change})
        for change in (
            {"spec": 5},
            {"spec": {"replicas": "1"}},
            {"spec": {"replicas": -1}},
            {"spec": {"replicas": 2**31}},
        ):
            await outcome(session, "PATCH", path, change, media=MERGE_PATCH)

    same(sequence)


PROPERTIES: Final[tuple[JSON, ...]] = (
    {"type": 5}, {"type": "odd"}, {"type": "string", "pattern": 5}, {"type": "string", "pattern": "("}, {"type": "string", "minLength": "x"},
    {"type": "string", "minLength": 1.5}, {"type": "string", "enum": 5}, {"type": "array", "items": 5}, {"type": "array", "items": "x"},
    {"type": "array", "items": [{"type": "string"}]}, {"type": "array", "items": []}, {"type": "array", "items": True}, {"type": "array", "items": None},
    {"type": "object", "properties": 5}, {"type": "object", "required": [5]}, {"type": "object", "additionalProperties": 5},
    {"type": "integer", "minimum": "x"}, {"type": "integer", "nullable": "x"}, {"type": "object", "allOf": {}}, {"type": "object", "not": 5},
    {"type": "string", "pattern": "(?=a)"}, {"type": "string", "pattern": r"(a)\1"}, {"type": "string", "pattern": "(?P<n>a)(?P=n)"},
    {"type": "string", "pattern": "a{1001}"}, {"type": "string", "pattern": "(?>a)"}, {"type": "string", "pattern": "a++"}, {"type": "string", "pattern": r"\Z"},
    {"type": "string", "pattern": "(?(1)a)"}, {"type": "string", "pattern": r"^\p{L}+$"}, {"type": "string", "pattern": r"a\z"}, {"type": "string", "pattern": "[[:alpha:]]"},
    5, "x", [], True, None,
)  # fmt: skip


def test_malformed_schemas_are_refused_alike(same: CheckSame) -> None:
    async def sequence(session: Session) -> None:
        for index, schema in enumerate(PROPERTIES):
            plural = f"things{index}"
            group = f"{session.namespace}.example.com"
            version = {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"a": schema}}},
            }
            names = {"plural": plural, "singular": f"thing{index}", "kind": f"Thing{index}"}
            sent = named(
                f"{plural}.{group}", spec={"group": group, "scope": "Namespaced", "names": names, "versions": [version]}
            )
            identity = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
            await outcome(session, "POST", CRDS, identity | sent, dryRun="All")

    same(sequence)


ENTRY: Final[JSONObject] = {
    "manager": "a",
    "operation": "Apply",
    "apiVersion": "v1",
    "fieldsType": "FieldsV1",
    "fieldsV1": {"f:data": {}},
}
FIELD_SETS: Final[tuple[JSON, ...]] = (
    {"f:data": "a"}, {"f:data": [0]}, {"f:data": 5}, "a", [], 5, None, {"odd": {}}, {"k:{": {}}, {"v:[": {}}, {"i:x": {}}, {"x:y": {}},
    {"k:" + '{"a":' * 60 + "1" + "}" * 60: {}},
)  # fmt: skip
ENTRIES: Final[tuple[JSON, ...]] = (
    5, "x", {}, [5], [None], [{}], [ENTRY | {"manager": 5}], [ENTRY | {"operation": "Odd"}], [ENTRY | {"operation": None}], [ENTRY | {"apiVersion": 5}],
    [ENTRY | {"time": 5}], [ENTRY | {"time": "odd"}], [ENTRY | {"fieldsType": "Odd"}], [ENTRY | {"subresource": "odd"}], [ENTRY | {"subresource": 5}],
    *([ENTRY | {"fieldsV1": fields}] for fields in FIELD_SETS),
)  # fmt: skip


def test_malformed_managed_fields_are_stored_or_refused_alike(same: CheckSame) -> None:
    async def sequence(session: Session) -> None:
        objects = (bent(named("one", data={"a": "1"}), "metadata.managedFields", entries) for entries in ENTRIES)
        await create_each(session, CONFIG_MAPS, objects)

    same(sequence)


METADATA: Final[tuple[tuple[str, JSON], ...]] = (
    ("name", 5), ("name", "A"), ("name", "a" * 254), ("namespace", 5), ("namespace", "other"), ("generateName", 5), ("labels", []),
    ("labels", {"a": 5}), ("labels", {"": "a"}), ("annotations", {"a": None}), ("finalizers", "x"), ("finalizers", [5]), ("finalizers", ["odd"]),
    ("ownerReferences", {}), ("ownerReferences", [{}]), ("ownerReferences", [{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": 5}]),
    ("creationTimestamp", "odd"), ("creationTimestamp", 5), ("creationTimestamp", "2026-13-01T00:00:00Z"), ("creationTimestamp", ""),
    ("deletionTimestamp", "odd"), ("deletionTimestamp", 5), ("resourceVersion", 5), ("resourceVersion", "odd"), ("uid", 5), ("selfLink", 5), ("odd", 5),
)  # fmt: skip


@pytest.mark.parametrize("resource", [CONFIG_MAPS, LEADERWORKERSETS], ids=["ConfigMap", "LeaderWorkerSet"])
def test_malformed_metadata_is_refused_alike(same: CheckSame, resource: Resource) -> None:
    async def sequence(session: Session) -> None:
        for index, (field, value) in enumerate(METADATA):
            base = lws(f"one-{index}") if resource == LEADERWORKERSETS else named(f"one-{index}")
            sent = identified(resource, bent(base, f"metadata.{field}", value))
            await outcome(session, "POST", session.path(resource), sent)

    same(sequence)


def test_nodes_with_unusual_quantities_are_refused_alike(same: CheckSame) -> None:
    async def sequence(session: Session) -> None:
        for index, text in enumerate(("odd", "1e400", "-1", "1.5", "9" * 40, 5, 1.5, True, [])):
            obj = named(f"{session.namespace}-{index}", status={"capacity": {"cpu": text}})
            await outcome(session, "POST", session.path(NODES), identified(NODES, obj), dryRun="All")

    same(sequence)
