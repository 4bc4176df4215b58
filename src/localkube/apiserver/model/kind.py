"""What the verbs need to know of a kind: one value per served resource, built in or from a CRD.

The verbs (create, update, patch, ...) are the same for all kinds; whatever differs is a function in here. The built-in
kinds are in `builtin/`, those of CRDs are made by `customresource.py`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias

from kuberuntime.objects.field import FieldError
from kuberuntime.objects.meta import JSON, JSONObject
from kuberuntime.objects.resources import Resource

Operation: TypeAlias = Literal["create", "update", "status"]
"""A write to the object (`create`, `update`) or to its `/status`."""

ListType: TypeAlias = Literal["atomic", "set", "map"]


@dataclass(frozen=True, slots=True)
class Schema:
    """The shape of a value as patches and field ownership see it.

    A value of type `any` has no known shape: unless it is `atomic`, objects are taken apart as free maps.

    `fields` are known fields of an object; `values` is the shape of every value of a free map; `items` of every item
    of a list. `list_type` and `keys` say how items are identified: `map` by `keys`, `set` by value, `atomic` not at
    all. `atomic` on an object means it is replaced and owned as a whole. `patch_merge` says whether the strategic
    merge patch merges the list (its key is then `patch_key`, empty for lists of scalars). `default` is what an absent
    field counts as where it is a list key (`protocol` of a port). `name` is that of an object's type, where it has one.
    """

    type: Literal["object", "array", "string", "integer", "number", "boolean", "int-or-string", "any"]
    fields: "dict[str, Schema] | None" = None
    values: "Schema | None" = None
    items: "Schema | None" = None
    list_type: ListType = "atomic"
    keys: tuple[str, ...] = ()
    atomic: bool = False
    patch_merge: bool = False
    patch_key: str = ""
    default: JSON = None
    name: str = ""


class UndecodableError(Exception):
    """The object has a value of the wrong JSON type: 400 BadRequest, the text is the whole message."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a Table answer: `kubectl get` shows those of priority 0, `-o wide` all."""

    name: str
    type: str
    description: str
    priority: int = 0
    format: str = ""


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """Where the `/scale` subresource reads and writes, as dotted JSON paths (`.spec.replicas`).

    The value at `selector` is a string, or a label selector object to be rendered as one.
    """

    spec_replicas: str
    status_replicas: str
    selector: str | None


@dataclass(frozen=True, slots=True)
class Alias:
    """A second way to see another kind's objects: `events.k8s.io` shows the core events.

    The objects are stored, watched and counted as `of`; `to_stored` and `from_stored` translate on the way in and out.
    """

    of: Resource
    to_stored: Callable[[JSONObject], JSONObject]
    from_stored: Callable[[JSONObject], JSONObject]


def no_warnings(_obj: JSONObject) -> Sequence[str]:
    """Warn of nothing."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One served resource.

    `schema_of()` builds its schema, once: most kinds that are served are not written. `prepare(operation, new, old)` drops unknown fields, fills defaults, puts back what the operation may not write
    (`status` on create and update, all but `status` and parts of the metadata on a status write) and sets the
    generation; `old` is None on create; it returns a fresh object and raises `UndecodableError`. `validate(operation,
    new, old)` returns all errors. `unknown_fields(object)` lists the paths that `prepare` would drop, for strict field
    validation. `cells(object, now)` fills one table row. `blank` is what an object of the kind has before anyone sets
    anything: field ownership on create is counted against it. `lazily_owned` objects carry no managedFields until they
    are applied for the first time: they are written by programs all the time, and would be twice as large. `warnings(object)` says what a written object
    does not do here. `description`
    says what the kind is; `published` is the OpenAPI schema of a kind that brings its own, with its own words.
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
    blank: JSONObject = field(default_factory=dict)
    alias: Alias | None = None
    lazily_owned: bool = False
    warnings: Callable[[JSONObject], Sequence[str]] = no_warnings
    description: str = ""
    published: JSONObject | None = None

    @property
    def schema(self) -> Schema:
        """Return the shape of its objects."""
        return self.schema_of()
