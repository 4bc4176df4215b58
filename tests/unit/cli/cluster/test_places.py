"""A cluster has a directory; the kernel knows whether it runs."""

import stat
from pathlib import Path

import pytest

from leaderworkerset.cli.cluster import places
from leaderworkerset.cli.errors import CommandError, UsageFault


@pytest.fixture(autouse=True)
def state_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LWS_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def test_a_place_is_private_and_held_by_one_process(state_home: Path) -> None:
    place = places.place("demo")
    assert place.pid() is None
    with place.held():
        assert stat.S_IMODE(place.directory.stat().st_mode) == 0o700
        assert place.pid() is not None
        with pytest.raises(CommandError, match="cluster demo runs already"), places.place("demo").held():
            pass
    assert place.pid() is None
    assert place.directory == state_home / "demo"


def test_what_killed_runs_left_is_removed(state_home: Path) -> None:
    stale = state_home / "run-1"
    stale.mkdir(parents=True)
    kept = state_home / "default"
    kept.mkdir()
    place = places.ephemeral()
    assert place.name.startswith("run-")
    assert not stale.exists()
    assert kept.exists()


@pytest.mark.parametrize("name", ["", "a/b", "..", "Big", "-a", "a" * 41])
def test_names_are_checked(name: str) -> None:
    with pytest.raises(UsageFault, match="cluster name"):
        places.place(name)


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LWS_STATE_HOME", str(tmp_path / "file"))
    with pytest.raises(CommandError, match="LWS_STATE_HOME"), places.place("demo").held():
        pass


def test_the_state_directory_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LWS_STATE_HOME")
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert places.home() == Path("/state/lws")
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", "/home/someone")
    assert places.home() == Path("/home/someone/.local/state/lws")
    assert places.all_places() == []
