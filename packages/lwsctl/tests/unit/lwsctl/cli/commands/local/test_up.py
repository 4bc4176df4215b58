"""Tests that the commands in the output of `lws up` work."""

import socket
import subprocess
from pathlib import Path

import pytest

from lwsctl.cli import app, errors
from lwsctl.cli.cluster import clusterdirectories
from lwsctl.cli.cluster.clusterdirectories import ClusterDirectory
from lwsctl.cli.commands.local.up import cluster_options_hint


def test_kubeconfig_line_is_quoted_for_shells(tmp_path: Path) -> None:
    directory = tmp_path / "it's a; $(touch hostile) home" / "default"
    line = cluster_options_hint(ClusterDirectory("default", directory))[-1]
    script = f'{line}; printf %s "$KUBECONFIG"'
    result = subprocess.run(["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert result.stdout == str(directory / "kubeconfig")
    assert list(tmp_path.iterdir()) == []


def test_failed_start_leaves_no_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LWS_STATE_HOME", str(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as other:
        words = ["up", "new", "--port", str(other.getsockname()[1])]
        assert app.run(words) == errors.FAILED
        assert "in use by a different process" in capfd.readouterr().err
        assert clusterdirectories.all_directories() == []
        own = ClusterDirectory("new", tmp_path / "new")
        own.create_private()
        own.database.touch(mode=0o600)
        own.log.touch(mode=0o600)
        own.lock.touch(mode=0o600)
        assert app.run(words) == errors.FAILED
        assert own.database.exists()
        own.database.unlink()
        assert app.run(words) == errors.FAILED
        assert [path.name for path in own.directory.iterdir()] == [own.log.name]


def test_unwritable_home_has_one_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "file"
    home.touch()
    monkeypatch.setenv("LWS_STATE_HOME", str(home))
    assert app.run(["up"]) == errors.FAILED
    assert capsys.readouterr().err == f"error: {home}: File exists; {clusterdirectories.SET_HOME}\n"
