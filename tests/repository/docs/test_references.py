"""Tests that references in documents are valid: links, sections, files, tests, options, and `make` targets."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from testkit.repository import ROOT

LEFT_OUT = {".git", ".venv", ".venvs", "__pycache__", "build", "dist", "node_modules"}


def files(folder: Path) -> Iterator[Path]:
    """Yield the files in the repository, except built or installed files."""
    for path in sorted(folder.iterdir()):
        if path.name not in LEFT_OUT and not path.name.startswith(".venv") and not path.name.endswith("_cache"):
            yield from files(path) if path.is_dir() else [path]


@cache
def names() -> frozenset[str]:
    return frozenset(str(path.relative_to(ROOT)) for path in files(ROOT))


@cache
def places() -> frozenset[str]:
    return names() | {str(parent) for name in names() for parent in Path(name).parents}


def pages() -> list[str]:
    return sorted(name for name in names() if name.endswith(".md"))


def own() -> list[str]:
    """Return the pages about this project. The contracts quote files of other projects."""
    return [name for name in pages() if "contract" not in name]


LINK = re.compile(r"(?<!\\)\]\((?!https?:)([^)\s]+)\)")
CODE = re.compile(r"`([^`\n]+)`")
FILE = re.compile(r"(?:[\w.-]+/)*[\w-]+\.(?:py|md|jsonl|toml|sh|svg|lock)")
PLACEHOLDERS = re.compile(r"\bNAME\b")


def text_of(page: str) -> str:
    return (ROOT / page).read_text()


def prose_of(page: str) -> str:
    """Return a page without code blocks, and without patterns that resemble links."""
    return re.sub(r"^```.*?^```$", "", text_of(page), flags=re.MULTILINE | re.DOTALL)


@cache
def anchors(page: str) -> set[str]:
    """Return the anchors on a page, which are the anchors of headings and explicit anchors."""
    headings = re.findall(r"^#+ (.+)$", text_of(page), re.MULTILINE)
    own = set(re.findall(r'<a id="([^"]+)">', text_of(page)))
    return own | {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page: str, text: str) -> list[str]:
    """Return the links in a text that have no valid target."""
    found = []
    for link in LINK.findall(CODE.sub("", text)):
        name, _, section = link.partition("#")
        # The content of changelog.d becomes part of CHANGELOG.md.
        is_note = page.startswith("changelog.d/") and not page.endswith("/README.md")
        folder = ROOT if is_note else (ROOT / page).parent
        target = str((folder / name).resolve().relative_to(ROOT)) if name else page
        if target not in places() or (section and section not in anchors(target)):
            found.append(link)
    return found


def missing_files(text: str) -> list[str]:
    """Return the files in a text that do not exist. A path may omit its first directories."""
    named = {word for code in CODE.findall(text) for word in code.split() if FILE.fullmatch(word)}
    return sorted(
        word
        for word in named
        if not PLACEHOLDERS.search(word) and not any(one == word or one.endswith(f"/{word}") for one in names())
    )


def test_every_link_resolves() -> None:
    assert {page: links for page in pages() if (links := broken_links(page, prose_of(page)))} == {}


def test_every_named_file_exists() -> None:
    assert {page: named for page in own() if (named := missing_files(prose_of(page)))} == {}


def test_every_named_test_exists() -> None:
    named = {word for page in own() for word in re.findall(r"`(test_\w+)`", text_of(page))}
    modules = [name for name in names() if Path(name).name.startswith("test_") and name.endswith(".py")]
    defined = {word for name in modules for word in definitions_of(name)}
    assert named - defined == set()


def definitions_of(name: str) -> list[str]:
    return re.findall(r"def (test_\w+)\(", text_of(name))


def test_every_named_make_target_exists() -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", text_of("Makefile"), re.MULTILINE))
    # The changelog also mentions objects of earlier versions.
    named = {
        word
        for page in own()
        if page != "CHANGELOG.md"
        for word in re.findall(r"(?:`|^|    )make ([a-z][a-z-]*)", text_of(page), re.MULTILINE)
    }
    assert {"demo", "test", "contract"} <= named
    assert named - targets == set()


def test_every_page_is_in_the_list_of_pages() -> None:
    listed = set(re.findall(r"\]\(([\w/.-]+\.md)\)", text_of("docs/README.md")))
    found = {
        name.removeprefix("docs/") for name in pages() if name.startswith(("docs/how-to", "docs/expl", "docs/ref"))
    }
    assert found - listed == set()


def test_every_item_of_a_numbered_list_begins_a_line() -> None:
    """Markdown renders `1. One. 2. Two.` as one item. `tests/kubernetes/programs/test_site.py` compares the HTML."""
    texts = {page: re.sub(r"`[^`]*`", "", prose_of(page)) for page in pages()}
    joined = re.compile(r"^ *\d\. (?:(?!\n *\d\. |\n\n)[\s\S])*?[.:)] [2-9]\. [A-Z`]", re.MULTILINE)
    assert [page for page, text in texts.items() if joined.search(text)] == []
    assert joined.search("1. One. 2. Two.\n")
    assert not joined.search("1. One.\n2. Two.\n")


def test_lists_and_paragraphs_are_separated_by_an_empty_line() -> None:
    """Otherwise, Markdown renders the first item as text, or a line that begins with a number as an item."""
    item = r" *(?:\d+\.|[-*+]) "
    merged = re.compile(rf"(?:\A|\n\n)(?!{item}| *[>|#<])(?:(?!{item})[^\n]+\n)+{item}")
    assert [page for page in pages() if merged.search(prose_of(page))] == []
    assert merged.search("A paragraph:\n- an item\n")
    assert not merged.search("A paragraph:\n\n- an item\n  of two lines\n- an item\n")


def test_missing_target_is_detected() -> None:
    text = "See [that](../gone.md), [this](#not-there) and `tests/virtualtime.py`; `kinds/managedkinds.py` is there."
    assert broken_links("docs/adr/0001-shape.md", text) == ["../gone.md", "#not-there"]
    assert missing_files(text) == ["tests/virtualtime.py"]
