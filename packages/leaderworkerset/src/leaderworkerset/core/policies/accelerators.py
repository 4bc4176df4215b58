"""Sets TPU variables with the hosts of a slice, and the index of this process (R-TPU-1 to R-TPU-6).

The slice is either the whole group (plain) or a subgroup. A pod is not changed if its first TPU container already has
the variable for its host names or its ID.
"""

from typing import Final

from msgspec import Struct

from kuberuntime.objects import meta, ordinals, quantity
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import groupname, labels
from leaderworkerset.core.policies.celmutations import PodRule, string_literal
from leaderworkerset.core.policies.numbers import read_annotation, read_label
from leaderworkerset.core.policies.podedits import CONTAINERS, environment, with_each_container
from leaderworkerset.core.policies.policy import DeniedError, Member, Policy

RESOURCE = "google.com/tpu"
WORKER_HOSTNAMES = "TPU_WORKER_HOSTNAMES"
WORKER_ID = "TPU_WORKER_ID"
NAME = "TPU_NAME"
PROCESS_ADDRESSES = "TPU_PROCESS_ADDRESSES"
PROCESS_PORT = "TPU_PROCESS_PORT"
FIRST_PORT = 8476

LARGEST = 3 * 2**20
"""The maximum total size of host variables in a pod in bytes. API servers reject larger objects."""


class Slice(Struct, frozen=True):
    """The processes in a slice by host name and address, and the ID of the first process in the pod."""

    name: str
    hostnames: str
    addresses: str
    ports: tuple[str, ...]
    first_id: int

    def variables(self, process: int) -> dict[str, str]:
        """Return the environment variables of the nth process in the pod, in order (R-TPU-4)."""
        return {
            WORKER_HOSTNAMES: self.hostnames,
            WORKER_ID: str(self.first_id + process),
            NAME: self.name,
            PROCESS_ADDRESSES: self.addresses,
            PROCESS_PORT: self.ports[process],
        }


class _Hosts(Struct, frozen=True):
    """The pods in a slice, which are the leader (if it requests TPUs) and the workers from `first` to `last`."""

    leader: str
    includes_leader: bool
    first: int
    last: int

    @property
    def count(self) -> int:
        """Return the number of hosts."""
        return self.includes_leader + max(self.last - self.first + 1, 0)

    def names(self) -> list[str]:
        """Return the host names."""
        leader = [self.leader] if self.includes_leader else []
        return leader + [f"{self.leader}-{worker}" for worker in range(self.first, self.last + 1)]


def requests_tpus(pod_spec: JSONObject) -> bool:
    """Return whether a container or init container requests TPUs."""
    return bool(_tpu_containers(pod_spec))


def inject(pod: JSONObject, *, size: int, is_leader: bool) -> JSONObject:
    """Return the pod with the environment variables in its TPU containers. Other pods are unchanged."""
    containers = _tpu_containers(meta.spec(pod))
    if not containers or _environment_values(containers[0]).keys() & {WORKER_HOSTNAMES, WORKER_ID}:
        return pod
    if labels.SUBGROUP_SIZE in meta.annotations(pod):
        containers = containers[:1]
        tpu_slice = _subgroup_slice(pod, _process_ports(containers), is_leader=is_leader)
    else:
        tpu_slice = _group_slice(pod, _process_ports(containers), size=size, is_leader=is_leader)
    added = {container.get("name"): tpu_slice.variables(i) for i, container in enumerate(containers)}
    return with_each_container(pod, lambda container: _append(container, added.get(container.get("name"), {})))


def _group_slice(pod: JSONObject, ports: tuple[str, ...], *, size: int, is_leader: bool) -> Slice:
    """Build the slice of the whole group. A leader without TPUs does not belong to it (R-TPU-3)."""
    (leader, ordinal), leader_computes = _identity(pod, is_leader=is_leader), _leader_requests_tpus(pod)
    index = ordinal if is_leader or leader_computes else ordinal - 1
    hosts = _Hosts(leader, leader_computes or is_leader, 1, size - 1)
    return _slice(pod, hosts, ports, index * len(ports))


def _subgroup_slice(pod: JSONObject, ports: tuple[str, ...], *, is_leader: bool) -> Slice:
    """Build the slice of the pod's subgroup (R-TPU-5)."""
    size = read_annotation(pod, labels.SUBGROUP_SIZE)
    subgroup = read_label(pod, labels.SUBGROUP_INDEX)
    worker = read_label(pod, labels.WORKER_INDEX)
    if size < 1:
        raise DeniedError(f"annotation {labels.SUBGROUP_SIZE} of pod {meta.name(pod)} must be at least 1")
    leader, leader_computes = _identity(pod, is_leader=is_leader).parent, _leader_requests_tpus(pod)
    process = worker % size
    if worker != 0 and not leader_computes:
        process, subgroup = (worker - 1) % size, (worker - 1) // size
    first, last = size * subgroup + 1, size * (subgroup + 1)
    with_leader = is_leader or (leader_computes and subgroup == 0)
    if with_leader:
        last -= 1
    elif leader_computes:
        first, last = first - 1, last - 1
    return _slice(pod, _Hosts(leader, with_leader, first, last), ports, process)


def _slice(pod: JSONObject, hosts: _Hosts, ports: tuple[str, ...], first_id: int) -> Slice:
    """Return the host names, with one entry for each process. Deny the pod if they exceed the maximum object size."""
    subdomain = meta.spec(pod).get("subdomain") or ""
    processes = hosts.count * len(ports)
    at_least = 2 * processes * len(ports) * len(f"{hosts.leader}.{subdomain},")
    if at_least > LARGEST:
        raise DeniedError(
            f"pod {meta.name(pod)}: {WORKER_HOSTNAMES} and {PROCESS_ADDRESSES} would exceed {LARGEST} bytes for "
            f"{processes} processes. Reduce the size, the subgroups, or the containers with {RESOURCE}"
        )
    names = [f"{host}.{subdomain}" for host in hosts.names()]
    return Slice(
        name=hosts.leader,
        hostnames=",".join(name for name in names for _ in ports),
        addresses=",".join(f"{name}:{port}" for name in names for port in ports),
        ports=ports,
        first_id=first_id,
    )


def _leader_requests_tpus(pod: JSONObject) -> bool:
    return meta.annotations(pod).get(labels.LEADER_REQUESTS_TPUS) == "true"


def _identity(pod: JSONObject, *, is_leader: bool) -> ordinals.Ordinal:
    """Return the leader's host name, and the pod's index in the group. The host name can differ from the pod name."""
    name = meta.name(pod)
    identity = ordinals.Ordinal(groupname.hostname(pod), 0) if is_leader else ordinals.split(name)
    if identity is None:
        raise DeniedError(f"parsing parent name from pod {name}")
    return identity


def _process_ports(containers: list[JSONObject]) -> tuple[str, ...]:
    """Return the process port of each container, which is configured or the next default port."""
    return tuple(
        _environment_values(container).get(PROCESS_PORT) or str(FIRST_PORT + i)
        for i, container in enumerate(containers)
    )


def _tpu_containers(pod_spec: JSONObject) -> list[JSONObject]:
    """Return the containers that request TPUs. Init containers are last (R-TPU-1)."""
    containers = [*(pod_spec.get("containers") or []), *(pod_spec.get("initContainers") or [])]
    return [container for container in containers if _requests_tpus(container)]


def _requests_tpus(container: JSONObject) -> bool:
    resources = container.get("resources") or {}
    amounts = [(resources.get(kind) or {}).get(RESOURCE) or 0 for kind in ("limits", "requests")]
    return any(map(quantity.parse, amounts))


def _environment_values(container: JSONObject) -> dict[str, str]:
    return {entry.get("name", ""): entry.get("value") or "" for entry in environment(container)}


def _append(container: JSONObject, variables: dict[str, str]) -> JSONObject:
    """Append the environment variables. An existing process port is preserved."""
    own = _environment_values(container)
    added = [
        {"name": name, "value": value} for name, value in variables.items() if name != PROCESS_PORT or name not in own
    ]
    return container | {"env": [*environment(container), *added]} if added else container


def admit(pod: JSONObject, member: Member) -> JSONObject:
    """Return the pod with the environment variables of its slice."""
    return inject(pod, size=member.size, is_leader=member.is_leader)


_NAMED: Final = " || ".join(
    f"{string_literal(RESOURCE)} in container.?resources.?{amounts}.orValue({{}})" for amounts in ("limits", "requests")
)

RULE: Final = PodRule(
    conditions={
        f"requests-no-tpus-in-{part.lower()}": f"!object.spec.?{part}.orValue([]).exists(container, {_NAMED})"
        for part in CONTAINERS
    }
)
"""Pods with TPUs are handled by the webhook, because their variables list all hosts of a slice."""

POLICY: Final = Policy(admit=admit, rule=RULE)
