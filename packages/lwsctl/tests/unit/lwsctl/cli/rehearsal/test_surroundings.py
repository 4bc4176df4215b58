"""Tests that missing objects which a manifest requires are added."""

from typing import Any

from kuberuntime.objects.meta import JSONObject
from lwsctl.cli.local.autonodes import ApplicableDocuments, with_required_objects
from lwsctl.cli.reading.manifests import Document

POD: JSONObject = {
    "priorityClassName": "high",
    "volumes": [{"persistentVolumeClaim": {"claimName": "data"}}, {"persistentVolumeClaim": {"claimName": "own"}}],
}
OWN_CLAIM: JSONObject = {"storageClassName": "fast"}


def of(kind: str, name: str, spec: JSONObject | None = None, **fields: Any) -> JSONObject:
    return {"kind": kind, "metadata": {"name": name}, "spec": spec or {}, **fields}


def result(*objects: JSONObject) -> ApplicableDocuments:
    documents = [Document("a.yaml", 1, obj) for obj in objects]
    return with_required_objects(documents, provisioner="local", there=("standard",))


def test_missing_classes_and_claims_are_created_and_reported() -> None:
    found = result(of("Pod", "a", POD), of("PersistentVolumeClaim", "own", OWN_CLAIM))
    assert [document.title for document in found.documents] == [
        "storageclass/fast",
        "priorityclass/high",
        "persistentvolumeclaim/data",
        "pod/a",
        "persistentvolumeclaim/own",
    ]
    assert found.assumptions == (
        "storage class fast creates directories",
        "priority class high with value 1000",
        "volume claim data is an empty directory",
    )


def test_objects_of_the_manifest_are_not_replaced() -> None:
    objects = [
        of("Pod", "a", POD),
        of("PersistentVolumeClaim", "own", OWN_CLAIM),
        of("PersistentVolumeClaim", "data", {"storageClassName": "standard"}),
        of("PriorityClass", "high"),
        of("StorageClass", "fast", provisioner="local"),
    ]
    assert result(*objects) == ApplicableDocuments(tuple(Document("a.yaml", 1, obj) for obj in objects), ())


def test_vendor_storage_class_creates_local_directories() -> None:
    vendors = of("StorageClass", "fast", provisioner="csi.example.com", parameters={"tier": "gold"})
    found = result(vendors)
    assert found.documents[0].object == of("StorageClass", "fast", provisioner="local", volumeBindingMode="Immediate")
    assert found.assumptions == ("storage class fast creates directories",)
    assert vendors["provisioner"] == "csi.example.com"
