"""Tests that the responses of an API server are decoded object by object."""

import msgspec
import pytest

from kuberuntime.cache import projection, watch
from kuberuntime.cache.decoding import Decoder
from kuberuntime.client.client import Page
from kuberuntime.client.transport import Response
from kuberuntime.errors import ConnectionFailedError, KubeError
from kuberuntime.objects.meta import JSONObject, ResourceVersion
from kuberuntime.objects.resources import PODS


def named(obj: JSONObject) -> JSONObject:
    return {"kind": obj.get("kind"), "name": obj["metadata"]["name"]}


IGNORED: list[JSONObject] = []
DECODER = Decoder(PODS, projection.decode, named, lambda obj, _error: IGNORED.append(obj))

DEEP = msgspec.Raw(b'{"a":' * 100_000 + b"1" + b"}" * 100_000)  # Python 3.13 can parse thousands of levels
SURROGATE = msgspec.Raw(b'"\\ud800"')
NOT_UTF8 = msgspec.Raw(b'"\xff"')
HOSTILE = pytest.mark.parametrize("data", [DEEP, SURROGATE, NOT_UTF8], ids=["deep", "surrogate", "not UTF-8"])
METADATA = {"namespace": "x", "name": "bad", "labels": {"a": "]}"}, "resourceVersion": "8"}


def line(kind: str, obj: JSONObject) -> bytes:
    return msgspec.json.encode({"type": kind, "object": obj})


def page(body: bytes) -> Page:
    IGNORED.clear()
    return DECODER.page(Response(200, {}, body))


@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED", "DELETED"])
def test_objects_of_events_are_reduced(kind: str) -> None:
    event = DECODER.event(line(kind, {"kind": "Pod", "metadata": {"name": "a"}, "spec": {}}))
    assert event == watch.StreamEvent(kind, {"kind": "Pod", "name": "a"})


@pytest.mark.parametrize("kind", ["BOOKMARK", "ERROR", "LATER"])
def test_statuses_and_bookmarks_are_not_reduced(kind: str) -> None:
    """Errors are `Status` objects. Bookmarks contain the annotation that ends a streaming list."""
    status = {"kind": "Status", "code": 410, "reason": "Expired", "metadata": {}}
    assert DECODER.event(line(kind, status)) == watch.StreamEvent(kind, status)


@pytest.mark.parametrize("broken", [b"<html>", b"{}", b'{"type": "ADDED"}', b'{"type": "ADDED", "object": 3}'])
def test_malformed_event_line_is_a_connection_error(broken: bytes) -> None:
    with pytest.raises(ConnectionFailedError, match="the watch sent an invalid event"):
        DECODER.event(broken)


def test_items_of_a_page_receive_their_kind_and_are_reduced() -> None:
    body = b'{"metadata": {"resourceVersion": "7", "continue": "t"}, "items": [{"metadata": {"name": "a"}}]}'
    assert page(body) == Page([{"kind": "Pod", "name": "a"}], ResourceVersion("7"), "t")


@pytest.mark.parametrize("body", [b"{}", b'{"metadata": null, "items": null}', b'{"metadata": {"continue": null}}'])
def test_page_may_be_empty(body: bytes) -> None:
    assert page(body) == Page([], ResourceVersion(""), "")


@pytest.mark.parametrize("body", [b"<html>", b'{"items": 3}', b'{"items": [3]}', b""])
def test_malformed_page_is_a_server_error(body: bytes) -> None:
    with pytest.raises(KubeError):
        page(body)


@HOSTILE
def test_undecodable_object_is_identified_by_its_metadata(data: msgspec.Raw) -> None:
    IGNORED.clear()
    event = DECODER.event(line("MODIFIED", {"kind": "Pod", "metadata": METADATA, "data": data}))
    assert event == watch.StreamEvent(watch.UNUSABLE, {"apiVersion": "v1", "kind": "Pod", "metadata": METADATA})
    assert [event.object] == IGNORED


@HOSTILE
@pytest.mark.slow
def test_undecodable_metadata_is_read_field_by_field(data: msgspec.Raw) -> None:
    event = DECODER.event(line("ADDED", {"metadata": {"managedFields": data, **METADATA}}))
    assert event.object["metadata"] == METADATA


@HOSTILE
@pytest.mark.slow
def test_undecodable_item_does_not_affect_other_items(data: msgspec.Raw) -> None:
    items = [{"metadata": {"name": "a"}}, {"metadata": METADATA, "data": data}, {"metadata": {"name": "b"}}]
    found = page(msgspec.json.encode({"metadata": {"resourceVersion": "9", "continue": "t"}, "items": items}))
    assert found == Page([{"kind": "Pod", "name": "a"}, {"kind": "Pod", "name": "b"}], ResourceVersion("9"), "t")
    assert [obj["metadata"] for obj in IGNORED] == [METADATA]


def test_irreducible_object_is_ignored() -> None:
    def fail(_obj: JSONObject) -> JSONObject:
        raise KeyError("spec")

    event = Decoder(PODS, projection.decode, fail, lambda *_: None).event(line("ADDED", {"metadata": METADATA}))
    assert event.type == watch.UNUSABLE


@pytest.mark.parametrize(
    "text",
    [
        b'{"type":"ADDED","object":{"metadata":{"name":"a"}}}',
        b'{"type":"ADDED","object":{"metadata":{"name":"a"}},"more":{}}',
        b'{"object":{"metadata":{"name":"a"}},"type":"ADDED"}',
        b' { "type": "ADDED", "object": {"metadata": {"name": "a"}} }',
    ],
    ids=["usual", "additional member", "different order", "spaces"],
)
def test_form_of_an_event_line_does_not_matter(text: bytes) -> None:
    event = DECODER.event(text)
    assert (event.type, event.object["name"]) == ("ADDED", "a")


def test_truncated_event_line_is_a_connection_error() -> None:
    for end in range(1, 60):
        with pytest.raises(ConnectionFailedError):
            DECODER.event(line("ADDED", {"metadata": {"namespace": "default", "name": "a"}})[:end])


def test_truncated_page_is_a_server_error() -> None:
    body = msgspec.json.encode({"metadata": {}, "items": [{"metadata": METADATA}]})
    with pytest.raises(KubeError):
        page(body[:-1])
