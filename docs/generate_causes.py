"""Write docs/reference/causes.md from the catalogue of `lws explain`, and broken-programs.md from the table of its test.

With `--check` only report whether they are up to date.

python -m docs.generate_causes [--check]
"""
# ruff: noqa: INP001 - a script of its own, which talks

import sys
from pathlib import Path

from docs import generatedpage
from tests.explanations.ways import WAYS

from leaderworkerset.cli.commands.explain import EXIT_CODES
from leaderworkerset.diagnosis.catalogue import CATALOGUE
from leaderworkerset.diagnosis.diagnose import UNKNOWN
from leaderworkerset.diagnosis.finding import Cause

PAGE = Path(__file__).parent / "reference" / "causes.md"
BROKEN = PAGE.with_name("broken-programs.md")

INTRODUCTION = """\
# Causes

<!-- Written by docs/generate_causes.py from the catalogue. Do not edit: make generate. -->

What `lws explain` says of a LeaderWorkerSet, a group or a rank that is not ready: one cause, with a code that keeps its
meaning. How to use it: [why does a group not start](../how-to/why-does-a-group-not-start.md).

| verdict | means | exit code |
|---|---|---|
| healthy | every group is ready, and of the newest revision | {healthy} |
| progressing | not ready yet, without an error: it continues without you, or waits as the spec says | {progressing} |
| stuck | it needs you | {stuck} |
| unknown | not ready, and no cause of this page explains it ({unknown_code}): nothing is guessed | {unknown} |

Of several causes the one of the earliest stage is named: a group that cannot be placed comes before one that crashes,
because the first often explains the second. The order below is that order. Causes of programs that run without becoming
ready ({warming}) are progressing for ten minutes, as large models load, and then stuck; a claim without a volume (LWS-E044) for two.

What you may not read is listed, and nothing is concluded from it. With fewer permissions there is less evidence: events,
nodes, StatefulSets, ControllerRevisions and services explain most.
"""

TWELVE_WAYS = """\
# Twelve ways to break a program

<!-- Written by docs/generate_causes.py from packages/leaderworkerset/tests/explanations/ways.py. Do not edit: make generate. -->

What `lws run` prints of each as soon as the cause stands: the cause, and below it the next step. The error that ends the command
with `--stuck-after` or at its time limit is the same sentence with the same code, and so is what `lws explain`, `lws wait` and
`lws rollout status` say. `tests/e2e/test_twelve_ways.py` breaks each of them, on a terminal.

| what is broken | code | cause | the next step says |
|---|---|---|---|
"""

WARMING = ("LWS-E073", "LWS-E082", "LWS-E084")
IN_TIME = (*WARMING, "LWS-E044")
"""The causes that are progressing at first, and stuck later."""


def page() -> str:
    """Return the whole page."""
    codes = {str(verdict): str(code) for verdict, code in EXIT_CODES.items()}
    head = INTRODUCTION.format(unknown_code=UNKNOWN, warming=", ".join(WARMING), **codes)
    index = ["| code | cause |", "|---|---|", *(f"| [{one.code}](#{anchor(one)}) | {one.title} |" for one in CATALOGUE)]
    return "\n".join([head, *index, "", *(section(one) for one in CATALOGUE)])


def ways() -> str:
    """Return the page of the ways to break a program."""
    rows = (
        f"| {way.broken} | [{way.code}](causes.md#{way.code.lower()}) | {way.sentence} | {way.step} |\n" for way in WAYS
    )
    return TWELVE_WAYS + "".join(rows)


def anchor(cause: Cause) -> str:
    """Return where the section of a cause is."""
    return cause.code.lower()


def section(cause: Cause) -> str:
    """Describe one cause."""
    verdict = "progressing, then stuck" if cause.code in IN_TIME else cause.verdict
    return f"## {cause.code}\n\n**{cause.title}** ({verdict})\n\n{cause.meaning}\n\n*What to do:* {cause.remedy}\n"


if __name__ == "__main__":
    sys.exit(generatedpage.write("the catalogue of `lws explain`", lambda: {PAGE: page(), BROKEN: ways()}))
