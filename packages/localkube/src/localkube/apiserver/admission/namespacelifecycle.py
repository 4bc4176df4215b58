"""Implements the admission rules for creating objects in namespaces, and for deleting namespaces.

A namespace is deleted in two steps. First, DELETE marks the namespace as Terminating. Then the namespace controller
deletes its objects and removes `kubernetes` from `spec.finalizers` through `/finalize`, which removes the namespace.
"""

from datetime import datetime
from typing import Final

from kuberuntime.objects import meta, resources, timestamps
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import NAMESPACES, Resource
from localkube.apiserver.model import apierrors
from localkube.apiserver.storage.store import Store, StoreKey

INITIAL: Final = ("default", "kube-system", "kube-public", "kube-node-lease")
IMMORTAL: Final = ("default", "kube-system", "kube-public")
FINALIZER: Final = "kubernetes"


def require_active_namespace(store: Store, resource: Resource, namespace: str, name: str) -> None:
    """Raise an error if the namespace of a new object does not exist or is terminating."""
    if not resource.namespaced:
        return
    obj = store.get(StoreKey(NAMESPACES.group_resource, "", namespace))
    if obj is None:
        raise apierrors.not_found(NAMESPACES, namespace)
    if meta.is_deleting(obj):
        why = f"unable to create new content in namespace {namespace} because it is being terminated"
        cause = {
            "reason": "NamespaceTerminating",
            "message": f"namespace {namespace} is being terminated",
            "field": "metadata.namespace",
        }
        raise apierrors.forbidden(resource, name, why, [cause])


def require_deletable(resource: Resource, name: str) -> None:
    """Raise an error if the namespace is required in every cluster and must not be deleted."""
    if resource == resources.NAMESPACES and name in IMMORTAL:
        raise apierrors.forbidden(resource, name, "this namespace may not be deleted")


def mark_terminating(namespace: JSONObject) -> JSONObject:
    """Return the deleted namespace with the phase Terminating."""
    return {**namespace, "status": {**meta.status(namespace), "phase": "Terminating"}}


def build_initial(name: str, uid: str, now: datetime) -> JSONObject:
    """Build a namespace that is required in every cluster."""
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": name,
            "uid": uid,
            "creationTimestamp": timestamps.render(now),
            "labels": {"kubernetes.io/metadata.name": name},
        },
        "spec": {"finalizers": [FINALIZER]},
        "status": {"phase": "Active"},
    }
