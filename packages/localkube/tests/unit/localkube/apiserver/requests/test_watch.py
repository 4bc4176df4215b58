"""Tests the watch hub. If one watch cannot render a change, only that watch is closed."""

import asyncio

import structlog

from kuberuntime.objects.meta import JSONObject
from localkube.apiserver.builtin import kinds
from localkube.apiserver.model.catalog import Registry
from localkube.apiserver.requests.filters import ObjectSelector
from localkube.apiserver.requests.watch import Encoder, WatchBroadcaster
from localkube.apiserver.storage.store import Change, StoreKey

CONFIG_MAPS = Registry(kinds()).find("", "v1", "configmaps")


def added(name: str, revision: int) -> Change:
    obj: JSONObject = {"metadata": {"name": name, "namespace": "default"}}
    return Change(revision, "ADDED", StoreKey("configmaps", "default", name), obj, b'"%s"' % name.encode(), None)


def refuse(obj: JSONObject, _value: bytes | None) -> bytes:
    raise ValueError(obj["metadata"]["name"])


async def test_failing_feed_is_closed_and_others_continue() -> None:
    hub = WatchBroadcaster()
    assert CONFIG_MAPS is not None
    _, broken = hub.attach(CONFIG_MAPS, ObjectSelector(), Encoder("broken", {}, refuse))
    _, whole = hub.attach(CONFIG_MAPS, ObjectSelector(), Encoder("whole", {}, lambda _, value: value or b""))
    with structlog.testing.capture_logs() as logged:
        hub.publish([added("a", 1), added("b", 2)])
    assert b'"code":500' in (await asyncio.wait_for(broken.next_lines(), 10) or b"")
    assert await asyncio.wait_for(broken.next_lines(), 10) is None
    taken = await asyncio.wait_for(whole.next_lines(), 10) or b""
    assert taken.count(b"ADDED") == 2
    assert {entry["log_level"] for entry in logged} == {"error"}
    hub.close()
