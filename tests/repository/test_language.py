"""Tests that replaced words become less frequent, and that examples in docstrings work."""

import doctest
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from testkit import repository
from tests.repository import language

SLACK = 0.05
"""The fraction by which a count may decrease before the stored count must be updated, to avoid conflicts."""


@pytest.mark.slow
@pytest.mark.parametrize("area", language.permitted())
def test_language_has_no_more_hits_than_permitted(area: str) -> None:
    hits, most = language.hits(area), language.permitted()[area]
    command = f"`python -m tests.repository.language {area!r}` lists them"
    assert len(hits) <= most, f"{len(hits)} hits of the word list, {most} permitted: {command}"
    is_young = area.startswith(
        ("standard", "two", "replaced")
    )  # a rewrite can change these counts, and a shallow clone has no history
    lowest = 0 if is_young else int(most * (1 - SLACK))
    assert len(hits) >= lowest, (
        f"only {len(hits)} hits, {most} permitted: lower the number with {command[:-13]} --write"
    )


@pytest.mark.slow
@pytest.mark.parametrize("package", [*repository.PACKAGES, "tests"])
def test_examples_in_docstrings_pass(package: str) -> None:
    failed = {}
    for name, path in modules_of_tests() if package == "tests" else repository.modules(package):
        if ">>> " in path.read_text():
            module = importlib.import_module(name.removesuffix(".py").replace("/", ".").removesuffix(".__init__"))
            if doctest.testmod(module).failed:
                failed[name] = "see standard output"
    assert failed == {}


def modules_of_tests() -> Iterator[tuple[str, Path]]:
    """Yield the modules of tests and of testkit, each with its name, for example `tests/e2e/harness.py`."""
    for name, path in repository.files_of_tests():
        yield name if name.startswith("testkit/") else f"tests/{name}", path


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("The user is told.", ["report, log, print"]),
        ("What is left is deleted.", ["a noun as the subject"]),
        ("What is left?", []),
        ("Run `lws tell`; it works.", []),
        ("One; two; three.", ["several sentences, or a list"]),
    ],
)
def test_wording_to_replace_is_reported(text: str, instead: list[str]) -> None:
    assert [hit.instead for hit in language.wording("a.md", text)] == instead


def test_long_sentences_are_reported() -> None:
    assert not list(language.long_sentences("a.md", " ".join(["word"] * 25)))
    assert [hit.place for hit in language.long_sentences("a.md", " ".join(["word"] * 26))] == ["a.md"]


def test_pages_are_split_into_blocks() -> None:
    page = "# Title\n\nSome\ntext.\n\n- a\n- b\n\n```\ncode\n```\n\n| x | y |\n|---|---|\n| 1 | 2 |\n"
    texts = [text for text, _ in language.blocks(page)]
    assert [text for text in texts if "-" not in text] == ["Title", "Some\ntext.", "a", "b", "x", "y", "1", "2"]


def test_docstrings_are_read_without_their_examples(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(
        'def f():\n    """Return it.\n\n    >>> f() is told\n    1\n    """\n    return "told as a message"\n'
    )
    assert [text.split() for text in language.docstrings(path)] == [["Return", "it."]]
    assert list(language.messages(path)) == ["told as a message"]


def test_replaced_names_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "shelf.py"
    path.write_text("class Folded:\n    gone: int\n    size: int\n\n\nclass Episode:\n    pass\n")
    assert [hit.sentence for hit in language.replaced_names("a.py", path)] == ["shelf", "Folded", "gone"]
