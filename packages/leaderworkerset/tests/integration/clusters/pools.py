"""Creates a small node pool for the pods of one test. The pool has the same name as the test's namespace."""

from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import NODES

from .objects import pod_template
from .space import LiveScenario
from .state import State

POOL: Final = "tests.example.com/pool"


def half_a_node(space: LiveScenario, image: str = "app:1") -> JSONObject:
    """Return a pod template. Two pods of the template fill a node of the test's pool."""
    template = pod_template(image, nodeSelector={POOL: space.namespace})
    template["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "16"}}
    return template


async def add_to_pool(space: LiveScenario, numbers: range) -> None:
    """Add nodes to the test's pool."""
    for number in numbers:
        patch = {"metadata": {"labels": {POOL: space.namespace}}}
        await space.client.patch(NODES, space.key(f"node-{number}")._replace(namespace=""), patch, kind="merge")


def is_bound(pod: JSONObject) -> bool:
    """Return whether the pod is scheduled."""
    return bool(meta.spec(pod).get("nodeName"))


def bound(state: State, replicas: int) -> list[int]:
    """Return the number of scheduled pods of each group in `web`."""
    return [sum(map(is_bound, state.group("web", index).values())) for index in range(replicas)]
