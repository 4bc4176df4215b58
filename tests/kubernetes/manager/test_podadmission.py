"""Tests that a manager maintains the pod admission policy, and that groups work without the manager."""

import asyncio
import sys
from collections.abc import Callable
from typing import Final

from tests.kubernetes.manager.admission import admitted_leader, start_with, until_evaluated
from tests.kubernetes.manager.groups import CheckedNamespace, space_with_groups
from tests.kubernetes.manager.replicas import LONG_LEASE, until
from tests.kubernetes.manager.world import InstalledCluster

from kuberuntime.errors import APIError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import MUTATING_ADMISSION_POLICIES, PODS, STATEFULSETS
from leaderworkerset.api import labels
from leaderworkerset.core.admission import podpolicy

POLICY = ObjectKey("", podpolicy.NAME)

FAILING: Final = "[JSONPatch{op: 'add', path: '/metadata/labels/team', value: object.metadata.labels['absent']}]"
INVALID: Final = "[JSONPatch{op: 'add', path: '/metadata/labels/team', value: 'not a label'}]"

MEMBER = {labels.GROUP_INDEX, labels.GROUP_KEY, labels.WORKER_INDEX}


async def stored(world: InstalledCluster) -> list[JSONObject | None]:
    return [await world.client.find(kind, POLICY) for kind in podpolicy.KINDS]


async def until_policy(world: InstalledCluster, holds: Callable[[list[JSONObject | None]], bool]) -> None:
    async def check() -> bool:
        return holds(await stored(world))

    await until(check, *world.replicas)


async def until_members(space: CheckedNamespace, count: int) -> list[JSONObject]:
    """Wait until `count` pods are running. Return all pods."""

    async def check() -> list[JSONObject]:
        pods = (await space.client.list(PODS, namespace=space.namespace)).items
        alive = [pod for pod in pods if not meta.is_deleting(pod) and meta.is_condition_true(pod, "Ready")]
        return alive if len(alive) == count else []

    return await until(check)


def assert_member(pod: JSONObject) -> None:
    assert meta.labels(pod).keys() >= MEMBER, meta.name(pod)
    (container,) = pod["spec"]["containers"]
    assert container["env"][0]["name"] == labels.ENV_LEADER_ADDRESS


async def test_groups_are_replaced_while_no_manager_runs(world: InstalledCluster) -> None:
    replica = await start_with(world, "a", podAdmission="Policy")
    space = await CheckedNamespace(world.client, "away").open()
    await until_evaluated(world.client, space.namespace)
    await space.create_groups("web", replicas=2, size=2)
    await space.await_ready("web", 2)
    before = {meta.name(pod): pod for pod in await until_members(space, 4)}
    assert all("-" in meta.labels(pod)[labels.GROUP_KEY] for pod in before.values())
    await replica.stop()
    world.balancer.backends.clear()
    await world.client.delete(PODS, ObjectKey("away", "web-0-1"))
    await world.client.patch(
        STATEFULSETS, ObjectKey("away", "web"), {"spec": {"replicas": 3}}, kind="merge", subresource="scale"
    )

    async def is_replaced() -> bool:
        pods = {meta.name(pod): meta.uid(pod) for pod in await until_members(space, 5)}
        return pods.get("web-0-1") not in (None, meta.uid(before["web-0-1"])) and "web-2" in pods

    await until(is_replaced)
    for pod in await until_members(space, 5):
        assert_member(pod)


async def test_policy_is_restored_and_removed(world: InstalledCluster) -> None:
    replica = await start_with(world, "a", podAdmission="Auto")
    await until_policy(world, all)
    built = {kind: obj["spec"] for kind, obj in podpolicy.build()}
    await world.client.patch(MUTATING_ADMISSION_POLICIES, POLICY, {"spec": {"failurePolicy": "Fail"}}, kind="merge")
    await until_policy(
        world, lambda objects: objects[0] is not None and objects[0]["spec"]["failurePolicy"] == "Ignore"
    )
    for kind in podpolicy.KINDS:
        await world.client.delete(kind, POLICY)
    await until_policy(world, all)
    binding = (await stored(world))[1]
    assert binding is not None
    assert binding["spec"] == built[podpolicy.KINDS[1]]
    await replica.stop()
    await start_with(world, "b")
    await until_policy(world, lambda objects: not any(objects))


async def edit(world: InstalledCluster, expression: str, failure_policy: str) -> None:
    """Replace the mutation of the policy."""
    mutation = {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}
    patch = {"spec": {"mutations": [mutation], "failurePolicy": failure_policy}}
    await world.client.patch(MUTATING_ADMISSION_POLICIES, POLICY, patch, kind="merge")


async def until_rejected(space: CheckedNamespace, message: str) -> None:
    """Wait until the API server rejects pods with a message."""

    async def check() -> bool:
        try:
            await admitted_leader(space.client, space.namespace)
        except APIError as error:
            return message in str(error)
        return False

    await until(check)


async def explain(world: InstalledCluster, namespace: str) -> str:
    """Return the output of `lws explain`."""
    words = (f"--kubeconfig={world.plane.kubeconfig}", "explain", "web", "-n", namespace)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "lwsctl.cli", *words, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    return output.decode()


async def test_groups_recover_from_edits_of_the_policy(world: InstalledCluster) -> None:
    """The leader is paused during the edits. A second manager serves the webhook, which admits skipped pods."""
    leader = await start_with(world, "a", podAdmission="Policy", leaderElection=LONG_LEASE)
    await world.await_master(leader)
    await world.start("b", podAdmission="Policy", leaderElection=LONG_LEASE)
    space = await space_with_groups(world.client, "edited", replicas=2, size=2)
    await until_evaluated(world.client, space.namespace)
    world.balancer.backends.remove(leader.webhooks)
    leader.freeze()
    await edit(world, FAILING, "Ignore")
    await until_evaluated(world.client, space.namespace, admits=False)
    await space.delete("web-0-1", PODS)
    for pod in await until_members(space, 4):
        assert_member(pod)
    await edit(world, FAILING, "Fail")
    await until_rejected(space, podpolicy.NAME)
    await space.delete("web-1-1", PODS)

    async def is_explained() -> bool:
        return "LWS-E122" in await explain(world, space.namespace)

    await until(is_explained)
    await edit(world, INVALID, "Ignore")
    await until_rejected(space, "not a label")
    leader.thaw()
    for pod in await until_members(space, 4):
        assert_member(pod)
    await until_evaluated(world.client, space.namespace)


async def test_no_pod_restarts_when_the_mode_changes(world: InstalledCluster) -> None:
    replica = await start_with(world, "a")
    space = await space_with_groups(world.client, "modes", replicas=2, size=2)
    uids = {meta.uid(pod) for pod in await until_members(space, 4)}
    for groups, mode in ((3, "Auto"), (4, "Webhook")):
        await replica.stop()
        replica = await start_with(world, mode.lower(), podAdmission=mode)
        await until_policy(world, all if mode == "Auto" else lambda objects: not any(objects))
        await world.rest()
        assert {meta.uid(pod) for pod in await until_members(space, len(uids))} == uids
        await space.scale(groups)
        await space.await_ready("web", groups)
        before, uids = uids, {meta.uid(pod) for pod in await until_members(space, 2 * groups)}
        assert before < uids
