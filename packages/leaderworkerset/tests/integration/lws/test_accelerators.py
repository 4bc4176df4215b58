"""Tests the environment variables that pods with TPUs use to find each other (contract 7.4)."""

from tests.integration.clusters.objects import lws, pod_template
from tests.integration.clusters.space import LiveScenario
from tests.integration.clusters.state import State

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels

TPU = "google.com/tpu"


def with_tpus() -> JSONObject:
    """Return a pod template whose container requests TPUs."""
    template = pod_template()
    template["spec"]["containers"][0]["resources"] = {"limits": {TPU: "4"}}
    return template


def told(pod: JSONObject) -> dict[str, str]:
    """Return the ordered environment variables of the first container."""
    return {one["name"]: one["value"] for one in pod["spec"]["containers"][0]["env"]}


def are_there(state: State) -> None:
    """Check that all pods exist. Because no node has TPUs, they remain pending."""
    assert state.pods.keys() == {"web-0", "web-0-1", "web-0-2", "web-0-3"}


async def test_every_rank_knows_the_hosts_and_its_number(space: LiveScenario) -> None:
    """The TPU variables follow the variables of the group (R-TPU-1 to R-TPU-4, R-TPU-6, R-ENV-4, R-ADM-15)."""
    await space.create(lws(replicas=1, size=4, template={"workerTemplate": with_tpus()}))
    state = await space.until(are_there)
    hosts = ["web-0.web", "web-0-1.web", "web-0-2.web", "web-0-3.web"]
    for rank, name in enumerate(("web-0", "web-0-1", "web-0-2", "web-0-3")):
        found = told(state.pods[name])
        assert next(iter(found)) == "LWS_LEADER_ADDRESS"
        assert list(found)[-5:] == [
            "TPU_WORKER_HOSTNAMES",
            "TPU_WORKER_ID",
            "TPU_NAME",
            "TPU_PROCESS_ADDRESSES",
            "TPU_PROCESS_PORT",
        ]
        assert found["TPU_WORKER_HOSTNAMES"] == ",".join(hosts)
        assert (found["TPU_WORKER_ID"], found["TPU_NAME"], found["TPU_PROCESS_PORT"]) == (str(rank), "web-0", "8476")
        assert found["TPU_PROCESS_ADDRESSES"] == ",".join(f"{host}:8476" for host in hosts)
    assert meta.annotations(state.pods["web-0-1"])[labels.LEADER_REQUESTS_TPUS] == "true"


async def test_leader_without_tpus_is_not_counted(space: LiveScenario) -> None:
    """Worker numbers start with the first worker (R-TPU-3, R-WSTS-3)."""
    template = {"leaderTemplate": pod_template(), "workerTemplate": with_tpus()}
    await space.create(lws(replicas=1, size=4, template=template))
    state = await space.until(are_there)
    assert "TPU_NAME" not in told(state.pods["web-0"])
    assert labels.LEADER_REQUESTS_TPUS not in meta.annotations(state.pods["web-0-1"])
    for rank in (1, 2, 3):
        found = told(state.pods[f"web-0-{rank}"])
        assert found["TPU_WORKER_HOSTNAMES"] == "web-0-1.web,web-0-2.web,web-0-3.web"
        assert found["TPU_WORKER_ID"] == str(rank - 1)


async def test_subgroups_are_separate_tpu_slices(space: LiveScenario) -> None:
    """Subgroups are separate TPU slices (R-TPU-2, R-TPU-5)."""
    policy = {"subGroupPolicy": {"subGroupSize": 2}}
    await space.create(lws(replicas=1, size=4, template={"workerTemplate": with_tpus()} | policy))
    state = await space.until(are_there)
    hosts = {name: told(pod)["TPU_WORKER_HOSTNAMES"] for name, pod in state.pods.items()}
    assert hosts["web-0"] == hosts["web-0-1"] == "web-0.web,web-0-1.web"
    assert hosts["web-0-2"] == hosts["web-0-3"] == "web-0-2.web,web-0-3.web"
    numbers = {name: told(pod)["TPU_WORKER_ID"] for name, pod in state.pods.items()}
    assert numbers == {"web-0": "0", "web-0-1": "1", "web-0-2": "0", "web-0-3": "1"}
