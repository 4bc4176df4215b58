"""Tests that untrusted text of tenants and containers is sanitized before it is evaluated or shown."""

import pytest

from kuberuntime.objects import errorlines, podstate
from kuberuntime.objects.untrustedtext import LONGEST, clean, shorten, visible

DIRECTIONS = "\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
INVISIBLE = "\u200b\u2060\ufeff\u00ad\u2028\u2029\u0085\U000e0041"
CONTROLS = "".join(map(chr, [*range(9), 0x0B, 0x0C, *range(0x0E, 0x20), 0x7F, *range(0x80, 0xA0)]))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mRuntimeError\x1b[0m: CUDA", "RuntimeError: CUDA"),
        ("\x1b[38;5;196m\x1b[1mERROR\x1b[22m", "ERROR"),
        ("\x9b31mred", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;https://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPdevice\x1b\\after", "after"),
        ("\x1b(Bplain", "plain"),
        ("\x1b[2J\x1b[Hcleared", "cleared"),
        ("  1%|#  |\r 50%|###|\r100%|#####|", "100%|#####|"),
        ("loading\r\nError: x\r\n", "loading\nError: x\n"),
        ("10%\r20%\r", "20%"),
        ("a\tb", "a\tb"),
        ("half \ud800", "half \\ud800"),
        ("unterminated \x1b]0;title", "unterminated \\x1b]0;title"),
        ("日本語 é", "日本語 é"),
    ],
)
def test_text_is_cleaned_of_what_a_terminal_interprets(text: str, shown: str) -> None:
    assert clean(text) == shown
    assert clean(shown) == shown


def test_every_control_and_mark_of_direction_is_visible() -> None:
    for character in DIRECTIONS + INVISIBLE + CONTROLS:
        shown = visible(f"a{character}b")
        assert shown.isprintable(), hex(ord(character))
        assert shown.startswith("a\\"), hex(ord(character))
    assert visible(DIRECTIONS[7]) == "\\u202e"


def test_long_text_keeps_both_ends() -> None:
    text = "begin" + "x" * LONGEST + "end"
    assert len(shorten(text)) < LONGEST + 100
    assert shorten(text).startswith("begin")
    assert shorten(text).endswith("end")
    assert shorten("short") == "short"


def test_colored_error_is_an_error_line() -> None:
    lines = ["\x1b[32mINFO\x1b[0m loaded", "\x1b[1;31mRuntimeError\x1b[0m: no GPU", "\x1b[36mbye\x1b[0m"]
    assert errorlines.first_error(lines) == ("RuntimeError: no GPU", True, "")
    ended = {"message": "\n".join(lines), "exitCode": 1, "reason": "Error"}
    assert podstate.describe_termination(ended) == "RuntimeError: no GPU (Error, exit code 1)"


def test_error_after_a_progress_bar_is_an_error_line() -> None:
    assert errorlines.first_error(["  1%|#\r  2%|#\rRuntimeError: no GPU"]).line == "RuntimeError: no GPU"
