"""Tests local clusters: they retain their options, are listed, and are stopped by name or together."""

import json
from pathlib import Path

import pytest
from testkit.waiting import until
from tests.e2e.harness import SELDOM, LocalCluster, Shell, lws

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]


def test_two_clusters_keep_their_options_and_end_together(shell: Shell) -> None:
    shell.lws("up", "one", "--detach", "--nodes=2", "--gpus-per-node=8")
    shell.lws("up", "--local=two", "--detach")

    again = shell.lws("up", "one", "--detach", "--nodes=5", code=1)
    assert " without --nodes=5; run `lws down one`, and then rerun this" in again.stderr
    assert "is already running" in shell.lws("up", "one", "--detach", "--nodes=2").stdout
    listed = json.loads(shell.lws("clusters", "-o", "json").stdout)["items"]
    assert {one["name"]: (one["state"], one["nodes"], one["pods"]) for one in listed} == {
        "one": ("running", 2, 0),
        "two": ("running", 1, 0),
    }

    assert shell.lws("down", "--all").stdout == "Cluster one stopped.\nCluster two stopped.\n"
    after = shell.lws("up", "one", "--detach", "--nodes=3")
    assert "Options of the previous `lws up` (use --defaults to reset them): --gpus-per-node=8" in after.stdout
    (running,) = [one for one in json.loads(shell.lws("clusters", "-o", "json").stdout)["items"] if one["pid"]]
    assert (running["name"], running["nodes"]) == ("one", 3)

    shell.lws("down", "--all", "--delete")
    assert json.loads(shell.lws("clusters", "-o", "json").stdout)["items"] == []
    shell.assert_nothing_is_left()


def test_image_is_mapped_while_the_cluster_runs(shell: Shell, tmp_path: Path) -> None:
    """The pod waits for its command.

    It starts after the image is mapped, and the mapping is reused for the next start.
    """
    program = tmp_path / "engine" / "bin" / "serve-it"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\nexec sleep 1000\n")
    program.chmod(0o755)
    cluster = LocalCluster(shell, "mapped")
    shell.lws("up", "mapped", "--detach")
    cluster.apply(lws("engine", {"image": "engine:1", "command": ["serve-it"]}))
    lacking = "(LWS-E057): pod engine-0 has no executable on this machine"
    until(lambda: lacking in cluster.ended("explain", "engine").stdout, "the cause", poll=SELDOM)
    told = shell.lws("up", "mapped", f"--image=engine={program.parents[1]}").stdout
    assert f"Image engine is now mapped to {program.parents[1]} for new containers." in told
    cluster.lws("wait", "engine", "--timeout=120s")
    shell.lws("down", "mapped")
    assert f"--image=engine={program.parents[1]}" in shell.lws("up", "mapped", "--detach").stdout
    shell.lws("down", "mapped", "--delete")
