"""Tests that a release can be reproduced, is complete, and can be installed outside this repository.

Third-party packages come from the environment that runs this test; its link to this repository is not followed.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path
from zipfile import ZipFile

import pytest
from deploy import release as builder
from deploy.packages import changelog
from tests.e2e import wheelhouse
from tests.e2e.harness import ROOT, Shell

import leaderworkerset

pytestmark = [pytest.mark.slow, pytest.mark.sandbox, pytest.mark.xdist_group("wheels")]

PROJECTS = ("kuberuntime", "localkube", "leaderworkerset", "lwsctl")
SOURCES = (
    "packages",
    "deploy",
    "docs/how-to",
    "examples",
    "requirements",
    ".containerignore",
    ".gitignore",
    "pyproject.toml",
)
PAGES = ("CHANGELOG.md", "LICENSE", "README.md")
WITHOUT_LOCALKUBE = ("kuberuntime", "leaderworkerset", "lwsctl")
OF_THE_IMAGE = ("kuberuntime", "leaderworkerset")

IMPORT_ALL = """
import importlib, pkgutil, sys
import kuberuntime, leaderworkerset, lwsctl
for package in (kuberuntime, leaderworkerset, lwsctl):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not module.name.endswith(("__main__", ".localcluster", ".autonodes", ".hostgpus")):
            importlib.import_module(module.name)
print(leaderworkerset.__file__)
print(*[name for name in sys.modules if name.split(".")[0] == "localkube"])
"""

IMPORT_IMAGE = """
import importlib, pkgutil, sys
sys.modules.update(dict.fromkeys(("click", "rich", "lwsctl", "localkube")))
import kuberuntime, leaderworkerset
for package in (kuberuntime, leaderworkerset):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
print("all")
"""

BUILD = """
import sys
from pathlib import Path
from deploy import release
into = Path(sys.argv[1])
release.build(release.ROOT, into)
print((into / release.CHECKSUMS).read_text(), end="")
"""


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("release")
    builder.build(ROOT, directory)
    return directory


@pytest.fixture(scope="module")
def wheels(release: Path) -> dict[str, Path]:
    return {name: next(release.glob(f"{name}-*.whl")) for name in PROJECTS}


def pip(command: str, *words: str) -> None:
    line = [sys.executable, "-m", "pip", command, "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index"]
    subprocess.run([*line, *words], cwd=ROOT, check=True, timeout=300)


class Installation:
    """A directory with some of the wheels, and the Python interpreter of this environment."""

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
def test_wheel_contains_exactly_the_files_in_git(wheels: dict[str, Path], name: str) -> None:
    found = {path for path in ZipFile(wheels[name]).namelist() if ".dist-info/" not in path}
    sources = ROOT / "packages" / name / "src"
    own = {str(path.relative_to(sources)) for path in sources.rglob("*") if path.is_file() and path.suffix != ".pyc"}
    manual = {path for path in found if "/share/man/" in path}
    assert found - manual == own
    pages = {path.name for path in (ROOT / "packages/lwsctl/man").iterdir()} if name == "lwsctl" else set()
    assert {path.partition(".data/data/share/man/man1/")[2] for path in manual} == pages
    assert f"{name}/py.typed" in found
    assert any(path.endswith("LICENSE") for path in ZipFile(wheels[name]).namelist())


def test_installed_command_runs_an_example(whole: Installation, shell: Shell) -> None:
    example = ROOT / "examples/allreduce"
    image = f"--image=allreduce={example}"
    result = whole.run(
        shell,
        "-m",
        "lwsctl.cli",
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


def test_modules_are_importable_without_localkube(manager_only: Installation, shell: Shell) -> None:
    result = manager_only.run(shell, "-c", IMPORT_ALL)
    assert result.stdout.splitlines() == [str(manager_only.directory / "leaderworkerset/__init__.py"), ""], (
        result.stderr
    )


def test_wheels_of_the_image_need_no_other(
    wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory, shell: Shell
) -> None:
    image = Installation(tmp_path_factory.mktemp("image"), [wheels[name] for name in OF_THE_IMAGE])
    result = image.run(shell, "-c", IMPORT_IMAGE)
    assert result.stdout == "all\n", result.stderr


@pytest.mark.parametrize("command", [["run", "-f", "lws.yaml"], ["up"], ["up", "--detach"]], ids=" ".join)
def test_commands_that_need_localkube_suggest_its_installation(
    manager_only: Installation, shell: Shell, command: list[str]
) -> None:
    result = manager_only.run(shell, "-m", "lwsctl.cli", *command)
    assert result.returncode == 1
    assert result.stderr == (
        f"error: lws {command[0]} requires the package localkube, which is not installed; run `pip install 'lwsctl[local]'`\n"
    )


@pytest.mark.parametrize(
    ("words", "code", "printed"),
    [
        (["manager", "-version"], 0, "Version: "),
        (["install", "--help"], 0, "Usage: "),
        (["up", "--help"], 0, "Usage: "),
        (["down"], 0, "Cluster default does not exist (existing: none)"),
        (["get", "--local"], 1, "the embedded cluster default is not running"),
        (["get"], 1, "error: "),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_other_commands_work_without_localkube(
    manager_only: Installation, shell: Shell, words: list[str], code: int, printed: str
) -> None:
    result = manager_only.run(shell, "-m", "lwsctl.cli", *words)
    assert result.returncode == code, result.stderr
    assert printed in result.stdout + result.stderr
    assert "Traceback" not in result.stderr


def test_copy_of_the_tree_builds_the_same_bytes(release: Path, tmp_path: Path) -> None:
    """The copy has different file times, file permissions and time zone. Unreleased changes are permitted."""
    copy = tmp_path / "copy"
    for place in SOURCES:
        if (ROOT / place).is_dir():
            shutil.copytree(ROOT / place, copy / place, copy_function=shutil.copy, ignore=ignored)
    for place in (*SOURCES, *PAGES):
        if (ROOT / place).is_file():
            shutil.copy(ROOT / place, copy / place)
    for path in copy.rglob("*"):
        path.chmod(path.stat().st_mode & 0o700)
    environment = {
        **os.environ,
        "PYTHONPATH": ":".join(f"{copy}/packages/{name}/src" for name in PROJECTS),
        "TZ": "Pacific/Auckland",
        "PYTHONHASHSEED": "7",
    }
    words = [sys.executable, "-c", BUILD, str(tmp_path / "dist")]
    printed = subprocess.run(
        words, cwd=copy, env=environment, umask=0o077, capture_output=True, text=True, check=True, timeout=120
    ).stdout
    assert printed == (release / builder.CHECKSUMS).read_text()
    assert printed.count("\n") == len([*release.iterdir()]) - 1
    checked = ["sha256sum", "--check", "--quiet", "--strict", builder.CHECKSUMS]
    assert subprocess.run(checked, cwd=tmp_path / "dist", check=False, timeout=60).returncode == 0


def ignored(_: str, names: list[str]) -> set[str]:
    return {name for name in names if name == "__pycache__" or name.endswith(".egg-info")}


@pytest.mark.parametrize("name", PROJECTS)
def test_source_distribution_builds_the_same_wheel(
    release: Path, wheels: dict[str, Path], name: str, tmp_path: Path
) -> None:
    with tarfile.open(next(release.glob(f"{name}-*.tar.gz"))) as archive:
        archive.extractall(tmp_path, filter="data")
    (project,) = tmp_path.iterdir()
    _, moment = changelog.released((ROOT / "CHANGELOG.md").read_text(), leaderworkerset.__version__)
    builder.distribute(project, tmp_path / "again", moment)
    assert (tmp_path / "again" / wheels[name].name).read_bytes() == wheels[name].read_bytes()


INSTALLERS = {
    "pip": ["{python} -m venv {base}/env", "{base}/env/bin/python -m pip install --quiet --no-compile {source} {what}"],
    "uv": [
        "{bin}/uv venv --quiet --offline --python {python} {base}/env",
        "{bin}/uv pip install --quiet --offline --python {base}/env/bin/python {source} {what}",
    ],
    "uv tool": ["{bin}/uv tool install --quiet --offline --python {python} {source} {what}"],
    "pipx": ["{bin}/pipx install --quiet --backend uv --python {python} --pip-args={joined} {what}"],
}
"""Installs the command in an empty home directory."""

FROM_THERE = "--no-index --find-links {house}"


@pytest.fixture(scope="module")
def offline(release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("wheelhouse")
    wheelhouse.fill(directory)
    for wheel in release.glob("*.whl"):
        shutil.copy(wheel, directory)
    return directory


@pytest.mark.parametrize("installer", INSTALLERS)
def test_wheelhouse_installs_into_an_empty_environment(
    offline: Path, shell: Shell, tmp_path: Path, installer: str
) -> None:
    own = {
        "UV_TOOL_DIR": f"{tmp_path}/tools",
        "UV_TOOL_BIN_DIR": f"{tmp_path}/env/bin",
        "PIPX_HOME": f"{tmp_path}/pipx",
    }
    own |= {"PIPX_BIN_DIR": f"{tmp_path}/env/bin", "UV_LINK_MODE": "copy", "UV_NO_CONFIG": "1"}
    own |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(offline), "PIP_CONFIG_FILE": os.devnull}
    kept = {name: text for name, text in shell.environment.items() if not name.startswith(("PIP_", "UV_", "PYTHON"))}
    missing = [
        tool
        for tool in ("uv", "pipx")
        if installer.startswith(tool) and not Path(sys.executable).with_name(tool).exists()
    ]
    if missing:
        pytest.skip(f"{missing[0]} is not installed: `make dev`")
    places = {"python": sys._base_executable, "bin": str(Path(sys.executable).parent), "base": str(tmp_path)}  # type: ignore[attr-defined]
    words = places | {
        "house": str(offline),
        "joined": FROM_THERE.format(house=offline),
        "what": "lwsctl[local]",
    }
    alone = Shell(shell.base, {**kept, **own}, tmp_path)
    for line in INSTALLERS[installer]:
        alone.run([word.format(**words) for word in line.replace("{source}", FROM_THERE).split()], limit=300)
    lws = str(tmp_path / "env/bin/lws")
    assert leaderworkerset.__version__ in alone.run([lws, "--version"]).stdout
    assert "Cluster default does not exist" in alone.run([lws, "down"]).stdout
