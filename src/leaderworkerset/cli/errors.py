"""What ends a command: one clear message and an exit code."""

FAILED = 1
USAGE = 2
TIMED_OUT = 124
INTERRUPTED = 130


class CommandError(Exception):
    """The command cannot go on; the text says object, value and what to do."""

    exit_code = FAILED


class UsageFault(CommandError):
    """The words of the command line do not fit together."""

    exit_code = USAGE


class TimedOut(CommandError):
    """What was awaited did not come in time; the text says what was missing."""

    exit_code = TIMED_OUT
