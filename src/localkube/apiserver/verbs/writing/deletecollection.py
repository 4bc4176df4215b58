"""DELETE of a collection: delete all selected objects, each as a DELETE of it would.

The objects are selected before any is deleted, as in kube-apiserver. A collection may be large: it is read in batches,
between which other requests are served, and only the keys of selected objects are kept.
"""

import asyncio
from dataclasses import replace
from itertools import islice
from typing import Final

import msgspec

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from localkube.apiserver.model.refusal import RefusalError
from localkube.apiserver.requests import filters
from localkube.apiserver.requests.call import Call
from localkube.apiserver.requests.filters import Selection
from localkube.apiserver.storage.encoding import encode
from localkube.apiserver.storage.store import StoreKey
from localkube.apiserver.verbs.backend import Backend
from localkube.apiserver.verbs.reading.list import Page
from localkube.apiserver.verbs.writing import delete

BATCH: Final = 25
"""Objects that are read at once; a batch of the largest ones takes about a hundred milliseconds."""


async def delete_collection(backend: Backend, call: Call) -> Page:
    """Delete the selected objects; return them as they were before."""
    chosen = delete.read_options(call)
    selected = filters.parse(call.served, call.namespace, call.query)
    backend.store.flush()
    deleted: list[bytes] = []
    for key in await _select(backend, call, selected):
        found = backend.store.get(key)
        if found is not None and await _delete(backend, call, found, chosen):
            deleted.append(encode(found))
        await asyncio.sleep(0)
    return Page(deleted, backend.store.revision)


async def _select(backend: Backend, call: Call, selected: Selection) -> list[StoreKey]:
    """Return the keys of the selected objects."""
    keys: list[StoreKey] = []
    after = ("", "")
    while rows := list(islice(backend.store.list(call.served.stored_as, call.namespace, after=after), BATCH)):
        batch = [msgspec.json.decode(row) for row in rows]
        keys += [StoreKey(call.served.stored_as, *meta.key(obj)) for obj in batch if selected.matches(obj)]
        after = meta.key(batch[-1])
        await asyncio.sleep(0)
    return keys


async def _delete(backend: Backend, call: Call, obj: JSONObject, chosen: delete.DeleteOptions) -> bool:
    """Delete one object; return whether it still existed: another request may have deleted it."""
    one = replace(call, namespace=meta.namespace(obj), name=meta.name(obj))
    try:
        await delete.delete_object(backend, one, chosen)
    except RefusalError as refused:
        if refused.code != 404:
            raise
        return False
    return True
