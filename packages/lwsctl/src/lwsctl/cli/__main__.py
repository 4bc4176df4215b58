"""Defines the entry point of `lws` and `python -m lwsctl.cli`. Ctrl-C during imports exits without a traceback."""

import signal
from types import FrameType
from typing import Final, NoReturn

ENDS: Final = tuple(
    getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)
)  # not available on Windows


def main() -> NoReturn:
    """Load and run the command line, which then handles Ctrl-C. If SIGINT was ignored, it remains ignored.

    Unless they are ignored, SIGTERM and SIGHUP terminate a command with the same cleanup as Ctrl-C.
    """
    is_handled = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_handled:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from lwsctl.cli import app

    if is_handled:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in ENDS:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _interrupt)
    app.main()


def _interrupt(_number: int, frame: FrameType | None) -> None:
    """Handle a signal like Ctrl-C, even if SIGINT is ignored, as in background jobs of a script."""
    handler = signal.getsignal(signal.SIGINT)
    if callable(handler):
        handler(signal.SIGINT, frame)
    else:
        raise KeyboardInterrupt


if __name__ == "__main__":
    main()
