"""Tests a HorizontalPodAutoscaler that scales groups of real containers by usage from metrics-server."""

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest
from tests.node import programs
from tests.node.cluster import NodeCluster
from tests.node.objects import container, leaderworkerset, pod
from tests.node.pki import BUNDLE
from tests.node.place import Place

from kuberuntime.objects import meta, quantity
from kuberuntime.objects.meta import JSONObject

pytestmark = pytest.mark.long

NAME: Final = "metrics-server"
PORT: Final = 4443
GROUP: Final = "metrics.k8s.io"
BUSY_CORES: Final = 0.03
"""CPU usage that an idle process never reaches, even on a busy machine."""

REQUESTED: Final = {"cpu": "500m", "memory": "16Mi"}

BUSY: Final = 'trap "exit 0" TERM; while :; do [ -e /tmp/busy ] || { sleep 1 & wait $!; }; done'
"""A script that uses its full CPU quota while a file exists."""


def objects(address: str) -> JSONObject:
    """Return the objects that route API requests to metrics-server at an address outside pods."""
    metadata = {"name": NAME, "namespace": "kube-system"}
    slices = {**metadata, "labels": {"kubernetes.io/service-name": NAME}}
    service = {"name": NAME, "namespace": "kube-system", "port": 443}
    port = {"name": "https", "port": PORT, "protocol": "TCP"}
    served = {
        "group": GROUP,
        "version": "v1beta1",
        "service": service,
        "insecureSkipTLSVerify": True,
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
    }
    items = [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata,
            "spec": {"ports": [{"name": "https", "port": 443, "targetPort": PORT}]},
        },
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": slices,
            "addressType": "IPv4",
            "endpoints": [{"addresses": [address]}],
            "ports": [port],
        },
        {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": f"v1beta1.{GROUP}"},
            "spec": served,
        },
    ]
    return {"apiVersion": "v1", "kind": "List", "items": items}


@pytest.fixture
def measured(nodes: NodeCluster) -> Iterator[None]:
    """Run metrics-server on the first node. Remove it from API discovery afterwards."""
    machine, program = nodes.machines[0], programs.metrics_server(programs.say)
    clients = [f"--{what}kubeconfig={nodes.kubeconfig}" for what in ("", "authentication-", "authorization-")]
    settings = [
        f"--secure-port={PORT}",
        f"--cert-dir={machine.directory / NAME}",
        f"--kubelet-certificate-authority={nodes.pki / BUNDLE}",
        "--kubelet-preferred-address-types=InternalIP",
        "--metric-resolution=10s",
        "--kubelet-request-timeout=9s",
    ]
    machine.start(NAME, [str(program), *clients, *settings])
    text = json.dumps(objects(machine.address))
    try:
        nodes.kubectl("apply", "--filename=-", text=text)
        nodes.kubectl("wait", f"apiservice/v1beta1.{GROUP}", "--for=condition=Available", "--timeout=3m")
        yield
    finally:
        nodes.kubectl("delete", "--filename=-", "--ignore-not-found", text=text)
        machine.kill(NAME)


def autoscaler() -> JSONObject:
    """Return the autoscaler on the page, with a target that one busy leader exceeds."""
    target = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "name": "web"}
    cpu = {"name": "cpu", "target": {"type": "AverageValue", "averageValue": "30m"}}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {
            "scaleTargetRef": target,
            "minReplicas": 1,
            "maxReplicas": 2,
            "metrics": [{"type": "Resource", "resource": cpu}],
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}},
        },
    }


def status(place: Place) -> dict[str, Any]:
    """Return the status of the autoscaler."""
    found: dict[str, Any] = json.loads(place.kubectl("get", "hpa", "web", "--output=json")).get("status", {})
    return found


@pytest.mark.usefixtures("measured")
def test_load_of_leaders_adds_and_removes_whole_groups(place: Place) -> None:
    place.ready(leaderworkerset("web", pod(container(BUSY, resources={"requests": REQUESTED, "limits": REQUESTED}))), 2)
    first = place.uids("web")
    place.apply(autoscaler())
    place.until(lambda: status(place).get("currentMetrics"), "the usage of the leader is measured")
    place.until(lambda: usage(place).keys() == {"web-0", "web-0-1"}, "the usage of both ranks")
    place.exec("web-0-1", "touch", "/tmp/busy")
    place.until(lambda: usage(place).get("web-0-1", 0) > BUSY_CORES, "the usage of the worker is measured")
    assert status(place)["desiredReplicas"] == 1  # only leaders count
    place.exec("web-0", "touch", "/tmp/busy")
    pods = place.await_ready("web", 2, 4)
    assert first.items() <= {one["metadata"]["name"]: one["metadata"]["uid"] for one in pods}.items()
    place.exec("web-0", "rm", "/tmp/busy")
    place.await_ready("web", 1, 2)
    assert place.uids("web") == first


def usage(place: Place) -> dict[str, float]:
    """Return the CPU usage of each pod in the format of `kubectl top`."""
    items = place.api.read(f"apis/{GROUP}/v1beta1/namespaces/{place.name}/pods")["items"]
    return {meta.name(one): float(quantity.parse(one["containers"][0]["usage"]["cpu"]).fraction()) for one in items}
