"""Converts views to the stable JSON documents that `lws get -o view` and other commands print. Pure."""

from collections.abc import Iterable, Sequence
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api.progressannotations import Hang, Progress
from lwsctl.model.disaggregatedset import SetView
from lwsctl.model.failurehistory import Recreations
from lwsctl.model.groups import Group
from lwsctl.model.leaderworkerset import View

VERSION: Final = "lws/v1"
"""The `apiVersion` of the documents. It changes only if the meaning of a field changes."""

VIEWS: Final = "LeaderWorkerSetViewList"
"""The `kind` of the document that `lws get` prints."""

OF_THE_SERVER: Final = frozenset(
    {"creationTimestamp", "generation", "managedFields", "ownerReferences", "resourceVersion", "uid"}
)
"""Metadata fields that only an API server or a controller sets."""


def document(views: Iterable[View], sets: Sequence[SetView] = (), *, managed_fields: bool = False) -> JSONObject:
    """Return the views and objects with stable field names. `managedFields` are optional.

    `disaggregatedSets` is present if the list is not empty. `moreGroups` is the number of groups without a pod that are
    not listed.
    """
    sets_field = (
        {"disaggregatedSets": [_set_document(set_view, managed_fields=managed_fields) for set_view in sets]}
        if sets
        else {}
    )
    return {
        "apiVersion": VERSION,
        "kind": VIEWS,
        "items": [
            {
                "leaderWorkerSet": view.object if managed_fields else without_managed_fields(view.object),
                "ready": view.ready,
                "desired": view.desired,
                "upToDate": view.up_to_date,
                "groups": [_group_document(group) for group in view.groups],
                **({"moreGroups": view.more} if view.more else {}),
            }
            for view in views
        ],
        **sets_field,
    }


def shown_objects(listing: JSONObject) -> list[JSONObject]:
    """Return the objects in `lws get` output as manifests, without fields that servers or controllers set.

    LeaderWorkerSets that a DisaggregatedSet owns are omitted, because the DisaggregatedSet creates them.
    """
    objects: list[object] = []
    for part, field in (("disaggregatedSets", "disaggregatedSet"), ("items", "leaderWorkerSet")):
        items = listing.get(part)
        objects += [item.get(field) for item in (items if isinstance(items, list) else ()) if isinstance(item, dict)]
    return [as_manifest(obj) for obj in objects if isinstance(obj, dict) and not meta.controller_of(obj)]


def as_manifest(obj: JSONObject) -> JSONObject:
    """Return a printed object as a manifest, without its status and the fields that only a server sets."""
    metadata = {name: value for name, value in meta.metadata(obj).items() if name not in OF_THE_SERVER}
    return {name: value for name, value in obj.items() if name != "status"} | {"metadata": metadata}


def _set_document(view: SetView, *, managed_fields: bool) -> JSONObject:
    return {
        "disaggregatedSet": view.object if managed_fields else without_managed_fields(view.object),
        "ready": view.is_ready,
        "rollout": view.rollout,
        "roles": [{"role": role.name, "ready": role.ready, "desired": role.desired} for role in view.roles],
        "leaderWorkerSets": [
            {
                "name": part.name,
                "role": part.role,
                "slice": part.slice,
                "revision": part.set_revision,
                "ready": part.ready,
                "desired": part.desired,
            }
            for part in view.parts
        ],
    }


def without_managed_fields(obj: JSONObject) -> JSONObject:
    """Return an object without `managedFields`, for users and scripts."""
    if "managedFields" not in meta.metadata(obj):
        return obj
    metadata = {name: value for name, value in meta.metadata(obj).items() if name != "managedFields"}
    return {**obj, "metadata": metadata}


def _recreations_document(recreation: Recreations) -> JSONObject:
    return {
        "count": recreation.count,
        "failedPod": recreation.failed_pod,
        "due": recreation.due.isoformat(),
        "waiting": recreation.is_waiting,
        "exhausted": recreation.is_exhausted,
        "failure": recreation.reason,
    }


def _progress_document(progress: Progress) -> JSONObject:
    return {
        "step": progress.step,
        "total": progress.total,
        "metrics": dict(progress.metrics),
        "at": None if progress.at is None else progress.at.isoformat(),
        "rate": progress.rate,
    }


def _hang_document(hang: Hang) -> JSONObject:
    ranks = [
        {"rank": rank.rank, "pod": rank.pod, "silentSince": rank.since.isoformat(), "waits": rank.waits}
        for rank in hang.ranks
    ]
    return {"since": hang.since.isoformat(), "ranks": ranks}


def _group_document(group: Group) -> JSONObject:
    return {
        "group": group.name,
        "ready": group.is_ready,
        "revision": group.revision,
        "recreations": _recreations_document(group.recreations) if group.recreations else None,
        **({"progress": _progress_document(group.progress)} if group.progress else {}),
        **({"hang": _hang_document(group.hang)} if group.hang else {}),
        **({"end": group.end.value} if group.end else {}),
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
