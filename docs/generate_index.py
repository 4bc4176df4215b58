"""Writes the list of pages, docs/README.md, from the site navigation. With `--check`, only compares it.

python -m docs.generate_index [--check]
"""
# ruff: noqa: INP001 - a script of its own, which talks

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from docs import apipages, buildsite, generatedpage

PAGE: Final = Path(__file__).parent / "README.md"
OWN: Final = "docs/README.md"
DECISIONS: Final = "docs/adr/0"
"""The pages that are listed elsewhere."""
README: Final = "Introduces LeaderWorkerSet, which runs groups of pods on Kubernetes, and shows how to run a demo."
"""The content of the README, whose first sentence describes the product."""

HEAD: Final = """\
# All pages

<!-- Written by docs/generate_index.py from mkdocs.yml. Do not edit: make generate. -->

This page lists all pages by section. To browse the pages as a website with search, run `make docs-serve`.
"""


def page() -> str:
    """Return the complete page."""
    lines = [HEAD]
    for tab in buildsite.configuration()["nav"]:
        for title, entries in tab.items():
            lines += [f"## {title}", "", *section(entries), ""]
    return "\n".join(lines).rstrip() + "\n"


def section(entries: list[Any]) -> Iterator[str]:
    """Yield the page table of a section, followed by its subsections."""
    if not isinstance(entries[0], dict) or isinstance(next(iter(entries[0].values())), str):
        yield from ("| page | content |", "|---|---|")
    for entry in entries:
        for title, below in {"": entry}.items() if isinstance(entry, str) else entry.items():
            if isinstance(below, list):
                yield from ("", f"### {title}", "", *section(below))
            elif below != OWN and not below.startswith(DECISIONS) and below not in apipages.APIS:
                yield line(below)


def line(path: str) -> str:
    """Return the row of a page, with its title and its first sentence."""
    title, sentence = buildsite.introduction((buildsite.ROOT / path).read_text(encoding="utf-8"))
    sentence = re.sub(r"^This page ([a-z])", lambda match: match[1].upper(), sentence)
    link = os.path.relpath(path, PAGE.parent.relative_to(buildsite.ROOT))
    return f"| [{title}]({link}) | {README if path == 'README.md' else sentence} |"


if __name__ == "__main__":
    sys.exit(generatedpage.main(PAGE, "mkdocs.yml", page))
