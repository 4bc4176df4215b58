"""Answers of an API server, decoded object by object."""

import msgspec
import pytest

from kuberuntime.cache import watch
from kuberuntime.cache.decoding import Decoder
from kuberuntime.client.client import Page
from kuberuntime.client.transport import Response
from kuberuntime.errors import ConnectionFailedError, KubeError
from kuberuntime.objects.meta import JSONObject, ResourceVersion
from kuberuntime.objects.resources import PODS


def named(obj: JSONObject) -> JSONObject:
    return {"kind": obj.get("kind"), "name": obj["metadata"]["name"]}


DECODER = Decoder(PODS, named)


def line(kind: str, obj: JSONObject) -> bytes:
    return msgspec.json.encode({"type": kind, "object": obj})


def page(body: bytes) -> Page:
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
