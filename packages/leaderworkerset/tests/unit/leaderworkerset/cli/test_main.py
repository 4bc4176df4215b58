"""Ctrl-C before the command line is loaded."""

import os
import signal
import subprocess
import sys
from pathlib import Path

SLOW = "import time\nprint('loading', flush=True)\ntime.sleep(60)\n"


def test_an_interrupt_while_modules_are_loaded_ends_it_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text(SLOW)
    with subprocess.Popen(
        [sys.executable, "-m", "leaderworkerset.cli", "version"],
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


def test_it_then_runs_the_command_line() -> None:
    script = (
        "import atexit, signal, sys; from leaderworkerset.cli.__main__ import main; sys.argv[1:] = ['version']\n"
        "atexit.register(lambda: print(signal.getsignal(signal.SIGINT) is signal.default_int_handler))\n"
        "main()"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert result.stdout.startswith("lws ")
    assert result.stdout.endswith("True\n")
    assert result.returncode == 0
