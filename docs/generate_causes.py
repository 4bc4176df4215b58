"""Write docs/reference/causes.md from the catalogue of `lws explain`; with `--check` only report whether it is up to date.

python -m docs.generate_causes [--check]
"""
# ruff: noqa: INP001 - a script of its own, which talks

import sys
from pathlib import Path

from docs import generatedpage

from leaderworkerset.cli.commands.explain import EXIT_CODES
from leaderworkerset.diagnosis.catalogue import CATALOGUE
from leaderworkerset.diagnosis.diagnose import UNKNOWN
from leaderworkerset.diagnosis.finding import Cause

PAGE = Path(__file__).parent / "reference" / "causes.md"

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
ready ({warming}) are progressing for ten minutes, as large models load, and then stuck.

What you may not read is listed, and nothing is concluded from it. With fewer permissions there is less evidence: events,
nodes, StatefulSets, ControllerRevisions and services explain most.
"""

WARMING = ("LWS-E073", "LWS-E082", "LWS-E084")


def page() -> str:
    """Return the whole page."""
    codes = {str(verdict): str(code) for verdict, code in EXIT_CODES.items()}
    head = INTRODUCTION.format(unknown_code=UNKNOWN, warming=", ".join(WARMING), **codes)
    index = ["| code | cause |", "|---|---|", *(f"| [{one.code}](#{anchor(one)}) | {one.title} |" for one in CATALOGUE)]
    return "\n".join([head, *index, "", *(section(one) for one in CATALOGUE)])


def anchor(cause: Cause) -> str:
    """Return where the section of a cause is."""
    return cause.code.lower()


def section(cause: Cause) -> str:
    """Describe one cause."""
    verdict = "progressing, then stuck" if cause.code in WARMING else cause.verdict
    return f"## {cause.code}\n\n**{cause.title}** ({verdict})\n\n{cause.meaning}\n\n*What to do:* {cause.remedy}\n"


if __name__ == "__main__":
    sys.exit(generatedpage.main(PAGE, "the catalogue of `lws explain`", page))
