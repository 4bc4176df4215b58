"""Tests the content of a release, and its preconditions.

The built release is tested in tests/e2e/test_wheels.py.
"""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from deploy import release
from deploy.packages import bundle, changelog, publishing
from deploy.packages.operatordeployment import OperatorSettings
from docs import buildsite
from testkit.repository import ROOT

import kuberuntime
import leaderworkerset
import localkube
import lwsctl

WORKFLOW = ROOT / ".github/workflows/release.yaml"
ZIZMOR = Path(sys.executable).parent / "zizmor"
VERSION = leaderworkerset.__version__


def requirements(project: str) -> list[str]:
    told = tomllib.loads((ROOT / project / "pyproject.toml").read_text())["project"]
    return [*told["dependencies"], *(one for extra in told.get("optional-dependencies", {}).values() for one in extra)]


def test_packages_have_one_version_and_require_each_other() -> None:
    assert {package.__version__ for package in (kuberuntime, localkube, leaderworkerset, lwsctl)} == {VERSION}
    own = [
        one
        for project in release.PROJECTS
        for one in requirements(project)
        if one.startswith(("kube", "local", "leader"))
    ]
    assert sorted(own) == [f"kuberuntime=={VERSION}"] * 3 + [f"leaderworkerset=={VERSION}", f"localkube=={VERSION}"]


def test_pages_and_recipes_name_the_current_version() -> None:
    pages = [*(ROOT / "docs/how-to").glob("*.md"), ROOT / "deploy/Containerfile", ROOT / "README.md"]
    found = {
        (page.name, version)
        for page in pages
        for version in re.findall(
            r"(?:leaderworkerset:|manager\.tag=|newTag: |lws-|-bundle:v|-catalog:v|-set\.v)(\d+\.\d+\.\d+)\b",
            page.read_text(),
        )
    }
    assert found
    # The version before an upgrade is older.
    assert {version for _, version in found - {("upgrade-with-olm.md", bundle.FORMER)}} == {VERSION}


def test_newest_changelog_heading_is_the_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    newest = changelog.HEADING.search(text)
    assert newest is not None
    assert newest["version"] == VERSION
    notes, _ = changelog.released(text, VERSION)
    assert "### Added" in notes


def test_every_page_of_the_site_names_its_version() -> None:
    assert buildsite.configuration()["copyright"] == f"Version {VERSION}"


def test_release_notes_end_at_the_previous_release() -> None:
    text = "# Changelog\n\n## Unreleased\n- d\n\n## 1.1.0 - 1970-01-02\n\n- c\n\n### Fixed\n- b\n\n## 1.0.0 - 1970-01-01\n- a\n"
    assert changelog.released(text, "1.1.0") == ("- c\n\n### Fixed\n- b\n", 86400)
    assert changelog.released(text, "1.0.0") == ("- a\n", 0)


def test_version_without_notes_is_not_released() -> None:
    with pytest.raises(SystemExit, match=r'no heading "## 9\.9\.9 - YYYY-MM-DD". Write the release notes'):
        changelog.released("## 1.0.0 - 1970-01-01\n", "9.9.9")


def test_tree_with_unreleased_changes_is_rejected() -> None:
    """The files of such a release would contain the previous version."""
    changed = "# Changelog\n\n## Unreleased\n\n### Added\n- d\n\n## 1.1.0 - 1970-01-02\n- c\n"
    with pytest.raises(SystemExit, match=r'contains changes after 1\.1\.0: CHANGELOG\.md, heading "## Unreleased"'):
        changelog.refuse_unreleased(changed, [], "1.1.0")
    empty = "# Changelog\n\n## Unreleased\n\n## 1.1.0 - 1970-01-02\n- c\n"
    fragments = ["e.md", "b.md", "a.md", "c.md"]
    with pytest.raises(
        SystemExit, match=r"changelog\.d/a\.md, changelog\.d/b\.md, changelog\.d/c\.md and 1 more\. Increase"
    ):
        changelog.refuse_unreleased(empty, fragments, "1.1.0")
    changelog.refuse_unreleased(empty, [], "1.1.0")
    changelog.refuse_unreleased("# Changelog\n\n## 1.1.0 - 1970-01-02\n- c\n", [], "1.1.0")


def test_make_release_rejects_unreleased_notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "CHANGELOG.md").write_text("## Unreleased\n- d\n")
    monkeypatch.setattr(release, "ROOT", tmp_path)
    with pytest.raises(SystemExit, match="this tree contains changes"):
        release.main([str(tmp_path / "dist")])
    assert not (tmp_path / "dist").exists()


COMMAND = re.compile(r"\b(?:kubectl|helm|podman|lws)\b[^`\n]*")
PLACE = re.compile(r"(?<![\w/-])deploy/(?!lws-controller-manager)[\w./-]*\w")
"""A file or directory. In kubectl commands, `deploy/lws-controller-manager` is the Deployment."""


def applied() -> set[tuple[str, str]]:
    """Return each file or directory in deploy/ that a command on a page uses, with this page."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    return {
        (str(page.relative_to(ROOT)), place)
        for page in pages
        if "/adr/" not in str(page)
        for command in COMMAND.findall(page.read_text())
        for place in PLACE.findall(command)
    }


def test_release_archives_have_all_files_that_pages_apply() -> None:
    """The archives contain the directories that the pages mention. The chart is a separate archive."""
    packed = release.packed(ROOT, VERSION, {})
    members = {name for _, files in packed.values() for name in files}
    folders = {parent.as_posix() for name in members for parent in Path(name).parents}
    places = applied()
    assert len({place for _, place in places}) > 10
    left_out = {(page, place) for page, place in places if place not in members | folders}
    assert {one for one in left_out if not one[1].startswith("deploy/helm/lws")} == set()


def test_optional_permissions_are_in_both_archives() -> None:
    packed = release.packed(ROOT, VERSION, {})
    for name in ("kustomize", "operator"):
        folder, files = packed[f"lws-{name}-{VERSION}.tar.gz"]
        assert folder == f"lws-{VERSION}"
        assert {"deploy/in-place/operator.yaml", "deploy/recorder/operator.yaml"} <= set(files)
        assert {"deploy/maintenance/operator.yaml", "deploy/disruption-budgets/operator.yaml"} <= set(files)


def test_nonempty_directory_is_neither_emptied_nor_used(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    with pytest.raises(SystemExit, match=r"is not empty: mine\. Empty it"):
        release.build(ROOT, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_every_package_has_the_license() -> None:
    texts = {(ROOT / project / "LICENSE").read_text() for project in release.PROJECTS}
    assert len(texts) == 1


def test_image_archive_has_all_copied_files() -> None:
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


def test_workflow_pins_actions_and_limits_permissions() -> None:
    used = [step["uses"] for job in jobs().values() for step in job["steps"] if "uses" in step]
    assert [one for one in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", one)] == []
    assert {name for name, job in jobs().items() if job["permissions"].get("contents") == "write"} == {"publish"}
    assert all("secrets." not in str(step.get("run", "")) for job in jobs().values() for step in job["steps"])


def test_workflow_signs_only_where_nothing_is_built() -> None:
    signing = {name: job for name, job in jobs().items() if "id-token" in job["permissions"]}
    assert set(signing) == {"sign-image", "sign", "publish"}
    steps = [step for job in signing.values() for step in job["steps"]]
    assert [
        step for step in steps if re.search(r"\b(make|build|pip)\b|checkout|setup-python", str(step.get("run", "")))
    ] == []
    assert [step for step in steps if "checkout@" in step.get("uses", "")] == []


def test_lowest_versions_are_those_of_the_record() -> None:
    text = (ROOT / "docs/adr/0002-dependencies.md").read_text().split("## Lowest versions")[1].split("\n## ")[0]
    recorded = dict(re.findall(r"^\| ([\w-]+) \| ([\d.]+) \|", text, re.MULTILINE))
    admitted = {tuple(one.split(">=")) for project in release.PROJECTS for one in requirements(project) if ">=" in one}
    assert {(name, lowest) for name, lowest in admitted if name in recorded} == set(recorded.items())
    assert {name for name, _ in admitted} - set(recorded) == {"google-re2", "nvidia-ml-py"}


def test_workflow_runs_make_targets() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    lines = [
        line.strip() for job in jobs().values() for step in job["steps"] for line in step.get("run", "").splitlines()
    ]
    made = [line.split()[1] for line in lines if line.startswith("make ")]
    assert {"check", "test", "release"} == set(made) <= targets


@pytest.mark.skipif(not ZIZMOR.exists(), reason="zizmor is not installed")
def test_workflow_linter_finds_nothing() -> None:
    words = [str(ZIZMOR), "--offline", "--no-progress", "--pedantic", str(WORKFLOW)]
    found = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.slow
def test_released_bundles_name_the_pushed_image(tmp_path: Path) -> None:
    """Runbook links point to the release (R-OP-70)."""
    digest = f"registry.example.com/lws@sha256:{'0a' * 32}"
    settings = OperatorSettings(image=digest, operand_image=digest)
    publication = publishing.published("https://example.com/lws")
    generated = release.write_generated(tmp_path, settings, publication)
    pushed, plain = (release.packed(ROOT, VERSION, found) for found in (generated, {}))
    (_, bundles), (_, ours) = (found[f"lws-bundles-{VERSION}.tar.gz"] for found in (pushed, plain))
    version = "deploy/olm/leader-worker-set/manifests/leader-worker-set.clusterserviceversion.yaml"
    assert digest in bundles[version].read_text()
    assert digest not in ours[version].read_text()
    catalogs = {name for name in ours if name.startswith("deploy/olm/catalog/")}
    assert set(bundles) == set(ours) - catalogs
    assert catalogs
    page = f"https://example.com/lws/blob/v{VERSION}/docs/how-to/alerts.md#lwsmanagerdown"
    assert page in pushed[f"lws-monitoring-{VERSION}.tar.gz"][1]["deploy/monitoring/prometheusrule.yaml"].read_text()


def test_runbooks_may_be_published_elsewhere(tmp_path: Path) -> None:
    elsewhere = publishing.published("https://example.com/lws", "https://runbooks.example.com/lws")
    (name,) = [
        name for name in release.write_generated(tmp_path, None, elsewhere) if name.endswith("prometheusrule.yaml")
    ]
    text = (tmp_path / name.removeprefix("deploy/")).read_text()
    assert "runbook_url: https://runbooks.example.com/lws#lwsmanagerdown" in text
    assert release.write_generated(tmp_path / "none", None, None) == {}


@pytest.mark.parametrize("option", ["--repository", "--runbooks"])
def test_malformed_url_is_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str) -> None:
    with pytest.raises(SystemExit):
        release.main([str(tmp_path), option, "docs/how-to/alerts.md"])
    assert f"{option}: 'docs/how-to/alerts.md' is not a URL. Use https://" in capsys.readouterr().err
