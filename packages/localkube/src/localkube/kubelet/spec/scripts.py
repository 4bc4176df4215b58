"""Finds the executables that a command requires, in `sh -c SCRIPT` and in files of interpreters, without I/O.

Used to detect containers that cannot run here although their shell can: `sh -c "bash /opt/serve.sh; vllm serve"`.
Programs that are determined at run time (variables) are not found. Optional programs are also omitted: the left side
of `||`, conditions, and programs that the script itself looks for (`command -v`, `[ -x FILE ]`). An unreadable script
needs none.
"""

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, dropwhile, takewhile
from typing import Final, NamedTuple

from localkube.kubelet.spec import shellwords
from localkube.kubelet.spec.shellwords import Command

SHELLS: Final = frozenset({"sh", "bash", "dash", "ash", "zsh"})
INTERPRETERS: Final = SHELLS | {"python", "python3", "perl"}


class Wrapper(NamedTuple):
    """A command that starts another command, with its options that have a value and its number of arguments."""

    short: str = ""
    long: tuple[str, ...] = ()
    arguments: int = 0


OF_NUMACTL: Final = (
    "interleave", "weighted-interleave", "preferred", "preferred-many", "cpunodebind", "physcpubind", "membind",
)  # fmt: skip
OF_SUDO: Final = (
    "close-from", "chdir", "group", "prompt", "chroot", "role", "command-timeout", "type", "other-user", "user",
)  # fmt: skip
OF_XARGS: Final = ("arg-file", "delimiter", "max-args", "max-chars", "max-procs", "process-slot-var")

WRAPPERS: Final = {
    "chrt": Wrapper("TPD", ("sched-runtime", "sched-period", "sched-deadline"), arguments=1),
    "env": Wrapper("uCSa", ("unset", "chdir", "split-string", "argv0")),
    "ionice": Wrapper("cnpPu", ("class", "classdata", "pid", "pgid", "uid")),
    "nice": Wrapper("n", ("adjustment",)),
    "nohup": Wrapper(),
    "numactl": Wrapper("iwpPNCm", OF_NUMACTL),
    "setsid": Wrapper(),
    "stdbuf": Wrapper("ioe", ("input", "output", "error")),
    "sudo": Wrapper("CDgpRrTtUu", OF_SUDO),
    "taskset": Wrapper(arguments=1),
    "timeout": Wrapper("ks", ("kill-after", "signal"), arguments=1),
    "xargs": Wrapper("adEILnPs", OF_XARGS),
}
"""The commands that start another command, which must also exist."""

SPLIT: Final = frozenset({"S", "split-string"})
"""The options of `env` whose value is split into words."""

BEFORE_A_COMMAND: Final = frozenset({
    "if", "then", "elif", "else", "while", "until", "do", "exec", "time", "!", "{", "coproc",
})  # fmt: skip
OF_THE_SHELL: Final = frozenset({
    ".", ":", "[", "[[", "alias", "bg", "bind", "break", "builtin", "caller", "case", "cd", "command", "compgen",
    "complete", "compopt", "continue", "declare", "dirs", "disown", "done", "echo", "enable", "esac", "eval", "exit",
    "export", "false", "fc", "fg", "fi", "for", "function", "getopts", "hash", "help", "history", "in", "jobs", "kill",
    "let", "local", "logout", "mapfile", "popd", "printf", "pushd", "pwd", "read", "readarray", "readonly", "return",
    "select", "set", "shift", "shopt", "source", "suspend", "test", "times", "trap", "true", "type", "typeset", "ulimit",
    "umask", "unalias", "unset", "wait", "}",
})  # fmt: skip
CONDITIONS: Final = frozenset({"if", "elif", "while"})
CHAINED: Final = frozenset({"&&", "||", "|", "|&"})
AFTER_A_CASE: Final = frozenset({";;", ";&", ";;&"})
LONGEST_BLOCK: Final = 20
"""The maximum number of commands of a fallback that are searched for `exit`."""

LOOKED_FOR: Final = re.compile(
    r"""(?:\bcommand\s+-[vV]|\btype|\bwhich|\bhash|(?<=\s)-[defrsx])\s+(?:-\w+\s+)*["']?([\w./+-]+)"""
)
"""The executables and files that a script checks before it uses them."""

ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*(\[[^]]*\])?\+?=")
FUNCTION: Final = re.compile(r"(?:\bfunction[ \t]+|(?<![\w-]))([\w-]+)(?:\s*\(\)|(?<=\w)[ \t]*\{)")
PLAIN: Final = re.compile(r"[\w./+][\w./+-]*")
"""The names of executables and the paths of files. Relative paths start at the container's working directory."""

ABSOLUTE: Final = re.compile(r"/[\w./+-]+")

FLAGS: Final = frozenset({"-u", "-O", "-B"})
"""The Python options without a value."""


class StartedProgram(NamedTuple):
    """An executable by name or path, or a file (by its path) that an interpreter reads."""

    name: str
    is_file: bool = False


MODULE: Final = re.compile(r"[A-Za-z_][\w.]*")
PYTHON: Final = re.compile(r"python(3(\.\d+)?)?")


def python_module(argv: Sequence[str]) -> str:
    """Return the outermost package of `python3 -m MODULE`, alone or in a shell script, or an empty string.

    >>> python_module(["python3", "-u", "-m", "engine.server", "--port=80"])
    'engine'
    >>> python_module(["sh", "-c", "sleep 1; exec python3 -m engine.server"])
    'engine'
    """
    argv = _unwrap(argv)
    script = _script(argv)
    for words in [argv] if script is None else map(_unwrap, _required_commands(script)):
        if words and PYTHON.fullmatch(posixpath.basename(words[0])):
            options = list(dropwhile(FLAGS.__contains__, words[1:]))
            if len(options) > 1 and options[0] == "-m" and MODULE.fullmatch(options[1]):
                return options[1].partition(".")[0]
    return ""


def started_programs(argv: Sequence[str]) -> Iterator[StartedProgram]:
    """Yield the executables that a shell script starts in order, and the file that an interpreter reads.

    >>> list(started_programs(["sh", "-c", "cd /x && A=1 bash /opt/serve.sh --x; exec vllm serve > log"]))
    [StartedProgram(name='bash', is_file=False), StartedProgram(name='/opt/serve.sh', is_file=True), StartedProgram(name='vllm', is_file=False)]
    """
    for words in _nested_commands(argv)[1:]:  # the executable of the container itself is known to exist
        yield StartedProgram(words[0])
    argv = _unwrap(argv)
    script = _script(argv)
    if script is None:
        if argv and posixpath.basename(argv[0]) in INTERPRETERS:
            yield from _read_file(argv, PLAIN)
        elif argv and PLAIN.fullmatch(argv[0]) and "/" in argv[0]:
            yield StartedProgram(argv[0], is_file=True)
        return
    needless = OF_THE_SHELL | set(FUNCTION.findall(script)) | set(LOOKED_FOR.findall(script))
    for words, directory in _with_directories(chain.from_iterable(map(_nested_commands, _required_commands(script)))):
        if words[0] not in needless and PLAIN.fullmatch(words[0]):
            if not _is_relative(words[0]):
                yield StartedProgram(words[0])
            elif directory is not None and not _is_mentioned_before(words[0], script):
                yield StartedProgram(posixpath.join(directory, words[0]), is_file=True)
            if posixpath.basename(words[0]) in INTERPRETERS:
                read = _read_file(words) if _script(words) is None else started_programs(words)
                yield from (started for started in read if started.name not in needless)


def _with_directories(commands: Iterable[Sequence[str]]) -> Iterator[tuple[Sequence[str], str | None]]:
    """Yield the commands, each with its working directory relative to the container's working directory."""
    directory: str | None = ""
    for words in commands:
        yield words, directory
        if words[0] == "cd":
            directory = _directory_after_cd(directory, words)


def _directory_after_cd(directory: str | None, arguments: Sequence[str]) -> str | None:
    """Return the working directory after `cd`, or None if it is only known at run time.

    >>> _directory_after_cd("", ["cd", "/opt"]), _directory_after_cd("/opt", ["cd", "app"]), _directory_after_cd("/opt", ["cd", "$HOME"])
    ('/opt', '/opt/app', None)
    """
    if len(arguments) != 2 or not PLAIN.fullmatch(arguments[1]):
        return None
    if _is_relative(arguments[1]) or "/" not in arguments[1]:
        return None if directory is None else posixpath.join(directory, arguments[1])
    return arguments[1]


def _is_relative(path: str) -> bool:
    return "/" in path and not path.startswith("/")


def _is_mentioned_before(path: str, script: str) -> bool:
    """Return whether a script mentions a file before running it, because the script might create the file."""
    return posixpath.basename(path) in script[: script.index(path)]


def _unwrap(argv: Sequence[str]) -> Sequence[str]:
    """Return the words without `env`, `timeout` and similar commands, their options, and the variables of `env`.

    >>> _unwrap(["/usr/bin/env", "-i", "-u", "NAME", "A=1", "python3", "x.py"])
    ['python3', 'x.py']
    """
    return _nested_commands(argv)[-1] if argv else argv


def _nested_commands(argv: Sequence[str]) -> list[Sequence[str]]:
    """Return the words of a command, and of each command that it starts directly or indirectly.

    >>> _nested_commands(["nice", "-n", "5", "timeout", "-k", "9", "30m", "vllm", "serve"])[1:]
    [['timeout', '-k', '9', '30m', 'vllm', 'serve'], ['vllm', 'serve']]
    """
    layers = [argv] if argv else []
    while argv and (wrapper := WRAPPERS.get(posixpath.basename(argv[0]))) is not None:
        words = _without_options(argv[1:], wrapper)
        argv = list(dropwhile(ASSIGNMENT.match, words))[wrapper.arguments :]
        layers += [argv] if argv else []
    return layers


def _without_options(arguments: Sequence[str], wrapper: Wrapper) -> Sequence[str]:
    """Return the words after the options, including the words in the value of `env -S`.

    >>> _without_options(["-iu", "NAME", "--chdir=/x", "--argv0", "y", "--", "serve"], WRAPPERS["env"])
    ['serve']
    >>> _without_options(["-S", "python3 -u", "x.py"], WRAPPERS["env"])
    ['python3', '-u', 'x.py']
    """
    valued = {*wrapper.short, *wrapper.long}
    while arguments and arguments[0].startswith("-"):
        word, *arguments = arguments
        if word == "--":
            break
        name, is_attached, value = word[2:].partition("=")
        if not word.startswith("--"):
            flags = "".join(takewhile(lambda letter: letter not in valued, word[1:]))
            name, value = word[1 + len(flags) : 2 + len(flags)], word[2 + len(flags) :]
            is_attached = value
        if name not in valued:
            continue
        if not is_attached:
            value, *arguments = arguments or [""]
        if name in SPLIT:
            arguments = [*value.split(), *arguments]
    return arguments


def _script(argv: Sequence[str]) -> str | None:
    """Return the script of `sh -c SCRIPT` with any other shell options, or None for a different command."""
    if not argv or posixpath.basename(argv[0]) not in SHELLS:
        return None
    is_script, words = False, iter(argv[1:])
    for word in words:
        if word in {"-", "--"}:  # the end of the options
            return next(words, None) if is_script else None
        if not re.fullmatch(r"[-+]\w+|--\w[\w-]*", word):
            return word if is_script else None
        is_short = not word.startswith("--")
        is_script = is_script or (is_short and "c" in word)
        if is_short and word[-1] in "oO":
            next(words, None)
    return None


def _read_file(arguments: Sequence[str], form: re.Pattern[str] = ABSOLUTE) -> Iterator[StartedProgram]:
    """Yield the file that an interpreter reads, if its first argument has this form.

    In a script only absolute paths are known: it may have changed the working directory, or made the file.
    """
    rest = list(dropwhile(FLAGS.__contains__, arguments[1:]))
    if rest and form.fullmatch(rest[0]):
        yield StartedProgram(rest[0], is_file=True)


def _required_commands(script: str) -> list[list[str]]:
    """Return the commands that a script requires, without the words before the executable."""
    try:
        commands = list(shellwords.commands(script))
    except (ValueError, RecursionError):  # an unclosed quote, or nested substitutions
        return []
    started = [
        list(dropwhile(lambda word: word in BEFORE_A_COMMAND or ASSIGNMENT.match(word), commands[at].words))
        for at in _required_positions(commands)
    ]
    evaluated = [_required_commands(" ".join(words[1:])) if words[:1] == ["eval"] else [words] for words in started]
    return list(chain.from_iterable(evaluated))


def _required_positions(commands: Sequence[Command]) -> Iterator[int]:
    """Yield the positions of required commands, without `case` patterns, conditions and the left side of `||`."""
    in_condition = False
    patterns = set(_case_patterns(commands))
    fallbacks = _fallbacks(commands, patterns)
    for at, (words, operator) in enumerate(commands):
        if at in patterns:
            continue
        prefix = list(takewhile(BEFORE_A_COMMAND.__contains__, words))
        if {"then", "do"} & {*prefix}:
            in_condition = False
        # A loop with `until missing` or `while ! missing` never finishes.
        is_endless = "until" in prefix or {"while", "!"} <= {*prefix}
        in_condition = (in_condition or bool(CONDITIONS & {*prefix})) and not is_endless
        is_trial = ("!" in prefix and not is_endless) or (
            words[len(prefix) : len(prefix) + 1] == ["timeout"] and operator == "&&"
        )
        if not in_condition and not is_trial and not fallbacks[at]:
            yield at


def _case_patterns(commands: Sequence[Command]) -> Iterator[int]:
    """Yield the positions of the patterns of `case`."""
    in_pattern = False
    for at, (words, operator) in enumerate(commands):
        first = words[0] if words else ""
        if in_pattern and first != "esac":
            yield at
            in_pattern = operator != ")"
        else:
            in_pattern = operator in AFTER_A_CASE or (first == "case" and operator != ")")


def _fallbacks(commands: Sequence[Command], patterns: set[int]) -> list[bool]:
    """Return for each command whether the script continues after its failure. A `||` that only exits does not count.

    A group in braces or parentheses passes its flag to its commands.
    """
    flags = [False] * (len(commands) + 1)
    groups: list[bool] = []
    for at in range(len(commands) - 1, -1, -1):
        if at in patterns:
            continue
        words, operator = commands[at]
        if operator == ")":
            groups.append(flags[at + 1])
        if operator == "||":
            flags[at] = not _exits_with_error(commands[at + 1 : at + 1 + LONGEST_BLOCK])
        elif operator in CHAINED:
            flags[at] = flags[at + 1]
        flags[at] = flags[at] or any(groups[-1:])
        if words[:1] == ["}"]:
            groups.append(flags[at])
        opened = list(takewhile(BEFORE_A_COMMAND.__contains__, words)).count("{") + (operator == "(")
        del groups[len(groups) - min(opened, len(groups)) :]
    return flags


def _exits_with_error(commands: Sequence[Command]) -> bool:
    """Return whether the first command, or its block, exits the script with an error."""
    is_block = commands[0].words[:1] == ["{"] or commands[0] == ([], "(")
    for words, operator in commands if is_block else commands[:1]:
        plain = [word for word in words if word != "{"]
        if plain[:1] in (["exit"], ["return"], ["false"]):
            return plain[1:2] != ["0"]
        if plain[:1] == ["}"] or operator == ")":
            return False
    return False
