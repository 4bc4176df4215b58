"""Tests that the page about extensions refers to existing files."""

import re
from pathlib import Path

import pytest

PAGE = Path("docs/how-to/extend.md")
ROOTS = (Path(), *(Path("packages") / name / "src" for name in ("kuberuntime", "localkube", "leaderworkerset", "lwsctl")), Path("packages/leaderworkerset/src/leaderworkerset"), Path("packages/lwsctl/src/lwsctl"), Path("packages/localkube/src/localkube"), Path("packages/localkube/src/localkube/kubelet"), Path("packages/localkube/src/localkube/apiserver"))  # fmt: skip
"""The directories with which paths on the page start."""

SECTIONS = [part for part in PAGE.read_text().split("\n## ") if "`" in part]
CODE = re.compile(r"`([\w./-]+)`")
PLACEHOLDER = "NAME"


def paths_of(section: str) -> list[str]:
    """Return the paths in a section. They have the form `folder/` or `folder/file.py`, but not `app.py`."""
    words = [word for word in CODE.findall(section) if not word.startswith(("/", "-", "."))]
    return [word for word in words if "/" in word and PLACEHOLDER not in word]


def files_of(section: str) -> list[str]:
    """Return the files in a section without a directory."""
    return [
        word for word in CODE.findall(section) if "/" not in word and Path(word).suffix in {".py", ".json", ".toml"}
    ]


def folders_of(section: str) -> set[Path]:
    """Return the directories in a section, including the directories of its files."""
    named = [word.replace(f"{PLACEHOLDER}.py", "") for word in CODE.findall(section) if "/" in word]
    found = {root / word for root in ROOTS for word in named if (root / word).exists()}
    return {path if path.is_dir() else path.parent for path in found} | {Path()}


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.splitlines()[0])
def test_every_path_of_a_section_exists(section: str) -> None:
    missing = [word for word in paths_of(section) if not any((root / word).exists() for root in ROOTS)]
    assert not missing


@pytest.mark.parametrize("section", SECTIONS[1:], ids=lambda section: section.splitlines()[0])
def test_file_named_alone_is_in_a_folder_of_its_section(section: str) -> None:
    folders = folders_of(section)
    missing = [word for word in files_of(section) if not any((folder / word).exists() for folder in folders)]
    assert not missing


def test_missing_path_is_detected() -> None:
    section = "A rule\n\nIn `localkube/controllers/scheduler/`: `podinfo.py`, `cluster.py`; see `localkube/gone/`."
    assert paths_of(section) == ["localkube/controllers/scheduler/", "localkube/gone/"]
    assert not any((root / "localkube/gone/").exists() for root in ROOTS)
    assert [word for word in files_of(section) if not any((one / word).exists() for one in folders_of(section))] == [
        "cluster.py"
    ]


def test_every_constant_of_the_page_is_defined() -> None:
    named = set(re.findall(r"`([A-Z_]{3,})`", PAGE.read_text())) - {PLACEHOLDER}
    files = [path for folder in ("packages", "tests") for path in Path(folder).rglob("*.py")]
    defined = {name for path in files for name in re.findall(r"^([A-Z_]{3,})\b", path.read_text(), re.MULTILINE)}
    assert named - defined == set()
