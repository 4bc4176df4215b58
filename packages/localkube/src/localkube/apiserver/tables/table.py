"""Builds the `meta.k8s.io/v1` Table of objects that `kubectl get` requests.

In: a kind, its objects, the current time, and the part of the object that each row includes. Out: the Table, without
list metadata if there are several objects.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from kuberuntime.objects import meta
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
        "rows": [{"cells": kind.cells(obj, now), "object": _carried(obj, include)} for obj in objects],
    }


def _definition(column: Column) -> JSONObject:
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": column.description,
        "priority": column.priority,
    }


def _carried(obj: JSONObject, include: str) -> JSONObject | None:
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
    return human_duration((now - moment).total_seconds())


MINUTE, HOUR, DAY, YEAR = 60, 3600, 86400, 365 * 86400

DURATION_STEPS = (
    # the limit in seconds, the large unit, and the small unit (None if omitted)
    (2 * MINUTE, (1, "s"), None),
    (10 * MINUTE, (MINUTE, "m"), (1, "s")),
    (3 * HOUR, (MINUTE, "m"), None),
    (8 * HOUR, (HOUR, "h"), (MINUTE, "m")),
    (2 * DAY, (HOUR, "h"), None),
    (8 * DAY, (DAY, "d"), (HOUR, "h")),
    (2 * YEAR, (DAY, "d"), None),
    (8 * YEAR, (YEAR, "y"), (DAY, "d")),
    (float("inf"), (YEAR, "y"), None),
)


def human_duration(seconds: float) -> str:
    """Format a duration with at most two units.

    >>> human_duration(7), human_duration(190), human_duration(3 * 86400 + 7200)
    ('7s', '3m10s', '3d2h')
    """
    if seconds < -1:
        return "<invalid>"
    whole = max(0, int(seconds))
    large, small = next((large, small) for limit, large, small in DURATION_STEPS if whole < limit)
    text = f"{whole // large[0]}{large[1]}"
    if small is None:
        return text
    rest = whole % large[0] // small[0]
    return f"{text}{rest}{small[1]}" if rest else text
