"""POST to a pod's `/eviction`: delete it with the options of the Eviction. There are no disruption budgets here."""

from dataclasses import replace

import msgspec

from kuberuntime.objects.meta import JSONObject
from localkube.apiserver.requests import body
from localkube.apiserver.requests.call import Call
from localkube.apiserver.verbs.backend import Backend
from localkube.apiserver.verbs.writing import delete
from localkube.apiserver.verbs.writing.binding import SUCCESS


async def evict(backend: Backend, call: Call) -> JSONObject:
    """Delete the pod."""
    sent = body.read_struct(call, "Eviction", {"policy/v1", "policy/v1beta1"})
    options = msgspec.json.encode(sent.get("deleteOptions") or {})
    await delete.delete_object(backend, call, delete.read_options(replace(call, body=options, headers={})))
    return SUCCESS
