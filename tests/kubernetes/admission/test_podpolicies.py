"""Tests that the policy and the webhook apply the same changes to pods of random LeaderWorkerSets.

Pods are created by dry run on an API server without webhooks and controllers: once as a StatefulSet creates them, and once
as the webhook answers.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from testkit.clusters.kubernetes import KubernetesCluster
from testkit.examples import examples
from tests.controlplane import build
from tests.controlplane.process import api_server
from tests.kubernetes.admission import members

from kuberuntime.client.client import Client
from kuberuntime.objects import meta, resources
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS, SERVICE_ACCOUNTS
from leaderworkerset.api import labels
from leaderworkerset.capabilities import deciding
from leaderworkerset.capabilities.enabled import EXTENSIONS
from leaderworkerset.core.admission import podpolicy
from leaderworkerset.core.gang.gangs import Gangs
from leaderworkerset.core.gang.volcano import VOLCANO
from leaderworkerset.core.policies import accelerators, identity
from leaderworkerset.core.policies.gang import NO_GANG, Gang
from leaderworkerset.core.policies.policy import DeniedError

MANAGER = "tests"
SECONDS = 60.0
KEYS = (labels.GROUP_KEY, labels.SUBGROUP_KEY)
VOLATILE = ("creationTimestamp", "uid", "managedFields", "resourceVersion", "generation")


GANGS = {"kubernetes": NO_GANG, "other_version": Gangs(default=VOLCANO.name)}
"""The gang schedulers of the policy for each Kubernetes version."""


class Server:
    """An API server that evaluates the policy, with the gang schedulers of the webhook."""

    def __init__(self, runner: asyncio.Runner, client: Client, gang: Gang) -> None:
        self.gang = gang
        self._runner = runner
        self._client = client

    def create(self, pod: JSONObject) -> JSONObject:
        """Return the pod as it would be stored."""
        return self._runner.run(self._client.create(PODS, pod, dry_run=True))


@contextmanager
def serving(version: str, directory: Path, gang: Gang) -> Iterator[Server]:
    """Run an API server with this version and the policy, and wait until the policy is evaluated."""
    with api_server(build.assets(print, version), directory) as plane, asyncio.Runner() as runner:
        client = Client(KubernetesCluster(plane.kubeconfig).transport(MANAGER))
        runner.run(set_up(client, gang))
        yield Server(runner, client, gang)
        runner.run(client.close())


async def set_up(client: Client, gang: Gang) -> None:
    """Create a namespace and the policy. Wait until a pod becomes a group member."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": members.NAMESPACE}}
    await client.create(resources.NAMESPACES, namespace)
    metadata = {"name": "default", "namespace": members.NAMESPACE}
    await client.create(SERVICE_ACCOUNTS, {**SERVICE_ACCOUNTS.type_meta, "metadata": metadata})
    for resource, obj in podpolicy.build(gang, EXTENSIONS):
        stored = await client.apply(resource, obj, manager=MANAGER)
        assert stored["spec"] == obj["spec"], "the API server adds defaults: state them"
    plain = {"containers": [{"name": "main", "image": "app:1"}]}
    spec = {"leaderWorkerTemplate": {"size": 1, "workerTemplate": {"spec": plain}}}
    pod = members.leader_of({"metadata": {"name": "probe", "namespace": members.NAMESPACE}, "spec": spec}, 0)
    async with asyncio.timeout(SECONDS):
        while not is_member(await client.create(PODS, pod, dry_run=True)):  # noqa: ASYNC110 - nothing reports it
            await asyncio.sleep(0.2)


@pytest.fixture(scope="module", params=["kubernetes", "other_version"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Return an API server for each version that evaluates policies."""
    directory = tmp_path_factory.mktemp("server")
    with serving(build.CLUSTERS[request.param], directory, GANGS[request.param]) as running:
        yield running


def is_member(pod: JSONObject) -> bool:
    """Return whether admission made a pod a member of its group."""
    return {labels.GROUP_INDEX, labels.GROUP_KEY, labels.WORKER_INDEX} <= meta.labels(pod).keys()


def is_left(pod: JSONObject) -> bool:
    """Return whether the policy skips the pod. The webhook handles pods with TPUs or hashed keys."""
    has_subgroups = labels.SUBGROUP_SIZE in meta.annotations(pod)
    is_hashed = has_subgroups and not identity.is_joined(meta.labels(pod).get(labels.GROUP_KEY, identity.JOINT))
    return is_hashed or accelerators.requests_tpus(meta.spec(pod))


def comparable(pod: JSONObject) -> JSONObject:
    """Return a pod without the fields that differ between two creations, and with placeholders for its keys."""
    own = meta.labels(pod)
    values = {own[key]: key for key in KEYS if key in own}

    def renamed(value: object) -> object:
        if isinstance(value, dict):
            return {key: renamed(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [renamed(inner) for inner in value]
        return values.get(value, value) if isinstance(value, str) else value

    metadata = {field: value for field, value in meta.metadata(pod).items() if field not in VOLATILE}
    # The service account volume has a random name, and containers mount it by name.
    spec = {field: value for field, value in meta.spec(pod).items() if field != "volumes"}
    result = renamed({"metadata": metadata, "spec": spec})
    assert isinstance(result, dict)
    for container in (*result["spec"].get("containers", ()), *result["spec"].get("initContainers", ())):
        container.pop("volumeMounts", None)
    return result


def assert_equal(server: Server, pod: JSONObject) -> JSONObject | None:
    """Compare both types of admission. Return the stored pod, or None if the webhook denies the pod."""
    stored = server.create(pod)
    try:
        admitted = deciding.admit_pod(pod, server.gang, "r")
    except DeniedError:
        assert meta.labels(stored) == meta.labels(pod), "pods that are denied are left to the webhook"
        return None
    by_webhook = server.create(admitted)
    if is_left(pod):
        assert meta.labels(stored) == meta.labels(pod), "such pods are left to the webhook"
        return by_webhook
    assert is_member(stored)
    assert comparable(stored) == comparable(by_webhook)
    return stored


@settings(phases=[Phase.generate], max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(obj=members.sets(), data=st.data())
def test_policy_equals_webhook_for_random_sets(server: Server, obj: JSONObject, data: st.DataObject) -> None:
    leader = assert_equal(server, members.leader_of(obj, data.draw(st.integers(0, 12))))
    size = obj["spec"]["leaderWorkerTemplate"]["size"]
    if leader is None or size == 1:
        return
    for index in data.draw(st.lists(st.integers(1, size - 1), unique=True, max_size=2)):
        assert_equal(server, members.worker_of(obj, leader, index))
