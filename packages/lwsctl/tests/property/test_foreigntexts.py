"""Tests that the time to process tenants' strings is linear in their length, without recursion.

Hostile texts repeat a piece. Patterns run in C, where lines do not count: their time is limited, to a hundredth of what the
square would take.
"""

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from testkit import work
from tests import builders

import kuberuntime.objects
import kuberuntime.texts
import leaderworkerset
import lwsctl
from kuberuntime.objects import errorchains, errorlines, podstate, untrustedtext
from kuberuntime.objects.meta import JSONObject
from kuberuntime.texts import jsonpath, masking
from kuberuntime.texts.masking import Mask, mask_message
from leaderworkerset.api import progressannotations
from leaderworkerset.api.eventvalue import convert
from leaderworkerset.api.recreationrecord import RECORDED
from leaderworkerset.core.restarts import failure
from lwsctl.cli.reading import fieldlocations, templateplaceholders
from lwsctl.diagnosis import ranks
from lwsctl.diagnosis.patterns import StageMessage
from lwsctl.model.groups import rank_of

LENGTH = 32 * 1024
LIMIT = 1.0
"""The maximum CPU time per string, in seconds: ten times the time of the slowest function."""

SECRETS = (
    "jwtid=", "tokenid: ", "token=", "password= ", 'password="', 'token=\\"', "--token ", "--a-token-", "name: token\n", "://", "://a:b",
    "eyJ-", "eyJaaaaaaaaa.", "-----BEGIN PRIVATE KEY-----", "-----BEGIN CERTIFICATE-----", "LS0tLS1CRUdJTi", "curl ", "<token ",
    "authorization: ", "passphrase=", "machine x login ", "Aa1" * 20 + "\n", ";a:", "hf_aaaaaaaaaaaaaaaaaaaa ", '{"name":"token","value":"',
    "token | ", "| ", '["--token",', "wandb login ", "API key ",
)  # fmt: skip
CONTROLS = ("\x1b[31m", "\x1b]", "\x1b[", "\x1b", "\r", "\u202e", "\n", "\t", "a\rb\n", "\ud800")
WORDS = (
    "error ",
    "mean ",
    "expected ",
    "no ",
    "must ",
    "a.",
    "x=",
    "::lws progress step=1 ",
    "(",
    "[",
    '"',
    "{",
    ": ",
    "- ",
    "1",
    "a-",
)
PIECES = (*SECRETS, *CONTROLS, *WORDS)


def failed_leader(message: str) -> JSONObject:
    """Return a leader pod whose container terminated with this message."""
    leader = builders.leader_pod(builders.leaderworkerset_object(), 0)
    ended = {"exitCode": 1, "reason": "Error", "message": message}
    status = {"name": "c", "restartCount": 1, "state": {"terminated": ended}, "lastState": {"terminated": ended}}
    return leader | {"status": {"phase": "Failed", "containerStatuses": [status]}}


def deep(text: str) -> str:
    """Return a JSONPath template that applies the string to a deeply nested value."""
    value: Any = {"a": text}
    for _ in range(len(text) // 16):
        value = {"a": value}
    return jsonpath.evaluate(jsonpath.parse("{..b}"), value)


READERS: dict[str, Callable[[str], object]] = {
    "clean": untrustedtext.clean,
    "mask": lambda text: Mask().text(text),
    "mask with known values": lambda text: Mask(["jwtid=jwtid", "secret"]).text(text),
    "masked message": mask_message.__wrapped__,
    "quote": ranks.quote_message,
    "error line": lambda text: errorlines.first_error(text.split("\n")),
    "rank": lambda text: rank_of(failed_leader(text)),
    "death": lambda text: podstate.describe_termination({"exitCode": 1, "message": text}),
    "failure": lambda text: failure.describe(failed_leader(text)),
    "event": lambda text: convert({"message": text, "reason": text, "involvedObject": {"kind": text, "name": text}}),
    "progress line": lambda text: progressannotations.parse_log_line(f"{progressannotations.MARK}{text}"),
    "progress annotation": progressannotations.parse_annotation,
    "hang": progressannotations.parse_hang,
    "lines of a log": lambda text: errorlines.error_excerpt([text[at : at + 200] for at in range(0, len(text), 200)], 5),
    "hang with further fields": lambda text: progressannotations.parse_hang(f'{{"x":{text[: progressannotations.LONGEST_HANG - 10]}'),
    "fields of a message": lambda text: fieldlocations.with_line_numbers(f"spec[0].{text}", {"spec": [{}]}, lambda _: 1),
    "template actions of an object": lambda text: templateplaceholders.find_in_object({"a": text, "b": f"{{{{{text}"}),
    "record": RECORDED.fullmatch,
    "JSONPath": jsonpath.parse,
    "JSONPath on a deep value": deep,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_hostile_text_is_read_in_linear_time(name: str) -> None:
    reader = READERS[name]
    grown = []
    for piece in PIECES:
        once, twice = (piece * (size // len(piece)) for size in (LENGTH // 8, LENGTH // 4))
        few, many = (work.lines(partial(tolerant, reader, text)) for text in (once, twice))
        long = piece * (LENGTH // len(piece))
        if many > 2.2 * few + 200 or not work.ends_within(LIMIT, partial(reader, long)):
            grown.append((piece, few, many))
    assert not grown


def tolerant(reader: Callable[[str], object], text: str) -> None:
    """Parse a string that may be rejected."""
    try:
        reader(text)
    except ValueError:
        return


OTHERS = (
    "lwsctl.cli.applying",
    "lwsctl.cli.doctor",
    "lwsctl.cli.commands.inspect.cp",
    "kuberuntime.objects.duration",
)
"""Modules whose patterns only match the user's own manifests and arguments. `test_parsers.py` measures them."""

SHORTER = {
    "kuberuntime.texts.masking.BEFORE": masking.LONGEST_NAME,
    "kuberuntime.objects.errorchains": errorchains.READ,
    "kuberuntime.objects.errorlines": errorchains.READ,
}
"""Patterns that match a limited number of characters."""


def test_patterns_are_found() -> None:
    names = {name for name, _ in patterns()}
    assert len(names) > 35
    assert "kuberuntime.texts.masking.BEFORE" in names


@pytest.mark.slow
def test_every_pattern_reads_hostile_text_in_time() -> None:
    slow = []
    for name, pattern in patterns():
        words = re.findall(r"[A-Za-z_]{3,}|://|--?", pattern.pattern)[:12]
        own = [f"{word}{end}" for word in words for end in ("", " ", "=")]
        length = next((most for begin, most in SHORTER.items() if name.startswith(begin)), untrustedtext.LONGEST)
        for piece in dict.fromkeys([*own, "a", " ", "a ", "1", ".", "-", '"', "'", "\\"]):
            text = piece * (length // len(piece)) + "!"
            if not work.ends_within(LIMIT / 2, partial(list, pattern.finditer(text))):
                slow.append((name, piece))
    assert not slow


def patterns() -> Iterator[tuple[str, "re.Pattern[str]"]]:
    """Yield the patterns that search in tenants' strings, by module and name."""
    for package in (kuberuntime.objects, kuberuntime.texts, leaderworkerset, lwsctl):
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not info.name.endswith("__main__") and not info.name.startswith(OTHERS):
                module = importlib.import_module(info.name)
                source = inspect.getsource(module)
                for name, value in vars(module).items():
                    if isinstance(find := getattr(value, "find", value), StageMessage):
                        yield f"told {info.name}.{name}", re.compile(find.pattern)
                    is_text = isinstance(value, re.Pattern) and isinstance(value.pattern, str)
                    if is_text and re.search(rf"\b{name}\.(?:search|sub|find|split)", source):
                        yield f"{info.name}.{name}", value
