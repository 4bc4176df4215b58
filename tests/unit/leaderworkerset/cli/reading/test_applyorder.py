"""What others need to be there is applied first, wherever it stands in the files."""

from leaderworkerset.cli.reading.applyorder import ordered
from leaderworkerset.cli.reading.manifests import Document


def test_namespaces_and_definitions_come_first_and_webhooks_last() -> None:
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
    assert [one.object["kind"] for one in ordered([document(kind) for kind in kinds])] == [
        "Namespace",
        "CustomResourceDefinition",
        "PriorityClass",
        "ConfigMap",
        "Service",
        "LeaderWorkerSet",
        "Deployment",
        "ValidatingWebhookConfiguration",
    ]


def document(kind: str) -> Document:
    return Document("a.yaml", 1, 1, {"kind": kind})
