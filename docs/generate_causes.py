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
    Person.ADMINISTRATOR: " for a cluster administrator",
    Person.AUTHOR: " for the author of the manifest",
}
BROKEN = PAGE.with_name("broken-programs.md")

INTRODUCTION = """\
# Causes

<!-- Written by docs/generate_causes.py from the catalogue. Do not edit: make generate. -->

This page describes the meaning of each cause code, such as LWS-E040, and the next steps.

```bash
lws explain web      # prints the cause for a LeaderWorkerSet, a group or a rank that is not ready
```

The meaning of a code never changes. On this page, *the message* refers to the output of `lws explain`. [Why does a group not start](../how-to/why-does-a-group-not-start.md) describes how to use
the codes. The codes for frequent symptoms are LWS-E070 (out of memory), LWS-E071 (CrashLoopBackOff), LWS-E058 to LWS-E061 (ImagePullBackOff), and LWS-E035 (missing GPUs).

| verdict | meaning | exit code |
|---|---|---|
| healthy | Every group is ready and has the latest revision. | {healthy} |
| complete | All groups have run to completion. | {complete} |
| starting | A rank has never been ready, and its startup time limit has not expired. | {starting} |
| progressing | The object is not ready, but no error was found. No action is required, or the spec delays the next step, for example with a partition. | {progressing} |
| crashing | Containers fail repeatedly, and action is required. | {crashing} |
| stuck | The object is not ready, and action is required. | {stuck} |
| unknown | The object is not ready, and no cause on this page applies ([{unknown_code}](#{unknown_anchor})). | {unknown} |
| unread | The object is not ready, and the data for the diagnosis could not be read ([{unread_code}](#{unread_anchor})). | {unread} |

After a failure, a group is healthy when it has been ready for at least one minute, and for longer than its longest failed run. If the longest
failed run lasted ten minutes or more, one minute is sufficient. For example, a process that repeatedly exits after two seconds is always reported as
`crashing`. After the first failure of a group, the verdict is `progressing` until the group has been ready for the required time. Drains, evictions through the API and deletions
by users are not counted as failures of the group.

If there are several causes, the diagnosis reports the cause that is listed first in the following table of codes. For example, a group that cannot be
scheduled is reported before a group that crashes, because the first cause often explains the second.

The causes {warming} apply to containers that are running but do not become ready. If a rank has never been ready, its verdict is
`starting` for at least ten minutes, because loading a large model takes time. The time limit is longer if the probes of the rank permit more time.
The time limit is also at least twice the startup time of the slowest ready rank. After the time limit, the verdict is `stuck`. If the rank was ready
before, the verdict is `stuck` immediately. For three other causes, the verdict is `progressing` for a limited time:

- LWS-E044 (unbound volume claim): two minutes.
- LWS-E109 (image pull): 30 minutes.
- LWS-E108 (autoscaler): 15 minutes, or the duration that you set with `--node-patience`.

If you do not have permission to read some kinds of objects, the diagnosis lists these kinds and ignores the objects. To get an accurate diagnosis,
you need permission to read events, nodes, StatefulSets, ControllerRevisions and Services.
"""

TWELVE_WAYS = """\
# Diagnosis of typical errors

<!-- Written by docs/generate_causes.py from packages/lwsctl/tests/explanations/ways.py. Do not edit: make generate. -->

This page shows how `lws run` reports twelve common errors. For each error, the table contains the code and the cause that `lws run`
prints, and a command that you can run next. FILE is a manifest, or a file that contains the missing values.

`lws explain`, `lws wait` and `lws rollout status` print the same code and cause. If a command fails because of
`--stuck-after` or a timeout, the error message also contains the code and the cause. `tests/e2e/test_twelve_ways.py` tests each error on a terminal.

| error | code | reported cause | command |
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


def ways() -> str:
    """Return the page about typical container errors."""
    rows = (
        f"| {way.broken} | [{way.code}](causes.md#{way.code.lower()}) | `{way.sentence}` | `{way.command or f'lws {way.step}'}` |\n"
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
        f"## {cause.code}\n\n**{cause.title}** ({verdict})\n\n{cause.meaning}\n\n*Next steps{person}:* {cause.remedy}\n"
    )


if __name__ == "__main__":
    sys.exit(generatedpage.write("the catalogue of `lws explain`", lambda: {PAGE: page(), BROKEN: ways()}))
