"""Every built-in kind, assembled."""

from collections.abc import Sequence
from datetime import datetime

from leaderworkerset.api import resources
from leaderworkerset.api.field import FieldError
from leaderworkerset.api.meta import JSONObject, name
from leaderworkerset.api.resources import Resource
from leaderworkerset.embedded.apiserver.kind import Column, Kind, Operation, ScalePaths, Schema

SHORT_NAMES: dict[str, tuple[str, ...]] = {
    "pods": ("po",),
    "services": ("svc",),
    "endpoints": ("ep",),
    "configmaps": ("cm",),
    "serviceaccounts": ("sa",),
    "persistentvolumeclaims": ("pvc",),
    "persistentvolumes": ("pv",),
    "namespaces": ("ns",),
    "nodes": ("no",),
    "events": ("ev",),
    "statefulsets": ("sts",),
    "priorityclasses": ("pc",),
    "storageclasses": ("sc",),
    "customresourcedefinitions": ("crd", "crds"),
}
WITH_STATUS = {
    "pods", "services", "persistentvolumeclaims", "persistentvolumes", "namespaces", "nodes", "statefulsets",
    "customresourcedefinitions",
}  # fmt: skip
WITH_GENERATION = {
    "pods", "statefulsets", "endpointslices", "priorityclasses", "customresourcedefinitions",
    "mutatingwebhookconfigurations", "validatingwebhookconfigurations",
}  # fmt: skip


def kinds() -> Sequence[Kind]:
    """Return all built-in kinds."""
    served = [value for value in vars(resources).values() if isinstance(value, Resource)]
    return tuple(_kind(resource) for resource in served if resource != resources.LEADERWORKERSETS)


def _kind(resource: Resource) -> Kind:
    has_status = resource.plural in WITH_STATUS

    def prepare(operation: Operation, new: JSONObject, old: JSONObject | None) -> JSONObject:
        if operation == "status" and old is not None:
            return {**old, "metadata": new["metadata"], "status": new.get("status", {})}
        kept = {key: value for key, value in new.items() if key != "status" or not has_status}
        if has_status and old is not None and "status" in old:
            kept["status"] = old["status"]
        if resource.plural in WITH_GENERATION:
            generation = 1
            if old is not None:
                generation = old["metadata"].get("generation", 1) + (old.get("spec") != kept.get("spec"))
            kept["metadata"] = {**kept["metadata"], "generation": generation}
        return kept

    return Kind(
        resource=resource,
        singular=resource.kind.lower(),
        schema=Schema("object"),
        prepare=prepare,
        validate=_no_faults,
        unknown_fields=lambda _: (),
        columns=(Column("Name", "string", "Name of the object", format="name"),),
        cells=_cells,
        short_names=SHORT_NAMES.get(resource.plural, ()),
        categories=("all",) if resource.plural in {"pods", "services", "statefulsets"} else (),
        has_status=has_status,
        scale=ScalePaths(".spec.replicas", ".status.replicas", ".status.selector")
        if resource == resources.STATEFULSETS
        else None,
    )


def _no_faults(_operation: Operation, _new: JSONObject, _old: JSONObject | None) -> Sequence[FieldError]:
    return ()


def _cells(obj: JSONObject, _now: datetime) -> list[object]:
    return [name(obj)]
