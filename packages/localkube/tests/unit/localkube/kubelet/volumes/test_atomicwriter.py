"""Tests files that are updated together atomically."""

from pathlib import Path

from localkube.kubelet.volumes import atomicwriter
from localkube.kubelet.volumes.payload import File


def content(volume: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(volume)): path.read_bytes()
        for path in sorted(volume.rglob("*"))
        if path.is_file() and not path.relative_to(volume).parts[0].startswith("..")
    }


def test_files_are_links_into_the_current_version(tmp_path: Path) -> None:
    assert atomicwriter.write(tmp_path, {"a": File(b"1", 0o400), "sub/b": File(b"2", 0o644)}, "v1")
    assert (tmp_path / "..data").readlink() == Path("..v1")
    assert (tmp_path / "a").readlink() == Path("..data/a")
    assert (tmp_path / "sub" / "b").read_bytes() == b"2"
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o400


def test_new_version_replaces_the_old_one_completely(tmp_path: Path) -> None:
    atomicwriter.write(tmp_path, {"a": File(b"1", 0o644), "gone": File(b"x", 0o644)}, "v1")
    assert atomicwriter.write(tmp_path, {"a": File(b"2", 0o644), "new": File(b"y", 0o644)}, "v2")
    assert content(tmp_path) == {"a": b"2", "new": b"y"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["..data", "..v2", "a", "new"]


def test_open_file_keeps_its_version(tmp_path: Path) -> None:
    atomicwriter.write(tmp_path, {"a": File(b"1", 0o644)}, "v1")
    with (tmp_path / "a").open("rb") as file:
        atomicwriter.write(tmp_path, {"a": File(b"2", 0o644)}, "v2")
        assert file.read() == b"1"


def test_unchanged_files_are_not_written(tmp_path: Path) -> None:
    files = {"a": File(b"1", 0o644), "sub/b": File(b"2", 0o600)}
    atomicwriter.write(tmp_path, files, "v1")
    assert not atomicwriter.write(tmp_path, files, "v2")
    assert atomicwriter.write(tmp_path, {**files, "a": File(b"1", 0o600)}, "v3")
