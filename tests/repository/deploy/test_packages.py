"""Tests that the four packages in this repository have one version, and do not contain forbidden imports."""

import re
import tomllib
from typing import Any

import pytest
from testkit.repository import ROOT

import kuberuntime
import leaderworkerset
import localkube
import lwsctl
from lwsctl.cli import app
from lwsctl.cli.commandtable import COMMANDS

PROJECTS = {
    "kuberuntime": ROOT / "packages/kuberuntime/pyproject.toml",
    "localkube": ROOT / "packages/localkube/pyproject.toml",
    "leaderworkerset": ROOT / "packages/leaderworkerset/pyproject.toml",
    "lwsctl": ROOT / "packages/lwsctl/pyproject.toml",
}
OPTIONAL = {"nvidia-ml-py"}
"""Packages that are not locked because users with GPUs install them."""
REQUIREMENT = re.compile(r"([A-Za-z0-9-]+)(.*)")


def project(name: str) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads(PROJECTS[name].read_text())
    return found


def requirements(name: str) -> dict[str, str]:
    declared = project(name)["project"]
    optional = [one for some in declared.get("optional-dependencies", {}).values() for one in some]
    parts = [REQUIREMENT.fullmatch(one) for one in (*declared["dependencies"], *optional)]
    return {part[1]: part[2].partition("]")[2] or part[2] for part in parts if part}


def test_all_packages_have_the_same_version() -> None:
    assert len({package.__version__ for package in (kuberuntime, localkube, leaderworkerset, lwsctl)}) == 1


def test_each_package_requires_the_same_version_of_the_others() -> None:
    pin = f"=={leaderworkerset.__version__}"
    own = {
        name: {other: requirements(name)[other] for other in PROJECTS if other in requirements(name)}
        for name in PROJECTS
    }
    assert own == {
        "kuberuntime": {},
        "localkube": {"kuberuntime": pin},
        "leaderworkerset": {"kuberuntime": pin, "lwsctl": pin},
        "lwsctl": {"kuberuntime": pin, "localkube": pin, "leaderworkerset": pin},
    }


def test_localkube_is_an_extra() -> None:
    declared = project("lwsctl")["project"]
    assert declared["optional-dependencies"]["local"] == [f"localkube=={leaderworkerset.__version__}"]
    assert declared["optional-dependencies"]["gpu"] == project("localkube")["project"]["optional-dependencies"]["gpu"]


def test_kubectl_plugin_is_the_same_program(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command detects its name, and exit codes are unique (R-OP-77)."""
    scripts = project("lwsctl")["project"]["scripts"]
    assert scripts["kubectl-lws"] == scripts["lws"]
    assert {"doctor", "install", "uninstall", "tree", "restart", "must-gather", "apply"} <= COMMANDS.keys()
    monkeypatch.setattr("sys.argv", ["/usr/local/bin/kubectl-lws"])
    assert app.run(["restart", "--help"]) == 0
    assert "Usage: kubectl lws restart" in capsys.readouterr().out
    assert app.run(["restart"]) == 2
    assert app.run(["restart", "web", "--kubeconfig", "/no/such/file"]) == 1


def test_security_policy_and_changelog_exist() -> None:
    """Reports, changes and the license are in files where packages and readers expect them (R-OP-79)."""
    assert "report" in (ROOT / "SECURITY.md").read_text().lower()
    assert "(changelog.d/README.md)" in (ROOT / "CHANGELOG.md").read_text()
    declared = project("leaderworkerset")["project"]
    assert (ROOT / "LICENSE").read_text().strip()
    assert declared.get("license") or declared.get("license-files")


@pytest.mark.parametrize("name", ["kuberuntime", "localkube", "leaderworkerset"])
def test_package_requirements_equal_those_of_the_product(name: str) -> None:
    """Only the lock of the embedded cluster contains its requirements. The lock of the image does not."""
    whole, own = requirements("lwsctl"), requirements(name)
    assert {key: value for key, value in own.items() if whole.get(key, value) != value} == {}
    lock = (ROOT / "requirements" / ("local.lock" if name == "localkube" else "runtime.lock")).read_text()
    assert [key for key in own.keys() - PROJECTS.keys() - OPTIONAL if f"\n{key.lower()}==" not in f"\n{lock}"] == []
    assert project(name)["project"]["requires-python"] == project("leaderworkerset")["project"]["requires-python"]


def test_import_contract_names_every_private_module_of_localkube() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (contract,) = [one for one in contracts if "through `localkube.cluster` only" in one["name"]]
    found = {
        path.stem
        for path in (ROOT / "packages/localkube/src/localkube").iterdir()
        if (path / "__init__.py").exists() or path.suffix == ".py"
    }
    assert set(contract["forbidden_modules"]) == {f"localkube.{name}" for name in found - {"__init__", "cluster"}}
