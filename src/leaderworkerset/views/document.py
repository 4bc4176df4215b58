"""Views as documents: the stable JSON that programs read, of `lws get -o json` and of whatever else serves it. Pure."""

from collections.abc import Iterable
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.views.groups import Group, Recreations, View

VERSION: Final = "lws/v1"
"""`apiVersion` of the documents; it changes only when a field changes its meaning."""


def document(views: Iterable[View], *, managed_fields: bool = False) -> JSONObject:
    """Return the views under stable names, the objects themselves included; `managedFields` only where asked for."""
    return {
        "apiVersion": VERSION,
        "kind": "LeaderWorkerSetViewList",
        "items": [
            {
                "leaderWorkerSet": view.object if managed_fields else _without_managed_fields(view.object),
                "ready": view.ready,
                "desired": view.desired,
                "upToDate": view.up_to_date,
                "groups": [_group_document(group) for group in view.groups],
            }
            for view in views
        ],
    }


def _without_managed_fields(obj: JSONObject) -> JSONObject:
    if "managedFields" not in meta.metadata(obj):
        return obj
    kept = {name: value for name, value in meta.metadata(obj).items() if name != "managedFields"}
    return {**obj, "metadata": kept}


def _recreations(told: Recreations) -> JSONObject:
    return {
        "count": told.count,
        "failedPod": told.failed_pod,
        "due": told.due.isoformat(),
        "waiting": told.is_waiting,
    }


def _group_document(group: Group) -> JSONObject:
    return {
        "group": group.index,
        "ready": group.is_ready,
        "revision": group.revision,
        "recreations": _recreations(group.recreations) if group.recreations else None,
        "ranks": [
            {
                "rank": rank.index,
                "pod": rank.pod,
                "uid": rank.uid,
                "state": rank.state,
                "why": rank.why,
                "ready": rank.is_ready,
                "restarts": rank.restarts,
                "node": rank.node,
                "address": rank.address,
                "created": rank.created,
                "stub": rank.is_stub,
            }
            for rank in group.ranks
        ],
    }
