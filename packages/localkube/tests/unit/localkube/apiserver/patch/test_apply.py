"""Tests server-side apply with two managers, in the scenarios of the Kubernetes documentation."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

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


def owners(obj: Object) -> dict[str, Any]:
    return {f"{entry['manager']}/{entry['operation']}": entry["fieldsV1"] for entry in obj["metadata"]["managedFields"]}


def test_apply_creates_the_object_and_owns_its_fields() -> None:
    created = apply(CONFIG_MAPS, None, config_map({"a": "1"}, labels={"x": "y"}), writer("one"))
    assert created["data"] == {"a": "1"}
    assert created["metadata"]["managedFields"] == [
        {
            "manager": "one",
            "operation": "Apply",
            "apiVersion": "v1",
            "time": "2026-01-01T00:00:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {"f:a": {}}, "f:metadata": {"f:labels": {"f:x": {}}}},
        }
    ]


def test_two_managers_share_an_object() -> None:
    first = apply(CONFIG_MAPS, None, config_map({"a": "1"}), writer("one"))
    both = apply(CONFIG_MAPS, first, config_map({"b": "2"}), writer("two", second=1))
    assert both["data"] == {"a": "1", "b": "2"}
    assert owners(both) == {"one/Apply": {"f:data": {"f:a": {}}}, "two/Apply": {"f:data": {"f:b": {}}}}


def test_field_is_removed_when_its_only_manager_drops_it() -> None:
    both = apply(CONFIG_MAPS, None, config_map({"a": "1", "b": "2"}), writer("one"))
    both = apply(CONFIG_MAPS, both, config_map({"b": "2"}), writer("two"))
    left = apply(CONFIG_MAPS, both, config_map({}), writer("one"))
    assert left["data"] == {"b": "2"}, "b is still wanted by two"
    assert owners(left) == {"one/Apply": {"f:data": {}}, "two/Apply": {"f:data": {"f:b": {}}}}
    alone = apply(CONFIG_MAPS, left, config_map(), writer("two"))
    assert alone["data"] == {}, "one still wants the map itself"


def test_other_value_for_an_owned_field_is_a_conflict() -> None:
    stored = apply(CONFIG_MAPS, None, config_map({"a": "1"}), writer("one"))
    with pytest.raises(StatusError) as caught:
        apply(CONFIG_MAPS, stored, config_map({"a": "2"}), writer("two"))
    assert (caught.value.code, caught.value.reason) == (409, "Conflict")
    assert caught.value.message == 'Apply failed with 1 conflict: conflict with "one": .data.a'
    assert caught.value.details == {
        "causes": [{"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".data.a"}]
    }


def test_several_conflicts_are_listed_by_manager() -> None:
    stored = apply(CONFIG_MAPS, None, config_map({"a": "1", "b": "1"}), writer("one"))
    stored = ownership.track(CONFIG_MAPS, stored, stored | {"data": {"a": "1", "b": "9"}}, writer("edit", "Update"))
    with pytest.raises(StatusError) as caught:
        apply(CONFIG_MAPS, stored, config_map({"a": "2", "b": "2"}), writer("two"))
    assert caught.value.message == (
        'Apply failed with 2 conflicts: conflicts with "edit" using v1:\n- .data.b\nconflicts with "one":\n- .data.a'
    )


def test_same_value_is_shared_without_a_conflict() -> None:
    stored = apply(CONFIG_MAPS, None, config_map({"a": "1"}), writer("one"))
    shared = apply(CONFIG_MAPS, stored, config_map({"a": "1"}), writer("two"))
    assert owners(shared) == {"one/Apply": {"f:data": {"f:a": {}}}, "two/Apply": {"f:data": {"f:a": {}}}}
    given_up = apply(CONFIG_MAPS, shared, config_map(), writer("one"))
    assert given_up["data"] == {"a": "1"}
    assert owners(given_up) == {"two/Apply": {"f:data": {"f:a": {}}}}


def test_forced_apply_takes_over_the_field() -> None:
    stored = apply(CONFIG_MAPS, None, config_map({"a": "1"}), writer("one"))
    forced = apply(CONFIG_MAPS, stored, config_map({"a": "2"}), writer("two"), force=True)
    assert forced["data"] == {"a": "2"}
    assert owners(forced) == {"two/Apply": {"f:data": {"f:a": {}}}}


def test_update_takes_over_changed_fields() -> None:
    stored = apply(CONFIG_MAPS, None, config_map({"a": "1"}), writer("one"))
    edited = ownership.track(CONFIG_MAPS, stored, stored | {"data": {"a": "2"}}, writer("edit", "Update"))
    assert owners(edited) == {"edit/Update": {"f:data": {"f:a": {}}}}
    with pytest.raises(StatusError, match='conflict with "edit" using v1'):
        apply(CONFIG_MAPS, edited, config_map({"a": "1"}), writer("one"))


def test_removed_field_has_no_owner() -> None:
    stored = apply(CONFIG_MAPS, None, config_map({"a": "1", "b": "2"}), writer("one"))
    edited = ownership.track(CONFIG_MAPS, stored, stored | {"data": {"b": "2"}}, writer("edit", "Update"))
    assert owners(edited) == {"one/Apply": {"f:data": {"f:b": {}}}}


def test_object_without_managers_belongs_to_before_first_apply() -> None:
    stored = config_map({"a": "1"})
    with pytest.raises(StatusError, match="before-first-apply"):
        apply(CONFIG_MAPS, stored, config_map({"a": "2"}), writer("one"))
    taken = apply(CONFIG_MAPS, stored, config_map({"a": "2"}), writer("one"), force=True)
    assert owners(taken) == {"one/Apply": {"f:data": {"f:a": {}}}, "before-first-apply/Update": {"f:data": {}}}


def test_managed_fields_of_lazy_kinds_start_with_an_apply() -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    assert ownership.track(PODS, None, pod, writer("kubectl", "Update")) is pod


def test_creator_owns_all_non_zero_values() -> None:
    pod = PODS.prepare(
        "create",
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"a": "b"}}, "spec": {
            "containers": [{"name": "c", "image": "x:1"}], "volumes": [{"name": "v"}]}},
        None,
    )  # fmt: skip
    tracked = ownership.track(replace(PODS, lazily_owned=False), None, pod, writer("kubectl", "Update"))
    fields = owners(tracked)["kubectl/Update"]
    assert fields["f:metadata"] == {"f:labels": {".": {}, "f:a": {}}}
    assert fields["f:spec"]["f:volumes"] == {".": {}, 'k:{"name":"v"}': {".": {}, "f:emptyDir": {}, "f:name": {}}}
    assert "." not in fields["f:spec"]["f:containers"], "Go always writes the list, so nobody adds it"
    assert fields["f:spec"]["f:containers"]['k:{"name":"c"}']["f:resources"] == {}
    assert "f:status" not in fields


def template(*containers: Object, **fields: Any) -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "s"},
        "spec": {"template": {"spec": {"containers": list(containers)}}} | fields,
    }


def names(obj: Object) -> list[str]:
    return [container["name"] for container in obj["spec"]["template"]["spec"]["containers"]]


def test_list_items_are_merged_by_key_in_applied_order() -> None:
    stored = apply(SETS, None, template({"name": "a"}, {"name": "b", "image": "1"}), writer("one"))
    stored = apply(SETS, stored, template({"name": "side", "image": "s"}), writer("two"))
    assert names(stored) == ["a", "b", "side"]
    moved = apply(SETS, stored, template({"name": "b", "image": "2"}, {"name": "a"}), writer("one"))
    assert names(moved) == ["b", "a", "side"]
    dropped = apply(SETS, moved, template({"name": "a"}), writer("one"))
    assert names(dropped) == ["a", "side"]


def test_dropped_item_is_removed_with_its_defaults() -> None:
    stored = SETS.prepare("create", apply(SETS, None, template({"name": "a"}, {"name": "b"}), writer("one")), None)
    left = apply(SETS, stored, template({"name": "a"}), writer("one"))
    assert names(left) == ["a"]


def test_dropped_struct_keeps_fields_of_other_managers() -> None:
    """Fields that are removed from the template are deleted if the same manager owned them (R-LSTS-1)."""
    stored = apply(SETS, None, template(updateStrategy={"type": "OnDelete"}, replicas=3), writer("lws"))
    scaled = ownership.track(
        SETS,
        stored,
        stored | {"spec": stored["spec"] | {"replicas": 5}},
        writer("scale", "Update", subresource="scale"),
    )
    left = apply(SETS, scaled, template(), writer("lws"))
    assert left["spec"]["replicas"] == 5
    assert "updateStrategy" not in left["spec"] or left["spec"]["updateStrategy"] == {}


def test_status_belongs_to_its_subresource() -> None:
    stored = apply(SETS, None, template(replicas=1) | {"status": {"replicas": 9}}, writer("lws"))
    assert owners(stored)["lws/Apply"]["f:spec"]["f:replicas"] == {}
    assert "f:status" not in owners(stored)["lws/Apply"]
    status = stored | {"status": {"replicas": 1}}
    tracked = ownership.track(SETS, stored, status, writer("controller", "Update", subresource="status"))
    entry = next(one for one in tracked["metadata"]["managedFields"] if one["manager"] == "controller")
    assert (entry["subresource"], entry["fieldsV1"]) == ("status", {"f:status": {"f:replicas": {}}})


def test_apply_without_changes_writes_nothing() -> None:
    stored = apply(CONFIG_MAPS, None, config_map({"a": "1"}), writer("one"))
    again = apply(CONFIG_MAPS, stored, config_map({"a": "1"}), writer("one", second=9))
    assert again == stored, "not even its time is new"
    other = apply(CONFIG_MAPS, stored, config_map({"a": "1"}), writer("two", second=9))
    assert [entry.get("time") for entry in other["metadata"]["managedFields"]] == [None, "2026-01-01T00:00:00Z"]
    assert ownership.settle(stored, other) is other


def test_managed_fields_may_be_cleared_but_not_applied() -> None:
    stored = apply(CONFIG_MAPS, None, config_map({"a": "1"}), writer("one"))
    with pytest.raises(StatusError, match=r"metadata\.managedFields must be nil"):
        apply(CONFIG_MAPS, stored, stored, writer("two"))
    bad = config_map({"a": "1"}, managedFields=[{"manager": "x", "operation": "Guess"}])
    kept = ownership.track(CONFIG_MAPS, stored, bad, writer("edit", "Update"))
    assert owners(kept) == owners(stored), "entries that make no sense do not count"
    assert ownership.is_reset(config_map(managedFields=[{}]))
    assert ownership.is_reset(config_map(managedFields=[]))
    given_up = ownership.track(CONFIG_MAPS, stored, stored, writer("edit", "Update"), anew=True)
    assert "managedFields" not in given_up["metadata"]


def test_later_updates_of_one_manager_share_an_entry() -> None:
    stored = apply(CONFIG_MAPS, None, config_map({"a": "1"}), writer("one"))
    for second, key in enumerate("bc", 1):
        changed = stored | {"data": stored["data"] | {key: "1"}}
        stored = ownership.track(CONFIG_MAPS, stored, changed, writer("edit", "Update", second=second))
    assert owners(stored)["edit/Update"] == {"f:data": {"f:b": {}, "f:c": {}}}
    assert stored["metadata"]["managedFields"][1]["time"] == "2026-01-01T00:00:02Z"


def test_conflict_names_list_items_and_subresources() -> None:
    stored = apply(SETS, None, template({"name": "a", "image": "1"}, replicas=1), writer("one"))
    scaled = stored | {"spec": stored["spec"] | {"replicas": 5}}
    stored = ownership.track(SETS, stored, scaled, writer("hpa", "Update", subresource="scale"))
    with pytest.raises(StatusError) as caught:
        apply(SETS, stored, template({"name": "a", "image": "2"}, replicas=1), writer("two"))
    assert caught.value.details is not None
    assert [(cause["message"], cause["field"]) for cause in caught.value.details["causes"]] == [
        ('conflict with "hpa" with subresource "scale" using v1', ".spec.replicas"),
        ('conflict with "one"', '.spec.template.spec.containers[name="a"].image'),
    ]


def test_list_with_duplicate_items_is_replaced_completely() -> None:
    stored = template({"name": "a", "env": [{"name": "X"}, {"name": "X"}]})
    found = apply(
        SETS, stored, template({"name": "a", "env": [{"name": "X", "value": "1"}]}), writer("one"), force=True
    )
    assert found["spec"]["template"]["spec"]["containers"][0]["env"] == [{"name": "X", "value": "1"}]


def test_item_without_its_key_is_refused() -> None:
    with pytest.raises(StatusError, match='omits key field "name"'):
        apply(SETS, None, template({"image": "x"}), writer("one"))


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
    stored = ownership.track(CONFIG_MAPS, None, made, writer("kubectl-client-side-apply", "Update"))
    taken = apply(CONFIG_MAPS, stored, config_map({"a": "2"}), writer("kubectl"))
    assert taken["data"] == {"a": "2", "b": "9"}
    assert '"a":"2"' in taken["metadata"]["annotations"][LAST_APPLIED], "the annotation tells what was applied last"
    with pytest.raises(StatusError, match=r"1 conflict.*: \.data\.b"):
        apply(CONFIG_MAPS, stored, config_map({"a": "2", "b": "2"}), writer("kubectl"))
    with pytest.raises(StatusError, match=r"1 conflict.*: \.data\.a"):
        apply(CONFIG_MAPS, stored, config_map({"a": "2"}), writer("other"))


def test_malformed_last_applied_annotation_is_ignored() -> None:
    made = config_map({"a": "1"}, annotations={LAST_APPLIED: "{"})
    stored = ownership.track(CONFIG_MAPS, None, made, writer("someone", "Update"))
    with pytest.raises(StatusError, match="1 conflict"):
        apply(CONFIG_MAPS, stored, config_map({"a": "2"}), writer("kubectl"))


def test_duplicate_key_is_refused_with_its_path() -> None:
    env = [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]
    with pytest.raises(StatusError) as caught:
        apply(SETS, None, template({"name": "main", "env": env}), writer("one"))
    path = '.spec.template.spec.containers[name="main"].env: duplicate entries for key [name="A"]'
    assert str(caught.value).endswith(path)
