"""Every command of the README, the how-to pages and the examples' pages does what the page says.

The commands of a page run in order in one shell, as somebody types them who has never used `lws`: an empty home, a
state directory of its own, `.venv/bin` on PATH as after `source .venv/bin/activate`. Lines that end with `&` run beside
the others, to the end of the page.
"""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.harness import ROOT, Shell

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]

PAGES = {
    "README.md": "8 ranks in 2 groups ended with 0",
    "docs/how-to/first-steps.md": "4 ranks answer as one",
    "docs/how-to/run-your-program.md": "Cluster default is up",
    "examples/allreduce/README.md": "1/3 all-reduce verified: 3 rounds over 4 ranks",
    "examples/tensor-parallel/README.md": "4 ranks answer as one",
    "examples/jax-data-parallel/README.md": "verified: 4 ranks and one process end at the same loss",
}
"""The pages, and what is printed when all went well."""

ELSEWHERE = {
    "docs/how-to/install.md": "needs a cluster and a registry: what it installs is tested in tests/unit/deploy",
    "docs/how-to/operate.md": "needs a manager on a cluster",
}
"""The pages whose commands cannot run here, and why."""

LEFT_OUT = {
    "make setup": "the environment that runs this test is set up",
    "make demo": "has a test of its own below, from a fresh clone",
    "make test": "is what runs this test",
}
"""The commands that are not run, and why."""

ENDS_OTHERWISE = {"lws exec --local tensor-parallel/1/2": "it kills every process of the rank, and so itself"}
"""The commands that do not end with 0, and why."""


def commands(page: str) -> Iterator[str]:
    """Yield the commands of a page's bash blocks that are to be run."""
    for block in re.findall(r"^```bash\n(.*?)^```$", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            if line and not line.startswith(tuple(LEFT_OUT)):
                yield line


def script(page: str) -> str:
    """Return the script of a page: it stops at the first command that fails, and ends what runs beside it."""
    lines = [f"{line} || true" if line.startswith(tuple(ENDS_OTHERWISE)) else line for line in commands(page)]
    return "\n".join(["set -e", "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT", *lines])


def test_every_page_is_tried_or_says_why_not() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs/how-to").glob("*.md"), *(ROOT / "examples").glob("*/README.md")]
    assert {str(page.relative_to(ROOT)) for page in pages} == {*PAGES, *ELSEWHERE}


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_do_what_it_says(shell: Shell, page: str) -> None:
    result = shell.run(["bash", "-c", script(page)])
    assert PAGES[page] in result.stdout + result.stderr


def test_the_demo_runs_from_a_fresh_clone(shell: Shell, tmp_path: Path) -> None:
    """A clone of what is committed, an empty home; packages come from the environment that runs this test.

    `-o` keeps make from setting that environment up anew, PYTHONPATH lets it run the clone's code.
    """
    if not (ROOT / ".git").exists():
        pytest.skip("this is no clone: there is nothing to clone")
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", "--depth=1", f"file://{ROOT}", str(clone)], check=True)
    environment = ROOT / ".venv"
    inside = Shell(shell.base, {**shell.environment, "PYTHONPATH": str(clone / "src")}, clone)
    result = inside.run(["make", "demo", f"VENV={environment}", "-o", f"{environment}/.installed"])
    assert result.stdout.count("all-reduce verified: 3 rounds over 4 ranks") == 8
    assert result.stderr.splitlines()[-1] == "8 ranks in 2 groups ended with 0"
    assert list(Path(shell.environment["HOME"]).iterdir()) == []
    inside.assert_nothing_is_left()
