"""Tests `lws plan` with a snapshot, `lws apply --dry-run=client`, and `lws diff` without a cluster."""

import json
from pathlib import Path

import pytest
import yaml
from tests import builders

from lwsctl.cli import app
from lwsctl.model.leaderworkerset import view
from lwsctl.rollout import snapshots

OLD = builders.leaderworkerset_object(image="app:1", replicas=2, size=1)


@pytest.fixture(name="saved")
def _saved(tmp_path: Path) -> str:
    """Save a snapshot with two ready groups."""
    pods = [builders.leader_pod(OLD, index) for index in range(2)]
    path = tmp_path / "saved.yaml"
    path.write_text(yaml.safe_dump(snapshots.build([view(OLD, pods)])))
    return str(path)


def manifest(tmp_path: Path, **fields: object) -> str:
    """Write a manifest in the usual form."""
    template = {"spec": {"containers": [{"name": "main", "image": "app:2"}]}}
    obj = {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "web"},
        "spec": {"replicas": 2, "leaderWorkerTemplate": {"size": 1, "workerTemplate": template}} | fields,
    }
    path = tmp_path / "lws.yaml"
    path.write_text(yaml.safe_dump(obj))
    return str(path)


def test_plan_from_a_snapshot_lists_changes(tmp_path: Path, saved: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["plan", "-f", manifest(tmp_path), "--snapshot", saved]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "web: 1 field would change",
        "  spec.leaderWorkerTemplate.workerTemplate.spec.containers[main].image: app:1 -> app:2",
        "a new revision: 2 groups of 1 pod would be created",
        "  step 1: group 1; 1 available",
        "  step 2: group 0; 1 available",
        "at most 0 extra pods; at least 1 of 2 groups available",
    ]


def test_plan_from_a_snapshot_is_available_as_json(
    tmp_path: Path, saved: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.run(["plan", "-f", manifest(tmp_path), "--snapshot", saved, "-o", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["apiVersion"], shown["kind"]) == ("lws/v1", "RolloutPlanList")
    (plan,) = shown["items"]
    assert [step["groups"] for step in plan["steps"]] == [[1], [0]]
    assert plan["estimatedSeconds"] is None


def test_object_missing_from_the_snapshot_would_be_created(
    tmp_path: Path, saved: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.run(["-n", "other", "plan", "-f", manifest(tmp_path), "--snapshot", saved]) == 0
    assert capsys.readouterr().out.startswith("web: created\n2 groups of 1 pod would be created\n")


def test_plan_of_too_many_groups_is_rejected_by_name(
    tmp_path: Path, saved: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = manifest(tmp_path, replicas=20_000)
    assert app.run(["plan", "-f", path, "--snapshot", saved]) == 1
    assert f"{path}:1: leaderworkerset/web: forecasts are limited to 10000 groups" in capsys.readouterr().err


def test_invalid_value_stored_in_the_snapshot_is_planned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """25 % of two groups is zero after scaling down. Stored values do not block a plan (ADR 29)."""
    scaled = builders.leaderworkerset_object(rollout={"maxUnavailable": "25%"})
    path = tmp_path / "scaled.yaml"
    path.write_text(yaml.safe_dump(snapshots.build([view(scaled, [])])))
    document = tmp_path / "new.yaml"
    document.write_text(
        yaml.safe_dump(builders.leaderworkerset_object(image="app:2", rollout={"maxUnavailable": "25%"}))
    )

    assert app.run(["plan", "-f", str(document), "--snapshot", str(path)]) == 0
    assert "app:1 -> app:2" in capsys.readouterr().out


def test_client_dry_run_checks_a_manifest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["apply", "--dry-run=client", "-f", manifest(tmp_path)]) == 0
    assert capsys.readouterr().out == "leaderworkerset/web accepted (dry run, without the API server)\n"
    assert app.run(["apply", "--dry-run=client", "-f", manifest(tmp_path, replicas=-1)]) == 1
    assert "spec.replicas: Invalid value: -1" in capsys.readouterr().err


def test_diff_of_a_missing_file_exits_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["diff", "-f", str(tmp_path / "missing.yaml")]) == 2
    assert "missing.yaml" in capsys.readouterr().err


def test_snapshot_options_are_mutually_exclusive(
    tmp_path: Path, saved: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["plan", "-f", manifest(tmp_path), "--snapshot", saved, "--save-snapshot", saved]
    assert app.run(words) == 2
    assert "cannot be combined" in capsys.readouterr().err
