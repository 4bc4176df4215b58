"""Tests that clients of a local cluster stop with it, and that remote clusters never stop clients."""

from pathlib import Path

import pytest
from testkit.virtualtime import run

from lwsctl.cli.cluster.clusterdirectories import DEFAULT, ClusterDirectory
from lwsctl.cli.cluster.keepalive import Keepalive
from lwsctl.cli.errors import CommandError


@pytest.mark.parametrize(("name", "hint"), [("gpus", "`lws up gpus`"), (DEFAULT, "`lws up`")])
def test_stopped_local_cluster_is_an_error_with_its_name(tmp_path: Path, name: str, hint: str) -> None:
    place = ClusterDirectory(name, tmp_path)
    with pytest.raises(CommandError, match=rf"^cluster {name} has stopped; use {hint} to start it$"):
        run(Keepalive(place).run())


def test_remote_cluster_has_no_lifeline() -> None:
    run(Keepalive().run())
