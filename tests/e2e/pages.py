"""Runs the commands on a documentation page as a script.

They run in order in one shell, as typed by a user who has never used `lws`: with an empty home, a new state directory,
and `.venv/bin` on PATH as after `source .venv/bin/activate`. Lines that end with `&` run in the background until the end
of the page.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from tests.e2e.harness import ROOT, Shell

LEFT_OUT = {
    "make setup": "the environment that runs this test is set up",
    "source .venv/bin/activate": "`.venv/bin` is on PATH already",
    "pip install jax": "the environment that runs this test has it",
    "pip install --require-hashes -r requirements/frameworks.lock": "tests do not install: `make frameworks` does",
    "lws run -f docs/how-to/frameworks/mpi.yaml": "tests/e2e/test_frameworks.py runs it with the MPI of `make frameworks`",
    "pip install numpy": "the environment that runs this test has it",
    "git clone": "the test runs in a clone",
    "make demo": "has a test of its own, from a fresh clone",
    "make test": "is what runs this test",
}
"""The commands that are skipped, with the reasons."""

LIMIT = 240.0
"""The timeout for all commands on a page, in seconds. On a busy machine, each command needs seconds to start."""

ENDS_OTHERWISE = {
    "lws exec --local tensor-parallel/1/2": "it kills every process of the rank, and so itself",
    "lws rollout status --local web --stuck-after": "the rollout is stuck",
    "lws explain --local": "the exit code is the verdict",
    "lws explain crashing": "the exit code is the verdict",
    "lws explain closed": "the exit code is the verdict",
    "lws wait crashing": "the group crashes",
    "lws wait closed": "the group crashes",
    "lws diff --local": "the exit code is 1 if something would change",
    "lws apply --local -f gang.yaml": "the manager of a local cluster has no gang scheduler",
}
"""The commands that exit with a code other than 0, with the reasons."""


def follow(shell: Shell, page: str) -> str:
    """Run the commands on a page next to its files or in the repository.

    All commands must succeed. Return the output.
    """
    named = files(page)
    if named:
        shell = replace(shell, directory=shell.base / "files")
        shell.directory.mkdir()
    for name, text in named.items():
        (shell.directory / name).write_text(text)
    result = shell.run(["bash", "-c", script(page)], limit=LIMIT)
    return result.stdout + result.stderr


def script(page: str) -> str:
    """Return the script of a page. It stops at the first failed command, and stops its background processes."""
    lines = [f"{line} || true" if line.startswith(tuple(ENDS_OTHERWISE)) else line for line in commands(page)]
    return "\n".join(["set -e", "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT", *lines])


def commands(page: str) -> Iterator[str]:
    """Yield the commands on a page, which are in bash blocks and in the input lines of console blocks."""
    for kind, block in re.findall(
        r"^```(bash|console)\n(.*?)^```$", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL
    ):
        lines = block.replace("\\\n", " ").splitlines()
        typed = lines if kind == "bash" else [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        yield from (line for line in typed if line and not line.startswith(tuple(LEFT_OUT)))


def files(page: str) -> dict[str, str]:
    """Return the files on a page, which are YAML blocks that have a file name as their title."""
    text = (ROOT / page).read_text()
    return dict(re.findall(r'^```yaml title="([\w.-]+)"\n(.*?)^```$', text, re.MULTILINE | re.DOTALL))


def unprinted(page: str, printed: str) -> list[str]:
    """Return the expected output that the commands did not print. Ages, hashes and column widths may differ."""
    blocks = re.findall(r"^```console\n(.*?)^```$", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    shown = [line for block in blocks for line in block.splitlines() if line and not line.startswith("$ ")]
    lines = {_shape(line) for line in printed.splitlines()}
    return [line for line in shown if _shape(line) not in lines]


def _shape(line: str) -> str:
    """Return a line without ages, revisions and column widths."""
    words = re.sub(r"(?<![\w./])(?:\d+(?:\.\d+)?(?:ms|[smhd])?(?:\d+s)?|[0-9a-f]{8,10})(?![\w.])", "N", line)
    return " ".join(words.split())


def missing(page: str, printed: str) -> list[str]:
    """Return the expected lines after "prints:" or "The output includes:" that were not printed.

    Numbers may differ.
    """
    shown = re.findall(
        r"^(?:prints|The output)[^\n]*:\n\n```\n(.*?)^```$", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL
    )
    lines = {_without_numbers(line) for line in printed.splitlines()}
    return [line for block in shown for line in block.splitlines() if _without_numbers(line) not in lines]


def _without_numbers(line: str) -> str:
    """Return a line without ages and counts, which vary. Exit codes, names and addresses are preserved."""
    return re.sub(r"\b\d+s ago; \d+ restarts?", "AGE; RESTARTS", line)
