"""What ends a command: one clear message and an exit code."""

FAILED = 1
USAGE = 2
TIMED_OUT = 124
INTERRUPTED = 130
PIPE_CLOSED = 141
"""What shells give a program that SIGPIPE ended: kubectl and coreutils end so."""


class CommandError(Exception):
    """The command cannot go on; the text says object, value and what to do."""

    exit_code = FAILED


class UsageError(CommandError):
    """The words of the command line do not fit together."""

    exit_code = USAGE


class TimedOutError(CommandError):
    """What was awaited did not come in time; the text says what was missing."""

    exit_code = TIMED_OUT


def leaves(error: Exception) -> list[Exception]:
    """Return the errors of a group and of the groups in it."""
    if isinstance(error, ExceptionGroup):
        return [leaf for one in error.exceptions for leaf in leaves(one)]
    return [error]


def describe(error: Exception) -> str:
    """Return what to say of an error: of one of the system with the file it concerns."""
    if not isinstance(error, OSError) or not error.strerror:
        return str(error) or type(error).__name__
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
