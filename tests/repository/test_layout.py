"""Tests that directories are small, do not import each other, and that names have one meaning (ADR 0007)."""

from pathlib import Path
from typing import Final

import pytest
from testkit import repository
from tests import layout

from leaderworkerset.webhooks import certificatesubprocess

ROLES_OF_FOLDERS: Final = {
    "kuberuntime": {},
    "localkube": {"controller": "the driver of one controller, in the folder of that controller"},
    "leaderworkerset": {
        "disaggregatedset": "what a folder has for this kind: its fields, admission, controller and entry in the registry",
        "leaderworkerset": "as disaggregatedset",
        "permissions": "what the modules of this folder may do at the API server: controllers, webhooks",
        "pod": "as disaggregatedset",
        "reconcile": "the decision about one object of a kind: leaderworkerset, pod, the disruption budgets of a set",
        "spec": "the type by which the registry knows what a folder holds: a controller, a webhook",
    },
    "lwsctl": {"document": "what a folder shows, as the values of `-o json`: views and diagnosis"},
}
"""The module names that occur in several directories of a package, and their common role."""

ROLES_OF_THE_TREE: Final = {
    "controller": "what runs one controller: its driver in localkube, the loop that every driver has in kuberuntime",
    "disaggregatedset": "see above",
    "errors": "the errors of a package that its callers catch: kuberuntime, localkube, and the command line",
    "leaderworkerset": "see above",
    "permissions": "what the modules of this folder may do at the API server: serving, controllers, webhooks",
    "reconcile": "see above: the decision about one object of a kind, or about what one controller has",
    "pod": "see above; in localkube, what the scheduler knows of a pod",
}
"""Module names that occur three times or more in all packages, and their common role."""


@pytest.mark.parametrize("package", repository.PACKAGES)
def test_folders_have_a_limited_number_of_modules(package: str) -> None:
    assert {folder: size for folder, size in layout.sizes(package).items() if size > layout.MOST_MODULES} == {}


@pytest.mark.parametrize("package", repository.PACKAGES)
def test_no_two_folders_import_each_other(package: str) -> None:
    assert layout.mutual(package) == []


def test_mutual_imports_are_detected(tmp_path: Path) -> None:
    texts = {
        "a/one.py": "from p.b import two",
        "b/two.py": "from p.a.one import x",
        "a/c/below.py": "from p.a import one",
    }
    for name, text in texts.items():
        path = tmp_path / "p" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert layout.mutual("p", tmp_path) == [("p.a", "p.b")]


@pytest.mark.parametrize("package", ["leaderworkerset", "lwsctl"])
def test_product_has_no_unused_module(package: str) -> None:
    """Commands and executables are loaded by name.

    Modules that build releases or serve tests are not in the wheel.
    """
    named = ("lwsctl.cli.commands.", certificatesubprocess.PROGRAM)
    unread = [name for name in layout.unread(package) if not name.startswith(named)]
    assert unread == []


def test_unused_module_is_detected(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    for name, text in {"one": "from p import two", "two": "", "three": ""}.items():
        (tmp_path / "p" / f"{name}.py").write_text(text)
    assert layout.unread("p", tmp_path) == ["p.one", "p.three"]


@pytest.mark.parametrize("package", repository.PACKAGES)
def test_public_type_names_are_unique_in_a_package(package: str) -> None:
    assert layout.repeated(layout.type_names(package)) == []


@pytest.mark.parametrize("package", repository.PACKAGES)
def test_modules_of_a_package_share_a_name_only_for_one_role(package: str) -> None:
    assert layout.repeated(layout.module_names(package)) == sorted(ROLES_OF_FOLDERS[package])


def test_module_names_repeat_in_the_tree_only_for_one_role() -> None:
    everywhere = [name for package in repository.PACKAGES for name in layout.module_names(package)]
    assert layout.repeated(everywhere, times=3) == sorted(ROLES_OF_THE_TREE)


def test_no_module_counts_parent_folders_of_the_repository() -> None:
    """The path is in `testkit.repository`."""
    counting = [
        path.relative_to(repository.ROOT).as_posix()
        for path in (repository.ROOT / "tests").rglob("*.py")
        if f"Path(__file__).parents[{len(path.relative_to(repository.ROOT).parts) - 1}]" in path.read_text()
    ]
    assert counting == []


def test_folder_with_a_shared_cluster_is_a_package() -> None:
    """If the directory were not a package, a package-scoped fixture would exist until all tests have run."""
    conftests = [path for name, path in repository.files_of_tests() if name.endswith("conftest.py")]
    found = [path.parent for path in conftests if 'scope="package"' in path.read_text()]
    assert found
    assert [str(folder) for folder in found if not (folder / "__init__.py").exists()] == []


@pytest.mark.parametrize(
    ("package", "foreign"),
    [
        ("kuberuntime", ("localkube", "leaderworkerset", "lwsctl")),
        ("localkube", ("leaderworkerset", "lwsctl")),
        ("leaderworkerset", ("lwsctl",)),
    ],
)
def test_tests_of_a_package_import_no_higher_package(package: str, foreign: tuple[str, ...]) -> None:
    folders = (
        repository.ROOT / "packages" / package / "tests",
        repository.ROOT / "packages/testkit/src/testkit/clusters",
    )
    imported = {
        (path.name, module)
        for folder in folders[: 1 if package == "kuberuntime" else 2]
        for path in folder.rglob("*.py")
        for module, _ in layout.imports(path)
        if module.partition(".")[0] in foreign
    }
    assert imported == set()
