"""Serves the kinds of CustomResourceDefinitions (CRDs), from the commit of a CRD until its deletion.

A CRD has the finalizer `customresourcecleanup.apiextensions.k8s.io`. When the CRD is deleted, all its objects are
deleted. After the last object, the finalizer, the CRD and the kind are removed.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CUSTOM_RESOURCE_DEFINITIONS
from localkube.apiserver.custom import customresource
from localkube.apiserver.model.catalog import ServedKind
from localkube.apiserver.requests.call import Call
from localkube.apiserver.storage.store import Change, StoreKey
from localkube.apiserver.verbs.backend import Backend
from localkube.apiserver.verbs.writing import delete
from localkube.apiserver.verbs.writing.delete import DeleteOptions

STORED_AS: Final = CUSTOM_RESOURCE_DEFINITIONS.group_resource
FINALIZER: Final = "customresourcecleanup.apiextensions.k8s.io"
USER: Final = "system:apiserver"


class Definitions:
    """Updates the registry when the stored CRDs change."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def load(self) -> None:
        """Serve the CRDs that were stored before this process started, and resume interrupted deletions."""
        for row in list(self._backend.store.list(STORED_AS)):
            self._serve(msgspec.json.decode(row))

    def observe(self, changes: Sequence[Change]) -> None:
        """Update the registry after a commit."""
        for change in changes:
            if change.key.resource == STORED_AS and change.type == "DELETED":
                resource = customresource.resource_of(change.object)
                self._backend.registry.remove(resource)
                self._backend.broadcaster.close_watches(resource.group_resource)
            elif change.key.resource == STORED_AS:
                self._serve(change.object, change.previous)
            elif change.type == "DELETED":
                self._finalize(change.key.resource)

    def _serve(self, definition: JSONObject, previous: JSONObject | None = None) -> None:
        """Serve the kind of a CRD. If its spec is unchanged, reuse the existing kind, because its schema is large."""
        is_redefined = previous is not None and meta.spec(previous) != meta.spec(definition)
        if previous is None or is_redefined:
            self._backend.registry.add(customresource.kind_from_crd(definition))
        resource = customresource.resource_of(definition)
        if is_redefined:
            self._backend.broadcaster.close_watches(resource.group_resource)
        if meta.is_deleting(definition):
            served = self._backend.registry.find(resource.group, resource.version, resource.plural)
            if served is not None:
                self._delete_objects(served)
        elif FINALIZER not in (meta.metadata(definition).get("finalizers") or ()):
            self._set_finalizers(definition, [*(meta.metadata(definition).get("finalizers") or ()), FINALIZER])

    def _delete_objects(self, served: ServedKind) -> None:
        for row in list(self._backend.store.list(served.stored_as)):
            key = meta.key(msgspec.json.decode(row))
            call = Call(
                method="DELETE",
                served=served,
                namespace=key.namespace,
                name=key.name,
                query={},
                headers={},
                user=USER,
            )
            delete.delete_now(self._backend, call, DeleteOptions())
        self._finalize(served.stored_as)

    def _finalize(self, stored_as: str) -> None:
        """Remove the finalizer of a CRD that is being deleted, if it has no more objects."""
        definition = self._backend.store.get(StoreKey(STORED_AS, "", stored_as))
        if definition is None or not meta.is_deleting(definition) or self._backend.store.count(stored_as):
            return
        finalizers = meta.metadata(definition).get("finalizers") or ()
        if FINALIZER in finalizers:
            self._set_finalizers(definition, [name for name in finalizers if name != FINALIZER])

    def _set_finalizers(self, definition: JSONObject, finalizers: Sequence[str]) -> None:
        store, key = self._backend.store, StoreKey(STORED_AS, "", meta.name(definition))
        if meta.is_deleting(definition) and not finalizers:
            store.delete(key, definition)
            return
        metadata = {**meta.metadata(definition), "finalizers": list(finalizers)}
        store.update(key, {**definition, "metadata": metadata}, definition)
