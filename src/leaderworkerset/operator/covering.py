"""Drift: whether a live object still equals what was applied, so that no write is sent without a change (R-OP-25).

A live object covers a desired one if every desired field has its value there. Fields that others add (defaults of the
API server, injected authorities, labels) are ignored. Fields that are not desired any more change the hash of the
desired object, which it carries as an annotation.
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
    """Return the object with the hash of its content."""
    own = meta.metadata(obj)
    return obj | {"metadata": own | {"annotations": {**meta.annotations(obj), SPEC_HASH: digest(obj)}}}


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


def _has(live: JSONObject, name: str, value: JSON) -> bool:
    # An API server may omit an empty object: `spec: {}` is returned without it.
    return covers(live[name], value) if name in live else value in ({}, [], None)
