"""DELETE of a collection: delete all objects that the selectors choose, each as a DELETE of it would."""

from dataclasses import replace

import msgspec

from kuberuntime.objects import meta
from localkube.apiserver.model.refusal import RefusalError
from localkube.apiserver.requests import filters
from localkube.apiserver.requests.call import Call
from localkube.apiserver.storage.encoding import encode
from localkube.apiserver.verbs.backend import Backend
from localkube.apiserver.verbs.reading.list import Page
from localkube.apiserver.verbs.writing import delete


async def delete_collection(backend: Backend, call: Call) -> Page:
    """Delete the selected objects; return them as they were before."""
    chosen = delete.read_options(call)
    selected = filters.parse(call.served, call.namespace, call.query)
    backend.store.flush()
    found = [msgspec.json.decode(row) for row in backend.store.list(call.served.stored_as, call.namespace)]
    deleted: list[bytes] = []
    for obj in filter(selected.matches, found):
        one = replace(call, namespace=meta.namespace(obj), name=meta.name(obj))
        try:
            await delete.delete_object(backend, one, chosen)
        except RefusalError as refused:
            if refused.code != 404:
                raise
            continue  # somebody else was faster
        deleted.append(encode(obj))
    return Page(deleted, backend.store.revision)
