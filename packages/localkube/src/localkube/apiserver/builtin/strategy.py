"""Defines the strategy of a built-in kind (defaults, status, validation), and its conversion to a `Kind`.

All writes have the same steps: read the object into the Go type, restore fields that the operation may not write, fill
defaults, and set the generation. A `Strategy` contains the functions that differ between kinds. Defaults are filled in
place in the new object.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Literal, TypeAlias

from msgspec import Struct

from kuberuntime.objects import names, objectmeta
from kuberuntime.objects.field import FieldError, invalid
from kuberuntime.objects.gotypes import defaults
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.objectmeta import NameRule
from kuberuntime.objects.resources import Resource
from localkube.apiserver.model.kind import Alias, Kind, Operation, ScalePaths
from localkube.apiserver.tables import columns
from localkube.apiserver.types import schemas, typed
from localkube.apiserver.types.schemas import unknown_fields

Generation: TypeAlias = Literal["none", "spec", "spec and annotations", "object", "object and labels", "constant"]
"""The fields that increase the generation when they change.

The options are None, `spec` (with or without annotations), all except metadata and status (with or without labels), or
`constant` (always 1).
"""

STANDARD_FINALIZERS = {"kubernetes", "orphan", "foregroundDeletion"}

Validate: TypeAlias = Callable[[JSONObject, JSONObject | None], Iterable[FieldError]]


class Strategy(Struct, frozen=True, kw_only=True):
    """The strategy of a kind. `struct` is its Go type, and `description` is shown by `kubectl explain`.

    With `requires_qualified_finalizers`, finalizers must name a domain. `default` fills the defaults that depend on other
    fields, after the plain ones (`types/defaults.py`). `on_create` sets what admission sets on new objects only.
    `preserve` keeps fields that an update may leave out. `initial_status` is the status of a new object; `default_status`
    fills in defaults of a status. `resized` keeps what a resize does not write. `validate` checks the object and, if one is
    stored, the change; `validate_status` checks a status write, `validate_resize` a resize. `warnings` returns warnings about what an object does not do here.
    """

    resource: Resource
    struct: str
    description: str
    default: Callable[[JSONObject], None] = lambda _obj: None
    on_create: Callable[[JSONObject], None] = lambda _obj: None
    preserve: Callable[[JSONObject, JSONObject], None] = lambda _new, _old: None
    initial_status: Callable[[JSONObject], JSONObject] | None = None
    default_status: Callable[[JSONObject, JSONObject], None] = lambda _new, _old: None
    resized: Callable[[JSONObject, JSONObject], JSONObject] | None = None
    validate: Validate = lambda _new, _old: ()
    warnings: Callable[[JSONObject], Iterable[str]] = lambda _obj: ()
    validate_status: Validate = lambda _new, _old: ()
    validate_resize: Validate = lambda _new, _old: ()
    name_rule: NameRule = names.dns_1123_subdomain
    requires_qualified_finalizers: bool = True
    generation: Generation = "none"
    has_status: bool = False
    allows_status_on_create: bool = False
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    scale: ScalePaths | None = None
    alias: Alias | None = None
    is_lazily_owned: bool = False

    def kind(self) -> Kind:
        """Build the `Kind` for the verbs."""
        schema_of = partial(schemas.struct_schema, self.struct)
        table = self._table()
        return Kind(
            resource=self.resource,
            singular=self.resource.kind.lower(),
            schema_of=schema_of,
            prepare=self.prepare,
            validate=self.check,
            warnings=lambda obj: tuple(self.warnings(obj)),
            unknown_fields=lambda obj: unknown_fields(schema_of(), obj),
            columns=table.columns,
            cells=table.cells,
            short_names=self.short_names,
            categories=self.categories,
            has_status=self.has_status,
            scale=self.scale,
            empty_object=typed.empty_struct(self.struct),
            alias=self.alias,
            is_lazily_owned=self.is_lazily_owned,
            description=self.description,
        )

    def _table(self) -> columns.TableColumns:
        """Return the table columns. All versions of a kind use the columns of the stored version."""
        alias = self.alias
        if alias is None or alias.resource.group_resource != self.resource.group_resource:
            return columns.table_columns(self.resource)
        stored = columns.table_columns(alias.resource)
        return columns.TableColumns(stored.columns, lambda obj, now: stored.cells(alias.to_stored(obj), now))

    def prepare(self, operation: Operation, new: JSONObject, old: JSONObject | None) -> JSONObject:
        """Return the object as the operation stores it."""
        obj = typed.normalize(self.struct, new)
        if old is None:
            defaults.fill(typed.SERVED, self.struct, obj)
            self.default(obj)
            return self._prepare_new(obj)
        if operation == "status":
            status = obj.get("status", {})
            self.default_status(status, old.get("status", {}))
            return {**old, "metadata": _with_generation(obj["metadata"], old), "status": status}
        if operation == "resize" and self.resized is not None:
            obj = self.resized(obj, old)
        self.preserve(obj, old)
        defaults.fill(typed.SERVED, self.struct, obj)
        self.default(obj)
        if self.has_status:
            obj["status"] = old.get("status", {})
        obj["metadata"] = _with_generation(obj["metadata"], old, step=self._increments_generation(obj, old))
        return obj

    def _prepare_new(self, obj: JSONObject) -> JSONObject:
        self.on_create(obj)
        if self.initial_status is not None:
            obj["status"] = self.initial_status(obj)
        elif self.has_status and not self.allows_status_on_create:
            obj["status"] = typed.empty_struct(self.struct)["status"]
        if self.generation != "none":
            obj["metadata"]["generation"] = 1
        return obj

    def _increments_generation(self, new: JSONObject, old: JSONObject) -> bool:
        match self.generation:
            case "spec":
                return bool(new.get("spec") != old.get("spec"))
            case "spec and annotations":
                notes = [obj["metadata"].get("annotations") or {} for obj in (new, old)]
                return bool(new.get("spec") != old.get("spec")) or notes[0] != notes[1]
            case "object":
                return _content(new) != _content(old)
            case "object and labels":
                labels = [obj["metadata"].get("labels") or {} for obj in (new, old)]
                return _content(new) != _content(old) or labels[0] != labels[1]
            case _:
                return False

    def check(self, operation: Operation, new: JSONObject, old: JSONObject | None) -> Sequence[FieldError]:
        """Return all errors of a prepared object."""
        errors = objectmeta.validate(new["metadata"], self.name_rule, namespaced=self.resource.namespaced)
        rules = {"status": self.validate_status, "resize": self.validate_resize}.get(operation, self.validate)
        finalizers = (new["metadata"].get("finalizers") or ()) if self.requires_qualified_finalizers else ()
        return [*errors, *_validate_finalizers(finalizers), *rules(new, old)]


def _validate_finalizers(finalizers: Sequence[str]) -> Iterator[FieldError]:
    """Yield errors for finalizers that are neither standard finalizers nor qualified by a domain."""
    for index, finalizer in enumerate(finalizers):
        if "/" not in finalizer and finalizer not in STANDARD_FINALIZERS:
            text = "name is neither a standard finalizer name nor is it fully qualified"
            yield invalid(f"metadata.finalizers[{index}]", finalizer, text)


def _content(obj: JSONObject) -> JSONObject:
    return {name: value for name, value in obj.items() if name not in {"metadata", "status"}}


def _with_generation(metadata: JSONObject, old: JSONObject, *, step: bool = False) -> JSONObject:
    generation = old["metadata"].get("generation")
    if generation is None:
        return metadata
    return metadata | {"generation": generation + step}
