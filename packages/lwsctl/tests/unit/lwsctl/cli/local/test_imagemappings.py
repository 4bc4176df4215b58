"""Tests the images of a local cluster, and images that are mapped while the cluster is running."""

import os
from pathlib import Path

import pytest

from lwsctl.cli.cluster.clusterdirectories import OPTIONS, ClusterDirectory
from lwsctl.cli.local import imagemappings, savedoptions
from lwsctl.cli.local.clusteroptions import ClusterOptions
from lwsctl.cli.local.imagemappings import ImageMappings


def options(**images: str) -> ClusterOptions:
    """Return options with these mappings."""
    return ClusterOptions(images=tuple((name, Path(directory)) for name, directory in images.items()))


@pytest.fixture
def place(tmp_path: Path) -> ClusterDirectory:
    """Tests the directory of a cluster."""
    return ClusterDirectory("web", tmp_path)


def test_added_mapping_reaches_the_running_cluster(place: ClusterDirectory) -> None:
    images = ImageMappings(place, options(a="/a"))
    assert dict(images) == {"a": Path("/a")}
    savedoptions.save(place, options(a="/other", b="/b"))
    assert (images.get("a"), images.get("b"), images.get("c"), len(images)) == (Path("/other"), Path("/b"), None, 2)
    assert place.mapped_images() == ("a", "b")


def test_options_of_an_earlier_run_are_ignored(place: ClusterDirectory) -> None:
    savedoptions.save(place, options(old="/old"))
    assert dict(ImageMappings(place, options(a="/a"))) == {"a": Path("/a")}


def test_damaged_file_does_not_change_the_mappings(place: ClusterDirectory) -> None:
    images = ImageMappings(place, options(a="/a"))
    (place.directory / OPTIONS).write_text("[1]")
    os.utime(place.directory / OPTIONS, ns=(1, 1))
    assert dict(images) == {"a": Path("/a")}
    assert place.mapped_images() is None


def test_mapping_of_the_same_name_is_replaced() -> None:
    assert imagemappings.merge_mappings(options(a="/a", b="/b"), options(a="/c")) == (
        ("a", Path("/c")),
        ("b", Path("/b")),
    )
