"""Counts words that CONTRIBUTING.md replaces.

Run it with `python -m tests.repository.language [AREA] [--write]`.

Texts come from Markdown pages, docstrings, messages, help screens, and names of tests and of values; the words from
`language.toml`.
"""

import ast
import io
import re
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import click
from testkit import repository

from lwsctl.cli import app
from lwsctl.cli.commandtable import COMMANDS

DATA: Final = Path(__file__).with_name("language.toml")
LONGEST_SENTENCE: Final = 25
"""The maximum number of words in a Markdown sentence. A code span counts as one word."""
LONGEST_NAME: Final = 60
"""The maximum number of characters in a test name."""
LEFT_OUT: Final = re.compile(
    r"CONTRIBUTING|reference/contract|docs/adr/|CHANGELOG|changelog\.d/0000|/golden/|/vectors/"
)
"""The excluded pages: the word list, numbered rules, historical decisions, and the changelog."""
GATE: Final = "6fdcc821c"
"""The commit after which commit subjects are checked."""
FOLDERS_OF_CODE: Final = ("packages/*/src/**/*.py", "docs/*.py", "deploy/**/*.py", "bench/**/*.py")
FOLDERS_OF_TESTS: Final = ("tests/**/*.py", "packages/*/tests/**/*.py")
FOLDERS_OF_PAGES: Final = ("*.md", "docs/**/*.md", "packages/*/README.md", "examples/**/README.md", "changelog.d/*.md")


class Hit(NamedTuple):
    """A phrase to replace, with the file, the sentence, and the replacement."""

    place: str
    sentence: str
    instead: str


@cache
def data() -> Mapping[str, Mapping[str, object]]:
    """Return the word list and the permitted counts."""
    return tomllib.loads(DATA.read_text())


@cache
def patterns(table: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    """Return each pattern in a table of the word list, with its replacement."""
    return tuple((re.compile(word), str(instead)) for word, instead in data()[table].items())


def paths(globs: tuple[str, ...]) -> Iterator[tuple[str, Path]]:
    """Yield the matching files in order, with their paths from the repository root."""
    for glob in globs:
        for path in sorted(repository.ROOT.glob(glob)):
            name = path.relative_to(repository.ROOT).as_posix()
            if not LEFT_OUT.search(name):
                yield name, path


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences in a text without code.

    >>> list(sentences("Run `lws get`. It prints\\n[groups](a.md): all."))
    ['Run CODE.', 'It prints groups: all.']
    """
    text = re.sub(r"``.+?``|`[^`]*`", "CODE", text, flags=re.DOTALL)
    text = re.sub(r"\[([^\]]*)\]\([^)\s]*\)", r"\1", text)
    for sentence in re.split(r"(?<=[.!?])[)\"]?\s+(?=[A-Z(*])", " ".join(text.split())):
        if sentence:
            yield sentence


def blocks(page: str) -> Iterator[tuple[str, bool]]:
    """Yield the paragraphs, list items, headings and table cells on a page, and whether the text is prose."""
    page = re.sub(r"^ *```.*?^ *```$|<!--.*?-->", "", page, flags=re.MULTILINE | re.DOTALL)
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )|\n(?=[|#])|(?<=\|)\n", page):
        text = block.strip()
        if text.startswith("|"):
            yield from ((cell, False) for cell in text.strip("| ").split(" | "))
        elif text:
            yield re.sub(r"^(?:#+|[-*]|\d+\.) ", "", text), not text.startswith("#")


def docstrings(path: Path) -> Iterator[str]:
    """Yield the docstrings of a module, its classes, functions and constants, without examples."""
    for node in ast.walk(_tree(path)):
        for child in ast.iter_child_nodes(node):
            match child:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    yield re.sub(r"^ *>>>.*?(?=\n\s*\n|\Z)", "", text, flags=re.MULTILINE | re.DOTALL)


def messages(path: Path) -> Iterator[str]:
    """Yield strings in a module, except docstrings, that have at least three words and are not fixed."""
    tree = _tree(path)
    fixed = data()["fixed"]["patterns"]
    assert isinstance(fixed, list)
    documentation = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if node not in documentation and len(text.split()) > 2:
                if not any(re.search(pattern, text) for pattern in fixed):
                    yield text


def names_of_tests(path: Path) -> Iterator[str]:
    """Yield the test names in a module."""
    yield from re.findall(r"^ *(?:async )?def (test_\w+)\(", path.read_text(), re.MULTILINE)


def comments(path: Path) -> Iterator[str]:
    """Yield the comments in a module."""
    for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
        if token.type == tokenize.COMMENT:
            yield token.string.lstrip("# ")


def identifiers(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the names of a module, its classes, attributes, functions and variables, with the kind of each name."""
    yield "modules", path.stem
    for node in ast.walk(_tree(path)):
        match node:
            case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield "variables", name.lstrip("_")
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield "variables", name.lstrip("_")
            case ast.ClassDef(name=name, body=body):
                yield "types", name.lstrip("_")
                for child in body:
                    match child:
                        case ast.AnnAssign(target=ast.Name(id=attribute)):
                            yield "attributes", attribute.lstrip("_")


def names(path: Path) -> Iterator[str]:
    """Yield the words in the names of a module, its classes and attributes. `PodStatus` becomes `pod status`."""
    for name in (name for kind, name in identifiers(path) if kind != "variables"):
        yield " ".join(re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name))


def replaced_names(place: str, path: Path) -> Iterator[Hit]:
    """Yield names in a module that CONTRIBUTING.md replaces."""
    listed = data()["replaced"]
    for kind, name in identifiers(path):
        replaced = listed[kind]
        assert isinstance(replaced, list)
        if name in replaced:
            yield Hit(place, name, "the term in CONTRIBUTING.md, section Vocabulary")


def subjects() -> Iterator[str]:
    """Yield the commit subjects after the gate. Yield nothing if the history is unavailable."""
    log = ["git", "log", "--no-merges", "--format=%s", f"{GATE}..HEAD"]
    yield from subprocess.run(log, cwd=repository.ROOT, capture_output=True, text=True, check=False).stdout.splitlines()


def terms(place: str, text: str) -> Iterator[Hit]:
    """Yield words in a text for which the Kubernetes documentation uses a standard term.

    >>> [hit.instead for hit in terms("a.py", "The Processor is quiet.")]
    ['CPU', 'idle']
    """
    any_term, each = _standard()
    for sentence in sentences(text) if any_term.search(text) else ():
        yield from (Hit(place, sentence, term) for pattern, term in each for _ in pattern.finditer(sentence))


def two_colons(place: str, text: str) -> Iterator[Hit]:
    """Yield sentences of the form `X: Y: Z`.

    >>> [hit.sentence for hit in two_colons("a.py", "It fails: one thing: two. Run it: now.")]
    ['It fails: one thing: two.']
    """
    for sentence in sentences(text):
        if len(re.findall(r"\w: \w", sentence)) > 1:
            yield Hit(place, sentence, "a sentence with a verb")


def names_of_values(path: Path) -> Iterator[str]:
    """Yield the names of the parameters and local variables of functions."""
    functions = (node for node in ast.walk(_tree(path)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    for node in (node for function in functions for node in ast.walk(function)):
        match node:
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
                yield name


def value_hits(place: str, path: Path) -> Iterator[Hit]:
    """Yield the parameters and local variables in a module whose names are participles."""
    participles = data()["names"]["values"]
    assert isinstance(participles, list)
    yield from (Hit(place, name, "a noun") for name in names_of_values(path) if name in participles)


def help_texts() -> Iterator[tuple[str, str]]:
    """Yield each text on the help screens, with the command name."""
    root = click.Context(app.lws, info_name="lws")
    for name in COMMANDS:
        command = app.lws.get_command(root, name)
        assert command is not None
        yield from _help(command, name)


def wording(place: str, text: str, *, is_prose: bool = True) -> Iterator[Hit]:
    """Yield the word list hits in a text, which is prose, a heading or a table cell."""
    listed = patterns("words") + (patterns("prose") if is_prose else ())
    for sentence in sentences(text):
        yield from (Hit(place, sentence, instead) for pattern, instead in listed if pattern.search(sentence))


def long_sentences(place: str, text: str) -> Iterator[Hit]:
    """Yield sentences that are too long."""
    for sentence in sentences(text):
        if len(sentence.split()) > LONGEST_SENTENCE:
            yield Hit(place, sentence, f"at most {LONGEST_SENTENCE} words")


def name_hits(place: str, name: str) -> Iterator[Hit]:
    """Yield the hits in a test name.

    >>> [hit.instead for hit in name_hits("a.py", "test_pod_is_told_so")]
    ['another word than told']
    """
    listed = data()["names"]["words"]
    assert isinstance(listed, list)
    yield from (Hit(place, name, f"another word than {word}") for word in name.split("_") if word in listed)
    if len(name) > LONGEST_NAME:
        yield Hit(place, name, f"at most {LONGEST_NAME} characters")


def hits(area: str) -> list[Hit]:
    """Return all hits in an area."""
    match area:
        case "documentation":
            return [hit for name, block, is_prose in _blocks() for hit in wording(name, block, is_prose=is_prose)]
        case "long sentences":
            return [hit for name, block, is_prose in _blocks() if is_prose for hit in long_sentences(name, block)]
        case "docstrings" | "docstrings of tests":
            folders = FOLDERS_OF_CODE if area == "docstrings" else FOLDERS_OF_TESTS
            return [hit for name, path in paths(folders) for text in docstrings(path) for hit in wording(name, text)]
        case "messages":
            return [
                hit for name, path in paths(FOLDERS_OF_CODE) for text in messages(path) for hit in wording(name, text)
            ]
        case "help":
            return [hit for name, text in help_texts() for hit in wording(f"lws {name}", text)]
        case "test names":
            return [
                hit
                for name, path in paths(FOLDERS_OF_TESTS)
                for text in names_of_tests(path)
                for hit in name_hits(name, text)
            ]
        case "values" | "replaced names":
            read = replaced_names if area == "replaced names" else value_hits
            return [hit for name, path in paths(FOLDERS_OF_CODE) for hit in read(name, path)]
        case "two colons":
            pages = ((name, block) for name, block, is_prose in _blocks() if is_prose)
            return [hit for name, text in (*pages, *_in_code(docstrings)) for hit in two_colons(name, text)]
        case _ if area.startswith("standard terms: "):
            return [hit for name, text in _texts(area.partition(": ")[2]) for hit in terms(name, text)]
    raise LookupError(area)


def permitted() -> dict[str, int]:
    """Return the permitted number of hits in each area."""
    return {area: int(str(count)) for area, count in data()["permitted"].items()}


def _blocks() -> Iterator[tuple[str, str, bool]]:
    for name, path in paths(FOLDERS_OF_PAGES):
        yield from ((name, text, is_prose) for text, is_prose in blocks(path.read_text()))


def _texts(sort: str) -> Iterator[tuple[str, str]]:
    """Yield the texts of one kind, with their locations."""
    match sort:
        case "pages":
            yield from ((name, block) for name, block, _ in _blocks())
        case "help":
            yield from help_texts()
        case "commits":
            yield from (("git log", subject) for subject in subjects())
        case "tests":
            for name, path in paths(FOLDERS_OF_TESTS):
                yield from ((name, test.replace("_", " ")) for test in names_of_tests(path))
        case _:
            yield from _in_code(
                {"messages": messages, "docstrings": docstrings, "comments": comments, "names": names}[sort]
            )


def _in_code(read: Callable[[Path], Iterator[str]]) -> Iterator[tuple[str, str]]:
    for name, path in paths(FOLDERS_OF_CODE):
        yield from ((name, text) for text in read(path))


@cache
def _standard() -> tuple[re.Pattern[str], tuple[tuple[re.Pattern[str], str], ...]]:
    """Return one pattern for all standard terms, and the term for each match. The pattern ignores case."""
    words = {f"\\b(?:{word})\\b": str(term) for word, term in data()["standard"].items()}
    return re.compile("|".join(words), re.IGNORECASE), tuple(
        (re.compile(word, re.IGNORECASE), term) for word, term in words.items()
    )


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def _help(command: click.Command, name: str) -> Iterator[tuple[str, str]]:
    yield name, command.help or ""
    for option in command.params:
        if isinstance(option, click.Option) and option.help:
            yield name, option.help
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=name)
        for below in command.list_commands(context):
            child = command.get_command(context, below)
            assert child is not None
            yield from _help(child, f"{name} {below}")


def store(counts: Mapping[str, int]) -> None:
    """Write the counts to the word list file."""
    text = DATA.read_text()
    for area, count in counts.items():
        text = re.sub(rf'^("?{area}"?) = \d+$', rf"\1 = {count}", text, flags=re.MULTILINE)
    DATA.write_text(text)


def main(arguments: list[str]) -> None:
    """Print the counts, and each hit in the selected areas."""
    named = [argument for argument in arguments if not argument.startswith("--")]
    for area in named:
        for hit in hits(area):
            print(f"{hit.place}: {hit.sentence}\n    write: {hit.instead}")  # noqa: T201 - a program that prints
    counts = {area: len(hits(area)) for area in named or permitted()}
    print(counts)  # noqa: T201 - a program that prints
    if "--write" in arguments:
        store(counts)


if __name__ == "__main__":
    main(sys.argv[1:])
