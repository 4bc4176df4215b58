"""Builds the `meta.k8s.io/v1` Table of objects that `kubectl get` requests.

In: a kind, its objects, the current time, and the part of the object that each row includes. Out: the Table, without
list metadata if there are several objects.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from kuberuntime.objects import duration, meta
from kuberuntime.objects.field import invalid
from kuberuntime.objects.meta import JSONObject
from localkube.apiserver.model import apierrors
from localkube.apiserver.model.kind import Column, Kind

NONE = "<none>"
UNKNOWN = "<unknown>"
INCLUDES = ("Metadata", "None", "Object")

NAME = Column("Name", "string", "Name must be unique within a namespace.", format="name")
AGE = Column("Age", "string", "Time since the object was created.")


def render(kind: Kind, objects: Sequence[JSONObject], now: datetime, include: str = "") -> JSONObject:
    """Return the Table. `include` is `Metadata` (the default), `Object` or `None`."""
    include = include or "Metadata"
    if include not in INCLUDES:
        error = invalid("includeObject", include, "must be 'Metadata', 'Object', 'None', or empty")
        raise apierrors.bad_request(f"Unable to convert to Table as requested: {error}")
    version = meta.resource_version(objects[0]) if len(objects) == 1 else ""
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": version} if version else {},
        "columnDefinitions": [_definition(column) for column in kind.columns],
        "rows": [{"cells": kind.cells(obj, now), "object": _row_object(obj, include)} for obj in objects],
    }


def _definition(column: Column) -> JSONObject:
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": column.description,
        "priority": column.priority,
    }


def _row_object(obj: JSONObject, include: str) -> JSONObject | None:
    match include:
        case "Object":
            return obj
        case "None":
            return None
        case _:
            return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}


def age(timestamp: str | None, now: datetime) -> str:
    """Return the time since a timestamp in the format of kubectl."""
    if not timestamp:
        return UNKNOWN
    try:
        moment = datetime.fromisoformat(timestamp)
    except ValueError:
        return UNKNOWN
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    length = now - moment
    return "<invalid>" if length < timedelta(seconds=-1) else duration.human(length)
