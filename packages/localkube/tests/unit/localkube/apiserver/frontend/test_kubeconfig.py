"""Tests the kubeconfig of an embedded cluster."""

import base64
import stat
from pathlib import Path

import pytest
import yaml

from localkube.apiserver.frontend.kubeconfig import Access, build_kubeconfig, write_kubeconfig

ACCESS = Access("lws", "https://127.0.0.1:6443", "secret", b"PEM")


def test_kubeconfig_has_server_token_and_certificate() -> None:
    config = build_kubeconfig(ACCESS)
    assert config["current-context"] == "lws"
    cluster = config["clusters"][0]["cluster"]
    assert cluster["server"] == "https://127.0.0.1:6443"
    assert base64.b64decode(cluster["certificate-authority-data"]) == b"PEM"
    assert config["users"] == [{"name": "lws", "user": {"token": "secret"}}]


def test_kubeconfig_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("old")
    path.chmod(0o644)
    write_kubeconfig(path, ACCESS)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert yaml.safe_load(path.read_text()) == build_kubeconfig(ACCESS)
    assert [one.name for one in tmp_path.iterdir()] == ["config"]


def test_failed_write_leaves_no_temporary_file(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.mkdir()
    with pytest.raises(OSError, match="directory"):
        write_kubeconfig(path, ACCESS)
    assert [one.name for one in tmp_path.iterdir()] == ["config"]
