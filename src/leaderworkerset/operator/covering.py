"""Drift: whether a live object still is what was applied, so that nothing is written that would change nothing (R-OP-25).

A live object covers a desired one if every desired field is there with its value. What others add (defaults of the API
server, injected authorities, labels of their own) is theirs. Fields that are not desired any more show in the hash of
the desired object, which it carries as an annotation.
"""

import hashlib

import msgspec

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSON, JSONObject
from leaderworkerset.operator.operatornames import SPEC_HASH


def digest(value: JSON) -> str:
    """Return the SHA-256 of a value, whatever the order of its fields."""
    return hashlib.sha256(msgspec.json.encode(value, order="deterministic")).hexdigest()


def stamped(obj: JSONObject) -> JSONObject:
    """Return the object with the hash of all that it says."""
    own = meta.metadata(obj)
    return obj | {"metadata": own | {"annotations": {**meta.annotations(obj), SPEC_HASH: digest(obj)}}}


def covers(live: JSON, desired: JSON) -> bool:
    """Return whether every desired value is there.

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


def _has(live: JSONObject, name: str, value: JSON) -> bool:
    # An API server may leave out what is empty: `spec: {}` comes back without it.
    return covers(live[name], value) if name in live else value in ({}, [], None)
