"""The reference of the commands is what the commands say of themselves."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]


@pytest.mark.parametrize("script", ["generate_cli", "generate_causes", "generate_matrix"])
def test_the_reference_of_the_commands_is_up_to_date(script: str) -> None:
    words = [sys.executable, "-m", f"docs.{script}", "--check"]
    result = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
