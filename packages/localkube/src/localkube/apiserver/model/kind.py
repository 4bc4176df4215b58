"""Defines the kinds for verbs. Each served resource, built-in or from a CRD, is one value.

The verbs (create, update, patch, ...) are the same for all kinds. Kind-specific behavior is a function of the `Kind`.
Built-in kinds are in `builtin/`; `customresource.py` builds kinds from CRDs.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Literal, TypeAlias

from msgspec import Struct, field

from kuberuntime.objects.field import FieldError
from kuberuntime.objects.meta import JSON, JSONObject
from kuberuntime.objects.resources import Resource

Operation: TypeAlias = Literal["create", "update", "status", "resize"]
"""A write to the object (`create`, `update`) or to its `/status`."""

ListType: TypeAlias = Literal["atomic", "set", "map"]


class Schema(Struct, frozen=True):
    """The schema of a value for patches and field ownership.

    A value of type `any` has no known schema: unless it is `is_atomic`, objects are granular, as free maps.

    `fields` are the known fields of an object. `values` is the schema of the values of a free map, and `items` the
    schema of list items. `list_type` and `keys` say how items are identified: `map` by `keys`, `set` by value, `is_atomic`
    not at all. An `is_atomic` object is replaced and owned as a whole. `patch_merge` says whether the strategic merge
    patch merges the list (its key is then `patch_key`, empty for lists of scalars). `default` is the value of an absent
    field that is a list key (`protocol` of a port). `name` is the name of an object's type, if it has one.
    """

    type: Literal["object", "array", "string", "integer", "number", "boolean", "int-or-string", "any"]
    fields: "dict[str, Schema] | None" = None
    values: "Schema | None" = None
    items: "Schema | None" = None
    list_type: ListType = "atomic"
    keys: tuple[str, ...] = ()
    is_atomic: bool = False
    patch_merge: bool = False
    patch_key: str = ""
    default: JSON = None
    name: str = ""


class UndecodableError(Exception):
    """The object has a value with an incorrect JSON type (400 BadRequest). The message is complete."""


class Column(Struct, frozen=True):
    """A column of a Table. `kubectl get` shows columns with priority 0, and `-o wide` shows all columns."""

    name: str
    type: str
    description: str
    priority: int = 0
    format: str = ""


class ScalePaths(Struct, frozen=True):
    """The fields that the `/scale` subresource reads and writes, as dotted JSON paths (`.spec.replicas`).

    The value at `selector` is a string, or a label selector object to be rendered as one.
    """

    spec_replicas: str
    status_replicas: str
    selector: str | None


class Alias(Struct, frozen=True):
    """An alternative representation of the objects of a kind. For example, `events.k8s.io` contains core events.

    The objects are stored, watched and counted as `resource`; `to_stored` and `from_stored` convert them.
    """

    resource: Resource
    to_stored: Callable[[JSONObject], JSONObject]
    from_stored: Callable[[JSONObject], JSONObject]


class Kind(Struct, frozen=True, kw_only=True):
    """One served resource.

    `schema_of()` builds its schema at first use, as most served kinds are never written. `prepare(operation, new, old)`
    drops unknown fields, fills defaults, sets the generation, and restores fields that the operation may not write.
    (These are `status` on create and update, all but `status` and parts of the metadata on a status write.) `old` is
    None on create. It returns a new object and raises `UndecodableError`. `validate(operation, new, old)` returns all
    errors. `unknown_fields(object)` returns the paths that `prepare` drops, for strict field validation. `cells(object,
    now)` returns one table row. `empty_object` is an object of the kind in which no field is set: field ownership on create is
    computed against it. `is_lazily_owned` objects have no managedFields until their first apply: programs write them all
    the time, and they would be twice as large. `warnings(object)` returns warnings about what a written object does not
    do here. `description` describes the kind; `published` is the OpenAPI schema of a kind that has its own.
    """

    resource: Resource
    singular: str
    schema_of: Callable[[], Schema]
    prepare: Callable[[Operation, JSONObject, JSONObject | None], JSONObject]
    validate: Callable[[Operation, JSONObject, JSONObject | None], Sequence[FieldError]]
    unknown_fields: Callable[[JSONObject], Sequence[str]]
    columns: tuple[Column, ...]
    cells: Callable[[JSONObject, datetime], list[object]]
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    has_status: bool = False
    scale: ScalePaths | None = None
    empty_object: JSONObject = field(default_factory=dict)
    alias: Alias | None = None
    is_lazily_owned: bool = False
    warnings: Callable[[JSONObject], Sequence[str]] = lambda _obj: ()
    description: str = ""
    published: JSONObject | None = None

    @property
    def schema(self) -> Schema:
        """Return the schema of the kind's objects."""
        return self.schema_of()
