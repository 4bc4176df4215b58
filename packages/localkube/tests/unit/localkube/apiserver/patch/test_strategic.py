"""Tests strategic merge patches with the merge keys of pods and Services."""

from typing import Any

import pytest

from localkube.apiserver.model.apierrors import StatusError
from localkube.apiserver.patch import strategic
from localkube.apiserver.types import schemas

POD = schemas.of_struct("Pod")


def patch_spec(spec: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = strategic.apply({"spec": spec}, {"spec": change}, POD)["spec"]
    return found


A, B = {"name": "a", "image": "1"}, {"name": "b", "image": "2"}

CASES: list[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    ("lists of objects merge by key", {"containers": [A, B]}, {"containers": [{"name": "b", "image": "3"}]}, {"containers": [A, B | {"image": "3"}]}),
    ("unknown keys come first", {"containers": [A]}, {"containers": [B]}, {"containers": [B, A]}),
    ("known keys keep others before them", {"containers": [A, B]}, {"containers": [B, {"name": "c"}]}, {"containers": [A, B, {"name": "c"}]}),
    ("an item is deleted by directive", {"containers": [A, B]}, {"containers": [{"$patch": "delete", "name": "a"}]}, {"containers": [B]}),
    ("a list is replaced by directive", {"containers": [A, B]}, {"containers": [{"$patch": "replace"}, B]}, {"containers": [B]}),
    ("an object is replaced by directive", {"securityContext": {"runAsUser": 1}}, {"securityContext": {"$patch": "replace", "fsGroup": 2}}, {"securityContext": {"fsGroup": 2}}),
    ("an object is deleted by directive", {"securityContext": {"runAsUser": 1}}, {"securityContext": {"$patch": "delete"}}, {}),
    ("null deletes a field", {"nodeName": "n"}, {"nodeName": None}, {}),
    ("atomic lists are replaced", {"tolerations": [{"key": "a"}]}, {"tolerations": [{"key": "b"}]}, {"tolerations": [{"key": "b"}]}),
    ("nulls of new objects are dropped", {}, {"securityContext": {"runAsUser": None, "fsGroup": 1}}, {"securityContext": {"fsGroup": 1}}),
    ("keys may be retained", {"volumes": [{"name": "v", "emptyDir": {}}]}, {"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/"}}]}, {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}),
    ("an order may be set", {"containers": [A, B]}, {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}], "containers": [{"name": "a", "image": "9"}]}, {"containers": [B, A | {"image": "9"}]}),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "change", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_strategic_patch_merges_lists_by_key(
    spec: dict[str, Any], change: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert patch_spec(spec, change) == expected


def test_lists_of_scalars_merge_as_sets() -> None:
    obj = {"metadata": {"finalizers": ["a", "b"]}}
    added = strategic.apply(obj, {"metadata": {"finalizers": ["b", "c"]}}, POD)
    assert added["metadata"]["finalizers"] == ["a", "b", "c"]
    removed = strategic.apply(obj, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}, POD)
    assert removed["metadata"]["finalizers"] == ["b"]


def test_items_absent_from_the_set_order_keep_their_position() -> None:
    spec = {"containers": [A, {"name": "sidecar"}, B]}
    change = {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}
    assert [item["name"] for item in patch_spec(spec, change)["containers"]] == ["sidecar", "b", "a"]


def test_apply_leaves_its_input_unchanged() -> None:
    obj = {"spec": {"containers": [dict(A)]}}
    strategic.apply(obj, {"spec": {"containers": [{"name": "a", "image": "9"}]}}, POD)
    assert obj == {"spec": {"containers": [A]}}


@pytest.mark.parametrize(
    ("patch", "text"),
    [
        ({"spec": {"$patch": "explode"}}, 'Invalid value for $patch: "explode"'),
        ({"spec": {"containers": [{"image": "x"}]}}, "does not contain declared merge key: name"),
        ({"metadata": {"$deleteFromPrimitiveList/finalizers": "a"}}, "must be a list"),
    ],
)
def test_malformed_patches_are_refused(patch: Any, text: str) -> None:
    with pytest.raises(StatusError) as caught:
        strategic.apply({}, patch, POD)
    assert caught.value.code == 400
    assert text in caught.value.message
