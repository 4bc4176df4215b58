"""Following all fields of one depth at once finds what following them one by one finds."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from leaderworkerset.core.leaderworkerset import drift
from leaderworkerset.core.leaderworkerset.fieldsets import DEFAULTS, MOST_KEYS, MOST_SETS_OF_KEYS, names_more

NAMES = st.sampled_from(["a", "b", "name", "protocol", "%s", "<&", "", "."])
SCALARS = st.sampled_from([None, True, False, 0, 1, 1.0, 80, "80", "", "x", "y", "TCP", "UDP", "<&", "%s", 'q"\n'])
VALUES = st.recursive(
    SCALARS,
    lambda below: (
        st.lists(below, max_size=3)
        | st.dictionaries(NAMES, below, max_size=3)
        | st.lists(st.dictionaries(st.sampled_from(["a", "name", "protocol"]), SCALARS | below), max_size=20)
    ),
    max_leaves=25,
)


def sets_of(value: Any) -> st.SearchStrategy[dict[str, Any]]:
    """Return sets that name parts of a value, and sometimes others."""
    if isinstance(value, dict):
        named = {f"f:{name}": sets_of(child) for name, child in value.items()}
    elif isinstance(value, list):
        named = {element: sets_of(item) for item in value for element in elements_of(item)}
    else:
        named = {}
    others = st.sampled_from(["f:a", "f:", "f", 'k:{"name":"x"}', 'k:{"a":1,"name":"x"}', "k:{}", "k:{", "v:1", "i:0"])
    rarely: st.SearchStrategy[dict[str, Any]] = st.integers(0, 30).flatmap(
        lambda lot: st.dictionaries(others, st.just({}), max_size=0 if lot else 2)
    )
    whole = st.fixed_dictionaries({}, optional=named | {".": st.just({})})
    return st.tuples(whole, rarely).map(lambda both: both[0] | both[1])


def elements_of(item: Any) -> list[str]:
    """Return elements that name an item: by its value, and by some of its keys as an API server completes them."""
    found = [f"v:{json.dumps(item, separators=(',', ':'))}"]
    if isinstance(item, dict):
        completed = DEFAULTS | item
        for keys in (["name"], ["a", "protocol"], ["name", "protocol"], ["a", "name", "protocol"]):
            wanted = {key: completed[key] for key in keys if key in completed}
            found.append(f"k:{json.dumps(wanted, separators=(',', ':'), ensure_ascii=False)}")
    return found


def names_more_one_by_one(fields: dict[str, Any], value: Any) -> bool:
    """Return what `names_more` returns, slowly."""
    elements = [element for element in fields if element != "."]
    if isinstance(value, list) and has_too_many_keys(elements):
        return True
    return any(
        not found or (fields[element] and names_more_one_by_one(fields[element], found[0]))
        for element in elements
        for found in [members(element, value)]
    )


def has_too_many_keys(elements: list[str]) -> bool:
    wanted = [decoded(element[2:]) for element in elements if element.startswith("k:")]
    sets = {tuple(sorted(keys)) for keys in wanted if isinstance(keys, dict)}
    return len(sets) > MOST_SETS_OF_KEYS or any(len(keys) > MOST_KEYS for keys in sets)


def members(element: str, value: Any) -> list[Any]:
    """Return what an element names, in a list; an empty one where that is absent."""
    if isinstance(value, dict):
        return [value[element[2:]]] if element.startswith("f:") and element[2:] in value else []
    if not isinstance(value, list) or element[:2] not in {"k:", "v:"}:
        return []
    wanted = decoded(element[2:])
    if element.startswith("v:"):
        return [item for item in value if same(item, wanted)][:1] if wanted is not NOTHING else []
    if not isinstance(wanted, dict):
        return []
    fitting = [
        (sum(key in item for key in wanted), item)
        for item in value
        if isinstance(item, dict) and all(same(item[key], wanted[key]) for key in wanted if key in item)
    ]
    most = max((number for number, _ in fitting), default=0)
    return [item for number, item in fitting if number == most][:1]


NOTHING = object()


def decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return NOTHING


def same(left: Any, right: Any) -> bool:
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_fields_are_followed_as_one_by_one(data: st.DataObject) -> None:
    """R-LSTS-1."""
    value = data.draw(VALUES)
    fields = data.draw(sets_of(value))

    assert names_more(fields, value) == names_more_one_by_one(fields, value)


def covers_one_by_one(live: Any, desired: Any) -> bool:
    """Return what `drift.covers` returns, slowly."""
    if live is None:
        return desired is None or desired in ({}, [], "")
    if isinstance(desired, dict):
        return isinstance(live, dict) and all(covers_one_by_one(live.get(name), one) for name, one in desired.items())
    if isinstance(desired, list):
        return isinstance(live, list) and len(live) == len(desired) and all(map(covers_one_by_one, live, desired))
    return bool(live == desired)


def alive(desired: Any) -> st.SearchStrategy[Any]:
    """Return what a server may make of a value: completed, without what is empty, rarely something else."""
    if isinstance(desired, dict):
        same_fields = st.fixed_dictionaries({}, optional={name: alive(child) for name, child in desired.items()})
        made: st.SearchStrategy[Any] = same_fields.map(lambda some: {"default": 1} | desired | some)
        made |= st.just({name: one for name, one in desired.items() if one not in ({}, [], "")})
    elif isinstance(desired, list):
        made = st.tuples(*map(alive, desired)).map(list)
    else:
        made = st.just(desired)
    return st.integers(0, 25).flatmap(lambda lot: made if lot else SCALARS | st.just([]) | st.just({}))


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_values_are_compared_as_one_by_one(data: st.DataObject) -> None:
    """R-LSTS-1."""
    desired = data.draw(VALUES)
    live = data.draw(alive(desired))

    assert drift.covers(live, desired) == covers_one_by_one(live, desired)
