"""Defines Events of the core group, and their representation in events.k8s.io.

Events are stored in the core form; `to_core` and `from_core` convert them field by field.
"""

from collections.abc import Iterator

from kuberuntime.objects import names, resources
from kuberuntime.objects.field import FieldError, all_invalid, invalid, required_error
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.podrules.values import validate_immutable
from localkube.apiserver.builtin.strategy import Strategy
from localkube.apiserver.model.kind import Alias

CORE_NAMES = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
"""The events.k8s.io fields whose names differ in the core group, and their names in the core group."""

EVENT_NAMES = {core: name for name, core in CORE_NAMES.items()}
ALWAYS_CORE: JSONObject = {
    "reportingComponent": "",
    "reportingInstance": "",
    "source": {},
    "firstTimestamp": None,
    "lastTimestamp": None,
}
LONGEST = {"action": 128, "reason": 128, "reportingInstance": 128}
LONGEST_NOTE = 1024
TYPES = ("Normal", "Warning")


def to_core(event: JSONObject) -> JSONObject:
    """Convert the event to the core group."""
    renamed = {CORE_NAMES.get(name, name): value for name, value in event.items()}
    return {"kind": "Event", "apiVersion": "v1"} | ALWAYS_CORE | renamed | {"apiVersion": "v1"}


def from_core(event: JSONObject) -> JSONObject:
    """Convert the event to events.k8s.io."""
    renamed = {EVENT_NAMES.get(name, name): value for name, value in event.items()}
    fields = {name: value for name, value in renamed.items() if value != "" or not name.startswith("reporting")}
    return fields | {"apiVersion": "events.k8s.io/v1"}


def validate_core(new: JSONObject, _old: JSONObject | None) -> Iterator[FieldError]:
    """Yield the errors of a core event."""
    yield from _validate_namespace(new, new["involvedObject"], "involvedObject")
    if new["eventTime"] is not None:
        yield from _validate_report(new, "reportingComponent")


def validate_event(new: JSONObject, old: JSONObject | None) -> Iterator[FieldError]:
    """Yield the validation errors of an events.k8s.io event or of a change to it. Only the series is mutable."""
    yield from _validate_namespace(new, new["regarding"], "regarding")
    if old is None and new["eventTime"] is None and not new.get("deprecatedLastTimestamp"):
        yield required_error("eventTime")
    if new["eventTime"] is not None:
        yield from _validate_report(new, "reportingController")
    note = new.get("note", "")
    if len(note) > LONGEST_NOTE:
        yield invalid("note", "", f"can have at most {LONGEST_NOTE} characters")
    if old is not None:
        for field in ("regarding", "reason", "reportingController", "reportingInstance", "action", "note", "type"):
            yield from validate_immutable(new.get(field), old.get(field), field)


def _validate_namespace(event: JSONObject, about: JSONObject, field: str) -> Iterator[FieldError]:
    namespace = event["metadata"].get("namespace", "")
    expected = about.get("namespace") or "default"
    if namespace != expected:
        yield invalid(f"{field}.namespace", about.get("namespace", ""), "does not match event.namespace")


def _validate_report(event: JSONObject, controller: str) -> Iterator[FieldError]:
    reporter = event.get(controller, "")
    if not reporter:
        yield required_error("reportingController")
    yield from all_invalid("reportingController", reporter, names.qualified_name(reporter))
    for field, limit in LONGEST.items():
        value = event.get(field, "")
        if not value:
            yield required_error(field)
        if len(value) > limit:
            yield invalid(field, "", f"can have at most {limit} characters")
    if event.get("type", "") not in TYPES:
        yield invalid("type", "", f"has invalid value: {event.get('type', '')}")


CORE_EVENT = Strategy(
    resource=resources.CORE_EVENTS,
    struct="Event",
    description="An Event reports what happened to an object.",
    validate=validate_core,
    short_names=("ev",),
    is_lazily_owned=True,
)

EVENT = Strategy(
    resource=resources.EVENTS,
    struct="EventsV1Event",
    description="An Event reports what happened to an object.",
    validate=validate_event,
    short_names=("ev",),
    alias=Alias(resources.CORE_EVENTS, to_core, from_core),
    is_lazily_owned=True,
)
