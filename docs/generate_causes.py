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

This page describes the meaning of each cause code, such as LWS-E040, and lists the next steps.

```bash
lws explain web      # prints the cause for a LeaderWorkerSet, a group or a rank that is not ready
```

The meaning of a code never changes. On this page, *the message* is the output of `lws explain`. To learn how to use the codes, see
[Why does a group not start](../how-to/why-does-a-group-not-start.md). The codes for frequent symptoms are LWS-E070 (out of memory), LWS-E071 (CrashLoopBackOff), LWS-E058 to LWS-E061 (ImagePullBackOff), and LWS-E035 (missing GPUs).

| verdict | meaning | exit code |
|---|---|---|
| healthy | Every group is ready and has the latest revision. | {healthy} |
| complete | All groups have run to completion. | {complete} |
| starting | A rank has not been ready in its current run, and its startup time limit has not expired. | {starting} |
| progressing | The object is not ready, but no error was found. Either no action is required, or a setting in the spec (such as a partition) delays the next step. | {progressing} |
| crashing | Containers fail repeatedly, and action is required. | {crashing} |
| stuck | The object is not ready, and action is required. | {stuck} |
| unknown | The object is not ready, and no cause on this page applies ([{unknown_code}](#{unknown_anchor})). | {unknown} |
| unread | The object is not ready, and the data for the diagnosis could not be read ([{unread_code}](#{unread_anchor})). | {unread} |

After a failure, a group is healthy again when it has been ready for one minute, and for longer than its longest failed run. If the longest failed
run lasted ten minutes or more, one minute is sufficient. Until then, the verdict is `progressing` after one failure, and `crashing` after several
failures. For example, if a process repeatedly exits after two seconds, the verdict remains `crashing` between the exits. Drains, evictions through
the API, deletions by users and similar disruptions are not counted as failures of the group.

If there are several causes, the diagnosis reports the cause that is listed first in the following table of codes. For example, a group that cannot be
scheduled is reported before a group that crashes, because the scheduling problem often explains the crash.

The causes {warming} apply to containers that are running but do not become ready. Loading a large model takes time. Therefore, if a rank has not
been ready in its current run, its verdict is `starting` for at least ten minutes. This time limit is longer if the probes of the rank permit more
time. It is at least twice the startup time of the slowest ready rank. When the time limit expires, the verdict becomes `stuck`. If a rank was ready
earlier in the same run, its verdict is `stuck` immediately. For three other causes, the verdict is `progressing` for a limited time:

- LWS-E044 (unbound volume claim): two minutes after the pod is created.
- LWS-E109 (image pull): 30 minutes after the pull starts.
- LWS-E108 (autoscaler): 15 minutes, or the duration that you set with `--node-patience`, after the autoscaler reports that it adds nodes.

If you do not have permission to read some kinds of objects, the diagnosis lists these kinds and ignores their objects. To get an accurate diagnosis,
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
