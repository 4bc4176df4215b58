"""Regular expressions of definitions (`pattern`), matched in linear time, as RE2 does in kube-apiserver.

In: the text of a pattern; what RE2 does not have (lookaround, backreferences, conditions, possessive repetition) is
refused. Out: a `Pattern` that can be searched for in a text. It never backtracks, so no value can make it slow: the
program of `programs.py` runs in all its states at once, and sets of states are cached.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, TypeAlias

from localkube.apiserver.custom import programs
from localkube.apiserver.custom.programs import Assertion, Character, Jump, Match, PatternError, Program, Split

__all__ = ["Pattern", "PatternError", "compile_pattern"]

REMEMBERED: Final = 500_000
"""Positions of a program in all cached steps of one pattern, at most: about 20 MiB."""

EFFORT: Final = 200_000
"""Positions of a program in which one text may be, summed over its characters: about a second."""

State: TypeAlias = tuple[frozenset[int], str]
"""The positions at which the program may continue, and the previous character (empty at the beginning)."""


@lru_cache(maxsize=1024)
def compile_pattern(text: str) -> "Pattern":
    """Compile a pattern; raise `PatternError` where RE2 would refuse it."""
    return Pattern(programs.build(text))


@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled pattern."""

    program: Program
    _steps: dict[tuple[State, str], State | None] = field(default_factory=dict)

    def matches(self, text: str) -> bool:
        """Return whether the pattern is found anywhere in the text; raise `PatternError` where that takes too long."""
        state: State = (frozenset(), "")
        effort = 0
        for character in (*text, ""):
            key = (state, character)
            if key not in self._steps:
                effort += 1 + len(state[0])
                if effort > EFFORT:
                    raise PatternError(f"the value is too long to be matched: {len(text)} characters")
                self._remember(key)
            following = self._steps[key]
            if following is None:
                return True
            state = following
        return False

    def _remember(self, key: tuple[State, str]) -> None:
        if len(self._steps) * len(self.program) >= REMEMBERED:
            self._steps.clear()
        self._steps[key] = self._follow(*key)

    def _follow(self, state: State, character: str) -> State | None:
        """Return the state after a character (empty: the end of the text); None if a match ends before it."""
        waiting, before = state
        reached: set[int] = set()
        for position in self._closure({0, *waiting}, before, character):
            match self.program[position]:
                case Match():
                    return None
                case Character(test) if character and test(character):
                    reached.add(position + 1)
        return frozenset(reached), _kind(character)

    def _closure(self, positions: set[int], before: str, after: str) -> Iterator[int]:
        """Yield every position that is reached without reading a character."""
        seen, pending = set(positions), list(positions)
        while pending:
            position = pending.pop()
            match self.program[position]:
                case Jump(target):
                    following: tuple[int, ...] = (target,)
                case Split(first, second):
                    following = (first, second)
                case Assertion(holds) if holds(before, after):
                    following = (position + 1,)
                case Assertion():
                    following = ()
                case _:
                    yield position
                    following = ()
            pending.extend(one for one in following if one not in seen)
            seen.update(following)


def _kind(character: str) -> str:
    """Return a representative character that assertions treat like this one, so that there are few states."""
    return "w" if programs.is_word(character) else "\n" if character == "\n" else " "
