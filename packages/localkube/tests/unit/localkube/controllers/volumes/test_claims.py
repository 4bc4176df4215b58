"""Tests that volume claims on a local cluster are bound to volumes, or report why they are not bound."""

from pathlib import Path
from typing import Any

import pytest
from testkit.objects import merge

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.plan import Actions, Create, Emit, Patch
from localkube import wellknown
from localkube.controllers.volumes import claims
from localkube.controllers.volumes.claims import ObservedClaim

ROOT = Path("/srv/volumes")
KEY = {"namespace": "default", "name": "data"}


def build_claim(change: JSONObject | None = None, **spec: Any) -> JSONObject:
    """Build a volume claim of 1 GiB."""
    base = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": KEY | {"uid": "1", "resourceVersion": "5"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}} | spec,
        "status": {"phase": "Pending"},
    }
    return merge(base, change or {})


def build_volume(name: str, size: str = "2Gi", **spec: Any) -> JSONObject:
    """Build an available volume without a storage class."""
    base = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce", "ReadOnlyMany"]}
    return {"metadata": {"name": name, "uid": name, "resourceVersion": "7"}, "spec": base | spec, "status": {}}


def decide(claim: JSONObject, *volumes: JSONObject, classes: tuple[JSONObject, ...] = ()) -> Actions:
    """Return the plan for a claim."""
    known = {meta.name(one): one for one in classes}
    return claims.plan(
        ObservedClaim(claim=claim, volumes={meta.name(one): one for one in volumes}, classes=known, root=ROOT)
    )


def taken(steps: Actions) -> str:
    """Return the name of the volume to which the claim is bound."""
    patches = [step for step in steps if isinstance(step, Patch)]
    return str(patches[-1].patch["spec"]["volumeName"])


def note(steps: Actions) -> str:
    """Return the message of the event."""
    [step] = steps
    assert isinstance(step, Emit)
    return step.events[0].note


@pytest.mark.parametrize("fields", [{}, {"storageClassName": "standard"}])
def test_volume_is_provisioned_in_the_default_class(fields: dict[str, str]) -> None:
    [create] = decide(build_claim({}, **fields), classes=(claims.DEFAULT_CLASS,))
    assert isinstance(create, Create)
    assert meta.name(create.object) == "pvc-1"
    assert create.object["spec"]["hostPath"] == {"path": "/srv/volumes/pvc-1", "type": "DirectoryOrCreate"}
    assert create.object["spec"]["claimRef"]["uid"] == "1"
    assert claims.volume_directory(create.object, ROOT) == ROOT / "pvc-1"


def test_smallest_sufficient_volume_is_bound() -> None:
    volumes = [
        build_volume("large", "9Gi"),
        build_volume("small"),
        build_volume("tiny", "1Mi"),
        build_volume("classy", storageClassName="fast"),
        build_volume("shared", accessModes=["ReadWriteMany"]),
        build_volume("taken", claimRef={"namespace": "default", "name": "other", "uid": "2"}),
    ]
    assert taken(decide(build_claim(storageClassName=""), *volumes)) == "small"


def test_volume_reserved_for_the_claim_is_preferred() -> None:
    reserved = build_volume("mine", "1Mi", claimRef=KEY)
    assert taken(decide(build_claim(), build_volume("other"), reserved)) == "mine"


def test_volume_and_claim_are_bound_in_sequence() -> None:
    claim, volume = build_claim(storageClassName=""), build_volume("v")
    steps = decide(claim, volume)
    assert [(step.key.name, step.subresource) for step in steps if isinstance(step, Patch)] == [
        ("v", ""),
        ("v", "status"),
        ("data", ""),
    ]
    bound = merge(volume, {"spec": {"claimRef": KEY | {"uid": "1"}}, "status": {"phase": "Bound"}})
    [last] = decide(build_claim(storageClassName="", volumeName="v"), bound)
    assert isinstance(last, Patch)
    assert last.patch["status"] == {
        "phase": "Bound",
        "accessModes": ["ReadWriteOnce", "ReadOnlyMany"],
        "capacity": {"storage": "2Gi"},
    }
    assert decide(build_claim({"status": {"phase": "Bound"}}, volumeName="v"), bound) == ()


def test_claim_waits_for_its_named_volume() -> None:
    assert decide(build_claim(volumeName="v")) == ()
    foreign = build_volume("v", claimRef={"namespace": "default", "name": "other", "uid": "2"})
    assert decide(build_claim(volumeName="v"), foreign) == ()


def test_unserved_claim_stays_pending_with_an_event() -> None:
    assert note(decide(build_claim())) == ("no persistent volumes available for this claim and no storage class is set")
    assert note(decide(build_claim(storageClassName="fast"))) == 'storageclass.storage.k8s.io "fast" not found'
    foreign = {"metadata": {"name": "fast"}, "provisioner": "example.com/disks"}
    assert note(decide(build_claim(storageClassName="fast"), classes=(foreign,))).startswith(
        "Waiting for a volume to be created either by the external provisioner 'example.com/disks'"
    )


@pytest.mark.parametrize("provisioner", wellknown.PROVISIONERS)
def test_class_of_an_earlier_version_is_provisioned(provisioner: str) -> None:
    written = {"metadata": {"name": "fast"}, "provisioner": provisioner}
    [create] = decide(build_claim(storageClassName="fast"), classes=(written,))
    assert isinstance(create, Create)
    assert meta.annotations(create.object) == {claims.PROVISIONED_BY: wellknown.PROVISIONER}


@pytest.mark.parametrize("provisioner", wellknown.PROVISIONERS)
def test_only_provisioned_volumes_are_reclaimed(provisioner: str) -> None:
    made = {claims.PROVISIONED_BY: provisioner}
    volume = merge(build_volume("pvc-1", claimRef=KEY | {"uid": "1"}), {"metadata": {"annotations": made}})
    assert claims.is_abandoned(volume, None)
    assert claims.is_abandoned(volume, build_claim({"metadata": {"uid": "2"}}))
    assert not claims.is_abandoned(volume, build_claim())
    assert not claims.is_abandoned(build_volume("own", claimRef=KEY | {"uid": "1"}), None)
    elsewhere = merge(volume, {"spec": {"hostPath": {"path": "/home"}}})
    assert claims.volume_directory(elsewhere, ROOT) is None
