"""Builds LeaderWorkerSets with real containers."""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from tests.node.images import BUSYBOX

from kuberuntime.objects.meta import JSONObject

PREFIX: Final = "leaderworkerset.sigs.k8s.io"
WAIT: Final = 'trap "exit 0" TERM; sleep 100000 & wait $!'
"""A script that runs until it receives SIGTERM, and then exits immediately."""

TALK: Final = f"echo rank $LWS_WORKER_INDEX of $LWS_GROUP_SIZE at $LWS_LEADER_ADDRESS; {WAIT}"
RESOURCES: Final = {"requests": {"cpu": "5m", "memory": "8Mi"}, "limits": {"cpu": "500m", "memory": "64Mi"}}


def container(
    script: str = TALK, image: str = BUSYBOX, mounts: Mapping[str, str] = MappingProxyType({}), **fields: Any
) -> JSONObject:
    """Return a container that runs a script. `mounts` contains volume names with their paths."""
    mounted = [{"name": name, "mountPath": path} for name, path in mounts.items()]
    main = {"name": "main", "image": image, "command": ["sh", "-c", script], "volumeMounts": mounted}
    return {**main, "resources": RESOURCES, **fields}


def pod(*containers: JSONObject, **fields: Any) -> JSONObject:
    """Return a pod template whose pods terminate quickly."""
    found = list(containers or [container()])
    return {"spec": {"terminationGracePeriodSeconds": 2, "containers": found, **fields}}


def leaderworkerset(
    name: str,
    worker: JSONObject,
    *,
    replicas: int = 1,
    size: int = 2,
    annotations: dict[str, str] | None = None,
    **template: Any,
) -> JSONObject:
    """Return a LeaderWorkerSet.

    `template` contains more fields of `leaderWorkerTemplate`, and annotations have no prefix.
    """
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {
            "name": name,
            "annotations": {f"{PREFIX}/{key}": value for key, value in (annotations or {}).items()},
        },
        "spec": {"replicas": replicas, "leaderWorkerTemplate": {"size": size, "workerTemplate": worker, **template}},
    }


def changed(obj: JSONObject, path: str, value: Any) -> JSONObject:
    """Return a copy of an object with a different value at a path of keys and indexes.

    >>> changed({"spec": {"replicas": 1}}, "spec.replicas", 2)
    {'spec': {'replicas': 2}}
    """
    copy: JSONObject = json.loads(json.dumps(obj))
    place: Any = copy
    *parents, last = [int(part) if part.isdecimal() else part for part in path.split(".")]
    for part in parents:
        place = place[part]
    place[last] = value
    return copy


IMAGE: Final = "spec.leaderWorkerTemplate.workerTemplate.spec.containers.0.image"
