"""Tests the effect of packet loss, low bandwidth, delays, and full disks on processes in pods."""

import json
from pathlib import Path

import pytest
from tests.integration.sandbox.harness import Machine, machine

from localkube.kubelet.processes.runner import PacketLoss, StartError

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]

ECHO = """
import socket
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("0.0.0.0", 9000))
print("listening", flush=True)
while True:
    data, peer = server.recvfrom(65536)
    server.sendto(data, peer)
"""

PING = """
import json, socket, sys, time
address, count = sys.argv[1], int(sys.argv[2])
client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
client.settimeout(0.3)
came, began = 0, time.monotonic()
for _ in range(count):
    try:
        client.sendto(b"x", (address, 9000))
        client.recvfrom(65536)
        came += 1
    except TimeoutError:
        pass
print(json.dumps({"came": came, "seconds": time.monotonic() - began}))
"""

FLOOD = """
import socket, sys
client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
client.settimeout(0.5)
for _ in range(150):
    client.sendto(b"x" * 1000, (sys.argv[1], 9000))
came = 0
try:
    while client.recvfrom(65536):
        came += 1
except TimeoutError:
    print(came)
"""


async def ping(made: Machine, asking: str, asked: str, count: int = 3) -> dict[str, float]:
    """Send datagrams between two pods. Return the number of responses, and the duration in seconds."""
    words = ("python3", "-c", PING, made.addresses[asked], str(count))
    _, output = await (await made.start(asking, *words)).finish()
    found: dict[str, float] = json.loads(output)
    return found


async def test_rule_drops_packets_only_between_its_pods(made: Machine) -> None:
    for name in ("a", "b", "c"):
        pod = await made.pod(name)
        assert await (await made.start(pod, "python3", "-c", ECHO)).line() == "listening"
    a, b = made.addresses["a"], made.addresses["b"]
    assert (await ping(made, "a", "b"))["came"] == 3

    await made.runner.drop_packets([PacketLoss(a, b), PacketLoss(b, a)])
    assert (await ping(made, "a", "b"))["came"] == (await ping(made, "b", "a"))["came"] == 0
    assert (await ping(made, "a", "c"))["came"] == (await ping(made, "c", "b"))["came"] == 3

    await made.runner.drop_packets([PacketLoss("", b)])
    assert (await ping(made, "c", "b"))["came"] == (await ping(made, "b", "a"))["came"] == 0
    assert (await ping(made, "c", "a"))["came"] == 3

    await made.runner.drop_packets([PacketLoss(a, b, share=0.5)])
    assert 5 < (await ping(made, "a", "b", 40))["came"] < 35

    await made.runner.drop_packets([PacketLoss(a, b, rate=20_000)])
    assert (await ping(made, "a", "b"))["came"] == 3
    came = int((await (await made.start("a", "python3", "-c", FLOOD, b)).finish())[1])
    assert 30 < came < 110  # 64 KiB immediately, and 20 KB in each of the following seconds

    await made.runner.drop_packets([])
    assert (await ping(made, "a", "b"))["came"] == (await ping(made, "c", "b"))["came"] == 3


async def test_packets_are_delayed_or_the_missing_module_is_named(made: Machine) -> None:
    for name in ("a", "b"):
        pod = await made.pod(name)
        assert await (await made.start(pod, "python3", "-c", ECHO)).line() == "listening"
    try:
        await made.runner.delay_packets("b", 0.1)
    except StartError as error:
        assert str(error) == "delay packets: the kernel does not have netem (module sch_netem)"  # noqa: PT017 - either is right
        return
    late = await ping(made, "a", "b")
    assert late["came"] == 3
    assert late["seconds"] > 0.3
    await made.runner.delay_packets("b", 0.0)
    assert (await ping(made, "a", "b"))["seconds"] < 0.3


async def test_full_file_system_is_restored_with_its_files(made: Machine) -> None:
    """Existing files remain readable, because the file system is limited but not replaced."""
    pod = await made.pod("a")
    for path in ("/tmp", "/dev/shm"):
        script = f"echo kept > {path}/before; echo ready; exec sleep 60"
        program = await made.start(pod, "sh", "-c", script)
        assert await program.line() == "ready"
        former = await made.runner.resize_memory(program.id, path, 0)
        fill = f"cat {path}/before; head -c 65536 /dev/zero > {path}/more && echo wrote"
        full = await made.exec(program, "sh", "-c", fill)
        end, output = await full.finish()
        assert end.code != 0
        assert "kept" in output
        assert "No space left on device" in output
        await made.runner.resize_memory(program.id, path, former)
        assert "wrote" in (await (await made.exec(program, "sh", "-c", fill)).finish())[1]
    program = await made.start(pod, "sleep", "60")
    with pytest.raises(StartError, match="/usr: must be an in-memory file system of the container"):
        await made.runner.resize_memory(program.id, "/usr", 0)
    with pytest.raises(StartError, match="the container is not running"):
        await made.runner.resize_memory("nobody", "/tmp", 0)


@pytest.mark.parametrize(("network", "isolation"), [("shared", "namespaces"), ("isolated", "plain")])
async def test_packet_loss_is_rejected_without_pod_networks(tmp_path: Path, network: str, isolation: str) -> None:
    async with machine(tmp_path, network=network, isolation=isolation) as made:  # type: ignore[arg-type]
        pod = await made.pod("a")
        with pytest.raises(StartError, match="pods share the network of this machine"):
            await made.runner.drop_packets([PacketLoss("", "10.88.1.0")])
        with pytest.raises(StartError, match="pods share the network of this machine"):
            await made.runner.delay_packets(pod, 0.1)
        await made.runner.drop_packets([])
