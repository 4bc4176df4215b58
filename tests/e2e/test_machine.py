"""Tests simulated nodes, stubs for images that cannot run on this machine, and a shared network."""

from collections.abc import Iterator
from urllib.request import urlopen

import pytest
from testkit.waiting import until
from tests.e2e.harness import (
    SELDOM,
    SLEEP,
    LocalCluster,
    Shell,
    clean_up,
    facts,
    is_whole,
    line_with,
    lws,
    make_shell,
    python,
    ranks,
)
from tests.e2e.test_groups import SERVER

from kuberuntime.objects.meta import JSONObject

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]

EXCLUSIVE = "leaderworkerset.sigs.k8s.io/exclusive-topology"

SERVE = """
bash /vllm-workspace/examples/online_serving/multi-node-serving.sh leader --ray_cluster_size=$(LWS_GROUP_SIZE)
vllm serve model --port 8080
"""

VLLM: JSONObject = {
    "apiVersion": "leaderworkerset.x-k8s.io/v1",
    "kind": "LeaderWorkerSet",
    "metadata": {"name": "vllm"},
    "spec": {
        "replicas": 2,
        "leaderWorkerTemplate": {
            "size": 2,
            "restartPolicy": "RecreateGroupOnPodRestart",
            "leaderTemplate": {
                "metadata": {"labels": {"role": "leader"}},
                "spec": {
                    "containers": [
                        {
                            "name": "vllm-leader",
                            "image": "vllm/vllm-openai:latest",
                            "env": [
                                {
                                    "name": "HF_TOKEN",
                                    "valueFrom": {"secretKeyRef": {"name": "hf-token", "key": "token"}},
                                }
                            ],
                            "command": [
                                "sh",
                                "-c",
                                SERVE,
                            ],
                            "resources": {
                                "limits": {"nvidia.com/gpu": "8", "memory": "1124Gi", "ephemeral-storage": "800Gi"},
                                "requests": {"cpu": "1", "ephemeral-storage": "8Gi"},
                            },
                            "ports": [{"containerPort": 8080}],
                            "readinessProbe": {
                                "tcpSocket": {"port": 8080},
                                "initialDelaySeconds": 1,
                                "periodSeconds": 1,
                            },
                            "volumeMounts": [{"mountPath": "/dev/shm", "name": "dshm"}],
                        }
                    ],
                    "volumes": [{"name": "dshm", "emptyDir": {"medium": "Memory", "sizeLimit": "15Gi"}}],
                },
            },
            "workerTemplate": {
                "spec": {
                    "containers": [
                        {
                            "name": "vllm-worker",
                            "image": "vllm/vllm-openai:latest",
                            "resources": {"limits": {"nvidia.com/gpu": "8"}, "requests": {"cpu": "1"}},
                        }
                    ],
                },
            },
        },
    },
}
"""A manifest that resembles vLLM's multi-node example, with images, GPUs, a missing Secret, and a probe."""


@pytest.fixture(scope="module")
def racks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """A cluster of four nodes in two racks, with eight GPUs on each node, and stubs for images that cannot run."""
    shell = make_shell(tmp_path_factory.mktemp("racks"))
    words = ["--nodes=4", "--node-label", "rack=r{i//2}", "--gpus-per-node=8", "--stub"]
    shell.lws("up", "racks", "--detach", *words)
    yield LocalCluster(shell, "racks")
    clean_up(shell)


def waiting_ranks(view: JSONObject) -> list[JSONObject]:
    """Return the unscheduled ranks for which the reason is known."""
    return [rank for rank in ranks(view).values() if not rank["node"] and rank["why"].startswith("0/4 nodes")]


def test_exclusive_groups_have_racks_and_waiting_ones_a_reason(racks: LocalCluster) -> None:
    exclusive = lws("exclusive", SLEEP, replicas=3, size=2)
    exclusive["metadata"]["annotations"] = {EXCLUSIVE: "rack"}
    racks.apply(exclusive)
    racks.lws("wait", "exclusive", "--for=replicas=2")
    view = racks.until("exclusive", lambda view: [rank["state"] for rank in waiting_ranks(view)] == ["Pending"])
    rack = {"node-0": "r0", "node-1": "r0", "node-2": "r1", "node-3": "r1"}
    placed = {place: rack[rank["node"]] for place, rank in ranks(view).items() if rank["node"]}
    by_group = [{found for place, found in placed.items() if place[0] == group} for group in "012"]
    assert sorted(map(len, by_group)) == [0, 1, 1]
    assert {next(iter(racks_of)) for racks_of in by_group if racks_of} == {"r0", "r1"}
    (waiting,) = waiting_ranks(view)
    assert waiting["why"].startswith("0/4 nodes are available:")
    assert waiting["why"] in racks.lws("get", "exclusive")
    racks.lws("delete", "exclusive")


def test_unschedulable_pods_show_the_reason_of_the_scheduler(racks: LocalCluster) -> None:
    hungry = lws("hungry", {**SLEEP, "resources": {"limits": {"nvidia.com/gpu": "5"}}}, replicas=5)
    racks.apply(hungry)
    racks.lws("wait", "hungry", "--for=replicas=4")
    view = racks.until("hungry", lambda view: any(facts(view, "why").values()))
    assert sorted(facts(view, "node").values()) == ["", "node-0", "node-1", "node-2", "node-3"]
    assert "0/4 nodes are available: 4 Insufficient nvidia.com/gpu." in racks.lws("get", "hungry")
    racks.lws("scale", "hungry", "--replicas=4")
    racks.lws("wait", "hungry")
    racks.lws("delete", "hungry")


def test_gpu_manifest_is_rehearsed_with_stubs(racks: LocalCluster) -> None:
    racks.start(VLLM)
    view = racks.view("vllm")
    assert is_whole(view)
    assert set(facts(view, "stub").values()) == {True}
    assert len(set(facts(view, "node").values())) == 4
    assert racks.lws("get", "vllm").count("Running (stub)") == 4
    with racks.shell.running("port-forward", f"--local={racks.name}", "vllm/1", ":8080") as forward:
        address = line_with(forward, "->").split(" ")[0]
        with urlopen(f"http://{address}", timeout=10) as answer:
            assert answer.status == 200
    assert "stub" in racks.lws("logs", "vllm/0/0")
    racks.lws("delete", "vllm")


def test_taints_and_capacity_of_nodes_are_respected(shell: Shell) -> None:
    words = ["--nodes=2", "--node-taint", "pool=p{i}:NoSchedule", "--node-capacity", "cpu=2,memory=1Gi"]
    shell.lws("up", "pools", "--detach", *words)
    pools = LocalCluster(shell, "pools")
    tolerant = lws("tolerant", {**SLEEP, "resources": {"requests": {"cpu": "1"}}}, replicas=3)
    toleration = {"key": "pool", "operator": "Equal", "value": "p1", "effect": "NoSchedule"}
    tolerant["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["tolerations"] = [toleration]
    pools.apply(tolerant)
    pools.lws("wait", "tolerant", "--for=replicas=2")
    view = pools.until("tolerant", lambda view: any(facts(view, "why").values()))
    assert sorted(facts(view, "node").values()) == ["", "node-1", "node-1"]
    (why,) = filter(None, facts(view, "why").values())
    assert "1 Insufficient cpu" in why
    assert "1 node(s) had untolerated taint" in why


@pytest.fixture(scope="module")
def open_plan(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """A cluster that uses the network of this machine."""
    shell = make_shell(tmp_path_factory.mktemp("open"))
    shell.lws("up", "open", "--detach", "--network", "shared")
    yield LocalCluster(shell, "open")
    clean_up(shell)


def test_port_conflict_on_a_shared_network_is_explained(open_plan: LocalCluster) -> None:
    server = python(SERVER.replace("8080", "18080"), grace=1, ports=[{"containerPort": 18080}])
    open_plan.apply(lws("clash", server, replicas=2, startupPolicy="LeaderCreated"))

    def has_conflict(view: JSONObject) -> bool:
        return view["ready"] == 1 and any("is in use by" in why for why in facts(view, "why").values())

    view = open_plan.until("clash", has_conflict)
    winner = next(rank for rank in ranks(view).values() if rank["ready"])
    loser = next(rank for rank in ranks(view).values() if not rank["ready"])
    reason = f"port 18080 is in use by pod default/{winner['pod']}"
    assert reason in loser["why"]
    until(lambda: reason in open_plan.lws("get", "clash"), "the reason in the table", poll=SELDOM)
    assert {rank["address"].split(".")[0] for rank in ranks(view).values()} == {"127"}
    with urlopen(f"http://{winner['address']}:18080", timeout=10) as answer:  # no port-forward needed
        assert answer.read().decode() == winner["pod"]
    open_plan.lws("delete", "clash")
