"""Tests an upgrade from the previous version and a downgrade, with a cluster of version 0.1.0.

`packages/leaderworkerset/tests/vectors/release-0.1.0.tar.xz` is the directory of a cluster that `lws up` of 0.1.0 ran:
objects, definitions, options, and recorded failures. In it `web` was rolled once, `keyed` has random keys, `split` is a
DisaggregatedSet, and `fails` was recreated and waits. 0.1.0 was never published: `tests/predecessor.py` has it from the
history.
"""

import json
import sqlite3
import tarfile
from pathlib import Path

import pytest
from tests import predecessor
from tests.e2e.harness import ROOT, LocalCluster, Shell

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.kinds.managedkinds import MANAGED

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]

LEFT = ROOT / "packages/leaderworkerset/tests/vectors/release-0.1.0.tar.xz"
SETTLED = ("web", "keyed", "split")
KINDS = (
    "leaderworkersets.",
    "disaggregatedsets.",
    "statefulsets.",
    "deployments.",
    "controllerrevisions.",
    "services",
    "pods",
)
"""The resources whose objects must not change. `services` and `pods` have no API group."""


def stored(directory: Path) -> dict[tuple[str, str], JSONObject]:
    """Return the objects of a stopped cluster by resource and name."""
    query = "SELECT o.resource, o.name, h.value FROM objects o JOIN history h USING (revision) WHERE o.namespace = 'default'"
    with sqlite3.connect(f"file:{directory / 'state.db'}?mode=ro", uri=True) as connection:
        return {(resource, name): json.loads(value) for resource, name, value in connection.execute(query)}


def lasting(directory: Path) -> dict[tuple[str, str], JSONObject]:
    """Return the fields that an upgrade must not change: identity, metadata of this project, spec and data."""
    return {
        place: {
            "spec": obj.get("spec"),
            "data": obj.get("data"),
            "revision": obj.get("revision"),
            **{
                name: obj["metadata"].get(name) for name in ("uid", "generation", "labels", "annotations", "finalizers")
            },
        }
        for place, obj in stored(directory).items()
        if place[0].startswith(KINDS) and place[1].startswith(SETTLED)
    }


@pytest.fixture
def left(shell: Shell) -> Path:
    directory = shell.state / "default"
    directory.mkdir(parents=True)
    with tarfile.open(LEFT) as archive:
        archive.extractall(directory, filter="data")
    (directory / "lock").touch()  # the lock marks the directory as that of a cluster
    return directory


def test_state_of_the_previous_version_is_continued(shell: Shell, left: Path) -> None:
    before = lasting(left)
    assert {resource.partition(".")[0] for resource, _ in before} == {kind.partition(".")[0] for kind in KINDS}
    cluster = LocalCluster(shell, "default")
    shell.lws("up", "--detach")
    for name in SETTLED:
        cluster.lws("wait", name, "--timeout=60")
    assert "recreated 1 time" in cluster.lws("get", "fails")
    recorded = json.loads(cluster.lws("history", "fails", "-o", "json"))["items"]
    assert [one["outcome"] for one in recorded[:2]] == ["recreated", "failed"]
    shell.lws("down")
    assert lasting(left) == before
    shell.lws("up", "--detach")
    assert cluster.lws("rollout", "undo", "web") == "web rolled back to revision 1\n"
    cluster.lws("rollout", "status", "web", "--timeout=60")
    assert "value: small" in cluster.lws("get", "web", "-o", "yaml")


def test_no_field_of_the_previous_definitions_is_lost(left: Path) -> None:
    """The field types must not change, so that stored values are neither dropped nor rejected."""
    query = "SELECT h.value FROM objects o JOIN history h USING (revision) WHERE o.resource LIKE 'customresourcedefinitions%'"
    with sqlite3.connect(f"file:{left / 'state.db'}?mode=ro", uri=True) as connection:
        former = {obj["metadata"]["name"]: obj for obj in (json.loads(value) for (value,) in connection.execute(query))}
    current = {definition["metadata"]["name"]: definition for definition in MANAGED.definitions()}
    assert former.keys() <= current.keys()
    assert former
    assert [loss for name in former for loss in losses(schema(former[name]), schema(current[name]), name)] == []


def schema(definition: JSONObject) -> JSONObject:
    (version,) = definition["spec"]["versions"]
    found: JSONObject = version["schema"]["openAPIV3Schema"]
    return found


def losses(before: JSONObject, after: JSONObject, path: str) -> list[str]:
    """Return the fields of the old schema that are missing or have a different type in the new schema."""
    if before.get("type") != after.get("type"):
        return [f"{path}: was {before.get('type')}, is {after.get('type')}"]
    now = after.get("properties", {})
    found = [f"{path}.{name} is gone" for name in before.get("properties", {}) if name not in now]
    found += [
        f"{path}.{name} is required now" for name in set(after.get("required", ())) - set(before.get("required", ()))
    ]
    both = [(name, one) for name, one in before.get("properties", {}).items() if name in now]
    found += [loss for name, one in both for loss in losses(one, now[name], f"{path}.{name}")]
    return found + (losses(before["items"], after.get("items", {}), f"{path}[]") if "items" in before else [])


def test_lost_field_is_detected() -> None:
    text, number = {"type": "string"}, {"type": "integer"}
    before = {"type": "object", "properties": {"a": text, "b": {"type": "array", "items": text}, "c": text}}
    after = {"type": "object", "properties": {"a": number, "b": {"type": "array", "items": number}}, "required": ["b"]}
    assert sorted(losses(before, after, "x")) == [
        "x.a: was string, is integer",
        "x.b is required now",
        "x.b[]: was string, is integer",
        "x.c is gone",
    ]


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources of the previous version, if the history of this clone contains them."""
    return predecessor.sources(tmp_path_factory.mktemp("earlier"))


def test_previous_version_continues_after_a_downgrade(shell: Shell, left: Path, earlier: Path) -> None:
    """The downgrade preserves a LeaderWorkerSet that was created with this version."""
    cluster = LocalCluster(shell, "default")
    shell.lws("up", "--detach")
    cluster.lws("scale", "web", "--replicas=1")
    for name in SETTLED:
        cluster.lws("wait", name, "--timeout=60")
    shell.lws("down")
    after = lasting(left)
    back = Shell(
        shell.base, {**shell.environment, **predecessor.environment(earlier)}, shell.base, "leaderworkerset.cli"
    )
    assert back.run([*back.program, "version"]).stdout == "lws 0.1.0\n"
    back.lws("up", "--detach")
    for name in SETTLED:
        back.lws("wait", "--local", name, "--timeout=60")
    assert "fails/0/1" in back.lws("history", "--local", "fails").stdout
    back.lws("down")
    assert lasting(left) == after
