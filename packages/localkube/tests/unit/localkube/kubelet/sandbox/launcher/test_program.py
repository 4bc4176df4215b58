"""Tests how the executable is found, and that the error messages match those of container runtimes."""

from pathlib import Path

import pytest

from localkube.kubelet.processes.kernelerrors import RequestError
from localkube.kubelet.sandbox.launcher.program import find_executable


@pytest.fixture
def path(tmp_path: Path) -> str:
    for directory, mode in (("first", 0o644), ("second", 0o755)):
        (tmp_path / directory).mkdir()
        program = tmp_path / directory / "program"
        program.touch()
        program.chmod(mode)
    (tmp_path / "first" / "forbidden").touch(mode=0o644)
    (tmp_path / "first" / "folder").mkdir()
    return f"{tmp_path}/missing:{tmp_path}/first:{tmp_path}/second"


def test_first_executable_in_the_path_is_found(path: str, tmp_path: Path) -> None:
    assert find_executable("program", path) == f"{tmp_path}/second/program"


def test_name_with_a_slash_is_not_searched() -> None:
    assert find_executable("./program", "/nowhere") == "./program"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nothing", 'exec: "nothing": executable file not found in $PATH'),
        ("folder", 'exec: "folder": executable file not found in $PATH'),
        ("forbidden", 'exec: "forbidden": permission denied'),
    ],
)
def test_unexecutable_program_is_an_error(path: str, name: str, words: str) -> None:
    with pytest.raises(RequestError) as caught:
        find_executable(name, path)
    assert str(caught.value) == words
