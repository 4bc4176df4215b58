"""Tests the pods, names, addresses and counts of recipes that platforms publish for their users."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec
import pytest
from testkit.clusters.cluster import RACK
from tests.integration.clusters.objects import lws, pod_template
from tests.integration.clusters.space import LiveScenario
from tests.integration.clusters.state import State, assert_pods, is_ready, pod_names, revision_of
from tests.integration.lws.test_placement import domains

from kuberuntime.client.transport import Request
from kuberuntime.errors import APIError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import NODES, PERSISTENT_VOLUME_CLAIMS, PODS
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS

GPU: Final = "nvidia.com/gpu"
RDMA: Final = "rdma/rdma_shared_device_a"
TABLE: Final = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}


@asynccontextmanager
async def equipped(space: LiveScenario, count: int, **resources: str) -> AsyncIterator[None]:
    """Add devices to the first nodes for the duration of the `with` block."""
    names = [f"node-{index}" for index in range(count)]

    async def offer(amounts: Mapping[str, str | None]) -> None:
        status = {"status": {"capacity": dict(amounts), "allocatable": dict(amounts)}}
        for name in names:
            await space.client.patch(NODES, ObjectKey("", name), status, kind="merge", subresource="status")

    await offer(resources)
    try:
        yield
    finally:
        await offer(dict.fromkeys(resources))


def trainer(role: str, **resources: str) -> JSONObject:
    """Return the template of a training pod that uses all GPUs of a node."""
    template = pod_template(name="trainer")
    (container,) = template["spec"]["containers"]
    more = {
        "args": ["--rdzv_endpoint=$(LWS_LEADER_ADDRESS):29500"],
        "env": [{"name": "NCCL_DEBUG", "value": "INFO"}],
        "resources": {"limits": resources, "requests": resources},
    }
    init = {"name": "prepare", "image": "prepare:1", "command": ["true"], "env": more["env"]}
    spec = template["spec"] | {"containers": [container | more], "initContainers": [init]}
    return {"metadata": {"labels": {"role": role}}, "spec": spec}


def distributed_training() -> JSONObject:
    """Return the recipe's training workload: two groups of five pods."""
    templates = {
        "restartPolicy": "RecreateGroupOnPodRestart",
        "leaderTemplate": trainer("leader", **{GPU: "8"}),
        "workerTemplate": trainer("worker", **{GPU: "8"}),
    }
    return lws("distributed-training", replicas=2, size=5, template=templates)


async def counted(space: LiveScenario, selector: str) -> int:
    return len((await space.client.list(PODS, namespace=space.namespace, label_selector=selector)).items)


async def row(space: LiveScenario, name: str) -> list[Any]:
    """Return the cells that `kubectl get lws` prints."""
    answer = await space.client.send(Request("GET", LEADERWORKERSETS.path(space.namespace), headers=TABLE))
    rows = [one["cells"] for one in msgspec.json.decode(answer.body)["rows"]]
    return next(list(cells) for cells in rows if cells[0] == name)


def environment(pod: JSONObject) -> list[dict[str, str]]:
    """Return the environment variables of each container, in order."""
    spec = meta.spec(pod)
    found = [*spec["containers"], *spec.get("initContainers", [])]
    return [{one["name"]: one.get("value", "") for one in container["env"]} for container in found]


async def test_training_recipe_creates_two_groups(space: LiveScenario) -> None:
    """Ten pods use ten nodes with eight GPUs each. A failed pod recreates its group.

    Rules R-OP-59, R-OP-61, R-OP-62, R-OP-83 (D3), AT-000-3, AT-000-5, AT-000-6a.
    """
    name = "distributed-training"
    async with equipped(space, 10, **{GPU: "8"}):
        await space.create(distributed_training())
        state = await space.settled(name)
        assert state.of(name).keys() == pod_names(name, 2, 5)
        assert {key: one["spec"]["replicas"] for key, one in state.statefulsets.items()} == {
            name: 2,
            f"{name}-0": 4,
            f"{name}-1": 4,
        }
        assert meta.spec(state.services[name])["clusterIP"] == "None"
        of_set = f"{labels.NAME}={name}"
        assert [await counted(space, f"{of_set}{more}") for more in ("", ",role=leader", ",role=worker")] == [10, 2, 8]
        assert (await row(space, name))[:4] == [name, 2, 2, 2]
        assert len({meta.spec(pod)["nodeName"] for pod in state.of(name).values()}) == 10
        for index in range(2):
            for pod in state.group(name, index).values():
                _assert_variables(pod, f"{name}-{index}.{name}.{space.namespace}", index)

        before = state.uids(name)
        await space.delete(f"{name}-1-3", PODS)
        after = (await space.until(lambda state: _recreated(state, name, before))).uids(name)
        assert {pod for pod in before if before[pod] == after[pod]} == pod_names(f"{name}", 1, 5)


def _assert_variables(pod: JSONObject, address: str, group: int) -> None:
    """The group's variables precede the user's variables, so that the user can refer to them (R-OP-61)."""
    for variables in environment(pod):
        assert next(iter(variables)) == "LWS_LEADER_ADDRESS"
        assert variables["LWS_LEADER_ADDRESS"] == address
        assert variables["LWS_GROUP_SIZE"] == "5"
        assert variables["LWS_WORKER_INDEX"] == meta.labels(pod)[labels.WORKER_INDEX]
        assert variables["LWS_GROUP_INDEX"] == str(group)
        assert list(variables).index("NCCL_DEBUG") > list(variables).index("LWS_WORKER_INDEX")


def _recreated(state: State, name: str, before: Mapping[str, str]) -> None:
    after = state.uids(name)
    assert_pods(state, name, replicas=2, size=5)
    assert all(after[pod] != before[pod] for pod in state.group(name, 1))


async def test_storage_and_rdma_reach_every_rank(space: LiveScenario) -> None:
    """Pods of leaders and workers have the node selector, claims, memory and devices of the template.

    Rules R-OP-60, AT-000-4.
    """
    await space.provide_volumes("shared", 2)
    for claim in ("dataset", "checkpoints"):
        await space.client.create(PERSISTENT_VOLUME_CLAIMS, _claim(space, claim))
    template = trainer("any", **{RDMA: "1"})
    volumes: list[JSONObject] = [
        *(
            {"name": claim, "persistentVolumeClaim": {"claimName": claim, "readOnly": False}}
            for claim in ("dataset", "checkpoints")
        ),
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "64Gi"}},
    ]
    (container,) = template["spec"]["containers"]
    mounts = [{"name": one["name"], "mountPath": f"/{one['name']}"} for one in volumes]
    placed = {"nodeSelector": {RACK: "r0"}, "volumes": volumes, "containers": [container | {"volumeMounts": mounts}]}
    obj = lws("llm-training", replicas=1, size=4, template={"workerTemplate": {"spec": template["spec"] | placed}})
    async with equipped(space, 4, **{RDMA: "1"}):
        await space.create(obj)
        state = await space.settled("llm-training")
    for pod in state.of("llm-training").values():
        spec = meta.spec(pod)
        assert spec["nodeSelector"][RACK] == "r0"
        kept = {one["name"]: one for one in spec["volumes"]}
        assert kept["shm"]["emptyDir"] == {"medium": "Memory", "sizeLimit": "64Gi"}
        assert kept["dataset"]["persistentVolumeClaim"]["claimName"] == "dataset"
        assert spec["containers"][0]["resources"]["limits"] == {RDMA: "1"}
        assert {one["name"] for one in spec["containers"][0]["volumeMounts"]} >= {"dataset", "checkpoints", "shm"}
        assert len(environment(pod)) == 2  # also in the init container
        assert all("LWS_LEADER_ADDRESS" in variables for variables in environment(pod))
    assert len({meta.spec(pod)["nodeName"] for pod in state.of("llm-training").values()}) == 4


def _claim(space: LiveScenario, name: str) -> JSONObject:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "shared",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": space.namespace},
        "spec": spec,
    }


async def test_operator_sample_creates_six_pods(space: LiveScenario) -> None:
    """Pods have the names of the sample. The generation in the file is ignored. An invalid policy is rejected.

    Rules R-OP-65, AT-001-3.
    """
    rollout = {"maxSurge": 1, "maxUnavailable": 1}
    image = "nginxinc/nginx-unprivileged:1.27"
    templates = {
        "leaderTemplate": pod_template(image),
        "workerTemplate": pod_template(image),
        "restartPolicy": "RecreateGroupOnPodRestart",
    }
    fields: dict[str, Any] = {"startupPolicy": "LeaderCreated", "networkConfig": {"subdomainPolicy": "Shared"}}
    obj = lws("my-lws", replicas=2, size=3, rollout=rollout, template=templates, **fields)
    obj["metadata"]["generation"] = 7
    created = await space.create(obj)
    assert meta.generation(created) == 1
    state = await space.settled("my-lws")
    assert sorted(state.of("my-lws")) == [
        "my-lws-0",
        "my-lws-0-1",
        "my-lws-0-2",
        "my-lws-1",
        "my-lws-1-1",
        "my-lws-1-2",
    ]
    ready = {key: meta.status(one).get("readyReplicas") for key, one in state.statefulsets.items()}
    assert ready == {"my-lws": 2, "my-lws-0": 2, "my-lws-1": 2}
    statuses = [one for pod in state.of("my-lws").values() for one in meta.status(pod)["containerStatuses"]]
    assert {one["restartCount"] for one in statuses} == {0}
    with pytest.raises(APIError, match="restartPolicy"):
        await space.create(lws("other", template={"restartPolicy": "Sometimes"}))


async def test_exclusive_groups_keep_spread_constraints_of_the_user(space: LiveScenario) -> None:
    """Exclusive placement and the template's topologySpreadConstraints apply together (R-OP-68, AT-003-3)."""
    selector = {"matchLabels": {labels.NAME: "web"}}
    spread = {"maxSkew": 4, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}
    template = pod_template(topologySpreadConstraints=[spread | {"labelSelector": selector}])
    annotations = {labels.EXCLUSIVE_TOPOLOGY: RACK}
    state = await space.bring_up(
        lws(replicas=3, size=2, annotations=annotations, template={"workerTemplate": template})
    )
    racks = await domains(space, state, RACK)
    by_group = [{racks[pod] for pod in state.group("web", index)} for index in range(3)]
    assert [len(group) for group in by_group] == [1, 1, 1]
    assert len(set.union(*by_group)) == 3
    for pod in state.of("web").values():
        assert meta.spec(pod)["topologySpreadConstraints"] == [spread | {"labelSelector": selector}]


async def test_recreated_group_keeps_its_names_and_address(space: LiveScenario) -> None:
    """The DNS name of a leader or a rank resolves to its replacement pod (R-OP-68, AT-003-4, AT-003-5)."""

    def identities(state: State) -> dict[str, tuple[str, str, str]]:
        return {
            name: (
                meta.spec(pod)["hostname"],
                meta.spec(pod)["subdomain"],
                environment(pod)[0]["LWS_LEADER_ADDRESS"],
            )
            for name, pod in state.of("web").items()
        }

    state = await space.bring_up(lws(replicas=1, size=3))
    before, uids = identities(state), state.uids("web")
    service = meta.uid(state.services["web"])
    assert before["web-0-2"] == ("web-0-2", "web", f"web-0.web.{space.namespace}")
    await space.delete("web-0-2", PODS)

    def is_recreated(state: State) -> None:
        assert_pods(state, "web", replicas=1, size=3)
        assert not uids.items() & state.uids("web").items()

    state = await space.until(is_recreated)
    assert identities(state) == before
    assert meta.uid(state.services["web"]) == service


async def test_ready_groups_have_pods_of_one_revision(space: LiveScenario) -> None:
    """With at most one unavailable group, each ready group has a single revision (R-OP-68, AT-003-6).

    Workers of a deleted leader do not belong to the group of its successor; the garbage collector deletes them.
    """

    def is_whole(state: State) -> None:
        for index in range(3):
            group = related(state, index)
            if len(group) == 3 and all(is_ready(pod) for pod in group):
                assert len({revision_of(pod) for pod in group}) == 1

    def related(state: State, index: int) -> list[JSONObject]:
        leader, workers = state.pods.get(f"web-{index}"), state.statefulsets.get(f"web-{index}")
        if leader is None or workers is None or owner(workers) != meta.uid(leader):
            return []
        return [leader, *(pod for pod in state.pods.values() if owner(pod) == meta.uid(workers))]

    def owner(obj: JSONObject) -> str:
        return next((str(one["uid"]) for one in meta.metadata(obj).get("ownerReferences") or []), "")

    await space.bring_up(lws(replicas=3, size=3, rollout={"maxUnavailable": 1, "maxSurge": 0}))
    space.always(is_whole)
    await space.replace_worker_template(pod_template("app:2"))
    state = await space.settled()
    assert {meta.spec(pod)["containers"][0]["image"] for pod in state.of("web").values()} == {"app:2"}


@pytest.mark.parametrize(("policy", "workers"), [("LeaderReady", 0), ("LeaderCreated", 2)])
async def test_startup_policy_determines_when_workers_start(space: LiveScenario, policy: str, workers: int) -> None:
    """The worker StatefulSet is created after its leader is ready, or immediately (R-OP-68, AT-003-7)."""
    gated = {"leaderTemplate": pod_template(gated=True), "workerTemplate": pod_template()}
    await space.create(lws(replicas=2, size=2, template=gated, startupPolicy=policy))

    def leaders_run(state: State) -> None:
        leaders = [state.pods[f"web-{index}"] for index in range(2)]
        assert {meta.status(pod).get("phase") for pod in leaders} == {"Running"}
        assert len(state.statefulsets) == 1 + workers

    await space.until(leaders_run)
    await space.release("web-0", "web-1")
    state = await space.settled()
    assert state.statefulsets.keys() == {"web", "web-0", "web-1"}
