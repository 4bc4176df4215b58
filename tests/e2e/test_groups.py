"""Tests the recreation, start order, shared port, scaling, and deletion of groups of real processes."""

import os
import signal
import socket
import urllib.request

import pytest
import yaml
from testkit.waiting import until
from tests.e2e.harness import (
    ROOT,
    SECONDS,
    SELDOM,
    SLEEP,
    LocalCluster,
    facts,
    is_whole,
    line_with,
    lws,
    python,
    ranks,
    shell_script,
)

from kuberuntime.objects.meta import JSONObject

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]

GREETER = """
import socket
server, kept = socket.create_server(("", 8080)), []
while True:
    kept.append(server.accept()[0])
    kept[-1].sendall(b"hello")
"""

SERVER = """
import http.server, os
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(os.environ["HOSTNAME"].encode())
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer(("0.0.0.0", 8080), Answer).serve_forever()
"""


def endless_rings(name: str) -> JSONObject:
    """Return the manifest of the example, with rings that run until they are stopped."""
    manifest: JSONObject = yaml.safe_load((ROOT / "examples/allreduce/lws.yaml").read_text())
    manifest["metadata"]["name"] = name
    container = manifest["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"][0]
    container["command"] = ["python3", "allreduce.py", "--rounds", "0", "--length", "64"]
    return manifest


def kill(cluster: LocalCluster, pod: str) -> None:
    """Kill all processes of a pod from outside the pod, as the kernel does if memory is exhausted."""
    found = cluster.shell.processes(f"HOSTNAME={pod}")
    assert found
    for process in found:
        os.kill(process, signal.SIGKILL)


def test_killed_rank_recreates_its_group_only(cluster: LocalCluster) -> None:
    cluster.start(endless_rings("rings"))
    before = cluster.view("rings")
    kill(cluster, "rings-1-2")

    def is_anew(view: JSONObject) -> bool:
        old, new = facts(before, "uid", 1), facts(view, "uid", 1)
        return is_whole(view) and not set(old.values()) & set(new.values())

    after = cluster.until("rings", is_anew)
    assert facts(after, "uid", 0) == facts(before, "uid", 0)
    assert set(facts(after, "restarts").values()) == {0}
    assert facts(after, "pod") == facts(before, "pod")
    result = "round 0: 64 sums over 4 ranks are right"
    until(lambda: result in cluster.lws("logs", "rings/1/2"), "the first sum of the new group", poll=SELDOM)
    cluster.lws("delete", "rings")


def test_killed_rank_restarts_alone_without_a_restart_policy(cluster: LocalCluster) -> None:
    cluster.start(lws("loners", SLEEP, replicas=2, size=3, restart="None"))
    before = cluster.view("loners")
    kill(cluster, "loners-1-2")
    after = cluster.until("loners", lambda view: is_whole(view) and ranks(view)["1/2"]["restarts"] == 1)
    assert facts(after, "uid") == facts(before, "uid")
    assert facts(after, "restarts") == dict.fromkeys(ranks(before), 0) | {"1/2": 1}
    cluster.lws("delete", "loners")


def test_pods_of_two_groups_bind_the_same_port(cluster: LocalCluster) -> None:
    probe = {"httpGet": {"path": "/", "port": 8080}, "periodSeconds": 1}
    cluster.start(lws("ports", python(SERVER, grace=1, readinessProbe=probe), replicas=2, size=3))
    answers = {}
    for place, rank in ranks(cluster.view("ports")).items():
        with cluster.shell.running("port-forward", f"--local={cluster.name}", f"ports/{place}", ":8080") as forward:
            address = line_with(forward, "->").split(" ")[0]
            with urllib.request.urlopen(f"http://{address}") as answer:
                answers[rank["pod"]] = answer.read().decode()
    assert answers == {pod: pod for pod in ("ports-0", "ports-0-1", "ports-0-2", "ports-1", "ports-1-1", "ports-1-2")}
    cluster.lws("delete", "ports")


def test_port_forward_ends_with_an_open_connection(cluster: LocalCluster) -> None:
    """Since Python 3.12.1, closing an asyncio server waits for its connections."""
    cluster.start(lws("held", python(GREETER, grace=1, readinessProbe={"tcpSocket": {"port": 8080}}), size=1))
    with cluster.shell.running("port-forward", f"--local={cluster.name}", "held/0", ":8080") as forward:
        host, _, port = line_with(forward, "->").split(" ")[0].rpartition(":")
        with socket.create_connection((host, int(port)), timeout=SECONDS) as connection:
            assert connection.recv(5) == b"hello"
            forward.send_signal(signal.SIGINT)
            assert forward.wait(SECONDS) == 0
    cluster.lws("delete", "held")


def test_workers_start_after_the_probe_of_their_leader(cluster: LocalCluster) -> None:
    leader = shell_script(
        "while ! [ -e /tmp/go ]; do sleep 0.1; done; touch /tmp/open; sleep 1000",
        grace=1,
        readinessProbe={"exec": {"command": ["test", "-e", "/tmp/open"]}, "periodSeconds": 1},
    )
    cluster.apply(lws("patient", SLEEP, size=3, leader=leader, startupPolicy="LeaderReady"))
    held = cluster.until("patient", lambda view: ranks(view)["0/0"]["state"] == "Running")
    assert facts(held, "state") == {"0/0": "Running", "0/1": "Missing", "0/2": "Missing"}
    assert "waits for the leader to be ready" in ranks(held)["0/1"]["why"]
    missing = cluster.refused("wait", "patient", "--timeout=1", code=124)
    assert "0 of 1 group ready; patient-0 is Running" in missing
    cluster.lws("exec", "patient/0", "--", "touch", "/tmp/go")
    whole = cluster.until("patient", is_whole)
    assert facts(whole, "created")["0/0"] <= facts(whole, "created")["0/1"]
    cluster.lws("delete", "patient")


def columns(cluster: LocalCluster, name: str) -> tuple[str, ...]:
    """Return the values in the READY, DESIRED and UP-TO-DATE columns."""
    header, row = cluster.lws("get", name).splitlines()[:2]
    assert header.split() == ["NAME", "READY", "DESIRED", "UP-TO-DATE", "AGE"]
    return tuple(row.split()[1:4])


def test_scaling_updates_the_set_and_its_columns(cluster: LocalCluster) -> None:
    cluster.start(lws("web", SLEEP, replicas=2, size=2))
    first = facts(cluster.view("web"), "uid")
    assert columns(cluster, "web") == ("2", "2", "2")
    assert cluster.lws("scale", "web", "--replicas=5") == "web scaled from 2 to 5 groups\n"
    cluster.lws("wait", "web", "--for=replicas=5")
    assert columns(cluster, "web") == ("5", "5", "5")
    grown = facts(cluster.view("web"), "uid")
    assert {place: uid for place, uid in grown.items() if place in first} == first
    cluster.lws("scale", "web", "--replicas=1", "--current-replicas=5")
    cluster.lws("wait", "web", "--for=replicas=1")
    left = cluster.until("web", lambda view: len(view["groups"]) == 1)
    assert columns(cluster, "web") == ("1", "1", "1")
    assert facts(left, "uid") == {place: uid for place, uid in first.items() if place.startswith("0/")}
    assert "not 5; no changes were made" in cluster.refused("scale", "web", "--replicas=2", "--current-replicas=5")
    cluster.lws("scale", "web", "--replicas=0")
    cluster.lws("wait", "web", "--for=replicas=0")
    assert columns(cluster, "web") == ("0", "0", "0")
    cluster.lws("delete", "web")


@pytest.mark.parametrize("cascade", ["background", "foreground"])
def test_deleted_set_is_removed_with_its_pods_and_processes(cluster: LocalCluster, cascade: str) -> None:
    name = f"gone-{cascade}"
    cluster.start(lws(name, SLEEP, replicas=2, size=2))
    assert cluster.shell.processes(f"HOSTNAME={name}-1-1")
    cluster.lws("delete", name, f"--cascade={cascade}")
    left = cluster.shell.processes(f"HOSTNAME={name}-1-1")
    if cascade == "foreground":  # the set is deleted last
        assert not left
    assert "not found" in cluster.refused("get", name)


@pytest.mark.parametrize("named", [None, "proxy"])
def test_default_container_is_used_if_none_is_named(cluster: LocalCluster, named: str | None) -> None:
    obj = lws("two", shell_script("echo I am the server; exec sleep 1000", name="server", grace=0))
    template = obj["spec"]["leaderWorkerTemplate"]["workerTemplate"]
    template["spec"]["containers"].append(
        {"name": "proxy", "image": "host"} | shell_script("echo I am the proxy; exec sleep 1000")
    )
    if named:
        template["metadata"] = {"annotations": {"kubectl.kubernetes.io/default-container": named}}
    cluster.start(obj)
    note = "" if named else "note: this is container server; use -c to select another of server, proxy\n"

    until(lambda: cluster.lws("logs", "two/0/0"), "the line of the program", poll=SELDOM)
    logs = cluster.shell.lws("logs", f"--local={cluster.name}", "two/0/0", code=0)
    assert (logs.stdout, logs.stderr) == (f"I am the {named or 'server'}\n", note)
    ran = cluster.shell.lws("exec", f"--local={cluster.name}", "two/0", "--", "true", code=0)
    assert ran.stderr == note
    assert cluster.shell.lws("logs", f"--local={cluster.name}", "two/0/0", "-c", "server", code=0).stderr == ""
    cluster.lws("delete", "two")
