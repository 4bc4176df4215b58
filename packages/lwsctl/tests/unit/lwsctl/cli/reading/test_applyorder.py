"""Tests that required objects are applied first, regardless of the file order."""

from lwsctl.cli.reading.manifests import Document, batches, sort_documents


def test_namespaces_are_applied_first_and_webhooks_last() -> None:
    kinds = [
        "ValidatingWebhookConfiguration",
        "LeaderWorkerSet",
        "Service",
        "ConfigMap",
        "Deployment",
        "PriorityClass",
        "CustomResourceDefinition",
        "Namespace",
    ]
    assert [one.object["kind"] for one in sort_documents([document(kind) for kind in kinds])] == [
        "Namespace",
        "CustomResourceDefinition",
        "PriorityClass",
        "ConfigMap",
        "Service",
        "LeaderWorkerSet",
        "Deployment",
        "ValidatingWebhookConfiguration",
    ]


def test_documents_of_one_rank_form_batches_of_unique_objects() -> None:
    claims = [document("PersistentVolumeClaim", name) for name in "abcdefghijkl"]
    found = batches(
        [document("Namespace"), *claims, document("PersistentVolumeClaim", "l"), document("Pod"), document("Job")]
    )
    assert ["".join(one.object["metadata"]["name"] for one in batch) for batch in found] == [
        "x",
        "abcdefghij",
        "kl",
        "l",
        "xx",
    ]
    assert list(batches([])) == []


def document(kind: str, name: str = "x") -> Document:
    return Document("a.yaml", 1, {"kind": kind, "metadata": {"name": name}})
