"""What a release consists of, and what must agree before there is one. The built release: tests/e2e/test_wheels.py."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from deploy import release
from deploy.packages.operatordeployment import OperatorSettings
from docs import buildsite

import kuberuntime
import leaderworkerset
import localkube

ROOT = Path(__file__).parents[3]
WORKFLOW = ROOT / ".github/workflows/release.yaml"
ZIZMOR = Path(sys.executable).parent / "zizmor"
VERSION = leaderworkerset.__version__


def requirements(project: str) -> list[str]:
    told = tomllib.loads((ROOT / project / "pyproject.toml").read_text())["project"]
    return [*told["dependencies"], *(one for extra in told.get("optional-dependencies", {}).values() for one in extra)]


def test_the_three_packages_have_one_version_and_need_each_other_in_it() -> None:
    assert {package.__version__ for package in (kuberuntime, localkube, leaderworkerset)} == {VERSION}
    own = [one for project in release.PROJECTS for one in requirements(project) if one.startswith(("kube", "local"))]
    assert sorted(own) == [f"kuberuntime=={VERSION}"] * 2 + [f"localkube=={VERSION}"]


def test_pages_and_recipes_name_the_version_of_the_tree() -> None:
    pages = [*(ROOT / "docs/how-to").glob("*.md"), ROOT / "deploy/Containerfile", ROOT / "README.md"]
    found = {
        (page.name, version)
        for page in pages
        for version in re.findall(
            r"(?:leaderworkerset:|manager\.tag=|newTag: |lws-)(\d+\.\d+\.\d+)\b", page.read_text()
        )
    }
    assert found
    assert {version for _, version in found} == {VERSION}


def test_the_newest_heading_of_the_changelog_is_the_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    newest = release.HEADING.search(text)
    assert newest is not None
    assert newest["version"] == VERSION
    notes, _ = release.released(text, VERSION)
    assert "### Added" in notes


def test_every_page_of_the_site_says_which_version_it_is_about() -> None:
    assert buildsite.configuration()["copyright"] == f"Version {VERSION}"


def test_notes_end_where_those_of_the_release_before_begin() -> None:
    text = "# Changelog\n\n## Unreleased\n- d\n\n## 1.1.0 - 1970-01-02\n\n- c\n\n### Fixed\n- b\n\n## 1.0.0 - 1970-01-01\n- a\n"
    assert release.released(text, "1.1.0") == ("- c\n\n### Fixed\n- b\n", 86400)
    assert release.released(text, "1.0.0") == ("- a\n", 0)


def test_a_version_without_notes_is_not_released() -> None:
    with pytest.raises(SystemExit, match=r'no heading "## 9\.9\.9 - YYYY-MM-DD": write its notes'):
        release.released("## 1.0.0 - 1970-01-01\n", "9.9.9")


def test_what_a_directory_holds_is_neither_deleted_nor_released(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    with pytest.raises(SystemExit, match="is not empty: mine: empty it"):
        release.build(ROOT, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_every_package_brings_the_license() -> None:
    texts = {(ROOT / project / "LICENSE").read_text() for project in release.PROJECTS}
    assert len(texts) == 1


def test_the_image_is_built_of_what_its_archive_holds() -> None:
    folder, members = release.packed(ROOT, VERSION, {})[f"lws-image-{VERSION}.tar.gz"]
    assert folder == f"lws-image-{VERSION}"
    copied = re.findall(
        r"^COPY (?:--chmod=\S+ )?([^-\s]\S*) ", (ROOT / "deploy/Containerfile").read_text(), re.MULTILINE
    )
    assert copied
    for place in copied:
        assert [name for name in members if name == place or name.startswith(f"{place}/")]


def jobs() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(WORKFLOW.read_text())["jobs"]
    return found


def test_the_workflow_pins_every_action_and_gives_each_job_only_what_it_needs() -> None:
    used = [step["uses"] for job in jobs().values() for step in job["steps"] if "uses" in step]
    assert [one for one in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", one)] == []
    assert {name for name, job in jobs().items() if job["permissions"].get("contents") == "write"} == {"publish"}
    assert all("secrets." not in str(step.get("run", "")) for job in jobs().values() for step in job["steps"])


def test_the_workflow_runs_commands_of_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    lines = [
        line.strip() for job in jobs().values() for step in job["steps"] for line in step.get("run", "").splitlines()
    ]
    made = [line.split()[1] for line in lines if line.startswith("make ")]
    assert {"check", "test", "release"} == set(made) <= targets


@pytest.mark.skipif(not ZIZMOR.exists(), reason="zizmor is not installed")
def test_the_linter_of_workflows_finds_nothing() -> None:
    words = [str(ZIZMOR), "--offline", "--no-progress", "--pedantic", str(WORKFLOW)]
    found = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.slow
def test_bundles_of_a_release_name_the_pushed_image_and_those_of_the_tree_none(tmp_path: Path) -> None:
    """R-OP-70."""
    digest = f"registry.example.com/lws@sha256:{'0a' * 32}"
    chosen = OperatorSettings(image=digest, operand_image=digest)
    pushed = release.chosen_bundles(ROOT, tmp_path, chosen, "https://example.com/lws")
    plain = release.chosen_bundles(ROOT, tmp_path, None, "")
    version = "leader-worker-set/manifests/leader-worker-set.clusterserviceversion.yaml"
    assert digest in pushed[version].read_text()
    assert digest not in plain[version].read_text()
    assert {name for name in pushed if "/manifests/" in name} == {name for name in plain if "/manifests/" in name}
