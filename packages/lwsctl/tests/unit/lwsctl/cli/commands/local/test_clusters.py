"""Tests the list of a user's clusters, and which of them `lws down --all` stops."""

import json
from pathlib import Path

import pytest

from lwsctl.cli import app
from lwsctl.cli.cluster import clusterdirectories
from lwsctl.cli.commands.local import down
from lwsctl.cli.local import savedoptions
from lwsctl.cli.local.clusteroptions import ClusterOptions


@pytest.fixture(autouse=True)
def state_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LWS_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def stopped(name: str, nodes: int = 1) -> None:
    place = clusterdirectories.cluster_directory(name)
    with place.hold_lock():
        savedoptions.save(place, ClusterOptions(nodes=nodes))


def test_stopped_clusters_are_listed(state_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stopped("one", nodes=3)
    (state_home / "documents").mkdir()
    with clusterdirectories.create_ephemeral().hold_lock():
        pass
    assert app.run(["clusters"]) == 0
    header, first, second = capsys.readouterr().out.splitlines()
    assert header.split() == ["NAME", "STATE", "SINCE", "NODES", "PODS", "DIRECTORY"]
    assert first.split() == ["one", "stopped", "-", "3", "-", str(state_home / "one")]
    assert "left over" in second


def test_unresponsive_cluster_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    with clusterdirectories.cluster_directory("one").hold_lock():
        assert app.run(["clusters", "-o", "json"]) == 0
    (item,) = json.loads(capsys.readouterr().out)["items"]
    assert (item["name"], item["state"], item["nodes"], item["pods"]) == ("one", "not responding", None, None)


def test_empty_cluster_list_suggests_lws_up(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["clusters"]) == 0
    assert "Start one with `lws up`" in capsys.readouterr().err


def test_down_all_includes_stopped_clusters_only_with_delete() -> None:
    stopped("one")
    run = clusterdirectories.create_ephemeral()
    with run.hold_lock(), clusterdirectories.cluster_directory("two").hold_lock():
        assert [place.name for place in down.clusters(deletes=False)] == ["two"]
        assert [place.name for place in down.clusters(deletes=True)] == ["one", "two"]


def test_unknown_cluster_name_gets_the_existing_ones(capsys: pytest.CaptureFixture[str]) -> None:
    stopped("training")
    assert app.run(["down", "trainin"]) == 0
    assert app.run(["down", "--local=training", "--delete"]) == 0
    assert app.run(["down", "--all"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        'Cluster trainin does not exist (existing: training), did you mean "training"?',
        "Cluster training deleted.",
        "No clusters are running.",
    ]
