"""Tests that only the owner of a state directory can access its files."""

import os
from pathlib import Path

import pytest

from localkube import statedirectory
from localkube.statedirectory import StateDirectoryError, make_private

FILES = ("state.db", "state.db-wal", "state.db-shm", "kubeconfig", "identity.json", "cluster.log", "lock")
NOBODY = 65534


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777], ids=oct)
def test_new_directory_is_private_with_any_umask(umask: int, tmp_path: Path) -> None:
    before = os.umask(umask)
    try:
        make_private(tmp_path / "home" / "lws" / "default")
    finally:
        os.umask(before)
    assert [mode(tmp_path / path) for path in ("home", "home/lws", "home/lws/default")] == [0o700] * 3


def test_existing_directory_becomes_private_with_its_files(tmp_path: Path) -> None:
    directory = tmp_path / "default"
    (directory / "pods").mkdir(parents=True)
    for name in FILES:
        (directory / name).touch()
        (directory / name).chmod(0o644)
    directory.chmod(0o755)
    (directory / "pods").chmod(0o755)
    make_private(directory)
    assert mode(directory) == 0o700
    assert {mode(directory / name) for name in FILES} == {0o600}
    assert mode(directory / "pods") == 0o755


def test_parent_directories_are_unchanged(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    make_private(tmp_path / "default")
    assert mode(tmp_path) == 0o755


def test_link_to_an_own_directory_is_followed(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir(mode=0o755)
    (tmp_path / "default").symlink_to("disk")
    make_private(tmp_path / "default")
    assert mode(tmp_path / "disk") == 0o700


def test_linked_file_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").touch(mode=0o644)
    (tmp_path / "default").mkdir()
    (tmp_path / "default" / "state.db").symlink_to("../elsewhere")
    with pytest.raises(StateDirectoryError, match=r"state\.db is a symbolic link. Replace it with a regular file"):
        make_private(tmp_path / "default")
    assert mode(tmp_path / "elsewhere") == 0o644


def test_link_to_a_data_directory_is_unchanged(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir(mode=0o755)
    (tmp_path / "default").mkdir()
    (tmp_path / "default" / "claims").symlink_to("../disk")
    make_private(tmp_path / "default")
    assert mode(tmp_path / "disk") == 0o755


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("foreign", ["default", "default/state.db"])
def test_file_of_a_different_user_is_rejected(foreign: str, tmp_path: Path) -> None:
    (tmp_path / "default").mkdir()
    (tmp_path / "default" / "state.db").touch(mode=0o644)
    os.chown(tmp_path / foreign, NOBODY, NOBODY)
    with pytest.raises(StateDirectoryError, match=rf"{foreign}: belongs to user {NOBODY}, but the current user is 0"):
        make_private(tmp_path / "default")
    assert mode(tmp_path / "default" / "state.db") == 0o644


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_link_of_a_different_user_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir(mode=0o755)
    (tmp_path / "default").symlink_to("disk")
    os.lchown(tmp_path / "default", NOBODY, NOBODY)
    with pytest.raises(StateDirectoryError, match="default: belongs to user"):
        make_private(tmp_path / "default")
    assert mode(tmp_path / "disk") == 0o755


def test_new_log_is_private_and_an_old_one_continues(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        for text in (b"one ", b"two"):
            with statedirectory.open_private(tmp_path / "cluster.log") as log:
                log.write(text)
    finally:
        os.umask(before)
    assert (tmp_path / "cluster.log").read_bytes() == b"one two"
    assert mode(tmp_path / "cluster.log") == 0o600
