"""`python -m leaderworkerset.cli`, and where `lws` starts: Ctrl-C while modules are loaded ends it without a traceback."""

import signal
from typing import NoReturn


def main() -> NoReturn:
    """Load the command line and run it; it handles Ctrl-C itself from then on. Where SIGINT is ignored, it stays so."""
    is_handled = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_handled:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from leaderworkerset.cli import app

    if is_handled:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    app.main()


if __name__ == "__main__":
    main()
