"""Tests strategic merge patches with the merge keys of pods and Services."""

from localkube.apiserver.patch import strategic
from localkube.apiserver.types import schemas

POD = schemas.struct_schema("Pod")


A, B = {"name": "a", "image": "1"}, {"name": "b", "image": "2"}


def test_apply_leaves_its_input_unchanged() -> None:
    obj = {"spec": {"containers": [dict(A)]}}
    strategic.apply(obj, {"spec": {"containers": [{"name": "a", "image": "9"}]}}, POD)
    assert obj == {"spec": {"containers": [A]}}
