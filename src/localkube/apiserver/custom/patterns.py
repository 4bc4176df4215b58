"""Regular expressions of definitions (`pattern`), matched by RE2 in linear time, as in kube-apiserver.

In: the text of a pattern; what RE2 does not have (lookaround, backreferences, conditions, possessive repetition) is
refused. Out: a `Pattern` that can be searched for in a text. What would take longer than about a second is refused.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

EFFORT: Final = 10**8
"""Characters of a text, times instructions of a pattern, at most."""


class PatternError(ValueError):
    """The text is not a regular expression of RE2, or a value is too long for it."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled pattern."""

    compiled: Any

    def matches(self, text: str) -> bool:
        """Return whether the pattern is found anywhere in the text; raise `PatternError` where that takes too long."""
        if len(text) * self.compiled.programsize > EFFORT:
            raise PatternError(f"the value is too long to be matched: {len(text)} characters")
        return self.compiled.search(text) is not None


@lru_cache(maxsize=1024)
def compile_pattern(text: str) -> Pattern:
    """Compile a pattern; raise `PatternError` where RE2 refuses it."""
    import re2  # when the first definition with a pattern comes

    options = re2.Options()
    options.log_errors = False
    try:
        return Pattern(re2.compile(text, options))
    except re2.error as error:
        raise PatternError(error.args[0].decode(errors="replace")) from error
