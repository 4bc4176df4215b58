"""Defines the errors that exit a command with one message and an exit code."""

FAILED = 1
USAGE = 2
TIMED_OUT = 124
INTERRUPTED = 130


class CommandError(Exception):
    """Raised if the command cannot continue. The message contains the object, the value and a fix."""

    exit_code = FAILED


class UsageError(CommandError):
    """Raised if command-line arguments contradict each other."""

    exit_code = USAGE


class TimedOutError(CommandError):
    """Raised if a condition is not met in time. The message describes the unmet part."""

    exit_code = TIMED_OUT


def describe(error: Exception) -> str:
    """Return the message of an error. For an operating system error, it includes the file."""
    if not isinstance(error, OSError) or not error.strerror:
        return str(error) or type(error).__name__
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
