"""Tests that manifests and commands on concept pages work, and that their output matches the pages."""

import pytest
import yaml
from tests.e2e.harness import ROOT, Shell
from tests.e2e.pages import commands, files, follow, unprinted

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]

PAGES = sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs/concepts").glob("*.md"))
KINDS = {"LeaderWorkerSet", "DisaggregatedSet"}


@pytest.mark.parametrize("page", PAGES)
def test_concept_page_applies_its_manifest(page: str) -> None:
    (name, *others) = files(page)
    assert yaml.safe_load(files(page)[name])["kind"] in KINDS
    assert others == []
    assert f"lws apply --local -f {name}" in set(commands(page))


@pytest.mark.parametrize("page", PAGES)
def test_concept_page_prints_what_it_shows(shell: Shell, page: str) -> None:
    assert unprinted(page, follow(shell, page)) == []
    shell.assert_nothing_is_left()
