"""Writing a service says what it will not do on one machine."""

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


@pytest.mark.parametrize("target", [8080, "http"])
def test_a_port_that_is_not_forwarded_is_named_with_the_one_to_use(target: object) -> None:
    (text,) = warned(ports=[{"port": 9000, "name": "a"}, {"port": 80, "targetPort": target, "name": "b"}])
    assert text.startswith(f"spec.ports[1]: port 80 is not forwarded to targetPort {target}: ")
    assert text.endswith(f"connect to {target}")


def test_a_port_that_is_that_of_the_pods_is_no_warning() -> None:
    assert warned(ports=[{"port": 80}, {"port": 81, "targetPort": 81}]) == []
    assert warned(clusterIP="None") == []
    assert warned(type="ExternalName", externalName="example.org", ports=[{"port": 80, "targetPort": 81}]) == []


@pytest.mark.parametrize("kind", ["NodePort", "LoadBalancer"])
def test_a_service_that_gets_no_address_says_how_to_reach_it(kind: str) -> None:
    (text,) = warned(type=kind, ports=[{"port": 80, "targetPort": 8080}])
    assert f"spec.type: {kind} services get no address" in text
    assert "`kubectl port-forward service/web`" in text
