"""Computes the revision of a DisaggregatedSet, which is a hash of its role names and templates (R-DS-20 to R-DS-24).

Other immutable fields of a LeaderWorkerSet are also hashed if a role sets them: `groupIdentity: Hash` (N-DS-1) and
`scheduling` (docs/adr/0017). Upstream does not define the order of these two.

Input: `spec.roles` as the API server serves it. Output: the same eight hexadecimal characters as in the Go
controller, so that either controller recognizes the LeaderWorkerSets of the other. The input of the hash is Go's own
encoding of the typed structs: fields in the order of their declaration, not sorted by name.
"""

import hashlib
import json
from collections.abc import Sequence
from typing import Final

from kuberuntime.objects.gotypes.declarations import element_type, type_shape
from kuberuntime.objects.meta import JSON, JSONObject
from leaderworkerset.api.fieldtypes import TYPES, round_trip
from leaderworkerset.api.policytypes import WITH_RANDOM_KEYS

LENGTH: Final = 8
TEMPLATE_TYPE: Final = "LeaderWorkerTemplate"
SCHEDULING_TYPE: Final = "LeaderWorkerSetScheduling"

_ESCAPES: Final = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


def revision_of(roles: Sequence[JSONObject]) -> str:
    """Return the revision of roles. Raise `GoTypeError` if a template field has an invalid type.

    >>> revision_of([])
    '4f53cda1'
    """
    return hashlib.sha256(canonical_json(roles).encode()).hexdigest()[:LENGTH]


def canonical_json(roles: Sequence[JSONObject]) -> str:
    """Return the string to hash."""
    entries = [_entry(role, f"spec.roles[{index}].spec") for index, role in enumerate(roles)]
    text = json.dumps(entries, ensure_ascii=False, separators=(",", ":"))
    return text.translate(_ESCAPES)


def _entry(role: JSONObject, path: str) -> JSONObject:
    spec: JSONObject = role.get("spec") or {}
    entry: JSONObject = {
        "name": role.get("name") or "",
        "template": _convert_to_type(
            TEMPLATE_TYPE, spec.get("leaderWorkerTemplate") or {}, f"{path}.leaderWorkerTemplate"
        ),
    }
    if (identity := spec.get("groupIdentity")) in WITH_RANDOM_KEYS:
        entry["groupIdentity"] = identity
    if spec.get("scheduling") is not None:
        entry["scheduling"] = _convert_to_type(SCHEDULING_TYPE, spec["scheduling"], f"{path}.scheduling")
    return entry


def _convert_to_type(go_type: str, value: JSONObject, path: str) -> JSON:
    return _sort_fields(go_type, round_trip(go_type, value, path))


def _sort_fields(go_type: str, value: JSON) -> JSON:
    """Return the value with struct fields in declaration order and with sorted map keys."""
    shape = type_shape(go_type)
    if shape == "list" and isinstance(value, list):
        return [_sort_fields(element_type(go_type), item) for item in value]
    if shape == "scalar" or not isinstance(value, dict):
        return value
    if shape == "map":
        return {key: _sort_fields(element_type(go_type), value[key]) for key in sorted(value)}
    fields = TYPES.fields(go_type)
    return {name: _sort_fields(fields[name].type, value[name]) for name in fields if name in value}
