"""Tests the files of containers, which include volumes, generated mount points, and root file systems."""

import os
import sys
from pathlib import Path

import pytest
from tests.integration.sandbox.harness import Machine, machine

from localkube.kubelet.processes.runner import Mount, StartError

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]

SUB_PATH_ROUNDS = 40
MADE = "made-for-a-mount"


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    directory = tmp_path / "volume"
    directory.mkdir()
    (directory / "file").write_text("content\n")
    return directory


@pytest.mark.parametrize("target", ["/lws-missing", "/etc/lws-missing/deep", "/opt/lws/missing", "/mnt"])
async def test_volume_is_mounted_at_any_path_without_a_host_trace(made: Machine, volume: Path, target: str) -> None:
    end, output = await made.sh(
        await made.pod("a"),
        f"cat {target}/file; echo new >{target}/made; ls -d /usr /home /etc/passwd",
        mounts=(Mount(volume, target),),
    )
    assert (end.code, output) == (0, "content\n/etc/passwd\n/home\n/usr\n")
    assert (volume / "made").read_text() == "new\n"
    assert target == "/mnt" or not Path(target).exists()


async def test_file_is_mounted_over_a_file_and_at_a_missing_path(made: Machine, volume: Path) -> None:
    file = volume / "file"
    mounts = (Mount(file, "/etc/passwd"), Mount(file, "/srv/lws/settings.conf"))
    _, output = await made.sh(await made.pod("a"), "cat /etc/passwd /srv/lws/settings.conf", mounts=mounts)
    assert output == "content\ncontent\n"
    assert Path("/etc/passwd").read_text() != "content\n"


async def test_read_only_volume_cannot_be_written(made: Machine, volume: Path) -> None:
    mounts = (Mount(volume, "/data", read_only=True),)
    end, output = await made.sh(await made.pod("a"), "echo x >/data/new", mounts=mounts)
    assert end.code != 0
    assert "Read-only file system" in output


async def test_volume_is_mounted_inside_a_volume(tmp_path: Path, volume: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    async with machine(tmp_path) as made:
        mounts = (Mount(inner, "/data/cache"), Mount(volume, "/data"))
        _, output = await made.sh(await made.pod("a"), "echo hit >/data/cache/x; cat /data/file", mounts=mounts)
        assert output == "content\n"
        assert (inner / "x").read_text() == "hit\n"


async def test_hosts_file_is_visible_over_a_hidden_state_directory(made: Machine, tmp_path: Path, volume: Path) -> None:
    made.write_hosts("10.1.1.1 still-here\n")
    mounts = (Mount(volume, str(tmp_path)),)
    _, output = await made.sh(await made.pod("a"), "cat /etc/hosts", mounts=mounts)
    assert output == "10.1.1.1 still-here\n"


async def test_missing_source_is_named(made: Machine, tmp_path: Path) -> None:
    with pytest.raises(StartError, match="no-such-volume: no such file or directory"):
        await made.start(await made.pod("a"), "true", mounts=(Mount(tmp_path / "no-such-volume", "/data"),))


async def test_temporary_files_are_private_and_host_files_visible(tmp_path: Path) -> None:
    mark = Path(f"/tmp/lws-test-{os.getpid()}")
    mark.write_text("host\n")
    try:
        async with machine(tmp_path) as made:
            _, output = await made.sh(await made.pod("a"), f"cat {mark}; echo x >/tmp/lws-own; ls /tmp/lws-own")
            assert output == "host\n/tmp/lws-own\n"
            end, _ = await made.sh(await made.pod("b"), "ls /tmp/lws-own")
            assert end.code != 0
        assert not Path("/tmp/lws-own").exists()
    finally:
        mark.unlink()


async def test_shared_memory_belongs_to_the_pod(made: Machine) -> None:
    await made.sh(await made.pod("a"), "echo x >/dev/shm/lws-segment")
    end, _ = await made.sh("a", "cat /dev/shm/lws-segment")
    assert end.code == 0
    end, _ = await made.sh(await made.pod("b"), "cat /dev/shm/lws-segment")
    assert end.code != 0


async def test_memory_volume_is_in_memory_and_shared(made: Machine, tmp_path: Path) -> None:
    volume = tmp_path / "memory"
    volume.mkdir()
    pod = await made.pod("a", memory=((str(volume), 1 << 20),))
    mounts = (Mount(volume, "/data"), Mount(volume, "/part", sub_path="inner/deep"))
    end, output = await made.sh(pod, "stat -f -c %T /data; echo x >/data/new; echo y >/part/file", mounts=mounts)
    assert (end.code, output) == (0, "tmpfs\n")
    assert (await made.sh(pod, "cat /data/new /data/inner/deep/file", mounts=mounts))[1] == "x\ny\n"
    end, _ = await made.sh(pod, "head -c 2000000 /dev/zero >/data/large", mounts=mounts)
    assert end.code != 0
    assert list(volume.iterdir()) == []
    await made.runner.remove_sandbox(pod)
    volume.rmdir()


async def test_read_only_root_keeps_volumes_writable(made: Machine, tmp_path: Path, volume: Path) -> None:
    for place in ("/usr", "/tmp", str(tmp_path)):
        end, _ = await made.sh(
            await made.pod(f"pod{len(made.addresses)}"),
            f"echo x >{place}/lws-new",
            read_only_root=True,
            mounts=(Mount(volume, "/data"),),
        )
        assert end.code != 0, place
    end, _ = await made.sh(
        "pod0",
        "echo x >/data/new && echo x >/dev/shm/new",
        read_only_root=True,
        mounts=(Mount(volume, "/data"),),
    )
    assert end.code == 0


async def test_root_directory_replaces_the_root_of_the_host(tmp_path: Path, volume: Path) -> None:
    root = tmp_path / "image"
    for name in ("bin", "usr", "lib", "lib64"):
        (root / name).mkdir(parents=True)
    mounts = [Mount(Path(f"/{name}").resolve(), f"/{name}") for name in ("bin", "usr", "lib", "lib64")]
    async with machine(tmp_path) as made:
        made.write_hosts("10.2.2.2 imaged\n")
        end, output = await made.sh(
            await made.pod("a"),
            "ls -d /home /work /proc/1 /dev/null; cat /etc/hosts /etc/hostname /data/file",
            root=root,
            mounts=(*mounts, Mount(volume, "/data")),
        )
        assert end.code == 0
        assert "/home" not in output.replace("'/home'", "")
        assert output.endswith("/dev/null\n/proc/1\n10.2.2.2 imaged\na\ncontent\n")
        assert sorted(path.name for path in root.iterdir()) == ["bin", "lib", "lib64", "usr"]


async def test_sub_path_never_follows_an_exchanged_link(tmp_path: Path, volume: Path) -> None:
    """A container in the pod repeatedly replaces the directory with a symbolic link to a directory on the host."""
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "who").write_text("the host\n")
    (volume / "directory").mkdir()
    (volume / "directory" / "who").write_text("the pod\n")
    (volume / "link").symlink_to(secret)
    race = (
        "import os\nos.chdir('/v'); os.rename('directory', 'place'); print('swapping', flush=True)\n"
        "while True:\n os.rename('place', 'aside'); os.rename('link', 'place')\n"
        " os.rename('place', 'link'); os.rename('aside', 'place')\n"
    )
    async with machine(tmp_path) as made:
        pod = await made.pod("a")
        swapper = await made.start(pod, sys.executable, "-c", race, mounts=(Mount(volume, "/v"),))
        assert await swapper.line() == "swapping"
        seen = set()
        for _ in range(SUB_PATH_ROUNDS):
            try:
                _, output = await made.sh(pod, "cat /p/who", mounts=(Mount(volume, "/p", sub_path="place"),))
            except StartError as error:
                assert "place" in str(error)  # noqa: PT017 - it may or may not be raised
            else:
                seen.add(output)
        assert seen <= {"the pod\n"}


async def test_mount_point_is_not_created_through_a_link(tmp_path: Path, volume: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (volume / "place").symlink_to(outside)
    async with machine(tmp_path) as made:
        mounts = (Mount(volume, "/data"), Mount(volume, f"/data/place/{MADE}"))
        with pytest.raises(
            StartError, match=f"/data/place/{MADE}: a symbolic link in the volume at /data leads outside the volume"
        ):
            await made.sh(await made.pod("a"), "true", mounts=mounts)
        assert not any(outside.iterdir())
