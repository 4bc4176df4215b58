"""Tests that requests have the form that the API server expects."""

import msgspec
import pytest
import yaml

from kuberuntime.client import requests
from kuberuntime.client.requests import Selection
from kuberuntime.client.transport import Request
from kuberuntime.errors import UnusableNameError
from kuberuntime.objects.meta import ObjectKey
from kuberuntime.objects.resources import NODES, PODS, STATEFULSETS

KEY = ObjectKey("default", "web")
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "default"}}
BODY = msgspec.json.encode(POD)
JSON = {"content-type": "application/json"}


def test_get_reads_an_object_or_its_subresource() -> None:
    assert requests.get(NODES, ObjectKey("", "n")) == Request("GET", "/api/v1/nodes/n")
    assert requests.get(STATEFULSETS, KEY, "scale") == Request(
        "GET", "/apis/apps/v1/namespaces/default/statefulsets/web/scale"
    )


def test_list_page_carries_selectors_limit_and_token() -> None:
    selection = Selection(PODS, "default", "a=b,c", "spec.nodeName=n")

    assert requests.list_page(selection, limit=500, token="t") == Request(
        "GET",
        "/api/v1/namespaces/default/pods",
        (("labelSelector", "a=b,c"), ("fieldSelector", "spec.nodeName=n"), ("limit", "500"), ("continue", "t")),
    )


def test_watch_requests_bookmarks_from_a_version() -> None:
    assert requests.watch(Selection(PODS), version="7", timeout=290) == Request(
        "GET",
        "/api/v1/pods",
        (("watch", "true"), ("allowWatchBookmarks", "true"), ("timeoutSeconds", "290"), ("resourceVersion", "7")),
    )


def test_streaming_list_is_a_watch_with_initial_events() -> None:
    assert requests.watch(Selection(PODS), version="", timeout=290, initial=True).query == (
        ("watch", "true"),
        ("allowWatchBookmarks", "true"),
        ("timeoutSeconds", "290"),
        ("sendInitialEvents", "true"),
        ("resourceVersionMatch", "NotOlderThan"),
    )


def test_create_posts_the_object_or_the_given_bytes() -> None:
    path = "/api/v1/namespaces/default/pods"

    assert requests.create(PODS, POD) == Request("POST", path, (), JSON, BODY)
    assert requests.create(PODS, POD, body=b'{"a": 1}') == Request("POST", path, (), JSON, b'{"a": 1}')


def test_update_puts_the_object_or_a_subresource() -> None:
    assert requests.update(PODS, POD, subresource="status") == Request(
        "PUT", "/api/v1/namespaces/default/pods/web/status", (), JSON, BODY
    )


def test_apply_sends_field_manager_and_force() -> None:
    assert requests.apply(PODS, POD, manager="lws", force=True) == Request(
        "PATCH",
        "/api/v1/namespaces/default/pods/web",
        (("fieldManager", "lws"), ("force", "true")),
        {"content-type": "application/apply-patch+yaml"},
        BODY,
    )


def test_apply_escapes_characters_that_yaml_readers_reject() -> None:
    """kube-apiserver parses an apply as YAML, rejects control characters, and folds line breaks within strings."""
    text = "a\x00\t\x7f\x85\x9b\u2028\u2029\ufeff\ufffe\uffffé日😀"
    obj = {"metadata": {"name": "web", "namespace": "default", "annotations": {"note": text}}}

    body = requests.apply(PODS, obj, manager="lws", force=True).body

    assert body is not None
    assert yaml.safe_load(body) == msgspec.json.decode(body) == obj
    assert "é日😀".encode() in body


@pytest.mark.parametrize(
    ("kind", "content_type"),
    [
        ("merge", "application/merge-patch+json"),
        ("json", "application/json-patch+json"),
        ("strategic", "application/strategic-merge-patch+json"),
    ],
)
def test_patch_kind_sets_the_content_type(kind: requests.PatchKind, content_type: str) -> None:
    request = requests.patch(PODS, KEY, {"a": None}, kind=kind)

    assert (request.method, request.headers, request.body) == ("PATCH", {"content-type": content_type}, b'{"a":null}')


def test_delete_sends_its_options() -> None:
    request = requests.delete(PODS, KEY, propagation="Foreground", uid="u", grace_period=0)

    assert (request.method, request.path) == ("DELETE", "/api/v1/namespaces/default/pods/web")
    assert msgspec.json.decode(request.body) == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Foreground",
        "preconditions": {"uid": "u"},
        "gracePeriodSeconds": 0,
    }


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a%2fb"])
def test_name_with_path_characters_is_rejected(name: str) -> None:
    with pytest.raises(UnusableNameError, match=r"Pod: name: (Required|Invalid) value"):
        requests.get(PODS, ObjectKey("default", name))


def test_namespaced_object_requires_a_namespace() -> None:
    with pytest.raises(UnusableNameError, match="Pod: namespace: Required value: specify the namespace of the object"):
        requests.create(PODS, {"metadata": {"name": "web"}})


def test_namespace_with_path_characters_is_rejected() -> None:
    with pytest.raises(UnusableNameError, match=r"Pod: namespace: Invalid value: '\.\./nodes'"):
        requests.list_page(Selection(PODS, "../nodes"))
