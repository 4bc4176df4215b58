"""DELETE of a collection: delete all objects that the selectors choose, each as a DELETE of it would."""

from dataclasses import replace

import msgspec

from leaderworkerset.api import meta
from leaderworkerset.embedded.apiserver.backend import Backend
from leaderworkerset.embedded.apiserver.call import Call
from leaderworkerset.embedded.apiserver.forms.encoding import encode
from leaderworkerset.embedded.apiserver.refusal import Refusal
from leaderworkerset.embedded.apiserver.verbs import delete, selection
from leaderworkerset.embedded.apiserver.verbs.list import Page


async def delete_collection(backend: Backend, call: Call) -> Page:
    """Delete the selected objects; return them as they were before."""
    chosen = delete.read_options(call)
    selected = selection.parse(call.served, call.namespace, call.query)
    backend.store.flush()
    found = [msgspec.json.decode(row) for row in backend.store.list(call.served.stored_as, call.namespace)]
    deleted: list[bytes] = []
    for obj in filter(selected.matches, found):
        one = replace(call, namespace=meta.namespace(obj), name=meta.name(obj))
        try:
            await delete.delete_object(backend, one, chosen)
        except Refusal as refused:
            if refused.code != 404:
                raise
            continue  # somebody else was faster
        deleted.append(encode(obj))
    return Page(deleted, backend.store.revision)
