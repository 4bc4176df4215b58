"""Selects objects for lists, watches and collection deletions by namespace, labels and fields.

A table lists the selectable fields of each resource. Name and namespace are always selectable.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from kuberuntime.objects import selectors
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.selectors import EVERYTHING, FieldTerm, LabelSelector, SelectorError, field_text
from localkube.apiserver.model import apierrors
from localkube.apiserver.model.catalog import ServedKind

METADATA_FIELDS: Final = ("metadata.name", "metadata.namespace")

FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "pods": (
        "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
        "status.phase", "status.podIP", "status.nominatedNodeName",
    ),
    "nodes": ("spec.unschedulable",),
    "namespaces": ("status.phase",),
    "secrets": ("type",),
    "services": ("spec.clusterIP", "spec.type"),
    "events": (
        "involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
        "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath",
        "reason", "reportingComponent", "source", "type",
    ),
}  # fmt: skip

FALSE_WHEN_ABSENT: Final = {"spec.unschedulable", "spec.hostNetwork"}


class ObjectSelector(Struct, frozen=True):
    """Selects objects by namespace (or in all namespaces, if it is empty), labels and fields."""

    namespace: str = ""
    labels: LabelSelector = EVERYTHING
    fields: tuple[FieldTerm, ...] = ()

    @property
    def is_everything(self) -> bool:
        """Return whether all objects in the namespace are selected."""
        return not self.labels.requirements and not self.fields

    def matches(self, obj: JSONObject) -> bool:
        """Return whether the object is selected."""
        metadata = obj["metadata"]
        if self.namespace and metadata.get("namespace") != self.namespace:
            return False
        if self.labels.requirements and not self.labels.matches(metadata.get("labels") or {}):
            return False
        return all(term.matches(_field_text(obj, term.path)) for term in self.fields)


def parse(served: ServedKind, namespace: str, query: Mapping[str, str]) -> ObjectSelector:
    """Parse the selectors of a request."""
    try:
        labels = selectors.parse_labels(query.get("labelSelector", ""))
        fields = selectors.parse_fields(query.get("fieldSelector", ""))
    except SelectorError as error:
        raise apierrors.bad_request(str(error)) from error
    for term in fields:
        _require_selectable(served, term.path)
    return ObjectSelector(namespace, labels, fields)


def _require_selectable(served: ServedKind, path: str) -> None:
    selectable = FIELDS.get(served.resource.plural) if served.resource.group == "" else None
    if path == "metadata.namespace" and selectable is not None and not served.resource.namespaced:
        raise apierrors.bad_request(f"field label not supported: {path}")
    if path in METADATA_FIELDS or path in (selectable or ()):
        return
    if selectable is not None or served.is_custom:
        raise apierrors.bad_request(f"field label not supported: {path}")
    raise apierrors.bad_request(f'"{path}" is not a known field selector: only "metadata.name", "metadata.namespace"')


def _field_text(obj: JSONObject, path: str) -> str:
    if path == "source":
        return field_text(obj, "source.component") or field_text(obj, "reportingComponent")
    return field_text(obj, path) or ("false" if path in FALSE_WHEN_ABSENT else "")
