"""Where namespaces are refused: plain processes, and clear words about what is lost."""

import asyncio
from pathlib import Path

import pytest
from tests.integration.sandbox.harness import machine

from localkube.kubelet.processes.runner import Mount, StartError

pytestmark = pytest.mark.slow


def test_what_is_lost_is_said(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with machine(tmp_path, network="isolated", isolation="plain") as made:
            granted = made.capabilities
            assert (granted.namespaces, granted.network, granted.way_out) == (False, "shared", "host")
            assert any("host names" in line for line in granted.lost)

    asyncio.run(scenario())


def test_volumes_are_refused_by_name_but_where_the_host_has_the_same(tmp_path: Path) -> None:
    volume = tmp_path / "volume"
    volume.mkdir()

    async def scenario() -> None:
        async with machine(tmp_path, network="shared", isolation="plain") as made:
            pod = await made.pod("a")
            with pytest.raises(StartError, match=f"mount {volume} at /data: cannot mount without namespaces"):
                await made.start(pod, "true", mounts=(Mount(volume, "/data"),))
            for mount in (Mount(volume, str(volume)), Mount(volume, "/dev/shm")):
                assert (await made.sh(pod, "true", mounts=(mount,)))[0].code == 0
            with pytest.raises(StartError, match="cannot replace / without namespaces"):
                await made.start(pod, "true", root=volume)

    asyncio.run(scenario())
