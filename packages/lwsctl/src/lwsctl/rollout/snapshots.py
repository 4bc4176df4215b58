"""Defines snapshots, which contain the objects for a plan as a `v1` List. Plans then do not require a cluster. Pure.

A snapshot contains LeaderWorkerSets, their pods and their StatefulSets, as `kubectl get lws,sts,pods -o yaml` prints
them. Without an API server, defaults are not set. A manifest is merged into the snapshot object field by field.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSON, JSONObject
from kuberuntime.objects.resources import PODS, STATEFULSETS
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.decisions.admissionchecks import default_leaderworkerset
from lwsctl.model.leaderworkerset import View, view
from lwsctl.views.document import without_managed_fields

KINDS: Final = (LEADERWORKERSETS.kind, STATEFULSETS.kind, PODS.kind)


def build(views: Iterable[View]) -> JSONObject:
    """Return the snapshot of LeaderWorkerSets."""
    items: list[JSONObject] = []
    for lws in views:
        objects = [lws.object, *([lws.leaders] if lws.leaders else []), *lws.pods]
        items += [without_managed_fields(obj) for obj in objects]
    return {"apiVersion": "v1", "kind": "List", "items": items}


def find(objects: Sequence[JSONObject], name: str, namespace: str) -> View | None:
    """Return a LeaderWorkerSet in a snapshot. Without a namespace, only one LeaderWorkerSet may match."""
    for lws in _objects_of_kind(objects, LEADERWORKERSETS.kind):
        if meta.name(lws) == name and namespace in {"", meta.namespace(lws)}:
            place = meta.namespace(lws)
            pods = [pod for pod in _objects_of_kind(objects, PODS.kind) if _is_in_set(pod, name, place)]
            sets = [
                statefulset
                for statefulset in _objects_of_kind(objects, STATEFULSETS.kind)
                if meta.name(statefulset) == name and _is_in_set(statefulset, name, place)
            ]
            served = default_leaderworkerset(lws)  # the snapshot may be older than the CRD
            return view(served, pods, leaders=sets[0] if sets else None)
    return None


def overlay(live: JSONObject | None, manifest: JSONObject) -> JSONObject:
    """Return the object that results from applying the manifest.

    Its fields override live fields, and webhook defaults are set.
    """
    laid = _overlay(live, manifest) if live is not None else manifest
    return default_leaderworkerset(laid) if isinstance(laid, dict) else manifest


def _overlay(live: JSON, manifest: JSON) -> JSON:
    if isinstance(live, dict) and isinstance(manifest, dict):
        return live | {name: _overlay(live.get(name), value) for name, value in manifest.items()}
    if isinstance(live, list) and isinstance(manifest, list) and len(live) == len(manifest):
        return [_overlay(old, new) for old, new in zip(live, manifest, strict=True)]
    return manifest


def _objects_of_kind(objects: Sequence[JSONObject], kind: str) -> list[JSONObject]:
    return [obj for obj in objects if obj.get("kind") == kind]


def _is_in_set(obj: JSONObject, name: str, namespace: str) -> bool:
    return meta.labels(obj).get(labels.NAME) == name and meta.namespace(obj) == namespace
