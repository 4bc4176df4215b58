"""Tests that both tools build the documentation site in separate environments."""

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec
import pytest
from docs import buildsite
from testkit.examples import IS_THOROUGH

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("site")]

RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the Python executable of an environment with exactly the locked documentation packages."""
    place = tmp_path_factory.mktemp("site") / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    locks = [
        word
        for name in ("docs", "mkdocs")[: 1 + IS_THOROUGH]
        for word in ("-r", str(buildsite.ROOT / f"requirements/{name}.lock"))
    ]
    quiet = ("--quiet", "--disable-pip-version-check")
    target = ("--python", str(place / "bin" / "python"))
    subprocess.run([sys.executable, "-m", "pip", *target, "install", *quiet, "--require-hashes", *locks], check=True)
    return str(place / "bin" / "python")


@pytest.fixture(scope="module")
def site(python: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the site that Zensical built, separate from other builds."""
    return Path(shutil.move(buildsite.build(python=python), tmp_path_factory.mktemp("site") / "html"))


@pytest.mark.skipif(not IS_THOROUGH, reason="make nightly builds it (THOROUGH=1)")
def test_mkdocs_material_builds_the_same_site(site: Path, python: str) -> None:
    """The alternative to Zensical: https://squidfunk.github.io/mkdocs-material/ reads the same file."""
    other = buildsite.build(builder="mkdocs", python=python)
    assert buildsite.faults(other) == []
    pages = [{path.relative_to(one) for path in one.rglob("*.html")} for one in (site, other)]
    assert pages[0] == pages[1]


def test_every_link_resolves_and_nothing_external_is_loaded(site: Path) -> None:
    assert buildsite.faults(site) == []
    styles = [path.read_text() for path in site.rglob("*.css")]
    assert styles
    assert [found for text in styles for found in re.findall(r"url\(['\"]?(?:https?:)?//[^)]*", text)] == []


class NumberedItems(HTMLParser):
    """Counts the items of numbered lists on a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.lists: list[str] = []
        self.count = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Process the start of an element."""
        if tag in {"ol", "ul"}:
            self.lists.append(tag)
        self.count += tag == "li" and self.lists[-1:] == ["ol"]

    def handle_endtag(self, tag: str) -> None:
        """Process the end of a list."""
        if tag in {"ol", "ul"}:
            self.lists.pop()


def test_numbered_lists_are_rendered_as_lists(site: Path) -> None:
    differing = {}
    for page in (page for _, page in _pages() if "contract" not in page):
        text = re.sub(r"^ *```.*?^ *```$", "", (site / page).read_text(), flags=re.MULTILINE | re.DOTALL)
        path = site / page
        html = path.with_name("index.html") if path.name == "README.md" else path.with_suffix(".html")
        written = len(re.findall(r"^ *\d+\. ", text, re.MULTILINE))
        if (rendered := NumberedItems(html.read_text()).count) != written:
            differing[page] = (written, rendered)
    assert differing == {}


def test_search_index_has_every_page_and_the_word_stuck(site: Path) -> None:
    items = msgspec.json.decode((site / "search.json").read_bytes())["items"]
    found = {item["location"].partition("#")[0] for item in items}
    assert {f"{page.removesuffix('.md').removesuffix('README')}" for _, page in _pages()} <= {
        re.sub(r"(index)?\.html$", "", place) for place in found
    }
    assert "docs/reference/causes.html" in {
        item["location"].partition("#")[0] for item in items if "stuck" in item["text"]
    }


def test_pages_listed_for_programs_exist(site: Path) -> None:
    listed = re.findall(r"^- \[[^\]]*\]\(([^)]*)\)", (site / "llms.txt").read_text(), re.MULTILINE)
    assert listed == [page for _, page in _pages()]
    assert [page for page in listed if not (site / page).is_file()] == []


class Quiet(SimpleHTTPRequestHandler):
    """Serves files without writing a log."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
        pass


@contextmanager
def opened(site: Path, scheme: str) -> Iterator[tuple[Any, str, list[str]]]:
    """Serve the site, and open a browser. Yield its page, the address, and the requests and errors."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = os.environ.get("LWS_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if not program:
        pytest.skip("no chromium on this machine; LWS_CHROMIUM names one")
    asked: list[str] = []
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with playwright.sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
            page = browser.new_page(color_scheme=scheme)
            page.on("request", lambda request: asked.append(request.url))
            page.on("pageerror", lambda error: asked.append(str(error)))
            yield page, f"http://127.0.0.1:{server.server_address[1]}/", asked
            browser.close()
        server.shutdown()


def test_versions_are_published_newest_first(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "index.html").write_text('<a href="page.html">A page</a>')
    (site / "page.html").write_text('<a href="index.html">The first</a>')
    published = tmp_path / "published"
    # the last version is published a second time, as after a correction
    for version in ("0.10.0", "0.2.0", "0.9.0", "0.2.0"):
        buildsite.publish(site, published, version)
    listed = msgspec.json.decode((published / "versions.json").read_bytes())
    assert [(one["version"], one["aliases"]) for one in listed] == [
        ("0.10.0", ["latest"]),
        ("0.9.0", []),
        ("0.2.0", []),
    ]
    assert "url=0.10.0/" in (published / "index.html").read_text()
    assert buildsite.faults(published) == []


def test_reader_can_select_a_different_version(site: Path, tmp_path: Path) -> None:
    for version in ("0.2.0", "0.3.0"):
        buildsite.publish(site, tmp_path, version)
    with opened(tmp_path, "light") as (page, base, asked):
        page.goto(base)
        page.wait_for_url("**/0.3.0/**")
        page.locator(".md-version__current").hover(force=True)  # the opened list covers the element
        page.locator(".md-version__link", has_text="0.2.0").click()
        page.wait_for_url("**/0.2.0/**")
        assert [url for url in asked if not url.startswith(base)] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_browser_search_finds_stuck_without_external_requests(site: Path, scheme: str) -> None:
    with opened(site, scheme) as (page, base, asked):
        for path in ("docs/how-to/first-steps.html", "docs/reference/causes.html", "index.html"):
            page.goto(base + path)
        assert page.evaluate("document.body.dataset.mdColorScheme") == {"light": "default", "dark": "slate"}[scheme]
        page.click(".md-search__button")
        page.locator("input[type=search], input[placeholder]").last.fill("stuck")
        page.locator("a[href*='reference/causes.html?h=stuck']").first.click()
        page.wait_for_url("**/causes.html*")
        assert [url for url in asked if not url.startswith(base)] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_pass_the_accessibility_rules(site: Path, scheme: str) -> None:
    """Tests WCAG 2.1, levels A and AA.

    The theme violates one best practice of axe, because two menus share a name.
    """
    axe = pytest.importorskip("axe_core_python", reason="axe-core-python is not installed")
    source = (resources.files(axe.__name__) / "axe.min.js").read_text(encoding="utf-8")
    with opened(site, scheme) as (page, base, _):
        for path in ("index.html", "docs/explanation/choose.html", "docs/reference/cli.html"):
            page.goto(base + path)
            page.evaluate(source)
            found = page.evaluate(f"axe.run({RULES})")["violations"]
            assert [(one["id"], [node["html"][:150] for node in one["nodes"]]) for one in found] == [], path


def _pages() -> list[tuple[str, str]]:
    return [*buildsite.navigation(buildsite.configuration()["nav"])]
