"""Tests volume directories on disk, and their mount points."""

import socket
from pathlib import Path
from typing import Any

import pytest
from tests.kubeletpods import container, pod

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from localkube.kubelet.processes.runner import Mount
from localkube.kubelet.spec.environment import EnvironmentInputs, ReferencedObjects
from localkube.kubelet.spec.fieldref import NodeFacts
from localkube.kubelet.spec.podspec import SpecError
from localkube.kubelet.volumes import directories, volumemounts
from localkube.kubelet.volumes.directories import Claims


def context(volumes: list[JSONObject], **fields: Any) -> EnvironmentInputs:
    sources = ReferencedObjects({"settings": {"a": b"1"}}, {})
    return EnvironmentInputs(pod=pod(volumes=volumes), ip="", node=NodeFacts("", {}), sources=sources, **fields)


def prepare(root: Path, *volumes: JSONObject, bound: Claims | None = None, **fields: Any) -> dict[str, Path]:
    claims = bound or Claims({}, {})
    return directories.prepare(context(list(volumes), **fields), claims, root / "volumes", "v1")


def test_empty_dir_is_writable_by_all(tmp_path: Path) -> None:
    path = prepare(tmp_path, {"name": "scratch", "emptyDir": {"medium": "Memory"}})["scratch"]
    assert path == tmp_path / "volumes" / "scratch"
    assert path.stat().st_mode & 0o777 == 0o777


def test_memory_volumes_have_their_size() -> None:
    volumes = [
        {"name": "a", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
        {"name": "b", "emptyDir": {"medium": "Memory"}},
        {"name": "c", "emptyDir": {}},
    ]
    assert directories.memory_volumes(pod(volumes=volumes), Path("/v")) == (("/v/a", 1 << 20), ("/v/b", 0))


CLAIM = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}


def test_claim_is_the_path_of_its_volume(tmp_path: Path) -> None:
    claim = {"metadata": {"uid": "c1"}, "spec": {"volumeName": "pv"}}
    volume = {"spec": {"local": {"path": str(tmp_path / "disk")}}}
    assert prepare(tmp_path, CLAIM, bound=Claims({"data": claim}, {"pv": volume}))["v"] == tmp_path / "disk"


def test_ephemeral_volume_uses_the_claim_of_its_pod(tmp_path: Path) -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "web-0", "uid": "1", "controller": True}
    claim = {"metadata": {"ownerReferences": [owner]}, "spec": {"volumeName": "pv"}}
    volume = {"spec": {"hostPath": {"path": str(tmp_path / "disk")}}}
    wanted = {"name": "v", "ephemeral": {"volumeClaimTemplate": {}}}
    name = f"{meta.name(pod())}-v"
    owner["uid"] = meta.uid(pod())
    assert prepare(tmp_path, wanted, bound=Claims({name: claim}, {"pv": volume}))["v"] == tmp_path / "disk"
    owner["uid"] = "another"
    with pytest.raises(SpecError, match="was not created for this pod"):
        prepare(tmp_path, wanted, bound=Claims({name: claim}, {"pv": volume}))


@pytest.mark.parametrize(
    ("claim", "volumes", "text"),
    [
        ({"spec": {}}, {}, "is not bound to a volume yet"),
        ({"metadata": {"deletionTimestamp": "x"}}, {}, "is being deleted"),
        ({"spec": {"volumeName": "pv"}}, {"pv": {"spec": {"nfs": {}}}}, "must be a hostPath or local volume"),
    ],
)
def test_claim_without_a_path_is_an_error(
    tmp_path: Path, claim: JSONObject, volumes: dict[str, JSONObject], text: str
) -> None:
    with pytest.raises(SpecError, match=text):
        prepare(tmp_path, CLAIM, bound=Claims({"data": claim}, volumes))


@pytest.mark.parametrize(
    ("volume", "text"),
    [
        ({"persistentVolumeClaim": {"claimName": "no"}}, 'persistentvolumeclaim "no" not found'),
        ({"nfs": {"server": "x", "path": "/"}}, 'volume "v": nfs volumes are not supported on a local cluster'),
        ({"hostPath": {"path": "/no/such", "type": "Directory"}}, "/no/such is not a directory"),
        ({"hostPath": {"path": "/no/such"}}, "/no/such does not exist"),
    ],
)
def test_invalid_volume_is_named(tmp_path: Path, volume: JSONObject, text: str) -> None:
    with pytest.raises(SpecError, match=text):
        prepare(tmp_path, {"name": "v", **volume})


def test_unserved_volume_is_empty_when_lenient(tmp_path: Path) -> None:
    assert list(prepare(tmp_path, {"name": "v", "nfs": {}}, skips_missing_sources=True)["v"].iterdir()) == []


def test_unserved_volume_is_empty_in_a_rehearsal(tmp_path: Path) -> None:
    assert list(prepare(tmp_path, {"name": "v", "nfs": {}}, is_dry_run=True)["v"].iterdir()) == []


@pytest.mark.parametrize("source", ["nfs", "csi"])
def test_persistent_volume_is_shared_in_a_rehearsal(tmp_path: Path, source: str) -> None:
    claim = {"metadata": {"uid": "c1"}, "spec": {"volumeName": "pv"}}
    volume = {"metadata": {"name": "pv"}, "spec": {source: {}}}
    bound = Claims({"data": claim}, {"pv": volume}, stand_ins=tmp_path / "stand-ins")
    paths = [prepare(tmp_path / pod, CLAIM, bound=bound)["v"] for pod in ("web-0", "web-0-1")]
    assert paths == [tmp_path / "stand-ins" / "pv"] * 2
    assert paths[0].stat().st_mode & 0o777 == 0o777


@pytest.mark.parametrize("kind", ["", "Directory", "DirectoryOrCreate"])
def test_missing_host_path_is_empty_when_lenient(tmp_path: Path, kind: str) -> None:
    absent = tmp_path / "absent"
    volume = {"name": "v", "hostPath": {"path": str(absent), "type": kind}}
    assert list(prepare(tmp_path, volume, skips_missing_sources=True)["v"].iterdir()) == []
    assert not absent.exists()
    there = {"name": "v", "hostPath": {"path": str(tmp_path)}}
    assert prepare(tmp_path, there, skips_missing_sources=True)["v"] == tmp_path


def test_refresh_keeps_files_of_a_deleted_source(tmp_path: Path) -> None:
    volumes = [{"name": "v", "configMap": {"name": "settings"}}]
    path = prepare(tmp_path, *volumes)["v"]
    bare = EnvironmentInputs(pod=pod(volumes=volumes), ip="", node=NodeFacts("", {}), sources=ReferencedObjects({}, {}))
    directories.refresh(bare, tmp_path / "volumes", "v2")
    assert (path / "a").read_bytes() == b"1"
    newer = EnvironmentInputs(
        pod=pod(volumes=volumes),
        ip="",
        node=NodeFacts("", {}),
        sources=ReferencedObjects({"settings": {"a": b"2"}}, {}),
    )
    directories.refresh(newer, tmp_path / "volumes", "v3")
    assert (path / "a").read_bytes() == b"2"


@pytest.mark.parametrize("kind", ["", "Directory", "DirectoryOrCreate"])
def test_host_directory_is_accepted_as_a_directory(tmp_path: Path, kind: str) -> None:
    assert directories.prepare_host_path(tmp_path, kind) == tmp_path


def test_missing_host_path_is_created_if_the_type_allows(tmp_path: Path) -> None:
    assert directories.prepare_host_path(tmp_path / "d" / "e", "DirectoryOrCreate").is_dir()
    assert directories.prepare_host_path(tmp_path / "f", "FileOrCreate").is_file()


def test_socket_is_distinguished_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        assert directories.prepare_host_path(path, "Socket") == path
    with pytest.raises(SpecError, match="is not a file"):
        directories.prepare_host_path(path, "File")


def mount(root: Path, volume: JSONObject | None = None, env: dict[str, str] | None = None, **fields: Any) -> Mount:
    main = container(volumeMounts=[{"name": "v", "mountPath": "/data", **fields}])
    (found,) = volumemounts.build(main, {"v": volume or {"name": "v", "emptyDir": {}}}, {"v": root}, env or {})
    return found


def test_volume_is_mounted_at_its_mount_path(tmp_path: Path) -> None:
    assert mount(tmp_path) == Mount(tmp_path, "/data")
    assert mount(tmp_path, readOnly=True) == Mount(tmp_path, "/data", read_only=True)


def test_generated_files_are_read_only(tmp_path: Path) -> None:
    assert mount(tmp_path, {"name": "v", "secret": {"secretName": "x"}}).read_only


def test_sub_path_is_created_inside_the_volume(tmp_path: Path) -> None:
    assert mount(tmp_path, subPath="a/b") == Mount(tmp_path, "/data", sub_path="a/b")
    found = mount(tmp_path, env={"POD": "web-0"}, subPathExpr="logs/$(POD)")
    assert found == Mount(tmp_path, "/data", sub_path="logs/web-0")
    assert (tmp_path / "a" / "b").is_dir()
    assert (tmp_path / "logs" / "web-0").is_dir()


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"subPath": "../x"}, "must be a relative path"),
        ({"subPath": "/x"}, "must be a relative path"),
        ({"subPathExpr": "$(NO)"}, 'variable "NO" does not exist'),
        ({"subPath": "out/x"}, "leads outside volume"),
        ({"name": "other"}, 'volume "other" does not exist'),
    ],
)
def test_sub_path_cannot_leave_the_volume(tmp_path: Path, fields: JSONObject, text: str) -> None:
    (tmp_path / "out").symlink_to("/tmp")
    with pytest.raises(SpecError, match=text):
        mount(tmp_path, **fields)


def test_path_with_nul_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"volumes\[host\]\.hostPath\.path.*NUL"):
        prepare(tmp_path, {"name": "host", "hostPath": {"path": "/tmp/\0"}})
