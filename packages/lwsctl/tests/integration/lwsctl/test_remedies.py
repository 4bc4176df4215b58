"""Tests the remedies in the catalogue.

A broken LeaderWorkerSet is explained, corrected as advised, and becomes ready.
"""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

import pytest
from msgspec.structs import replace
from testkit.clusters.cluster import ZONE
from testkit.clusters.embedded import EmbeddedCluster
from tests.explanations.remedies import OF_KUBELETS, ON_KUBERNETES, TEMPLATES
from tests.integration.clusters.objects import lws, pod_template
from tests.integration.clusters.pools import add_to_pool, half_a_node
from tests.integration.clusters.space import LiveScenario
from tests.integration.clusters.state import State
from tests.integration.lwsctl.explanations import (
    follow,
    named,
    of_kubernetes,
    remedy,
    template,
    unreachable_webhook,
    warned,
)

from kuberuntime.client.transport import Request
from kuberuntime.errors import ForbiddenError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import (
    CONFIG_MAPS,
    EVENTS,
    NODES,
    SECRETS,
    STATEFULSETS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
)
from leaderworkerset.api import labels
from lwsctl.diagnosis.causes.starts import PATIENCE
from lwsctl.diagnosis.observed import RESOURCE_QUOTAS

LATER: Final = 10.0
"""The time in seconds after which a missing scheduler is reported."""

PORT: Final = 8000
"""The port of leaders that become ready after their workers."""

FAILURES: Final = 12
"""The number of rejections after which a controller waits for at least ten seconds."""


def of_kubelets(space: LiveScenario) -> None:
    """Skip a test of pods that a kubelet rejects."""
    if space.cluster.name != "embedded":
        pytest.skip("the nodes are simulated, and start everything")


def broken_template(code: str) -> JSONObject:
    """Return the pod template that causes this code."""
    broken, fields = pod_template(), dict(TEMPLATES[code])
    broken["spec"]["containers"][0] |= fields.pop("container", {})
    broken["spec"] |= fields
    return broken


@pytest.mark.parametrize("code", TEMPLATES)
async def test_correcting_the_template_makes_the_set_ready(space: LiveScenario, code: str) -> None:
    if code in ON_KUBERNETES:
        of_kubernetes(space)
    if code in OF_KUBELETS:
        of_kubelets(space)
    await space.create(lws(replicas=1, size=2, template={"workerTemplate": broken_template(code)}))
    told = await named(space, code, seconds=LATER)
    assert told.steps
    await space.replace_worker_template(pod_template())
    await space.settled()


@asynccontextmanager
async def closed_node(space: LiveScenario, **spec: object) -> AsyncIterator[JSONObject]:
    """Cordon one node. Yield the template of pods that fit only on this node."""
    await space.client.patch(NODES, ObjectKey("", "node-62"), {"spec": spec}, kind="merge")
    try:
        yield template(nodeSelector={"kubernetes.io/hostname": "node-62"})
    finally:
        await space.client.patch(NODES, ObjectKey("", "node-62"), {"spec": dict.fromkeys(spec)}, kind="merge")


@remedy("LWS-E039")
async def test_toleration_makes_the_set_ready(space: LiveScenario, code: str) -> None:
    async with closed_node(space, taints=[{"key": "team", "value": "a", "effect": "NoSchedule"}]) as chosen:
        await space.create(lws(replicas=1, size=1, template=chosen))
        await named(space, code)
        chosen["workerTemplate"]["spec"]["tolerations"] = [{"key": "team", "operator": "Exists"}]
        await space.replace_worker_template(chosen["workerTemplate"])
        await space.settled()


@remedy("LWS-E043")
async def test_uncordon_makes_the_set_ready(space: LiveScenario, code: str) -> None:
    async with closed_node(space, unschedulable=True) as chosen:
        await space.create(lws(replicas=1, size=1, template=chosen))
        await follow(space, await named(space, code), "uncordon")
        await space.settled()


@remedy("LWS-E041")
async def test_fewer_groups_make_the_set_ready(space: LiveScenario, code: str) -> None:
    await space.create(lws(replicas=5, size=1, annotations={labels.EXCLUSIVE_TOPOLOGY: ZONE}))
    await named(space, code, seconds=LATER)
    await space.scale(4)
    await space.settled()


async def limit(space: LiveScenario, **hard: str) -> None:
    """Create a ResourceQuota, and wait until it is enforced."""
    of_kubernetes(space)
    amounts = {name.replace("_", "."): amount for name, amount in hard.items()}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}, "spec": {"hard": amounts}}
    await space.create(quota, RESOURCE_QUOTAS)
    await space.eventually(lambda: space.get(RESOURCE_QUOTAS, "few"), lambda one: bool(meta.status(one).get("hard")))


@remedy("LWS-E020")
async def test_larger_quota_makes_the_set_ready(space: LiveScenario, code: str) -> None:
    await limit(space, pods="1")
    await space.create(lws(replicas=1, size=2))
    await named(space, code, seconds=LATER)
    await space.patch({"spec": {"hard": {"pods": "9"}}}, "few", resource=RESOURCE_QUOTAS)
    await space.settled()


@remedy("LWS-E021")
async def test_amounts_that_a_quota_requires_make_the_set_ready(space: LiveScenario, code: str) -> None:
    await limit(space, limits_cpu="9", requests_memory="9Gi")
    await space.create(lws(replicas=1, size=2))
    (step,) = (await named(space, code, seconds=LATER)).steps
    corrected, resources = pod_template(), {"cpu": "1", "memory": "1Gi"}
    missing = re.findall(r"(limits|requests)\.(\w+)", step)
    assert missing
    given = {part: {name: resources[name] for of, name in missing if of == part} for part, _ in missing}
    corrected["spec"]["containers"][0]["resources"] = given
    await space.replace_worker_template(corrected)
    await space.settled()


@asynccontextmanager
async def without_validation(space: LiveScenario) -> AsyncIterator[None]:
    """Exclude the namespace from the manager's webhook, because a LeaderWorkerSet can be older than its rules."""
    found = await space.client.list(VALIDATING_WEBHOOK_CONFIGURATIONS)
    (own,) = (obj for obj in found.items if any(hook["name"] == "vleaderworkerset.kb.io" for hook in obj["webhooks"]))
    elsewhere = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": [space.namespace]}
    hooks = [hook | {"namespaceSelector": {"matchExpressions": [elsewhere]}} for hook in own["webhooks"]]
    key = ObjectKey("", meta.name(own))
    await space.client.patch(VALIDATING_WEBHOOK_CONFIGURATIONS, key, {"webhooks": hooks}, kind="merge")
    try:
        yield
    finally:
        before = {"webhooks": own["webhooks"]}
        await space.client.patch(VALIDATING_WEBHOOK_CONFIGURATIONS, key, before, kind="merge")


async def store(space: LiveScenario, obj: JSONObject) -> bool:
    """Create an object. Return whether the API server admitted it."""
    with suppress(ForbiddenError):
        await space.create(obj)
        return True
    return False


@remedy("LWS-E011")
async def test_shorter_name_makes_the_set_ready(space: LiveScenario, code: str) -> None:
    name = "a" * 55
    async with without_validation(space):
        await space.eventually(lambda: store(space, lws(name, replicas=1, size=1)), bool)
    told = await named(space, code, name, seconds=LATER)
    assert told.steps[0] == f"recreate {name} with a shorter name"
    await space.delete(name)
    await space.create(lws("a" * 40, replicas=1, size=1))
    await space.settled("a" * 40)


@remedy("LWS-E106")
async def test_annotation_wakes_the_statefulset_controller(space: LiveScenario, code: str) -> None:
    """The delay increases with each rejection, and the events of the rejections expire before the next attempt."""
    async with unreachable_webhook(space):
        await space.create(lws(replicas=1, size=1))
        await space.until(warned("unreachable.example.com"))
        await space.eventually(lambda: refusals(space), lambda count: count >= FAILURES)
    await space.client.send(Request("DELETE", EVENTS.path(space.namespace)))
    await follow(space, await named(space, code, late=PATIENCE), "to trigger its controller")
    await space.settled()


async def refusals(space: LiveScenario) -> int:
    """Return the number of times that a pod was rejected."""
    events = space.state.events.values()
    return sum(
        int((event.get("series") or {}).get("count") or event.get("deprecatedCount") or 1)
        for event in events
        if event["reason"] == "FailedCreate"
    )


@remedy("LWS-E087")
async def test_unavailable_group_makes_room_for_a_rollout(space: LiveScenario, code: str) -> None:
    await add_to_pool(space, range(50, 51))
    rollout = {"maxUnavailable": 0, "maxSurge": 1}
    await space.bring_up(lws(replicas=2, size=1, rollout=rollout, template={"workerTemplate": half_a_node(space)}))
    await space.replace_worker_template(half_a_node(space, "app:2"))
    (step,) = (await named(space, code, seconds=LATER)).steps
    assert "set maxUnavailable to 1" in step
    await space.edit(rolloutStrategy={"rollingUpdateConfiguration": {"maxUnavailable": 1}})
    await space.settled()


@remedy("LWS-E066")
async def test_missing_secret_makes_the_set_ready(space: LiveScenario, code: str) -> None:
    of_kubelets(space)
    broken = pod_template()
    broken["spec"]["containers"][0]["envFrom"] = [{"secretRef": {"name": "hf-token"}}]
    await space.create(lws(replicas=1, size=2, template={"workerTemplate": broken}))
    (step,) = (await named(space, code)).steps
    (name,) = re.findall(r'create the missing object or key in namespace \S+: secret "(\S+)" not found', step)
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"TOKEN": "x"}}
    await space.create(secret, SECRETS)
    await space.settled()


@remedy("LWS-E064")
async def test_missing_config_map_makes_the_set_ready(space: LiveScenario, code: str) -> None:
    of_kubelets(space)
    volumes = [{"name": "data", "configMap": {"name": "settings"}}]
    await space.create(lws(replicas=1, size=2, template=template(volumes=volumes)))
    (step,) = (await named(space, code, seconds=LATER)).steps
    (name,) = re.findall(r'^create configmap "(\S+)" in namespace ', step)
    await space.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {}}, CONFIG_MAPS)
    await space.settled()


@remedy("LWS-E100")
async def test_scaling_back_the_workers_makes_the_set_ready(space: LiveScenario, code: str) -> None:
    await space.bring_up(lws(replicas=1, size=2))
    await space.patch({"spec": {"replicas": 3}}, "web-0", resource=STATEFULSETS)
    await follow(space, await named(space, code), "scale statefulset web-0")
    await space.settled()


async def create_deaf_leader(space: LiveScenario, policy: str) -> None:
    """Create a LeaderWorkerSet whose leader does not listen on a port and is not ready."""
    of_kubelets(space)
    leader = pod_template()
    leader["spec"]["containers"][0]["readinessProbe"] = {"tcpSocket": {"port": PORT}, "periodSeconds": 1}
    templates = {"leaderTemplate": leader, "workerTemplate": pod_template()}
    await space.create(lws(replicas=1, size=2, template=templates, startupPolicy=policy))


def begin_to_listen(space: LiveScenario) -> None:
    """Let all containers listen on the port."""
    assert isinstance(space.cluster, EmbeddedCluster)
    for process in space.cluster.runner.processes.values():
        process.program = replace(process.program, listens={PORT: 0.0})


@remedy("LWS-E084")
async def test_leader_that_needs_its_workers_gets_ready(space: LiveScenario, code: str) -> None:
    await create_deaf_leader(space, "LeaderReady")
    told = await named(space, code)
    assert told.steps[-1].endswith("use startupPolicy LeaderCreated")
    await space.edit(startupPolicy="LeaderCreated")

    def has_workers(state: State) -> None:
        assert meta.is_condition_true(state.pods["web-0-1"], "Ready")

    await space.until(has_workers)
    begin_to_listen(space)
    await space.settled()


@remedy("LWS-E082")
async def test_leader_that_begins_to_listen_gets_ready(space: LiveScenario, code: str) -> None:
    await create_deaf_leader(space, "LeaderCreated")
    told = await named(space, code)
    await follow(space, told, "logs web/0/0")
    begin_to_listen(space)
    await space.settled()
