"""Tests that the site contains each page in the repository, and that errors in the site are found."""

import re
import subprocess
from pathlib import Path

import pytest
from docs import apipages, buildsite

LEFT_OUT = re.compile(
    r"deploy/helm/lws/README|tests/(controlplane|node)/|packages/(leaderworkerset|lwsctl|testkit)/README|changelog\.d/"
)
"""The chart page, which is shipped with the chart, and pages only for developers."""


def test_every_page_is_in_the_navigation_once() -> None:
    named = [page for _, page in buildsite.navigation(buildsite.configuration()["nav"])]
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md", ":!changelog.d"],
        cwd=buildsite.ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert sorted(named) == sorted(
        page for page in {*listed.stdout.split(), *apipages.APIS} if not LEFT_OUT.match(page)
    )


def test_every_decision_is_in_the_list_of_decisions() -> None:
    folder = buildsite.ROOT / "docs" / "adr"
    listed = re.findall(r"\]\((.+?\.md)\)", (folder / "README.md").read_text())
    assert listed == sorted(path.name for path in folder.glob("0*.md"))


def test_navigation_sections_have_their_order() -> None:
    sections = dict.fromkeys(section for section, _ in buildsite.navigation(buildsite.configuration()["nav"]))
    assert [*sections] == ["Start", "Concepts", "Run", "Operate", "Reference", "Develop"]


@pytest.mark.parametrize(
    ("page", "title", "sentence"),
    [
        ("# A\n\nOne is `x: 1`. Two.", "A", "One is `x: 1`."),
        ("# 3. A\n\n```bash\nmake. it\n```\n\n- a list\n\n| a | b |\n\n[Later](b.md) comes:", "3. A", "Later comes"),
        ("# A\n\n<!-- made. -->\n", "A", ""),
    ],
)
def test_page_is_introduced_by_title_and_first_sentence(page: str, title: str, sentence: str) -> None:
    assert buildsite.introduction(page) == (title, sentence)


def test_list_for_programs_names_every_page_with_its_section(tmp_path: Path) -> None:
    for name, text in {"a.md": "# First\n\nIt is one. Two.", "b.md": "# Second\n"}.items():
        (tmp_path / name).write_text(text)
    told = {"site_name": "S", "site_description": "D", "nav": [{"Up": ["a.md", {"In": [{"Named": "b.md"}]}]}]}
    expected = "# S\n\n> D\n\n## Up\n\n- [First](a.md): It is one.\n- [Second](b.md)\n"
    assert buildsite.contents(tmp_path, told) == expected


@pytest.mark.parametrize(
    ("element", "said"),
    [
        ('<a href="b.html#there">', None),
        ('<a href="folder/">', None),
        ('<a href="https://example.com/">', None),
        ('<link rel="canonical" href="https://example.com/">', None),
        ('<a href="#here">', None),
        ('<a href="c.html">', "a.html names c.html, which is not there"),
        ('<a href="b.html#gone">', "a.html names b.html#gone, which is not there"),
        ('<a href="#gone">', "a.html names #gone, which is not there"),
        ('<a href="../outside.html">', "a.html names ../outside.html, which is not there"),
        ('<img src="no.svg">', "a.html names no.svg, which is not there"),
        ('<script src="https://example.com/x.js">', "a.html loads https://example.com/x.js, which is not of the site"),
        (
            '<link rel="stylesheet" href="//example.com/x.css">',
            "a.html loads //example.com/x.css, which is not of the site",
        ),
    ],
)
def test_broken_links_and_external_resources_are_detected(tmp_path: Path, element: str, said: str | None) -> None:
    site = tmp_path / "site"
    (site / "folder").mkdir(parents=True)
    (tmp_path / "outside.html").touch()
    (site / "a.html").write_text(f'<h1 id="here">{element}')
    (site / "b.html").write_text('<h2 id="there">')
    (site / "folder" / "index.html").touch()
    assert buildsite.faults(site) == ([said] if said else [])
