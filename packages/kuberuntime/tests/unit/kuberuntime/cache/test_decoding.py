"""Answers of an API server, decoded object by object."""

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

DEEP = msgspec.Raw(b'{"a":' * 100_000 + b"1" + b"}" * 100_000)  # Python 3.13 reads thousands of levels
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
def test_what_is_no_object_of_the_kind_stays_whole(kind: str) -> None:
    """Errors are a Status, bookmarks carry annotations that end a streaming list."""
    status = {"kind": "Status", "code": 410, "reason": "Expired", "metadata": {}}
    assert DECODER.event(line(kind, status)) == watch.StreamEvent(kind, status)


@pytest.mark.parametrize("broken", [b"<html>", b"{}", b'{"type": "ADDED"}', b'{"type": "ADDED", "object": 3}'])
def test_a_line_that_is_no_event_is_an_error_of_the_connection(broken: bytes) -> None:
    with pytest.raises(ConnectionFailedError, match="not an event"):
        DECODER.event(broken)


def test_items_of_a_page_get_their_kind_back_and_are_reduced() -> None:
    body = b'{"metadata": {"resourceVersion": "7", "continue": "t"}, "items": [{"metadata": {"name": "a"}}]}'
    assert page(body) == Page([{"kind": "Pod", "name": "a"}], ResourceVersion("7"), "t")


@pytest.mark.parametrize("body", [b"{}", b'{"metadata": null, "items": null}', b'{"metadata": {"continue": null}}'])
def test_a_page_may_lack_everything(body: bytes) -> None:
    assert page(body) == Page([], ResourceVersion(""), "")


@pytest.mark.parametrize("body", [b"<html>", b'{"items": 3}', b'{"items": [3]}', b""])
def test_a_page_that_is_no_list_is_an_error_of_the_server(body: bytes) -> None:
    with pytest.raises(KubeError):
        page(body)


@HOSTILE
def test_an_object_that_cannot_be_decoded_is_known_by_its_metadata(data: msgspec.Raw) -> None:
    IGNORED.clear()
    event = DECODER.event(line("MODIFIED", {"kind": "Pod", "metadata": METADATA, "data": data}))
    assert event == watch.StreamEvent(watch.UNUSABLE, {"apiVersion": "v1", "kind": "Pod", "metadata": METADATA})
    assert [event.object] == IGNORED


@HOSTILE
@pytest.mark.slow
def test_metadata_is_read_member_by_member(data: msgspec.Raw) -> None:
    event = DECODER.event(line("ADDED", {"metadata": {"managedFields": data, **METADATA}}))
    assert event.object["metadata"] == METADATA


@HOSTILE
@pytest.mark.slow
def test_an_item_that_cannot_be_decoded_leaves_the_others_of_its_page(data: msgspec.Raw) -> None:
    items = [{"metadata": {"name": "a"}}, {"metadata": METADATA, "data": data}, {"metadata": {"name": "b"}}]
    found = page(msgspec.json.encode({"metadata": {"resourceVersion": "9", "continue": "t"}, "items": items}))
    assert found == Page([{"kind": "Pod", "name": "a"}, {"kind": "Pod", "name": "b"}], ResourceVersion("9"), "t")
    assert [obj["metadata"] for obj in IGNORED] == [METADATA]


def test_an_object_that_cannot_be_reduced_is_ignored() -> None:
    def fail(_obj: JSONObject) -> JSONObject:
        raise KeyError("spec")

    event = Decoder(PODS, projection.decode, fail, lambda *_: None).event(line("ADDED", {"metadata": METADATA}))
    assert event.type == watch.UNUSABLE


def test_a_line_that_ends_before_its_name_is_an_error_of_the_connection() -> None:
    for end in range(1, 60):
        with pytest.raises(ConnectionFailedError):
            DECODER.event(line("ADDED", {"metadata": {"namespace": "default", "name": "a"}})[:end])


def test_a_page_that_ends_early_is_an_error_of_the_server() -> None:
    body = msgspec.json.encode({"metadata": {}, "items": [{"metadata": METADATA}]})
    with pytest.raises(KubeError):
        page(body[:-1])
