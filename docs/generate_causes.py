"""Write docs/reference/causes.md from the catalogue of `lws explain`, and broken-programs.md from the table of its test.

With `--check` only report whether they are up to date.

python -m docs.generate_causes [--check]
"""
# ruff: noqa: INP001 - a script of its own, which talks

import sys
from pathlib import Path
from typing import Final

from docs import generatedpage
from tests.explanations.ways import WAYS

from lwsctl.cli.commands.explain import EXIT_CODES
from lwsctl.diagnosis.catalogue import CATALOGUE, NO_CAUSE, NOT_READ
from lwsctl.diagnosis.finding import Cause
from lwsctl.model.diagnosis import Person

PAGE = Path(__file__).parent / "reference" / "causes.md"
PERSONS: Final = {
    Person.ADMINISTRATOR: " This requires a cluster administrator.",
    Person.AUTHOR: " This requires a change by the author of the manifest.",
}
BROKEN = PAGE.with_name("broken-programs.md")

INTRODUCTION = """\
# Causes

<!-- Written by docs/generate_causes.py from the catalogue. Do not edit: make generate. -->

This page explains the meaning and the next steps of each code, such as LWS-E040.

```bash
lws explain web      # one cause for a LeaderWorkerSet, a group or a rank that is not ready
```

Codes keep their meaning. [Why does a group not start](../how-to/why-does-a-group-not-start.md) shows how to use them. To find a symptom:
out of memory (OOM) is LWS-E070, CrashLoopBackOff is LWS-E071, ImagePullBackOff is LWS-E058 to LWS-E061, missing GPUs are LWS-E035.

| verdict | means | exit code |
|---|---|---|
| healthy | every group is ready, and of the latest revision | {healthy} |
| complete | it ran to completion | {complete} |
| starting | never ready yet, and within its patience | {starting} |
| progressing | not ready yet, without an error: it continues without you, or waits as the spec says | {progressing} |
| crashing | its programs failed repeatedly, and it needs you | {crashing} |
| stuck | it needs you | {stuck} |
| unknown | not ready, and no cause of this page explains it ([{unknown_code}](#{unknown_anchor})): nothing is guessed | {unknown} |
| unread | not ready, and the evidence could not be read ([{unread_code}](#{unread_anchor})) | {unread} |

A group that failed is healthy again once it has been ready for longer than its longest failed run, and for at least one minute. Failed runs of
ten minutes and more count as one minute. So a program that runs for two seconds and exits is `crashing` at every moment. After a first failure
the group is `progressing` in this time. Drains, evictions through the API and deletions by users are not failures of the group.

If there are several causes, the sentence has the cause of the earliest stage, in the order below. A group that cannot be placed comes
before a group that crashes, because the first cause often explains the second.

Some programs run and do not become ready ({warming}). A rank that was never ready is starting for ten minutes, because large models load. It
may take longer if its probes allow more time, or twice as long as the slowest ready rank of the set. Then it is stuck. A rank that was ready
before is stuck at once. Three more causes are progress for a limited time:

- a claim without a volume (LWS-E044): two minutes
- an image that is being pulled (LWS-E109): half an hour
- a node that an autoscaler adds (LWS-E108): 15 minutes, or `--node-patience`

Objects that you are not permitted to read are listed, and not used as evidence. With fewer permissions there is less evidence: events,
nodes, StatefulSets, ControllerRevisions and services explain most.
"""

TWELVE_WAYS = """\
# Twelve ways to break a program

<!-- Written by docs/generate_causes.py from packages/lwsctl/tests/explanations/ways.py. Do not edit: make generate. -->

This page shows the output of `lws run` for twelve common errors: the cause, and below it the next step.

The same sentence with the same code is the error of the command with `--stuck-after` or at its time limit. `lws explain`, `lws wait` and
`lws rollout status` also print it. `tests/e2e/test_twelve_ways.py` tests each error on a terminal.

| what is broken | code | cause | the next step says |
|---|---|---|---|
"""

WARMING = ("LWS-E073", "LWS-E082", "LWS-E084", "LWS-E111")
IN_TIME = (*WARMING, "LWS-E044", "LWS-E109")
"""The causes that are normal at first, and stuck later."""

ENTRIES = (*CATALOGUE, NO_CAUSE, NOT_READ)


def page() -> str:
    """Return the whole page."""
    codes = {str(verdict): str(code) for verdict, code in EXIT_CODES.items()}
    codes |= {"unknown_code": NO_CAUSE.code, "unknown_anchor": anchor(NO_CAUSE)}
    codes |= {"unread_code": NOT_READ.code, "unread_anchor": anchor(NOT_READ)}
    head = INTRODUCTION.format(warming=", ".join(WARMING), **codes)
    index = [
        "| code | cause |",
        "|---|---|",
        *(f"| [{cause.code}](#{anchor(cause)}) | {cause.title} |" for cause in ENTRIES),
    ]
    return "\n".join([head, *index, "", *(section(cause) for cause in ENTRIES)])


def ways() -> str:
    """Return the page about the ways in which a program can fail."""
    rows = (
        f"| {way.broken} | [{way.code}](causes.md#{way.code.lower()}) | {way.sentence} | {way.step} |\n" for way in WAYS
    )
    return TWELVE_WAYS + "".join(rows)


def anchor(cause: Cause) -> str:
    """Return the anchor of the section of a cause."""
    return cause.code.lower()


def section(cause: Cause) -> str:
    """Describe one cause."""
    early = "starting" if cause.code in WARMING else "progressing"
    verdict = f"{early}, then stuck" if cause.code in IN_TIME else cause.verdict
    person = PERSONS[cause.person] if cause.person else ""
    return (
        f"## {cause.code}\n\n**{cause.title}** ({verdict})\n\n{cause.meaning}\n\n*Next steps:* {cause.remedy}{person}\n"
    )


if __name__ == "__main__":
    sys.exit(generatedpage.write("the catalogue of `lws explain`", lambda: {PAGE: page(), BROKEN: ways()}))
