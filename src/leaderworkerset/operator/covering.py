"""Drift: whether a live object still equals what was applied, so that no write is sent without a change (R-OP-25).

A live object covers a desired one if every desired field has its value there. Fields that others add (defaults of the
API server, injected authorities, labels) are ignored. Fields that are not desired any more change the hash of the
desired object, which it carries as an annotation.

Server-side apply leaves what other managers have added to a list whose members have keys: an edited port stays beside the
desired one, and may make the object invalid. So such lists are replaced before.
"""

import hashlib
from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSON, JSONObject
from leaderworkerset.operator.operatornames import SPEC_HASH

SHARED: Final = ("ownerReferences",)
"""Lists to which others may add (R-OP-25)."""

KEYS: Final = ("containerPort", "port", "protocol", "mountPath", "topologyKey", "whenUnsatisfiable")
"""Fields that are the key of a member of a list, in the kinds of the operand; without any of them its name is."""

Members: TypeAlias = Sequence[JSON]


def digest(value: JSON) -> str:
    """Return the SHA-256 of a value, whatever the order of its fields."""
    return hashlib.sha256(msgspec.json.encode(value, order="deterministic")).hexdigest()


def stamped(obj: JSONObject) -> JSONObject:
    """Return the object with the hash of its content."""
    own = meta.metadata(obj)
    return obj | {"metadata": own | {"annotations": {**meta.annotations(obj), SPEC_HASH: digest(obj)}}}


def is_stamped(live: JSONObject, desired: JSONObject) -> bool:
    """Return whether a live object carries the hash of a desired one."""
    return meta.annotations(live).get(SPEC_HASH) == meta.annotations(desired).get(SPEC_HASH)


def covers(live: JSON, desired: JSON) -> bool:
    """Return whether every desired value is present.

    >>> covers({"a": 1, "b": [{"c": 2, "d": 3}]}, {"b": [{"c": 2}]}), covers({"b": [1, 2]}, {"b": [1]})
    (True, False)
    """
    if isinstance(desired, dict):
        return isinstance(live, dict) and all(_has(live, name, value) for name, value in desired.items())
    if isinstance(desired, list):
        return (
            isinstance(live, list)
            and len(live) == len(desired)
            and all(covers(one, other) for one, other in zip(live, desired, strict=True))
        )
    return bool(live == desired)


def replaced(live: JSONObject, desired: JSONObject) -> JSONObject:
    """Return a merge patch of the lists that differ and that server-side apply would merge; empty if there are none.

    >>> replaced({"ports": [{"port": 444}], "type": "x"}, {"ports": [{"port": 443}], "type": "y"})
    {'ports': [{'port': 443}]}
    """
    found: JSONObject = {}
    for name, value in desired.items():
        now = live.get(name)
        if isinstance(value, dict) and isinstance(now, dict):
            if inner := replaced(now, value):
                found[name] = inner
        elif isinstance(value, list) and isinstance(now, list) and _is_keyed(name, value) and not covers(now, value):
            found[name] = [_trusting(one, now, value) for one in value]
    return found


def _is_keyed(name: str, desired: Members) -> bool:
    return name not in SHARED and all(_key(one, desired) is not None for one in desired)


def _trusting(one: JSONObject, live: Members, desired: Members) -> JSONObject:
    """Return a desired member; a webhook keeps the authority that was injected into it (R-OP-18)."""
    if "clientConfig" not in one:
        return one
    twins = (other for other in live if isinstance(other, dict) and _key(other, desired) == _key(one, desired))
    return one | {"clientConfig": next(twins, {}).get("clientConfig", {}) | one["clientConfig"]}


def _key(one: JSON, desired: Members) -> tuple[JSON, ...] | None:
    """Return the key of a member, by the fields that desired members have; None if such members have none."""
    first = desired[0] if desired else None
    if not isinstance(one, dict) or not isinstance(first, dict):
        return None
    names = [name for name in KEYS if name in first] or [name for name in ("name",) if name in first]
    return tuple(one.get(name) for name in names) if names else None


def _has(live: JSONObject, name: str, value: JSON) -> bool:
    if name not in live:
        # An API server omits what is empty: `spec: {}` and `value: ""` are returned without them.
        return value in ({}, [], None, "")
    if name in SHARED and isinstance(value, list) and isinstance(live[name], list):
        return all(any(covers(other, one) for other in live[name]) for one in value)
    return covers(live[name], value)
