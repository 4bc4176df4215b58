"""A manifest as typed values: the usual fields of LeaderWorkerSets, without writing dictionaries. Pure.

Add other fields to the dictionary that `build` returns; the API server fills in its defaults.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels, leaderworkerset
from leaderworkerset.api.leaderworkerset import RestartPolicy, StartupPolicy


class Named:
    """Refuses unknown fields with the name of the field that is meant."""

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Any]]
    MEANT: ClassVar[Mapping[str, str]] = {
        "replicas": "groups",
        "restartPolicy": "restart",
        "restart_policy": "restart",
        "startupPolicy": "startup",
        "startup_policy": "startup",
        "limits": "resources",
    }

    def __new__(cls, **given: object) -> Self:
        """Check the names before `__init__` does."""
        own = cls.__dataclass_fields__
        for name in given.keys() - own.keys():
            meant = cls.MEANT.get(name, "")
            advice = f"write {meant}=…" if meant in own else "add it to the dictionary that build() returns"
            raise TypeError(f"{cls.__name__} has no field {name}: {advice} (fields: {', '.join(own)})")
        return super().__new__(cls)


@dataclass(frozen=True, slots=True, kw_only=True)
class Container(Named):
    """The one container of a rank. `resources` are limits, as in `{"nvidia.com/gpu": 8}`."""

    image: str
    command: Sequence[str] = ()
    args: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    ports: Sequence[int] = ()
    resources: Mapping[str, str | int] = field(default_factory=dict)
    name: str = "main"

    def build(self) -> JSONObject:
        """Return the container in the form of the API; empty values are omitted."""
        found: JSONObject = {
            "name": self.name,
            "image": self.image,
            "command": [*self.command],
            "args": [*self.args],
            "env": [{"name": name, "value": value} for name, value in self.env.items()],
            "ports": [{"containerPort": port} for port in self.ports],
            "resources": {"limits": {name: str(value) for name, value in self.resources.items()}}
            if self.resources
            else {},
        }
        return {name: value for name, value in found.items() if value}


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest(Named):
    """A LeaderWorkerSet: a number of groups and of ranks in each; all run `worker`, or the first rank `leader`."""

    name: str
    worker: Container
    leader: Container | None = None
    groups: int = 1
    size: int = 1
    namespace: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    startup: StartupPolicy = StartupPolicy.LEADER_CREATED
    restart: RestartPolicy = RestartPolicy.RECREATE_GROUP_ON_POD_RESTART
    exclusive_topology: str = ""
    """The label of nodes of which each value is used by at most one group, as `cloud.google.com/gke-nodepool`."""

    def build(self) -> JSONObject:
        """Return the object in the form of the API.

        >>> web = Manifest(name="web", worker=Container(image="app:1"), groups=2, size=4)
        >>> web.build()["spec"]["leaderWorkerTemplate"]["size"]
        4
        """
        metadata: JSONObject = {"name": self.name, "namespace": self.namespace, "labels": dict(self.labels)}
        if self.exclusive_topology:
            metadata["annotations"] = {labels.EXCLUSIVE_TOPOLOGY: self.exclusive_topology}
        template: JSONObject = {
            "size": self.size,
            "restartPolicy": str(self.restart),
            "workerTemplate": {"spec": {"containers": [self.worker.build()]}},
        }
        if self.leader is not None:
            template["leaderTemplate"] = {"spec": {"containers": [self.leader.build()]}}
        return {
            "apiVersion": leaderworkerset.API_VERSION,
            "kind": leaderworkerset.KIND,
            "metadata": {name: value for name, value in metadata.items() if value},
            "spec": {"replicas": self.groups, "startupPolicy": str(self.startup), "leaderWorkerTemplate": template},
        }
