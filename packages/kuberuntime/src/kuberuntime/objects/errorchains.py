"""Finds the first error of an error chain in process output, in one pass and in linear time.

Input: lines, and whether each line contains an error. Output: the index of the first error, and of the last
exception. Several processes can print into one log, so each prefix is a separate stream.

| the output | the first error |
|---|---|
| `The above exception was the direct cause …`, `During handling of …` | the exception above, back to the start of the chain |
| the summary of torchrun names a rank | the last error of that rank |
| an error that follows from the end of another process | the last exception of the other processes |
| a few errors in consecutive lines, no exceptions | the first one: functions report to their callers |
| `Exception ignored in`, errors while Python exits | ignored |
"""

import re
from collections.abc import Sequence
from enum import Enum
from typing import Final, NamedTuple

from msgspec import Struct

READ: Final = 2000
"""The maximum number of characters that are read per line."""

PREFIX: Final = re.compile(r"^(?:\[(?:rank ?|default)?[0-9]+\]:|\(\w+(?: pid=[0-9]+)?(?:, ip=[\w.:]+)?\)) ?")
"""The prefix that a launcher adds to the lines of each process."""

HEADER: Final = re.compile(
    r"^(?:TRACE|DEBUG|INFO|WARNING|ERROR|CRITICAL) [0-9]{2}-[0-9]{2} (?:[0-9:.]{8,15} )?\[?[\w./-]{1,80}:[0-9]{1,6}\] ?"
    r"|^\[[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:.,]{8,15}(?: \w{1,12})*\] "
)
"""The header that loggers of inference servers repeat on each line of a message."""

GUTTER: Final = re.compile(r"^[ ]{0,20}(?:[|][ ]?|[+][ ](?=Exception Group))")
"""The frame that Python prints around the exceptions of a group."""

ROW: Final = re.compile(r"^[|].*[|]$")
"""A table row."""

FRAME: Final = re.compile(r"^(?:frame )?#[0-9]{1,4}:? |^(?:  +)?\^+$|^\s+File \"")
"""A stack trace line that is not indented, or that has a log header."""

TRACEBACK: Final = "Traceback (most recent call last)"
CHAINED: Final = "The above exception was the direct cause of the following exception:"
MARKERS: Final = ("above exception was the direct cause of", "handling of the above exception")
IGNORED: Final = ("Exception ignored in", "Error in atexit", "Error in sys.excepthook")

EXCEPTION: Final = re.compile(
    r"^(?:[a-zA-Z_][\w.]{0,200}(?:Error|Exception|Interrupt|Exit|Failure|OutOfMemory|Timeout|Refused|Denied)(?:\(\w{1,80}\))?(?::|$)"
    r"|panic: |fatal: |Fatal Python error|terminate called after|\s*what\(\):|F[0-9]{4} )"
    r"|(?i:out of memory|memory pressure|CUDA error|HIP error|no space left|segmentation fault|bus error|illegal memory access)"
    r"|NCCL WARN |exception: [a-zA-Z_.]{1,200}Error: "
)
"""The lines that report process termination, as opposed to errors after which the process continued."""

PEER: Final = re.compile(
    r"(?i)^(?:\w+\.){0,5}(?:EOFError|BrokenPipeError|ConnectionResetError|ConnectionAbortedError|EngineDeadError|DeadActorError)\b"
    r"|ActorDiedError|ActorUnavailableError|RayActorError|WorkerCrashedError|NodeDiedError|SignalException|BrokenProcessPool"
    r"|closed by (?:the )?(?:remote |foreign )?(?:peer|host)|reset by peer|broken pipe"
    r"|watchdog|ncclRemoteError|remote process exited|communicator was aborted|heartbeat"
    r"|NCCL operations have failed|some NCCL|collective operation timeout|Timeout at NCCL work"
    r"|child (?:process )?(?:failed|died)|from a child process|(?:worker|actor|scheduler|engine|process|rank|task|peer|raylet|leader)s? (?:\S+ ){0,2}(?:is |are |was |has )?(?:dead|died|gone|lost|unexpectedly)"
    r"|lost (?:the )?(?:connection|leader|rank|peer)|another task died"
    r"|Stack trace of the failed collective|barrier (?:timed out|failed)|TCPStore|recvValue|wait timeout after|gloo.{0,80}(?:peer|closed|timed out)|exception raised from"
)
"""The errors that are usually caused by the termination of a different process."""

FIRST_FAILURE: Final = "Root Cause (first observed failure)"
OWN: Final = re.compile(r"(?i)(?:CUDA|HIP) error|out of memory|illegal memory access")
"""The errors of the process itself, even if a watchdog reports them."""

RANK: Final = re.compile(r"^\s+rank\s+: ([0-9]{1,6}) \(local_rank: ([0-9]{1,6})\)")
"""The rank that failed first, for example in a torchrun summary."""

RECORD: Final = re.compile(r"^.{0,60}[0-9]{2}:[0-9]{2}:[0-9]{2}|^\W?[A-Z]{1,8}\b[:\] ]|:\s*$")
"""The start of a log record (a time or a level), or the end of a title."""

LONGEST_BLOCK: Final = 5
"""The maximum number of lines in an error report. More consecutive lines are separate errors."""

CLASS: Final = re.compile(r"^[A-Za-z_][\w.]{0,200}(?:\(\w{1,80}\))?(?::\s|$)")
"""The exception line at the end of a traceback."""


class Part(NamedTuple):
    """A line that is split into a process prefix and a remainder, with and without its log header."""

    stream: str
    body: str
    text: str


class Chain(NamedTuple):
    """The indexes of the first error and of the last exception, which can be identical."""

    first: int
    last: int


class _Error(NamedTuple):
    """An error line with its stream, the first error of its chain, and its kind.

    A standalone error is an exception, a peer error, a log record, or the title of the next line.
    """

    stream: str
    first: int
    is_exception: bool
    is_of_peer: bool
    stands_alone: bool


class _State(Enum):
    OUTSIDE = 0
    IN_TRACEBACK = 1
    ANNOUNCED = 2
    """The subsequent traceback is ignored."""
    IN_IGNORED = 3


class _Kind(Enum):
    OTHER = 0
    EXCEPTION = 1
    """The line below a traceback."""
    SKIPPED = 2


class _Stream(Struct):
    """The state of a process, with the first error of its last chain and the cause of its next exception.

    An error on the line above a traceback only announces it, and is dropped. `raised` is the first error of the
    exception below the last traceback, whose message may have several lines.
    """

    state: _State = _State.OUTSIDE
    root: int | None = None
    raised: int | None = None
    cause: int | None = None
    is_announced: bool = False


def split_prefix(line: str) -> Part:
    """Split a line into its process prefix and its remainder.

    >>> split_prefix("(EngineCore_0 pid=71) ERROR 11-28 10:00:00 [core.py:700] ValueError: 7").text
    'ValueError: 7'
    """
    prefix = PREFIX.match(line[:READ])
    body = line[prefix.end() if prefix else 0 : READ]
    text = HEADER.sub("", body, count=1)
    return Part(prefix[0].strip() if prefix else "", body, text if ROW.search(text) else GUTTER.sub("", text, count=1))


def is_frame(text: str) -> bool:
    """Return whether a line belongs to a stack trace or continues the previous line, as in C++."""
    if FRAME.search(text) or ROW.search(text):
        return True
    return text[:1].isspace() and not text[:2].strip() and not text.lstrip().startswith("what():")


def is_of_peer(line: str) -> bool:
    """Return whether an error is usually caused by the termination of a different process."""
    return PEER.search(line[:READ]) is not None and not OWN.search(line[:READ])


def find_chain(lines: Sequence[str], errors: Sequence[bool], hints: Sequence[bool]) -> Chain | None:
    """Return the first error and the last exception, or None if there are no errors in the lines.

    `errors` specifies which lines contain an error, and `hints` which lines are consequences of an error.
    """
    streams: dict[str, _Stream] = {}
    own_errors: list[_Error] = []
    failed_streams: frozenset[str] = frozenset()
    last, is_summary = None, False
    for index, (line, is_error, is_hint) in enumerate(zip(lines, errors, hints, strict=True)):
        name, _, text = split_prefix(line)
        stream = streams.setdefault(name, _Stream())
        kind = _process_line(stream, text)
        if stream.is_announced and stream.state is _State.IN_TRACEBACK:
            own_errors.remove(next(error for error in reversed(own_errors) if error.stream == name))
        stream.is_announced = False
        is_summary = is_summary or FIRST_FAILURE in text
        if is_summary and (match := RANK.match(text)):
            failed_streams, is_summary = frozenset({f"[rank{match[1]}]:", f"[default{match[2]}]:"}), False
        if kind is _Kind.SKIPPED or not (is_error or is_hint or kind is _Kind.EXCEPTION):
            continue
        is_exception = kind is _Kind.EXCEPTION or EXCEPTION.search(text) is not None
        is_named = is_error or (kind is _Kind.EXCEPTION and not is_hint and CLASS.match(text) is not None)
        if not (is_named or (is_hint and is_exception)):
            continue
        last = index if is_exception and not text.rstrip().endswith(":") else last
        stream.root, stream.cause = (index if stream.cause is None else stream.cause), None
        stream.raised = stream.root if kind is _Kind.EXCEPTION else stream.raised
        if is_named:
            peer = is_of_peer(lines[stream.root])
            stands_alone = is_exception or peer or RECORD.search(text) is not None
            own_errors.append(_Error(name, stream.root, is_exception, peer, stands_alone))
            stream.is_announced = not is_exception
    if not own_errors:
        return None
    first = _select_error(own_errors, failed_streams).first
    return Chain(first, first if last is None else last)


def _select_error(errors: Sequence[_Error], failed_streams: frozenset[str]) -> _Error:
    """Return the last error. The rank that failed first is preferred, and errors about peers are avoided."""
    own = [error for error in errors if error.stream in failed_streams]
    error = (own or errors)[-1]
    if not error.is_of_peer:
        return error if error.is_exception else _first_of_block(own or errors)
    return next((other for other in reversed(errors) if other.is_exception and not other.is_of_peer), error)


def _first_of_block(errors: Sequence[_Error]) -> _Error:
    """Return the first error of the last error block.

    Return the last error if the block is long or has an exception.
    """
    block = [errors[-1]]
    for error in reversed(errors[:-1]):
        if error.stream != block[-1].stream or error.first != block[-1].first - 1:
            break
        block.append(error)
    is_report = len(block) <= LONGEST_BLOCK and not any(error.stands_alone for error in block)
    return block[-1] if is_report else block[0]


def _process_line(stream: _Stream, text: str) -> _Kind:
    """Process one line of a stream."""
    is_open = stream.state in (_State.IN_TRACEBACK, _State.IN_IGNORED)
    if any(marker in text for marker in MARKERS):
        stream.state, stream.cause = _State.OUTSIDE, stream.root if stream.raised is None else stream.raised
        stream.raised = None
        return _Kind.SKIPPED
    if any(marker in text for marker in IGNORED):
        stream.state = _State.ANNOUNCED
        return _Kind.SKIPPED
    if TRACEBACK in text:
        stream.state = _State.IN_IGNORED if stream.state is _State.ANNOUNCED else _State.IN_TRACEBACK
        return _Kind.SKIPPED
    if is_open and (not text.strip() or is_frame(text)):
        return _Kind.SKIPPED
    is_ignored = stream.state is _State.IN_IGNORED
    stream.state = _State.OUTSIDE
    if is_ignored:
        return _Kind.SKIPPED
    return _Kind.EXCEPTION if is_open else _Kind.OTHER
