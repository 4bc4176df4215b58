"""Draws a random sample of texts for grading, with `python -m tests.repository.languagesample SEED`.

A mark before a text says that the gate or a rule of length already objects: more than 20 words in the first sentence of
a docstring, more than 25 words in a sentence of a page, or more than 60 characters in a name.
"""

import random
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Final

from tests.repository import language

LONGEST_SUMMARY: Final = 20
"""The maximum number of words in the first sentence of a docstring."""


def texts() -> Iterator[tuple[str, int, list[tuple[str, str, bool]]]]:
    """Yield each kind of text with its sample size, texts and locations, and whether they violate a rule."""
    docstrings = [
        (name, summary, any(language.wording(name, summary)) or len(summary.split()) > LONGEST_SUMMARY)
        for name, path in language.paths((*language.FOLDERS_OF_CODE, *language.FOLDERS_OF_TESTS))
        for text in language.docstrings(path)
        if (summary := next(language.sentences(text), ""))
    ]
    yield "docstrings", 60, docstrings
    paragraphs = [
        (name, text, any(language.wording(name, block)) or any(language.long_sentences(name, block)))
        for name, path in language.paths(language.FOLDERS_OF_PAGES)
        for block, is_prose in language.blocks(path.read_text())
        if is_prose and len((text := " ".join(block.split())).split()) > LONGEST_SUMMARY
    ]
    yield "paragraphs", 30, paragraphs
    names = [
        (name, test, any(language.name_hits(name, test)))
        for name, path in language.paths(language.FOLDERS_OF_TESTS)
        for test in language.names_of_tests(path)
    ]
    yield "names of tests", 60, names


def drawn(seed: int) -> Iterator[tuple[str, Sequence[tuple[str, str, bool]]]]:
    """Yield the texts that a seed selects, by kind."""
    source = random.Random(seed)
    for sort, number, all_texts in texts():
        yield sort, source.sample(sorted(all_texts), number)


def main(seed: int) -> None:
    """Print the sample with marks for violated rules."""
    for sort, sample in drawn(seed):
        marked = sum(objects for _, _, objects in sample)
        print(f"\n{sort}: {len(sample)}, {marked} marked")  # noqa: T201 - a program that prints
        for place, text, objects in sample:
            print(f"{'x' if objects else ' '} {re.sub('^packages/', '', place)}: {text}")  # noqa: T201 - likewise


if __name__ == "__main__":
    main(int(sys.argv[1]))
