"""Provides LeaderWorkerSets whose containers can run on the simulated machine."""

from typing import Any, Final

from tests import builders
from tests.simulation.faults import Schedule

from kuberuntime.objects.meta import JSONObject

SLOW: Final = Schedule(latency=(0.001, 0.02))
"""A network with delays, so that the seed determines the order of messages."""


def template(image: str = "app:1") -> JSONObject:
    """Return a pod template with a container that runs until it is stopped."""
    return {"spec": {"containers": [{"name": "main", "image": image, "command": ["sleep", "infinity"]}]}}


def groups(replicas: int = 3, size: int = 4, **spec: Any) -> JSONObject:
    """Return the LeaderWorkerSet `web`."""
    return builders.leaderworkerset_object(
        replicas=replicas, size=size, template={"workerTemplate": template()}, spec=spec
    )
