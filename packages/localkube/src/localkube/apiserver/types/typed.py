"""Decodes an object into its Go type and reencodes it, as the API server does for every built-in kind.

In: a type name and an object from a client. Out: a new object to store, which the caller may modify, or an
`UndecodableError` with Go's message.
"""

from pathlib import Path
from typing import Final

from kuberuntime.objects.gotypes.declarations import KUBERNETES, GoTypes, element_type, type_shape
from kuberuntime.objects.gotypes.mismatch import GoTypeError, Mismatch
from kuberuntime.objects.gotypes.roundtrip import round_trip
from kuberuntime.objects.meta import JSON, JSONObject
from localkube.apiserver.model.kind import UndecodableError

SERVED: Final = GoTypes(Path(__file__).with_name("served.json"), KUBERNETES)
"""The types of the served kinds, in addition to the types of pod templates and claims."""

INTEGERS: Final = {"int32": "int32", "int64": "int64", "int-or-string": "int32"}
"""Integer types, and their names in Go errors."""


def normalize(struct: str, obj: JSONObject) -> JSONObject:
    """Return the object as Go encodes it after decoding it into `struct`."""
    try:
        return round_trip(SERVED, struct, obj)
    except GoTypeError as error:
        raise UndecodableError(_describe(struct, obj, error.mismatch)) from error


def empty_struct(struct: str) -> JSONObject:
    """Return the JSON that Go encodes for a struct if no field is set."""
    return round_trip(SERVED, struct, {})


def _describe(struct: str, obj: JSONObject, mismatch: Mismatch) -> str:
    """Return the API server's message for a type error.

    >>> where = {"owner": "ServicePort", "names": ("spec", "ports", "port")}
    >>> _describe("Service", {"apiVersion": "v1", "kind": "Service"}, Mismatch("spec.ports[0].port", "x", "int32", **where))
    'Service in version "v1" cannot be handled as a Service: json: cannot unmarshal string into Go struct field ServicePort.spec.ports.port of type int32'
    """
    kind = obj.get("kind") or struct
    version = str(obj.get("apiVersion") or "").rpartition("/")[2]
    return f'{kind} in version "{version}" cannot be handled as a {kind}: {mismatch.syntax or _go_text(mismatch)}'


def _go_text(mismatch: Mismatch) -> str:
    field = ".".join([mismatch.owner, *mismatch.names])
    go_type = INTEGERS.get(mismatch.go_type) or _qualified_name(mismatch.go_type)
    type_name = _json_name(mismatch.value)
    if type_name == "number" and mismatch.go_type in INTEGERS:
        type_name = f"number {mismatch.value}"  # the number exceeds the range of its type
    return f"json: cannot unmarshal {type_name} into Go struct field {field} of type {go_type}"


def _json_name(value: JSON) -> str:
    match value:
        case bool():
            return "bool"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"
        case _:
            return "number"


def _qualified_name(go_type: str) -> str:
    element = element_type(go_type)
    if type_shape(element) != "struct":
        return go_type
    return f"{go_type.removesuffix(element)}v1.{element}"
