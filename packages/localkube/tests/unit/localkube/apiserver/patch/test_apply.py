"""Tests server-side apply with two managers, in the scenarios from the Kubernetes documentation."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localkube.apiserver.builtin.configuration import CONFIG_MAP
from localkube.apiserver.builtin.pods import POD
from localkube.apiserver.builtin.statefulsets import STATEFULSET
from localkube.apiserver.model.apierrors import StatusError
from localkube.apiserver.patch import ownership
from localkube.apiserver.patch.apply import apply
from localkube.apiserver.patch.ownership import Writer, WriteType

CONFIG_MAPS, PODS, SETS = CONFIG_MAP.kind(), POD.kind(), STATEFULSET.kind()
Object = dict[str, Any]


def writer(manager: str, operation: WriteType = "Apply", *, second: int = 0, subresource: str = "") -> Writer:
    return Writer(manager, operation, "v1", f"2026-01-01T00:00:0{second}Z", subresource)


def config_map(data: dict[str, str] | None = None, **metadata: Any) -> Object:
    content = {} if data is None else {"data": data}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", **metadata}} | content


def test_other_value_for_an_owned_field_is_a_conflict() -> None:
    stored = apply(CONFIG_MAPS, None, config_map({"a": "1"}), writer("one"))
    with pytest.raises(StatusError) as caught:
        apply(CONFIG_MAPS, stored, config_map({"a": "2"}), writer("two"))
    assert (caught.value.code, caught.value.reason) == (409, "Conflict")
    assert caught.value.message == 'Apply failed with 1 conflict: conflict with "one": .data.a'
    assert caught.value.details == {
        "causes": [{"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".data.a"}]
    }


def template(*containers: Object, **fields: Any) -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "s"},
        "spec": {"template": {"spec": {"containers": list(containers)}}} | fields,
    }


def test_list_with_duplicate_items_is_replaced_completely() -> None:
    stored = template({"name": "a", "env": [{"name": "X"}, {"name": "X"}]})
    found = apply(
        SETS, stored, template({"name": "a", "env": [{"name": "X", "value": "1"}]}), writer("one"), force=True
    )
    assert found["spec"]["template"]["spec"]["containers"][0]["env"] == [{"name": "X", "value": "1"}]


DATA = st.dictionaries(st.sampled_from("abcd"), st.sampled_from("12"), max_size=4)


@settings(max_examples=40)
@given(DATA, DATA, DATA)
def test_second_apply_changes_nothing(first: dict[str, str], other: dict[str, str], again: dict[str, str]) -> None:
    stored = apply(CONFIG_MAPS, None, config_map(first), writer("one"))
    stored = apply(CONFIG_MAPS, stored, config_map(other), writer("two"), force=True)
    once = apply(CONFIG_MAPS, stored, config_map(again), writer("one"), force=True)
    assert apply(CONFIG_MAPS, once, config_map(again), writer("one"), force=True) == once
    assert {key: once.get("data", {})[key] for key in again} == again
    kept = {key: value for key, value in other.items() if key not in again}
    assert once.get("data", {}) == again | kept, "what two wants stays; what only one wanted is gone"


LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def test_kubectl_takes_over_its_client_side_fields() -> None:
    annotation = '{"apiVersion":"v1","data":{"a":"1","b":"1"},"kind":"ConfigMap","metadata":{"name":"m"}}'
    made = config_map({"a": "1", "b": "9"}, annotations={LAST_APPLIED: annotation})
    stored = ownership.track_fields(CONFIG_MAPS, None, made, writer("kubectl-client-side-apply", "Update"))
    taken = apply(CONFIG_MAPS, stored, config_map({"a": "2"}), writer("kubectl"))
    assert taken["data"] == {"a": "2", "b": "9"}
    assert '"a":"2"' in taken["metadata"]["annotations"][LAST_APPLIED], "the annotation tells what was applied last"
    with pytest.raises(StatusError, match=r"1 conflict.*: \.data\.b"):
        apply(CONFIG_MAPS, stored, config_map({"a": "2", "b": "2"}), writer("kubectl"))
    with pytest.raises(StatusError, match=r"1 conflict.*: \.data\.a"):
        apply(CONFIG_MAPS, stored, config_map({"a": "2"}), writer("other"))


def test_malformed_last_applied_annotation_is_ignored() -> None:
    made = config_map({"a": "1"}, annotations={LAST_APPLIED: "{"})
    stored = ownership.track_fields(CONFIG_MAPS, None, made, writer("someone", "Update"))
    with pytest.raises(StatusError, match="1 conflict"):
        apply(CONFIG_MAPS, stored, config_map({"a": "2"}), writer("kubectl"))


def test_duplicate_key_is_rejected_with_its_path() -> None:
    env = [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]
    with pytest.raises(StatusError) as caught:
        apply(SETS, None, template({"name": "main", "env": env}), writer("one"))
    path = '.spec.template.spec.containers[name="main"].env: duplicate entries for key [name="A"]'
    assert str(caught.value).endswith(path)
