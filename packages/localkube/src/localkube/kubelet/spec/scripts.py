"""Finds the programs that a command starts: in the script of `sh -c SCRIPT`, the file of `python3 FILE`. Pure.

Used to detect containers that cannot run here although their shell can: `sh -c "bash /opt/serve.sh; vllm serve"`. Programs
that are determined at run time (variables, `eval`) are not found; an unreadable script has none.
"""

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import dropwhile
from typing import Final, NamedTuple

SHELLS: Final = frozenset({"sh", "bash", "dash", "ash", "zsh"})
INTERPRETERS: Final = SHELLS | {"python", "python3", "perl"}

BEFORE_A_COMMAND: Final = frozenset({"if", "then", "elif", "else", "while", "until", "do", "exec", "time", "!", "{"})
OF_THE_SHELL: Final = frozenset({
    ".", ":", "[", "[[", "alias", "bg", "break", "case", "cd", "command", "continue", "declare", "done", "echo",
    "esac", "eval", "exit", "export", "false", "fg", "fi", "for", "function", "getopts", "hash", "jobs", "kill",
    "let", "local", "printf", "pwd", "read", "readonly", "return", "select", "set", "shift", "shopt", "source",
    "test", "times", "trap", "true", "type", "typeset", "ulimit", "umask", "unalias", "unset", "wait", "}",
})  # fmt: skip
ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=")
FUNCTION: Final = re.compile(r"(?<![\w-])([\w-]+)\s*\(\)")
PLAIN: Final = re.compile(r"[\w./+-]+")


class Started(NamedTuple):
    """A program by name or path, or a file (by its absolute path) that an interpreter reads."""

    name: str
    is_file: bool = False


MODULE: Final = re.compile(r"[A-Za-z_][\w.]*")
PYTHON: Final = re.compile(r"python(3(\.\d+)?)?")


def python_module(argv: Sequence[str]) -> str:
    """Return the outermost package that `python3 -m MODULE` runs, alone or in the script of a shell; empty for none.

    >>> python_module(["python3", "-u", "-m", "engine.server", "--port=80"])
    'engine'
    >>> python_module(["sh", "-c", "sleep 1; exec python3 -m engine.server"])
    'engine'
    """
    for words in _started(argv) if _is_script(argv) else [list(argv)]:
        if words and PYTHON.fullmatch(posixpath.basename(words[0])):
            options = list(dropwhile(lambda word: word in {"-u", "-O", "-B"}, words[1:]))
            if len(options) > 1 and options[0] == "-m" and MODULE.fullmatch(options[1]):
                return options[1].partition(".")[0]
    return ""


def starts(argv: Sequence[str]) -> Iterator[Started]:
    """Yield the programs that a shell script starts, in order, and the file that an interpreter reads.

    >>> list(starts(["sh", "-c", "cd /x && A=1 bash /opt/serve.sh --x; exec vllm serve > log"]))
    [Started(name='bash', is_file=False), Started(name='/opt/serve.sh', is_file=True), Started(name='vllm', is_file=False)]
    """
    if not _is_script(argv):
        if argv and posixpath.basename(argv[0]) in INTERPRETERS:
            yield from _read_file(argv)
        return
    own = OF_THE_SHELL | set(FUNCTION.findall(argv[2]))
    for words in _started(argv):
        if not words or words[0] in own or not PLAIN.fullmatch(words[0]):
            continue
        yield Started(words[0])
        if posixpath.basename(words[0]) in INTERPRETERS:
            yield from _read_file(words)


def _is_script(argv: Sequence[str]) -> bool:
    return len(argv) > 2 and posixpath.basename(argv[0]) in SHELLS and bool(re.fullmatch(r"-\w*c", argv[1]))


def _read_file(words: Sequence[str]) -> Iterator[Started]:
    """Yield the file that an interpreter reads, if its first argument is an absolute path."""
    if len(words) > 1 and re.fullmatch(r"/[\w./+-]+", words[1]):
        yield Started(words[1], is_file=True)


def _started(argv: Sequence[str]) -> list[list[str]]:
    """Return the commands of a shell's script, without the words before the program."""
    try:
        commands = list(_commands(argv[2]))
    except ValueError:  # an unclosed quote
        return []
    return [
        list(dropwhile(lambda word: word in BEFORE_A_COMMAND or ASSIGNMENT.match(word), words)) for words in commands
    ]


def _commands(script: str) -> Iterator[list[str]]:
    """Split a script into commands, without their redirections."""
    lines = script.replace("\\\n", " ").splitlines()
    text = " ; ".join(line for line in lines if not line.lstrip().startswith("#"))
    words = shlex.shlex(text, posix=True, punctuation_chars=True)
    words.commenters = ""
    command: list[str] = []
    for word in words:
        if set(word) <= set("();|&"):
            yield command
            command = []
        elif set(word) <= set("<>&|"):
            next(words, None)
        else:
            command.append(word)
    yield command
