"""Tests the detection of manifests in which ranks wait for each other."""

from typing import Any

import pytest

from lwsctl.cli.doctor import manifestchecks
from lwsctl.cli.doctor.findings import Level

LEADER = "$LWS_LEADER_ADDRESS"


def manifest(script: Any, **container: Any) -> dict[str, Any]:
    """Return a LeaderWorkerSet whose workers run a script."""
    worker = {"name": "rank", "image": "a", "command": ["sh", "-c", script]} | container
    template = {"spec": {"containers": [worker], "initContainers": None}}
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "train"},
        "spec": {"leaderWorkerTemplate": {"workerTemplate": template}},
    }


@pytest.mark.parametrize(
    ("script", "tools", "is_endless"),
    [
        (f"until nslookup {LEADER}; do sleep 2; done; exec python train.py", ["nslookup"], True),
        (f"while ! nc -z {LEADER} 29500\ndo\n  sleep 1\ndone\npython train.py", ["nc"], True),
        (f"until ping -c1 {LEADER} && getent hosts {LEADER}; do sleep 1; done", ["ping", "getent"], True),
        (f"until [ $i -ge 60 ] || dig +short {LEADER}; do i=$((i+1)); done", ["dig"], False),
        (f"timeout 60 sh -c 'until curl -s {LEADER}:80; do sleep 1; done'", ["curl"], False),
        ("while true; do python serve.py; done", [], False),
        (f"nslookup {LEADER}; python train.py", [], False),
        ("until ./my-nc now; do sleep 1; done", [], False),
        ("until nc", [], False),
    ],
)
def test_guard_is_detected_by_its_loop_and_program(script: str, tools: list[str], *, is_endless: bool) -> None:
    faults = manifestchecks.wait_loop_errors(script)
    assert [one.partition(":")[0] for one in faults if one != manifestchecks.NO_DEADLINE] == tools
    assert (manifestchecks.NO_DEADLINE in faults) == is_endless


def test_guard_finding_names_the_container_and_the_rendezvous() -> None:
    (found,) = manifestchecks.check_wait_loops([manifest(f"until nslookup {LEADER}; do sleep 2; done")])
    assert (found.level, found.code) == (Level.WARNING, "LWS-D010")
    assert found.text.startswith("LeaderWorkerSet train: container rank waits in a loop: nslookup: a name")
    assert "leaderworkerset.rendezvous" in found.fix


@pytest.mark.parametrize(
    "obj",
    [
        manifest("exec python train.py"),
        manifest(7),
        manifest("", command=None, args="until nc a; do b; done"),
        {"kind": "x"},
    ],
    ids=["none", "a number", "no list", "empty"],
)
def test_manifest_without_a_guard_has_no_finding(obj: dict[str, Any]) -> None:
    assert [one.level for one in manifestchecks.check_wait_loops([obj])] == [Level.OK]
