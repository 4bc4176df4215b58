"""Tests that a cluster retains its identity after a restart, and that only its owner can read it."""

import stat
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from localkube import clusteridentity

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_identity_is_created_once_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "identity.json"
    first = clusteridentity.load_or_create(path, NOW)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(first.token) >= 40
    assert clusteridentity.load_or_create(path, NOW) == first
    clusteridentity.save(path, msgspec.structs.replace(first, port=4711))
    assert clusteridentity.load_or_create(path, NOW).port == 4711


@pytest.mark.parametrize("content", [b"", b"{", b'{"token": 1}'])
def test_broken_identity_file_is_named_and_kept(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "identity.json"
    path.write_bytes(content)
    with pytest.raises(clusteridentity.IdentityError, match=r"identity\.json"):
        clusteridentity.load_or_create(path, NOW)
    assert path.read_bytes() == content
