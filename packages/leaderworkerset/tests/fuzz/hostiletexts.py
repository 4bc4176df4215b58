"""Generates hostile strings of tenants and faulty containers from a seed, for all string fields."""

from random import Random
from typing import Final

LONGEST: Final = 4096
"""The maximum size of a termination message in bytes."""

PIECES: Final = (
    "jwtid=", "token=", "password: ", "--token ", '"secret": "', "://a:b@", "-----BEGIN PRIVATE KEY-----", "eyJ-", "curl -u a:", "name: token\n",
    "\x1b[31m", "\x1b]0;", "\x1b]8;;x\x1b\\", "\x1b[2J", "\r", "\x08", "\x07", "\x00", "\x7f", "\x85", "\x9b", "\u2028", "\u202e", "\u2066", "\u200b", "\ufeff",
    "\U000e0041", "é", "日本", "٣", "²", "\n", "\t", "\n  ", "  ", "-", "=", ":", ",", "'", '"', "\\", "`", "$(x)", "${x}", "{", "[", "(", "{0}", "{pod}",
    "%s", "%n", "[red]", "[/]", "<script>", "</pre>", "&#0;", "]]>", "9" * 400, "1e999", "-1", "NaN", "null", "true",
    "Error: ", "RuntimeError: ", "expected ", "mean ", "no such ", "exit code 7", "Traceback (most recent call last):\n", "OOM", "killed ",
    "::lws progress step=", "::lws progress step=1 total=0 loss=", "web-0-1", "0/1", "LWS-E001", "Pod web-0 ", "Insufficient cpu", "Back-off pulling image ",
    "2026-01-01T00:00:00Z", "9999-99-99T99:99:99Z", "0001-01-01T00:00:00Z", "… ", "0/5 nodes are available: ", "rendezvous ", "Readiness probe failed: ",
)  # fmt: skip
WHOLE: Final = (
    "",
    " ",
    "\n" * 500,
    "x" * LONGEST,
    "{" * 2000,
    "[" * LONGEST,
    '{"a":' * 500,
    "\x1b" * LONGEST,
    "\u202e" * 1000,
    "9" * LONGEST,
)


def text(random: Random, longest: int = LONGEST) -> str:
    """Return a string. It is one repeated part, a sequence of parts, or hostile as a whole."""
    kind = random.random()
    if kind < 0.15:
        return random.choice(WHOLE)[:longest]
    pieces = random.choices(PIECES, k=1 if kind < 0.45 else random.randint(2, 6))
    times = random.choice([1, 1, 3, longest])
    most = random.choice([longest, longest // 8, 60])
    return ("".join(pieces) * times)[:most].encode()[:longest].decode(errors="ignore")


def log(random: Random) -> bytes:
    """Return a log of several lines with timestamps, as an API server returns it."""
    lines = "\n".join(text(random, 2000) for _ in range(random.randint(1, 8))).split("\n")[:300]
    stamped = (f"2026-01-01T00:00:{number % 60:02}Z {line}" for number, line in enumerate(lines))
    return "\n".join(stamped).encode() + random.choice([b"\n", b"", b"\xff\xfe\x00", b"\xf0\x9f"])


def label(random: Random) -> str:
    """Return a valid label value."""
    return random.choice(
        ["", "0", "1", "-1"[1:], "007", "1999999", "9" * 62, "1e9", "0x1F", "True", "null", "a.b_c-D", "x" * 63]
    )
