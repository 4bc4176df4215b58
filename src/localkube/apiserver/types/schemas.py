"""The schema of a Go type as patches and field ownership see it, from the tables of types and of list keys."""

from dataclasses import replace
from functools import cache

from localkube.apiserver.model.kind import Schema
from localkube.apiserver.types import lists, types
from localkube.apiserver.types.types import GoField

SCALARS = {
    "string": Schema("string"),
    "quantity": Schema("string"),
    "time": Schema("string"),
    "microtime": Schema("string"),
    "bytes": Schema("string"),
    "bool": Schema("boolean"),
    "int32": Schema("integer"),
    "int64": Schema("integer"),
    "int-or-string": Schema("int-or-string"),
    "raw": Schema("any", atomic=True),
}


@cache
def of_struct(struct: str) -> Schema:
    """Return the schema of a struct."""
    fields = {name: _of_field(f"{struct}.{name}", field) for name, field in types.fields(struct).items()}
    return Schema("object", fields=fields, atomic=struct in lists.ATOMIC_TYPES, name=struct)


def _of_field(path: str, field: GoField) -> Schema:
    match field.shape:
        case "list":
            return _of_list(path, types.element_of(field.type))
        case "map":
            return replace(_of_type(field.type), atomic=path in lists.ATOMIC_FIELDS)
        case _:
            schema = _of_type(field.type)
            return replace(schema, default=lists.KEY_DEFAULTS[path]) if path in lists.KEY_DEFAULTS else schema


def _of_list(path: str, element: str) -> Schema:
    items = _of_type(element)
    keys = lists.LIST_KEYS.get(path, ())
    if keys:
        merged = path not in lists.WITHOUT_PATCH_KEY
        patch_key = keys[0] if merged else ""
        return Schema("array", items=items, list_type="map", keys=keys, patch_merge=merged, patch_key=patch_key)
    if path in lists.LIST_SETS:
        return Schema("array", items=items, list_type="set", patch_merge=True)
    patch_key = lists.PATCH_ONLY_KEYS.get(path, "")
    return Schema("array", items=items, patch_merge=bool(patch_key), patch_key=patch_key)


def _of_type(go_type: str) -> Schema:
    match types.shape_of(go_type):
        case "list":
            return Schema("array", items=_of_type(types.element_of(go_type)))
        case "map":
            return Schema("object", values=_of_type(types.element_of(go_type)))
        case "struct":
            return of_struct(go_type)
        case _:
            return SCALARS[go_type]
