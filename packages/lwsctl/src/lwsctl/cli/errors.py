"""The errors that end a command: one clear message and an exit code."""

FAILED = 1
USAGE = 2
TIMED_OUT = 124
INTERRUPTED = 130


class CommandError(Exception):
    """The command cannot continue; the text says object, value and what to do."""

    exit_code = FAILED


class UsageError(CommandError):
    """The arguments of the command line contradict each other."""

    exit_code = USAGE


class TimedOutError(CommandError):
    """The awaited condition was not reached in time; the text says what was missing."""

    exit_code = TIMED_OUT


def describe(error: Exception) -> str:
    """Return the message of an error; for one of the operating system with its file."""
    if not isinstance(error, OSError) or not error.strerror:
        return str(error) or type(error).__name__
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
