"""Tests that ranks wait for each other before their program starts, or print the reason for a failure.

Runs Python and shell forms in real pods.

Pods on a control plane with kwok run no programs, so these are tried on the cluster of this machine only.
"""

import shlex
import sys
import time
from dataclasses import dataclass
from typing import Final

import pytest
from testkit.waiting import until
from tests.e2e.harness import ROOT, SELDOM, SLEEP, LocalCluster, facts, lines_with, lws, python, shell_script

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.rendezvous.connectionerrors import FailureReason

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]

FORMS: Final = {
    "python": (sys.executable, "-m", "leaderworkerset.rendezvous"),
    "shell": ("sh", str(ROOT / "packages/leaderworkerset/src/leaderworkerset/rendezvous/rendezvous.sh")),
}

LEADER: Final = """
import socket
listening, full = (socket.create_server(("", port), backlog=0) for port in (8080, 8081))
held = [socket.socket() for _ in range(3)]
for one in held:
    one.setblocking(False)
    one.connect_ex(("127.0.0.1", 8081))
while True:
    kept = listening.accept()[0]
"""
"""A server on ports 8080 and 8081. Port 8081 does not accept connections, and its backlog is full."""

NAME_SERVER: Final = """
import socket
asked = socket.socket(type=socket.SOCK_DGRAM)
asked.bind(("127.0.0.1", 53))
while True:
    question, sender = asked.recvfrom(512)
    code = b"\\x80" if b"empty" in question else b"\\x83" if b"absent" in question else None
    if code is not None:
        asked.sendto(question[:2] + b"\\x81" + code + question[4:6] + bytes(6) + question[12:], sender)
"""
"""A DNS server that returns no address for `empty`, and reports that `absent` does not exist.

It does not respond to other names.
"""


@dataclass(frozen=True)
class Failure:
    """A failure, with the command that causes it, and the expected message."""

    name: str
    arguments: str
    reason: FailureReason
    words: str
    environment: str = ""
    group: str = "meet"
    shell: FailureReason | None = None
    """The requirement of the shell variant without nslookup, which may be missing on this machine."""


FAILURES: Final = (
    Failure(
        "the leader's name does not exist",
        "leader --port 8080",
        FailureReason.NO_NAME,
        "the leader (absent-0.meet.default:8080) did not respond within 1 s: its name does not exist",
        "LWS_LEADER_ADDRESS=absent-0.meet.default",
        "names",
    ),
    Failure(
        "the leader's name has no address",
        "leader --port 8080",
        FailureReason.NO_ADDRESS,
        "the leader (empty-0.meet.default:8080) did not respond within 1 s: its name has no address",
        "LWS_LEADER_ADDRESS=empty-0.meet.default",
        "names",
        FailureReason.NO_NAME,
    ),
    Failure(
        "the name server is silent",
        "leader --port 8080",
        FailureReason.NO_DNS,
        "the leader (web-0.meet.default:8080) did not respond within 1 s: its name cannot be resolved, because no name server responds",
        "LWS_LEADER_ADDRESS=web-0.meet.default",
        "names",
        FailureReason.NO_NAME,
    ),
    Failure(
        "the leader's port is closed",
        "leader --port 8082",
        FailureReason.CLOSED,
        "the leader (meet-0.meet.default:8082) did not respond within 1 s: its port is closed",
    ),
    Failure(
        "the leader's program accepts nobody",
        "leader --port 8081",
        FailureReason.SILENT,
        "the leader (meet-0.meet.default:8081) did not respond within 1 s: its port does not respond",
    ),
    Failure(
        "the leader's address leads nowhere",
        "leader --port 8080",
        FailureReason.SILENT,
        "the leader (192.0.2.1:8080) did not respond within 1 s: its port does not respond",
        "LWS_LEADER_ADDRESS=192.0.2.1",
    ),
    Failure(
        "ranks do not listen",
        "all --port 8080",
        FailureReason.CLOSED,
        "rank 2 (meet-0-2.meet.default:8080) did not respond within 1 s: its port is closed",
    ),
    Failure(
        "a rank does not exist",
        "all",
        FailureReason.NO_NAME,
        "rank 1 (absent-0-1.meet.default) did not respond within 1 s: its name does not exist",
        "LWS_LEADER_ADDRESS=absent-0.meet.default LWS_WORKER_INDEX=0",
        "names",
    ),
    Failure(
        "the application expects more ranks",
        "all --size 4",
        FailureReason.WRONG_SIZE,
        "--size is 4, but LWS_GROUP_SIZE is 3",
    ),
    Failure(
        "the rank is beyond the group",
        "leader",
        FailureReason.WRONG_SIZE,
        "LWS_WORKER_INDEX (3) must be less than LWS_GROUP_SIZE (3)",
        "LWS_WORKER_INDEX=3",
    ),
    Failure(
        "it is no group", "leader", FailureReason.NO_GROUP, "LWS_LEADER_ADDRESS is not set", "-u LWS_LEADER_ADDRESS"
    ),
    Failure(
        "the size is not a number",
        "leader",
        FailureReason.NO_GROUP,
        "LWS_GROUP_SIZE is 'three', not a number",
        "LWS_GROUP_SIZE=three",
    ),
)


@pytest.fixture(scope="module")
def groups(cluster: LocalCluster) -> LocalCluster:
    """The cluster with the groups for these tests."""
    settings = {"resolv.conf": "nameserver 127.0.0.1\noptions attempts:1 timeout:1\n"}
    cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "resolver"}, "data": settings})
    mount = {"name": "resolver", "mountPath": "/etc/resolv.conf", "subPath": "resolv.conf"}
    names = lws("names", python(NAME_SERVER, grace=1, volumeMounts=[mount]), size=2)
    spec = names["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]
    spec["volumes"] = [{"name": "resolver", "configMap": {"name": "resolver"}}]
    probe = {"tcpSocket": {"port": 8080}, "periodSeconds": 1}
    cluster.apply(names, lws("meet", SLEEP, size=3, leader=python(LEADER, grace=1, readinessProbe=probe)))
    cluster.lws("wait", "names", "meet", "--timeout=60")
    return cluster


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.name)
def test_failed_rendezvous_has_a_reason_and_exit_code(groups: LocalCluster, failure: Failure, form: str) -> None:
    asked = [*failure.environment.split(), *FORMS[form], *failure.arguments.split(), "--timeout", "1"]
    result = groups.ended("exec", f"{failure.group}/0/1", "--", "env", *asked)
    reason = (failure.shell or failure.reason) if form == "shell" else failure.reason
    words = failure.words.replace(failure.reason.description, reason.description)
    said = result.stderr.splitlines()
    assert f"rendezvous: {words} (exit code {reason.value}). {reason.advice}" in said
    assert result.returncode == reason.value


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("place", "arguments"),
    [("meet/0/1", "leader --port 8080 --size 3"), ("meet/0/1", "all"), ("meet/0/0", "leader --port 8082")],
    ids=["the leader", "all ranks", "the leader by itself"],
)
def test_present_ranks_meet_immediately(groups: LocalCluster, place: str, arguments: str, form: str) -> None:
    result = groups.ended("exec", place, "--", *FORMS[form], *arguments.split(), "--timeout", "60")
    assert result.returncode == 0, result.stderr
    assert f"rendezvous: rank {place[-1]} reached {arguments.split(maxsplit=1)[0]} after " in result.stderr


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("name", "spec"),
    [("keyed", {"groupIdentity": "Hash"}), ("apart", {"networkConfig": {"subdomainPolicy": "UniquePerReplica"}})],
    ids=["random keys", "a service for each group"],
)
def test_ranks_meet_with_any_names(groups: LocalCluster, form: str, name: str, spec: JSONObject) -> None:
    waits = ["sh", "-c", f"{shlex.join(FORMS[form])} all --timeout 60 && exec sleep 1000"]
    groups.start(lws(f"{name}-{form}", {"command": waits, "grace": 1}, size=3, **spec))

    def met() -> list[int]:
        said = groups.lws("logs", f"{name}-{form}")
        return [said.count(f"rendezvous: rank {rank} reached all after ") for rank in range(3)]

    until(lambda: met() == [1, 1, 1], "all ranks met", poll=SELDOM)
    groups.lws("delete", f"{name}-{form}")


@pytest.mark.parametrize("form", FORMS)
def test_rendezvous_waits_for_a_late_leader_and_ends_on_sigterm(groups: LocalCluster, form: str) -> None:
    """The worker waits in the first process of its container, which ignores signals without a handler."""
    script = f"touch /tmp/here; while ! [ -e /tmp/go ]; do sleep 0.1; done; exec {sys.executable} -m http.server 8080"
    name = f"late-{form}"
    waits = {"command": [*FORMS[form], "leader", "--port", "8080", "--timeout", "300"]}
    groups.apply(lws(name, waits | {"grace": 60}, size=2, restart="None", leader=shell_script(script, grace=1)))
    with groups.shell.running("logs", f"--local={groups.name}", f"{name}/0/1", "--follow") as logs:
        lines_with(logs, "its port is closed", 1)
        groups.lws("exec", f"{name}/0/0", "--", "touch", "/tmp/go")
        lines_with(logs, "rank 1 reached leader after", 1)

    groups.apply(lws(f"{name}-never", waits | {"grace": 60}, size=2, leader=SLEEP))
    with groups.shell.running("logs", f"--local={groups.name}", f"{name}-never/0/1", "--follow") as logs:
        lines_with(logs, "its port is closed", 1)
    begun = time.monotonic()
    groups.lws("delete", name, f"{name}-never", "--wait")
    assert time.monotonic() - begun < 30, "the grace period is 60 s"


@pytest.mark.parametrize("form", FORMS)
def test_explain_describes_an_exit_code_of_the_rendezvous(groups: LocalCluster, form: str) -> None:
    name = f"closed-{form}"
    probe = {"tcpSocket": {"port": 9998}, "periodSeconds": 1}
    waits = {"command": [*FORMS[form], "leader", "--port", "9999", "--timeout", "1"], "readinessProbe": probe}
    groups.apply(lws(name, waits, size=2, leader=SLEEP, restart="None"))
    groups.until(name, lambda view: facts(view, "restarts")["0/1"] > 0)
    told = groups.shell.lws("explain", f"--local={groups.name}", name, code=4).stdout
    assert f"container rank of pod {name}-0-1 crashed with exit code 82" in told
    assert "rendezvous: the leader" in told
    assert f"exit code 82 of the rendezvous means that its port is closed. {FailureReason.CLOSED.advice}" in told
    groups.lws("delete", name)
