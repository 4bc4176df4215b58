"""Tests volume files that are generated from API objects."""

from typing import Any

import pytest
from tests.kubeletpods import container, pod

from kuberuntime.objects import quantity
from kuberuntime.objects.meta import JSONObject
from localkube.kubelet.spec.environment import EnvironmentInputs, ReferencedObjects
from localkube.kubelet.spec.fieldref import NodeFacts
from localkube.kubelet.spec.podspec import SpecError
from localkube.kubelet.volumes import payload
from localkube.kubelet.volumes.payload import File

SOURCES = ReferencedObjects(
    {"settings": {"a": b"1", "b": b"2"}, "mixed": {"a": b"1"}}, {"token": {"t": b"s"}}, {"mixed": {"blob": b"\xff"}}
)
POD = pod(
    container(resources={"limits": {"memory": "64Mi"}}),
    metadata={"annotations": {"note": 'say "hi"\nbye'}, "labels": {}},
)


def build(volume: JSONObject, **fields: Any) -> dict[str, tuple[bytes, int]]:
    node = NodeFacts("127.0.0.1", {"cpu": quantity.parse("8")})
    context = EnvironmentInputs(pod=POD, ip="", node=node, sources=SOURCES, **fields)
    return {path: (file.content, file.mode) for path, file in payload.build({"name": "v", **volume}, context).items()}


def test_config_map_has_a_file_per_key() -> None:
    assert build({"configMap": {"name": "settings"}}) == {"a": (b"1", 0o644), "b": (b"2", 0o644)}


def test_binary_data_becomes_files() -> None:
    assert build({"configMap": {"name": "mixed"}}) == {"a": (b"1", 0o644), "blob": (b"\xff", 0o644)}


def test_items_select_keys_paths_and_modes() -> None:
    items = [{"key": "a", "path": "sub/x", "mode": 0o400}, {"key": "b", "path": "y"}]
    volume = {"configMap": {"name": "settings", "defaultMode": 0o600, "items": items}}
    assert build(volume) == {"sub/x": (b"1", 0o400), "y": (b"2", 0o600)}


def test_secret_is_read_by_its_secret_name() -> None:
    assert build({"secret": {"secretName": "token", "defaultMode": 0o400}}) == {"t": (b"s", 0o400)}


def test_fields_and_resources_become_files() -> None:
    items = [
        {"path": "notes", "fieldRef": {"fieldPath": "metadata.annotations"}},
        {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}},
        {
            "path": "memory",
            "resourceFieldRef": {"containerName": "main", "resource": "limits.memory", "divisor": "1Mi"},
        },
    ]
    found = build({"downwardAPI": {"items": items}})
    assert {path: content for path, (content, _) in found.items()} == {
        "notes": b'note="say \\"hi\\"\\nbye"',
        "name": b"web-0",
        "memory": b"64",
    }


def test_projected_volume_joins_its_sources() -> None:
    sources = [
        {"configMap": {"name": "settings", "items": [{"key": "a", "path": "a"}]}},
        {"secret": {"name": "token"}},
        {"downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
    ]
    found = build({"projected": {"sources": sources, "defaultMode": 0o440}})
    assert found == {"a": (b"1", 0o440), "t": (b"s", 0o440), "name": (b"web-0", 0o440)}


@pytest.mark.parametrize(
    ("volume", "text"),
    [
        ({"configMap": {"name": "no"}}, 'configmap "no" not found'),
        ({"secret": {"secretName": "no"}}, 'secret "no" not found'),
        ({"configMap": {"name": "settings", "items": [{"key": "z", "path": "z"}]}}, "has no key z"),
        ({"configMap": {"name": "settings", "items": [{"key": "a", "path": "../z"}]}}, "must be a relative path"),
        ({"projected": {"sources": [{"serviceAccountToken": {}}]}}, "not serviceAccountToken"),
    ],
)
def test_missing_source_is_named(volume: JSONObject, text: str) -> None:
    with pytest.raises(SpecError, match=text):
        build(volume)


def test_missing_optional_sources_are_omitted() -> None:
    assert build({"configMap": {"name": "no", "optional": True}}) == {}
    assert build({"secret": {"secretName": "no"}}, skips_missing_sources=True) == {}


def test_projected_tokens_are_omitted_in_a_rehearsal() -> None:
    sources = [{"serviceAccountToken": {"path": "token"}}, {"configMap": {"name": "settings"}}]
    assert set(build({"projected": {"sources": sources}}, is_dry_run=True)) == {"a", "b"}


def test_references_name_all_sources() -> None:
    sources = [{"configMap": {"name": "c1"}}, {"secret": {"name": "s1"}}]
    assert payload.references({"name": "v", "projected": {"sources": sources}}) == ({"c1"}, {"s1"})
    assert payload.references({"name": "v", "secret": {"secretName": "s2"}}) == (set(), {"s2"})
    assert payload.references({"name": "v", "emptyDir": {}}) == (set(), set())


def test_files_are_equal_by_content_and_mode() -> None:
    assert File(b"x", 0o644) == File(b"x", 0o644) != File(b"x", 0o600)
