"""Tests `lws chaos` on a cluster of `lws up`: the effect of each fault on a rank, and its complete removal."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from testkit.waiting import until
from tests.e2e.harness import SELDOM, SLEEP, LocalCluster, Shell, facts, is_whole, ranks, template

from kuberuntime.objects.meta import JSONObject

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]

PROGRAM = """
import socket, threading, time

def tick():
    with open("/dev/shm/ticks", "ab", buffering=0) as file:
        while True:
            time.sleep(0.01)
            file.write(b".")

def give():
    giving = socket.create_server(("0.0.0.0", 9001))
    while True:
        connection, _ = giving.accept()
        threading.Thread(target=send, args=(connection,), daemon=True).start()

def send(connection):
    try:
        connection.sendall(bytes(1_000_000))
    except OSError:
        pass
    connection.close()

threading.Thread(target=tick, daemon=True).start()
threading.Thread(target=give, daemon=True).start()
server = socket.create_server(("0.0.0.0", 9000))
while True:
    connection, _ = server.accept()
    connection.sendall(b"pong")
    connection.close()
"""

ASK = """
import socket, sys
try:
    print(socket.create_connection((sys.argv[1], 9000), 0.7).recv(4).decode())
except OSError:
    print("nothing")
"""


READ = """
import socket, sys, time
connection, count, end = socket.create_connection((sys.argv[1], 9001), 3), 0, time.monotonic() + 3
connection.settimeout(0.2)
while time.monotonic() < end:
    try:
        piece = connection.recv(65536)
    except TimeoutError:
        continue
    if not piece:
        break
    count += len(piece)
print(count)
"""

WAIT = """
import socket, sys, time
begin = time.monotonic()
socket.create_connection((sys.argv[1], 9000), 9).recv(4)
print(time.monotonic() - begin)
"""


def team(name: str, replicas: int = 1) -> JSONObject:
    """Return groups of two ranks. Each rank serves a port, and prints up to one hundred ticks per second."""
    container = {
        "name": "main",
        "image": "python",
        "command": ["python3", "-c", PROGRAM],
        "readinessProbe": {"tcpSocket": {"port": 9000}, "periodSeconds": 1},
    }
    template = {"spec": {"terminationGracePeriodSeconds": 1, "containers": [container]}}
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "leaderWorkerTemplate": {"size": 2, "workerTemplate": template}},
    }


@pytest.fixture(scope="module")
def squad(cluster: LocalCluster) -> LocalCluster:
    """A cluster in which the LeaderWorkerSet `web` is ready."""
    cluster.start(team("web"))
    return cluster


@contextmanager
def fault(cluster: LocalCluster, *words: str) -> Iterator[None]:
    """Run a fault until the context exits. Stop it with SIGTERM, which has the same effect as Ctrl-C."""
    process = cluster.shell.start("chaos", *words, "--for=100", f"--local={cluster.name}")
    try:
        assert process.stdout is not None
        told = process.stdout.readline()
        assert told.partition(" s  ")[2].startswith(words[0]), told
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    assert cluster.lws("chaos", "list") == "There are no active faults.\n", output


def asked(cluster: LocalCluster, asking: str, name: str) -> str:
    """Return the response of one rank's port to a request from another rank."""
    return cluster.lws("exec", asking, "--", "python3", "-c", ASK, name).strip()


def ticks(cluster: LocalCluster, rank: str) -> int:
    """Return the number of ticks that a rank prints in two seconds."""
    count = "import os, time\nfor pause in (2, 0):\n    print(os.stat('/dev/shm/ticks').st_size); time.sleep(pause)"
    first, second = map(int, cluster.lws("exec", rank, "--", "python3", "-c", count).split())
    return second - first


def await_tick(cluster: LocalCluster, rank: str) -> None:
    """Wait until a rank prints a tick."""
    wait = "import os, time\nbegin = os.stat('/dev/shm/ticks').st_size\nwhile os.stat('/dev/shm/ticks').st_size == begin: time.sleep(0.01)"
    cluster.lws("exec", rank, "--", "python3", "-c", wait)


def test_partition_of_two_ranks_spares_others_and_ends(squad: LocalCluster) -> None:
    other = squad.view("web")["groups"][0]["ranks"][1]["pod"]
    name = f"{other}.web"
    assert asked(squad, "web/0/0", name) == "pong"
    with fault(squad, "partition", "web/0/0", "web/0/1"):
        assert asked(squad, "web/0/0", name) == "nothing"
        assert asked(squad, "web/0/1", "web-0.web") == "nothing"
        assert asked(squad, "web/0/1", "127.0.0.1") == "pong"
    assert asked(squad, "web/0/0", name) == "pong"
    with fault(squad, "lose", "web/0/1", "--amount=100%"):
        assert asked(squad, "web/0/0", name) == "nothing"
    assert asked(squad, "web/0/0", name) == "pong"


def test_throttle_drops_packets_above_a_rate_and_ends(squad: LocalCluster) -> None:
    """Without the fault, one megabyte is transferred immediately.

    With it, 64 KiB arrive, and then 20 kB in each of three seconds.
    """
    read = ("exec", "web/0/0", "--", "python3", "-c", READ, "web-0-1.web")
    assert int(squad.lws(*read)) == 1_000_000
    with fault(squad, "throttle", "web/0/0", "web/0/1", "--amount=20k"):
        assert 0 < int(squad.lws(*read)) < 200_000
    assert int(squad.lws(*read)) == 1_000_000


def test_packets_to_a_rank_are_delayed_until_the_fault_ends(squad: LocalCluster) -> None:
    wait = ("exec", "web/0/0", "--", "python3", "-c", WAIT, "web-0-1.web")
    tried = squad.shell.start("chaos", "delay", "web/0/1", "--amount=400ms", "--for=1s", f"--local={squad.name}")
    told = "".join(tried.communicate(timeout=60))
    if tried.returncode:
        assert "the kernel does not have netem (module sch_netem)" in told
        assert squad.lws("chaos", "list") == "There are no active faults.\n"
        return
    with fault(squad, "delay", "web/0/1", "--amount=400ms"):
        assert float(squad.lws(*wait)) > 0.4
    assert float(squad.lws(*wait)) < 0.4


def test_rank_is_stopped_or_starved_until_the_fault_ends(squad: LocalCluster) -> None:
    with fault(squad, "stop", "web/0/1"):
        assert ticks(squad, "web/0/1") == 0
        await_tick(squad, "web/0/0")
    await_tick(squad, "web/0/1")
    with fault(squad, "starve", "web/0/1", "--amount=5%"):
        assert 0 < ticks(squad, "web/0/1") < 80  # its CPU quota allows one or two ticks in each of 20 periods
    await_tick(squad, "web/0/1")


def test_disk_is_full_until_the_fault_ends(squad: LocalCluster) -> None:
    write = ("exec", "web/0/1", "--", "sh", "-c", "head -c 100000 /dev/zero > /tmp/large && echo wrote")
    with fault(squad, "fill", "web/0/1"):
        assert "No space left on device" in squad.refused(*write)
    assert squad.lws(*write) == "wrote\n"
    refused = squad.lws("chaos", "fill", "web/0/1", "--path=/usr", code=1)
    assert "/usr: must be an in-memory file system of the container" in refused


def test_control_plane_faults_expire_at_their_deadline(squad: LocalCluster) -> None:
    with fault(squad, "apiserver"):
        assert squad.shell.lws("get", f"--local={squad.name}", code=1).stderr
    assert "web" in squad.lws("get")
    invalid = team("web", -1)
    with fault(squad, "webhooks"):
        assert "failed calling webhook" in squad.refused("apply", "-f", "-", text=json.dumps(team("other")))
    assert "replicas" in squad.refused("apply", "-f", "-", text=json.dumps(invalid))
    with fault(squad, "manager"):
        squad.apply(team("late"))
        squad.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "later"}, **template(SLEEP)})
        until(lambda: squad.shell.processes("HOSTNAME=later"), "a pod that needs no manager")
        assert squad.lws("exec", "late", "--", "true", code=1) == ""
    squad.lws("wait", "late", "--timeout=30")
    squad.lws("delete", "late")


def test_fault_of_a_killed_command_expires_at_its_deadline(squad: LocalCluster) -> None:
    process = squad.shell.start("chaos", "stop", "web/0/1", "--for=15s", f"--local={squad.name}")
    assert process.stdout is not None
    assert "stop web/0/1 for 15 s" in process.stdout.readline()
    process.kill()
    process.communicate(timeout=30)
    assert "stop    default/web-0-1" in squad.lws("chaos", "list")
    until(
        lambda: squad.lws("chaos", "list") == "There are no active faults.\n", "the end of the fault", 30, poll=SELDOM
    )
    await_tick(squad, "web/0/1")


def test_storm_from_a_file_reports_failures_and_recreations(squad: LocalCluster, tmp_path: Path) -> None:
    storm = tmp_path / "storm.yaml"
    storm.write_text(
        "steps:\n"
        "- {fault: manager, for: 1s}\n"
        "- {at: 500ms, fault: kill, targets: [web/0/1]}\n"
        "- {at: 600ms, fault: delay, targets: [web/7/0], amount: 1s}\n"
    )
    url = "http://127.0.0.1:9/nobody-listens"
    ended = squad.lws("chaos", "run", "-f", str(storm), "-o", "json", f"--probe={url}", code=1)
    report = json.loads(ended)
    refused = {
        one["fault"]: one.get("refused") for one in report["faults"]
    }  # two of the faults start at nearly the same time
    assert refused.keys() == {"manager for 1 s", "kill web/0/1", "delay web/7/0 1s for 10 s"}
    assert refused["delay web/7/0 1s for 10 s"] == "web/7/0 has no pod; existing ranks: web/0/0, web/0/1"
    assert report["firstFailed"]["rank"] == "web/0/1"
    assert report["firstFailed"]["why"] == "Error (exit code 137)"
    assert report["recreated"] == {"web/0": 1}
    assert report["notReady"] == []
    assert report["probe"]["requests"] == report["probe"]["failed"] > 3
    assert report["recoveredAfter"] > 0


def test_drained_node_accepts_pods_after_a_killed_cluster(shell: Shell) -> None:
    shell.lws("up", "drained", "--detach")
    own = LocalCluster(shell, "drained")
    process = shell.start("chaos", "drain", "node-0", "--for=100s", "--local=drained")
    assert process.stdout is not None
    assert "drain node-0" in process.stdout.readline()
    assert is_unschedulable(own)
    own_pid = int((shell.state / "drained" / "lock").read_text())
    os.kill(own_pid, signal.SIGKILL)
    process.communicate(timeout=60)
    shell.lws("up", "drained", "--detach")
    until(lambda: not is_unschedulable(own), "a schedulable node", 30)


def test_ranks_of_a_lost_node_are_recreated_elsewhere(shell: Shell) -> None:
    """While the node is unavailable, the group is complete on the other node.

    Afterwards the node accepts pods again.
    """
    shell.lws("up", "lost", "--detach", "--nodes", "2", "--node-capacity", "cpu=2")
    own = LocalCluster(shell, "lost")
    group = team("web")
    (container,) = group["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"]
    container["resources"] = {"requests": {"cpu": "1"}}
    own.start(group)
    before = ranks(own.view("web"))
    lost = before["0/1"]["node"]
    with fault(own, "lose-node", lost):
        whole = own.until("web", lambda view: is_whole(view) and lost not in facts(view, "node").values(), 60)
        assert not set(facts(whole, "uid").values()) & {one["uid"] for one in before.values() if one["node"] == lost}
        assert asked(own, "web/0/0", "web-0-1.web") == "pong"
        await_tick(own, "web/0/1")
    own.lws("scale", "web", "--replicas=2")
    own.lws("wait", "web", "--timeout=60")
    assert lost in facts(own.view("web"), "node").values()


def is_unschedulable(cluster: LocalCluster) -> bool:
    """Return whether the first node is cordoned."""
    return bool(json.loads(cluster.lws("nodes", "node-0", "-o", "json"))["spec"].get("unschedulable"))


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("kill",), 2, "kill expects one rank (web/0/1), but 0 were specified"),
        (("kill", "web"), 1, "'web' is not a valid rank; use LWS/GROUP/RANK, such as web/0/1"),
        (("kill", "web/0/5"), 1, "web/0/5 has no pod; existing ranks:"),
        (("drain", "node-9"), 1, "node node-9 does not exist; available: node-0"),
        (("lose", "web/0/1", "--amount=much"), 2, "lose: amount: 'much': use a percentage, such as 30%"),
        (("flood",), 2, "No such command 'flood'"),
    ],
    ids=["no rank", "a set", "no such rank", "no such node", "no amount", "no such fault"],
)
def test_unsupported_fault_is_rejected_with_the_reason(
    squad: LocalCluster, words: tuple[str, ...], code: int, message: str
) -> None:
    ended = squad.shell.lws("chaos", *words, f"--local={squad.name}", code=code)
    assert message in ended.stdout + ended.stderr
