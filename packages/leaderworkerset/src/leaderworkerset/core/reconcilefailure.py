"""Reports failed reconciliations in the status of an object, which is then not Available (docs/adr/0030).

The same rule applies to LeaderWorkerSets and DisaggregatedSets, whose conditions have the same types. It needs only the
status, so that it also applies if the spec cannot be read. The message of the condition that became False contains the
time since which it was True, which is needed to find workers that were lost in the meantime (docs/adr/0014).
"""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Final

from kuberuntime.objects import meta, timestamps
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource
from kuberuntime.plan import PutStatus, changed_status
from leaderworkerset.api.conditions import AVAILABLE, COMPLETE, FAILED, PROGRESSING

REASON: Final = "ReconcileFailed"
"""The reason of the `PROGRESSING` condition after a failed reconciliation.

`AVAILABLE` has it if it changed to False.
"""

NOT_WRITTEN: Final = "Failed to write or delete an object. See the events and the log of the manager"
NOT_DECIDED: Final = "Failed to reconcile. See the error in the log of the manager"
NOT_READ: Final = "The object is invalid: {error}"

LONGEST: Final = 1024
"""The maximum number of characters of a message."""

FINAL: Final = (COMPLETE.type, FAILED.type)
"""The conditions that report a final result, which later failures do not change."""

_UNTIL: Final = "It was True since {since}, until a reconciliation failed. {why}"
_SINCE: Final = re.compile(r"It was True since (\S+), until")


def report(resource: Resource, obj: JSONObject, why: str, now: datetime) -> tuple[PutStatus, ...]:
    """Return the status write for a failed reconciliation, unless it is already written."""
    return failed_action_status(resource, obj, meta.status(obj), now, why)


def unavailable_status(resource: Resource, obj: JSONObject | None, now: datetime) -> tuple[PutStatus, ...]:
    """Return the status write for an object that cannot be reconciled, unless the object no longer exists."""
    return () if obj is None else report(resource, obj, NOT_DECIDED, now)


def failed_action_status(
    resource: Resource, obj: JSONObject, counts: JSONObject, now: datetime, why: str = NOT_WRITTEN
) -> tuple[PutStatus, ...]:
    """Return the status write for a failed action, with the counts of a different status."""
    if any(meta.is_condition_true(obj, final) for final in FINAL):
        return ()
    status = counts | {"conditions": meta.status(obj).get("conditions") or []}
    return changed_status(resource, obj, _with_failure(status, meta.generation(obj), why[:LONGEST], now))


def _with_failure(status: JSONObject, generation: int, why: str, now: datetime) -> JSONObject:
    """Return the status without `AVAILABLE`, and with `PROGRESSING` set to True with this message."""
    before: Mapping[str, JSONObject] = {condition["type"]: condition for condition in status["conditions"]}
    available, known = before.get(AVAILABLE.type) or {}, before.get(PROGRESSING.type) or {}
    mark = {"reason": REASON, "observedGeneration": generation, "lastTransitionTime": timestamps.render(now)}
    after = dict(before)
    if available.get("status") == "True":
        message = _UNTIL.format(since=available.get("lastTransitionTime"), why=why)
        after[AVAILABLE.type] = available | mark | {"status": "False", "message": message[:LONGEST]}
    after[PROGRESSING.type] = mark | {"type": PROGRESSING.type, "status": "True", "message": why}
    if known.get("status") == "True":
        after[PROGRESSING.type]["lastTransitionTime"] = known.get("lastTransitionTime")
    return status | {"conditions": list(after.values()), "observedGeneration": generation}


def message(obj: JSONObject) -> str:
    """Return the message for a failed reconciliation."""
    return str((meta.find_condition(obj, PROGRESSING.type) or {}).get("message") or "")


def is_failing(obj: JSONObject) -> bool:
    """Return whether the status reports that the last reconciliation failed."""
    condition = meta.find_condition(obj, PROGRESSING.type) or {}
    return condition.get("status") == "True" and condition.get("reason") == REASON


def without_failure(obj: JSONObject) -> JSONObject:
    """Return the object without the failure, so that `AVAILABLE` is True with its earlier transition time."""
    status = meta.status(obj)
    conditions = [_restore_condition(condition) for condition in status.get("conditions") or []]
    return obj | {"status": status | {"conditions": conditions}}


def _restore_condition(condition: JSONObject) -> JSONObject:
    since = _SINCE.match(condition.get("message") or "")
    if since is None or condition.get("reason") != REASON:
        return condition
    return condition | {"status": "True", "lastTransitionTime": since[1]}
