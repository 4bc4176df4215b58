"""Builds manifests from typed values for the common fields of LeaderWorkerSets. Pure.

Add other fields to the dictionary that `build` returns. The API server sets defaults.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, ClassVar, Final, Self

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels, leaderworkerset
from leaderworkerset.api.policytypes import (
    GroupIdentity,
    GroupReplacementPolicy,
    PodTerminationPolicy,
    RestartPolicy,
    StartupPolicy,
    SubdomainPolicy,
    SubGroupPolicyType,
)
from leaderworkerset.api.usersettings import SETTINGS


class CheckedFields:
    """A metaclass that rejects unknown fields and suggests a similar field name."""

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Any]]
    MEANT: ClassVar[Mapping[str, str]] = {"limits": "resources"}

    def __new__(cls, **values: object) -> Self:
        """Validate the field names before `__init__` is called."""
        own = cls.__dataclass_fields__
        for name in values.keys() - own.keys():
            wire = "".join(part.capitalize() if index else part for index, part in enumerate(name.split("_")))
            paths = {path.rpartition(".")[2]: field for field, path in FIELDS.items()}
            meant = cls.MEANT.get(name) or paths.get(wire, "") or next(iter(get_close_matches(name, own, 1)), "")
            advice = f"use {meant}=…" if meant in own else "add it to the dictionary that build() returns"
            raise TypeError(f"{cls.__name__} has no field {name}; {advice} (fields: {', '.join(own)})")
        return super().__new__(cls)


@dataclass(frozen=True, slots=True, kw_only=True)
class Container(CheckedFields):
    """The only container of a rank. `resources` are limits, such as `{"nvidia.com/gpu": 8}`."""

    image: str
    command: Sequence[str] = ()
    args: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    ports: Sequence[int] = ()
    resources: Mapping[str, str | int] = field(default_factory=dict)
    name: str = "main"

    def build(self) -> JSONObject:
        """Return the container as an API object. Empty values are omitted."""
        fields: JSONObject = {
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
        return {name: value for name, value in fields.items() if value}


FIELDS: Final[Mapping[str, str]] = {
    "groups": "replicas",
    "startup": "startupPolicy",
    "identity": "groupIdentity",
    "replacement": "groupReplacementPolicy",
    "termination": "podTerminationPolicy",
    "size": "leaderWorkerTemplate.size",
    "restart": "leaderWorkerTemplate.restartPolicy",
    "max_group_restarts": "leaderWorkerTemplate.maxGroupRestarts",
    "subgroup_type": "leaderWorkerTemplate.subGroupPolicy.subGroupPolicyType",
    "subgroup_size": "leaderWorkerTemplate.subGroupPolicy.subGroupSize",
    "partition": "rolloutStrategy.rollingUpdateConfiguration.partition",
    "max_unavailable": "rolloutStrategy.rollingUpdateConfiguration.maxUnavailable",
    "max_surge": "rolloutStrategy.rollingUpdateConfiguration.maxSurge",
    "subdomain": "networkConfig.subdomainPolicy",
}
"""The scalar fields of a `Manifest` and their paths in the spec.

None means that the spec does not contain the field.
"""

NAMED_SETTINGS: Final = {setting.name: setting.annotation for setting in SETTINGS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest(CheckedFields):
    """A LeaderWorkerSet with `groups` groups of the same size.

    All ranks run `worker`, except leaders if `leader` is set.
    """

    name: str
    worker: Container
    leader: Container | None = None
    groups: int = 1
    size: int = 1
    namespace: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    startup: StartupPolicy = StartupPolicy.LEADER_CREATED
    restart: RestartPolicy = RestartPolicy.RECREATE_GROUP_ON_POD_RESTART
    max_group_restarts: int | None = None
    identity: GroupIdentity | None = None
    replacement: GroupReplacementPolicy | None = None
    termination: PodTerminationPolicy | None = None
    subdomain: SubdomainPolicy | None = None
    subgroup_size: int | None = None
    subgroup_type: SubGroupPolicyType | None = None
    partition: int | None = None
    max_unavailable: int | str | None = None
    max_surge: int | str | None = None
    exclusive_topology: str = ""
    """The node label for exclusive topology, such as `cloud.google.com/gke-nodepool`. Each value hosts one group."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Annotations that configure a LeaderWorkerSet, without their prefix, such as `{"run-to-completion": "true"}`."""

    def build(self) -> JSONObject:
        """Return the API object. Raise ValueError for an unknown setting.

        >>> web = Manifest(name="web", worker=Container(image="app:1"), groups=2, size=4, max_surge="50%")
        >>> web.build()["spec"]["rolloutStrategy"]
        {'rollingUpdateConfiguration': {'maxSurge': '50%'}}
        """
        metadata: JSONObject = {
            "name": self.name,
            "namespace": self.namespace,
            "labels": dict(self.labels),
            "annotations": self._annotations(),
        }
        template: JSONObject = {"workerTemplate": {"spec": {"containers": [self.worker.build()]}}}
        if self.leader is not None:
            template["leaderTemplate"] = {"spec": {"containers": [self.leader.build()]}}
        spec: JSONObject = {"leaderWorkerTemplate": template}
        for name, path in FIELDS.items():
            value = getattr(self, name)
            if value is not None:
                *parents, last = path.split(".")
                part = spec
                for parent in parents:
                    part = part.setdefault(parent, {})
                part[last] = str(value) if isinstance(value, str) else value
        return {
            "apiVersion": leaderworkerset.API_VERSION,
            "kind": leaderworkerset.KIND,
            "metadata": {name: value for name, value in metadata.items() if value},
            "spec": spec,
        }

    def _annotations(self) -> dict[str, str]:
        for name in self.settings:
            if name not in NAMED_SETTINGS:
                raise ValueError(f"Manifest.settings: unknown setting {name!r}; use one of {', '.join(NAMED_SETTINGS)}")
        annotations = {NAMED_SETTINGS[name]: value for name, value in self.settings.items()}
        return annotations | ({labels.EXCLUSIVE_TOPOLOGY: self.exclusive_topology} if self.exclusive_topology else {})
