"""Models the PodGroups of Kubernetes 1.37. Pods of a gang are bound together, and used PodGroups are not deleted.

In: the pods and PodGroups of a store. A pod that names a PodGroup waits until that exists and, if it is a gang, until as
many of its pods as `minCount` asks for are there, those with a node among them. PodGroups get the finalizer of
Kubernetes, and lose it when they are deleted and no pod names them any more (N-117-1, N-117-2).
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import msgspec
from tests.scheduled import link_of

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS, Resource
from localkube.apiserver.storage.store import Change, Store, StoreKey

WORKLOADS: Final = Resource("scheduling.k8s.io", "v1beta1", "workloads", "Workload")
POD_GROUPS: Final = Resource("scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup")
PROTECTION: Final = "scheduling.k8s.io/podgroup-protection"

_decoder: Final = msgspec.json.Decoder(JSONObject)


class PodGroups:
    """Schedules by PodGroup. `wake` is called with the name and the UID of every pod that may continue."""

    def __init__(self, store: Store, wake: Callable[[str, str], None]) -> None:
        self._store = store
        self._wake = wake
        store.subscribe(self._committed)

    def together(self, pod: JSONObject) -> Sequence[JSONObject]:
        """Return the unscheduled pods that are bound together with this pod, or none if this pod must wait."""
        name = link_of(pod)
        group = self._store.get(StoreKey(POD_GROUPS.group_resource, meta.namespace(pod), name))
        if group is None:
            return ()
        members = [one for one in self._pods() if link_of(one) == name and not meta.is_deleting(one)]
        waiting = [one for one in members if _is_waiting(one)]
        minimum = meta.spec(group)["schedulingPolicy"].get("gang", {}).get("minCount")
        if minimum is None:
            return (pod,)
        bound = [one for one in members if meta.spec(one).get("nodeName")]
        return waiting if len(bound) + len(waiting) >= minimum else ()

    def _committed(self, changes: Sequence[Change]) -> None:
        for change in changes:
            if change.key.resource == POD_GROUPS.group_resource and change.type != "DELETED":
                asyncio.get_running_loop().call_soon(self._keep, change.key)
                for pod in self._pods():
                    if link_of(pod) == change.key.name and _is_waiting(pod):
                        self._wake(meta.name(pod), meta.uid(pod))
            elif change.key.resource == PODS.group_resource and change.type == "DELETED" and link_of(change.object):
                key = StoreKey(POD_GROUPS.group_resource, change.key.namespace, link_of(change.object))
                asyncio.get_running_loop().call_soon(self._keep, key)

    def _keep(self, key: StoreKey) -> None:
        """Protect a PodGroup with a finalizer.

        Remove the finalizer if the PodGroup is being deleted and no pod references it.
        """
        group = self._store.get(key)
        if group is None:
            return
        finalizers = meta.metadata(group).get("finalizers") or []
        if not meta.is_deleting(group):
            if PROTECTION not in finalizers:
                self._store.update(key, _with_finalizers(group, [*finalizers, PROTECTION]), group)
        elif not any(link_of(pod) == key.name for pod in self._pods()):
            left = [one for one in finalizers if one != PROTECTION]
            if not left:
                self._store.delete(key, group)
            elif left != finalizers:
                self._store.update(key, _with_finalizers(group, left), group)

    def _pods(self) -> Iterator[JSONObject]:
        return map(_decoder.decode, list(self._store.list(PODS.group_resource, "default")))


def define(resource: Resource) -> JSONObject:
    """Return a CRD that serves a kind of the scheduler if the API server does not support it."""
    spec: dict[str, Any] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": resource.group_resource,
            "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
        },
        "spec": {
            "group": resource.group,
            "scope": "Namespaced",
            "names": {"kind": resource.kind, "listKind": f"{resource.kind}List", "plural": resource.plural,
                      "singular": resource.kind.lower()},
            "versions": [{"name": resource.version, "served": True, "storage": True, "schema": schema}],
        },
    }  # fmt: skip


def _is_waiting(pod: JSONObject) -> bool:
    spec = meta.spec(pod)
    is_free = not spec.get("nodeName") and not spec.get("schedulingGates")
    return is_free and not meta.is_deleting(pod) and meta.status(pod).get("phase") != "Failed"


def _with_finalizers(obj: JSONObject, finalizers: list[str]) -> JSONObject:
    return obj | {"metadata": meta.metadata(obj) | {"finalizers": finalizers}}
