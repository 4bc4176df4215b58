"""Tests the decoding of objects into their Go types (R-REV-6 defines the format)."""

from typing import Any

import pytest

from localkube.apiserver.model.kind import UndecodableError
from localkube.apiserver.types import typed

POD = {"apiVersion": "v1", "kind": "Pod"}


def pod(spec: dict[str, Any]) -> dict[str, Any]:
    return POD | {"spec": spec}


def test_unknown_fields_and_zero_values_are_dropped() -> None:
    container = {"name": "c", "image": "", "tty": False, "command": [], "unknown": 1}
    found = typed.normalize("Pod", pod({"containers": [container], "nodeName": ""}))
    assert found["spec"] == {"containers": [{"name": "c", "resources": {}}]}


def test_zero_values_behind_pointers_are_kept() -> None:
    spec = {"containers": [], "terminationGracePeriodSeconds": 0, "securityContext": {}, "priority": 0}
    assert typed.normalize("Pod", pod(spec))["spec"] == spec


def test_null_is_the_zero_value() -> None:
    given = {
        "metadata": {"name": "a", "creationTimestamp": None, "labels": {"a": None}},
        "spec": {"containers": [{"name": "c", "image": None, "env": None}, None], "volumes": None},
    }
    found = typed.normalize("Pod", POD | given)
    assert found["metadata"] == {"name": "a", "labels": {"a": ""}}
    assert found["spec"] == {"containers": [{"name": "c", "resources": {}}, {"name": "", "resources": {}}]}


def test_quantities_and_times_become_canonical() -> None:
    container = {"name": "c", "resources": {"limits": {"cpu": 0.5, "memory": "1024Mi"}}}
    found = typed.normalize(
        "Pod", pod({"containers": [container]}) | {"status": {"startTime": "2026-01-01T01:00:00.5+01:00"}}
    )
    assert found["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "500m", "memory": "1Gi"}}
    assert found["status"]["startTime"] == "2026-01-01T00:00:00Z"


def test_raw_data_keeps_its_order_and_nulls() -> None:
    data = {"spec": {"b": None, "a": [1, None, {"z": 1, "y": "<&>"}]}}
    revision = typed.normalize("ControllerRevision", {"data": data, "revision": 3})
    assert list(revision["data"]["spec"]) == ["b", "a"]
    assert revision["data"] == data


def test_result_shares_nothing_with_the_argument() -> None:
    given = pod({"containers": [{"name": "c", "env": [{"name": "A"}]}]}) | {"metadata": {"labels": {"a": "b"}}}
    found = typed.normalize("Pod", given)
    found["metadata"]["labels"]["x"] = "y"
    found["spec"]["containers"][0]["env"].append({"name": "B"})
    assert given["metadata"] == {"labels": {"a": "b"}}
    assert given["spec"]["containers"][0]["env"] == [{"name": "A"}]


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"containers": [{"ports": [{"containerPort": "http"}]}]}, "string into Go struct field ContainerPort.spec.containers.ports.containerPort of type int32"),
        ({"containers": [{"ports": [{"containerPort": 2**40}]}]}, "number 1099511627776 into Go struct field ContainerPort.spec.containers.ports.containerPort of type int32"),
        ({"containers": [{"ports": [{"containerPort": 1.5}]}]}, "number 1.5 into Go struct field ContainerPort.spec.containers.ports.containerPort of type int32"),
        ({"containers": "c"}, "string into Go struct field PodSpec.spec.containers of type []v1.Container"),
        ({"containers": [{"command": [1]}]}, "number into Go struct field Container.spec.containers.command of type string"),
        ({"hostNetwork": "yes"}, "string into Go struct field PodSpec.spec.hostNetwork of type bool"),
        ([], "array into Go struct field Pod.spec of type v1.PodSpec"),
    ],
)  # fmt: skip
def test_wrong_type_error_equals_kube_apiserver(spec: Any, text: str) -> None:
    with pytest.raises(UndecodableError) as caught:
        typed.normalize("Pod", pod(spec))
    assert str(caught.value) == f'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal {text}'


def test_port_beyond_32_bits_is_a_type_error() -> None:
    with pytest.raises(
        UndecodableError, match=r"number 2147483648 into Go .* ServicePort\.spec\.ports\.targetPort of type int32$"
    ):
        typed.normalize("Service", {"spec": {"ports": [{"targetPort": 2**31}]}})


@pytest.mark.parametrize(
    ("struct", "obj", "text"),
    [
        ("Pod", {"spec": {"containers": [{"resources": {"limits": {"cpu": "lots"}}}]}}, "quantities must match the regular expression"),
        ("Pod", {"metadata": {"creationTimestamp": "yesterday"}}, 'parsing time "yesterday"'),
        ("Lease", {"spec": {"renewTime": "2026-01-01T00:00:00"}}, 'cannot parse "" as "Z07:00"'),
        ("Secret", {"data": {"a": "not base64"}}, "illegal base64 data"),
    ],
)  # fmt: skip
def test_formatted_scalars_are_validated(struct: str, obj: dict[str, Any], text: str) -> None:
    with pytest.raises(UndecodableError, match=text[:30].replace('"', ".")) as caught:
        typed.normalize(struct, obj)
    assert text in str(caught.value)
