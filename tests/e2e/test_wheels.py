"""The wheels, installed outside of this repository: all three run a cluster; two of them are all that the manager needs.

Third-party packages come from the environment that runs this test; its link to this repository is not followed.
"""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from zipfile import ZipFile

import pytest
from tests.e2e.harness import ROOT, Shell

pytestmark = [pytest.mark.slow, pytest.mark.sandbox, pytest.mark.xdist_group("wheels")]

PROJECTS = {"kuberuntime": "./src/kuberuntime", "localkube": "./src/localkube", "leaderworkerset": "."}
WITHOUT_LOCALKUBE = ("kuberuntime", "leaderworkerset")

IMPORT_ALL = """
import importlib, pkgutil, sys
import kuberuntime, leaderworkerset
for package in (kuberuntime, leaderworkerset):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not module.name.endswith(("__main__", ".localcluster", ".assuming")):
            importlib.import_module(module.name)
print(leaderworkerset.__file__)
print(*[name for name in sys.modules if name.split(".")[0] == "localkube"])
"""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    directory = tmp_path_factory.mktemp("wheels")
    pip("wheel", "--no-build-isolation", "--wheel-dir", str(directory), *PROJECTS.values())
    return {name: next(directory.glob(f"{name}-*.whl")) for name in PROJECTS}


def pip(command: str, *words: str) -> None:
    line = [sys.executable, "-m", "pip", command, "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index"]
    subprocess.run([*line, *words], cwd=ROOT, check=True, timeout=300)


class Installation:
    """A directory with some of the wheels, and the Python that this environment was made from."""

    def __init__(self, directory: Path, wheels: list[Path]) -> None:
        self.directory = directory
        pip("install", "--target", str(directory), *map(str, wheels))

    def run(self, shell: Shell, *words: str) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join([str(self.directory), sysconfig.get_path("purelib")])
        own = {"PYTHONPATH": path, "PYTHONSAFEPATH": "1"}
        base = sys._base_executable  # type: ignore[attr-defined]  # the interpreter of a venv's home
        line = [base, *words]
        environment = {**shell.environment, **own}
        return subprocess.run(
            line, cwd=shell.base, env=environment, capture_output=True, text=True, check=False, timeout=120
        )


@pytest.fixture(scope="module")
def whole(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Installation:
    return Installation(tmp_path_factory.mktemp("whole"), list(wheels.values()))


@pytest.fixture(scope="module")
def manager_only(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Installation:
    return Installation(tmp_path_factory.mktemp("manager"), [wheels[name] for name in WITHOUT_LOCALKUBE])


@pytest.mark.parametrize("name", PROJECTS)
def test_a_wheel_contains_what_git_knows_of_its_package_and_nothing_else(wheels: dict[str, Path], name: str) -> None:
    found = {path for path in ZipFile(wheels[name]).namelist() if ".dist-info/" not in path}
    folder = ROOT / "src" / name
    own = {
        str(path.relative_to(ROOT / "src")) for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"
    }
    left_out = {f"{name}/pyproject.toml", f"{name}/README.md"}
    manual = {path for path in found if "/share/man/" in path}
    assert found - {f"{name}/LICENSE"} - manual == own - left_out
    pages = {path.name for path in (ROOT / "docs/man").iterdir()} if name == "leaderworkerset" else set()
    assert {path.partition(".data/data/share/man/man1/")[2] for path in manual} == pages
    assert f"{name}/py.typed" in found
    assert any(path.endswith("LICENSE") for path in ZipFile(wheels[name]).namelist())


def test_the_installed_command_runs_an_example(whole: Installation, shell: Shell) -> None:
    example = ROOT / "examples/allreduce"
    image = f"--image=allreduce={example}"
    result = whole.run(
        shell,
        "-m",
        "leaderworkerset.cli",
        "run",
        "-f",
        str(example / "lws.yaml"),
        image,
        "--until=done",
        "--timeout=60",
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("all-reduce verified: 3 rounds over 4 ranks") == 8
    shell.assert_nothing_is_left()


def test_without_localkube_everything_else_is_imported(manager_only: Installation, shell: Shell) -> None:
    result = manager_only.run(shell, "-c", IMPORT_ALL)
    assert result.stdout.splitlines() == [str(manager_only.directory / "leaderworkerset/__init__.py"), ""], (
        result.stderr
    )


@pytest.mark.parametrize("command", [["run", "-f", "lws.yaml"], ["up"], ["up", "--detach"]], ids=" ".join)
def test_without_localkube_what_needs_it_says_what_to_install(
    manager_only: Installation, shell: Shell, command: list[str]
) -> None:
    result = manager_only.run(shell, "-m", "leaderworkerset.cli", *command)
    assert result.returncode == 1
    assert result.stderr == (
        f"error: lws {command[0]} needs the package localkube, which is not installed: "
        "pip install 'leaderworkerset[local]'\n"
    )


@pytest.mark.parametrize(
    ("words", "code", "printed"),
    [
        (["manager", "-version"], 0, "Version: "),
        (["install", "--help"], 0, "Usage: "),
        (["up", "--help"], 0, "Usage: "),
        (["down"], 0, "Cluster default does not exist (there: none)"),
        (["get", "--local"], 1, "the embedded cluster default does not run"),
        (["get"], 1, "error: "),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_without_localkube_the_other_commands_work(
    manager_only: Installation, shell: Shell, words: list[str], code: int, printed: str
) -> None:
    result = manager_only.run(shell, "-m", "leaderworkerset.cli", *words)
    assert result.returncode == code, result.stderr
    assert printed in result.stdout + result.stderr
    assert "Traceback" not in result.stderr
