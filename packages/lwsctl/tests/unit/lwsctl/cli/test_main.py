"""Tests Ctrl-C before the command line is loaded."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

SLOW = "import time\nprint('loading', flush=True)\ntime.sleep(60)\n"


def test_interrupt_while_loading_leaves_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text(SLOW)
    with subprocess.Popen(
        [sys.executable, "-m", "lwsctl.cli", "version"],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "loading\n"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (-signal.SIGINT, "")


def test_main_runs_the_command_line() -> None:
    script = (
        "import atexit, signal, sys; from lwsctl.cli.__main__ import main; sys.argv[1:] = ['version']\n"
        "atexit.register(lambda: print(signal.getsignal(signal.SIGINT) is signal.default_int_handler))\n"
        "main()"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert result.stdout.startswith("lws ")
    assert result.stdout.endswith("True\n")
    assert result.returncode == 0


UNDOING = """
import asyncio, signal, sys
from lwsctl.cli import app
from lwsctl.cli.__main__ import main


async def act():
    try:
        print("marked", flush=True)
        await asyncio.sleep(60)
    finally:
        await asyncio.sleep(0)
        print("unmarked", flush=True)


def command():
    try:
        asyncio.run(act())
    except KeyboardInterrupt:
        sys.exit(130)


if sys.argv[1] == "ignored":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
app.main = command
main()
"""


@pytest.mark.parametrize("interrupts", ["handled", "ignored"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_command_cleans_up_when_a_signal_stops_it(number: signal.Signals, interrupts: str) -> None:
    """A script in the background ignores SIGINT."""
    words = [sys.executable, "-c", UNDOING, interrupts]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "marked\n"
        process.send_signal(number)
        output, _ = process.communicate(timeout=60)
    assert (process.returncode, output) == (130, "unmarked\n")


def test_ignored_hangup_stays_ignored() -> None:
    script = (
        "import signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "from lwsctl.cli import app; from lwsctl.cli.__main__ import main\n"
        "app.main = lambda: print(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN)\n"
        "main()"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert result.stdout == "True\n"
