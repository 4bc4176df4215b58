"""Tests that a cluster has a directory, and that the kernel reports whether the cluster is running."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from kuberuntime.access.filepermissions import OwnershipError
from lwsctl.cli.cluster import clusterdirectories
from lwsctl.cli.commands.local import down
from lwsctl.cli.errors import CommandError, UsageError


@pytest.fixture(autouse=True)
def state_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LWS_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def test_cluster_directory_is_private_and_locked(state_home: Path) -> None:
    place = clusterdirectories.cluster_directory("demo")
    assert place.pid() is None
    with place.hold_lock():
        assert stat.S_IMODE(place.directory.stat().st_mode) == 0o700
        assert place.pid() is not None
        with (
            pytest.raises(CommandError, match="cluster demo is already running"),
            clusterdirectories.cluster_directory("demo").hold_lock(),
        ):
            pass
    assert place.pid() is None
    assert place.directory == state_home / "demo"


def test_directories_of_killed_runs_are_removed(state_home: Path) -> None:
    killed = clusterdirectories.create_ephemeral()
    with killed.hold_lock():
        (killed.directory / "state.db").write_text("data")
    place = clusterdirectories.create_ephemeral()
    assert place.name.startswith("run-")
    assert not killed.directory.exists() or killed.directory == place.directory
    assert not place.database.exists()


def test_stopped_cluster_is_kept_under_any_name(state_home: Path) -> None:
    own = [
        clusterdirectories.cluster_directory("run-1"),
        clusterdirectories.cluster_directory(f"run-{os.getpid()}"),
        clusterdirectories.cluster_directory("default"),
    ]
    for place in own:
        with place.hold_lock():
            place.database.write_text("data")
    fresh = clusterdirectories.create_ephemeral()
    with fresh.hold_lock():
        fresh.database.write_text("other data")
    fresh.remove()
    assert [place.database.read_text() for place in own] == ["data"] * 3


def test_starting_run_is_kept(state_home: Path) -> None:
    beginning = clusterdirectories.create_ephemeral()
    with beginning.hold_lock():
        clusterdirectories.create_ephemeral()
        assert beginning.lock.exists()


def test_parent_directory_of_clusters_is_kept(state_home: Path) -> None:
    state_home.mkdir()
    place = clusterdirectories.create_ephemeral()
    with place.hold_lock():
        pass
    place.remove()
    assert list(state_home.iterdir()) == []


def test_foreign_directory_is_neither_used_nor_removed(state_home: Path) -> None:
    documents = state_home / "documents"
    documents.mkdir(parents=True)
    (documents / "thesis.txt").write_text("years of work")
    place = clusterdirectories.cluster_directory("documents")
    with pytest.raises(CommandError, match=r"is not a cluster directory, because it contains 'thesis.txt'"):
        place.create_private()
    with pytest.raises(CommandError, match="nothing was deleted"):
        place.remove()
    assert (documents / "thesis.txt").exists()


def test_arbitrary_content_of_a_lock_file_is_ignored(state_home: Path) -> None:
    place = clusterdirectories.cluster_directory("demo")
    with place.hold_lock():
        for content in (b"", b"x", b"-1", b"9" * 40, b"\xff"):
            place.lock.write_bytes(content)
            assert place.pid() is None


def test_state_directory_that_is_a_file_is_an_error(state_home: Path) -> None:
    state_home.write_text("")
    for attempt in (clusterdirectories.all_directories, clusterdirectories.create_ephemeral):
        with pytest.raises(CommandError, match="set LWS_STATE_HOME to a writable directory"):
            attempt()
    assert clusterdirectories.cluster_directory("demo").pid() is None


@pytest.mark.parametrize("name", ["", "a/b", "..", "Big", "-a", "a" * 41])
def test_invalid_cluster_names_are_rejected(name: str) -> None:
    with pytest.raises(UsageError, match="cluster name"):
        clusterdirectories.cluster_directory(name)


def test_directory_that_cannot_be_created_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LWS_STATE_HOME", str(tmp_path / "file"))
    with pytest.raises(CommandError, match="LWS_STATE_HOME"), clusterdirectories.cluster_directory("demo").hold_lock():
        pass


def test_state_directory_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LWS_STATE_HOME")
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert clusterdirectories.home() == Path("/state/lws")
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", "/home/someone")
    assert clusterdirectories.home() == Path("/home/someone/.local/state/lws")
    assert clusterdirectories.all_directories() == []


def test_directory_that_others_write_is_not_read(state_home: Path) -> None:
    for name in ("own", "open"):
        with clusterdirectories.cluster_directory(name).hold_lock():
            pass
    (state_home / "open").chmod(0o777)
    with pytest.raises(OwnershipError, match="open: other users have write permission"):
        clusterdirectories.cluster_directory("open")
    assert [place.name for place in clusterdirectories.all_directories()] == ["own"]
    assert clusterdirectories.find_by_kubeconfig(state_home / "open" / "kubeconfig") is None
    state_home.chmod(0o777)
    with pytest.raises(OwnershipError, match="state: other users have write permission"):
        clusterdirectories.cluster_directory("own")


def test_process_without_the_lock_is_not_stopped(state_home: Path) -> None:
    place = clusterdirectories.cluster_directory("demo")
    with place.hold_lock(), subprocess.Popen(["sleep", "600"]) as bystander:
        place.lock.write_text(f"{bystander.pid}\n")
        with pytest.raises(CommandError, match=f"process {bystander.pid} in .* is not cluster demo"):
            down.stop(place, 10)
        assert bystander.poll() is None
        bystander.kill()


def test_failed_run_records_are_kept_up_to_a_limit() -> None:
    count = clusterdirectories.KEPT_RUNS + 2
    for number in range(count):
        run = clusterdirectories.create_ephemeral()
        with run.hold_lock():
            run.database.touch()
            (run.directory / "pods").mkdir()
            record = run.history / "default" / "web" / "0" / "1-x.json"
            record.parent.mkdir(parents=True)
            record.touch()
            os.utime(run.history, (number, number))
        run.remove_except_record()
        assert {path.name for path in run.directory.iterdir()} == {"history", "ephemeral"}
        assert (run.has_record, run.is_cluster) == (True, False)
    clusterdirectories.create_ephemeral().remove_except_record()
    kept = sorted(int(one.history.stat().st_mtime) for one in clusterdirectories.all_directories())
    assert kept == list(range(2, count))


def test_run_without_failures_leaves_nothing() -> None:
    run = clusterdirectories.create_ephemeral()
    with run.hold_lock():
        run.history.mkdir()
    run.remove_except_record()
    assert not run.directory.exists()
