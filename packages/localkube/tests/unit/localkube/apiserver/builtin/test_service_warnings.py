"""Tests that Service writes return warnings about features that a local cluster does not support."""

import pytest

from kuberuntime.objects.meta import JSONObject
from localkube.apiserver.builtin.services import SERVICE

KIND = SERVICE.kind()


def warned(**spec: object) -> list[str]:
    service: JSONObject = {
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"a": "b"}, **spec},
    }
    return list(KIND.warnings(KIND.prepare("create", service, None)))


def test_warning_names_the_port_that_is_not_forwarded() -> None:
    (text,) = warned(ports=[{"port": 9000, "name": "a"}, {"port": 80, "targetPort": 8080, "name": "b"}])
    assert text == (
        "spec.ports[1].targetPort: port 80 is not forwarded to 8080 in pods. Connect to web:8080, "
        "or use `kubectl port-forward service/web 80`"
    )


def test_warning_names_a_named_target_port() -> None:
    (text,) = warned(ports=[{"port": 80, "targetPort": "http"}])
    assert "Connect to web, at the pod port named http," in text


@pytest.mark.parametrize(
    "spec",
    [
        {"ports": [{"port": 80}, {"port": 81, "targetPort": 81}]},
        {"clusterIP": "None"},
        {"clusterIP": "None", "ports": [{"port": 80, "targetPort": 8080}]},
        {"type": "ExternalName", "externalName": "example.org", "ports": [{"port": 80, "targetPort": 81}]},
        {"selector": {}, "ports": [{"port": 80, "targetPort": 8080}]},
    ],
    ids=["ports of the pods", "headless", "headless, where Kubernetes forwards nothing either", "a name", "no pods"],
)
def test_supported_service_has_no_warning(spec: JSONObject) -> None:
    assert warned(**spec) == []


@pytest.mark.parametrize("kind", ["NodePort", "LoadBalancer"])
def test_warning_explains_how_to_reach_the_service(kind: str) -> None:
    address, port = warned(type=kind, ports=[{"port": 80, "targetPort": 8080}])
    assert f"spec.type: {kind} Services are not reachable" in address
    assert "`kubectl port-forward service/web`, or the name web in pods" in address
    assert "Connect to web:8080" in port


def test_warning_names_an_address_that_does_not_answer() -> None:
    (text,) = warned(clusterIP="10.0.0.7", ports=[{"port": 80}])
    assert text.startswith("spec.clusterIP: 10.0.0.7 is not reachable on a local cluster. Use the name web in pods")
