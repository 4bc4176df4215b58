"""POST to a pod's `/eviction`: delete it as the Eviction's options say. There are no disruption budgets here."""

from dataclasses import replace

import msgspec

from leaderworkerset.api.meta import JSONObject
from leaderworkerset.embedded.apiserver import refusal
from leaderworkerset.embedded.apiserver.backend import Backend
from leaderworkerset.embedded.apiserver.call import Call
from leaderworkerset.embedded.apiserver.forms import body
from leaderworkerset.embedded.apiserver.verbs import delete
from leaderworkerset.embedded.apiserver.verbs.binding import SUCCESS


async def evict(backend: Backend, call: Call) -> JSONObject:
    """Delete the pod."""
    sent = body.parse(call.body, body.media_type(call.headers))
    if not isinstance(sent, dict) or sent.get("kind", "Eviction") != "Eviction":
        raise refusal.bad_request("the body must be an Eviction of policy/v1")
    options = msgspec.json.encode(sent.get("deleteOptions") or {})
    await delete.delete_object(backend, call, delete.read_options(replace(call, body=options, headers={})))
    return SUCCESS
