"""Compiles a regular expression, in the syntax of RE2, to a program that matches in linear time.

A program is a list of instructions: read one character, jump, continue at two positions, or continue if an assertion
holds. Single characters and classes are matched by Python's `re`, which reads them as RE2 does and cannot be slow with
them.
"""

import re
import unicodedata
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, TypeAlias

LONGEST: Final = 1000
"""The largest number of repetitions in RE2."""

LARGEST: Final = 5_000
"""Most instructions of a program."""

DEEPEST: Final = 50
"""Most levels of nested groups."""


class PatternError(ValueError):
    """The text is not a regular expression of RE2."""


@dataclass(frozen=True, slots=True)
class Character:
    """Read one character."""

    test: Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Jump:
    """Continue at another position."""

    target: int


@dataclass(frozen=True, slots=True)
class Split:
    """Continue at both positions."""

    first: int
    second: int


@dataclass(frozen=True, slots=True)
class Assertion:
    """Continue if this holds for the characters before and after (empty at the ends of the text)."""

    holds: Callable[[str, str], bool]


@dataclass(frozen=True, slots=True)
class Match:
    """The pattern is found."""


Instruction: TypeAlias = Character | Jump | Split | Assertion | Match
Program: TypeAlias = tuple[Instruction, ...]

ATOM: Final = re.compile(
    r"\\x\{[0-9A-Fa-f]{1,6}\}|\\x[0-9A-Fa-f]{2}|\\[0-7]{3}|\\[pP](?:[A-Z]|\{\^?[A-Za-z_]+\})|\\[dDsSwWafnrtv]|\\[^A-Za-z0-9\s]"
    r"|\[\^?\]?(?:\[:\^?[a-z]+:\]|\\.|[^\]\\])*\]|[^\\\[\]()*+?|^$]|\]",
    re.DOTALL,
)
REPETITION: Final = re.compile(r"(?:[*+?]|\{(?P<least>[0-9]{1,4})(?P<comma>,(?P<most>[0-9]{0,4}))?\})\??")
GROUP: Final = re.compile(
    r"\((?!\?)|\(\?P?<[A-Za-z_][A-Za-z0-9_]*>|\(\?(?P<flags>[ims]*)(?:-(?P<off>[imsU]+))?(?P<end>[:)])"
)
HEX: Final = re.compile(r"\\x\{([0-9A-Fa-f]{1,6})\}")
POSIX: Final = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": r"\x00-\x7f", "blank": r"\t ", "cntrl": r"\x00-\x1f\x7f", "digit": "0-9",
    "graph": "!-~", "lower": "a-z", "print": " -~", "punct": r"!-/:-@\[-`{-~", "space": r"\t\n\v\f\r ", "upper": "A-Z", "word": r"0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}  # fmt: skip
NESTED: Final = re.compile(r"\[:(\^?[a-z]+):\]|\\.|\[", re.DOTALL)
"""Parts of a class that Python writes in another way, and escapes, which it writes in the same way."""

CATEGORY: Final = re.compile(r"\\([pP])\{?(\^?)([A-Z][a-z]?)\}?")


def is_word(character: str) -> bool:
    """Return whether a character belongs to a word: ASCII only, as in RE2."""
    return character.isascii() and (character.isalnum() or character == "_")


ASSERTIONS: Final[dict[str, Callable[[str, str], bool]]] = {
    "^": lambda before, _: not before,
    "$": lambda _, after: not after,
    r"\A": lambda before, _: not before,
    r"\z": lambda _, after: not after,
    r"\b": lambda before, after: is_word(before) != is_word(after),
    r"\B": lambda before, after: is_word(before) == is_word(after),
}
LINES: Final[dict[str, Callable[[str, str], bool]]] = {
    "^": lambda before, _: before in {"", "\n"},
    "$": lambda _, after: after in {"", "\n"},
}
"""The same assertions with the flag `m`."""


def build(text: str) -> Program:
    """Build the program of a pattern."""
    reader = _Reader(text)
    program = reader.alternatives(frozenset(), 0)
    if reader.position < len(text):
        raise PatternError("unexpected ): no group is open")
    return (*program, Match())


@dataclass(slots=True)
class _Reader:
    """Parses a pattern from left to right. Jump targets are relative to the beginning of the returned program."""

    text: str
    position: int = 0

    def alternatives(self, flags: frozenset[str], depth: int) -> Program:
        """Read the alternatives (between bars) up to the end of the group."""
        if depth > DEEPEST:
            raise PatternError(f"more than {DEEPEST} groups in one another")
        program, flags = self._sequence(flags, depth)
        programs = [program]
        while self.text.startswith("|", self.position):
            self.position += 1
            program, flags = self._sequence(flags, depth)
            programs.append(program)
        return _either(programs)

    def _sequence(self, flags: frozenset[str], depth: int) -> tuple[Program, frozenset[str]]:
        """Read up to a bar or the end of the group; also return the flags that apply after it."""
        parts: list[Program] = []
        while self.position < len(self.text) and self.text[self.position] not in "|)":
            if self.text[self.position] == "(":
                part, flags = self._group(flags, depth)
            else:
                part = self._atom(flags)
            parts.append(self._repeated(part))
        return _chain(parts), flags

    def _group(self, flags: frozenset[str], depth: int) -> tuple[Program | None, frozenset[str]]:
        """Read a group, or flags for the rest of the enclosing group, which cannot be repeated (None)."""
        match = GROUP.match(self.text, self.position)
        if match is None:
            raise PatternError(f"invalid or unsupported Perl syntax: {self.text[self.position : self.position + 4]}")
        self.position = match.end()
        chosen = (flags | set(match["flags"] or "")) - set(match["off"] or "")
        if match["end"] == ")":
            return None, chosen
        part = self.alternatives(chosen if match["end"] else flags, depth + 1)
        if not self.text.startswith(")", self.position):
            raise PatternError("missing closing )")
        self.position += 1
        return part, flags

    def _atom(self, flags: frozenset[str]) -> Program:
        for length in (1, 2):
            word = self.text[self.position : self.position + length]
            holds = LINES.get(word) if "m" in flags and word in LINES else ASSERTIONS.get(word)
            if holds is not None:
                self.position += length
                return (Assertion(holds),)
        match = ATOM.match(self.text, self.position)
        if match is None:
            raise PatternError(f"invalid or unsupported syntax: {self.text[self.position : self.position + 4]}")
        self.position = match.end()
        return (Character(_test(match[0], flags)),)

    def _repeated(self, part: Program | None) -> Program:
        """Return a part with the repetition that follows it."""
        match = REPETITION.match(self.text, self.position)
        if match is None:
            return part or ()
        self.position = match.end()
        if part is None or REPETITION.match(self.text, self.position):
            raise PatternError(f"invalid nested repetition operator: {match[0]}")
        if match["least"] is None:
            least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}[match[0][0]]
        else:
            least = int(match["least"])
            most = least if not match["comma"] else int(match["most"]) if match["most"] else None
        if max(least, most or 0) > LONGEST or (most is not None and most < least):
            raise PatternError(f"invalid repeat count: {match[0]}")
        return _times(part, least, most)


def _test(atom: str, flags: frozenset[str]) -> Callable[[str], object]:
    """Return a predicate: whether an atom matches a character."""
    if atom.startswith((r"\p", r"\P")):
        return _category(atom)
    text = HEX.sub(lambda found: re.escape(chr(min(int(found[1], 16), 0x10FFFF))), atom)
    if text.startswith("["):
        text = "[" + NESTED.sub(_in_class, text[1:])
    options = re.ASCII | (re.IGNORECASE if "i" in flags else re.NOFLAG) | (re.DOTALL if "s" in flags else re.NOFLAG)
    try:
        with warnings.catch_warnings():  # about sets whose meaning a later Python may change
            warnings.simplefilter("ignore", FutureWarning)
            return re.compile(text, options).fullmatch
    except re.error as error:
        raise PatternError(f"{error}: {atom}") from error


def _category(atom: str) -> Callable[[str], object]:
    """Return the test of a general category of Unicode; scripts are not supported."""
    found = CATEGORY.fullmatch(atom)
    if found is None:
        raise PatternError(f"unknown class of characters: {atom}")
    wanted, name = (found[1] == "p") != bool(found[2]), found[3]
    return lambda character: unicodedata.category(character).startswith(name) == wanted


def _in_class(found: re.Match[str]) -> str:
    if found[1] is not None:
        if found[1] not in POSIX:
            raise PatternError(f"invalid character class range: {found[0]}")
        return POSIX[found[1]]
    return r"\[" if found[0] == "[" else found[0]


def _moved(program: Program, offset: int) -> Iterator[Instruction]:
    """Yield the instructions of a part that begins at `offset` of a program."""
    for one in program:
        match one:
            case Jump(target):
                yield Jump(target + offset)
            case Split(first, second):
                yield Split(first + offset, second + offset)
            case _:
                yield one


def _chain(parts: Sequence[Program]) -> Program:
    """Build the program that matches one part after the other."""
    if sum(map(len, parts)) > LARGEST:
        raise PatternError(f"expression too large: more than {LARGEST} instructions")
    starts = accumulate(map(len, parts), initial=0)
    return tuple(one for part, start in zip(parts, starts, strict=False) for one in _moved(part, start))


def _either(parts: Sequence[Program]) -> Program:
    """Build the program that matches one of the parts."""
    end = sum(map(len, parts)) + 2 * (len(parts) - 1)
    alternatives: list[Program] = []
    start = 0
    for part in parts[:-1]:
        length = len(part) + 2
        alternatives.append((Split(1, length), *_moved(part, 1), Jump(end - start)))
        start += length
    return _chain([*alternatives, parts[-1]])


def _times(part: Program, least: int, most: int | None) -> Program:
    """Build the program that matches a part at least `least` and at most `most` times (None: any number)."""
    if (len(part) + 1) * max(least, most or 0) > LARGEST:
        raise PatternError(f"expression too large: more than {LARGEST} instructions")
    if most is None:
        return _chain([*[part] * least, (Split(1, len(part) + 2), *_moved(part, 1), Jump(0))])
    step, times = len(part) + 1, most - least
    optional = [(Split(1, (times - done) * step), *_moved(part, 1)) for done in range(times)]
    return _chain([*[part] * least, *optional])
