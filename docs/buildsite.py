"""Collects the Markdown files of the repository, builds the documentation site, and checks the result.

    python -m docs.buildsite                        write build/site/html
    python -m docs.buildsite --serve                build it, and serve it on 127.0.0.1:8000
    python -m docs.buildsite --publish DIRECTORY    build it, and put it there next to the other versions

The pages stay where they are, and are copied below build/site/pages in the same order of folders, so that their links
hold; the pages of Python interfaces are generated there (`apipages.py`). `mkdocs.yml` names them; `llms.txt` lists them
with their first sentences, for programs that read.
"""
# ruff: noqa: INP001, T201 - a script of its own, which talks

import argparse
import functools
import http.server
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import yaml
from docs import apipages

import leaderworkerset

ROOT: Final = Path(__file__).parents[1]
CONFIGURATION: Final = "mkdocs.yml"
PORT: Final = 8000

BUILDERS: Final = {
    "zensical": ("-m", "zensical", "build", "--clean"),
    "mkdocs": ("-m", "mkdocs", "build", "--clean", "--quiet"),  # with mkdocs-material, the alternative to Zensical
}
VERSIONS: Final = "versions.json"
"""The file for the version selector at the top of a page. The theme reads it from the parent directory."""

FIRST: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Documentation</title>
<meta http-equiv="refresh" content="0; url={version}/"></head>
<body><a href="{version}/">The documentation of version {version}</a></body></html>
"""

LINK: Final = re.compile(r"\]\((?!\w+:|#)([^)\s#]+)")
LOADING: Final = {"img": "src", "script": "src", "iframe": "src", "source": "src", "link": "href"}
"""The elements that load a resource when a page is opened."""

NAMED_ONLY: Final = frozenset({"canonical", "alternate", "next", "prev", "edit"})
"""The `link` relations that do not load a resource."""


def configuration(root: Path = ROOT) -> dict[str, Any]:
    """Return the content of `mkdocs.yml`."""
    config: dict[str, Any] = yaml.safe_load((root / CONFIGURATION).read_text(encoding="utf-8"))
    return config


def navigation(entries: list[Any], section: str = "") -> Iterator[tuple[str, str]]:
    """Yield the pages of the navigation in order, with their top-level section."""
    for entry in entries:
        for name, below in {"": entry}.items() if isinstance(entry, str) else entry.items():
            if isinstance(below, str):
                yield section, below
            else:
                yield from navigation(below, section or name)


def gather(root: Path, into: Path) -> None:
    """Copy the pages, the repository files to which they link, and the style sheet of this project."""
    shutil.rmtree(into, ignore_errors=True)
    api_pages, config = apipages.pages(), configuration(root)
    pages = [root / page for _, page in navigation(config["nav"]) if page not in api_pages]
    styles = [root / style for style in config.get("extra_css", ())]
    linked = {page.parent / link for page in pages for link in LINK.findall(page.read_text(encoding="utf-8"))}
    for path in {*pages, *styles, *(file.resolve() for file in linked if file.is_file())}:
        place = into / path.relative_to(root)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)
    for name, text in api_pages.items():
        (into / name).write_text(text, encoding="utf-8")
    (into / "llms.txt").write_text(contents(into, config), encoding="utf-8")


def contents(pages: Path, config: dict[str, Any]) -> str:
    """Return the list of collected pages by section, with titles and first sentences (https://llmstxt.org)."""
    lines, before = [f"# {config['site_name']}", "", f"> {config['site_description']}"], ""
    for section, page in navigation(config["nav"]):
        lines += ["", f"## {section}", ""] if section != before else []
        before = section
        title, sentence = introduction((pages / page).read_text(encoding="utf-8"))
        lines.append(f"- [{title}]({page}){f': {sentence}' if sentence else ''}")
    return "\n".join([*lines, ""])


def introduction(page: str) -> tuple[str, str]:
    r"""Return the title of a page, and the first sentence after it outside lists, tables and comments.

    >>> introduction("# See what runs\n\n<!-- made -->\nAll [groups](a.md)\nin one. More.")
    ('See what runs', 'All groups in one.')
    """
    title, _, rest = re.sub(r"<!--.*?-->", "", page, flags=re.DOTALL).partition("\n")
    paragraphs = (" ".join(paragraph.split()) for paragraph in rest.split("\n\n"))
    plain = next((paragraph for paragraph in paragraphs if re.match(r"\w|\[|`(?!``)", paragraph)), "")
    sentence = re.split(r"(?<=\.)\s", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", plain))[0]
    return title.lstrip("# "), sentence.removesuffix(":")


class Page(HTMLParser):
    """The anchors and links on a page of the site, and the files that the page loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.places: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Process the start of an element."""
        attributes = dict(attrs)
        self.places |= {name for name in (attributes.get("id"), attributes.get("name")) if name}
        if tag == "a" and (link := attributes.get("href")):
            self.links.append(link)
        relations = set((attributes.get("rel") or "").split())
        if (loaded := attributes.get(LOADING.get(tag, ""))) and not (tag == "link" and relations & NAMED_ONLY):
            self.loads.append(loaded)


def faults(site: Path) -> list[str]:
    """Return the errors in a site, which are broken links and resources from other hosts."""
    pages = {path.relative_to(site): Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    errors = []
    for at, page in pages.items():
        elsewhere = [load for load in page.loads if urlsplit(load).netloc]
        errors += [f"{at} loads {load}, which is not of the site" for load in elsewhere]
        for link in [*page.links, *(load for load in page.loads if load not in elsewhere)]:
            if at.name != "404.html" and not _is_there(site, pages, at, link):
                errors.append(f"{at} names {link}, which is not there")
    return errors


def _is_there(site: Path, pages: dict[Path, Page], at: Path, link: str) -> bool:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return True
    path = PurePosixPath(at.parent.as_posix(), unquote(parts.path)) if parts.path else PurePosixPath(at.as_posix())
    target = (site / path).resolve()
    target = target / "index.html" if target.is_dir() else target
    if not target.is_file() or not target.is_relative_to(site.resolve()):
        return False
    page = pages.get(target.relative_to(site.resolve()))
    return not parts.fragment or page is None or unquote(parts.fragment) in {*page.places, "__skip"}


def build(root: Path = ROOT, builder: str = "zensical", python: str = sys.executable) -> Path:
    """Collect the pages, build the site with the first available tool in BUILDERS, and return its directory."""
    config = configuration(root)
    gather(root, root / str(config["docs_dir"]))
    site = root / str(config["site_dir"])
    shutil.rmtree(site, ignore_errors=True)
    words = [python, *BUILDERS[builder], "--config-file", str(root / CONFIGURATION)]
    process = subprocess.run(words, cwd=root, capture_output=True, text=True, check=False)
    if process.returncode:
        raise SystemExit(f"{builder} exited with code {process.returncode}:\n{process.stdout}{process.stderr}")
    for _, page in navigation(config["nav"]):  # unchanged, for tools that read them through llms.txt
        shutil.copyfile(root / str(config["docs_dir"]) / page, site / page)
    return site


def publish(site: Path, into: Path, version: str) -> None:
    """Copy a site to the directory of its version. List all versions, latest first, on all pages."""
    shutil.rmtree(into / version, ignore_errors=True)
    shutil.copytree(site, into / version)
    versions = sorted((path.parent.name for path in into.glob("*/index.html")), key=_numbers, reverse=True)
    entries = [
        {"version": name, "title": name, "aliases": ["latest"] if name == versions[0] else []} for name in versions
    ]
    (into / VERSIONS).write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")
    (into / "index.html").write_text(FIRST.format(version=versions[0]), encoding="utf-8")


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def serve(site: Path) -> None:
    """Serve a site on this machine until Ctrl-C."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", PORT), handler) as server:
        print(f"http://127.0.0.1:{PORT}/ until Ctrl-C")
        server.serve_forever()


def main() -> int:
    """Build, check and, if requested, serve the site. Return the exit code."""
    parser = argparse.ArgumentParser(description="Build the documentation as a site.")
    parser.add_argument("--serve", action="store_true", help="serve it on this machine")
    parser.add_argument("--publish", type=Path, metavar="DIRECTORY", help="put it there next to the other versions")
    options = parser.parse_args()
    site = build()
    errors = faults(site)
    print(
        "\n".join(errors)
        or f"{site.relative_to(ROOT)}: {len([*site.rglob('*.html')])} pages, every link leads somewhere"
    )
    if options.publish and not errors:
        publish(site, options.publish, leaderworkerset.__version__)
    if options.serve and not errors:
        serve(site)
    return int(bool(errors))


if __name__ == "__main__":
    sys.exit(main())
