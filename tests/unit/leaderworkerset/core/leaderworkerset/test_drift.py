"""Whether an apply would change anything, told from the live object alone."""

from typing import Any

import pytest

from leaderworkerset.core.leaderworkerset import drift

DESIRED: dict[str, Any] = {
    "metadata": {"labels": {"a": "1"}},
    "spec": {"replicas": 2, "containers": [{"name": "c", "ports": [{"containerPort": 80}], "args": ["x"]}]},
}


def live(fields: dict[str, Any], *, manager: str = "lws", **entry: Any) -> dict[str, Any]:
    managed = {"manager": manager, "operation": "Apply", "fieldsV1": fields} | entry
    return DESIRED | {"metadata": DESIRED["metadata"] | {"managedFields": [managed]}}


OWN = {
    "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
    "f:spec": {
        "f:replicas": {},
        "f:containers": {
            'k:{"name":"c"}': {
                ".": {},
                "f:name": {},
                "f:args": {},
                "f:ports": {'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}},
            }
        },
    },
}


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        ({"a": 1, "default": 2}, {"a": 1}),
        ({"a": [{"b": 1, "default": 2}]}, {"a": [{"b": 1}]}),
        ({}, {"a": {}, "b": [], "c": "", "d": None}),
        ({"a": 0}, {"a": 0}),
    ],
)
def test_defaults_and_left_out_empties_are_no_drift(found: object, wanted: object) -> None:
    """R-LSTS-1."""
    assert drift.covers(found, wanted)


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        ({"a": 1}, {"a": 2}),
        ({}, {"a": 0}),
        ({}, {"a": False}),
        ({"a": [1, 2]}, {"a": [1]}),
        ({"a": [2, 1]}, {"a": [1, 2]}),
        ({"a": "x"}, {"a": {"b": 1}}),
        ({"a": {"b": 1}}, {"a": ["b"]}),
    ],
)
def test_other_values_are_drift(found: object, wanted: object) -> None:
    """Q-26: what somebody else changed is put right."""
    assert not drift.covers(found, wanted)


def test_fields_that_are_still_wanted_are_no_reason_to_apply() -> None:
    """R-LSTS-1: also where the server completed the key of a list item."""
    assert not drift.owns_more(live(OWN), "lws", DESIRED)


@pytest.mark.parametrize(
    "given_up",
    [
        {"f:metadata": {"f:labels": {"f:b": {}}}},
        {"f:spec": {"f:paused": {}}},
        {"f:spec": {"f:containers": {'k:{"name":"gone"}': {".": {}}}}},
        {"f:spec": {"f:containers": {'k:{"name":"c"}': {"f:args": {'v:"y"': {}}}}}},
        {"f:spec": {"f:replicas": {"f:odd": {}}}},
        {"f:spec": {"f:containers": {"f:was-a-map": {}}}},
        {"f:spec": {'k:{"name":"c"}': {".": {}}}},
    ],
)
def test_a_field_that_is_given_up_must_be_applied(given_up: dict[str, Any]) -> None:
    """R-LSTS-1: only then does the API server remove what the template does not have any more."""
    assert drift.owns_more(live(given_up), "lws", DESIRED)


def test_values_of_sets_are_told_apart() -> None:
    fields: dict[str, Any] = {"f:spec": {"f:containers": {'k:{"name":"c"}': {"f:args": {'v:"x"': {}}}}}}

    assert not drift.owns_more(live(fields), "lws", DESIRED)


@pytest.mark.parametrize(
    "other",
    [live(OWN, manager="kubectl"), live(OWN, operation="Update"), live(OWN, subresource="status"), DESIRED],
)
def test_an_object_the_manager_never_applied_must_be_applied(other: dict[str, Any]) -> None:
    """R-LSTS-1: the manager has to own its fields to remove them later."""
    assert drift.owns_more(other, "lws", DESIRED)


def listed(elements: dict[str, Any], items: list[Any]) -> bool:
    """Return whether the manager owns more of a list than the items."""
    found = live({"f:spec": {"f:items": elements}})
    return drift.owns_more(found, "lws", {"spec": {"items": items}})


@pytest.mark.parametrize(
    ("elements", "more"),
    [
        ({'v:"a"': {}, 'v:"b"': {}}, False),
        ({'v:"a"': {}, 'v:"c"': {}}, True),
        ({'k:{"name":"x"}': {}, 'k:{"name":"y"}': {}}, False),
        ({'k:{"name":"x"}': {}, 'k:{"name":"z"}': {}}, True),
        ({'k:{"name"': {}}, True),
        ({'k:{"a":1,"b":2,"c":3}': {}}, True),
        ({'k:["name"]': {}}, True),
        ({"i:0": {}}, True),
    ],
    ids=["values", "another value", "keys", "another key", "no JSON", "too many keys", "no object", "an index"],
)
def test_items_of_lists_are_found_by_value_and_by_keys(elements: dict[str, Any], more: bool) -> None:
    """R-LSTS-1: whatever cannot be read counts as more, and is applied again."""
    assert listed(elements, ["a", "b", {"name": "x"}, {"name": "y"}]) is more


def test_an_item_that_has_all_the_keys_is_preferred_to_one_with_defaults() -> None:
    """A port of TCP and UDP: the entry of UDP is not that of the port without a protocol, which stands before it."""
    tcp, udp = {"containerPort": 53}, {"containerPort": 53, "protocol": "UDP"}
    elements: dict[str, Any] = {
        'k:{"containerPort":53,"protocol":"TCP"}': {"f:containerPort": {}},
        'k:{"containerPort":53,"protocol":"UDP"}': {"f:containerPort": {}, "f:protocol": {}},
    }

    assert not listed(elements, [tcp, udp])
    assert listed(elements, [tcp])
