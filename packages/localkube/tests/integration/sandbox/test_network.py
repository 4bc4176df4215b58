"""Tests pods on the bridge, pods on the host network, stubs, and sockets that are opened in a pod."""

import asyncio
import os
import signal
import socket
import ssl
from contextlib import suppress
from pathlib import Path

import pytest
from tests.integration.sandbox.harness import DEADLINE, Machine, machine

from localkube.kubelet.processes.runner import Exit, Network
from localkube.kubelet.sandbox.egress import NO_WAY_OUT

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]

SERVER = """
import socket
import ssl
server = socket.create_server(("0.0.0.0", 8080))
print("listening", flush=True)
while True:
    connection, _ = server.accept()
    connection.sendall(socket.gethostname().encode() + b"\\n")
    connection.close()
"""
ASK = "import socket, sys; print(socket.create_connection((sys.argv[1], 8080), 10).makefile().read().strip())"


HTTP_REQUEST = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"


async def answer(made: Machine, pod: str | None, address: tuple[str, int], request: bytes = HTTP_REQUEST) -> bytes:
    """Send a request through a socket in the pod network."""
    sock = await made.runner.open_socket(pod)
    loop = asyncio.get_running_loop()
    await asyncio.wait_for(loop.sock_connect(sock, address), DEADLINE)
    reader, writer = await asyncio.open_connection(sock=sock)
    writer.write(request)
    data = await asyncio.wait_for(reader.read(), DEADLINE)
    writer.close()
    return data


async def test_two_pods_bind_the_same_port_and_resolve_each_other(made: Machine) -> None:
    pods = [await made.pod(name) for name in ("lws-0", "lws-0-1")]
    made.write_hosts("127.0.0.1 localhost\n" + "".join(f"{made.addresses[pod]} {pod}.lws.default\n" for pod in pods))
    for pod in pods:
        server = await made.start(pod, "python3", "-c", SERVER)
        assert await server.line() == "listening"
    for asking, asked in (pods, reversed(pods)):
        end, output = await (await made.start(asking, "python3", "-c", ASK, f"{asked}.lws.default")).finish()
        assert (end.code, output) == (0, f"{asked}\n")


async def test_pods_use_no_entry_of_the_neighbor_table(made: Machine) -> None:
    """The kernel allows 1,024 entries by default.

    It counts entries of all namespaces except permanent ones (flag 4).
    """
    table = "for line in open('/proc/net/arp').readlines()[1:]: print(*line.split()[:3:2], end=' ')"
    pods = [await made.pod(name) for name in ("a", "b")]
    for pod in pods:
        server = await made.start(pod, "python3", "-c", SERVER)
        assert await server.line() == "listening"
        assert await answer(made, None, (made.addresses[pod], 8080), b"") == f"{pod}\n".encode()
    for asking, asked in (pods, reversed(pods)):
        ask = await made.start(asking, "python3", "-c", ASK, made.addresses[asked])
        assert (await ask.finish())[1] == f"{asked}\n"
    own = await made.start("a", "python3", "-c", table)
    assert (await own.finish())[1] == "10.88.0.1 0x6 "
    await made.pod("host", host_network=True)
    bridges = (await (await made.start("host", "python3", "-c", table)).finish())[1]
    assert all(f"{made.addresses[pod]} 0x6 " in bridges for pod in pods)


async def test_pods_are_reachable_only_through_cluster_sockets(made: Machine) -> None:
    pod = await made.pod("a")
    server = await made.start(pod, "python3", "-c", SERVER)
    assert await server.line() == "listening"
    with socket.socket() as outside, suppress(OSError):
        outside.settimeout(0.2)
        outside.connect((made.addresses[pod], 8080))  # a different machine might have this address
        assert outside.recv(100) != b"a\n"
    assert await answer(made, pod, ("127.0.0.1", 8080), b"") == b"a\n"
    assert await answer(made, None, (made.addresses[pod], 8080), b"") == b"a\n"


async def test_loopback_of_the_host_is_unreachable_from_pods(tmp_path: Path) -> None:
    with socket.create_server(("0.0.0.0", 0)) as listener:
        port = listener.getsockname()[1]
        async with machine(tmp_path) as made:
            for pod, host_network in (("a", False), ("b", True)):
                for address in ("127.0.0.1", "10.88.0.1", "10.88.0.2"):
                    script = f"import socket; socket.create_connection(('{address}', {port}), 0.3)"
                    if address == "127.0.0.1":
                        await made.pod(pod, host_network=host_network)
                    end = await (await made.start(pod, "python3", "-c", script)).end()
                    assert end.code == 1


async def test_unknown_names_fail_immediately_without_a_way_out(made: Machine) -> None:
    script = "import socket, time\nt=time.time()\ntry: socket.gethostbyname('no-such.example')\nexcept OSError: print(time.time()-t < 2)"
    if NO_WAY_OUT not in str(made.capabilities.missing):
        pytest.skip("this machine grants a way out")
    assert (await (await made.start(await made.pod("a"), "python3", "-c", script)).finish())[1] == "True\n"


async def test_host_network_pods_share_the_network_of_the_bridge(made: Machine) -> None:
    server = await made.start(await made.pod("a", host_network=True), "python3", "-c", SERVER)
    assert await server.line() == "listening"
    assert made.addresses["a"] == "10.88.0.1"
    asked = await made.start(await made.pod("b"), "python3", "-c", ASK, "10.88.0.1")
    assert (await asked.finish())[1] == "a\n"


async def test_stub_answers_on_all_ports_and_exits_on_sigterm(made: Machine) -> None:
    pod = await made.pod("a")
    stub = await made.start(pod, stub_ports=(80, 8080))
    assert await stub.line() == "stub: serving status 200 on ports 80, 8080"
    for port in (80, 8080):
        assert (await answer(made, pod, (made.addresses[pod], port))).startswith(b"HTTP/1.1 200 OK\r\n")
        assert await stub.line() == f"stub: GET /health 200 on port {port}"
    command = await made.exec(stub, "hostname")
    assert await command.line() == "a"
    await made.runner.signal(stub.id, 15)
    assert await stub.end() == Exit(0)


async def test_stub_speaks_tls_with_clients_that_begin_with_it(made: Machine) -> None:
    pod = await made.pod("a")
    stub = await made.start(pod, stub_ports=(8443,))
    assert await stub.line() == "stub: serving status 200 on port 8443"
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    for _ in range(2):
        connected = await made.runner.open_socket(None)
        await asyncio.get_running_loop().sock_connect(connected, (made.addresses[pod], 8443))
        reader, writer = await asyncio.open_connection(sock=connected, ssl=trusting, server_hostname="a")
        writer.write(HTTP_REQUEST)
        assert (await reader.read()).endswith(b"stub\n")
        writer.close()
        assert await stub.line() == "stub: GET /health 200 on port 8443"
    assert (await answer(made, pod, (made.addresses[pod], 8443))).startswith(b"HTTP/1.1 200 OK\r\n")


async def test_stub_survives_clients_that_disconnect_early(made: Machine) -> None:
    """A probe with a timeout disconnects early, which must not cause the pod to fail."""
    stub = await made.start(await made.pod("a"), stub_ports=(8080,))
    assert await stub.line() == "stub: serving status 200 on port 8080"
    address = made.addresses["a"], 8080
    os.kill(stub.pid, signal.SIGSTOP)
    for _ in range(3):
        with await made.runner.open_socket(None) as client:
            await asyncio.get_running_loop().sock_connect(client, address)
            client.send(HTTP_REQUEST)
    os.kill(stub.pid, signal.SIGCONT)
    assert (await answer(made, None, address)).endswith(b"stub\n")
    assert not stub.ended.done()


async def test_stub_without_ports_waits(made: Machine) -> None:
    stub = await made.start(await made.pod("a"))
    assert await stub.line() == "stub: running without ports"
    await made.runner.signal(stub.id, 9)
    assert await stub.end() == Exit(137, 9)


async def test_shared_network_gives_each_pod_a_loopback_address(tmp_path: Path) -> None:
    async with machine(tmp_path, network="shared") as made:
        pods = [await made.pod(name) for name in ("a", "b")]
        assert all(made.addresses[pod].startswith("127.") for pod in pods)
        for pod in pods:
            stub = await made.start(pod, stub_ports=(48080,))
            assert await stub.line() == "stub: serving status 200 on port 48080"
        taken = await made.start("a", stub_ports=(48080,))
        assert await taken.line() == "stub: cannot listen on port 48080: Address already in use"
        assert (await taken.end()).code == 1
        with socket.create_connection((made.addresses["b"], 48080), 5):
            pass


@pytest.mark.parametrize("network", ["isolated", "shared"])
async def test_two_clusters_on_one_machine_are_isolated(tmp_path: Path, network: Network) -> None:
    (tmp_path / "1").mkdir()
    (tmp_path / "2").mkdir()
    async with machine(tmp_path / "1", network=network) as one, machine(tmp_path / "2", network=network) as two:
        for made in (one, two):
            stub = await made.start(await made.pod("same"), stub_ports=(48081,), id="same")
            assert await stub.line() == "stub: serving status 200 on port 48081"
        await one.runner.stop()
        assert (await answer(two, "same", (two.addresses["same"], 48081))).startswith(b"HTTP/1.1 200")
        assert network == "isolated" or one.addresses["same"] != two.addresses["same"]


async def test_removed_pods_leave_no_network_interface(tmp_path: Path) -> None:
    async def interfaces(made: Machine) -> set[str]:
        return set((await made.sh("node", "ls /sys/class/net"))[1].split())

    async with machine(tmp_path) as made:
        await made.pod("node", host_network=True)
        before = await interfaces(made)
        for number in range(3):
            await made.pod(f"p{number}")
        assert await interfaces(made) == before | {"pod1", "pod2", "pod3"}
        for number in range(3):
            await made.runner.remove_sandbox(f"p{number}")
        async with asyncio.timeout(DEADLINE):  # the kernel removes the interfaces asynchronously
            while await interfaces(made) != before:
                pass
