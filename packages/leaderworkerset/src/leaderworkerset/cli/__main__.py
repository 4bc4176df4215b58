"""The entry point of `lws` and `python -m leaderworkerset.cli`: Ctrl-C while modules load ends it without a traceback."""

import signal
from typing import NoReturn


def main() -> NoReturn:
    """Load the command line and run it; from then on it handles Ctrl-C itself. An ignored SIGINT stays ignored."""
    is_handled = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_handled:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from leaderworkerset.cli import app

    if is_handled:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    app.main()


if __name__ == "__main__":
    main()
