"""Errors that exit a command with one message and an exit code."""

FAILED = 1
USAGE = 2
TIMED_OUT = 124
INTERRUPTED = 130


class CommandError(Exception):
    """The command cannot continue. The message contains the object, the value and a fix."""

    exit_code = FAILED


class UsageError(CommandError):
    """The command-line arguments contradict each other."""

    exit_code = USAGE


class TimedOutError(CommandError):
    """The condition was not met in time. The message describes what was missing."""

    exit_code = TIMED_OUT


def describe(error: Exception) -> str:
    """Return the message of an error. For an operating system error, include the file."""
    if not isinstance(error, OSError) or not error.strerror:
        return str(error) or type(error).__name__
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
