"""Tests mount plans with simulated file systems."""

import posixpath
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localkube.kubelet.sandbox.launcher.kernel.mountplan import Bind, Cover, Place, Plan, plan, resolve


@dataclass(frozen=True)
class Tree:
    """Directories, files and symbolic links. A link is represented by its name and its target."""

    directories: frozenset[str]
    files: frozenset[str] = frozenset()
    links: tuple[tuple[str, str], ...] = ()

    def is_directory(self, path: str) -> bool | None:
        if path in self.directories:
            return True
        return False if path in self.files or path in dict(self.links) else None

    def link(self, path: str) -> str | None:
        return dict(self.links).get(path)


HOST = Tree(
    directories=frozenset({"/", "/etc", "/tmp", "/mnt", "/run", "/volume", "/image", "/image/etc"}),
    files=frozenset({"/etc/hosts", "/settings"}),
    links=(("/var", "run/../mnt"), ("/loop", "/loop"), ("/image/out", "/../../etc")),
)


def test_existing_path_is_mounted_without_a_cover() -> None:
    assert plan(HOST, "/", [Bind("/volume", "/mnt")]) == Plan([], [], [Bind("/volume", "/mnt")])


def test_missing_path_is_created_in_a_cover() -> None:
    assert plan(HOST, "/", [Bind("/volume", "/etc/a/b", read_only=True)]) == Plan(
        [Cover("/etc", "/etc")], [Place("/etc/a/b", is_directory=True)], [Bind("/volume", "/etc/a/b", read_only=True)]
    )


def test_missing_path_of_a_file_is_a_file() -> None:
    assert plan(HOST, "/", [Bind("/settings", "/etc/settings")]).places == [Place("/etc/settings", is_directory=False)]


def test_missing_paths_share_a_cover_in_order() -> None:
    wanted = [Bind("/volume", "/etc/x"), Bind("/volume", "/data"), Bind("/volume", "/models")]
    assert plan(HOST, "/", wanted).covers == [Cover("/", "/"), Cover("/etc", "/etc")]


def test_private_directory_is_covered_if_it_exists() -> None:
    assert plan(HOST, "/", [], private=("/tmp", "/no-such")).covers == [Cover("/tmp", "/tmp")]


def test_path_inside_a_volume_is_created_after_its_mount() -> None:
    wanted = [Bind("/volume", "/mnt/cache"), Bind("/volume", "/mnt")]
    assert plan(HOST, "/", wanted) == Plan(
        [], [], [Bind("/volume", "/mnt"), Place("/mnt/cache", is_directory=True), Bind("/volume", "/mnt/cache")]
    )


def test_mounts_at_the_same_path_keep_their_order() -> None:
    wanted = [Bind("/settings", "/etc/hosts"), Bind("/volume/x", "/etc/hosts")]
    assert [step.source for step in plan(HOST, "/", wanted).mounts if isinstance(step, Bind)] == [
        "/settings",
        "/volume/x",
    ]


def test_links_in_a_mount_path_are_followed() -> None:
    assert plan(HOST, "/", [Bind("/volume", "/var")]).mounts == [Bind("/volume", "/mnt")]


def test_image_is_covered_from_its_own_directory() -> None:
    assert plan(HOST, "/image", [Bind("/volume", "/etc/x")]).covers == [Cover("/image/etc", "/etc")]


def test_links_do_not_leave_an_image() -> None:
    assert resolve(HOST, "/image", "/out/../../x") == "/x"
    assert resolve(HOST, "/image", "/out/hosts") == "/etc/hosts"


def test_cyclic_links_are_rejected() -> None:
    with pytest.raises(ValueError, match="/loop: too many symbolic links"):
        resolve(HOST, "/", "/loop")


PATHS = st.lists(st.sampled_from(["a", "b", "etc", "mnt", "..", "."]), min_size=1, max_size=5).map(
    lambda parts: "/" + "/".join(parts)
)


@given(st.lists(PATHS, max_size=6))
def test_every_mount_path_exists_when_it_is_mounted(targets: list[str]) -> None:
    made = plan(HOST, "/", [Bind("/volume", target) for target in targets])
    assert sorted(step.target for step in made.mounts if isinstance(step, Bind)) == sorted(
        posixpath.normpath(target) for target in targets
    )
    there = set(HOST.directories)
    for cover in made.covers:
        assert HOST.is_directory(cover.source)
        assert cover.source == cover.target
    for step in [*made.places, *made.mounts]:
        if isinstance(step, Place):
            there |= {step.target, posixpath.dirname(step.target)}
        else:
            assert step.target in there or any(step.target.startswith(f"{path}/") for path in there)
