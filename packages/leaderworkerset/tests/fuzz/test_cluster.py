"""Tests that invalid and hostile objects are stored or rejected, and that no controller fails permanently."""

import asyncio
from collections import Counter
from pathlib import Path
from random import Random

import msgspec
from testkit.clusters.embedded import program_of
from tests.fuzz import junk, specimens, wire
from tests.fuzz.seeds import seeds

from kuberuntime.client.transport import Request
from kuberuntime.clock import SystemClock
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS, STATEFULSETS, Resource
from leaderworkerset.api.fieldtypes import TYPES
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.manager import lwsmanager
from localkube import assembly as embedded
from localkube import workloads
from localkube.apiserver.inprocess import InProcessTransport
from localkube.apiserver.types import schemas
from localkube.apiserver.types.typed import SERVED
from localkube.assembly import Cluster
from localkube.cluster import Settings
from localkube.kubelet.processes.simulatedrunner import SimulatedRunner

LENGTH = 25
"""The number of writes for each seed."""

SUBJECTS: tuple[Resource, ...] = (LEADERWORKERSETS, LEADERWORKERSETS, STATEFULSETS, PODS)
JSON = {"content-type": "application/json"}
MERGE = {"content-type": "application/merge-patch+json"}


def written(random: Random, resource: Resource) -> JSONObject:
    """Return an object that is valid, at a limit, or beyond a limit."""
    specimen = random.choice(specimens.of(resource))
    obj: JSONObject = {"apiVersion": resource.api_version, "kind": resource.kind, **specimen}
    if random.random() < 0.7:
        bent = junk.bent(
            random, obj, schemas.struct_schema(resource.kind, TYPES if resource is LEADERWORKERSETS else SERVED)
        )
        obj = bent if isinstance(bent, dict) else obj
    metadata = obj.get("metadata")
    name = f"{resource.kind.lower()}-{random.randrange(3)}"
    kept = (
        {key: value for key, value in metadata.items() if key != "resourceVersion"}
        if isinstance(metadata, dict)
        else {}
    )
    return {**obj, "metadata": {**kept, "name": name}}


async def write(cluster: Cluster, random: Random) -> tuple[Request, int]:
    """Create, patch or delete an object. Return the request and the status of its response."""
    resource = random.choice(SUBJECTS)
    obj = written(random, resource)
    path = resource.path("default", obj["metadata"]["name"])
    match random.randrange(5):
        case 0:
            request = Request("DELETE", path, (("gracePeriodSeconds", "0"),))
        case 1:
            request = Request("PATCH", path, (), MERGE, msgspec.json.encode({"spec": obj.get("spec")}))
        case _:
            request = Request("POST", resource.path("default"), (), JSON, msgspec.json.encode(obj))
    return request, (await InProcessTransport(cluster.api, "fuzz").request(request)).status


def test_controllers_survive_every_stored_object(tmp_path: Path) -> None:
    for seed in seeds(1):
        directory = tmp_path / str(seed)
        directory.mkdir()
        asyncio.run(_try(seed, directory))


async def _try(seed: int, directory: Path) -> None:
    random = Random(seed)
    settings = Settings(name="fuzz", directory=directory, keep=False)
    with wire.errors() as logged:
        async with (
            embedded.serving(settings, SystemClock()) as cluster,
            lwsmanager.webhooks(cluster.client("admin"), SystemClock()),
            workloads.working(cluster, SimulatedRunner(program_of)),
            lwsmanager.controllers(cluster.client("lws"), SystemClock()),
        ):
            codes: Counter[int] = Counter()
            for _ in range(LENGTH):
                request, code = await write(cluster, random)
                codes[code] += 1
                again = f"seed {seed} (again: SEEDS={seed}-{seed + 1}): {request}"
                assert code < 500, f"{again} is answered with {code}"
                assert not logged, f"{again} and before: {logged[0]}"
    assert codes[201], f"seed {seed} stores nothing: {codes}"
    assert not logged, f"seed {seed}: {logged[0]}"
