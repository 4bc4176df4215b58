"""Tests requests for missing objects, and malformed requests."""

import pytest
from testkit.customkind import LEADERWORKERSETS
from tests.conformance.conftest import CheckSame
from tests.conformance.objects import named, pod
from tests.conformance.transcript import Session, identified

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CONFIG_MAPS, PODS, STATEFULSETS, Resource

PATHS = (
    "/api/v1/odd", "/api/v1/namespaces/default/odd", "/apis/odd/v1/things", "/apis/apps/v9/statefulsets", "/apis/apps/v1/odd/x",
    "/api/v1/namespaces/default/pods/absent", "/api/v1/namespaces/default/pods/absent/status", "/api/v1/pods/absent",
    "/api/v1/namespaces/default/configmaps/x/status", "/api/v1/namespaces/default/configmaps/x/scale", "/api/v1/nodes/absent",
    "/api/v1/namespaces/default/pods/absent/log", "/apis/apps/v1/namespaces/default/statefulsets/absent/scale",
    "/apis/leaderworkerset.x-k8s.io/v1/namespaces/default/leaderworkersets/absent/scale", "/apis/leaderworkerset.x-k8s.io/v1/odd",
    "/api/v1/namespaces/default/pods/a/b/c", "/api/v1/namespaces/absent",
)  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
def test_unknown_paths_are_refused(same: CheckSame, method: str, path: str) -> None:
    async def sequence(session: Session) -> None:
        media = "application/merge-patch+json" if method == "PATCH" else "application/json"
        await session.send(method, path, None if method in {"GET", "DELETE"} else {}, media=media)

    same(sequence)


BODIES: tuple[object, ...] = (
    b"", b"{", b"null", b"[]", b'"text"', b"1", b"{}", b'{"kind":"ConfigMap"}', b'{"apiVersion":"v1"}',
    b'{"apiVersion":"v1","kind":"ConfigMap"}', b'{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}',
    b'{"apiVersion":"v2","kind":"ConfigMap","metadata":{"name":"a"}}', b'{"apiVersion":"apps/v1","kind":"ConfigMap","metadata":{"name":"a"}}',
    b'{"apiVersion":"v1","kind":"ConfigMap","metadata":[]}', b'{"apiVersion":1,"kind":"ConfigMap"}', b"\xff\xfe",
    b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":"1","a":"2"}}',
    b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"},"data":{"a":null}}',
)  # fmt: skip


@pytest.mark.parametrize("body", BODIES, ids=str)
def test_request_bodies_are_decoded(same: CheckSame, body: object) -> None:
    async def sequence(session: Session) -> None:
        await session.send("POST", session.path(CONFIG_MAPS), body)
        await session.send("POST", session.path(LEADERWORKERSETS), body)

    same(sequence)


def test_formats_are_negotiated(same: CheckSame) -> None:
    async def sequence(session: Session) -> None:
        yaml = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\ndata: {a: 'on', b: \"1\"}\n"
        await session.send("POST", session.path(CONFIG_MAPS), yaml, media="application/yaml")
        await session.send("POST", session.path(CONFIG_MAPS), yaml, media="text/plain")
        await session.send("POST", session.path(CONFIG_MAPS), yaml.replace(b"'on'", b"on"), media="application/yaml")
        for accept in (
            "text/html",
            "application/odd",
            "*/*",
            "application/json;as=Odd;v=v1;g=meta.k8s.io",
            "application/json;as=Table;v=v2;g=meta.k8s.io",
        ):
            await session.get(CONFIG_MAPS, "one", accept=accept)
        await session.send("GET", session.path(CONFIG_MAPS, "one"), pretty="true")

    same(sequence)


VALIDATIONS = ("", "Ignore", "Warn", "Strict", "Odd")


@pytest.mark.parametrize("validation", VALIDATIONS)
def test_unknown_and_duplicate_fields_are_reported(same: CheckSame, validation: str) -> None:
    async def sequence(session: Session) -> None:
        odd = pod("one", odd=1)
        odd["spec"]["containers"][0] |= {"odd": {}, "env": [{"name": "a", "odd": 1}]}
        await session.create(PODS, odd | {"odd": []}, fieldValidation=validation)
        double = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","name":"b"},"data":{"a":"1","a":"2"},"odd":1}'
        await session.send("POST", session.path(CONFIG_MAPS), double, fieldValidation=validation)
        await session.create(STATEFULSETS, named("one", spec={"odd": 1}), fieldValidation=validation)

    same(sequence)


DOCUMENTS = (
    "/api",
    "/apis",
    "/api/v1",
    "/apis/apps",
    "/apis/apps/v1",
    "/apis/leaderworkerset.x-k8s.io",
    "/apis/leaderworkerset.x-k8s.io/v1",
)


@pytest.mark.parametrize("path", DOCUMENTS[5:])
def test_kinds_are_discovered(same: CheckSame, path: str) -> None:
    async def sequence(session: Session) -> None:
        await session.send("GET", path)

    same(sequence)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
@pytest.mark.parametrize("resource", [LEADERWORKERSETS, STATEFULSETS], ids=["LeaderWorkerSet", "StatefulSet"])
def test_objects_above_the_etcd_limit_are_refused(same: CheckSame, resource: Resource) -> None:
    """For 2 MiB or more, the etcd client rejects requests with a different message and the same code."""

    async def sequence(session: Session) -> None:
        for name, length in (("little", 10), ("much", 1_400_000), ("more", 1_600_000)):
            await session.create(resource, with_argument(resource, name, length))
        change = identified(resource, with_argument(resource, "little", 1_600_000))
        path = session.path(resource, "little")
        await session.send("PATCH", path, change, media="application/merge-patch+json")
        await session.send(
            "PATCH", path, change, media="application/apply-patch+yaml", fieldManager="somebody", force="true"
        )
        await session.create(resource, with_argument(resource, "more", 1_600_000), dryRun="All")
        await session.get(resource, "little")
        await session.get(resource, "more")

    same(sequence)


def with_argument(resource: Resource, name: str, length: int) -> JSONObject:
    """Return an object with a container argument of this length."""
    pod_template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "main", "image": "app:1", "args": ["x" * length]}]},
    }
    if resource == LEADERWORKERSETS:
        return named(name, spec={"leaderWorkerTemplate": {"workerTemplate": pod_template}})
    selector = {"matchLabels": {"a": "b"}}
    return named(name, spec={"serviceName": "web", "selector": selector, "template": pod_template})
