"""Tests the removal of directories outside the event loop."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from localkube.kubelet.node.directoryremoval import DirectoryRemoval

LIMIT = 60.0

DEPTH = sys.getrecursionlimit() + 200
"""Create directories that are nested deeper than the recursion limit, with a path of more than 4,096 bytes."""


async def emptied(trash: DirectoryRemoval, directory: Path) -> None:
    """Repeat the removal until no directory remains."""
    task = asyncio.create_task(trash.run())
    async with asyncio.timeout(LIMIT):
        while await asyncio.to_thread(os.listdir, directory):
            pass
    task.cancel()


async def test_directory_is_moved_immediately_and_deleted_later(tmp_path: Path) -> None:
    pod = tmp_path / "pod"
    (pod / "closed").mkdir(parents=True)
    (pod / "closed" / "file").touch()
    (pod / "closed").chmod(0)
    trash = DirectoryRemoval(tmp_path / "trash")
    trash.add(pod)
    assert not pod.exists()
    await emptied(trash, tmp_path / "trash")


async def test_remaining_files_of_a_crash_are_deleted_at_startup(tmp_path: Path) -> None:
    (tmp_path / "left").mkdir()
    await emptied(DirectoryRemoval(tmp_path), tmp_path)


async def test_missing_directory_is_ignored(tmp_path: Path) -> None:
    DirectoryRemoval(tmp_path / "trash").add(tmp_path / "no")
    assert not (tmp_path / "trash").exists()


@pytest.mark.slow
def test_thousands_of_nested_directories_are_deleted(tmp_path: Path) -> None:
    """A container can create such directories in an emptyDir volume.

    A recursion would stop the kubelet, and paths are limited to 4,096 bytes.
    """
    (tmp_path / "pod").mkdir()
    inside = os.open(tmp_path / "pod", os.O_RDONLY)
    for _ in range(DEPTH):
        os.mkdir("deeper", dir_fd=inside)
        inside, above = os.open("deeper", os.O_RDONLY, dir_fd=inside), inside
        os.close(above)
    os.symlink("/etc", "link", dir_fd=inside)
    os.close(inside)

    async def scenario() -> None:
        trash = DirectoryRemoval(tmp_path / "trash")
        trash.add(tmp_path / "pod")
        await emptied(trash, tmp_path / "trash")

    try:
        asyncio.run(scenario())
    finally:  # pytest cannot remove the remaining files if this fails
        subprocess.run(["rm", "-rf", tmp_path / "trash", tmp_path / "pod"], check=True)
