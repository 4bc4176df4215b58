"""Tests that a cluster restarts with its stored options unless other options are specified."""

from pathlib import Path

import pytest

from lwsctl.cli.cluster.clusterdirectories import OPTIONS, ClusterDirectory
from lwsctl.cli.errors import CommandError
from lwsctl.cli.local import savedoptions
from lwsctl.cli.local.clusteroptions import ClusterOptions

EVERYTHING = ClusterOptions(
    nodes=4,
    node_labels=("rack=r{i//2}",),
    node_taints=("gpu:NoSchedule",),
    node_capacity=("cpu=8",),
    gpus_per_node=8,
    expose_gpus=True,
    ignore_memory_limits=True,
    network="shared",
    images=(("vllm", Path("/opt/vllm")),),
    stub=("missing",),
    max_pods=7,
    port=6443,
)


@pytest.fixture
def place(tmp_path: Path) -> ClusterDirectory:
    return ClusterDirectory("demo", tmp_path)


def test_options_round_trip(place: ClusterDirectory) -> None:
    savedoptions.save(place, EVERYTHING)
    assert savedoptions.load(place) == EVERYTHING


def test_options_file_is_private_and_replaced_atomically(place: ClusterDirectory) -> None:
    savedoptions.save(place, EVERYTHING)
    savedoptions.save(place, ClusterOptions())
    assert savedoptions.load(place) == ClusterOptions()
    assert {path.name: path.stat().st_mode & 0o777 for path in place.directory.iterdir()} == {"options.json": 0o600}


def test_cluster_that_was_never_started_has_no_options(place: ClusterDirectory) -> None:
    assert savedoptions.load(place) is None
    assert savedoptions.load(ClusterDirectory("none", place.directory / "none")) is None


def test_unknown_options_of_a_different_version_are_ignored(place: ClusterDirectory) -> None:
    (place.directory / OPTIONS).write_text('{"nodes": 3, "of_the_future": [1]}')
    assert savedoptions.load(place) == ClusterOptions(nodes=3)


@pytest.mark.parametrize(("kept", "stub"), [("true", ("missing",)), ("false", ())])
def test_switch_of_an_earlier_version_is_converted(place: ClusterDirectory, kept: str, stub: tuple[str, ...]) -> None:
    (place.directory / OPTIONS).write_text(f'{{"nodes": 3, "stub": {kept}}}')
    assert savedoptions.load(place) == ClusterOptions(nodes=3, stub=stub)


@pytest.mark.parametrize("text", ["", "[1]", '{"nodes": "four"}'])
def test_damaged_options_file_error_suggests_defaults(place: ClusterDirectory, text: str) -> None:
    (place.directory / OPTIONS).write_text(text)
    with pytest.raises(CommandError, match=r"options\.json: .*; use `lws up demo --defaults` to start without it"):
        savedoptions.load(place)


def test_given_options_override_the_stored_ones() -> None:
    kept = ClusterOptions(nodes=4, gpus_per_node=8, log_level="debug")
    combined = savedoptions.combine(ClusterOptions(nodes=1), {"nodes"}, kept)
    assert combined == ClusterOptions(nodes=1, gpus_per_node=8)


def test_difference_lists_the_options_that_differ() -> None:
    assert savedoptions.difference(EVERYTHING, ClusterOptions(nodes=4, stub=("missing",)))[:2] == [
        "--gpus-per-node=8",
        "--network=shared",
    ]
    assert savedoptions.difference(EVERYTHING, EVERYTHING) == []
