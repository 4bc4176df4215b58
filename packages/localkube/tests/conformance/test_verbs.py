"""Tests the create, get, list, update, patch and delete verbs for each kind, and the table format."""

import pytest
from tests.conformance.conftest import CheckSame
from tests.conformance.objects import CLUSTER_WIDE, SIMPLE, claim, event, named
from tests.conformance.transcript import METADATA, TABLE, Session

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import (
    CONFIG_MAPS,
    CONTROLLER_REVISIONS,
    CORE_EVENTS,
    EVENTS,
    PERSISTENT_VOLUME_CLAIMS,
    Resource,
)

ANY_KIND = (*SIMPLE, *CLUSTER_WIDE)


def words(value: object) -> str:
    """Return the name of the parameter."""
    return value.plural if isinstance(value, Resource) else ""


@pytest.mark.parametrize(("resource", "obj"), ANY_KIND, ids=words)
def test_object_supports_all_verbs(same: CheckSame, resource: Resource, obj: JSONObject) -> None:
    name = obj["metadata"]["name"]

    async def sequence(session: Session) -> None:
        made = await session.create(resource, obj)
        await session.create(resource, obj)
        await session.get(resource, name)
        await session.update(resource, made)
        changed = {**made, "metadata": {**made["metadata"], "labels": {"x": "y"}}}
        await session.update(resource, changed)
        await session.update(resource, {**changed, "metadata": {**changed["metadata"], "labels": {"x": "z"}}})
        await session.get(resource, labelSelector="x=y")
        await session.patch(resource, name, {"metadata": {"annotations": {"a": "b"}}})
        await session.get(resource, name, accept=METADATA)
        await session.get(resource, name, accept=TABLE)
        await session.get(resource, accept=TABLE, labelSelector="x=y", includeObject="None")
        await session.delete(resource, name, gracePeriodSeconds=0)
        await session.get(resource, name)
        await session.delete(resource, name)

    same(sequence)


def test_claim_supports_all_verbs(same: CheckSame) -> None:
    async def sequence(session: Session) -> None:
        await session.create(PERSISTENT_VOLUME_CLAIMS, claim("one"))
        await session.patch(PERSISTENT_VOLUME_CLAIMS, "one", {"metadata": {"finalizers": None, "labels": {"a": "b"}}})
        await session.patch(PERSISTENT_VOLUME_CLAIMS, "one", {"spec": {"accessModes": ["ReadWriteMany"]}})
        await session.patch(PERSISTENT_VOLUME_CLAIMS, "one", {"spec": {"volumeName": "v"}})
        await session.patch(PERSISTENT_VOLUME_CLAIMS, "one", {"status": {"phase": "Bound"}}, subresource="status")
        await session.get(PERSISTENT_VOLUME_CLAIMS, "one", accept=TABLE)
        await session.delete(PERSISTENT_VOLUME_CLAIMS, "one")
        await session.get(PERSISTENT_VOLUME_CLAIMS, "one")

    same(sequence)


def test_event_is_served_in_both_groups(same: CheckSame) -> None:
    async def sequence(session: Session) -> None:
        await session.create(CORE_EVENTS, event("one", session.namespace))
        await session.get(CORE_EVENTS, "one")
        await session.get(EVENTS, "one")
        await session.get(EVENTS, accept=TABLE)
        await session.get(CORE_EVENTS, fieldSelector="involvedObject.name=web-0,reason=Tested")
        modern = named(
            "two", eventTime="2026-01-02T03:04:05.000006Z", reportingController="test/c", reportingInstance="i"
        )
        modern |= {"action": "Test", "reason": "Tested", "note": "it works", "type": "Normal"}
        modern |= {"regarding": {"kind": "Pod", "namespace": session.namespace, "name": "web-0", "apiVersion": "v1"}}
        await session.create(EVENTS, modern)
        await session.get(CORE_EVENTS, "two")
        await session.create(
            EVENTS, {**modern, "metadata": {"name": "three"}, "type": "Odd", "reportingController": ""}
        )
        await session.create(CORE_EVENTS, event("four", "elsewhere"))

    same(sequence)


def test_revision_data_keeps_its_bytes(same: CheckSame) -> None:
    data = b'{"a":"\\u003c\\u0026\\u003e","b":[1,1.5],"spec":{"z":"\xc3\xa9","\\u003ck\\u003e":"<"}}'
    body = (
        b'{"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{"name":"one"},"revision":1,"data":%s}' % data
    )

    async def sequence(session: Session) -> None:
        await session.send("POST", session.path(CONTROLLER_REVISIONS), body)
        await session.send("GET", session.path(CONTROLLER_REVISIONS, "one"), raw="data")
        await session.send("GET", session.path(CONTROLLER_REVISIONS), raw="data")

    same(sequence)


def test_special_characters_are_escaped_alike(same: CheckSame) -> None:
    async def sequence(session: Session) -> None:
        await session.create(CONFIG_MAPS, named("one", data={"a": '<é&>\u2028\x01"\\/\U0001f600'}))
        await session.send("GET", session.path(CONFIG_MAPS, "one"), raw="data")

    same(sequence)
