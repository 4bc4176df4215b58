"""The verbs that a scenario may use on every back end, and a scenario that uses all of them."""

from typing import Final

from tests.integration.clusters import objects
from tests.scenario import Scenario

from kuberuntime.objects import meta
from kuberuntime.objects.resources import PODS

VERBS: Final = (
    "create",
    "apply",
    "patch",
    "edit",
    "scale",
    "delete",
    "fail",
    "evict",
    "force",
    "cordon",
    "drain",
    "until_objects",
    "at_rest",
)


async def use_verbs(scenario: Scenario, *, has_nodes: bool = True) -> None:
    """Create two groups, make them fail, scale them, move them from a node, and delete them."""
    await scenario.apply(objects.lws(replicas=2, size=2))
    before = await rested(scenario, pods=4)
    await scenario.fail("web-0-1")
    after = await rested(scenario, pods=4)
    assert {name for name in before if before[name] != after[name]} == {"web-0", "web-0-1"}
    await scenario.scale(3)
    before = await rested(scenario, pods=6)
    assert await scenario.evict("web-2-1")
    after = await rested(scenario, pods=6)
    assert {name for name in before if before[name] != after[name]} == {"web-2", "web-2-1"}
    assert await scenario.evict("a-pod-that-does-not-exist")
    if has_nodes:
        node = meta.spec(await scenario.get(PODS, "web-1-1"))["nodeName"]
        await scenario.drain(node)
        await rested(scenario, pods=6)
        assert await scenario.pods_on(node) == []
        await scenario.cordon(node, unschedulable=False)
    await scenario.delete()
    await scenario.until_objects(PODS, lambda pods: not pods)


async def rested(scenario: Scenario, *, pods: int) -> dict[str, str]:
    """Wait until there are `pods` ready pods and the cluster is at rest. Return their UIDs by name."""
    await scenario.at_rest()
    await scenario.until_objects(
        PODS, lambda found: len(found) == pods and all(meta.is_condition_true(pod, "Ready") for pod in found)
    )
    return await scenario.uids()
