"""POST to a pod's `/eviction`: delete it as the Eviction's options say. There are no disruption budgets here."""

from dataclasses import replace

import msgspec

from leaderworkerset.api.meta import JSONObject
from leaderworkerset.embedded.apiserver.backend import Backend
from leaderworkerset.embedded.apiserver.call import Call
from leaderworkerset.embedded.apiserver.forms import body
from leaderworkerset.embedded.apiserver.verbs import delete
from leaderworkerset.embedded.apiserver.verbs.binding import SUCCESS


async def evict(backend: Backend, call: Call) -> JSONObject:
    """Delete the pod."""
    sent = body.read_struct(call, "Eviction")
    options = msgspec.json.encode(sent.get("deleteOptions") or {})
    await delete.delete_object(backend, call, delete.read_options(replace(call, body=options, headers={})))
    return SUCCESS
