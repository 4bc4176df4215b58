"""Tests that paths are opened safely in directories that another process changes at the same time."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from localkube.kubelet.processes import safeopen
from localkube.kubelet.processes.safeopen import OpenOptions, PathEscapeError

MAKING = OpenOptions(creates_directories=True)
ROUNDS = 2000


def opened_path(root: Path, path: str, wish: OpenOptions = MAKING) -> Path:
    with safeopen.open_in_root(str(root), path, wish) as handle:
        return Path(f"/proc/self/fd/{handle}").readlink()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "secret").mkdir()
    (tmp_path / "root" / "a" / "b").mkdir(parents=True)
    return tmp_path / "root"


@pytest.mark.parametrize("path", ["a/b", "./a//b/", "a/../a/b", "link", "a/up/a/b"])
def test_paths_and_links_inside_the_root_are_opened(root: Path, path: str) -> None:
    (root / "link").symlink_to("a/b")
    (root / "a" / "up").symlink_to("..")
    assert opened_path(root, path) == root / "a" / "b"


@pytest.mark.parametrize("target", ["../secret", "/etc", "a/../../secret", ".."])
@pytest.mark.parametrize("path", ["link", "link/x"])
def test_links_out_of_the_root_are_rejected(root: Path, target: str, path: str) -> None:
    (root / "link").symlink_to(target)
    with pytest.raises(PathEscapeError):
        opened_path(root, path)
    assert not any((root.parent / "secret").iterdir())


def test_links_of_a_container_root_stay_inside(root: Path) -> None:
    (root / "link").symlink_to("/a/../../../a/b")
    assert opened_path(root, "link", OpenOptions(is_root=True)) == root / "a" / "b"


def test_cyclic_links_are_rejected(root: Path) -> None:
    (root / "circle").symlink_to("circle")
    with pytest.raises(OSError, match="circle"):
        opened_path(root, "circle")


def test_missing_paths_are_created_only_on_request(root: Path) -> None:
    with pytest.raises(FileNotFoundError):
        opened_path(root, "x/y", OpenOptions())
    assert opened_path(root, "x/y") == root / "x" / "y"
    assert opened_path(root, "p/q", OpenOptions(creates_directories=True, creates_file=True)).is_file()


def test_descriptors_are_closed(root: Path) -> None:
    (root / "link").symlink_to("/etc")
    before = len(list(Path("/proc/self/fd").iterdir()))
    opened_path(root, "a/b")
    with pytest.raises(PathEscapeError):
        opened_path(root, "link")
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@contextmanager
def swapping(place: Path, directory: Path, link: Path) -> Iterator[None]:
    """Replace a directory with a symbolic link and restore it, as often as possible."""
    ending = threading.Event()

    def swap() -> None:
        aside = place.with_name("aside")
        while not ending.is_set():
            place.rename(aside)
            link.rename(place)
            place.rename(link)
            aside.rename(place)

    directory.rename(place)
    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()


def test_exchanged_directory_never_leads_out(root: Path) -> None:
    (root / "link").symlink_to("../secret")
    (root / "directory" / "inner").mkdir(parents=True)
    (root.parent / "secret" / "inner").mkdir()
    found = set()
    with swapping(root / "place", root / "directory", root / "link"):
        for _ in range(ROUNDS):
            try:
                with safeopen.open_in_root(str(root), "place/inner") as handle:
                    found.add(os.fstat(handle).st_ino)
            except (PathEscapeError, FileNotFoundError):
                continue
    assert found <= {(root / "place" / "inner").stat().st_ino}
