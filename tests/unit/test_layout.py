"""Folders are small, and no two of a package import each other (ADR 0007)."""

from pathlib import Path

import pytest
from tests import layout


@pytest.mark.parametrize("package", layout.PACKAGES)
def test_no_folder_has_more_modules_than_can_be_read_at_a_glance(package: str) -> None:
    assert {folder: size for folder, size in layout.sizes(package).items() if size > layout.MOST_MODULES} == {}


@pytest.mark.parametrize("package", layout.PACKAGES)
def test_no_two_folders_import_each_other(package: str) -> None:
    assert layout.mutual(package) == []


def test_two_folders_that_import_each_other_would_be_found(tmp_path: Path) -> None:
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
