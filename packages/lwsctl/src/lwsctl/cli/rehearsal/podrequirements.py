"""Determines the node requirements of pods: labels, tolerated taints, resources, and distribution. Pure.

The input is original objects. Invalid parts do not require anything, because the API server reports them. The output
is one `Demand` for the leaders of a LeaderWorkerSet, one for its workers, and one for each other kind of pods.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kuberuntime.objects import decimals, intstr, quantity
from kuberuntime.objects.meta import JSON, JSONObject
from kuberuntime.objects.quantity import Quantity, QuantityError
from leaderworkerset.api import disaggregatedset
from leaderworkerset.api import labels as names
from leaderworkerset.api.disaggregatedset import SLICE
from leaderworkerset.api.policytypes import WITHOUT_LEADER
from leaderworkerset.api.resources import DISAGGREGATED_SETS
from leaderworkerset.decisions.rolesteps import RolePlace, build_role

HOSTNAME: Final = "kubernetes.io/hostname"
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
OWN_TAINTS: Final = "node.kubernetes.io/"
"""The prefix of taints that report node problems. Many pods tolerate them, but healthy nodes do not have them."""

NATIVE: Final = ("kubernetes.io/", "requests.kubernetes.io/")
HUGE_PAGES: Final = "hugepages-"


class Domain(Struct, frozen=True):
    """Groups of `owner` in separate domains of the topology `key`, as `number` domains with `pods` pods each.

    Pods with the label `repels` cannot be in these domains. If `repels` is empty, any other pods can be.
    """

    key: str
    owner: str
    number: int
    pods: int
    repels: str = names.GROUP_KEY


class Demand(Struct, frozen=True, kw_only=True):
    """The requirements of several identical pods."""

    source: str
    pods: int
    labels: tuple[tuple[str, str], ...] = ()
    taints: tuple[str, ...] = ()
    resources: Mapping[str, Quantity]
    is_spread: bool = False
    domains: tuple[Domain, ...] = ()
    pod_labels: tuple[str, ...] = ()
    """The pod labels that exclusive domains use to repel other pods."""


def pod_demands(obj: JSONObject) -> list[Demand]:
    """Return the demands of the pods that one object defines."""
    kind, metadata = str(obj.get("kind")), _map(obj.get("metadata"))
    source = f"{kind.lower()}/{metadata.get('name', '')}"
    spec = _map(obj.get("spec"))
    if kind == "Pod":
        return [_demand(source, spec, 1)]
    if kind == "StatefulSet":
        return [_demand(source, _pod(spec.get("template")), _number(spec.get("replicas"), 1))]
    slices, topologies = max(_number(spec.get("slices"), 1), 1), _slice_topologies(obj)
    demands = [
        demand for role, lws in _sets(obj) for demand in _set_demands(f"{source}{role}", lws, slices, topologies)
    ]
    pod_labels = (names.GROUP_KEY, *((SLICE,) if kind == DISAGGREGATED_SETS.kind else ()))
    return [replace(demand, pod_labels=pod_labels) for demand in demands]


def _slice_topologies(obj: JSONObject) -> dict[str, str]:
    """Return topologies in which a DisaggregatedSet slice requires a domain, and the label that repels pods.

    They are read from the pod affinity that the controller adds to pods. Invalid objects do not require any.
    """
    if obj.get("kind") != DISAGGREGATED_SETS.kind:
        return {}
    metadata = {"name": "set", "namespace": "default", "uid": ""} | _map(obj.get("metadata"))
    manifest: JSONObject = {**DISAGGREGATED_SETS.type_meta, **obj, "metadata": metadata}
    try:
        disaggregated_set = disaggregatedset.decode(manifest)
    except ValueError:  # the API server reports this error
        return {}
    place = RolePlace(disaggregated_set.name, slice=0, revision="", role="")
    built = build_role(manifest, {}, place, replicas=1, placement=disaggregated_set.placement)
    affinity = _map(_pod(built["spec"]["leaderWorkerTemplate"]["workerTemplate"]).get("affinity"))
    keys = _keys(_list(_map(affinity.get("podAffinity")).get(REQUIRED))) - {HOSTNAME}
    placement = disaggregated_set.placement.type
    return dict.fromkeys(sorted(keys), SLICE if placement and placement.excludes_sets else "")


def _sets(node: JSON) -> Iterator[tuple[str, JSONObject]]:
    """Yield the LeaderWorkerSets of an object, which are the object or the named templates that create them."""
    if isinstance(node, dict):
        if "leaderWorkerTemplate" in _map(node.get("spec")):
            yield f" {node['name']}" if "name" in node else "", node
        else:
            for child in node.values():
                yield from _sets(child)
    elif isinstance(node, list):
        for child in node:
            yield from _sets(child)


def _set_demands(source: str, lws: JSONObject, slices: int, topologies: Mapping[str, str]) -> Iterator[Demand]:
    """Yield the demands of each slice of a LeaderWorkerSet. Each slice uses one domain of each topology."""
    spec, annotations = _map(lws.get("spec")), _map(_map(lws.get("metadata")).get("annotations"))
    group = _map(spec.get("leaderWorkerTemplate"))
    replicas, size = slices * _replicas(spec), max(_number(group.get("size"), 1), 1)
    policy = _map(group.get("subGroupPolicy"))
    subgroup = _number(policy.get("subGroupSize"), size) or size
    worker = _pod(group.get("workerTemplate"))
    is_leader_alone = policy.get("subGroupPolicyType") in WITHOUT_LEADER
    leader = _pod(group.get("leaderTemplate")) if group.get("leaderTemplate") else worker
    for role, pod, pods in (("leader", leader, 1), ("workers", worker, size - 1)):
        if pods and replicas:
            disaggregated_set = source.partition(" ")[0]
            of_slice = replicas // slices * pods
            domains = [Domain(key, disaggregated_set, slices, of_slice, repels) for key, repels in topologies.items()]
            if isinstance(key := annotations.get(names.EXCLUSIVE_TOPOLOGY), str):
                domains.append(Domain(key, source, replicas, pods))
            key, members = annotations.get(names.SUBGROUP_EXCLUSIVE_TOPOLOGY), size - is_leader_alone
            if isinstance(key, str) and not (is_leader_alone and role == "leader"):
                domains.append(Domain(key, source, replicas * -(-members // subgroup), min(pods, subgroup)))
            yield _demand(f"{source} {role}", pod, replicas * pods, tuple(domains))


def _replicas(spec: JSONObject) -> int:
    """Return the number of groups of a LeaderWorkerSet during a rollout, including the surge."""
    replicas = _number(spec.get("replicas"), 1)
    rolling = _map(_map(spec.get("rolloutStrategy")).get("rollingUpdateConfiguration"))
    surge = rolling.get("maxSurge")
    if not isinstance(surge, int | str) or not intstr.is_scalable(surge):
        return replicas
    return replicas + min(max(intstr.scale(surge, replicas, up=True), 0), replicas)


def _demand(source: str, pod: JSONObject, pods: int, domains: tuple[Domain, ...] = ()) -> Demand:
    labels, spread = _topology_labels(pod)
    resources = _extended_resources(pod)
    labels |= _affinity_labels(pod) | {key: str(value) for key, value in _map(pod.get("nodeSelector")).items()}
    topologies = {domain.key for domain in domains}
    return Demand(
        source=source,
        pods=pods,
        labels=tuple(sorted((key, value) for key, value in labels.items() if key not in topologies)),
        taints=tuple(sorted(set(_tolerated_taints(pod)))),
        resources=resources,
        is_spread=spread or bool(resources),
        domains=domains,
    )


def _affinity_labels(pod: JSONObject) -> dict[str, str]:
    """Return labels that match the first term of the required node affinity."""
    node = _map(_map(pod.get("affinity")).get("nodeAffinity"))
    terms = _list(_map(node.get(REQUIRED)).get("nodeSelectorTerms"))
    required: dict[str, str] = {}
    for expression in _list(_map(next(iter(terms), None)).get("matchExpressions")):
        requirement = _map(expression)
        key, values = str(requirement.get("key")), [str(value) for value in _list(requirement.get("values"))]
        match requirement.get("operator"):
            case "In" if values:
                required[key] = values[0]
            case "Exists":
                required.setdefault(key, "true")
            case "Gt" | "Lt" as operator if values and (bound := decimals.integer(values[0])) is not None:
                required[key] = str(bound + (1 if operator == "Gt" else -1))
    return required


def _topology_labels(pod: JSONObject) -> tuple[dict[str, str], bool]:
    """Return the topology labels that pods share or spread across.

    Also return whether each pod requires a separate node.
    """
    affinity = _map(pod.get("affinity"))
    together = _keys(_list(_map(affinity.get("podAffinity")).get(REQUIRED)))
    apart = _keys(_list(_map(affinity.get("podAntiAffinity")).get(REQUIRED)))
    apart |= _keys(_list(pod.get("topologySpreadConstraints")))
    labels = dict.fromkeys(together, "domain-0") | dict.fromkeys(apart, "domain-{i}")
    return {key: value for key, value in labels.items() if key != HOSTNAME}, bool(apart)


def _keys(terms: Iterable[JSON]) -> set[str]:
    return {key for term in terms if isinstance(key := _map(term).get("topologyKey"), str)}


def _tolerated_taints(pod: JSONObject) -> Iterator[str]:
    """Yield the taints that pods tolerate without a time limit, in the format of --node-taint."""
    for entry in map(_map, _list(pod.get("tolerations"))):
        key = str(entry.get("key") or "")
        if not key or key.startswith(OWN_TAINTS) or entry.get("tolerationSeconds") is not None:
            continue
        value = str(entry.get("value") or "") if entry.get("operator") != "Exists" else ""
        yield f"{key}{'=' if value else ''}{value}:{entry.get('effect') or 'NoSchedule'}"


def _extended_resources(pod: JSONObject) -> dict[str, Quantity]:
    """Return the amount that one pod requests of each resource that only some nodes provide."""
    amounts: dict[str, Quantity] = {}
    for container in map(_map, _list(pod.get("containers"))):
        for name, amount in _requests(container):
            amounts[name] = amounts.get(name, quantity.ZERO) + amount
    for container in map(_map, _list(pod.get("initContainers"))):
        for name, amount in _requests(container):
            amounts[name] = max(amounts.get(name, quantity.ZERO), amount)
    return amounts


def _requests(container: JSONObject) -> Iterator[tuple[str, Quantity]]:
    resources = _map(container.get("resources"))
    for name, value in (_map(resources.get("limits")) | _map(resources.get("requests"))).items():
        if ("/" in name and not name.startswith(NATIVE)) or name.startswith(HUGE_PAGES):
            try:
                yield name, quantity.parse(value)
            except QuantityError:  # the API server reports this error
                continue


def _pod(template: JSON) -> JSONObject:
    return _map(_map(template).get("spec"))


def _map(value: JSON) -> JSONObject:
    return value if isinstance(value, dict) else {}


def _list(value: JSON) -> list[JSON]:
    return value if isinstance(value, list) else []


def _number(value: JSON, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else default
