"""Clusters of this machine over their lives: they keep their options, are listed, and are stopped by name or all."""

import json

import pytest
from tests.e2e.harness import Shell

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]


def test_two_clusters_keep_their_options_and_end_together(shell: Shell) -> None:
    shell.lws("up", "one", "--detach", "--nodes=2", "--gpus-per-node=8")
    shell.lws("up", "--local=two", "--detach")

    again = shell.lws("up", "one", "--detach", "--nodes=5")
    assert "Ignored, because it runs (it has --nodes=2): --nodes=5. To use them: `lws down one`" in again.stderr
    listed = json.loads(shell.lws("clusters", "-o", "json").stdout)["items"]
    assert {one["name"]: (one["state"], one["nodes"], one["pods"]) for one in listed} == {
        "one": ("running", 2, 0),
        "two": ("running", 1, 0),
    }

    assert shell.lws("down", "--all").stdout == "Cluster one stopped.\nCluster two stopped.\n"
    after = shell.lws("up", "one", "--detach", "--nodes=3")
    assert "Options of the last `lws up` (--defaults leaves them out): --gpus-per-node=8" in after.stdout
    (running,) = [one for one in json.loads(shell.lws("clusters", "-o", "json").stdout)["items"] if one["pid"]]
    assert (running["name"], running["nodes"]) == ("one", 3)

    shell.lws("down", "--all", "--delete")
    assert json.loads(shell.lws("clusters", "-o", "json").stdout)["items"] == []
    shell.assert_nothing_is_left()
