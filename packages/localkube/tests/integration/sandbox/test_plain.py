"""Tests the runner without namespaces, which runs plain processes and reports missing features clearly."""

import sys
from pathlib import Path

import pytest
from tests.integration.sandbox.harness import machine

from localkube.kubelet.node.hosts import HEADER
from localkube.kubelet.processes.runner import Exit, Mount, StartError
from localkube.kubelet.sandbox import plainnames

pytestmark = pytest.mark.slow


async def test_plain_isolation_reports_lost_features(tmp_path: Path) -> None:
    async with machine(tmp_path, network="isolated", isolation="plain") as made:
        granted = made.capabilities
        assert (granted.has_namespaces, granted.network) == (False, "shared")
        assert any(line.startswith("volumes and reliable termination of daemons") for line in granted.missing)
        assert (plainnames.ONLY_PYTHON in granted.missing) == (plainnames.find_wrapper() is None)


async def test_plain_volumes_must_exist_on_the_host(tmp_path: Path) -> None:
    volume = tmp_path / "volume"
    volume.mkdir()
    async with machine(tmp_path, network="shared", isolation="plain") as made:
        pod = await made.pod("a")
        with pytest.raises(StartError, match=f"mount {volume} at /data: this machine does not permit namespaces"):
            await made.start(pod, "true", mounts=(Mount(volume, "/data"),))
        for mount in (Mount(volume, str(volume)), Mount(volume, "/dev/shm")):
            assert (await made.sh(pod, "true", mounts=(mount,)))[0].code == 0
        with pytest.raises(StartError, match="cannot replace /, because this machine does not permit namespaces"):
            await made.start(pod, "true", root=volume)


async def test_python_program_resolves_names_of_pods(tmp_path: Path) -> None:
    look_up = "import socket; print(socket.gethostname(), socket.gethostbyname('b.web.default'))"
    async with machine(tmp_path, network="shared", isolation="plain") as made:
        one, other = await made.pod("a"), await made.pod("b")
        made.write_hosts(f"127.0.0.1 localhost\n{made.addresses[other]} b.web.default\n")
        expected = f"a {made.addresses[other]}\n"
        assert await made.sh(one, f'exec {sys.executable} -c "{look_up}"') == (Exit(0), expected)
        program = await made.start(one, "sleep", "1000")
        entered = await made.exec(program, sys.executable, "-c", look_up)
        assert await entered.finish() == (Exit(0), expected)


@pytest.mark.skipif(plainnames.find_wrapper() is None, reason="libnss_wrapper is not installed")
async def test_other_programs_resolve_names_with_the_wrapper(tmp_path: Path) -> None:
    async with machine(tmp_path, network="shared", isolation="plain") as made:
        assert plainnames.ONLY_PYTHON not in made.capabilities.missing
        pod = await made.pod("a")
        made.write_hosts(f"{HEADER}127.9.8.7 b.web.default\n")
        end, text = await made.sh(pod, "hostname; getent ahostsv4 b.web.default")
        assert (end.code, text.split()[:2]) == (0, ["a", "127.9.8.7"]), text
