"""Tests that each suitable Python interpreter on a machine is found once."""

import json
import sys
from pathlib import Path
from typing import Any

from tests.interpreters.discovery import find

OLDEST = (3, 11)


def program(path: Path, *version: Any, implementation: str = "cpython", free: bool = False) -> Path:
    """Write a script that identifies itself as this Python version."""
    level = version[3] if len(version) > 3 else "final"
    answer = json.dumps([implementation, [*version[:3], level, 0], free, str(path)])
    return script(path, f"echo '{answer}'")


def script(path: Path, line: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)
    return path


def names(environment: dict[str, str], *system: Path) -> list[str]:
    return [one.name for one in find(environment, OLDEST, system=system)]


def test_current_python_is_found() -> None:
    found = find({"PATH": str(Path(sys.executable).parent)}, OLDEST, system=())
    assert [one.version for one in found] == [sys.version_info[:3]]
    assert found[0].unfit == ""


def test_pythons_in_path_are_sorted_by_version(tmp_path: Path) -> None:
    program(tmp_path / "b" / "python3.13", 3, 13, 0)
    program(tmp_path / "b" / "python3.9", 3, 9, 18)
    program(tmp_path / "a" / "python3", 3, 12, 10)
    program(tmp_path / "c" / "python3.12", 3, 12, 9)
    path = f"{tmp_path}/b::{tmp_path}/missing:{tmp_path}/a:{tmp_path}/c"
    assert names({"PATH": path}) == ["3.12.9", "3.12.10", "3.13.0"]


def test_system_python_is_found_behind_other_interpreters(tmp_path: Path) -> None:
    program(tmp_path / "mine" / "python3", 3, 12, 1)
    own = program(tmp_path / "usr" / "bin" / "python3", 3, 11, 2)
    found = find({"PATH": f"{tmp_path}/mine:{tmp_path}/usr/bin"}, OLDEST, system=())
    assert [one.name for one in found] == ["3.11.2", "3.12.1"]
    assert names({"PATH": f"{tmp_path}/mine"}, own.parent) == ["3.11.2", "3.12.1"]


def test_pyenv_versions_are_found_behind_shims(tmp_path: Path) -> None:
    root = tmp_path / ".pyenv"
    program(root / "versions" / "3.12.1" / "bin" / "python3", 3, 12, 1)
    program(root / "versions" / "3.13.0" / "bin" / "python3.13", 3, 13, 0)
    script(root / "shims" / "python3", f"exec {root}/versions/3.12.1/bin/python3")
    script(root / "shims" / "python3.13", "echo 'pyenv: python3.13: command not found' >&2; exit 127")
    for environment in (
        {"HOME": str(tmp_path)},
        {"PYENV_ROOT": str(root)},
        {"PATH": f"{root}/shims", "HOME": "/nowhere"},
    ):
        assert names(environment) == ["3.12.1", "3.13.0"]


def test_python_with_several_names_is_found_once(tmp_path: Path) -> None:
    real = program(tmp_path / "bin" / "python3.12", 3, 12, 1)
    (tmp_path / "bin" / "python3").symlink_to(real)
    (tmp_path / "other").symlink_to(tmp_path / "bin")
    script(tmp_path / "wrapper" / "python3", f'exec {real} "$@"')
    found = find({"PATH": f"{tmp_path}/wrapper:{tmp_path}/bin:{tmp_path}/other"}, OLDEST, system=())
    assert [(one.name, one.path) for one in found] == [("3.12.1", real)]


def test_other_programs_are_ignored(tmp_path: Path) -> None:
    script(tmp_path / "python3.11", "exit 1")
    script(tmp_path / "python3.12", "echo Python")
    (tmp_path / "python3.13").write_text("not to be run")
    script(tmp_path / "python3.14", "true").write_text("#!/missing\n")
    program(tmp_path / "python3.11-config", 3, 11, 9)
    assert names({"PATH": str(tmp_path)}) == []


def test_unsuitable_pythons_have_a_reason(tmp_path: Path) -> None:
    program(tmp_path / "a" / "python3.15", 3, 15, 0, "alpha")
    program(tmp_path / "b" / "python3", 3, 11, 15, implementation="pypy")
    program(tmp_path / "c" / "python3", 3, 13, 1, free=True)
    found = find({"PATH": f"{tmp_path}/a:{tmp_path}/b:{tmp_path}/c"}, OLDEST, system=())
    assert [(one.name, one.unfit) for one in found] == [
        ("3.11.15", "it is pypy, not CPython"),
        ("3.13.1", "it is a build without the global interpreter lock"),
        ("3.15.0", "it is a pre-release (alpha)"),
    ]


def test_suitable_python_is_preferred_to_an_unsuitable_one(tmp_path: Path) -> None:
    program(tmp_path / "a" / "python3", 3, 13, 1, free=True)
    usual = program(tmp_path / "b" / "python3", 3, 13, 1)
    found = find({"PATH": f"{tmp_path}/a:{tmp_path}/b"}, OLDEST, system=())
    assert [(one.path, one.unfit) for one in found] == [(usual, "")]
