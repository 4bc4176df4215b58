"""Splits a shell script into simple commands, by the grammar of POSIX shells and bash, without I/O.

In: the text of a script. Out: its simple commands in order, each with the operator after it. Quotes, comments, heredocs,
`[[ ... ]]`, `(( ... ))`, arrays and substitutions are read as the shell reads them: their content is not a command.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

OPERATOR: Final = re.compile(r";;&|;&|;;|&&|\|\||\|&|[;|&()\n]")
REDIRECTION: Final = re.compile(r"\d*(?P<kind><<<|<<-|<<|<&|<>|<|>>|>&|>\||>)|&>>?")
ARRAY: Final = re.compile(r"[A-Za-z_]\w*\+?=")
PAIRS: Final = {"$(": ")", "${": "}", "`": "`", "<(": ")", ">(": ")"}
OPENED: Final = {")": "(", "}": "{"}


class Command(NamedTuple):
    """The words of a simple command without quotes and redirections, and the operator or newline after it."""

    words: list[str]
    operator: str


def commands(script: str) -> Iterator[Command]:
    """Yield the simple commands of a script. Raise `ValueError` for an unclosed quote or bracket.

    >>> list(commands("trap '' TERM; a | b # no; c"))
    [Command(words=['trap', '', 'TERM'], operator=';'), Command(words=['a'], operator='|'), Command(words=['b'], operator='')]
    """
    words: list[str] = []
    for text, is_operator in _Reader(script).tokens():
        if not is_operator:
            words.append(text)
        else:
            yield Command(words, text)
            words = []
    yield Command(words, "")


class _Reader:
    def __init__(self, script: str) -> None:
        self._text = script.replace("\\\n", "")
        self._at = 0
        self._heredocs: list[tuple[str, bool]] = []

    def tokens(self) -> Iterator[tuple[str, bool]]:
        """Yield words and operators."""
        text = self._text
        while self._at < len(text):
            if text[self._at] in " \t\r":
                self._at += 1
            elif text[self._at] == "#":
                self._at = self._find("\n", self._at)
            elif text.startswith("((", self._at):
                self._at = self._find("))", self._at) + 2
            elif text[self._at : self._at + 2] not in PAIRS and (match := REDIRECTION.match(text, self._at)):
                self._redirect(match)
            elif match := OPERATOR.match(text, self._at):
                self._at = match.end()
                if match[0] == "\n":
                    self._skip_heredocs()
                yield match[0], True
            else:
                yield from self._word_token()

    def _word_token(self) -> Iterator[tuple[str, bool]]:
        word = self._word()
        yield word, False
        if word == "[[":
            self._at = self._find("]]", self._at) + 2

    def _find(self, what: str, start: int) -> int:
        at = self._text.find(what, start)
        return len(self._text) if at < 0 else at

    def _redirect(self, match: re.Match[str]) -> None:
        """Skip a redirection and its target. Store the delimiter of a heredoc."""
        self._at = match.end()
        while self._text[self._at : self._at + 1] in {" ", "\t"}:
            self._at += 1
        target = self._word()
        if match["kind"] in {"<<", "<<-"}:
            self._heredocs.append((target, match["kind"] == "<<-"))

    def _skip_heredocs(self) -> None:
        for mark, is_indented in self._heredocs:
            while self._at < len(self._text):
                end = self._find("\n", self._at)
                line, self._at = self._text[self._at : end], end + 1
                if (line.lstrip("\t") if is_indented else line) == mark:
                    break
        self._heredocs.clear()

    def _word(self) -> str:
        """Read a word without its quotes. Substitutions remain unchanged."""
        text, parts = self._text, []
        while self._at < len(text):
            char = text[self._at]
            pair = next((begin for begin in PAIRS if text.startswith(begin, self._at)), "")
            if pair:
                parts.append(self._balanced(pair))
            elif char == "'":
                end = text.index("'", self._at + 1)
                parts.append(text[self._at + 1 : end])
                self._at = end + 1
            elif char == '"':
                parts.append(self._double_quoted())
            elif char == "\\":
                parts.append(text[self._at + 1 : self._at + 2])
                self._at += 2
            elif char == "(" and ARRAY.fullmatch("".join(parts)):
                parts.append(self._balanced("("))
            elif char in " \t\r\n;|&()<>":
                break
            else:
                parts.append(char)
                self._at += 1
        return "".join(parts)

    def _double_quoted(self) -> str:
        text, parts = self._text, []
        self._at += 1
        while text[self._at : self._at + 1] != '"':
            pair = next((begin for begin in ("$(", "${", "`") if text.startswith(begin, self._at)), "")
            if pair:
                parts.append(self._balanced(pair))
                continue
            length = 2 if text[self._at : self._at + 1] == "\\" else 1
            if self._at + length > len(text):
                raise ValueError("a quote is not closed")
            parts.append(text[self._at + length - 1 : self._at + length])
            self._at += length
        self._at += 1
        return "".join(parts)

    def _balanced(self, begin: str) -> str:
        """Read a complete substitution, including quotes and brackets in it."""
        text, start = self._text, self._at
        end = PAIRS.get(begin, ")")
        opened = OPENED.get(end, "")
        self._at += len(begin)
        depth = 1
        while depth:
            char = text[self._at : self._at + 1]
            if not char:
                raise ValueError(f"{begin} is not closed")
            if char == "'" and end != "}":
                self._at = text.index("'", self._at + 1) + 1
            elif char == '"' and end != "`":
                self._double_quoted()
            else:
                depth += (char == opened) - (char == end)
                self._at += 2 if char == "\\" else 1
        return text[start : self._at]
