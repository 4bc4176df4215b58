"""Records a failing rollout, its explanation and the rollback, for the first steps.

python docs/record_rollout.py     run the commands, write docs/recording/rollout.txt, put it into first-steps.md
"""
# ruff: noqa: INP001, T201 - a script of its own, which talks

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
TEXT: Final = ROOT / "docs" / "recording" / "rollout.txt"
PAGE: Final = ROOT / "docs" / "how-to" / "first-steps.md"
BLOCK: Final = re.compile(r"(?<=```console\n)\$ sed .*?(?=```\n)", re.DOTALL)

BEFORE: Final = (
    "lws up --detach",
    "lws apply --local -f docs/recording/web.yaml",
    "lws wait --local web --timeout 120",
)
SHOWN: Final = (
    "sed 's/value: small/value: llama/' docs/recording/web.yaml | lws apply --local -f -",
    "lws rollout status --local web --stuck-after 8",
    "lws explain --local web",
    "lws rollout undo --local web",
    "lws rollout status --local web --timeout 120",
)
AFTER: Final = "lws down --delete"


def record(environment: Mapping[str, str]) -> str:
    """Return the commands and their output, from a temporary cluster."""
    try:
        for command in BEFORE:
            subprocess.run(["bash", "-c", command], env=environment, cwd=ROOT, check=True, capture_output=True)
        return "".join(f"$ {command}\n{_output(command, environment)}" for command in SHOWN)
    finally:
        subprocess.run(["bash", "-c", AFTER], env=environment, cwd=ROOT, check=False, capture_output=True)


def _output(command: str, environment: Mapping[str, str]) -> str:
    shell = ["bash", "-c", command]
    process = subprocess.run(
        shell, env=environment, cwd=ROOT, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    return process.stdout


def shapes(text: str) -> list[str]:
    r"""Return the commands and the types of result lines. The number of state changes varies between runs.

    >>> shapes("web: 0 of 2 groups updated\nweb is crashing (LWS-E071): pod web-1-1 crashed\n")
    ['web is crashing (LWS-E071): pod web-N-N crashed']
    """
    lines = [
        line for line in text.splitlines() if line.startswith(("$ ", "web is ", "web rolled ", "leaderworkerset/"))
    ]
    texts = [line if line.startswith("$ ") else _without_numbers(line) for line in lines]
    return [line for line, before in zip(texts, [None, *texts], strict=False) if line != before]


def _without_numbers(line: str) -> str:
    codes = re.split(r"(LWS-E\d+|code \d+)", line)
    return "".join(part if index % 2 else re.sub(r"\d+", "N", part) for index, part in enumerate(codes))


def main() -> None:
    """Write the recording."""
    with tempfile.TemporaryDirectory() as directory:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        text = record({**os.environ, "PATH": path, "LWS_STATE_HOME": directory})
    TEXT.write_text(text)
    PAGE.write_text(BLOCK.sub(lambda _: text, PAGE.read_text(), count=1))
    print(f"{TEXT.relative_to(ROOT)} written")


if __name__ == "__main__":
    main()
