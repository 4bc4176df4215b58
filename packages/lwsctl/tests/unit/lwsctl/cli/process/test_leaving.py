"""Tests that all registered functions run and all output is printed when a command exits."""

import subprocess
import sys

import pytest

REMAINS = """
import atexit, threading

class Remains:
    def __del__(self):
        print("taken apart", flush=True)

remains = Remains()
atexit.register(print, "registered")
print("printed")
"""
THREAD = "threading.Thread(target=lambda: (threading.main_thread().join(), print('waited for'))).start()\n"
"""The thread finishes after the main thread. Python waits for it."""


def ended(script: str) -> tuple[int, list[str]]:
    """Return the exit code and the printed lines of a Python process."""
    result = subprocess.run([sys.executable, "-c", REMAINS + script], capture_output=True, text=True, check=False)
    return result.returncode, result.stdout.splitlines()


@pytest.mark.parametrize("code", [0, 124])
def test_output_and_exit_handlers_are_completed(code: int) -> None:
    script = f"from kuberuntime.standardstreams import exit_now; exit_now({code})"
    assert ended(script) == (code, ["printed", "registered"])


def test_exit_waits_for_other_threads() -> None:
    leave = "from kuberuntime.standardstreams import exit_now; exit_now(3)"
    assert ended(THREAD + leave) == (3, ["printed", "waited for", "registered", "taken apart"])


def test_command_exits_quickly() -> None:
    code, lines = ended("from lwsctl.cli.app import main; main(['version'])")
    assert (code, lines[0], lines[-1]) == (0, "printed", "registered")
