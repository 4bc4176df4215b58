"""The reference of the commands is what the commands say of themselves."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[4]


def test_the_reference_of_the_commands_is_up_to_date() -> None:
    words = [sys.executable, "docs/generate_cli.py", "--check"]
    result = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
