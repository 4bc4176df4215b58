"""Determines the nodes and objects that a manifest requires, for `lws run --nodes auto --gpus auto`.

Without these options, a note suggests them if the nodes do not meet the requirements of the manifest.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kuberuntime.objects.meta import JSON, JSONObject
from leaderworkerset.decisions.nodefit import DEFAULT_SCHEDULER
from localkube.cluster import DEFAULT_CLASS_NAME, PROVISIONER, Nodes
from lwsctl.cli.errors import CommandError
from lwsctl.cli.local.clusteroptions import AUTO, ClusterOptions
from lwsctl.cli.local.localcluster import node_settings, pool_settings
from lwsctl.cli.reading.manifests import Document
from lwsctl.cli.rehearsal import devicecounts, nodepools
from lwsctl.cli.rehearsal.nodepools import Pool
from lwsctl.cli.rehearsal.podrequirements import Demand, pod_demands


class ApplicableDocuments(Struct, frozen=True):
    """Documents that can be applied to the local cluster, and the assumptions about them."""

    documents: tuple[Document, ...]
    assumptions: tuple[str, ...]


def with_required_objects(
    documents: Sequence[Document], *, provisioner: str, there: Collection[str]
) -> ApplicableDocuments:
    """Return the documents and the objects that they require. `there` contains the default storage classes."""
    objects = [document.object for document in documents]
    classes = dict.fromkeys(name for obj in objects for name in values(obj, "storageClassName"))
    own = [_with_local_provisioner(document, provisioner) for document in documents]
    lines = [
        f"storage class {_name(document.object)} creates directories" for document in own if document not in documents
    ]
    additions: list[JSONObject] = []
    for name in classes:
        if name not in there and not _contains(objects, "StorageClass", name):
            additions.append(_build_object("storage.k8s.io/v1", "StorageClass", name, provisioner=provisioner))
            lines.append(f"storage class {name} creates directories")
    for name in dict.fromkeys(name for obj in objects for name in values(obj, "priorityClassName")):
        if not _contains(objects, "PriorityClass", name) and not name.startswith("system-"):
            additions.append(_build_object("scheduling.k8s.io/v1", "PriorityClass", name, value=1000))
            lines.append(f"priority class {name} with value 1000")
    for namespace, name in _claims(objects):
        claim = _build_object("v1", "PersistentVolumeClaim", name)
        claim["metadata"] |= {"namespace": namespace} if namespace else {}
        claim["spec"] = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
        additions.append(claim)
        lines.append(f"volume claim {name} is an empty directory")
    added = [Document("--nodes auto", 1, obj) for obj in additions]
    return ApplicableDocuments((*added, *own), tuple(lines))


def _with_local_provisioner(document: Document, provisioner: str) -> Document:
    """Return a StorageClass with the provisioner of this machine. Other objects are returned unchanged."""
    obj = document.object
    if obj["kind"] != "StorageClass" or obj.get("provisioner") == provisioner:
        return document
    fields = {name: value for name, value in obj.items() if name not in {"parameters", "allowedTopologies"}}
    changed = fields | {"provisioner": provisioner, "volumeBindingMode": "Immediate"}
    return replace(document, object=changed)


def _claims(objects: Sequence[JSONObject]) -> list[tuple[str, str]]:
    """Return the namespaces and names of claims that pods mount but that do not exist."""
    brought = {(_namespace(obj), _name(obj)) for obj in objects if obj["kind"] == "PersistentVolumeClaim"}
    mounted = {(_namespace(obj), name): None for obj in objects for name in values(obj, "claimName")}
    return [claim for claim in mounted if claim not in brought]


def values(node: JSON, field: str) -> Iterator[str]:
    """Yield the string values of a field, at any depth of an object."""
    if isinstance(node, dict):
        for name, child in node.items():
            if name == field and isinstance(child, str) and child:
                yield child
            else:
                yield from values(child, field)
    elif isinstance(node, list):
        for child in node:
            yield from values(child, field)


def _contains(objects: Sequence[JSONObject], kind: str, name: str) -> bool:
    return any(obj["kind"] == kind and _name(obj) == name for obj in objects)


def _build_object(api_version: str, kind: str, name: str, **fields: JSON) -> JSONObject:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **fields}


def _name(obj: JSONObject) -> str:
    return str(obj["metadata"].get("name") or "")


def _namespace(obj: JSONObject) -> str:
    return str(obj["metadata"].get("namespace") or "")


GPU: Final = "nvidia.com/gpu"


class AssumedCluster(Struct, frozen=True):
    """The objects to apply, the nodes, and the notes that are printed before."""

    documents: Sequence[Document]
    nodes: Nodes
    lines: tuple[str, ...] = ()


def derive_cluster(documents: Sequence[Document], options: ClusterOptions) -> AssumedCluster:
    """Return the nodes and objects that the documents require, as far as they can be derived."""
    for document in documents:
        for name in values(document.object, "schedulerName"):
            if name != DEFAULT_SCHEDULER:
                raise CommandError(
                    f"{document.location}: scheduler {name} is not available in the cluster of lws run; remove schedulerName to run the groups"
                )
    if isinstance(options.gpus_per_node, str) and options.nodes == AUTO:
        node_settings(options)  # raises an error, because host GPUs require a number of nodes
    devices = devicecounts.replace_claims(documents)
    documents, counts = devices.documents, tuple(f"assumed: {line}" for line in devices.assumptions)
    demands = [demand for document in documents for demand in pod_demands(document.object)]
    if AUTO not in (options.nodes, options.gpus_per_node):
        return AssumedCluster(documents, node_settings(options), (*counts, *_unmet_requirements_note(demands, options)))
    pools = [_add_options(pool, options) for pool in _derived_pools(demands, options)]
    total = sum(pool.count for pool in pools)
    if total > nodepools.MOST:
        raise CommandError(
            f"--nodes auto: the manifest requires {total} nodes, but at most {nodepools.MOST} are simulated; reduce the replicas, or use --nodes N"
        )
    lines = (*counts, *(f"assumed: {pool}" for pool in pools))
    if options.nodes != AUTO:
        return AssumedCluster(documents, pool_settings(pools), lines)
    around = with_required_objects(documents, provisioner=PROVISIONER, there=(DEFAULT_CLASS_NAME,))
    return AssumedCluster(
        around.documents, pool_settings(pools), (*lines, *(f"assumed: {line}" for line in around.assumptions))
    )


def _derived_pools(demands: Sequence[Demand], options: ClusterOptions) -> list[Pool]:
    """Return the node pools without the command-line options."""
    if options.nodes == AUTO:
        pools = nodepools.derive_pools(demands) or [Pool(count=1)]
        return pools if options.gpus_per_node == AUTO else list(map(nodepools.without_resources, pools))
    capacity = tuple(f"{name}={amount}" for name, amount in sorted(nodepools.largest_requests(demands).items()))
    return [Pool(count=options.nodes, capacity=capacity, sources=tuple(demand.source for demand in demands))]


def _add_options(pool: Pool, options: ClusterOptions) -> Pool:
    """Add the command-line options, which apply to all nodes and override derived values."""
    typed = _parse_options(options)
    labels, capacity = _names(typed.labels), _names(typed.capacity)
    return replace(
        pool,
        labels=(*(word for word in pool.labels if not _names([word]) & labels), *typed.labels),
        taints=tuple(dict.fromkeys([*pool.taints, *typed.taints])),
        capacity=(*(word for word in pool.capacity if not _names([word]) & capacity), *typed.capacity),
    )


def _parse_options(options: ClusterOptions) -> Pool:
    number = options.gpus_per_node
    gpus = (f"{GPU}={number}",) if isinstance(number, str) or number > 0 else ()
    return Pool(
        count=options.nodes,
        labels=options.node_labels,
        taints=options.node_taints,
        capacity=(*options.node_capacity, *gpus),
    )


def _names(words: Sequence[str]) -> set[str]:
    """Return the names in a string in the format NAME=VALUE,NAME=VALUE."""
    return {part.partition("=")[0] for word in words for part in word.split(",")}


def _unmet_requirements_note(demands: Sequence[Demand], options: ClusterOptions) -> tuple[str, ...]:
    """Return a note about unmet node requirements, or an empty string if all requirements are met."""
    typed = _parse_options(options)
    capacity, labels = _names(typed.capacity), _names(typed.labels)
    own = {"kubernetes.io/hostname", "kubernetes.io/os", "kubernetes.io/arch"}
    lacking = dict.fromkeys(name for demand in demands for name in demand.resources if name not in capacity)
    lacking |= dict.fromkeys(
        f"label {key}" for demand in demands for key, _ in demand.labels if key not in labels | own
    )
    if not lacking:
        return ()
    what = f"note: no node meets the requirements of the manifest ({', '.join(lacking)}), so pods remain pending"
    return (f"{what}; use --nodes auto --gpus auto to simulate suitable nodes",)
