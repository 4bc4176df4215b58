"""The documentation is built as a site; skipped without `make docs`, which installs what builds it."""

import re
from importlib.util import find_spec
from pathlib import Path

import msgspec
import pytest
from docs import buildsite

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("zensical") is None, reason="needs what make docs installs"),
]


@pytest.fixture(scope="module")
def site() -> Path:
    return buildsite.build()


def test_every_link_of_the_site_leads_somewhere_and_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    assert buildsite.faults(site) == []
    styles = [path.read_text() for path in site.rglob("*.css")]
    assert styles
    assert [found for text in styles for found in re.findall(r"url\(['\"]?(?:https?:)?//[^)]*", text)] == []


def test_the_index_of_the_search_has_every_page_and_knows_stuck(site: Path) -> None:
    items = msgspec.json.decode((site / "search.json").read_bytes())["items"]
    found = {item["location"].partition("#")[0] for item in items}
    assert {f"{page.removesuffix('.md').removesuffix('README')}" for _, page in _pages()} <= {
        re.sub(r"(index)?\.html$", "", place) for place in found
    }
    assert "docs/reference/causes.html" in {
        item["location"].partition("#")[0] for item in items if "stuck" in item["text"]
    }


def test_the_pages_that_programs_are_told_of_are_there(site: Path) -> None:
    listed = re.findall(r"^- \[[^\]]*\]\(([^)]*)\)", (site / "llms.txt").read_text(), re.MULTILINE)
    assert listed == [page for _, page in _pages()]
    assert [page for page in listed if not (site / page).is_file()] == []


def _pages() -> list[tuple[str, str]]:
    return [*buildsite.navigation(buildsite.configuration()["nav"])]
