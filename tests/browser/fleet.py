"""Creates a team's cluster for screenshots and measurements.

It has nodes with GPUs in racks, with training and serving workloads.

One set in eight has a problem, one in ten a rollout in progress; the others are healthy or complete.
"""

from collections.abc import Iterator
from datetime import timedelta
from itertools import count, cycle
from typing import Any, Final

from msgspec import Struct
from tests.dashboardhouse import AVAILABLE, READY, ServedDashboard
from tests.integration.clusters import objects

from kuberuntime.objects import meta, timestamps
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import NAMESPACES, NODES, PODS, Resource
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS

MODELS: Final = ("llama-3-70b", "qwen3-235b", "deepseek-v3", "mixtral-8x22b", "gpt-oss-120b", "gemma-3-27b")
IMAGES: Final = (
    "docker.io/vllm/vllm-openai:v0.11.0",
    "registry.example.com/ml/sglang:v0.5.3",
    "nvcr.io/nvidia/pytorch:25.09-py3",
)
NAMES: Final = ("prod", "research")
NODE_GPUS: Final = 8
RACK: Final = "topology.kubernetes.io/rack"


class Made(Struct, frozen=True):
    """A LeaderWorkerSet in the cluster, with its name, size and state."""

    number: int
    state: str

    @property
    def namespace(self) -> str:
        """Return the namespace of the LeaderWorkerSet."""
        return NAMES[self.number % len(NAMES)]

    @property
    def name(self) -> str:
        """Return the name of the LeaderWorkerSet."""
        word = "train" if self.state == "complete" else MODELS[self.number % len(MODELS)]
        return f"{word}-{self.number // len(MODELS):02}"

    @property
    def groups(self) -> int:
        """Return the number of groups."""
        return 1 + self.number % 4

    @property
    def size(self) -> int:
        """Return the number of pods in a group."""
        return 1 if self.number % 3 else 4


def made(number: int) -> Iterator[Made]:
    """Yield `count` LeaderWorkerSets."""
    ill = cycle(("crash", "capacity", "crash", "image", "capacity"))
    for at in range(number):
        state = next(ill) if at % 8 == 3 else "rollout" if at % 10 == 5 else "complete" if at % 25 == 9 else "ready"
        yield Made(at, state)


async def furnish(house: ServedDashboard, sets: int) -> None:
    """Create `count` LeaderWorkerSets with their pods, and nodes for most of these pods."""
    for name in NAMES:
        await house.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    places = _places(house)
    for own in made(sets):
        await _put(house, own, places)
    for _ in range(3 * NODE_GPUS):
        await anext(places)
    await house.model.diagnose()


async def _places(house: ServedDashboard) -> Any:
    """Yield a node for each additional GPU. Nodes are created on demand."""
    for number in count():
        name = f"gpu-{number:03}"
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {RACK: f"r{number // 8 + 1}"}}}
        await house.client.create(NODES, node)
        amounts = {"cpu": "96", "memory": "768Gi", "pods": "110", "nvidia.com/gpu": str(NODE_GPUS)}
        status = {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": amounts}
        await _patch(house, NODES, ObjectKey("", name), status)
        for _ in range(NODE_GPUS):
            yield name


async def _put(house: ServedDashboard, own: Made, places: Any) -> None:
    now = house.model.clock.now()
    since = timestamps.render(now - timedelta(minutes=7 + 13 * own.number))
    gpus = 4 if own.size > 1 else 1
    template = _template(IMAGES[own.number % len(IMAGES)], 16 if own.state == "capacity" else gpus)
    lws = objects.lws(own.name, replicas=own.groups, size=own.size) | {}
    lws["metadata"] = {"name": own.name, "namespace": own.namespace}
    lws["spec"]["leaderWorkerTemplate"]["workerTemplate"] = template
    created = await house.client.create(LEADERWORKERSETS, lws)
    ready = own.groups - (own.state in ("crash", "capacity", "image", "rollout"))
    conditions: list[JSONObject] = [
        AVAILABLE | {"status": str(ready == own.groups), "lastTransitionTime": since},
    ]
    if own.state == "rollout":
        conditions.append(AVAILABLE | {"type": "UpdateInProgress", "lastTransitionTime": since})
    if own.state == "complete":
        conditions.append(AVAILABLE | {"type": "Complete", "lastTransitionTime": since})
    status = {
        "replicas": own.groups,
        "readyReplicas": 0 if own.state == "complete" else ready,
        "updatedReplicas": own.groups - (own.state == "rollout"),
        "observedGeneration": meta.generation(created),
        "conditions": conditions,
    }
    await _patch(house, LEADERWORKERSETS, meta.key(created), status)
    if own.state == "complete":
        return
    for group in range(own.groups):
        for rank in range(own.size):
            await _put_pod(house, own, (group, rank), template, places, since)


async def _put_pod(
    house: ServedDashboard, own: Made, place: tuple[int, int], template: JSONObject, places: Any, since: str
) -> None:
    group, rank = place
    is_last = group == own.groups - 1
    is_waiting = is_last and own.state == "capacity"
    name = f"{own.name}-{group}" + (f"-{rank}" if rank else "")
    marks = {
        labels.NAME: own.name,
        labels.GROUP_INDEX: str(group),
        labels.WORKER_INDEX: str(rank),
        labels.TEMPLATE_REVISION_HASH: "r2" if own.state == "rollout" and is_last else "r1",
    }
    spec = dict(template["spec"])
    if not is_waiting:
        gpus = 4 if own.size > 1 else 1
        taken = [await anext(places) for _ in range(gpus)]
        spec = _template(IMAGES[0], gpus)["spec"] | {"nodeName": taken[0]}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": own.namespace, "labels": marks},
        "spec": spec,
    }
    await house.client.create(PODS, pod)
    await _patch(house, PODS, ObjectKey(own.namespace, name), _status(own, is_last=is_last, rank=rank, since=since))


def _status(own: Made, *, is_last: bool, rank: int, since: str) -> JSONObject:
    if not is_last or own.state == "ready":
        return READY
    container: JSONObject = {"name": "main", "image": "x", "imageID": "", "ready": False, "restartCount": 0}
    unready = {"type": "Ready", "status": "False"}
    match own.state:
        case "capacity":
            message = "0/40 nodes are available: 40 Insufficient nvidia.com/gpu."
            condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
            return {"phase": "Pending", "conditions": [condition | {"lastTransitionTime": since}]}
        case "crash" if rank == own.size - 1:
            end = {"exitCode": 137, "reason": "Error", "message": "CUDA error: out of memory", "finishedAt": since}
            waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s restarting failed container"}}
            own_status = container | {"restartCount": 5, "state": waiting, "lastState": {"terminated": end}}
            return {"phase": "Running", "conditions": [unready], "containerStatuses": [own_status]}
        case "image":
            waiting = {"waiting": {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "sglang:v0.5.3"'}}
            return {"phase": "Pending", "conditions": [unready], "containerStatuses": [container | {"state": waiting}]}
        case "rollout":
            running = {"running": {"startedAt": since}}
            return {"phase": "Running", "conditions": [unready], "containerStatuses": [container | {"state": running}]}
    return READY


def _template(image: str, gpus: int) -> JSONObject:
    template = objects.pod_template(image)
    (container,) = template["spec"]["containers"]
    return {
        "spec": template["spec"] | {"containers": [container | {"resources": {"limits": {"nvidia.com/gpu": gpus}}}]}
    }


async def _patch(house: ServedDashboard, resource: Resource, key: ObjectKey, status: JSONObject) -> None:
    await house.client.patch(resource, key, {"status": status}, kind="merge", subresource="status", manager="test")
