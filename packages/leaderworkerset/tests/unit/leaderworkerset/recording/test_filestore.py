"""Tests that the episode store is limited, survives a crash at any write, and never reuses a number."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from leaderworkerset.api.episode import Episode, Outcome, RecordedContainer, RecordedRank
from leaderworkerset.recording import filestore
from leaderworkerset.recording.filestore import Store

pytestmark = pytest.mark.slow

LINES = tuple(f"line {number} of a program that fails" for number in range(200))


def episode(
    lws: str = "web", group: str = "0", *, namespace: str = "default", lines: tuple[str, ...] = LINES
) -> Episode:
    """Return an episode with the log of one rank."""
    ranks = (RecordedRank(rank=0, pod=f"{lws}-{group}", containers=(RecordedContainer(name="app", logs=(lines,)),)),)
    time = "2026-11-25T09:00:00Z"
    return Episode(namespace=namespace, lws=lws, group=group, outcome=Outcome.FAILED, time=time, ranks=ranks)


def size(directory: Path) -> int:
    """Return the total size of all files in bytes."""
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def numbers(directory: Path) -> list[int]:
    """Return the numbers of all episodes."""
    return [place.number for place in filestore.places(directory)]


def test_failures_of_a_set_stay_within_the_bound(tmp_path: Path) -> None:
    kept = Store(tmp_path, max_per_set=200_000, max_total=10_000_000)
    other = kept.put(episode("other"), "other")
    for number in range(300):
        assert kept.put(episode(), f"leader-{number}").number == number + 1
        assert size(tmp_path / "default" / "web") <= 200_000
    found = [place for place in filestore.places(tmp_path) if place.lws == "web"]
    assert [place.number for place in found] == list(range(301 - len(found), 301))
    assert len(found) > 10
    assert [filestore.read(place) for place in filestore.places(tmp_path) if place.lws == "other"] == [other]


def test_all_sets_share_a_bound_and_the_oldest_is_removed(tmp_path: Path) -> None:
    kept = Store(tmp_path, max_per_set=100_000, max_total=100_000)
    for number in range(50):
        kept.put(episode(f"set-{number}"), "leader")
        assert size(tmp_path) <= 100_000
    names = {path.name for path in (tmp_path / "default").iterdir()}
    assert names == {f"set-{number}" for number in range(50 - len(names), 50)}


def test_newest_episode_is_kept_at_any_size(tmp_path: Path) -> None:
    kept = Store(tmp_path, max_per_set=100, max_total=100)
    kept.put(episode(), "first")
    kept.put(episode(), "second")
    assert numbers(tmp_path) == [2]


def test_episode_of_the_same_identity_is_replaced(tmp_path: Path) -> None:
    kept = Store(tmp_path)
    assert not kept.has("leader")
    kept.put(episode(), "leader")
    kept.put(episode(group="1"), "else")
    done = msgspec.structs.replace(episode(), outcome=Outcome.RECREATED)
    assert kept.put(done, "leader") == msgspec.structs.replace(done, number=1)
    assert kept.has("leader")
    assert [found.outcome for place in filestore.places(tmp_path) if (found := filestore.read(place))] == [
        "recreated",
        "failed",
    ]


def test_numbers_continue_when_the_store_is_opened_again(tmp_path: Path) -> None:
    first = Store(tmp_path)
    for number in range(3):
        first.put(episode(), f"leader-{number}")
    for number, place in enumerate(filestore.places(tmp_path)):
        os.utime(place.path, (100 - number, 100 - number))  # the first episode is the newest
    again = Store(tmp_path, max_per_set=3 * next(filestore.places(tmp_path)).path.stat().st_size)
    assert again.has("leader-0")
    assert again.put(episode(), "leader-3").number == 4
    assert numbers(tmp_path) == [1, 2, 4]


@pytest.mark.parametrize("bad", [{"namespace": ".."}, {"lws": "a/b"}, {"group": ""}])
def test_name_outside_of_the_directory_is_rejected(tmp_path: Path, bad: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="cannot be used as file names"):
        Store(tmp_path).put(msgspec.structs.replace(episode(), **bad), "leader")
    with pytest.raises(ValueError, match="cannot be used as file names"):
        Store(tmp_path).put(episode(), "../leader")
    assert list(tmp_path.iterdir()) == []


def test_foreign_and_damaged_files_are_ignored(tmp_path: Path) -> None:
    Store(tmp_path).put(episode(), "leader")
    (folder := tmp_path / "default" / "web" / "0").joinpath("notes.json").write_text("{}")
    folder.joinpath("2-damaged.json").write_text('{"namespace": 1')
    found = list(filestore.places(tmp_path))
    assert [place.number for place in found] == [1, 2]
    assert [filestore.read(place) is None for place in found] == [False, True]
    found[0].path.unlink()
    assert filestore.read(found[0]) is None


WRITER = """
import sys
from pathlib import Path
import msgspec
from leaderworkerset.api.episode import Episode
from leaderworkerset.recording.filestore import Store
kept = Store(Path(sys.argv[1]), max_per_set=300_000)
episode = msgspec.json.decode(sys.argv[3], type=Episode)
print("writes", flush=True)
for number in range(10**9):
    kept.put(episode, f"leader-{sys.argv[2]}-{number}")
"""


def test_killed_writer_leaves_readable_episodes(tmp_path: Path) -> None:
    highest = 0
    for attempt in range(4):
        command = [sys.executable, "-c", WRITER, str(tmp_path), str(attempt), msgspec.json.encode(episode()).decode()]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "writes\n"
            with pytest.raises(subprocess.TimeoutExpired):
                writer.wait(0.02 + 0.03 * attempt)
            writer.send_signal(signal.SIGKILL)
        found = list(filestore.places(tmp_path))
        assert None not in [filestore.read(place) for place in found]
        assert found[-1].number > highest
        highest = found[-1].number


def test_unfinished_files_are_removed(tmp_path: Path) -> None:
    (tmp_path / filestore.UNFINISHED).write_text('{"namespace"')
    Store(tmp_path)
    assert list(tmp_path.iterdir()) == []
