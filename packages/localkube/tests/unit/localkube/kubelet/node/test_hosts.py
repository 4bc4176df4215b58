"""Tests the hosts files, which replace DNS."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kuberuntime.objects.meta import JSONObject
from localkube.kubelet.node import hosts
from localkube.kubelet.node.hosts import HostsFiles, HostsLines

READY = {"conditions": [{"type": "Ready", "status": "True"}]}


def member(name: str = "web-0", namespace: str = "default", **spec: Any) -> JSONObject:
    return {
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}-{namespace}", "labels": {"app": "web"}},
        "spec": {"hostname": name, "subdomain": "web", **spec},
        "status": READY,
    }


def service(name: str = "web", namespace: str = "default", **spec: Any) -> JSONObject:
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"clusterIP": "None", "selector": {"app": "web"}, **spec},
    }


def lines(found: JSONObject, *services: JSONObject, ip: str = "10.0.0.1") -> HostsLines:
    return hosts.pod_lines(found, ip, services, "cluster.local")


def test_pod_of_a_headless_service_has_all_its_names() -> None:
    assert lines(member(), service()) == HostsLines(
        own_namespace=(
            "10.0.0.1 web-0.web.default.svc.cluster.local web-0.web.default.svc web-0.web.default web-0.web web-0\n"
            "10.0.0.1 web.default.svc.cluster.local web.default.svc web.default web\n"
        ),
        other_namespaces=(
            "10.0.0.1 web.default.svc.cluster.local web.default.svc web.default\n"
            "10.0.0.1 web-0.web.default.svc.cluster.local web-0.web.default.svc web-0.web.default\n"
        ),
    )


@pytest.mark.parametrize(
    "other",
    [
        service(type="ExternalName", externalName="example.org"),
        service(selector={"app": "other"}),
        service(selector={}),
    ],
    ids=["stands for another name", "selects others", "selects nothing"],
)
def test_only_a_service_that_selects_the_pod_adds_names(other: JSONObject) -> None:
    assert lines(member(), other) == HostsLines("10.0.0.1 web-0\n", "")


@pytest.mark.parametrize("kind", ["ClusterIP", "NodePort", "LoadBalancer"])
@pytest.mark.parametrize("address", [None, "10.96.0.1"])
def test_every_service_adds_the_names_of_a_headless_one(kind: str, address: str | None) -> None:
    assert lines(member(), service(type=kind, clusterIP=address)) == lines(member(), service())


def test_pod_without_subdomain_has_only_service_names() -> None:
    found = lines(member(subdomain=None), service())
    assert (
        found.own_namespace
        == "10.0.0.1 web-0\n10.0.0.1 web.default.svc.cluster.local web.default.svc web.default web\n"
    )


def test_unready_pod_is_listed_only_if_the_service_publishes_it() -> None:
    unready = {**member(), "status": {}}
    assert lines(unready, service()) == HostsLines("10.0.0.1 web-0\n", "")
    assert lines(unready, service(publishNotReadyAddresses=True)) == lines(member(), service())


def test_pod_without_address_or_ended_has_no_names() -> None:
    assert lines(member(), service(), ip="") == HostsLines("", "")
    assert lines({**member(), "status": {"phase": "Failed"}}, service()) == HostsLines("", "")


def read(directory: Path) -> list[str]:
    return (directory / "hosts").read_text().splitlines()[2:]


def test_pods_of_a_namespace_share_a_hosts_file(tmp_path: Path) -> None:
    kept = HostsFiles(tmp_path, "cluster.local")
    kept.set_service(service())
    kept.set_pod(member(), "10.0.0.1")
    kept.set_pod(member("job", "batch", subdomain=None), "10.0.0.2")
    kept.flush()
    near = lines(member(), service()).own_namespace.splitlines()
    far = lines(member(), service()).other_namespaces.splitlines()
    assert read(kept.directory(member())) == near
    assert read(kept.directory(member("job", "batch"))) == ["10.0.0.2 job", *far]


def test_files_follow_pods_and_services(tmp_path: Path) -> None:
    kept = HostsFiles(tmp_path, "cluster.local")
    kept.set_pod(member(), "10.0.0.1")
    kept.set_pod(member("web-1"), "10.0.0.2")
    kept.set_service(service())
    kept.flush()
    directory = kept.directory(member())
    assert len(read(directory)) == 4
    kept.remove_pod(member("web-1"))
    kept.flush()
    assert len(read(directory)) == 2
    kept.remove_service(service())
    kept.flush()
    assert read(directory) == ["10.0.0.1 web-0"]


def test_pod_with_host_aliases_has_its_own_file(tmp_path: Path) -> None:
    kept = HostsFiles(tmp_path, "cluster.local")
    special = member("web-1", hostAliases=[{"ip": "1.2.3.4", "hostnames": ["db", "db.local"]}])
    kept.set_pod(member(), "10.0.0.1")
    kept.set_pod(special, "10.0.0.2")
    directory = kept.directory(special)
    kept.flush()
    assert read(directory) == ["10.0.0.1 web-0", "10.0.0.2 web-1", "1.2.3.4 db db.local"]
    assert read(kept.directory(member())) == ["10.0.0.1 web-0", "10.0.0.2 web-1"]
    kept.remove_pod(special)
    assert not directory.exists()


async def test_changes_are_written_by_the_writer(tmp_path: Path) -> None:
    kept = HostsFiles(tmp_path, "cluster.local")
    writer = asyncio.create_task(kept.run())
    kept.set_pod(member(), "10.0.0.1")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert read(kept.directory(member())) == ["10.0.0.1 web-0"]
    writer.cancel()


def test_failed_write_is_repeated(tmp_path: Path) -> None:
    kept = HostsFiles(tmp_path / "root", "cluster.local")
    kept.set_service(service())
    kept.set_pod(member(), "10.0.0.1")
    (tmp_path / "root").write_text("in the way")
    with pytest.raises(OSError, match="root"):
        kept.flush()
    (tmp_path / "root").unlink()
    kept.flush()
    assert "10.0.0.1 web-0.web" in (tmp_path / "root/default/hosts").read_text()


async def test_pods_that_start_together_share_one_write(tmp_path: Path) -> None:
    kept = HostsFiles(tmp_path, "cluster.local")
    directory = kept.directory(member())
    writer = asyncio.create_task(kept.run())

    async def begin(number: int) -> int:
        kept.set_pod(member(f"web-{number}"), f"10.0.0.{number}")
        await kept.wait_until_written()
        assert f"10.0.0.{number} web-{number}" in read(directory)
        return (directory / "hosts").stat().st_ino

    assert len(set(await asyncio.gather(*(begin(number) for number in range(50))))) == 1
    await kept.wait_until_written()
    writer.cancel()


async def test_failed_write_is_raised_to_waiting_callers(tmp_path: Path) -> None:
    (tmp_path / "root").write_text("in the way")
    kept = HostsFiles(tmp_path / "root", "cluster.local")
    kept.set_pod(member(), "10.0.0.1")
    writer = asyncio.create_task(kept.run())
    with pytest.raises(OSError, match="root"):
        await kept.wait_until_written()
    writer.cancel()


def test_names_of_a_removed_pod_leave_other_namespaces(tmp_path: Path) -> None:
    kept = HostsFiles(tmp_path, "cluster.local")
    kept.set_service(service())
    kept.set_pod(member(), "10.0.0.1")
    other = member("other", "elsewhere")
    kept.set_pod(other, "10.0.0.2")
    kept.flush()
    assert any("web-0.web.default" in line for line in read(kept.directory(other)))
    kept.remove_pod(member())
    kept.flush()
    assert read(kept.directory(other)) == ["10.0.0.2 other"]


def test_empty_namespace_is_forgotten_with_its_file(tmp_path: Path) -> None:
    """Otherwise, each former namespace would remain in memory and on disk."""
    written, pod, selecting = HostsFiles(tmp_path, "cluster.local"), member(), service()
    written.set_service(selecting)
    written.set_pod(pod, "10.0.0.1")
    file = written.directory(pod) / "hosts"
    written.flush()
    written.remove_pod(pod)
    written.flush()
    assert file.exists()

    written.remove_service(selecting)
    written.flush()
    assert list(tmp_path.iterdir()) == []

    written.set_pod(pod, "10.0.0.2")
    written.flush()
    assert "10.0.0.2" in file.read_text()


def test_changed_selector_of_a_service_moves_its_name(tmp_path: Path) -> None:
    kept = HostsFiles(tmp_path, "cluster.local")
    kept.set_pod(member(), "10.0.0.1")
    kept.set_pod(member("db-0") | {"metadata": member("db-0")["metadata"] | {"labels": {"app": "db"}}}, "10.0.0.2")
    kept.set_service(service())
    kept.set_service(service(selector={"app": "db"}))
    kept.flush()
    assert [line.split()[0] for line in read(kept.directory(member())) if " web.default.svc" in line] == ["10.0.0.2"]
