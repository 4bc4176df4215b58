"""Tests generated LeaderWorkerSets and changes to them on the embedded API server in virtual time.

The recorded ones (packages/leaderworkerset/tests/parity) say what the Go manager leaves; these go where no recording is: whatever is posted comes
to rest, every group is complete, and every pod knows its place.
"""

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from testkit import virtualtime
from tests import builders
from tests.unit.leaderworkerset.controllers.cluster import NodelessCluster

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PERSISTENT_VOLUME_CLAIMS, PODS, SERVICES, STATEFULSETS
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS

names = st.sampled_from(["main", "side", "aux"])
texts = st.sampled_from(["", "x<y>&z", "ünï", "$(LWS_WORKER_INDEX)", "100%"])


@st.composite
def containers(draw: st.DrawFn) -> JSONObject:
    """Return a container with many fields."""
    resources = draw(st.sampled_from([{}, {"limits": {"cpu": "0.5"}}, {"limits": {"google.com/tpu": "4"}}]))
    optional = {
        "ports": [{"containerPort": 8080}],
        "env": [{"name": "TEXT", "value": draw(texts)}, {"name": labels.ENV_GROUP_SIZE, "value": "mine"}],
        "readinessProbe": {"httpGet": {"port": 8080}, "periodSeconds": 5},
        "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
        "securityContext": {"runAsNonRoot": False},
    }
    chosen = draw(st.sets(st.sampled_from(sorted(optional))))
    base = {"image": draw(st.sampled_from(["app:1", "app:2"])), "resources": resources}
    return base | {field: optional[field] for field in sorted(chosen)}


@st.composite
def templates(draw: st.DrawFn) -> JSONObject:
    """Return a pod template."""
    running = draw(st.lists(names, min_size=1, max_size=2, unique=True))
    spec: JSONObject = {
        "containers": [{"name": name} | draw(containers()) for name in running],
        "volumes": [{"name": "scratch", "emptyDir": {}}],
    }
    if draw(st.booleans()):
        spec["initContainers"] = [{"name": "init", "image": "i"}]
    metadata = draw(st.sampled_from([{}, {"labels": {"role": "r"}}, {"annotations": {"note": "n"}}]))
    return {"metadata": metadata, "spec": spec}


@st.composite
def groups(draw: st.DrawFn) -> JSONObject:
    """Return a `leaderWorkerTemplate`, with subgroup sizes that admission permits."""
    size = draw(st.integers(1, 5))
    template: JSONObject = {
        "size": size,
        "restartPolicy": draw(st.sampled_from(["RecreateGroupOnPodRestart", "RecreateGroupAfterStart", "None"])),
        "workerTemplate": draw(templates()),
    }
    if draw(st.booleans()):
        template["leaderTemplate"] = draw(templates())
    if draw(st.booleans()):
        storage = {"requests": {"storage": "1Gi"}}
        claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": storage}}
        template["volumeClaimTemplates"] = [claim]
        template["persistentVolumeClaimRetentionPolicy"] = {"whenScaled": "Delete", "whenDeleted": "Retain"}
    return template


@st.composite
def specs(draw: st.DrawFn) -> JSONObject:
    """Return a spec."""
    rolling = {
        "partition": 0,
        "maxUnavailable": draw(st.sampled_from([1, 2, "50%"])),
        "maxSurge": draw(st.sampled_from([0, 1, "30%"])),
    }
    return {
        "replicas": draw(st.integers(0, 3)),
        "startupPolicy": draw(st.sampled_from(["LeaderCreated", "LeaderReady"])),
        "networkConfig": {"subdomainPolicy": draw(st.sampled_from(["Shared", "UniquePerReplica"]))},
        "rolloutStrategy": {"type": "RollingUpdate", "rollingUpdateConfiguration": rolling},
        "leaderWorkerTemplate": draw(groups()),
    }


@pytest.mark.slow
@given(specs(), specs(), st.floats(0, 5))
@settings(
    phases=[Phase.generate],
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_generated_sets_settle_after_edits(before: JSONObject, after: JSONObject, pause: float) -> None:
    """There are no writes after the last change.

    (R-ARC-2, R-ENV-1, R-ENV-2, R-ADM-4, R-ADM-10, R-REV-14, R-STAT-8, R-SVC-7)
    """
    template = after["leaderWorkerTemplate"]
    for field in ("volumeClaimTemplates", "persistentVolumeClaimRetentionPolicy"):  # these fields are immutable
        template.pop(field, None)
        if field in before["leaderWorkerTemplate"]:
            template[field] = before["leaderWorkerTemplate"][field]

    async def scenario() -> None:
        async with NodelessCluster().running() as cluster, cluster.managed():
            created = await cluster.create(builders.leaderworkerset_object() | {"spec": before})
            await cluster.settle(pause)
            live = await cluster.get(LEADERWORKERSETS, meta.name(created))
            await cluster.client.update(LEADERWORKERSETS, live | {"spec": after})
            await cluster.settle(600)
            writes = cluster.transport.writes.total()
            await assert_at_rest(cluster, after)
            await cluster.settle(3600)
            assert cluster.transport.writes.total() == writes

    virtualtime.run(scenario())


async def assert_at_rest(cluster: NodelessCluster, spec: JSONObject) -> None:
    """Assert that groups are complete, have one revision, services and claims, and match the status."""
    size, replicas = spec["leaderWorkerTemplate"]["size"], spec["replicas"]
    pods = {meta.name(pod): pod for pod in await cluster.objects(PODS)}
    wanted = {pod_name(group, worker): (group, worker) for group in range(replicas) for worker in range(size)}
    assert pods.keys() == wanted.keys()
    (key,) = await cluster.revision_keys()
    for name, (group, worker) in wanted.items():
        assert_place(pods[name], group, worker, spec)
        assert meta.labels(pods[name])[labels.TEMPLATE_REVISION_HASH] == key
    assert len(await cluster.objects(STATEFULSETS)) == 1 + (replicas if size > 1 else 0)
    is_shared = spec["networkConfig"]["subdomainPolicy"] == "Shared"
    services = {meta.name(one) for one in await cluster.objects(SERVICES)}
    assert services >= ({"web"} if is_shared else {f"web-{group}" for group in range(replicas)})
    if "volumeClaimTemplates" in spec["leaderWorkerTemplate"]:
        claims = {meta.name(one) for one in await cluster.objects(PERSISTENT_VOLUME_CLAIMS)}
        assert claims >= {f"data-{name}" for name in pods}
    lws = await cluster.get(LEADERWORKERSETS, "web")
    assert meta.is_condition_true(lws, "Available")
    assert (meta.status(lws).get("readyReplicas") or 0) == (meta.status(lws).get("updatedReplicas") or 0) == replicas


def pod_name(group: int, worker: int) -> str:
    """Return the name of a pod of `web`."""
    return f"web-{group}-{worker}" if worker else f"web-{group}"


def assert_place(pod: JSONObject, group: int, worker: int, spec: JSONObject) -> None:
    """Assert that labels, hostname and environment variables of a pod have the same group and rank."""
    size = spec["leaderWorkerTemplate"]["size"]
    own = meta.labels(pod)
    assert (own[labels.GROUP_INDEX], own[labels.WORKER_INDEX]) == (str(group), str(worker))
    is_shared = spec["networkConfig"]["subdomainPolicy"] == "Shared"
    subdomain = "web" if is_shared else f"web-{group}"
    assert meta.spec(pod)["subdomain"] == subdomain
    expected: list[tuple[str, Any]] = [
        (labels.ENV_LEADER_ADDRESS, f"web-{group}.{subdomain}.default"),
        (labels.ENV_GROUP_SIZE, str(size)),
        (labels.ENV_WORKER_INDEX, str(worker)),
        (labels.ENV_GROUP_INDEX, str(group)),
    ]
    for container in [*meta.spec(pod)["containers"], *meta.spec(pod).get("initContainers", [])]:
        env = [(one["name"], one.get("value")) for one in container["env"]]
        assert env[:4] == expected
        assert len({name for name, _ in env}) == len(env)
