"""The objects that a manifest's pods need and the manifest lacks: volume claims, storage and priority classes.

In: the documents. Out: the documents to apply instead, preceded by the missing objects, and a line for each assumption.
Storage classes get the provisioner of this machine, which makes directories.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from kuberuntime.objects.meta import JSON, JSONObject
from leaderworkerset.cli.reading.manifests import Document


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """Documents that can be applied here, and the assumptions for them."""

    documents: tuple[Document, ...]
    assumptions: tuple[str, ...]


def rehearsed(documents: Sequence[Document], *, provisioner: str, there: Collection[str]) -> Rehearsed:
    """Return the documents with the objects that they need; `there` are the storage classes of every cluster here."""
    objects = [document.object for document in documents]
    classes = dict.fromkeys(name for obj in objects for name in values(obj, "storageClassName"))
    own = [_local(document, provisioner) for document in documents]
    lines = [f"storage class {_name(one.object)}: makes directories" for one in own if one not in documents]
    made: list[JSONObject] = []
    for name in classes:
        if name not in there and not _brings(objects, "StorageClass", name):
            made.append(_of("storage.k8s.io/v1", "StorageClass", name, provisioner=provisioner))
            lines.append(f"storage class {name}: makes directories")
    for name in dict.fromkeys(name for obj in objects for name in values(obj, "priorityClassName")):
        if not _brings(objects, "PriorityClass", name) and not name.startswith("system-"):
            made.append(_of("scheduling.k8s.io/v1", "PriorityClass", name, value=1000))
            lines.append(f"priority class {name}: value 1000")
    for namespace, name in _claims(objects):
        claim = _of("v1", "PersistentVolumeClaim", name)
        claim["metadata"] |= {"namespace": namespace} if namespace else {}
        claim["spec"] = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
        made.append(claim)
        lines.append(f"volume claim {name}: an empty directory")
    added = [Document("--nodes auto", number, 1, obj) for number, obj in enumerate(made, 1)]
    return Rehearsed((*added, *own), tuple(lines))


def _local(document: Document, provisioner: str) -> Document:
    """Return a storage class of the manifest with the provisioner of this machine, other objects unchanged."""
    obj = document.object
    if obj["kind"] != "StorageClass" or obj.get("provisioner") == provisioner:
        return document
    kept = {name: value for name, value in obj.items() if name not in {"parameters", "allowedTopologies"}}
    changed = kept | {"provisioner": provisioner, "volumeBindingMode": "Immediate"}
    return Document(document.source, document.number, document.line, changed)


def _claims(objects: Sequence[JSONObject]) -> list[tuple[str, str]]:
    """Return namespace and name of the claims that pods mount and that do not exist."""
    brought = {(_namespace(obj), _name(obj)) for obj in objects if obj["kind"] == "PersistentVolumeClaim"}
    mounted = {(_namespace(obj), name): None for obj in objects for name in values(obj, "claimName")}
    return [one for one in mounted if one not in brought]


def values(node: JSON, field: str) -> Iterator[str]:
    """Yield the texts of a field at any depth of an object."""
    if isinstance(node, dict):
        for name, child in node.items():
            if name == field and isinstance(child, str) and child:
                yield child
            else:
                yield from values(child, field)
    elif isinstance(node, list):
        for child in node:
            yield from values(child, field)


def _brings(objects: Sequence[JSONObject], kind: str, name: str) -> bool:
    return any(obj["kind"] == kind and _name(obj) == name for obj in objects)


def _of(api_version: str, kind: str, name: str, **fields: JSON) -> JSONObject:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **fields}


def _name(obj: JSONObject) -> str:
    return str(obj["metadata"].get("name") or "")


def _namespace(obj: JSONObject) -> str:
    return str(obj["metadata"].get("namespace") or "")
