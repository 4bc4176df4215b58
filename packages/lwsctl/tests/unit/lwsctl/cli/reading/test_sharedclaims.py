"""Tests claims that several ranks mount although only one node or one pod may use the volume."""

import pytest

from kuberuntime.objects.meta import JSONObject, ObjectKey
from lwsctl.cli.reading import manifests
from lwsctl.cli.reading.manifests import Document
from lwsctl.cli.reading.sharedclaims import missing_claims, warn_about_claims

CLAIM = """\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: models}
spec: {accessModes: [MODES]}
---
"""
TEXT = """\
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: web}
spec:
  replicas: 2
  leaderWorkerTemplate:
    size: 4
    workerTemplate:
      spec:
        volumes:
        - name: models
          persistentVolumeClaim: {claimName: models}
"""
LEADER = """\
    leaderTemplate:
      spec:
        volumes:
        - name: models
          persistentVolumeClaim: {claimName: models}
"""


def documents(modes: str = "", text: str = TEXT) -> list[Document]:
    return manifests.parse((CLAIM.replace("MODES", modes) if modes else "") + text, "web.yaml")


def stored(modes: list[str], namespace: str = "prod") -> JSONObject:
    return {"metadata": {"name": "models", "namespace": namespace}, "spec": {"accessModes": modes}}


def test_claim_of_one_node_that_ranks_share_causes_a_warning() -> None:
    (warning,) = warn_about_claims(documents("ReadWriteOnce"), [], "prod")
    assert warning == (
        "warning: web.yaml:17: leaderworkerset/web: spec.leaderWorkerTemplate.workerTemplate.spec.volumes[0]"
        ".persistentVolumeClaim.claimName: claim models is ReadWriteOnce (its volume is attached to one node at a time), but "
        "8 pods mount it; use ReadWriteMany, ReadOnlyMany or volumeClaimTemplates"
    )


@pytest.mark.parametrize(
    ("text", "pods"), [(TEXT, 8), (TEXT + LEADER, 8), (TEXT + "    leaderTemplate: {spec: {volumes: []}}\n", 6)]
)
def test_pods_of_both_templates_are_counted(text: str, pods: int) -> None:
    (warning,) = warn_about_claims(documents("ReadWriteOncePod", text), [], "prod")
    assert f"used by one pod at a time), but {pods} pods mount it" in warning


@pytest.mark.parametrize("modes", ["ReadWriteMany", "ReadOnlyMany", "ReadWriteOnce, ReadWriteMany"])
def test_claim_of_many_nodes_is_silent(modes: str) -> None:
    assert [*warn_about_claims(documents(modes), [], "prod")] == []


def test_claim_of_one_pod_is_silent() -> None:
    text = TEXT.replace("replicas: 2", "replicas: 1").replace("size: 4", "size: 1")
    assert [*warn_about_claims(documents("ReadWriteOnce", text), [], "prod")] == []
    assert missing_claims(documents(text=text), "prod") == set()


def test_claim_of_the_cluster_is_read_if_manifests_lack_it() -> None:
    assert missing_claims(documents(), "prod") == {ObjectKey("prod", "models")}
    assert missing_claims(documents("ReadWriteOnce"), "prod") == set()
    assert len([*warn_about_claims(documents(), [stored(["ReadWriteOnce"])], "prod")]) == 1
    assert [*warn_about_claims(documents(), [stored(["ReadWriteOnce"], "other")], "prod")] == []
    assert [*warn_about_claims(documents(), [], "prod")] == []
