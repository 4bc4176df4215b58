"""Tests that files with credentials are read only if other users cannot write to them."""

import os
import stat
from pathlib import Path

import pytest

from kuberuntime.access.filepermissions import OwnershipError, require_own, require_private

NOBODY = 65534
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    made = tmp_path / "home" / "lws" / "default"
    made.mkdir(parents=True, mode=0o755)
    (made / "kubeconfig").touch(mode=0o600)
    return made


def test_private_directory_is_accepted(directory: Path) -> None:
    require_private(directory)
    require_own(directory / "kubeconfig")


@pytest.mark.parametrize("above", ["home", "home/lws"])
def test_directory_below_a_writable_directory_is_rejected(directory: Path, tmp_path: Path, above: str) -> None:
    (tmp_path / above).chmod(0o777)
    with pytest.raises(
        OwnershipError, match=rf"/{above}: other users have write permission \(mode 0777\)\. Run `chmod go-w "
    ):
        require_private(directory)


def test_sticky_directory_is_accepted_only_as_a_parent(directory: Path, tmp_path: Path) -> None:
    (tmp_path / "home").chmod(0o777 | stat.S_ISVTX)
    require_private(directory)
    directory.chmod(0o777 | stat.S_ISVTX)
    with pytest.raises(OwnershipError, match="default: other users have write permission"):
        require_private(directory)


@only_root
@pytest.mark.parametrize(("group", "is_refused"), [(0, False), (NOBODY, True)])
def test_directory_writable_by_a_shared_group_is_rejected(directory: Path, group: int, is_refused: bool) -> None:
    os.chown(directory.parent, 0, group)
    directory.parent.chmod(0o775)
    if is_refused:
        with pytest.raises(OwnershipError, match="lws: other users have write permission"):
            require_private(directory)
    else:
        require_private(directory)


@only_root
@pytest.mark.parametrize("foreign", ["default", "default/kubeconfig"])
def test_foreign_directory_or_file_is_rejected(directory: Path, foreign: str) -> None:
    os.chown(directory.parent / foreign, NOBODY, NOBODY)
    with pytest.raises(OwnershipError, match=f"{foreign}: belongs to user {NOBODY}, but the current user is 0"):
        require_private(directory)


def test_links_are_followed_and_their_targets_checked(directory: Path, tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "way").symlink_to("open/../home/lws")
    require_private(tmp_path / "way" / "default")
    (tmp_path / "open" / "inner").symlink_to("../home")
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(OwnershipError, match="/open: other users have write permission"):
        require_private(tmp_path / "open" / "inner" / "lws" / "default")


@only_root
def test_link_of_a_different_user_is_rejected(directory: Path, tmp_path: Path) -> None:
    (tmp_path / "way").symlink_to("home")
    os.lchown(tmp_path / "way", NOBODY, NOBODY)
    require_private(tmp_path / "way" / "lws" / "default")
    with pytest.raises(OwnershipError, match="way: belongs to user"):
        require_own(tmp_path / "way")


def test_cycle_of_links_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    with pytest.raises(OwnershipError, match="too many symbolic links"):
        require_own(tmp_path / "one")
