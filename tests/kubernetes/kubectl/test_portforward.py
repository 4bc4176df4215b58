"""Tests `kubectl port-forward` to servers on the embedded cluster."""

import hashlib
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection

import pytest
from tests.kubernetes.kubectl.conftest import SECONDS, Place

from kuberuntime.objects.meta import JSONObject

MEGABYTES = 16

SERVER = """
import hashlib, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import StreamRequestHandler, ThreadingTCPServer

class Http(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.answer(b"x" * int(self.path[1:]))

    def do_POST(self):
        self.answer(self.rfile.read(int(self.headers["content-length"])))

    def answer(self, body):
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

class Digest(StreamRequestHandler):
    def handle(self):
        self.wfile.write(hashlib.sha256(self.rfile.read()).hexdigest().encode())

ThreadingTCPServer.allow_reuse_address = True
threading.Thread(target=ThreadingTCPServer(("", 9000), Digest).serve_forever, daemon=True).start()
ThreadingHTTPServer(("", 8080), Http).serve_forever()
"""
"""Serves HTTP on port 8080. Port 9000 returns a digest of the input after the input is closed."""


def server() -> JSONObject:
    ports = [{"name": "http", "containerPort": 8080}, {"name": "digest", "containerPort": 9000}]
    main = {"name": "main", "image": "app:1", "command": [sys.executable, "-c", SERVER], "ports": ports}
    probe = {"tcpSocket": {"port": "http"}, "periodSeconds": 1}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "server", "labels": {"app": "server"}},
        "spec": {"terminationGracePeriodSeconds": 0, "containers": [main | {"readinessProbe": probe}]},
    }


@pytest.fixture
def running(place: Place) -> Place:
    """Return a namespace on the embedded cluster that contains the running pod `server`."""
    if place.name != "embedded":
        pytest.skip("kwok runs no processes")
    place.apply(server())
    place.run("wait", "--for=condition=Ready", "pod/server", "--timeout=30s")
    return place


class Forwarder:
    """A running `kubectl port-forward` process, and its local ports."""

    def __init__(self, process: "subprocess.Popen[str]", count: int) -> None:
        self.process = process
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(count)]
        self.ports = [int(re.fullmatch(r"Forwarding from 127.0.0.1:(\d+) -> \d+\n", line)[1]) for line in lines]  # type: ignore[index] # a line that does not match fails the test

    def http(self, index: int = 0) -> HTTPConnection:
        return HTTPConnection("127.0.0.1", self.ports[index], timeout=SECONDS)

    def tcp(self, index: int = 0) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.ports[index]), timeout=SECONDS)

    def ended(self) -> str:
        """Wait until kubectl exits with code 1. Return its output."""
        told, _ = self.process.communicate(timeout=SECONDS)
        assert self.process.returncode == 1
        return told


@contextmanager
def forwarding(place: Place, target: str, *ports: str) -> Iterator[Forwarder]:
    process = place.start("port-forward", "--address=127.0.0.1", target, *ports)
    try:
        yield Forwarder(process, len(ports))
    finally:
        process.kill()
        process.communicate()


def get(connection: HTTPConnection, length: int) -> bytes:
    connection.request("GET", f"/{length}")
    return connection.getresponse().read()


def test_port_is_forwarded_by_number_and_by_name(running: Place) -> None:
    with forwarding(running, "pod/server", ":http", ":8080") as forwarder:
        for index in range(2):
            connection = forwarder.http(index)
            assert get(connection, 5) == b"xxxxx"
            assert get(connection, 7) == b"xxxxxxx"
            connection.close()


@pytest.mark.parametrize("words", [(), ("--type=NodePort",), ("--type=LoadBalancer",)], ids=["", "node", "balanced"])
@pytest.mark.parametrize("target", ["8080", "http"])
def test_service_port_is_forwarded_to_its_target(running: Place, words: tuple[str, ...], target: str) -> None:
    running.run("expose", "pod", "server", "--port=80", f"--target-port={target}", *words)
    with forwarding(running, "service/server", ":80") as forwarder:
        connection = forwarder.http()
        assert get(connection, 5) == b"xxxxx"
        connection.close()


def test_headless_service_is_forwarded_to_the_port_of_its_pods(running: Place) -> None:
    running.run("expose", "pod", "server", "--port=8080", "--target-port=9000", "--cluster-ip=None")
    with forwarding(running, "service/server", ":8080") as forwarder:
        connection = forwarder.http()
        assert get(connection, 5) == b"xxxxx"
        connection.close()


def test_warning_names_ports_that_pods_cannot_reach(place: Place) -> None:
    if place.name != "embedded":
        pytest.skip("kwok's services have addresses")
    place.apply(server())
    headless = place.run("expose", "pod", "server", "--port=80", "--target-port=8080", "--cluster-ip=None")
    assert headless == "service/server exposed\n"
    told = place.run("expose", "pod", "server", "--port=80", "--target-port=8080", "--name=front")
    assert "Warning: spec.ports[0].targetPort: port 80 is not forwarded to 8080 in pods" in told
    assert "Connect to front:8080" in told


def test_megabytes_are_sent_in_both_directions(running: Place) -> None:
    body = bytes(range(256)) * (MEGABYTES * 4096)
    with forwarding(running, "pod/server", ":8080") as forwarder:
        connection = forwarder.http()
        connection.request("POST", "/", body)
        assert connection.getresponse().read() == body
        connection.close()


def test_half_closed_connection_still_receives_the_answer(running: Place) -> None:
    body = bytes(range(256)) * (MEGABYTES * 4096)
    with forwarding(running, "pod/server", ":digest") as forwarder, forwarder.tcp() as connection:
        connection.sendall(body)
        connection.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: connection.recv(1000), b""))
        assert answer.decode() == hashlib.sha256(body).hexdigest()


def test_connections_do_not_wait_for_each_other(running: Place) -> None:
    with (
        forwarding(running, "pod/server", ":8080", ":digest") as forwarder,
        forwarder.tcp(1) as first,
        forwarder.tcp(1) as second,
    ):
        first.sendall(b"one")
        second.sendall(b"two")
        connection = forwarder.http()
        assert get(connection, 5) == b"xxxxx"
        connection.close()
        for one, text in ((second, b"two"), (first, b"one")):
            one.shutdown(socket.SHUT_WR)
            assert one.recv(1000).decode() == hashlib.sha256(text).hexdigest()


def test_closed_port_is_an_error_and_others_still_work(running: Place) -> None:
    """kubectl exits after the first failed connection, in the same way as with a kubelet."""
    with forwarding(running, "pod/server", ":81") as forwarder, forwarder.tcp() as connection:
        assert connection.recv(1) == b""
        told = forwarder.ended()
        assert "error forwarding port 81: " in told
        assert "127.0.0.1:81: Connection refused" in told
        assert "error: lost connection to pod" in told
    with forwarding(running, "pod/server", ":8080") as forwarder:
        connection_again = forwarder.http()
        assert get(connection_again, 5) == b"xxxxx"
        connection_again.close()


def test_deleted_pod_closes_its_connections_and_stops_kubectl(running: Place) -> None:
    with forwarding(running, "pod/server", ":8080") as forwarder:
        with forwarder.tcp() as connection:
            connection.sendall(b"GET /5 HTTP/1.1\r\n\r\n")
            assert connection.recv(4) == b"HTTP"
            running.run("delete", "pod", "server", "--now")
            while connection.recv(1000):
                pass
        with forwarder.tcp() as connection:
            assert connection.recv(1) == b""
        told = forwarder.ended()
        assert 'error forwarding port 8080: pod \\"server\\" is not running' in told
        assert "error: lost connection to pod" in told


def test_clients_without_websockets_receive_advice(running: Place) -> None:
    environment = running.environment | {"KUBECTL_PORT_FORWARD_WEBSOCKETS": "false"}
    result = subprocess.run(
        running.command("port-forward", "server", ":80"),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        env=environment,
    )
    advice = "Use kubectl 1.31 or later, or set KUBECTL_PORT_FORWARD_WEBSOCKETS=true"
    assert f"does not support SPDY for this request. {advice}" in result.stderr
