"""Tests manifests in the Python client, its state before it is opened, and the completion of its iterators."""

import asyncio
import copy
import pickle
from collections.abc import AsyncGenerator, Callable
from dataclasses import fields, replace
from functools import reduce
from typing import Any, Final, Self

import pytest
from testkit.fakes import ScriptedTransport, failure, respond
from testkit.virtualtime import run
from tests.builders import rank_pod

from kuberuntime.client.client import Client as KubernetesClient
from kuberuntime.client.transport import Response
from kuberuntime.errors import ConflictError
from leaderworkerset.api import labels
from leaderworkerset.api.fieldtypes import TYPES
from lwsctl import client
from lwsctl.client import AsyncClient, Client, Container, LogError, LogLine, LogOptions, Manifest, asyncclient, manifest
from lwsctl.client.asyncclient import iterate_callback
from lwsctl.model.groups import Group, Rank
from lwsctl.model.leaderworkerset import View


def test_manifest_has_only_the_given_fields() -> None:
    worker = Container(image="app:1", env={"A": "1"}, ports=[80], resources={"nvidia.com/gpu": 8})
    leader = Container(image="lead:1", command=["serve"], args=["-v"], name="lead")
    made = Manifest(
        name="web", worker=worker, leader=leader, groups=2, size=4, namespace="prod", exclusive_topology="rack"
    ).build()
    assert made["metadata"] == {"name": "web", "namespace": "prod", "annotations": {labels.EXCLUSIVE_TOPOLOGY: "rack"}}
    template = made["spec"]["leaderWorkerTemplate"]
    assert (made["spec"]["replicas"], template["size"]) == (2, 4)
    assert template["workerTemplate"]["spec"]["containers"] == [
        {
            "name": "main",
            "image": "app:1",
            "env": [{"name": "A", "value": "1"}],
            "ports": [{"containerPort": 80}],
            "resources": {"limits": {"nvidia.com/gpu": "8"}},
        }
    ]
    assert template["leaderTemplate"]["spec"]["containers"] == [
        {"name": "lead", "image": "lead:1", "command": ["serve"], "args": ["-v"]}
    ]


BY_DICTIONARY: Final = frozenset(
    {
        "scheduling",
        "rolloutStrategy.type",
        "leaderWorkerTemplate.volumeClaimTemplates",
        "leaderWorkerTemplate.persistentVolumeClaimRetentionPolicy",
    }
)
"""Spec paths without a `Manifest` field. Users can add them to the result of `build`."""


def paths_of_spec(struct: str = "LeaderWorkerSetSpec", prefix: str = "") -> set[str]:
    """Return the spec paths that end at a scalar, a list, or a field that only the dictionary has."""
    found: set[str] = set()
    for name, field in TYPES.fields(struct).items():
        path = f"{prefix}{name}"
        is_leaf = field.shape != "struct" or path in BY_DICTIONARY or field.type == "PodTemplateSpec"
        found |= {path} if is_leaf else paths_of_spec(field.type, f"{path}.")
    return found


def test_manifest_covers_every_field_of_a_spec() -> None:
    templates = {"leaderWorkerTemplate.workerTemplate", "leaderWorkerTemplate.leaderTemplate"}
    assert paths_of_spec() == {*manifest.FIELDS.values()} | BY_DICTIONARY | templates
    others = {"name", "namespace", "labels", "settings", "exclusive_topology", "worker", "leader"}
    assert {field.name for field in fields(Manifest)} == {*manifest.FIELDS} | others


def test_manifest_sets_each_of_its_fields() -> None:
    values: dict[str, Any] = {name: number for number, name in enumerate(manifest.FIELDS)}
    spec = Manifest(name="web", worker=Container(image="app:1"), **values).build()["spec"]
    for name, path in manifest.FIELDS.items():
        assert reduce(lambda value, part: value[part], path.split("."), spec) == values[name]


def test_omitted_fields_are_absent() -> None:
    spec = Manifest(name="web", worker=Container(image="app:1")).build()["spec"]
    assert set(spec) == {"replicas", "startupPolicy", "leaderWorkerTemplate"}
    assert set(spec["leaderWorkerTemplate"]) == {"size", "restartPolicy", "workerTemplate"}


def test_settings_of_a_manifest_are_annotations() -> None:
    web = Manifest(name="web", worker=Container(image="app:1"), settings={"run-to-completion": "true"})
    assert web.build()["metadata"]["annotations"] == {labels.RUN_TO_COMPLETION: "true"}
    with pytest.raises(ValueError, match=r"unknown setting 'run'; use one of .*run-to-completion"):
        replace(web, settings={"run": "true"}).build()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (
            lambda **given: Manifest(name="web", worker=Container(image="a"), **given),
            "Manifest has no field replicas; use groups=…",
        ),
        (lambda **given: Container(image="a", **given), "Container has no field replicas; add it to the dictionary"),
    ],
)
def test_unknown_field_error_names_the_correct_one(make: Callable[..., object], says: str) -> None:
    with pytest.raises(TypeError, match=says):
        make(replicas=2)


def test_manifest_can_be_copied() -> None:
    web = Manifest(name="web", worker=Container(image="app:1"))
    assert copy.deepcopy(web) == web == pickle.loads(pickle.dumps(web))
    assert replace(web, groups=2).groups == 2


def conflict_with(manager: str) -> Response:
    message = f'conflict with "{manager}" using v1'
    cause = {"reason": "FieldManagerConflict", "message": message, "field": ".spec.replicas"}
    return failure(409, "Conflict", message, causes=[cause])


def test_apply_takes_over_fields_of_own_commands_only() -> None:
    web = Manifest(name="web", worker=Container(image="app:1")).build()

    def applied(*answers: Response) -> list[str]:
        transport = ScriptedTransport(*answers)
        run(AsyncClient.over(KubernetesClient(transport), "d").apply(web))
        return [dict(request.query)["force"] for request in transport.requests]

    assert applied(conflict_with("lws-scale"), respond(200, web)) == ["false", "true"]
    with pytest.raises(ConflictError, match="hpa"):
        applied(conflict_with("hpa"))


def test_every_public_name_exists() -> None:
    assert all(hasattr(client, name) for name in client.__all__)


@pytest.mark.virtual_time
async def test_logs_are_read_rank_by_rank() -> None:
    transport = ScriptedTransport(
        respond(200, {"metadata": {"name": "web"}}),
        respond(200, {"items": [rank_pod(1, 1), rank_pod(1, 0)]}),
        respond(200, b"one\ntwo"),
        respond(200, b"three\n"),
    )

    reader = AsyncClient.over(KubernetesClient(transport), "d")
    assert [line async for line in reader.logs("web", LogOptions(group=1, tail=2))] == [
        LogLine(1, 0, "web-1", "one"),
        LogLine(1, 0, "web-1", "two"),
        LogLine(1, 1, "web-1-1", "three"),
    ]
    assert ("tailLines", "2") in transport.requests[2].query


def test_slow_reader_gets_the_newest_view_or_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def produce(put: Callable[[int], None]) -> None:
        for number in range(3):
            put(number)

    async def read(*, newest_only: bool) -> list[int]:
        return [number async for number in iterate_callback(produce, newest_only=newest_only)]

    assert run(read(newest_only=False)) == [0, 1, 2]
    monkeypatch.setattr(asyncclient, "MOST_LINES", 2)
    assert run(read(newest_only=True)) == [2]
    with pytest.raises(LogError, match="2 unread lines; read faster"):
        run(read(newest_only=False))


def test_single_error_of_a_task_group_is_raised_alone() -> None:
    async def produce(put: Callable[[int], None]) -> None:
        put(1)
        async with asyncio.TaskGroup():
            raise LogError("no log")

    async def read() -> None:
        async for _ in iterate_callback(produce):
            pass

    with pytest.raises(LogError, match="no log"):
        run(read())


def test_asynchronous_client_is_open_only_within_its_context() -> None:
    with pytest.raises(RuntimeError, match="use it as a context manager"):
        run(AsyncClient().names())


class Numbers(Client):
    """A client without a cluster, which shows how iterators are forwarded."""

    def __init__(self) -> None:
        super().__init__()
        self.ended = False
        self._inner = self  # type: ignore[assignment]  # it is entered and left like one

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None: ...

    async def numbers(self, end: Exception | None = None) -> AsyncGenerator[int, None]:
        try:
            for number in range(3):
                await asyncio.sleep(0)
                yield number
            if end:
                raise end
        finally:
            self.ended = True


def test_iterators_are_passed_from_the_loop_to_their_end() -> None:
    with Numbers() as client:
        assert list(client._iterate(client.numbers())) == [0, 1, 2]
        with pytest.raises(LogError, match="no log"):
            list(client._iterate(client.numbers(LogError("no log"))))


def test_client_can_be_closed_before_its_iterators() -> None:
    with Numbers() as client:
        numbers = client._iterate(client.numbers())
        assert next(numbers) == 0
    assert client.ended
    with client:
        numbers.close()
    with client:
        others = client._iterate(client.numbers())
        assert next(others) == 0
    with pytest.raises(RuntimeError, match="the client is closed"):
        next(others)


def test_client_opens_with_the_first_call_until_it_is_closed() -> None:
    client = Numbers()
    assert list(client._iterate(client.numbers())) == [0, 1, 2]
    client.close()
    client.close()
    with pytest.raises(RuntimeError, match="the client is closed"):
        next(client._iterate(client.numbers()))


def test_unfinished_iterator_is_closed() -> None:
    with Numbers() as client:
        for _ in client._iterate(client.numbers()):
            break
        assert client.ended


@pytest.mark.parametrize(
    ("wrong", "meant"), [("wrker", "worker"), ("sizes", "size"), ("imgae", "image"), ("images", "image")]
)
def test_misspelled_field_suggests_the_similar_one(wrong: str, meant: str) -> None:
    kind: Any = Container if meant == "image" else Manifest
    with pytest.raises(TypeError, match=f"has no field {wrong}; use {meant}=…"):
        kind(**{wrong: 1})


def test_printed_view_is_a_short_table() -> None:
    ranks = tuple(Rank(group=0, index=at, pod=f"web-0-{at}", state="Running", object={"x": "y" * 999}) for at in (0, 1))
    groups = (Group(index=0, ranks=ranks),)
    seen = View(name="web", namespace="d", ready=0, desired=1, up_to_date=1, created="", groups=groups, object={})
    assert repr(seen) == "View(d/web: 0 of 1 groups ready)"
    assert str(seen).splitlines() == [
        "d/web: 0 of 1 groups ready",
        "GROUP   RANK   POD       STATE     READY   RESTARTS   WHY",
        "0       0      web-0-0   Running   no      0",
        "0       1      web-0-1   Running   no      0",
    ]
