"""Writes docs/reference/causes.md from the causes of `lws explain`, and broken-programs.md from its tests.

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

This page describes the meaning and the next steps of each cause code, such as LWS-E040.

```bash
lws explain web      # prints the cause for a LeaderWorkerSet, a group or a rank that is not ready
```

The meaning of a code never changes. [Why does a group not start](../how-to/why-does-a-group-not-start.md) describes how to use the codes. Frequent
symptoms are out of memory (LWS-E070), CrashLoopBackOff (LWS-E071), ImagePullBackOff (LWS-E058 to LWS-E061), and missing GPUs (LWS-E035).

| verdict | meaning | exit code |
|---|---|---|
| healthy | every group is ready and has the latest revision | {healthy} |
| complete | all groups have run to completion | {complete} |
| starting | a rank has never been ready, and its time limit for the startup has not expired | {starting} |
| progressing | not ready yet, but without an error; no action is required, or the spec delays the next step | {progressing} |
| crashing | containers fail repeatedly, and an action is required | {crashing} |
| stuck | an action is required | {stuck} |
| unknown | not ready, and no cause on this page applies ([{unknown_code}](#{unknown_anchor})) | {unknown} |
| unread | not ready, and the data for the diagnosis could not be read ([{unread_code}](#{unread_anchor})) | {unread} |

After a failure, a group is healthy when it has been ready for longer than its longest failed run, and for at least one minute. If the longest
failed run lasted ten minutes or more, one minute is sufficient. Therefore, a process that repeatedly exits after two seconds is always reported as `crashing`.
After the first failure of a group, the verdict is `progressing` until the group has been ready for that long. Drains, evictions through the API and deletions
by users do not count as failures of the group.

If there are several causes, the diagnosis reports the cause of the earliest stage, in the order below. For example, a group that cannot be placed is
reported before a group that crashes, because the first cause often explains the second.

The causes {warming} apply to containers that are running but do not become ready. If the rank has never been ready, its verdict is
`starting` for ten minutes, because loading a large model takes time. This time limit is longer if the probes of the rank permit more time.
It is at least twice the startup time of the slowest ready rank. After this time, the verdict is `stuck`. If the rank has been ready before,
the verdict is `stuck` immediately. Three more causes count as progress for a limited time:

- a claim without a volume (LWS-E044), for two minutes
- an image that is being pulled (LWS-E109), for half an hour
- a node that an autoscaler adds (LWS-E108), for 15 minutes or `--node-patience`

If you do not have permission to read some objects, the diagnosis lists these objects and does not use them. The most useful objects are
events, nodes, StatefulSets, ControllerRevisions and Services.
"""

TWELVE_WAYS = """\
# Diagnosis of typical errors

<!-- Written by docs/generate_causes.py from packages/lwsctl/tests/explanations/ways.py. Do not edit: make generate. -->

This page shows the output of `lws run` for twelve common errors. Each row contains the cause and the next step.

With `--stuck-after`, or after a timeout, the error message of the command contains the same sentence and code. `lws explain`, `lws wait`
and `lws rollout status` also print this sentence and code. `tests/e2e/test_twelve_ways.py` tests each error on a terminal.

| error | code | cause | next step |
|---|---|---|---|
"""

WARMING = ("LWS-E073", "LWS-E082", "LWS-E084", "LWS-E111")
IN_TIME = (*WARMING, "LWS-E044", "LWS-E109")
"""The causes that are normal at first and become stuck later."""

ENTRIES = (*CATALOGUE, NO_CAUSE, NOT_READ)


def page() -> str:
    """Return the complete page."""
    codes = {str(verdict): str(code) for verdict, code in EXIT_CODES.items()}
    codes |= {"unknown_code": NO_CAUSE.code, "unknown_anchor": anchor(NO_CAUSE)}
    codes |= {"unread_code": NOT_READ.code, "unread_anchor": anchor(NOT_READ)}
    head = INTRODUCTION.format(warming=f"{', '.join(WARMING[:-1])} and {WARMING[-1]}", **codes)
    index = [
        "| code | cause |",
        "|---|---|",
        *(f"| [{cause.code}](#{anchor(cause)}) | {cause.title} |" for cause in ENTRIES),
    ]
    return "\n".join([head, *index, "", *(section(cause) for cause in ENTRIES)])


def _step(step: str) -> str:
    """Return a next step as Markdown. A subcommand is completed to a command."""
    return f"`lws {step}`" if step.startswith("logs ") else step


def ways() -> str:
    """Return the page about typical container errors."""
    rows = (
        f"| {way.broken} | [{way.code}](causes.md#{way.code.lower()}) | {way.sentence} | {_step(way.step)} |\n"
        for way in WAYS
    )
    return TWELVE_WAYS + "".join(rows)


def anchor(cause: Cause) -> str:
    """Return the anchor of a cause section."""
    return cause.code.lower()


def section(cause: Cause) -> str:
    """Return the description of one cause."""
    early = "starting" if cause.code in WARMING else "progressing"
    verdict = f"{early}, then stuck" if cause.code in IN_TIME else cause.verdict
    person = PERSONS[cause.person] if cause.person else ""
    return (
        f"## {cause.code}\n\n**{cause.title}** ({verdict})\n\n{cause.meaning}\n\n*Next steps:* {cause.remedy}{person}\n"
    )


if __name__ == "__main__":
    sys.exit(generatedpage.write("the catalogue of `lws explain`", lambda: {PAGE: page(), BROKEN: ways()}))
