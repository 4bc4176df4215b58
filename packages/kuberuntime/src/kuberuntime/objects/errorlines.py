"""Finds the log line that explains why a process terminated.

Input: the last lines of a log, as in a termination message. Output: the most informative line, and whether it
contains an error. Commands, records and the dashboard use this module, so that they show the same line.

| a line | example | is chosen |
|---|---|---|
| names an error | `KeyError: 'rank'` | first, of several the last one, followed back to the first of its chain (`errorchains`) |
| names what followed from one, or warns of one | `Aborted (core dumped)` | if no line names an error |
| does neither | `loaded shard 3` | the last line, if there is no other: it is only the last line |

Only whole words count. Host names, paths and options are not words, so `error-0.error.default`, `failover`, `errors=0`
and `--fail-fast` do not indicate errors. A pod's own addresses are host names.
"""

import re
from collections.abc import Sequence
from enum import IntEnum
from functools import lru_cache
from typing import Final, NamedTuple

from kuberuntime.objects import errorchains
from kuberuntime.objects.untrustedtext import clean

JUDGED: Final = 200
"""The number of lines at the end of a log that are searched for an error."""

HEAD: Final = 80
"""The number of characters at the start of a line that can contain a log level."""


NEAR: Final = 10
"""The number of lines at the end that are searched for warnings and consequences of an error."""


class Strength(IntEnum):
    """The certainty that a line contains an error."""

    NONE = 0
    CONSEQUENCE = 1
    ERROR = 2


class ErrorLine(NamedTuple):
    """The line with the first error. If `is_certain` is False, it is the last line.

    `last` is the line of the last exception, if it is a different line.
    """

    line: str
    is_certain: bool
    last: str = ""


BEGIN: Final = r"(?<![\w./-])"
END: Final = r"(?![\w/=-]|\.\w)"

WORDS: Final = (
    r"errors?|exceptions?|fatal|panic(?:ked|s)?|abort(?:ed|ing|s)?|fail(?:s|ed|ing|ures?)?|oops|critical",
    r"(?:segmentation|page|memory access|protection|bus) fault|bus error|floating point exception|illegal instruction",
    r"cannot|can(?:'|\u2019)t|can not|could(?:n't| not)|unable|won't|does(?:n't| not) (?:exist|match|support|fit|have)",
    r"not found|not permitted|not supported|not implemented|not installed|not allowed|not available|not enough|not ready|not defined",
    r"is not (?:a|an|set|defined|executable|recognized|valid|writable|readable|accessible)|not set|not a directory",
    r"no such|no space left|no available|no route to host|no kernel image|no module named|no GPU|no CUDA|no devices?",
    r"denied|refused|rejected|forbidden|unauthorized|unauthenticated|expired",
    r"already in use|already exists|already bound",
    r"out of (?:memory|space|range|disk|resources|bounds|file descriptors|host memory|device memory)|OOM(?:Killed)?|oom-kill(?:er|ed)?",
    r"killed|crashed|died|deadlock(?:ed)?|hung|stuck|unresponsive",
    r"invalid|illegal|malformed|corrupt(?:ed|ion)?|mismatch(?:ed)?|unrecognized|unrecognised|unexpected|unsupported",
    r"unreachable|unavailable|undefined|unbound|unresolved|uncaught|unhandled|inconsistent|insufficient",
    r"missing|(?:\w+-)?incompatible|must (?:be|not)|expected\b.*\b(?:got|but)",
    r"unknown (?:option|flag|command|argument|parameter|host|error|key|field|user|type|shorthand|name|device|model|architecture)",
    r"timed out|time-?out (?:waiting|after|of|exceeded|expired)|deadline[_ ]exceeded|exceed(?:s|ed|ing)",
    r"reset by peer|broken pipe|connection (?:closed|lost|abort)|name or service not known|name resolution",
    r"bad (?:substitution|interpreter|magic|request|gateway|address|file descriptor|option)|too (?:many|large|long|few|small)",
    r"read-only file system|is a directory|argument list too long|syntax error|device-side assert|invalid device",
    r"gave up|giving up|lost (?:the )?(?:connection|quorum|lease)",
)
NAMED: Final = re.compile(f"(?i){BEGIN}(?:{'|'.join(WORDS)}){END}")
"""The words and phrases that indicate an error."""

RAISED: Final = re.compile(
    r"(?<![\w./-])[A-Za-z_][\w.]{0,200}(?:Error|Exception|Interrupt|Exit|Failure|OutOfMemory|Timeout|Refused|Denied)\b(?=\s*:|$|\(\w+\):)"
    r"|(?<!\w)(?:[a-z]+_?[A-Z_]*ERROR_[A-Z_]+|[A-Z]+_ERR(?:OR)?(?:_[A-Z_]+)?|ENO[A-Z]+|E(?:ADDRINUSE|CONNREFUSED|ACCES|PERM|XIST))\b"
    r"|^\[?[EF][0-9]{3,4} |^\s*what\(\):|(?<![\w-])(?:ERROR|FATAL|CRITICAL|Error|error)(?=[\s\]:|>\"])"
)
"""The patterns of exceptions, error codes and log levels."""

NEGATED: Final = re.compile(
    r"(?i)(?<![\w.])(?:no|zero|0|without(?: any)?|not|never|ignoring|on)\s+(?:(?:known|new|more|fatal|further|other|any)\s+)?"
    r"(?:errors?|fail(?:s|ed|ures?)?|faults?|exceptions?|timeouts?|crashed|missing|killed|rejected)\b(?!:)"
    r"|(?<![\w.])(?:errors?|fail(?:ed|ures?)|exceptions?|missing(?: keys| values)?|invalid|killed|unavailable|rejected|denied|expired|timed out)\s*[:=]?\s*"
    r"(?:0+(?:\.0+)?%?|none|null|nil|false|\[\]|\{\}|\"\"|'')(?![\w.])"
    r"|(?<![\w.-])(?:error|exception|failure|abort|crash|timeout)[ -](?:handler|handling|handlers|rate|policy|budget|detection|recovery|reporting|threshold|callback|hook|report|counts?|correct(?:ion|ing)|injection|log|file|free|feedback|bars?|mode)s?\b"
    r"|(?:(?<!\w)(?:mean|squared|absolute|relative|percentage|quantization|reconstruction|prediction|train(?:ing)?|test|validation|eval(?:uation)?) ){1,6}errors?\b"
    r"|(?<![\w.])errors?\s*[:=]?\s*(?:[0-9]*\.[0-9]+(?:e-?[0-9]+)?|[0-9.]+%)(?![\w.])|(?<![\w.])error (?:de|in)creased\b|(?<![\w.])timeouts?\s*[:=]?\s*[0-9.]+ ?(?:m?s|min|h)\b"
)
"""The phrases with error words that do not indicate an error, such as features or training metrics."""

CONSEQUENCE: Final = re.compile(
    r"(?i)see (?:the )?(?:root cause|above|logs?)|root cause|exit(?:s|ed) (?:with|on)|exit(?:s|ed)? (?:code|status)|exitcode|exiting (?:due to|because|after)|ChildFailedError"
    r"|shutting down|stopping|terminat(?:ed|ing)\b(?! with exception)|cleaning up|core dumped|^\W*(?:aborted|killed)\b|sending (?:signal|process)"
    r"|primary job|mpirun (?:has )?(?:detected|noticed)|process that caused|MPI_ABORT was invoked|non-?zero|for more information"
    r"|to enable traceback|RUST_BACKTRACE|^make(?:\[\d+\])?: |npm ERR! (?:a complete|code|errno)|srun: error: |slurmstepd: error: \*"
    r"|cancell?ed|error_file|resource_tracker|leaked \w+ objects|compile with `|might be incorrect|asynchronously reported"
    r"|destroy_process_group|\bfailed \(exitcode|failed core proc|take the entire process down|dumping"
    r"|during handling of|direct cause of|not recoverable|ERRORS_ARE_FATAL|an error occurred in|the traceback of|exception raised from|detected by watchdog|fatal python error: aborted|refer to the documentation"
    r"|engine(?:core)? (?:failed to start|encountered an? )|output_handler failed|application startup failed|failed to load all models|^\W*[\w./-]+ FAILED\W*$|failures?:\s*$|observed failure"
)
"""The words in lines that are consequences of an error, or that contain advice."""

ENDED: Final = re.compile(
    r"(?i)core dumped|^\W*(?:aborted|killed|terminated)\b|exit(?:ed)? (?:with|on|code|status)|primary job|non-?zero"
    r"|mpirun (?:has )?(?:detected|noticed)|MPI_ABORT was invoked|^make(?:\[\d+\])?: \*|terminate called|stack smashing|Watchdog"
)
"""The words in lines that are certainly consequences of an error."""

QUIET: Final = re.compile(
    r"(?:^|[\s\[|(])(?:INFO|DEBUG|TRACE|NOTICE)(?=[\]\s|:)]|$)|level\W{1,4}(?:info|debug|trace)\b|\[(?:info|debug)\]|^\[?I[0-9]{3,4} "
)
WARNS: Final = re.compile(
    r"(?:^|[\s\[|(])(?<!NCCL )(?:WARN|WARNING|UserWarning|FutureWarning)(?=[\]\s|:)]|$)|level\W{1,4}warn|^\[?W[0-9]{3,4} |Warning: "
)
"""The log levels of lines that do not report an error, or that report a recovered error."""

TEXT: Final = re.compile(r"[^\W_]")

LINES_CACHED: Final = 512
"""The number of lines whose certainty is cached, because excerpts and repeated diagnoses read the same lines again."""


def error_strength(line: str) -> Strength:
    """Return the certainty that a line contains an error.

    >>> error_strength("KeyError: 'rank'").name, error_strength("joining error-0.error.default, 3 out of 8").name
    ('ERROR', 'NONE')
    """
    return _read_strength(clean(line[: errorchains.READ]))


@lru_cache(maxsize=LINES_CACHED)
def _read_strength(line: str) -> Strength:
    _, body, text = errorchains.split_prefix(line)
    head = body[:HEAD]
    if QUIET.search(head) or errorchains.is_frame(text) or not TEXT.search(text):
        return Strength.NONE
    plain = NEGATED.sub(" ", body)
    if not (RAISED.search(plain) or NAMED.search(plain)):
        return Strength.CONSEQUENCE if ENDED.search(plain) else Strength.NONE
    return Strength.CONSEQUENCE if CONSEQUENCE.search(plain) or WARNS.search(head) else Strength.ERROR


def first_error(lines: Sequence[str]) -> ErrorLine:
    """Return the first error, the last consequence of an error, or the last line, without control characters."""
    lines = [clean(line) for line in lines]
    ranked = [error_strength(line) for line in lines]
    is_error = [level is Strength.ERROR for level in ranked]
    is_hint = [level is Strength.CONSEQUENCE for level in ranked]
    if chain := errorchains.find_chain(lines, is_error, is_hint):
        first, last = lines[chain.first].strip(), lines[chain.last].strip()
        is_other = errorchains.split_prefix(first).text != errorchains.split_prefix(last).text and not last.endswith(
            ":"
        )
        return ErrorLine(first, is_certain=True, last=last if is_other else "")
    if matches := [line for line, hints in zip(lines[-NEAR:], is_hint[-NEAR:], strict=True) if hints]:
        return ErrorLine(matches[-1].strip(), is_certain=True)
    texts = [line for line in lines if TEXT.search(line)] or list(lines) or [""]
    return ErrorLine(texts[-1].strip(), is_certain=False)


def error_excerpt(lines: Sequence[str], most: int) -> list[str]:
    """Return the first error and about `most` last lines, so that `first_error` returns the same line."""
    error, tail = first_error(lines), list(lines[-most:])
    first, last = [error.line], [error.last] if error.last else []
    candidates = (tail, [*first, *tail], [*first, *last, *tail], [*first, errorchains.CHAINED, *last])
    excerpt = next((some for some in candidates if first_error(some) == error), None)
    return excerpt or next((some for some in candidates if first_error(some)[:2] == error[:2]), first)
