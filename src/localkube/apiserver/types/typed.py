"""Reading an object into its Go type and writing it again, as the API server does with every built-in kind.

One pass in C (msgspec) over generated structs drops unknown fields and the zero values of `omitempty` fields, checks
every JSON type, writes quantities and times canonically, and returns a fresh tree that the caller may change.
In: a type name and an object from the wire. Out: the object as stored, or `UndecodableError` with Go's text.
"""

import re
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any

import msgspec

from kuberuntime.objects.meta import JSON, JSONObject
from localkube.apiserver.model.kind import UndecodableError
from localkube.apiserver.types import scalars, types
from localkube.apiserver.types.types import GoField

ANNOTATIONS: dict[str, Any] = {
    "string": str,
    "bool": bool,
    "int32": Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)],
    "int64": Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)],
    "int-or-string": int | str,
    "quantity": scalars.Quantity,
    "time": scalars.Time,
    "microtime": scalars.MicroTime,
    "bytes": scalars.Base64,
    "raw": Any,
}
ZEROES: dict[str, Any] = {
    "string": "", "bool": False, "int32": 0, "int64": 0, "int-or-string": 0, "quantity": scalars.Quantity("0"),
    "bytes": None,
}  # fmt: skip
TIMES = {"time", "microtime"}
NEVER_EMPTY = {"int-or-string", "quantity"}
"""Scalars that Go holds in structs, which `omitempty` does not leave out."""

CONTAINERS: dict[str, type[list[Any] | dict[str, Any]]] = {"list": list, "map": dict}

MISMATCH = re.compile(r"Expected `[^`]*`(?:, got `(?P<got>[^`]*)`)?[^`]*(?: - at `\$(?P<path>[^`]*)`)?$")
JSON_NAMES = {"str": "string", "int": "number", "float": "number", "bool": "bool", "null": "null"}


def normalize(struct: str, obj: JSONObject) -> JSONObject:
    """Return the object as Go writes it after reading it into `struct`."""
    try:
        return _round_trip(struct, obj)
    except msgspec.ValidationError:
        # Null is the zero value of whatever it stands for; rare enough to be worth a second look only.
        try:
            return _round_trip(struct, _without_nulls(struct, obj))
        except msgspec.ValidationError as error:
            raise UndecodableError(_describe(struct, obj, str(error))) from error


def blank(struct: str) -> JSONObject:
    """Return what Go writes of a struct that nobody set anything in."""
    return _round_trip(struct, {})


def _round_trip(struct: str, obj: JSONObject) -> JSONObject:
    value = msgspec.convert(obj, compile_struct(struct), dec_hook=scalars.decode)
    result: JSONObject = msgspec.to_builtins(value, enc_hook=scalars.encode)
    return result


@cache
def compile_struct(struct: str) -> type[msgspec.Struct]:
    """Generate the msgspec struct of a Go type."""
    fields = [(name, _annotation(field), _default(field)) for name, field in types.fields(struct).items()]
    return msgspec.defstruct(struct, fields, kw_only=True, omit_defaults=True, gc=False)


def _annotation(field: GoField) -> Any:
    annotation = _type_annotation(field.type)
    return annotation | None if _accepts_null(field) else annotation


def _accepts_null(field: GoField) -> bool:
    """Return whether the absent value is null; everything else has a zero value of its own."""
    if field.pointer or field.omit_zero or field.type in TIMES:
        return True
    return field.shape in {"list", "map"} and not field.omit_empty


def _type_annotation(go_type: str) -> Any:
    match types.shape_of(go_type):
        case "list":
            return list[_type_annotation(types.element_of(go_type))]  # type: ignore[misc]  # a type made at run time
        case "map":
            return dict[str, _type_annotation(types.element_of(go_type))]  # type: ignore[misc]  # as above
        case "struct":
            return compile_struct(go_type)
        case _:
            return ANNOTATIONS[go_type]


def _default(field: GoField) -> Any:
    """Return the default; a plain one is left out on the wire, one from a factory is always written."""
    if _accepts_null(field):
        is_struct = field.type in TIMES and not field.pointer
        return None if field.omit_zero or (field.omit_empty and not is_struct) else _always(None)
    if field.shape == "struct":
        return msgspec.field(default_factory=compile_struct(field.type))
    if field.shape in CONTAINERS:
        return msgspec.field(default_factory=CONTAINERS[field.shape])
    zero = ZEROES[field.type]
    return zero if field.omit_empty and field.type not in NEVER_EMPTY else _always(zero)


def _always(value: Any) -> Any:
    factory: Callable[[], Any] = lambda: value  # noqa: E731  a name for the type checker
    return msgspec.field(default_factory=factory)


def _without_nulls(struct: str, obj: JSONObject) -> JSONObject:
    fields = types.fields(struct)
    return {
        name: _denull(fields[name].type, value)
        for name, value in obj.items()
        if name in fields and (value is not None or fields[name].type == "raw")
    }


def _denull(go_type: str, value: JSON) -> JSON:
    match types.shape_of(go_type):
        case "list" if isinstance(value, list):
            element = types.element_of(go_type)
            return [_denull(element, _zero_of(element) if item is None else item) for item in value]
        case "map" if isinstance(value, dict):
            element = types.element_of(go_type)
            return {key: _denull(element, _zero_of(element) if item is None else item) for key, item in value.items()}
        case "struct" if isinstance(value, dict):
            return _without_nulls(go_type, value)
        case _:
            return value


def _zero_of(go_type: str) -> JSON:
    match types.shape_of(go_type):
        case "list":
            return []
        case "struct" | "map":
            return {}
        case _:
            return "0" if go_type == "quantity" else "" if go_type == "bytes" else ZEROES.get(go_type)


def _describe(struct: str, obj: JSONObject, problem: str) -> str:
    """Word a type error as the API server does.

    >>> _describe("Service", {"apiVersion": "v1", "kind": "Service"},
    ...           "Expected `int`, got `str` - at `$.spec.ports[0].port`")
    'Service in version "v1" cannot be handled as a Service: json: cannot unmarshal string into Go struct field ServicePort.spec.ports.port of type int32'
    """
    kind = obj.get("kind") or struct
    version = str(obj.get("apiVersion") or "").rpartition("/")[2]
    return f'{kind} in version "{version}" cannot be handled as a {kind}: {_go_text(struct, problem)}'


def _go_text(struct: str, problem: str) -> str:
    match = MISMATCH.match(problem)
    if match is None:
        return problem.partition(" - at `")[0]
    path = match["path"] or ""
    names = re.findall(r"\.([A-Za-z0-9]+)", path)
    owner, go_type = struct, struct
    for name in names:
        field = types.fields(owner).get(name)
        if field is None:
            break
        go_type = field.type
        inner = types.element_of(go_type)
        if name is not names[-1] and types.shape_of(inner) == "struct":
            owner = inner
    if path.endswith("]"):
        go_type = types.element_of(go_type)
    value = JSON_NAMES.get(match["got"], match["got"] or "number")
    return (
        f"json: cannot unmarshal {value} into Go struct field {'.'.join([owner, *names])} of type {_qualified(go_type)}"
    )


def _qualified(go_type: str) -> str:
    element = types.element_of(go_type)
    if types.shape_of(element) != "struct":
        return go_type
    return f"{go_type.removesuffix(element)}v1.{element}"
