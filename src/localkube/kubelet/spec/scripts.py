"""What the script of `sh -c SCRIPT` starts, as far as its words say. Pure.

Used to see that a container cannot run here although its shell can: `sh -c "bash /opt/serve.sh; vllm serve"`. What is
built at run time (variables, `eval`) is not seen; a script that cannot be read names nothing.
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
FUNCTION: Final = re.compile(r"([\w-]+)\s*\(\)")
PLAIN: Final = re.compile(r"[\w./+-]+")


class Started(NamedTuple):
    """A program by name or path, or a file (by its absolute path) that an interpreter reads."""

    name: str
    is_file: bool = False


def starts(argv: Sequence[str]) -> Iterator[Started]:
    """Yield what a shell with a script starts, in the order of the script; nothing for any other program.

    >>> list(starts(["sh", "-c", "cd /x && A=1 bash /opt/serve.sh --x; exec vllm serve > log"]))
    [Started(name='bash', is_file=False), Started(name='/opt/serve.sh', is_file=True), Started(name='vllm', is_file=False)]
    """
    if len(argv) < 3 or posixpath.basename(argv[0]) not in SHELLS or not re.fullmatch(r"-\w*c", argv[1]):
        return
    try:
        commands = list(_commands(argv[2]))
    except ValueError:  # an open quote
        return
    own = OF_THE_SHELL | set(FUNCTION.findall(argv[2]))
    for command in commands:
        words = list(dropwhile(lambda word: word in BEFORE_A_COMMAND or ASSIGNMENT.match(word), command))
        if not words or words[0] in own or not PLAIN.fullmatch(words[0]):
            continue
        yield Started(words[0])
        if len(words) > 1 and posixpath.basename(words[0]) in INTERPRETERS and re.fullmatch(r"/[\w./+-]+", words[1]):
            yield Started(words[1], is_file=True)


def _commands(script: str) -> Iterator[list[str]]:
    """Cut a script into commands, without what they are redirected to."""
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
