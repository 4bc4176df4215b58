"""Names that differ between pods must not be added to the table of interned strings.

`pathlib` interns each part of a path. Python 3.12 never frees an interned text; in other versions the table grows.
"""

import asyncio
import os
import sys
from pathlib import Path

import pytest
from testkit.virtualtime import VirtualClock

from localkube.kubelet.container import images
from localkube.kubelet.container.images import ProgramSource, UnrunnableError
from localkube.kubelet.logfiles.logwriter import LogWriter
from localkube.kubelet.node.directoryremoval import DirectoryRemoval

LIMIT = 60.0


@pytest.fixture(name="interned")
def _interned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record strings that are interned after this call."""
    texts: list[str] = []
    intern = sys.intern

    def noted(text: str) -> str:
        texts.append(text)
        return intern(text)

    monkeypatch.setattr(sys, "intern", noted)
    return texts


async def test_names_in_the_trash_are_not_interned(tmp_path: Path, interned: list[str]) -> None:
    pods, directory = [tmp_path / "one", tmp_path / "two"], tmp_path / "trash"
    for pod in pods:
        (pod / "logs" / "main").mkdir(parents=True)
        str(pod)  # from Python 3.12, a path interns its name on first use
    trash, place = DirectoryRemoval(directory), str(directory)
    interned.clear()
    for pod in pods:
        trash.add(pod)
    task = asyncio.create_task(trash.run())
    async with asyncio.timeout(LIMIT):
        while await asyncio.to_thread(os.listdir, place):
            pass
    task.cancel()
    assert [text for text in interned if text.startswith(("one", "two", "logs", "main"))] == []


def test_searched_programs_are_not_interned(interned: list[str]) -> None:
    host = ProgramSource("host://")
    images.check_program("a", "sh", "/usr/bin:/bin", host, [])
    with pytest.raises(UnrunnableError):
        images.check_program("a", "no-such-program", "/usr/bin:/bin", host, [])
    assert interned == []


@pytest.mark.virtual_time
async def test_log_files_are_not_interned(tmp_path: Path, interned: list[str]) -> None:
    interned.clear()
    writer = LogWriter(tmp_path, VirtualClock())
    writer.write_message("text")
    writer.close()
    assert "0-0.log" not in interned
    assert [path.name for path in tmp_path.iterdir()] == ["0-0.log"]
