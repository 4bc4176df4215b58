"""Tests that events of a DisaggregatedSet do not include events of LeaderWorkerSets with a similar name."""

import asyncio

from testkit.fakes import ScriptedTransport, respond

from kuberuntime.client.client import Client
from kuberuntime.objects.meta import JSONObject
from lwsctl.model.disaggregatedset import SetView
from lwsctl.model.leaderworkerset import view
from lwsctl.observation import eventlog
from lwsctl.views.selection import Selection


def about(name: str) -> JSONObject:
    involved = {"kind": "Pod", "name": name, "uid": f"deleted-{name}"}
    return {"metadata": {"name": f"{name}.1", "uid": name}, "involvedObject": involved, "reason": "Killing"}


def listing(*items: JSONObject) -> JSONObject:
    return {"metadata": {}, "items": list(items)}


def test_events_of_a_set_and_its_part_omit_a_longer_name() -> None:
    part = view({"metadata": {"name": "ds-prefill", "namespace": "prod"}}, [])
    obj = {"metadata": {"name": "ds", "namespace": "prod"}}
    whole = SetView(name="ds", namespace="prod", created="", roles=(), parts=(part,), object=obj)
    events = respond(200, listing(about("ds-prefill-0"), about("ds-prefill-0-1"), about("ds-prefill-1")))
    names = respond(200, listing({"metadata": {"name": "ds-prefill"}}, {"metadata": {"name": "ds-prefill-0"}}))
    client = Client(ScriptedTransport(events, names, events, names))
    of_whole = asyncio.run(eventlog.read_disaggregatedset(client, whole))
    of_part = asyncio.run(eventlog.read(client, part, Selection("ds-prefill")))
    assert [event.object for event in of_whole] == [event.object for event in of_part] == ["pod/ds-prefill-1"]
